"""The keys of the cockpit: one list, from which bindings, help and the palette are made.

Each has an id for rebinding. None of ctrl+h, ctrl+i, ctrl+m, ctrl+[ is used: many terminals cannot
tell them from backspace, tab, enter and escape (spec textual-craft §0 finding 10).
"""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding

from widgets.dialogs import HelpGroup, HelpKey


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

    @property
    def id(self) -> str:
        """The name under which it can be rebound, such as `cockpit.step` or `cockpit.pane.goals`."""
        return "cockpit." + self.action.replace("_", "-").replace("('", ".").replace("(", ".").strip("')")

    def binding(self) -> Binding:
        """The key as Textual's binding."""
        return Binding(self.keys, self.action, self.name, show=self.shown, id=self.id, tooltip=self.does)


KEYS: tuple[Key, ...] = (
    Key("space", "toggle_run", "run/pause", "Run", "Let the agent run, or start no new action", shown=True),
    Key("s", "step", "step", "Run", "Run exactly one action", shown=True),
    Key("o", "until", "until goal ends", "Run", "Run until the present goal ends, then pause"),
    Key("full_stop", "stop", "stop", "Run", "Cut off what runs and start nothing more", shown=True),
    Key("b", "breakpoint", "break", "Plan", "Hold the agent before the selected step", shown=True),
    Key("e", "edit", "edit", "Plan", "Change the selected or pending step", shown=True),
    Key("x", "skip", "skip", "Plan", "Go on without the selected or pending step"),
    Key("insert,I", "insert", "insert", "Plan", "Put a new step before the selected one"),
    Key("delete,D", "delete", "delete", "Plan", "Take the selected step out of the plan"),
    Key("K", "move(-1)", "move up", "Plan", "Move the selected step up"),
    Key("J", "move(1)", "move down", "Plan", "Move the selected step down"),
    Key(
        "i",
        "intervene",
        "intervene",
        "Your turn",
        "Take the agent's turn, or decide what it asks",
        shown=True,
    ),
    Key("n", "next_need", "next need", "Your turn", "Go to the next agent that needs you"),
    Key("1", "pane('goals')", "goals", "View", "Goals and agents"),
    Key("2", "pane('plan')", "plan", "View", "The plan"),
    Key("3", "pane('memory')", "memory", "View", "Working memory"),
    Key("4", "pane('errors')", "errors", "View", "Errors"),
    Key("5", "pane('session')", "session", "View", "The sandbox session"),
    Key("6", "pane('mind')", "mind", "View", "The mind stream"),
    Key("z", "zoom", "zoom", "View", "Give the focused pane the whole screen, and back"),
    Key("colon,ctrl+k", "command", "command", "Cockpit", "Type a command or a goal", shown=True),
    Key("question_mark", "help", "help", "Cockpit", "All keys and commands", shown=True),
    Key("ctrl+c", "interrupt", "interrupt", "Cockpit", "Copy a selection; else pause; twice leaves"),
    Key("ctrl+q", "leave", "quit", "Cockpit", "Leave the cockpit; agents stay where they are"),
)

BINDINGS = [key.binding() for key in KEYS]
FORBIDDEN = frozenset({"ctrl+h", "ctrl+i", "ctrl+m", "ctrl+left_square_bracket"})

_SHOWN = {
    "full_stop": ".",
    "colon": ":",
    "question_mark": "?",
    "insert": "ins",
    "delete": "del",
    "space": "space",
}


def shown_keys(keys: str) -> str:
    """Keys as the help names them."""
    return " ".join(_SHOWN.get(key.strip(), key.strip()) for key in keys.split(","))


def help_groups(keys: tuple[Key, ...] = KEYS) -> tuple[HelpGroup, ...]:
    """The keys by group, for the help."""
    groups: dict[str, list[HelpKey]] = {}
    for key in keys:
        groups.setdefault(key.group, []).append(HelpKey(shown_keys(key.keys), key.does))
    return tuple(HelpGroup(title, tuple(rows)) for title, rows in groups.items())
