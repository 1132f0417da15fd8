"""What panes say of themselves, which keys they have and how they look, as tables for all of them."""

from __future__ import annotations

import re
from pathlib import Path

from textual.binding import Binding, BindingType

_HERE = Path(__file__)
_HELP = _HERE.with_name("pane_help.md").read_text("utf-8").split("\n\n")
_STYLES = _HERE.with_name("panes.tcss").read_text("utf-8").split("\n\n")
_KEYS = [
    [part.strip() for part in line.split("|")]
    for line in _HERE.with_name("pane_keys.txt").read_text("utf-8").splitlines()[1:]
]


def pane_bindings(pane: str) -> list[BindingType]:
    """The keys of a pane, by the name of its class."""
    return [
        Binding(keys, action, does, "shown" in flags, id=name, priority="first" in flags)
        for owner, keys, action, does, name, flags in _KEYS
        if owner == pane
    ]


def pane_help(title: str) -> str:
    """What a pane says about itself, below its title."""
    return next(text for text in _HELP if text.startswith(f"## {title}\n"))


def pane_style(pane: str) -> str:
    """How a pane looks, by the name of its class, with which its rules begin."""
    return next(rules for rules in _STYLES if re.match(rf"{pane}\b", rules))
