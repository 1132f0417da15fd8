"""The sealed judge, plugged into Mastermind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

from engine.domain.improvement import Component, Proposal, Verdict
from engine.journal.store import DATA_DIRECTORY
from engine.mastermind.judge.box import BoxError
from engine.mastermind.judge.judge import Judge, JudgeBudget
from engine.mastermind.judge.suite import Suite as JudgesSuite
from engine.mastermind.mastermind import Mastermind
from engine.mastermind.parts import JobRefused, Suite
from engine.sandbox import SandboxPolicy

STORE = "judge"
"""The judge's own directory, in the workspace's data directory."""


class SealedComparer:
    """Judges candidates of campaigns; see `engine.mastermind.parts.Comparer`.

    Args:
        judge: its store lies below `<workspace>/.pilothouse/`, where no jail reaches.
        budget: what one judgement may cost, but for its processor time.
        policy: how programs are held now; None keeps the judge's.
    """

    def __init__(
        self,
        judge: Judge,
        budget: JudgeBudget | None = None,
        policy: Callable[[], SandboxPolicy] | None = None,
    ) -> None:
        self.judge, self.budget, self._policy = judge, budget or JudgeBudget(), policy

    def prepare(self) -> None:
        """Take up how programs are held now; see `engine.mastermind.parts.Preparing`."""
        if self._policy is not None:
            self.judge.hold_by(self._policy())

    async def compare(
        self,
        before: Path,
        after: Path,
        component: Component,
        proposal: Proposal,
        suite: Suite,
        *,
        seed: int,
        seconds: float,
        sealed: bool = True,
    ) -> Verdict:
        """The verdict on a candidate.

        Raises:
            JobRefused: nothing can be judged here; the message says what is missing.
        """
        budget = replace(self.budget, processor_s=seconds)
        try:
            asked = cast("JudgesSuite", suite)  # what campaigns hand on is what the rooms made for the judge
            return await self.judge.compare(
                before, after, component, proposal, asked, seed=seed, budget=budget, sealed=sealed
            )
        except BoxError as error:
            raise JobRefused(str(error)) from error


def register(mastermind: Mastermind) -> None:
    """Let the sealed judge judge campaigns."""
    house = mastermind.house

    def policy() -> SandboxPolicy:
        return house.sandbox().policy

    judge = Judge(house.workspace / DATA_DIRECTORY / STORE, policy())
    mastermind.plug(comparer=SealedComparer(judge, policy=policy))
