"""The kinds of failures: one taxonomy for mindX's nine failure types and the master loop's ten errors.

Each kind says which names of either it stands for, which strategies may answer it, and what to tell a
thinker that is to plan around it (seeds parameter processing and AML, "Error Types and Recovery
Strategies"; spec mindX §2.7, master-loop §3.12).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from engine.domain.failure import FailureKind as Kind
from engine.domain.failure import Strategy

_RETRY, _OTHER, _REPLAN, _ESCALATE = (
    Strategy.RETRY_WITH_DELAY,
    Strategy.ALTERNATIVE_TOOL,
    Strategy.SIMPLIFIED_APPROACH,
    Strategy.ESCALATE_TO_AGINT,
)


@dataclass(frozen=True, slots=True)
class KindOfFailure:
    """One kind of failure, under all its names."""

    kind: Kind
    mindx: str = ""
    """mindX's failure type; empty where it has none."""
    aml: tuple[str, ...] = ()
    """The master loop's names; several where it has one category under two names."""
    ladder: tuple[tuple[Strategy, int], ...] = ()
    """Strategies that may answer it, with the tries of each; below all ladders stands the operator."""
    advice: str = ""
    """What a thinker is told that plans around it."""


_ROWS = (
    KindOfFailure(
        Kind.TOOL_UNAVAILABLE,
        "TOOL_UNAVAILABLE",
        (),
        ((_OTHER, 1), (_REPLAN, 2), (_ESCALATE, 1)),
        "Use another tool or command that can do the same.",
    ),
    KindOfFailure(
        Kind.TOOL_EXECUTION_ERROR,
        "TOOL_EXECUTION_ERROR",
        ("ToolExecutionError", "ToolInternalError", "APIError"),
        ((_RETRY, 2), (_REPLAN, 2), (_ESCALATE, 1)),
        "Read what the program said: mend its cause first, or use other arguments or another command.",
    ),
    KindOfFailure(
        Kind.INVALID_PARAMETERS,
        "INVALID_PARAMETERS",
        ("InvalidInputError",),
        ((_OTHER, 1), (_REPLAN, 2), (_ESCALATE, 1)),
        "Check the arguments against the command's schema and against what is really there.",
    ),
    KindOfFailure(
        Kind.RATE_LIMIT_ERROR,
        "RATE_LIMIT_ERROR",
        ("APILimitError", "RateLimitError"),
        ((_RETRY, 5),),
        "Ask less often.",
    ),
    KindOfFailure(
        Kind.PERMISSION_ERROR,
        "PERMISSION_ERROR",
        (),
        ((_OTHER, 1),),
        "Do without what is refused; the policy cannot be changed.",
    ),
    KindOfFailure(
        Kind.NETWORK_ERROR,
        "NETWORK_ERROR",
        ("ServerUnavailable", "NetworkError", "TimeoutError", "RequestError"),
        ((_RETRY, 3), (_REPLAN, 2), (_ESCALATE, 1)),
        "Do without the service that cannot be reached.",
    ),
    KindOfFailure(
        Kind.PLANNING_ERROR,
        "PLANNING_ERROR",
        ("PlanUpdateError", "PlanValidationError", "LLMError", "LLMOutputError", "AgentError"),
        ((_REPLAN, 1), (_ESCALATE, 1)),
        "Put right what is wrong with the plan, its steps and what they wait for.",
    ),
    KindOfFailure(
        Kind.GOAL_PARSE_ERROR,
        "GOAL_PARSE_ERROR",
        (),
        ((_REPLAN, 1), (_ESCALATE, 1)),
        "Cover every part of the goal, or say what is missing.",
    ),
    KindOfFailure(Kind.GOAL_MANAGEMENT_ERROR, "", ("GoalManagementError",)),
    KindOfFailure(Kind.DEPENDENCY_NOT_MET, "", ("DependencyNotMetError",)),
    KindOfFailure(Kind.CANCELLED, "", ("CancelledError",)),
    KindOfFailure(
        Kind.UNKNOWN_ERROR,
        "UNKNOWN_ERROR",
        ("UnknownError", "UnexpectedExecutionError"),
        ((_REPLAN, 1), (_ESCALATE, 1)),
        "Choose simpler steps.",
    ),
)

TAXONOMY: Mapping[Kind, KindOfFailure] = MappingProxyType({row.kind: row for row in _ROWS})
"""Everything that is known of a kind of failure."""


def tries_of(kind: Kind, strategy: Strategy) -> int:
    """How often a strategy may be tried against a kind of failure; 0 when it is no answer to it."""
    return dict(TAXONOMY[kind].ladder).get(strategy, 0)
