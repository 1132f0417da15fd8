"""What was typed in the command bar, kept between sessions."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from engine.domain.text import clean

SECRET = re.compile(
    r"sk-[A-Za-z0-9_-]{12,}|gh[pousr]_[A-Za-z0-9]{20,}|AKIA[0-9A-Z]{12,}|-----BEGIN|xox[abprs]-"
    r"|\b[\w-]*(?:api[_-]?key|password|passwd|secret|token)[\w-]*\s*[=:]\s*\S",
    re.IGNORECASE,
)
"""What looks like a key or a password; such a line is not kept."""
KEPT = 500
LINE_LIMIT = 4_000


class History:
    """The last lines of a workspace's command bar, in `.pilothouse/history` that nobody else reads."""

    def __init__(self, workspace: Path) -> None:
        self._path = workspace / ".pilothouse" / "history"
        self.lines: list[str] = self._read()

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
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = self._path.with_suffix(".new")
            fresh.unlink(missing_ok=True)
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
                file.write("\n".join(self.lines) + "\n")
            fresh.replace(self._path)
