"""Models that fill the memory browser."""

from __future__ import annotations

from widgets.base.rows import Row, heading
from widgets.base.text_layout import Piece
from widgets.dialogs.memory_browser import BrowserModel, MemoryDetail


def row(key: str, text: str) -> Row:
    return Row(key, (Piece(text),), most=2)


FOUND = (
    row("m7", "the index answers slowly before noon"),
    row("m5", "create_venv took 4 s"),
    row("m6", "is there a proxy?"),
)
BROWSER = BrowserModel(agent="pilot-1", work="w3 build api_client", found=FOUND)
DETAIL = MemoryDetail(
    "m7",
    (
        row("head", "m7 · semantic fact"),
        row("text:0", "the index answers slowly before noon"),
        heading("links", "links (2): enter follows"),
        row("link:m5 0", "→ supports create_venv took 4 s"),
        row("link:m6 1", "← question of is there a proxy?"),
    ),
)
