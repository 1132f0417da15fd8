"""Failures: one taxonomy for everything that can go wrong with an action or a plan."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FailureKind(StrEnum):
    """What can go wrong; `engine/recovery/taxonomy.py` says which names of others each stands for."""

    TOOL_UNAVAILABLE = "TOOL_UNAVAILABLE"
    TOOL_EXECUTION_ERROR = "TOOL_EXECUTION_ERROR"
    INVALID_PARAMETERS = "INVALID_PARAMETERS"
    RATE_LIMIT_ERROR = "RATE_LIMIT_ERROR"
    PERMISSION_ERROR = "PERMISSION_ERROR"
    NETWORK_ERROR = "NETWORK_ERROR"
    PLANNING_ERROR = "PLANNING_ERROR"
    GOAL_PARSE_ERROR = "GOAL_PARSE_ERROR"
    GOAL_MANAGEMENT_ERROR = "GOAL_MANAGEMENT_ERROR"
    DEPENDENCY_NOT_MET = "DEPENDENCY_NOT_MET"
    """What a step needs before it may start is not there: so far, this is its workspace snapshot."""
    CANCELLED = "CANCELLED"
    UNKNOWN_ERROR = "UNKNOWN_ERROR"


class Strategy(StrEnum):
    """The six recovery strategies of mindX (spec §2.7), and the master loop's (spec master-loop §3.10)."""

    RETRY_WITH_DELAY = "RETRY_WITH_DELAY"
    ALTERNATIVE_TOOL = "ALTERNATIVE_TOOL"
    SIMPLIFIED_APPROACH = "SIMPLIFIED_APPROACH"
    ESCALATE_TO_AGINT = "ESCALATE_TO_AGINT"
    FALLBACK_MANUAL = "FALLBACK_MANUAL"
    ABORT_GRACEFULLY = "ABORT_GRACEFULLY"
    DECIDE_ANEW = "DECIDE_ANEW"
    """The thinker, which decides step by step, is told what went wrong and goes on without the step."""


OF_GOALS = frozenset({Strategy.SIMPLIFIED_APPROACH, Strategy.ESCALATE_TO_AGINT})
"""Strategies that change a goal's plan and not one step; how often they were tried counts for the goal."""
UNTRIED_RATE = 0.5
"""Success rate of a strategy of which nothing is known yet (seed parameter processing)."""


def rate_key(kind: FailureKind, strategy: Strategy) -> str:
    """Under which name it is kept how a strategy did against a kind of failure: `KIND/STRATEGY`."""
    return f"{kind}/{strategy}"


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that went wrong, and what recovery does about it."""

    kind: FailureKind
    message: str
    goal: str = ""
    step: str = ""
    action: str = ""
    subject: str = ""
    """What failed, in a few words (`run pip install httpx`)."""
    strategy: Strategy | None = None
    attempt: int = 0
    of: int = 0
    delay_s: float = 0.0
    succeeded: bool | None = None
    """Whether the strategy worked; None while that is open."""
    resolved: bool = False
    event: str = ""
    """Reference of the event that recorded it."""

    def open_under(self, strategy: Strategy, *, goal: str, step: str) -> bool:
        """Whether this strategy answers it and the outcome is open.

        Args:
            strategy: what was chosen.
            goal: the goal concerned.
            step: the step concerned; where the strategy changes the goal's plan, any step of the goal is.
        """
        same = self.goal == goal if strategy in OF_GOALS else (self.goal, self.step) == (goal, step)
        return same and self.strategy is strategy and self.succeeded is None
