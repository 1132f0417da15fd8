"""The judge as a part of Mastermind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from engine.domain.improvement import Component, Proposal, Verdict
from engine.mastermind.judge.box import BoxError
from engine.mastermind.judge.judge import Judge, JudgeBudget
from engine.mastermind.parts import JobRefused, Suite


class SealedComparer:
    """Judges candidates of campaigns; see `engine.mastermind.parts.Comparer`.

    Args:
        judge: its store lies below `<workspace>/.pilothouse/`, where no jail reaches.
        budget: what one judgement may cost, but for its processor time.
    """

    def __init__(self, judge: Judge, budget: JudgeBudget | None = None) -> None:
        self.judge, self.budget = judge, budget or JudgeBudget()

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
    ) -> Verdict:
        """The verdict on a candidate.

        Raises:
            JobRefused: nothing can be judged here; the message says what is missing.
        """
        budget = replace(self.budget, processor_s=seconds)
        try:
            return await self.judge.compare(
                before, after, component, proposal, suite.suite, seed=seed, budget=budget
            )
        except BoxError as error:
            raise JobRefused(str(error)) from error
