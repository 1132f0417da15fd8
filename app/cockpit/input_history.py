"""What is kept between sessions: the half-typed line, the agent that was looked at, and the lines of before.

The screen is as it was after any end, with the half-typed command.
"""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from engine.core.store.places import read_plain
from engine.core.text import clean, clean_line

UNSENT_LINE_LIMIT = 20_000
RESTS_S = 0.1
"""The least time between two writes, in seconds: one who types fast is not written of at each key."""


class UnsentInput(BaseModel):
    """What is kept."""

    model_config = ConfigDict(frozen=True, defer_build=True)
    line: str = ""
    """What stands in the command bar and was not entered."""
    agent: str = ""


class UnsentInputStore:
    """Keeps it in `.pilothouse/desk` of a workspace, off the event loop."""

    def __init__(self, workspace: Path, *, mine: bool = True, keeps: bool = True) -> None:
        """Read what was kept, unless it is somebody else's; write it only where `keeps`."""
        self._path, self._keeps = workspace / ".pilothouse" / "desk", keeps
        self._changed = asyncio.Event()
        self.kept = self._read() if mine and keeps else UnsentInput()

    def _read(self) -> UnsentInput:
        try:
            kept = UnsentInput.model_validate_json(read_plain(self._path, 1_000_000))
        except (OSError, ValidationError):  # what cannot be read is taken as empty
            return UnsentInput()
        return UnsentInput(line=_kept(kept.line), agent=clean_line(kept.agent))

    def update(self, *, line: str | None = None, agent: str | None = None) -> None:
        """Keep these from now on, and what is not given as it was; written soon."""
        now = self.kept
        line = now.line if line is None else _kept(line)
        agent = now.agent if agent is None else agent
        if (line, agent) != (now.line, now.agent):
            self.kept = UnsentInput(line=line, agent=agent)
            self._changed.set()

    async def keep(self) -> None:
        """Write what changed, until cancelled; a disk that refuses costs only the memory of it."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if not self._keeps:
                continue
            with suppress(OSError):
                await asyncio.to_thread(self._write, self.kept)
            await asyncio.sleep(RESTS_S)

    def _write(self, unsent: UnsentInput) -> None:
        _replace(self._path, unsent.model_dump_json())


def _replace(path: Path, text: str) -> None:
    """Write a file whole, owner only."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
    fresh.replace(path)


def _kept(line: str) -> str:
    """The line as it is kept: without what is not text, and only where it is no novel."""
    line = line.encode(errors="replace").decode()
    return clean_line(line) + " " * line.endswith(" ") if len(line) <= UNSENT_LINE_LIMIT else ""


SECRET = re.compile(
    r"sk-[A-Za-z0-9_-]{12,}|gh[pousr]_[A-Za-z0-9]{20,}|AKIA[0-9A-Z]{12,}|-----BEGIN|xox[abprs]-"
    r"|\b[\w-]*(?:api[_-]?key|password|passwd|secret|token)[\w-]*\s*[=:]\s*\S",
    re.IGNORECASE,
)
"""What looks like a key or a password; such a line is not kept."""
KEPT = 500
LINE_LIMIT = 4_000


class InputHistory:
    """The last lines of a workspace's command bar, in `.pilothouse/history`, owner only."""

    def __init__(self, workspace: Path, *, mine: bool = True, keeps: bool = True) -> None:
        """Read what was kept, unless it is somebody else's; write it only where `keeps`."""
        self._path, self._keeps = workspace / ".pilothouse" / "history", keeps
        self.lines: list[str] = self._read() if mine and keeps else []

    def _read(self) -> list[str]:
        try:
            text = self._path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return []
        return [clean(line).strip() for line in text.split("\n")[-KEPT:] if line.strip()]

    def add(self, line: str) -> None:
        """Keep a line; a disk that refuses costs only the memory of it."""
        if not line.strip() or len(line) > LINE_LIMIT or (self.lines and self.lines[-1] == line):
            return
        if SECRET.search(line):
            return
        self.lines = [*self.lines, line][-KEPT:]
        if not self._keeps:
            return
        with suppress(OSError):
            _replace(self._path, "\n".join(self.lines) + "\n")
