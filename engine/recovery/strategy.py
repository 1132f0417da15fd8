"""Which strategy answers a failure.

Each kind has a ladder: strategies in order, with the tries allowed of each. The first rung with
tries left is taken, so that an untried strategy is always reached in the end and none is locked in
(mindX's fault, spec §2.7). The operator is the last rung, or the goal is aborted where nobody is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.domain.failure import FailureKind as Kind
from engine.domain.failure import Strategy
from engine.domain.ports import Randomness

RETRY_BASE_S = 1.0
"""Delay before the first retry; it doubles with each (spec master-loop §3.4: backoff 2^(k-1) s)."""
RETRY_CAP_S = 30.0
JITTER_S = (0.1, 0.5)

_LADDERS: dict[Kind, tuple[tuple[Strategy, int], ...]] = {
    Kind.TOOL_EXECUTION_ERROR: ((Strategy.RETRY_WITH_DELAY, 2),),
    Kind.NETWORK_ERROR: ((Strategy.RETRY_WITH_DELAY, 3),),
    Kind.RATE_LIMIT_ERROR: ((Strategy.RETRY_WITH_DELAY, 5),),
}
"""Kinds not listed go to the operator at once: repeating a refused or malformed call changes nothing."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy for one failure."""

    strategy: Strategy
    attempt: int
    of: int
    delay_s: float
    why: str


def choose(
    kind: Kind,
    tried: Sequence[Strategy],
    *,
    consecutive_errors: int,
    max_consecutive_errors: int,
    ask: bool,
    randomness: Randomness,
) -> Choice:
    """The next strategy for a failing step.

    Args:
        kind: what went wrong.
        tried: strategies already tried on this step, in order.
        consecutive_errors: failures in a row of the agent, this one included.
        max_consecutive_errors: from this many on, the operator decides.
        ask: False when nobody will answer.
        randomness: for the jitter of delays.
    """
    exhausted = consecutive_errors >= max_consecutive_errors
    for strategy, tries in () if exhausted else _LADDERS.get(kind, ()):
        done = tried.count(strategy)
        if done < tries:
            delay = min(RETRY_BASE_S * 2**done, RETRY_CAP_S) + randomness.uniform(*JITTER_S)
            return Choice(strategy, done + 1, tries, round(delay, 3), f"{kind} may pass")
    why = f"{consecutive_errors} failures in a row" if exhausted else f"no other way to recover from {kind}"
    if ask:
        return Choice(Strategy.FALLBACK_MANUAL, 1, 1, 0.0, why)
    return Choice(Strategy.ABORT_GRACEFULLY, 1, 1, 0.0, f"{why}, and nobody to ask")
