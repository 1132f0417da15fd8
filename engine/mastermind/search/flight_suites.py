"""How thresholds and agents' specifications are judged: by small tasks that nobody has seen who chose them.

A candidate is data that is checked at the border; what agents run for it is run by the engine, in its
jail and in a scratch workspace. All tasks of a split are flown in one go and kept, as opening a workspace
costs more than a task.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.domain.improvement import Component, ComponentKind
from engine.mastermind.judge.suite import Check, Measure, Outcome, Report, Split
from engine.mastermind.search.agent_specs import SpecError, loosened, read_spec
from engine.mastermind.search.components import AGENT_PREFIX, beginning
from engine.mastermind.search.flights import LOST, Errand, Landed, Opener, errands, fly
from engine.parameters.thresholds import read_thresholds

FORMAT = "small tasks 1"
SIZES = {Split.WORK: 6, Split.CHOOSE: 6, Split.SEALED: 18}
UNIT = f"points (an action 1, a goal not achieved {LOST})"


@dataclass(frozen=True, slots=True)
class FlightSuite:
    """A candidate is better when it achieves more goals, or the same with fewer actions."""

    component: Component
    """Thresholds, or an agent's specification."""
    seed: int
    """Of the campaign; the tasks follow from it."""
    opener: Opener
    before: Mapping[str, Any] = field(default_factory=dict)
    """An agent's configuration before, which no candidate may loosen."""
    _flown: dict[tuple[str, Split], asyncio.Task[tuple[Landed, ...]]] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Names everything that is asked."""
        rules = json.dumps(self.before, sort_keys=True)
        said = f"{FORMAT}/{self.component.id}/{self.seed}/{sorted(SIZES.items())}/{LOST}/{rules}"
        return hashlib.sha256(said.encode()).hexdigest()

    @property
    def measure(self) -> Measure:
        """Points lost on the way."""
        return Measure(UNIT, "less")

    def checks(self, split: Split) -> Sequence[Check]:
        """One check for each task; whether a candidate can be used and loosens nothing is one more."""
        found = [
            Check(f"{split} {number + 1}: {errand.name}", split, data=number, measured=True)
            for number, errand in enumerate(self._errands(split))
        ]
        if split is Split.WORK:
            found.append(Check("loosens nothing", split, data="rules"))
        return tuple(found)

    def owns(self, path: str) -> bool:
        """No file is the suite's."""
        return False

    async def examine(self, tree: Path, check: Check, *, seed: int) -> Report:
        """What comes of a task with the candidate of a tree."""
        try:
            text = await asyncio.to_thread(self._text, tree)
            thresholds, config = self._candidate(text)
        except (OSError, ValueError) as error:
            return Report(check.id, Outcome.FAILS, str(error), cost=float(LOST))
        if check.data == "rules":
            return Report(check.id, Outcome.HOLDS)
        landed = (await self._landed(text, check.split, thresholds, config))[check.data]
        outcome = Outcome.HOLDS if landed.achieved else Outcome.FAILS
        return Report(check.id, outcome, landed.why or f"{landed.actions} actions", cost=landed.cost)

    def _errands(self, split: Split) -> tuple[Errand, ...]:
        return errands(split.value, f"judge {self.seed}", SIZES[split])

    def _text(self, tree: Path) -> str:
        created = {"type": "bdi_agent", "meta": dict(self.before)}
        return beginning(self.component, tree, created)[self.component.paths[0]]

    def _candidate(self, text: str) -> tuple[str, dict[str, Any]]:
        if self.component.kind is ComponentKind.THRESHOLDS:
            read_thresholds(text)
            return text, {}
        spec = read_spec(text, self.component.id.removeprefix(AGENT_PREFIX))
        if spec["type"] != "bdi_agent":
            raise SpecError("an agent with a program is judged by its plan library")
        if wrong := loosened(self.before, spec["config"]):
            raise SpecError(wrong)
        return "", in_scratch(spec["config"])

    async def _landed(
        self, text: str, split: Split, thresholds: str, config: dict[str, Any]
    ) -> tuple[Landed, ...]:
        name = (hashlib.sha256(text.encode()).hexdigest(), split)
        if name not in self._flown:
            flight = fly(self.opener, self._errands(split), thresholds=thresholds, config=config)
            self._flown[name] = asyncio.create_task(flight, name=f"flight {split}")
        try:
            return await self._flown[name]
        except BaseException:
            # One that was cut off says nothing of those that are asked later.
            self._flown.pop(name, None)
            raise


def in_scratch(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as it is flown: without what has a meaning in its own workspace only."""
    left_out = {"parent", "budget", "approvals", "thinker", "style"}
    return {name: value for name, value in config.items() if name not in left_out}
