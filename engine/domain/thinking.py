"""What is asked of a thinker, and what it may answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from engine.domain.action import SandboxSession
from engine.domain.failure import FailureKind
from engine.domain.goal import Goal
from engine.domain.plan import PlanStep


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A plan is wanted for a goal."""

    goal: Goal
    session: SandboxSession = field(default_factory=SandboxSession)
    beliefs: Mapping[str, Any] = field(default_factory=dict)
    """Belief values by key."""
    done: tuple[str, ...] = ()
    """What an earlier plan for this goal has done already, a line a step."""
    trouble: tuple[str, ...] = ()
    """What went wrong with it, oldest first; such a request asks for the rest of the goal only."""
    advice: str = ""
    """What may help against the last of these."""
    guidance: tuple[str, ...] = ()
    """What the operator has to say, each only once."""
    findings: tuple[str, ...] = ()
    """What looking back has found, each only once."""


@dataclass(frozen=True, slots=True)
class Uncovered:
    """A clause of a goal for which the thinker knows no plan."""

    clause: str
    """The clause, verbatim."""
    index: int
    """Its place in the goal's text, from 1."""
    why: str
    """What is missing, in a sentence."""
    nearest: tuple[str, ...] = ()
    """Examples of what the thinker does understand, nearest first."""


@dataclass(frozen=True, slots=True)
class PlanProposal:
    """A thinker's answer to a `PlanRequest`.

    Steps carry ids local to the proposal (`1`, `2`, …) and `depends_on` in those ids;
    the agent gives them lasting ids when it adopts the plan.
    """

    steps: tuple[PlanStep, ...] = ()
    uncovered: tuple[Uncovered, ...] = ()
    """Non-empty when the plan would not do all that the goal asks; such a plan is never adopted silently."""
    thinker: str = ""


class ThinkingError(Exception):
    """A thinker could not answer; the message says why and what to do."""

    def __init__(self, kind: FailureKind, message: str, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retry_after_s = retry_after_s
        """Seconds to wait before it is worth asking again; 0 when nobody said."""


class Thinker(Protocol):
    """Who decides for an agent."""

    @property
    def name(self) -> str:
        """`procedural`, `claude`, `recorded`."""

    @property
    def free(self) -> bool:
        """True when thinking costs neither money nor noticeable time, so that a paused agent may plan."""

    async def plan(self, request: PlanRequest) -> PlanProposal:
        """Propose steps for a goal; what it cannot plan it lists as uncovered.

        Cancelling the task that plans stops it at once.

        Raises:
            ThinkingError: it could not be asked, or did not answer.
        """
