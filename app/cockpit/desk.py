"""What lay on the operator's desk: the half-typed line and the agent they looked at, kept over any end.

Source: steering S4 ("the screen is as it was, including the half-typed command").
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from engine.domain.text import clean_line

LINE_LIMIT = 4_000
RESTS_S = 0.1
"""The least time between two writes, in seconds: one who types fast is not written of at each key."""


class Desk(BaseModel):
    """What is kept."""

    model_config = ConfigDict(frozen=True)
    line: str = ""
    """What stands in the command bar and was not entered."""
    agent: str = ""


class DeskKeeper:
    """Keeps a desk in `.pilothouse/desk` of a workspace, off the event loop."""

    def __init__(self, workspace: Path) -> None:
        self._path = workspace / ".pilothouse" / "desk"
        self._changed = asyncio.Event()
        self.desk = self._read()

    def _read(self) -> Desk:
        try:
            found = Desk.model_validate_json(self._path.read_bytes())
        except (OSError, ValidationError):  # a desk that cannot be read is an empty one
            return Desk()
        return Desk(line=_kept(found.line), agent=clean_line(found.agent))

    def lay(self, *, line: str | None = None, agent: str | None = None) -> None:
        """Keep these from now on, and what is not given as it was; written soon."""
        now = self.desk
        line = now.line if line is None else _kept(line)
        agent = now.agent if agent is None else agent
        if (line, agent) != (now.line, now.agent):
            self.desk = Desk(line=line, agent=agent)
            self._changed.set()

    async def keep(self) -> None:
        """Write what changed, until cancelled; a disk that refuses costs only the memory of it."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            with suppress(OSError):
                await asyncio.to_thread(self._write, self.desk)
            await asyncio.sleep(RESTS_S)

    def _write(self, desk: Desk) -> None:
        fresh = self._path.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_text(desk.model_dump_json(), encoding="utf-8")
        fresh.replace(self._path)


def _kept(line: str) -> str:
    """The line as it is kept: without what is not text, and only where it is no novel."""
    line = line.encode(errors="replace").decode()
    return clean_line(line) + " " * line.endswith(" ") if len(line) <= LINE_LIMIT else ""
