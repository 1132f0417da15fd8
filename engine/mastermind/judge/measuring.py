"""What a tree costs, taken in alternating pairs, each tree in a box of its own in each round.

Time is the kernel's account of the process that answers, read from another process, with all that it started.
Work that is moved to the import counts, and so does work that goes on after the answer was said to be there.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.domain.improvement import Gain
from engine.mastermind.judge.asking import Asker, Round
from engine.mastermind.judge.box import Told
from engine.mastermind.judge.cheats import Breach, Cheat
from engine.mastermind.judge.paired import FEWEST, paired
from engine.mastermind.judge.suite import Check, Measure, Measured, Outcome

LEVEL, TWICE = 0.95, 0.975
"""Of an interval, and of one that is looked at twice: both looks together make up the first."""
_FAR = 5
"""Times the least gain that counts, above which a gain is believed after six rounds."""
_UNSEEN_S = 0.003
"""Ending a process takes about this; what its children took lies above."""
_HIDDEN_S, _HIDDEN_SHARE = 0.01, 0.3
"""By how much more, and by which share of the cost, work may go on after the answer."""


@dataclass(slots=True)
class Pairs:
    """Rounds of both trees."""

    before: list[Round] = field(default_factory=list)
    after: list[Round] = field(default_factory=list)
    level: float = LEVEL
    """Of the interval over rounds."""

    @property
    def processor_s(self) -> float:
        """What taking them cost."""
        return sum(one.processor_s for one in (*self.before, *self.after))


async def pairs(
    asker: Asker,
    before: Path,
    after: Path,
    checks: Sequence[Check],
    material: Mapping[str, bytes],
    measure: Measure,
    *,
    seed: int,
    rounds: int,
    most: int,
    reference: Round,
    processor_s: float,
) -> Pairs:
    """Ask both trees in turn, in new boxes in each round.

    Time is looked at after six rounds, where only what is far from undecided ends it; after `rounds`, and
    after `most` when it looks better by then and that is not shown. It ends early, after a whole round, when
    the processor seconds that it may take are used up.
    """
    timed = measure.how is Measured.TIME
    most = max(rounds, most) if timed else 1
    found = Pairs()
    for number in range(most):
        old, new = await asker.pair(
            (before, after), checks, material, seed=seed * 1000 + number, reference=reference,
            steps=measure.how is Measured.STEPS,
        )  # fmt: skip
        found.before.append(old)
        found.after.append(new)
        found.level = TWICE if most > rounds and number + 1 >= rounds else LEVEL
        if found.processor_s > processor_s or _decided(found, checks, measure, rounds, most):
            break
    return found


def _decided(found: Pairs, checks: Sequence[Check], measure: Measure, rounds: int, most: int) -> bool:
    """Whether more rounds would hardly change what comes of it, or are not worth it."""
    taken = len(found.before)
    if taken not in (FEWEST, rounds) or taken >= most:
        return False
    gain = gain_of(found, checks, measure)
    if gain is None:
        return True
    if taken == rounds:
        return gain.low > measure.least or gain.mean <= measure.least
    return gain.low > _FAR * measure.least > 0 or gain.high < measure.least


def gain_of(found: Pairs, checks: Sequence[Check], measure: Measure) -> Gain | None:
    """The gain with its interval; None where some cost is not known.

    A task is a pair (its median over the rounds), for others may turn out otherwise. With time a round is
    one, too (the sum over its tasks), for what the machine does to a box it does to all tasks in it. The
    wider interval counts; with fewer than six tasks it is that of the rounds, and speaks of these tasks only.
    """
    costs = [_costs(rounds, found.before, checks, measure) for rounds in (found.before, found.after)]
    if not checks or any(cost is None for side in costs for one in side.values() for cost in one):
        return None
    old, new = ({name: [cost or 0.0 for cost in one] for name, one in side.items()} for side in costs)
    tasks = [(statistics.median(old[check.id]), statistics.median(new[check.id])) for check in checks]
    rounds = [
        (sum(one[number] for one in old.values()), sum(one[number] for one in new.values()))
        for number in range(len(found.before))
    ]
    timed = measure.how is Measured.TIME
    units = [(tasks, LEVEL)] if len(tasks) >= FEWEST or not timed else []
    units += [(rounds, found.level)] if timed else []
    intervals = [
        paired([_difference(was, now, measure) for was, now in one], level=level) for one, level in units
    ]
    return Gain(
        mean=intervals[-1].mean,
        low=min(one.low for one in intervals),
        high=max(one.high for one in intervals),
        pairs=intervals[-1].pairs,
        unit=measure.unit,
        before=statistics.fmean(was for was, _ in tasks),
        after=statistics.fmean(now for _, now in tasks),
    )


def _difference(was: float, now: float, measure: Measure) -> float:
    gain = was - now if measure.better == "less" else now - was
    if measure.relative or measure.how is Measured.TIME:
        return 100 * gain / max(abs(was), 1e-9)
    return gain


def _costs(
    rounds: Sequence[Round], before: Sequence[Round], checks: Sequence[Check], measure: Measure
) -> dict[str, list[float | None]]:
    """Costs by check, round by round.

    What importing and making ready takes is left out, but for what it takes more than with the tree before:
    work that is moved there counts, and how it varies by itself does not hide the rest.
    """
    found: dict[str, list[float | None]] = {}
    for check in checks:
        was, now = (
            [one for round_ in side if (one := _import(round_, check, measure)) is not None]
            for side in (before, rounds)
        )
        moved = max(0.0, statistics.median(now) - statistics.median(was)) if was and now else 0.0
        found[check.id] = [_cost(round_, check, measure, moved) for round_ in rounds]
    return found


def _import(done: Round, check: Check, measure: Measure) -> float | None:
    seen = done.seen.get(check.id)
    if seen is None or measure.how is Measured.REPORTED:
        return None
    stages: Mapping[str, float] = seen.told.steps if measure.how is Measured.STEPS else seen.told.clocks
    return stages.get("ready")


def _cost(done: Round, check: Check, measure: Measure, moved: float) -> float | None:
    seen = done.seen.get(check.id)
    if seen is None:
        return None
    if measure.how is Measured.REPORTED:
        return seen.report.cost
    if seen.report.outcome is not Outcome.HOLDS:
        return None
    told = seen.told
    if measure.how is Measured.STEPS:
        return max(1.0, _between(told.steps) + moved) if "done" in told.steps else None
    if "done" not in told.clocks:
        return None
    return max(1e-6, _between(told.clocks) + moved + _children(told))


def _between(stages: Mapping[str, float]) -> float:
    return stages["done"] - stages.get("ready", 0.0)


def _children(told: Told) -> float:
    """Processor seconds of what it started."""
    spent = told.processor_s - told.clocks.get("end", told.processor_s)
    return spent if spent > _UNSEEN_S else 0.0


def hidden(found: Pairs, checks: Sequence[Check]) -> list[Breach]:
    """Work that goes on after the answer was said to be there, more than with the tree before."""
    breaches = []
    for check in checks:
        old, new = (_after_done(rounds, check) for rounds in (found.before, found.after))
        costs = [
            seen.told.clocks["done"] - seen.told.clocks.get("ready", 0.0)
            for one in found.before
            if (seen := one.seen.get(check.id)) and "done" in seen.told.clocks
        ]
        if old is None or new is None or not costs:
            continue
        if new - old > max(_HIDDEN_S, _HIDDEN_SHARE * statistics.median(costs)):
            what = f"{check.id}: {new * 1000:.0f} ms of work come after it said that it was done"
            breaches.append(Breach(Cheat.PATCH_CLOCK, what))
    return breaches


def _after_done(rounds: Sequence[Round], check: Check) -> float | None:
    times = [
        seen.told.clocks["end"] - seen.told.clocks["done"]
        for one in rounds
        if (seen := one.seen.get(check.id)) and {"done", "end"} <= seen.told.clocks.keys()
    ]
    return statistics.median(times) if times else None
