"""Breakpoints of any agent: what is watched for, and how often it came.

A breakpoint on a step or an action holds right before it; any other holds before whatever would come next.
Source: spec steering §3 idea 1, §1 rows 7-11.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

BREAKPOINTS_KEPT = 50
"""Breakpoints that an agent may have."""


class BreakKind(StrEnum):
    """What a breakpoint watches for."""

    STEP = "step"
    """A step of a plan is about to run."""
    TOOL = "tool"
    """A tool is about to be called, with its arguments as they are settled."""
    GOAL = "goal"
    """A goal is adopted or ends."""
    PLAN = "plan"
    """A plan is adopted, or the agent revises one."""
    BELIEF = "belief"
    """A belief comes, changes or goes."""
    ERROR = "error"
    """Something goes wrong and is classified."""
    RESULT = "result"
    """An action has ended with this to show."""
    SPEND = "spend"
    """Models have taken so much, for a goal or in all."""
    EVERY = "every"
    """So many actions have ended: the leash."""
    INTENTION = "intention"
    """An intention of a reasoner is suspended or ends."""


@dataclass(frozen=True, slots=True)
class BreakSpec:
    """What is watched for; which fields count depends on the kind."""

    kind: BreakKind
    subject: str = ""
    """What it is about: a step, `tool.command`, goal, belief key, failure kind, intention; empty is any."""
    change: str = ""
    """What becomes of it, such as `adopted` or `removed`; empty is anything."""
    args: tuple[tuple[str, str], ...] = ()
    """Of a tool: patterns of arguments by name."""
    old: str = ""
    new: str = ""
    """Of a belief: patterns of its value before and after; `none` where there is none, empty is any."""
    text: str = ""
    """Of a result: what it shows somewhere."""
    exit: int | None = None
    """Of a result: the exit status."""
    usd: float | None = None
    tokens: int | None = None
    """Of spend: the limit that is reached."""
    when: str = ""
    """A condition that has to hold as well (`engine.domain.conditions`)."""
    after: int = 1
    """The time it comes at which it holds first; of `every` the number of actions between two."""
    once: bool = False
    """Whether it is switched off when it has held."""


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """One breakpoint of an agent, as its events have it."""

    id: str
    spec: BreakSpec
    enabled: bool = True
    stopped: int = 0
    """How often it held the agent."""
    event: str = ""
    """The event that set or last changed it."""
    last: str = ""
    """The event at which it held last."""
    at: str = ""
    """The action or step before which it held last, which may run then."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A breakpoint that has come and not held yet."""

    breakpoint: str
    what: str
    """What happened, in words; made of what agents and tools said."""
    event: str
