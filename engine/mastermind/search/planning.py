"""What the procedural thinker plans with given recipes, and what was really done: told as calls of tools."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.domain.goal import Goal
from engine.domain.plan import PlanStep
from engine.domain.thinking import PlanRequest
from engine.library.plan_library import PlanLibrary
from engine.library.watching import toml_files
from engine.mastermind.search.history import History, Json, PastGoal
from engine.thinkers.clauses import split_clauses
from engine.thinkers.procedural import ProceduralThinker

Calls = tuple[str, ...]
"""Calls in order, each as canonical JSON of operation, tool, command and arguments."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What recipes make of a goal."""

    calls: Calls
    uncovered: int
    """Clauses that no recipe covers."""


@dataclass(frozen=True, slots=True)
class Done:
    """A clause of a goal that was achieved, and the steps that did it."""

    ref: str
    """The event by which the goal was adopted."""
    text: str
    """The clause."""
    steps: tuple[Json, ...]
    by_hand: bool
    """Whether a person changed the plan, or recipes alone had none."""

    @property
    def calls(self) -> Calls:
        """The steps as calls."""
        return tuple(call_of(step) for step in self.steps)


def call_of(step: Mapping[str, Any]) -> str:
    """One step without its id, status and words."""
    what = [step.get("op", "act"), step.get("tool", ""), step.get("command", ""), step.get("args", {})]
    return json.dumps(what, sort_keys=True, ensure_ascii=False)


def recipe_texts(directory: Path) -> dict[str, str]:
    """The recipe files of a directory by name; empty where there is none. Blocking."""
    found: dict[str, str] = {}
    with suppress(OSError):
        for path in toml_files(directory):
            with suppress(OSError, UnicodeDecodeError):
                found[path.name] = path.read_text(encoding="utf-8")
    return found


def library_with(texts: Mapping[str, str]) -> PlanLibrary:
    """The shipped recipes and these files beside them; blocking."""
    return _library(tuple(sorted(texts.items())))


@lru_cache(4)
def _library(texts: tuple[tuple[str, str], ...]) -> PlanLibrary:
    with tempfile.TemporaryDirectory(prefix="pilothouse-recipes-") as place:
        for name, text in texts:
            Path(place, name).write_text(text, encoding="utf-8")
        return PlanLibrary.load(None, Path(place))


def planned(library: PlanLibrary, text: str) -> Planned:
    """What the procedural thinker plans for a goal; blocking."""
    proposal = ProceduralThinker(library).propose(PlanRequest(Goal("g", text)))
    return Planned(tuple(_call(step) for step in proposal.steps), len(proposal.uncovered))


def _call(step: PlanStep) -> str:
    return call_of({"op": step.op.value, "tool": step.tool, "command": step.command, "args": step.args})


def done_in(history: History, library: PlanLibrary) -> Iterator[Done]:
    """What was done for each clause of each goal that was achieved, oldest first.

    Goals for which a result was given by hand are left out: nobody knows what did it.
    """
    for goal in history.goals.values():
        if not goal.achieved or not goal.followed or any(one.do == "give_result" for one in goal.hands):
            continue
        clauses = [clause.text for clause in split_clauses(goal.text, library)]
        by_hand = goal.changed_by_hand or bool(goal.uncovered) or goal.thinker != "procedural"
        if len(clauses) == 1:
            yield Done(goal.ref, clauses[0], tuple(goal.followed), by_hand)
            continue
        for clause, steps in _by_clause(goal).items():
            if clause in clauses:
                changed = any(_by_operator(step) for step in steps)
                yield Done(goal.ref, clause, tuple(steps), changed)


def _by_clause(goal: PastGoal) -> dict[str, list[Json]]:
    """The steps of each clause; what was put in between belongs to the clause before it."""
    found: dict[str, list[Json]] = {}
    now = ""
    for step in goal.followed:
        now = str((step.get("provenance") or {}).get("clause", "")) or now
        found.setdefault(now, []).append(step)
    return found


def _by_operator(step: Json) -> bool:
    return str((step.get("provenance") or {}).get("by", "")) == "operator"
