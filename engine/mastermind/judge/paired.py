"""Paired comparisons: how sure a mean difference is, in plain Python.

Up to 14 pairs the interval is exact for differences that are symmetric about their mean: the means of all
subsets are typical values of it (Hartigan 1969), so the k-th smallest and largest of them enclose it with
probability 1 - 2k/2^n. With more pairs it is Student's. Fewer than 6 pairs show nothing at 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

FEWEST, EXACT = 6, 14
"""Pairs that are needed, and pairs up to which every subset is looked at."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The mean of paired differences with its interval."""

    mean: float
    low: float
    high: float
    pairs: int


def paired(differences: Sequence[float], *, level: float = 0.95) -> Interval:
    """The mean of differences, each of one pair, with a two-sided interval.

    Args:
        differences: gains, above 0 is better; finite.
        level: probability that the interval has the mean in it.

    Raises:
        ValueError: a difference is no finite number, or the level is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, not at {level}")
    if not all(math.isfinite(one) for one in differences):
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
    spread = math.sqrt(math.fsum((one - mean) ** 2 for one in differences) / (count - 1) / count)
    reach = student(1 - tail, count - 1) * spread
    return Interval(mean, mean - reach, mean + reach, count)


def _subset_means(values: Sequence[float]) -> list[float]:
    """The means of all subsets but the empty one, in order."""
    sums = [(0.0, 0)]
    for value in values:
        sums += [(total + value, count + 1) for total, count in sums]
    return sorted(total / count for total, count in sums[1:])


def student(probability: float, freedom: int) -> float:
    """The value below which Student's t lies with a probability above one half."""
    low, high = 0.0, 1.0
    while _t_below(high, freedom) < probability:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_below(middle, freedom) < probability else (low, middle)
    return high


def _t_below(t: float, freedom: int) -> float:
    """The probability that Student's t lies below a value that is not negative."""
    return 1 - 0.5 * _beta(freedom / (freedom + t * t), freedom / 2, 0.5)


def _beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(1 - x, b, a)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    return front * _fraction(x, a, b) / a


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's way."""
    tiny = 1e-300
    c, d = 1.0, 1 / max(1 - (a + b) * x / (a + 1), tiny)
    found = d
    for m in range(1, 300):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / (1 + term * d or tiny)
            c = 1 + term / c or tiny
            found *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return found
