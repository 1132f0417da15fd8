"""The context package: what a thinker is to know, as plain values.

Source: spec master-loop-and-memory §1.8 (context package), §3.4 (limits), §3.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Self

from engine.domain.goal import Goal
from engine.domain.plan import PlanStep
from engine.domain.state import AgentState

Item = Mapping[str, Any]
"""One entry of a part, as JSON."""


class Part(StrEnum):
    """The parts of a package in the order in which a prompt shows them; the last is dropped first."""

    SITUATION = "situation"
    """The current goal, its plan and the last error: never dropped."""
    GOALS = "goals"
    WORKING = "working"
    CORE = "core"
    ACTIONS = "actions"
    IMPORTANT = "important"
    THOUGHTS = "thoughts"
    LINKS = "links"
    PROACTIVE = "proactive"
    PROCEDURES = "procedures"


FETCH: Mapping[Part, int] = MappingProxyType(
    {
        Part.ACTIONS: 10,
        Part.IMPORTANT: 7,
        Part.THOUGHTS: 7,
        Part.PROACTIVE: 5,
        Part.PROCEDURES: 3,
        Part.LINKS: 5,
    }
)
"""Entries that are read of each part (§3.4, era A/M)."""

SHOW: Mapping[Part, int] = MappingProxyType(
    {
        Part.ACTIONS: 7,
        Part.IMPORTANT: 5,
        Part.THOUGHTS: 5,
        Part.PROCEDURES: 2,
        Part.PROACTIVE: 3,
        Part.WORKING: 10,
        Part.LINKS: 3,
        Part.GOALS: 5,
    }
)
"""Entries that stay of each part where the budget is short (§3.4, era A/M)."""

OF_MEMORIES = frozenset({Part.WORKING, Part.IMPORTANT, Part.LINKS, Part.PROACTIVE, Part.PROCEDURES})
"""Parts whose entries are memories; one that stands in several of them is told in the first."""


@dataclass(frozen=True, slots=True)
class Situation:
    """Where the agent stands; the caller knows, memory does not."""

    goal: str
    """The current goal's text."""
    plan: tuple[PlanStep, ...] = ()
    next_step: str = ""
    """What the step to run next is to do; empty where there is none."""
    last_error: str = ""
    above: tuple[Goal, ...] = ()
    """The goals that the current one serves, nearest first."""

    @classmethod
    def of(cls, state: AgentState) -> Self:
        """The situation of an agent; its goal is empty when it has none."""
        goal, plan, step = state.goal, state.plan, state.step
        wrong = [failure for failure in state.failures if not failure.resolved]
        error = f"{wrong[-1].kind}: {wrong[-1].subject}: {wrong[-1].message}" if wrong else ""
        return cls(
            goal=goal.text if goal is not None else "",
            plan=plan.steps if plan is not None else (),
            next_step=(step.description or f"{step.tool} {step.command}".strip()) if step is not None else "",
            last_error=error,
            above=state.lineage(state.current_goal)[1:],
        )


@dataclass(frozen=True, slots=True)
class ContextQuestion:
    """For whom a package is gathered."""

    workflow: str
    situation: Situation
    everywhere: bool = True
    """Whether memories of other workflows may come up, such as facts learned for earlier goals."""

    @property
    def query(self) -> str:
        """What memory is searched for: the next step, else the goal, and no words around them (§1.9 U8)."""
        return self.situation.next_step.strip() or self.situation.goal.strip()


@dataclass(frozen=True, slots=True)
class Digest:
    """What stands in the place of a part that was too long."""

    text: str
    computed: bool
    """True where it was counted from the entries, and no model wrote it."""
    of: int
    """Entries that it tells of."""
    source: str
    """SHA-256 of these entries, so that the same ones are not summarised again."""


@dataclass(frozen=True, slots=True)
class Section:
    """One part as it was read."""

    part: Part
    items: tuple[Item, ...] = ()
    """Entries, those that matter most first."""
    retrieved_at: str = ""
    """When it was read: ISO 8601 in UTC."""
    version: int = 0
    """The newest write to memory then, of the workflow or of all that the part is searched in."""
    query: str = ""
    """What was searched for; empty where nothing was."""
    stale: bool = False
    """True when it should have been read again and could not be."""
    digest: Digest | None = None


@dataclass(frozen=True, slots=True)
class PartError:
    """A part that could not be read."""

    part: Part
    error: str
    at: str


@dataclass(frozen=True, slots=True)
class ContextPackage:
    """Everything that was gathered for one question."""

    question: ContextQuestion
    gathered_at: str
    sections: tuple[Section, ...] = ()
    """One for each part that was read, in the order of the parts."""
    errors: tuple[PartError, ...] = field(default=())

    @property
    def ready(self) -> bool:
        """False when a part could not be read."""
        return not self.errors

    def section(self, part: Part) -> Section | None:
        """A part as it was read, or None."""
        return next((one for one in self.sections if one.part is part), None)
