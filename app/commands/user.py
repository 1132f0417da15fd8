"""The user who runs this program: their own directory, and the name that commands are recorded under."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

OPERATOR = "PILOTHOUSE_OPERATOR"
"""The environment variable with the operator's name."""
NETWORK = "PILOTHOUSE_NETWORK"
"""That with what programs may reach, where `--network` says it for this start."""


def user_home() -> Path:
    """The directory of the user's own settings, keys and marks."""
    return _directory("XDG_CONFIG_HOME", ".config")


def state_home() -> Path:
    """The directory of what is kept of the user's beside settings, and may be lost."""
    return _directory("XDG_STATE_HOME", ".local/state")


def _directory(variable: str, usual: str) -> Path:
    if chosen := os.environ.get("PILOTHOUSE_HOME"):
        return Path(chosen)
    try:
        base = os.environ.get(variable) or str(Path.home() / usual)
    except RuntimeError:  # no HOME, and a user that the system does not know
        base = "/nonexistent"
    return Path(base) / "pilothouse"


def chosen_operator() -> str:
    """The name that was chosen with `--operator` or PILOTHOUSE_OPERATOR; empty for none."""
    return _as_name(os.environ.get(OPERATOR, ""))


def operator_name() -> str:
    """The operator's name, as commands are recorded under it: the chosen one, else the user's."""
    if name := chosen_operator():
        return name
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        return "operator"
    return _as_name(name) or "operator"


def _as_name(text: str) -> str:
    return "".join(char for char in text if char.isascii() and (char.isalnum() or char in "-_."))[:32]
