"""What was typed in the command bar, kept between sessions."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from engine.domain.text import clean_line

KEPT = 500
LINE_LIMIT = 4_000


class History:
    """The last lines of a workspace's command bar, in `.pilothouse/history`."""

    def __init__(self, workspace: Path) -> None:
        self._path = workspace / ".pilothouse" / "history"
        self.lines: list[str] = self._read()

    def _read(self) -> list[str]:
        try:
            text = self._path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return []
        return [clean_line(line) for line in text.splitlines()[-KEPT:] if line.strip()]

    def add(self, line: str) -> None:
        """Keep a line; a disk that refuses costs only the memory of it."""
        if not line.strip() or len(line) > LINE_LIMIT or (self.lines and self.lines[-1] == line):
            return
        self.lines = [*self.lines, line][-KEPT:]
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = self._path.with_suffix(".new")
            fresh.write_text("\n".join(self.lines) + "\n", encoding="utf-8", errors="replace")
            fresh.replace(self._path)
