"""Looking for a better plan library: one change after the other, kept where it saves steps.

Each round tries every neighbour on a few work worlds and the promising ones on more (successive halving); the
best goes on to the next round. What is found is confirmed on choose worlds before it is proposed at all. The
sealed worlds, on which it is judged, are drawn by somebody else.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import fmean, stdev

from engine.bdi.problems import ProgramError
from engine.bdi.syntax import Program
from engine.mastermind.search.plan_changes import Change, Library
from engine.mastermind.search.worlds import CYCLES, Flown, Split, Task, fly, fly_all, tasks

CLEAR = 1.0
"""Standard errors by which a change must be better on work worlds, to be built upon."""
CONFIRMED = 1.3
"""Standard errors by which the whole must be better on choose worlds, to be proposed."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is tried."""

    rounds: int = 3
    """Changes that may be made one upon the other."""
    worlds: tuple[int, ...] = (12, 48, 160)
    """Work worlds at each stage of a round, with those of the stages before."""
    kept: int = 6
    """Changes that go on to the second stage; half of these to the next."""
    choose: int = 240


@dataclass(frozen=True, slots=True)
class Better:
    """A library that did better in worlds that it was not made with."""

    text: str
    changes: tuple[str, ...]
    before: float
    """Mean cycles on the choose worlds."""
    after: float
    worlds: int
    tried: int
    """Candidates that were run."""

    @property
    def gain(self) -> float:
        """Part of the cycles that it saves."""
        return 1 - self.after / self.before


@dataclass(slots=True)
class _Runner:
    """A candidate as it is run through more and more worlds."""

    change: Change
    program: Program
    saved: list[int] = field(default_factory=list)
    """Cycles saved in each world so far."""

    @property
    def score(self) -> float:
        return fmean(self.saved)

    def clear(self, errors: float) -> bool:
        return _clear(self.saved, errors)


def look_for_better(
    text: str,
    rng: random.Random,
    effort: Effort | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Better | None:
    """The best library that was found beside this one, or None; blocking.

    Args:
        text: the library; equal texts and generators give equal answers.
        rng: names the work and choose worlds.
        effort: how much is tried.
        stopped: asked between two runs; once it holds, nothing more is looked for.

    Raises:
        ProgramError: the library cannot be read.
    """
    return _Search(text, rng, effort or Effort(), stopped).best()


def better_than(
    text: str, other: str, what: str, rng: random.Random, effort: Effort | None = None
) -> Better | None:
    """Another library, where it does better on choose worlds; None where it does not. Blocking.

    Raises:
        ProgramError: one of them cannot be read.
    """
    search = _Search(text, rng, effort or Effort(), lambda: False)
    return search.confirmed(Library(other), [what])


class _Search:
    def __init__(self, text: str, rng: random.Random, effort: Effort, stopped: Callable[[], bool]) -> None:
        self._library = Library(text)
        self._key = rng.getrandbits(64)
        self._effort = effort
        self._stopped = stopped
        self._tried = 0

    def best(self) -> Better | None:
        now, made = self._library, list[str]()
        seen = {self._library.text}
        for _ in range(self._effort.rounds):
            found = self._round(now, seen)
            if found is None:
                break
            now = Library(found.text)
            made.append(found.what)
        return self.confirmed(now, made) if made and not self._stopped() else None

    def _round(self, now: Library, seen: set[str]) -> Change | None:
        """The neighbour that saves most, where one saves anything for certain."""
        runners = self._neighbours(now, seen)
        flown: tuple[Flown, ...] = ()
        for stage, count in enumerate(self._effort.worlds):
            through = tasks(Split.WORK, self._key, count)
            flown += fly_all(now.program, through[len(flown) :])
            runners = [one for one in runners if self._run(one, through, flown)]
            runners.sort(key=lambda one: one.score, reverse=True)
            runners = runners[: max(1, self._effort.kept >> stage)]
            if not runners or self._stopped():
                return None
        best = runners[0]
        return best.change if best.clear(CLEAR) else None

    def _neighbours(self, now: Library, seen: set[str]) -> list[_Runner]:
        found = []
        for change in now.changes():
            if change.text not in seen:
                seen.add(change.text)
                try:
                    found.append(_Runner(change, Library(change.text).program))
                except ProgramError:
                    continue
        return found

    def _run(self, one: _Runner, through: Sequence[Task], flown: Sequence[Flown]) -> bool:
        """Run a candidate through the worlds that are new to it; whether it is still promising."""
        self._tried += not one.saved
        for task, now in list(zip(through, flown, strict=True))[len(one.saved) :]:
            if self._stopped():
                return False
            # Whoever needs thrice as long is lost, and need not be waited for.
            then = fly(one.program, task, min(CYCLES, 3 * now.cycles + 20))
            if now.reached and not then.reached:
                return False
            one.saved.append(now.cost - then.cost)
        return one.score > 0

    def confirmed(self, now: Library, made: list[str]) -> Better | None:
        """A library that does better on the choose worlds, and leads home wherever the first one does."""
        through = tasks(Split.CHOOSE, self._key, self._effort.choose)
        before, after = fly_all(self._library.program, through), fly_all(now.program, through)
        broke = any(old.reached and not new.reached for old, new in zip(before, after, strict=True))
        saved = [old.cost - new.cost for old, new in zip(before, after, strict=True)]
        if broke or not _clear(saved, CONFIRMED):
            return None
        means = fmean(one.cost for one in before), fmean(one.cost for one in after)
        return Better(now.text, tuple(made), *means, len(through), self._tried)


def _clear(saved: Sequence[int], errors: float) -> bool:
    """Whether a mean is above nothing by so many of its standard errors."""
    if len(saved) < 2:
        return False
    spread = stdev(saved) / sqrt(len(saved))
    return fmean(saved) > errors * spread
