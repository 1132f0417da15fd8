"""What the cockpit sends to a terminal and takes from it, byte by byte: the clipboard, and the mouse."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

from tests.pseudo_terminal import Cockpit


def click(column: int, row: int) -> bytes:
    """A click as terminals report it (SGR)."""
    return f"\x1b[<0;{column};{row}M\x1b[<0;{column};{row}m".encode()


def test_y_sends_the_row_by_osc_52_and_a_click_on_the_footer_presses_its_key(tmp_path: Path) -> None:
    cockpit = Cockpit(tmp_path / "ws", "--mission", "first-flight")
    try:
        cockpit.shows(b"first_flight", b"before acting")
        cockpit.press(b"y")
        cockpit.shows(b"\x1b]52;c;" + b64encode(b"mkdir first_flight"), b"copied the row")
        cockpit.press(click(2, 30))
        cockpit.shows(b"RUNNING")
    finally:
        cockpit.end()
