"""What panes say of themselves, which keys they have and how they look, as tables for all of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from textual.binding import Binding

_HERE = Path(__file__)
_HELP = dict(part.split("\n", 1) for part in _HERE.with_name("pane_help.md").read_text("utf-8").split("\n\n"))
_RULES = _HERE.with_name("panes.tcss").read_text("utf-8").split("\n\n")
_STYLES = {re.split(r"\W", rules, maxsplit=1)[0]: rules for rules in _RULES}
_KEYS = [
    [part.strip() for part in line.split("|")]
    for line in _HERE.with_name("pane_keys.txt").read_text("utf-8").splitlines()[1:]
]


class Described:
    """A widget whose keys, look and words about itself the tables have under the name of its class."""

    def __init_subclass__(cls, **options: Any) -> None:
        keys = [
            Binding(keys, action, does, "shown" in flags, id=name, priority="first" in flags)
            for owner, keys, action, does, name, flags in _KEYS
            if owner == cls.__name__
        ]
        told = {"BINDINGS": keys, "DEFAULT_CSS": _STYLES.get(cls.__name__), "HELP": _HELP.get(cls.__name__)}
        for name, value in told.items():
            if value:
                setattr(cls, name, value)
        super().__init_subclass__(**options)
