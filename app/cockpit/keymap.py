"""The keys of the cockpit: one list, from which bindings, help and the palette are made.

Each has an id for rebinding. None of ctrl+h, ctrl+i, ctrl+m, ctrl+[ is used: many terminals cannot
tell them from backspace, tab, enter and escape.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

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


KEYS: tuple[Key, ...] = (
    Key("space", "toggle_run", "run/pause", "Run", "Run or pause the agent", shown=True),
    Key("s", "step", "step", "Run", "Run exactly one action", shown=True),
    Key("S", "step_over", "step over", "Run", "Run the pending step with all below it"),
    Key("O", "step_out", "step out", "Run", "Run until the present sub-goal ends"),
    Key("o", "until", "until goal ends", "Run", "Run until the present goal ends, then pause"),
    Key("full_stop", "stop", "stop", "Run", "Stop all of the agent, and report what stopped", shown=True),
    Key("X", "stop_panel", "stop …", "Run", "Escalating stop of this agent, its children or all; the report"),
    Key("escape", "close_receipt", "close", "Run", "Dismiss the stop report"),
    Key("b", "breakpoint", "break", "Plan", "Breakpoint: hold the agent before this step", shown=True),
    Key("B", "breakpoints", "breakpoints", "Run", "All breakpoints: tools, beliefs, goals, errors, spend, …"),
    Key("e", "edit", "edit", "Plan", "Change the selected or pending step", shown=True),
    Key("x", "skip", "skip", "Plan", "Skip the selected or pending step"),
    Key("insert,I", "insert", "insert", "Plan", "Insert a step before the selected one"),
    Key("delete,D", "delete", "delete", "Plan", "Delete the selected step from the plan"),
    Key("K", "move_up", "move up", "Plan", "Move the selected step up"),
    Key("J", "move_down", "move down", "Plan", "Move the selected step down"),
    Key("i", "intervene", "intervene", "Your turn", "Take the agent's turn, or decide for it", shown=True),
    Key("t", "take_shell", "take shell", "Your turn", "Work in the agent's sandbox yourself", shown=True),
    Key("ctrl+right_square_bracket", "return_shell", "hand back", "Your turn", "Hand the shell back"),
    Key("a", "approve", "answer", "Your turn", "Answer what the agent asks", shown=True),
    Key(
        "V", "accept_plan", "accept plan", "Your turn", "Accept the agent's plan, or its re-plan; y confirms"
    ),
    Key("d", "deny", "deny", "Your turn", "Deny what the agent asks, with a reason, or reject its re-plan"),
    Key("A,f8", "inbox", "inbox", "Your turn", "Everything that needs you, of all agents"),
    Key("n", "next_need", "next need", "Your turn", "Go to the next agent that needs you"),
    Key("1", "pane('goals')", "goals", "View", "Goals and agents"),
    Key("2", "pane('plan')", "plan", "View", "The plan"),
    Key("3", "pane('memory')", "memory", "View", "Working memory; of a reasoner its beliefs first"),
    Key("4", "pane('errors')", "errors", "View", "Errors"),
    Key("5", "pane('session')", "session", "View", "The sandbox session"),
    Key("dollar_sign", "budgets", "budgets", "View", "Budgets: spent, left, estimate; give more"),
    Key("W", "world", "world", "View", "The world that the agent lives in, or its session again"),
    Key("6", "pane('mind')", "mind", "View", "The mind stream"),
    Key("M", "memories", "memories", "View", "Search memories by words and similarity; links, history"),
    Key("m", "meta", "meta-cognition", "View", "What is due and what runs; force, veto, cancel"),
    Key("ctrl+g", "guide", "guide", "Your turn", "Tell the agent: now, after this action, in the next plan"),
    Key("c", "context", "context", "View", "The thinker's last prompt: shares, words, cost"),
    Key("w", "why", "why", "View", "Why this? Its causes, and what depends on it, from the journal"),
    Key("P", "policy", "policy", "View", "What the agent's programs may do, and what holds them"),
    Key("left_square_bracket", "earlier", "back in time", "Time", "Back to the mark before, in every pane"),
    Key("right_square_bracket", "later", "forward in time", "Time", "Forward to the next mark, then now"),
    Key("home", "first", "first mark", "Time", "In the past: go to the first mark", first=True),
    Key("end", "now", "back to now", "Time", "In the past: come back to now", first=True),
    Key("R", "rewind", "rewind", "Time", "Take the agent and its files back; in the past: to that event"),
    Key("f", "fork", "fork", "Time", "Let a new agent begin there with files of its own; the original stays"),
    Key("u", "undo", "undo", "Time", "Undo your last change to the agent; what that means is shown first"),
    Key("slash", "search", "search", "View", "Search everything: events, outputs, memories"),
    Key("N", "recap", "recap", "View", "What happened since you last looked"),
    Key("C", "campaigns", "campaigns", "Mastermind", "Campaigns: candidates, verdicts, differences; apply"),
    Key("L", "backlog", "backlog", "Mastermind", "What could be better; approve, reject, process"),
    Key("T", "mastermind_jobs", "jobs", "Mastermind", "Background jobs: progress and results"),
    Key("F,f6", "fleet", "fleet", "Crew", "All agents, who needs you first; answer what they ask in place"),
    Key("H,f7", "handoffs", "handoffs", "Crew", "Who handed what to whom; cancel, retry"),
    Key("z", "zoom", "zoom", "View", "Give the focused pane the whole screen, and back"),
    Key("colon,ctrl+k", "command", "command", "Cockpit", "Type a command or a goal", shown=True, first=True),
    Key("question_mark", "help", "help", "Cockpit", "All keys and commands", shown=True),
    Key("ctrl+n", "tour_next", "next of the tour", "Cockpit", "The tour: pass over a step, or begin"),
    Key("f1", "manual", "guide", "Cockpit", "The user's guide, a page a topic", first=True),
    Key(
        "ctrl+z", "suspend_process", "suspend", "Cockpit", "Back to the shell; agents wait for fg", first=True
    ),
    Key(
        "ctrl+c", "interrupt", "interrupt", "Cockpit", "Copy a selection, or pause; twice leaves", first=True
    ),
    Key("ctrl+q", "leave", "quit", "Cockpit", "Leave the cockpit; agents stay where they are", first=True),
)

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
