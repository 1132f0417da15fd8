"""Which strategy answers a failure.

Each kind has a ladder: strategies with the tries allowed of each (`taxonomy.py`). A strategy under way is
used up first. Then comes the one with the best success rate so far, in the ladder's order where rates are
equal. As each has few tries, an untried strategy is always reached in the end and none is locked in
(mindX's fault, spec §2.7). A strategy that was used up in vain rests for some ticks. Below all of them
stands the operator, or the goal is aborted where nobody is there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from engine.domain.failure import UNTRIED_RATE, Strategy, rate_key
from engine.domain.failure import FailureKind as Kind
from engine.domain.ports import Randomness
from engine.recovery.taxonomy import TAXONOMY, tries_of

RETRY_BASE_S = 1.0
"""Delay before the first retry; it doubles with each (spec master-loop §3.4: backoff 2^(k-1) s)."""
RETRY_CAP_S = 30.0
JITTER_S = (0.1, 0.5)
PATIENCE_S = 3_600.0
"""Longest wait that an endpoint may ask for; beyond it the operator decides."""
REST_TICKS = 10
"""Ticks for which a strategy that was used up in vain is not chosen for that kind."""

_RETRY_ONLY = frozenset({Strategy.RETRY_WITH_DELAY})
_WHY: Mapping[Strategy, str] = {
    Strategy.RETRY_WITH_DELAY: "{kind} may pass",
    Strategy.ALTERNATIVE_TOOL: "another call may do it",
    Strategy.SIMPLIFIED_APPROACH: "the rest of the goal is planned anew",
    Strategy.ESCALATE_TO_AGINT: "the goal above is to do without this one",
}


@dataclass(frozen=True, slots=True)
class Learned:
    """What an agent knows of its strategies at one tick."""

    rates: Mapping[str, float] = field(default_factory=dict)
    """`KIND/STRATEGY` to its success rate from 0 to 1."""
    resting: Mapping[str, int] = field(default_factory=dict)
    """`KIND/STRATEGY` to the tick until which it is not chosen."""
    tick: int = 0

    def rate(self, kind: Kind, strategy: Strategy) -> float:
        """The success rate so far, from 0 to 1."""
        return self.rates.get(rate_key(kind, strategy), UNTRIED_RATE)

    def rests(self, kind: Kind, strategy: Strategy) -> int:
        """The tick until which the strategy is not chosen; 0 when it may be."""
        until = self.resting.get(rate_key(kind, strategy), 0)
        return until if until > self.tick else 0


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
    able: Collection[Strategy] = _RETRY_ONLY,
    under_way: Strategy | None = None,
    learned: Learned | None = None,
    wait_s: float | None = None,
) -> Choice:
    """The next strategy for something that failed.

    Args:
        kind: what went wrong.
        tried: strategies already tried on this step and on its goal's plan.
        consecutive_errors: failures in a row of the agent, this one included.
        max_consecutive_errors: from this many on, the operator decides.
        ask: False when nobody will answer.
        randomness: for the jitter of delays.
        able: what can be done here at all.
        under_way: what was tried last on this very step or plan.
        learned: success rates and rests.
        wait_s: seconds that whoever failed asked to wait.
    """
    learned = learned or Learned()
    exhausted = consecutive_errors >= max_consecutive_errors
    left = [] if exhausted else [s for s in _left(kind, tried, wait_s) if s in able]
    ready = [strategy for strategy in left if not learned.rests(kind, strategy)]
    if ready:
        # `max` takes the first of equals, so the ladder's order decides between equal rates.
        chosen = under_way if under_way in ready else max(ready, key=lambda s: learned.rate(kind, s))
        done = tried.count(chosen)
        delay = 0.0
        if chosen is Strategy.RETRY_WITH_DELAY:
            delay = max(min(RETRY_BASE_S * 2**done, RETRY_CAP_S), wait_s or 0.0)
            delay = round(delay + randomness.uniform(*JITTER_S), 3)
        return Choice(chosen, done + 1, tries_of(kind, chosen), delay, _WHY[chosen].format(kind=kind))
    why = f"no other way to recover from {kind}"
    if exhausted:
        why = f"{consecutive_errors} failures in a row"
    elif left:
        why += f"; {left[0]} failed lately and rests until tick {learned.rests(kind, left[0])}"
    if ask:
        return Choice(Strategy.FALLBACK_MANUAL, 1, 1, 0.0, why)
    return Choice(Strategy.ABORT_GRACEFULLY, 1, 1, 0.0, f"{why}, and nobody to ask")


def _left(kind: Kind, tried: Sequence[Strategy], wait_s: float | None) -> list[Strategy]:
    """Strategies of the ladder with tries left; nobody waits longer than is bearable."""
    patient = wait_s is None or wait_s <= PATIENCE_S
    return [
        strategy
        for strategy, tries in TAXONOMY[kind].ladder
        if tried.count(strategy) < tries and (patient or strategy is not Strategy.RETRY_WITH_DELAY)
    ]
