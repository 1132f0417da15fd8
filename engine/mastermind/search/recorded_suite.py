"""How a plan library is looked for and judged that is not the explorer's: by its recorded goals, run again.

What a library leads to elsewhere than in its record nobody can say, so there has to be enough of it: goals
that the library as it is comes to the same end with as recorded, no two of them alike.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from engine.bdi.problems import ProgramError
from engine.domain.improvement import Component, Finding, Proposal
from engine.mastermind.judge.paired import FEWEST
from engine.mastermind.judge.suite import VISIBLE, Check, Measure, Outcome, Report, Split, divided
from engine.mastermind.parts import NotJudged
from engine.mastermind.search.components import beginning
from engine.mastermind.search.plan_changes import Library
from engine.mastermind.search.recorded_goals import Recording, Rerun, exact, rerun

FORMAT = "recorded goals 1"
LEAST = {Split.WORK: 2, Split.CHOOSE: 1, Split.SEALED: FEWEST}
"""Goals of each split that can be run again exactly; with fewer nothing can be shown."""
SHARES = {"work": 0.35, "choose": 0.15}
"""Of the goals; the rest is sealed. Which is which follows from the record alone, so that whoever looks for
a better library never works with a goal that it is judged by."""
LOST = 1_000.0
"""Cycles that a goal counts which does not come to its end within the record."""
PROPOSED = 3


def recordings_of(
    component: Component, texts: Collection[str], recordings: Sequence[Recording]
) -> list[Recording]:
    """Those of agents that were created with a library: with one of its texts, or from its file."""
    name = PurePosixPath(component.paths[0]).name
    return [
        one
        for one in recordings
        if not one.meta.get("world")
        and (one.meta.get("program") in texts or PurePosixPath(str(one.meta.get("source", ""))).name == name)
    ]


@dataclass
class RecordedSuite:
    """A library is better when recorded goals come to the same end in fewer cycles, with the same deeds."""

    component: Component
    recordings: tuple[Recording, ...]
    goals: dict[Split, tuple[str, ...]]
    """The events by which goals were adopted."""
    _done: dict[str, dict[str, Rerun] | str] = field(default_factory=dict)
    """What came of a library, by the hash of its text; in words why nothing did."""

    @classmethod
    def of(
        cls, component: Component, tree: Path, recordings: Sequence[Recording], texts: Collection[str] = ()
    ) -> RecordedSuite:
        """The suite for a library as it is; blocking.

        Args:
            component: the library.
            tree: stands for the workspace's directory.
            recordings: of all agents.
            texts: how the library reads elsewhere, as in the workspace itself.

        Raises:
            NotJudged: there is not enough of it in the record.
            ProgramError: the library cannot be read.
        """
        text = beginning(component, tree)[component.paths[0]]
        mine = recordings_of(component, {text, *texts}, recordings)
        known, why = exact(mine, text)
        every = sorted(goal.ref for one in mine for goal in one.goals)
        goals = {
            split: tuple(ref for ref in refs if ref in known)
            for split, refs in divided(every, 0, **SHARES).items()
        }
        if any(len(goals[split]) < least for split, least in LEAST.items()):
            raise NotJudged(_lacking(component.paths[0], len(mine), len(known), why))
        return cls(component, tuple(mine), goals)

    @property
    def key(self) -> str:
        """Names everything that is asked."""
        heads = [[one.agent, one.created.hash, len(one.goals)] for one in self.recordings]
        goals = {str(split): refs for split, refs in self.goals.items()}
        return hashlib.sha256(json.dumps([FORMAT, heads, goals, LOST], sort_keys=True).encode()).hexdigest()

    @property
    def measure(self) -> Measure:
        """Cycles to the end of a goal."""
        return Measure("reasoning cycles saved", "less")

    def checks(self, split: Split) -> Sequence[Check]:
        """One check for each goal."""
        texts = {goal.ref: goal.text for one in self.recordings for goal in one.goals}
        return tuple(
            Check(f"{split} {ref}: {texts[ref]}", split, data=ref, measured=True) for ref in self.goals[split]
        )

    def owns(self, path: str) -> bool:
        """No file is the suite's."""
        return False

    async def examine(self, tree: Path, check: Check, *, seed: int) -> Report:
        """What comes of a recorded goal with the library of a tree."""
        return await asyncio.to_thread(self._examined, tree, check)

    def _examined(self, tree: Path, check: Check) -> Report:
        try:
            done = self.done(beginning(self.component, tree)[self.component.paths[0]])
        except (OSError, ValueError) as error:
            done = str(error)
        if isinstance(done, str):
            return Report(check.id, Outcome.FAILS, f"the library cannot be read: {done}", cost=LOST)
        one = done.get(check.data)
        if one is None or one.left:
            why = one.left if one is not None else "a goal before it left the record"
            return Report(check.id, Outcome.FAILS, why, cost=LOST)
        outcome = Outcome.HOLDS if one.achieved else Outcome.FAILS
        return Report(check.id, outcome, f"{one.cycles} cycles", cost=float(one.cycles))

    def done(self, text: str) -> dict[str, Rerun] | str:
        """What comes of each goal with a library, or why it cannot be read; blocking."""
        name = hashlib.sha256(text.encode()).hexdigest()
        if name not in self._done:
            try:
                self._done[name] = {one.ref: one for each in self.recordings for one in rerun(each, text)}
            except ProgramError as error:
                self._done[name] = str(error)
        return self._done[name]

    def cost(self, text: str, refs: Sequence[str]) -> float:
        """Cycles of goals with a library; endless where one of them is not achieved; blocking."""
        done = self.done(text)
        if isinstance(done, str):
            return math.inf
        found = [done.get(ref) for ref in refs]
        held = [one for one in found if one is not None and one.achieved and not one.left]
        return float(sum(one.cycles for one in held)) if len(held) == len(refs) else math.inf


def look_for_better(
    suite: RecordedSuite,
    text: str,
    answers: tuple[Finding, ...],
    rng: random.Random,
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[Proposal, ...]:
    """Changes of a library that save cycles on work goals and cost none on choose goals; blocking.

    Raises:
        ProgramError: the library cannot be read.
    """
    now = suite.done(text)
    if isinstance(now, str):
        return ()
    refs = {split: [ref for ref in suite.goals[split] if now[ref].achieved] for split in VISIBLE}
    before = {split: suite.cost(text, refs[split]) for split in VISIBLE}
    changes = list(Library(text).changes())
    rng.shuffle(changes)
    better = []
    for change in changes:
        if cancelled():
            return ()
        after = {split: suite.cost(change.text, refs[split]) for split in VISIBLE}
        if after[Split.WORK] < before[Split.WORK] and after[Split.CHOOSE] <= before[Split.CHOOSE]:
            better.append((after[Split.WORK], change))
    better.sort(key=lambda one: one[0])
    return tuple(
        Proposal(
            change.what,
            "search:plans",
            {suite.component.paths[0]: change.text},
            why=f"of {len(changes)} changes; on work goals {before[Split.WORK]:g} cycles, then {cost:g}",
            answers=answers,
        )
        for cost, change in better[:PROPOSED]
    )


def _lacking(path: str, agents: int, goals: int, why: Sequence[str]) -> str:
    """What is missing, in a sentence."""
    if not agents:
        return f"no recorded run with {path}: let agents that were created with it pursue goals first"
    passed = f"; passed over: {'; '.join(why[:3])}" if why else ""
    return (
        f"{path} has {goals} recorded goals, no two alike, that can be run again exactly; about "
        f"{2 * FEWEST + 2} are needed{passed}"
    )
