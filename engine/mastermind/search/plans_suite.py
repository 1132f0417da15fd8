"""How a plan library is judged: in worlds that nobody has seen who made it.

AgentSpeak(L) plans have no way out of the world that they run in: no files, no processes, no clock. So they
are run by the judge itself, in worlds drawn from its own seed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.bdi.problems import ProgramError
from engine.bdi.syntax import Program
from engine.domain.improvement import Component
from engine.mastermind.judge.suite import Check, Measure, Outcome, Report, Split
from engine.mastermind.search.plan_changes import Library
from engine.mastermind.search.worlds import CYCLES, fly, tasks
from engine.mastermind.search.worlds import Split as Worlds

FORMAT = "explorer worlds 1"
"""Changes whenever the same seed would give other worlds, so that no old verdict is taken for a new one."""
SIZES = {Split.WORK: 20, Split.CHOOSE: 20, Split.SEALED: 300}
"""Worlds of each split; with 300 a tenth of the steps saved shows, where the ways stay the same much less."""


@dataclass(frozen=True, slots=True)
class PlansSuite:
    """A library is better when it leads home in fewer reasoning cycles, wherever the other one leads home."""

    component: Component
    seed: int
    """Of the campaign; the worlds follow from it."""

    @property
    def key(self) -> str:
        """Names everything that is asked."""
        said = f"{FORMAT}/{self.component.paths}/{self.seed}/{sorted(SIZES.items())}/{CYCLES}"
        return hashlib.sha256(said.encode()).hexdigest()

    @property
    def measure(self) -> Measure:
        """Cycles to the goal, in percent of those before."""
        return Measure("% of steps saved", "less", relative=True)

    def checks(self, split: Split) -> Sequence[Check]:
        """One check for each world."""
        return tuple(
            Check(
                f"{split} world {number + 1}",
                split,
                data=(split.value, number),
                measured=split is Split.SEALED,
            )
            for number in range(SIZES[split])
        )

    def owns(self, path: str) -> bool:
        """No file is the suite's: its worlds are in no file."""
        return False

    async def examine(self, tree: Path, check: Check, *, seed: int) -> Report:
        """Whether the library of a tree leads home in one world, and in how many cycles."""
        split, number = check.data
        return await asyncio.to_thread(self._examined, tree, check.id, Worlds(split), number)

    def _examined(self, tree: Path, check: str, split: Worlds, number: int) -> Report:
        try:
            library = read_library(tree, self.component)
        except (ProgramError, OSError, UnicodeDecodeError) as error:
            return Report(check, Outcome.FAILS, f"the library cannot be read: {error}", cost=float(CYCLES))
        (task,) = tasks(split, f"judge {self.seed}", 1, first=number)
        flown = fly(library, task)
        if flown.reached:
            return Report(check, Outcome.HOLDS, f"home in {flown.cycles} cycles", cost=float(flown.cycles))
        return Report(check, Outcome.FAILS, "home was not reached", cost=float(CYCLES))


_read: dict[str, Program] = {}


def read_library(tree: Path, component: Component) -> Program:
    """The library of a component in a tree; blocking.

    Raises:
        ProgramError: it cannot be read as a program.
        OSError: there is no such file.
        UnicodeDecodeError: it is no text.
    """
    text = (tree / component.paths[0]).read_text(encoding="utf-8")
    digest = hashlib.sha256(text.encode()).hexdigest()
    if digest not in _read:
        # Read for each of hundreds of worlds: two libraries, before and after, are compared at a time.
        while len(_read) > 3:
            del _read[next(iter(_read))]
        _read[digest] = Library(text, component.paths[0]).program
    return _read[digest]
