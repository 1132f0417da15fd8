"""Costs of two trees, taken in alternating pairs, each tree in a box of its own in each round.

Time is the kernel's account of the process that answers, read from another process, with all that it started.
Work that is moved to the import counts, and so does work that continues after the answer was reported.

The interval of the mean difference is exact up to 14 pairs, for differences that are symmetric about their
mean: the means of all subsets are typical values of it (Hartigan 1969), so the k-th smallest and largest of
them enclose it with probability 1 - 2k/2^n. With more pairs it is Student's. Fewer than 6 pairs show nothing
at 95 %.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.core.improvement import Gain
from engine.core.offload import in_thread
from engine.improve.judge.box import BoxAnswer
from engine.improve.judge.changes import Cheat, Violation
from engine.improve.judge.questions import CheckResult, RoundResult, SuiteAsker
from engine.improve.ports import Check, Measure, Outcome
from engine.value import dataclass, field

FEWEST, EXACT = 6, 14
"""Pairs that are needed, and pairs up to which every subset is looked at."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The mean of paired differences with its interval."""

    mean: float
    low: float
    high: float
    pairs: int


def paired_interval(differences: Sequence[float], *, level: float = 0.95) -> Interval:
    """The mean of differences, each of one pair, with a two-sided interval.

    Args:
        differences: gains, above 0 is better; finite.
        level: probability that the interval contains the mean.

    Raises:
        ValueError: a difference is no finite number, or the level is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, not at {level}")
    if not all(math.isfinite(difference) for difference in differences):
        raise ValueError("differences have to be finite numbers")
    count = len(differences)
    mean = math.fsum(differences) / count if count else 0.0
    if count < FEWEST:
        return Interval(mean, -math.inf, math.inf, count)
    tail = (1 - level) / 2
    if count <= EXACT:
        means = _subset_means(differences)
        rank = int(tail * 2**count)
        if rank < 1:
            return Interval(mean, -math.inf, math.inf, count)
        return Interval(mean, means[rank - 1], means[-rank], count)
    spread = math.sqrt(
        math.fsum((difference - mean) ** 2 for difference in differences) / (count - 1) / count
    )
    reach = student_t(1 - tail, count - 1) * spread
    return Interval(mean, mean - reach, mean + reach, count)


def _subset_means(values: Sequence[float]) -> list[float]:
    """The means of all subsets but the empty one, in order."""
    sums = [(0.0, 0)]
    for value in values:
        sums += [(total + value, count + 1) for total, count in sums]
    return sorted(total / count for total, count in sums[1:])


def student_t(probability: float, freedom: int) -> float:
    """The value below which Student's t lies with a probability, for 14 degrees of freedom and more.

    Fisher's expansion around the normal quantile (Abramowitz and Stegun 26.7.5); right to four digits there.
    """
    z = statistics.NormalDist().inv_cdf(probability)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return math.fsum((z, *(term / float(freedom) ** power for power, term in enumerate(terms, 1))))


LEVEL, TWICE = 0.95, 0.975
"""Of an interval, and of one that is looked at twice: both looks together make up the first."""
_FAR = 5
"""Times the least gain that counts, above which a gain is believed after six rounds."""
_UNSEEN_S = 0.003
"""Ending a process takes about this; what its children took lies above."""
_HIDDEN_S, _HIDDEN_SHARE = 0.01, 0.3
"""By how much more, and by which share of the cost, work may continue after the answer."""


@dataclass(slots=True)
class PairedRounds:
    """Rounds of both trees."""

    before: list[RoundResult] = field(default_factory=list)
    after: list[RoundResult] = field(default_factory=list)
    level: float = LEVEL
    """Of the interval over rounds."""

    @property
    def processor_s(self) -> float:
        """What taking them cost."""
        return sum(results.processor_s for results in (*self.before, *self.after))


async def measure_pairs(
    asker: SuiteAsker,
    before: Path,
    after: Path,
    checks: Sequence[Check],
    material: Mapping[str, bytes],
    measure: Measure,
    *,
    seed: int,
    rounds: int,
    most: int,
    reference: RoundResult,
    processor_s: float,
) -> PairedRounds:
    """Ask both trees in turn, in new boxes in each round.

    Time is looked at after six rounds, where only what is far from undecided ends it; after `rounds`, and
    after `most` when it looks better by then and that is not shown. It ends early, after a whole round, when
    the processor seconds that it may take are used up.
    """
    most = max(rounds, most) if measure.timed else 1
    pairs = PairedRounds()
    for number in range(most):
        at = seed * 1000 + number
        old, new = await asker.pair((before, after), checks, material, seed=at, reference=reference)
        pairs.before.append(old)
        pairs.after.append(new)
        pairs.level = TWICE if most > rounds and number + 1 >= rounds else LEVEL
        if pairs.processor_s > processor_s:
            break
        if await in_thread(_decided, pairs, checks, measure, rounds, most):
            break
    return pairs


def _decided(pairs: PairedRounds, checks: Sequence[Check], measure: Measure, rounds: int, most: int) -> bool:
    """Whether more rounds would hardly change the result, or are not worth it."""
    taken = len(pairs.before)
    if taken not in (FEWEST, rounds) or taken >= most:
        return False
    gain = measured_gain(pairs, checks, measure)
    if gain is None:
        return True
    if taken == rounds:
        return gain.low > measure.least or gain.mean <= measure.least
    return gain.low > _FAR * measure.least > 0 or gain.high < measure.least


def measured_gain(pairs: PairedRounds, checks: Sequence[Check], measure: Measure) -> Gain | None:
    """The gain with its interval; None where some cost is not known.

    Each task is a pair (its median over the rounds), as other tasks may vary. With time each round is one,
    too (the sum over its tasks), as the machine slows all tasks of a box alike. The wider
    interval counts; with fewer than six tasks it is that of the rounds, and speaks of these tasks only.

    Raises:
        ValueError: one tree was asked in more rounds than the other.
    """
    if len(pairs.before) != len(pairs.after):
        counts = f"{len(pairs.before)} and {len(pairs.after)}"
        raise ValueError(f"costs are compared round by round, and the trees were asked in {counts} rounds")
    old = _costs(pairs.before, pairs.before, checks, measure)
    new = _costs(pairs.after, pairs.before, checks, measure)
    if not checks or old is None or new is None:
        return None
    tasks = [(statistics.median(old[check.id]), statistics.median(new[check.id])) for check in checks]
    # Column by column: what each round took over all tasks.
    rounds = list(zip(*(map(sum, zip(*side.values(), strict=True)) for side in (old, new)), strict=True))
    units = [(tasks, LEVEL)] if len(tasks) >= FEWEST or not measure.timed else []
    units += [(rounds, pairs.level)] if measure.timed else []
    intervals = [
        paired_interval(
            [100 * (was - now) / max(abs(was), 1e-9) if measure.timed else was - now for was, now in unit],
            level=level,
        )
        for unit, level in units
    ]
    return Gain(
        mean=intervals[-1].mean,
        low=min(interval.low for interval in intervals),
        high=max(interval.high for interval in intervals),
        pairs=intervals[-1].pairs,
        unit=measure.unit,
        before=statistics.fmean(was for was, _ in tasks),
        after=statistics.fmean(now for _, now in tasks),
    )


def _costs(
    rounds: Sequence[RoundResult], before: Sequence[RoundResult], checks: Sequence[Check], measure: Measure
) -> dict[str, list[float]] | None:
    """Costs by check, round by round; None where one is not known.

    The cost of importing and making ready is left out, but for work that is moved there: what it took in each
    round is more than in any round of the tree before. Its variation counts for neither.
    """
    costs: dict[str, list[float]] = {}
    for check in checks:
        was, now = (
            [seen.told.clocks["ready"] for seen in _seen(side, check) if "ready" in seen.told.clocks]
            for side in (before, rounds)
        )
        more = bool(was and now) and min(now) > max(was)
        moved = statistics.median(now) - statistics.median(was) if more else 0.0
        row = [seen.report.cost if not measure.timed else _time(seen, moved) for seen in _seen(rounds, check)]
        costs[check.id] = [cost for cost in row if cost is not None]
        if len(costs[check.id]) < len(rounds):
            return None
    return costs


def _seen(rounds: Sequence[RoundResult], check: Check) -> list[CheckResult]:
    return [results.seen[check.id] for results in rounds if check.id in results.seen]


def _time(seen: CheckResult, moved: float) -> float | None:
    answer = seen.told
    if seen.report.outcome is not Outcome.HOLDS or "done" not in answer.clocks:
        return None
    children = answer.processor_s - answer.clocks.get("end", answer.processor_s)
    return max(1e-6, answering_s(answer) + moved + (children if children > _UNSEEN_S else 0.0))


def answering_s(answer: BoxAnswer) -> float:
    """Processor seconds that the calls of a check took."""
    return answer.clocks.get("done", 0.0) - answer.clocks.get("ready", 0.0)


def hidden_work(pairs: PairedRounds, checks: Sequence[Check]) -> list[Violation]:
    """Work that continues after the answer was said to be there, more than with the tree before."""
    breaches = []
    for check in checks:
        old, new = (
            [seen.told for seen in _seen(rounds, check) if "done" in seen.told.clocks]
            for rounds in (pairs.before, pairs.after)
        )
        was, now = (
            [answer.clocks["end"] - answer.clocks["done"] for answer in side if "end" in answer.clocks]
            for side in (old, new)
        )
        if not was or not now:
            continue
        usual = statistics.median(map(answering_s, old))
        if min(now) - max(was) > max(_HIDDEN_S, _HIDDEN_SHARE * usual):
            spent = statistics.median(now) * 1000
            what = f"{check.id}: {spent:.0f} ms of work come after it said that it was done"
            breaches.append(Violation(Cheat.PATCH_CLOCK, what))
    return breaches
