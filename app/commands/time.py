"""Commands about time: looking back, comparing, rewinding, undoing, and forking.

A fork is new agents that begin at an event of another, changed where that is asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import partial
from typing import Any

from app.commands.arguments import Flag, Rest, Word
from app.commands.command import Context, GrammarError, Group, Show, late
from engine.core.command import check_agent_id
from engine.value import dataclass, replace

SCOPES = ("both", "files", "state")
CONFIRM, DRY = "--yes", "--dry-run"
MOST = 20
"""Forks that one line makes at most."""


@dataclass(frozen=True, slots=True)
class RewindRequest:
    """A rewind as it was typed."""

    place: str
    scope: str = "both"
    paths: tuple[str, ...] = ()
    yes: bool = False
    """Whether it is to be carried out, and not only shown."""


def read_rewind(rest: str, _context: Context | None = None) -> RewindRequest:
    """What `rewind` is followed by: a scope, a place, paths, and whether it is meant.

    Raises:
        GrammarError: it cannot be understood.
    """
    words = rest.split()
    flags = {word for word in words if word.startswith("--")}
    if unknown := flags - {CONFIRM, DRY}:
        raise GrammarError(f"there is no {sorted(unknown)[0][:40]}; there are {CONFIRM} and {DRY}")
    words = [word for word in words if word not in flags]
    scope = words.pop(0) if words and words[0] in SCOPES else "both"
    if not words:
        raise GrammarError("where to is missing: an event such as 31, an action a7, a step s4, or -40")
    place, paths = words[0], tuple(words[1:])
    if paths and scope != "files":
        raise GrammarError(f"paths go with files only: rewind files {place} {paths[0][:40]}")
    return RewindRequest(place, scope, paths, CONFIRM in flags and DRY not in flags)


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """A fork as it was typed."""

    place: str
    name: str = ""
    """The new agent's id; empty for one that is free."""
    times: int = 0
    """How many are made and set running; 0 for one that waits."""
    beliefs: tuple[tuple[str, Any], ...] = ()
    """What each of them is to believe instead."""


def read_fork(rest: str, _context: Context | None = None) -> ForkRequest:
    """What `fork` is followed by: a place, an id, how often, and what is to be otherwise.

    Raises:
        GrammarError: it cannot be understood.
    """
    head, _, change = f"{rest} ".partition(" with ")
    words = head.split()
    if not words:
        raise GrammarError("where from is missing: an event such as 31, an action a7, a step s4, or here")
    place, name, times = words[0], "", 0
    for word in words[1:]:
        if re.fullmatch(r"x\d{1,3}", word):
            times = int(word[1:])
        elif name:
            raise GrammarError(f"'{word[:40]}' is too much; a change is given by: with belief KEY=VALUE")
        else:
            name = word
    if times > MOST:
        raise GrammarError(f"at most {MOST} forks are made at a time")
    if times > 1 and name:
        raise GrammarError("several forks are named by themselves; leave the id out")
    if name:
        try:
            check_agent_id(name)
        except ValueError as error:
            raise GrammarError(str(error)) from None
    return ForkRequest(place, name, times, _beliefs(change.strip()) if change.strip() else ())


def _beliefs(text: str) -> tuple[tuple[str, Any], ...]:
    beliefs = []
    for part in re.split(r"\s+and belief\s+", text.removeprefix("belief ").strip()):
        key, equals, value = part.partition("=")
        if not text.startswith("belief ") or not equals or not key.strip():
            raise GrammarError("a fork is changed by: with belief KEY=VALUE [and belief KEY=VALUE]")
        try:
            beliefs.append((key.strip(), json.loads(value)))
        except ValueError:
            beliefs.append((key.strip(), value.strip()))
    return tuple(beliefs)


def _at_most_two(text: str, _context: Context) -> str:
    if len(text.split()) > 2:
        raise GrammarError("at most two events are compared")
    return text


def _points(context: Context) -> Iterable[tuple[str, str]]:
    here = context.state.version if context.state is not None else 0
    return [("now", "what happens"), *([(str(here), "the newest event that is shown")] if here else [])]


def _places(context: Context) -> Iterable[tuple[str, str]]:
    state = context.state
    if state is None:
        return []
    steps = [step for step in state.plan.steps if step.attempts] if state.plan else []
    return [
        (str(state.version), "the newest event that is shown"),
        ("here", "the event that is looked at"),
        *((step.id, f"before {step.description}") for step in steps),
        ("files ", "only files: rewind files EVENT [PATH …]"),
        ("state ", "only goals, plan and beliefs"),
    ]


def _forks(context: Context) -> Iterable[tuple[str, str]]:
    return [(agent, "an agent") for agent in context.agents if agent != context.agent]


POINTS = Rest(
    "points",
    "two events",
    optional=True,
    shown="[EVENT|AGENT] [EVENT|AGENT]",
    parse=_at_most_two,
    offers=_points,
    default="",
)
YES = Flag("yes", behind=True)
DRY_RUN = Flag("dry-run", behind=True)
HIDDEN_YES, HIDDEN_DRY_RUN = replace(YES, hidden=True), replace(DRY_RUN, hidden=True)
WHERE_TO = partial(Rest, "request", offers=_places)
command = Group("Time")
COMMANDS = (
    command(
        "past",
        Show(late("comparison:show_past"), "past"),
        Word("place", "an event such as 120, or now", shown="EVENT|now", offers=_points),
    ),
    command("compare", Show(late("comparison:show_comparison"), "compare"), POINTS),
    command(
        "rewind",
        Show(late("rewind:run_rewind"), "rewind", changes=True),
        WHERE_TO(
            "where to: an event such as 31, an action a7, a step s4, or -40,",
            shown="[files|state] EVENT|ACTION|STEP|GOAL|-N [PATH …] [--yes]",
            parse=read_rewind,
        ),
    ),
    command(
        "fork",
        Show(late("rewind:run_fork_command"), "fork", changes=True),
        WHERE_TO(
            "where from: an event such as 31, an action a7, a step s4, or here,",
            shown="EVENT|ACTION|STEP|-N [NEW-ID] [xN] [with belief KEY=VALUE]",
            parse=read_fork,
        ),
    ),
    command(
        "adopt",
        Show(late("rewind:run_adopt"), "adopt fork", changes=True),
        *(Word("fork", "a fork's id", shown="FORK", offers=_forks), YES, HIDDEN_DRY_RUN),
    ),
    command(
        "outcomes", Show(late("rewind:show_results"), "outcomes"), Rest("agent", "an agent", optional=True)
    ),
    command(
        "undo",
        Show(late("rewind:run_undo"), "undo again", {"again": False}, changes=True),
        *(HIDDEN_YES, DRY_RUN),
    ),
    command(
        "redo",
        Show(late("rewind:run_undo"), "undo again", {"again": True}, changes=True),
        *(HIDDEN_YES, DRY_RUN),
    ),
)
