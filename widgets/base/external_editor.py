"""A text in the operator's own editor, which has the terminal meanwhile."""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported


class EditorError(Exception):
    """The text is as it was; says why and what to do."""


async def edited(app: App[Any], text: str) -> str:
    """The text as `$VISUAL` or `$EDITOR` leaves it; agents go on meanwhile, and nothing is drawn.

    Raises:
        EditorError: no editor is set, it failed, or what it left is no text.
    """
    try:
        command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    except ValueError as error:
        raise EditorError(f"EDITOR cannot be read: {error}") from error
    if not command:
        raise EditorError("no editor is set: export EDITOR=nano, say, before the start")
    with tempfile.TemporaryDirectory(prefix="pilothouse-") as folder:
        path = Path(folder) / "text.txt"
        path.write_text(text, encoding="utf-8", errors="replace")
        try:
            with app.suspend(), app.batch_update():
                code = await (await asyncio.create_subprocess_exec(*command, path)).wait()
            if code:
                raise EditorError(f"{command[0]} failed with {code}; the text is as it was")
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise EditorError(f"{command[0]}: {error}; the text is as it was") from error
        except SuspendNotSupported as error:
            raise EditorError("an editor needs a terminal of its own; this is none") from error
