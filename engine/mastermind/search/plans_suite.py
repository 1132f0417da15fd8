"""How a plan library is judged: in worlds that nobody has seen who made it.

AgentSpeak(L) plans have no way out of the world that they run in: no files, no processes, no clock. So they
are run by the judge itself, in worlds drawn from its own seed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.bdi.parser import parse_program
from engine.bdi.problems import ProgramError
from engine.bdi.syntax import Program
from engine.domain.improvement import Component
from engine.mastermind.judge.suite import Check, Measure, Outcome, Report, Split
from engine.mastermind.search.components import beginning
from engine.mastermind.search.worlds import COUNTED, Flown, fly, tasks
from engine.mastermind.search.worlds import Split as Worlds

FORMAT = "explorer worlds 1"
"""Changes whenever the same seed would give other worlds, so that no old verdict is taken for a new one."""
SIZES = {Split.WORK: 40, Split.CHOOSE: 160, Split.SEALED: 400}
"""Worlds of each split; with 400 a tenth of the steps saved shows, where the ways stay the same much less."""


@dataclass(frozen=True, slots=True)
class PlansSuite:
    """A library is better when it leads home in fewer reasoning cycles, wherever the other one leads home."""

    component: Component
    seed: int
    """Of the campaign; the worlds follow from it."""
    _libraries: dict[str, Program] = field(default_factory=dict)
    """What was read, by the hash of its text."""
    _flown: dict[tuple[str, str], Flown] = field(default_factory=dict)
    """What came of it: the same each time, so asked twice it is run once."""

    @property
    def key(self) -> str:
        """Names everything that is asked."""
        said = f"{FORMAT}/{self.component.paths}/{self.seed}/{sorted(SIZES.items())}/{COUNTED}"
        return hashlib.sha256(said.encode()).hexdigest()

    @property
    def measure(self) -> Measure:
        """Cycles to the goal."""
        return Measure("reasoning cycles saved", "less")

    def checks(self, split: Split) -> Sequence[Check]:
        """One check for each world."""
        return tuple(
            Check(f"{split} world {number + 1}", split, data=(split.value, number), measured=True)
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
            text = beginning(self.component, tree)[self.component.paths[0]]
            name = hashlib.sha256(text.encode()).hexdigest()
            if name not in self._libraries:
                self._libraries[name] = parse_program(text, self.component.paths[0])
        except (ProgramError, OSError, ValueError) as error:
            return Report(check, Outcome.FAILS, f"the library cannot be read: {error}", cost=float(COUNTED))
        if (name, check) not in self._flown:
            (task,) = tasks(split, f"judge {self.seed}", 1, first=number)
            self._flown[name, check] = fly(self._libraries[name], task)
        flown = self._flown[name, check]
        if flown.reached:
            return Report(check, Outcome.HOLDS, f"home in {flown.cycles} cycles", cost=float(flown.cost))
        return Report(check, Outcome.FAILS, "home was not reached", cost=float(COUNTED))
