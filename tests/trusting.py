"""A workspace's folder, trusted as its user would do it, and the directory of that user."""

from __future__ import annotations

import os
from pathlib import Path

from app.commands.settings import Settings
from engine.core.trust import FolderTrust


def trust_folder(workspace: Path, home: Path | None = None) -> FolderTrust:
    """Trust all that is in a folder now, as `pilothouse trust --digest` does."""
    folder = FolderTrust(workspace, home) if home is not None else Settings.load(workspace).trust
    assert folder is not None
    assert folder.trust(folder.digest) == ""
    return folder


def write_trusted(path: Path, text: str) -> None:
    """Write a file of a workspace, or of a directory in it, and trust the folder with it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    own = path.parent.name in ("recipes", "prompts")
    trust_folder(path.parent.parent if own else path.parent)


def home() -> Path:
    """The directory of the user who runs the tests' programs."""
    return Path(os.environ["PILOTHOUSE_HOME"])
