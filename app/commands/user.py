"""The user who runs this program: their own directory, and the name that commands are recorded under."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from pathlib import Path


def user_home(environ: Mapping[str, str] = os.environ) -> Path:
    """The directory of the user's own settings, keys and marks."""
    if chosen := environ.get("PILOTHOUSE_HOME"):
        return Path(chosen)
    try:
        config = environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    except RuntimeError:  # no HOME, and a user that the system does not know
        config = "/nonexistent"
    return Path(config) / "pilothouse"


def operator_name() -> str:
    """The user's name, as commands are recorded under it."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        return "operator"
    return "".join(char for char in name if char.isalnum() or char in "-_.")[:32] or "operator"
