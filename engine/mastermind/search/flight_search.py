"""Looking for better thresholds and specifications: changes are flown on work tasks, the best on others."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.mastermind.search.flights import Errand, Landed, Opener, errands, fly

TASKS = 6
"""Work tasks, and choose tasks: one of each kind."""
MOST = 24
"""Candidates that are flown at most."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One set of values."""

    what: str
    text: str
    thresholds: str = ""
    config: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """A candidate that lost fewer points than what is there, on work and on choose tasks."""

    candidate: Candidate
    before: float
    """Points lost on the choose tasks."""
    after: float
    tried: int


async def best_flown(
    opener: Opener,
    now: Candidate,
    candidates: Iterable[Candidate],
    rng: random.Random,
    tell: Callable[[int, str], None] = lambda _done, _what: None,
) -> Chosen | None:
    """The candidate that does best, where one does better; None where none does.

    Args:
        opener: opens an engine on a scratch workspace.
        now: what is there.
        candidates: what may be better, in the order in which it is tried.
        rng: names the tasks.
        tell: told of each candidate before it is flown.
    """
    key = rng.getrandbits(64)
    work, choose = errands("work", key, TASKS), errands("choose", key, TASKS)
    lost = _lost(await _fly(opener, now, work))
    best: tuple[float, Candidate] | None = None
    tried = 0
    for candidate in candidates:
        if tried == MOST:
            break
        tell(tried, candidate.what)
        tried += 1
        points = _lost(await _fly(opener, candidate, work))
        if points < lost and (best is None or points < best[0]):
            best = (points, candidate)
    if best is None:
        return None
    before, after = _lost(await _fly(opener, now, choose)), _lost(await _fly(opener, best[1], choose))
    return Chosen(best[1], before, after, tried) if after < before else None


async def _fly(opener: Opener, one: Candidate, through: Sequence[Errand]) -> tuple[Landed, ...]:
    return await fly(opener, through, thresholds=one.thresholds, config=one.config)


def _lost(landed: Sequence[Landed]) -> float:
    return sum(one.cost for one in landed)
