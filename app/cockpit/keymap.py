"""The keys of the cockpit: one list, from which bindings, help and the palette are made.

Each has an id for rebinding. None of ctrl+h, ctrl+i, ctrl+m, ctrl+[ is used: many terminals cannot
tell them from backspace, tab, enter and escape.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path

from textual.binding import Binding, BindingType
from textual.keys import Keys, format_key

from engine.value import dataclass, replace
from widgets.base.line_pane import LinePane
from widgets.panes.beliefs import BeliefsPane, WorkingMemory
from widgets.panes.command_bar import CommandBar
from widgets.panes.errors import ErrorPanel
from widgets.panes.goals import GoalStack
from widgets.panes.plan import PlanPane
from widgets.panes.session import SandboxPane


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the cockpit."""

    keys: str
    action: str
    name: str
    group: str
    does: str
    shown: bool = False
    """Whether the footer shows it."""
    first: bool = False
    """Whether it comes before the keys of whatever has the focus, as in dialogs."""

    @property
    def id(self) -> str:
        """The name under which it can be rebound, such as `cockpit.step` or `cockpit.pane.goals`."""
        return "cockpit." + self.action.replace("_", "-").replace("('", ".").replace("(", ".").strip("')")

    def bound_to(self, keys: Mapping[str, str]) -> Key:
        """The key as the operator's settings have it."""
        return replace(self, keys=keys.get(self.id, self.keys))

    def binding(self) -> Binding:
        """The key as Textual's binding."""
        keys, name, does = self.keys, self.name, self.does
        return Binding(keys, self.action, name, self.shown, id=self.id, priority=self.first, tooltip=does)


def _read() -> Iterator[Key]:
    for line in Path(__file__).with_name("keys.txt").read_text("utf-8").splitlines()[1:]:
        keys, action, name, group, does, flags = map(str.strip, line.split("|"))
        yield Key(keys, action, name, group, does, "shown" in flags, "first" in flags)


KEYS = tuple(_read())
LINES = {
    "step": "step",
    "step_over": "step over",
    "step_out": "step out",
    "until": "until",
    "stop": "stop",
    "skip": "skip {step}",
    "delete": "delete {step}",
    "move_up": "move {step} up",
    "move_down": "move {step} down",
    "again": "retry",
    "policy": "policy",
    "recap": "recap",
    "guide": "guide ",
}
"""What keys enter in the command bar, by action; `{step}` is the selected step, and a line that ends with a
blank is only put there."""
BINDINGS = [key.binding() for key in KEYS]
FORBIDDEN = frozenset({"ctrl+h", "ctrl+i", "ctrl+m", "ctrl+left_square_bracket"})
PANE_BINDINGS: Mapping[str, tuple[BindingType, ...]] = {
    "In a pane": (
        *(*LinePane.BINDINGS, *PlanPane.BINDINGS, *SandboxPane.BINDINGS),
        *(*GoalStack.BINDINGS, *BeliefsPane.BINDINGS, *WorkingMemory.BINDINGS, *ErrorPanel.BINDINGS),
    ),
    "In the command bar": tuple(CommandBar.BINDINGS),
}

_SHOWN = {
    "insert": "ins",
    "delete": "del",
    "pageup": "pgup",
    "pagedown": "pgdn",
    "ctrl+right_square_bracket": "ctrl+]",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
}


def shown_keys(keys: str) -> str:
    """Keys as the help names them."""
    return " ".join(_SHOWN.get(key.strip(), format_key(key.strip())) for key in keys.split(","))


def help_groups(keys: Mapping[str, str]) -> dict[str, list[tuple[str, str]]]:
    """The keys by group, for the help, as the operator's settings have them."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for key in KEYS:
        groups.setdefault(key.group, []).append((shown_keys(key.bound_to(keys).keys), key.does))
    for title in PANE_BINDINGS:
        groups[title] = [
            (shown_keys(keys.get(each.id or "", each.key)), each.tooltip or each.description)
            for each in _pane_bindings(title)
        ]
    return groups


def _pane_bindings(title: str) -> Iterator[Binding]:
    return (each for each in PANE_BINDINGS[title] if isinstance(each, Binding))


def checked(keys: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The keys that can be rebound as asked, and what is wrong with the others, in sentences."""
    good: dict[str, str] = {}
    problems: list[str] = []
    known = {key.id for key in KEYS} | {each.id for title in PANE_BINDINGS for each in _pane_bindings(title)}
    for name, chosen in keys.items():
        asked = {_named(key) for key in chosen.split(",") if key.strip()}
        if name not in known:
            near = difflib.get_close_matches(name, sorted(filter(None, known)), n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            problems.append(f"keys: there is no '{name}'{hint}")
        elif not asked:
            problems.append(f"keys: {name} has no key; write one such as f10, or leave the line out")
        elif asked & FORBIDDEN:
            problems.append(f"keys: {name} cannot be '{chosen}': terminals cannot tell that key from another")
        elif absent := sorted(key for key in asked if not _exists(key)):
            problems.append(f"keys: {name} cannot be '{chosen}': there is no key '{absent[0]}'")
        elif taken := next((key for key in KEYS if key.id != name and asked & _of(key, keys)), None):
            problems.append(f"keys: {name} cannot be '{chosen}': {taken.id} is on it; give that another key")
        else:
            good[name] = ",".join(sorted(asked))
    return good, problems


def _of(key: Key, keys: Mapping[str, str]) -> set[str]:
    return {_named(each) for each in key.bound_to(keys).keys.split(",")}


def _named(key: str) -> str:
    """A key by Textual's name; a single character is written as it is typed."""
    key = key.strip()
    return next((name for name in _NAMES if format_key(name) == key), key) if len(key) == 1 else key


def _exists(key: str) -> bool:
    """Whether Textual knows a key of this name."""
    name = key.rpartition("+")[2]
    return name in set(Keys) or len(format_key(name)) == 1


_NAMES = ("full_stop", "colon", "question_mark", "comma", "slash", "semicolon", "minus", "plus")
