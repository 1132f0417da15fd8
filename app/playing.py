"""A recorded shell as it was seen, in the format of asciinema (asciicast v2): it plays back in any player."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from engine.engine import Engine
from engine.journal import events as ev
from engine.journal.event import Event

COLUMNS, ROWS = 80, 24
"""The size of a terminal before its first one is on record."""


class NothingToPlayError(Exception):
    """There is no such recording; the message says what there is."""


@dataclass(frozen=True, slots=True)
class Cast:
    """What a terminal showed, and when."""

    columns: int
    rows: int
    at: float
    """When it began, in seconds since 1970."""
    pieces: tuple[tuple[float, str, str], ...]
    """Seconds since then, `o` for output or `r` for a new size (`80x24`), and the text."""

    @property
    def text(self) -> str:
        """The lines of the file."""
        head = {"version": 2, "width": self.columns, "height": self.rows, "timestamp": int(self.at)}
        return "\n".join(json.dumps(line) for line in [head, *map(list, self.pieces)]) + "\n"


def cast_of(events: Iterable[Event], action: str = "") -> Cast:
    """The recording of a shell; what was typed unseen is in none.

    Args:
        events: the agent's events in their order.
        action: the shell's action; the newest one where it is empty.

    Raises:
        NothingToPlayError: there is no such shell.
    """
    found: dict[str, list[tuple[float, str, str]]] = {}
    for event in events:
        if event.kind not in (ev.ActionOutput.kind, ev.ShellResized.kind):
            continue
        at = datetime.fromisoformat(event.at).timestamp()
        match ev.payload_of(event):
            case ev.ActionOutput(stream="terminal") as said:
                found.setdefault(said.action, []).append((at, "o", said.text))
            case ev.ShellResized() as said:
                found.setdefault(said.action, []).append((at, "r", f"{said.columns}x{said.rows}"))
    if not found:
        raise NothingToPlayError("no shell of the operator's is on record: take one with t")
    named = action or next(reversed(found))
    if named not in found:
        raise NothingToPlayError(f"'{named[:40]}' is no shell; recorded: {', '.join(found)}")
    return _cast(found[named])


def _cast(pieces: list[tuple[float, str, str]]) -> Cast:
    began = pieces[0][0]
    size = next((data for _, kind, data in pieces if kind == "r"), f"{COLUMNS}x{ROWS}")
    columns, _, rows = size.partition("x")
    return Cast(
        int(columns),
        int(rows),
        began,
        tuple((round(max(0.0, at - began), 3), kind, data) for at, kind, data in pieces),
    )


async def play_answer(engine: Engine, agent: str, action: str) -> tuple[int, dict[str, Any], str]:
    """`play [ACTION]`: the recording as text, one JSON value a line."""
    try:
        cast = cast_of(await engine.store.read(agent), action)
    except NothingToPlayError as error:
        return 2, {}, str(error)
    return 0, {"columns": cast.columns, "rows": cast.rows, "pieces": len(cast.pieces)}, cast.text.rstrip()


async def write_cast(engine: Engine, agent: str, action: str) -> Path:
    """Write the recording beside the journal's directory; the new file.

    Raises:
        NothingToPlayError: there is no such shell, or the file cannot be written or is there already.
    """
    cast = cast_of(await engine.store.read(agent), action)
    target = engine.workspace / f"{agent}-{action or 'shell'}.cast"
    try:
        with target.open("x", encoding="utf-8", errors="surrogateescape") as file:
            file.write(cast.text)
    except OSError as error:
        raise NothingToPlayError(f"{target}: {error.strerror}") from error
    return target
