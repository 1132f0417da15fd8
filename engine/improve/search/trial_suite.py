"""Judges thresholds, specifications and words that guide a model by tasks that agents do with them.

All tasks of a split run together and are kept, as opening a workspace costs more than a task. Models do not
answer alike each time, so a task that failed is tried twice, and the judge has the tasks done again before it
believes that something was mended. Each style of thinking is tried with its own words alone, so where a
candidate leaves them as they are nothing can differ by chance.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from engine.agent.settings import FILE, read_thresholds
from engine.core.budgets import SpendingLimits
from engine.core.improvement import Component, ComponentKind
from engine.improve.ports import ASKED_AGAIN, Check, Measure, NotJudged, Outcome, Report, Split, Suite
from engine.improve.search.settings import (
    AGENT_PREFIX,
    DEFAULTS,
    neighbours,
    read_config,
    spec_text,
    thresholds_text,
)
from engine.improve.search.trials import (
    MODEL_TASKS,
    RECIPE_TASKS,
    Opener,
    Setup,
    Task,
    TaskKind,
    TaskResult,
    drawn_tasks,
    run_tasks,
)
from engine.models.prompt_parts import DECIDING, PLANNING, checked, path_of
from engine.planning.thinkers import CLAUDE, PROCEDURAL
from engine.value import dataclass, field, replace

FORMAT = "small tasks 2"
_FAILED = {False: 20.0, True: 50.0}
"""Points that a task counts which was not achieved, without and with a model; an action counts one, and so do
1,000 tokens."""
_STYLES = {PLANNING: "plan", DECIDING: "decide"}
_LEFT_OUT = frozenset({"parent", "budget", "approvals", "thinker", "style"})
"""Settings of an agent that have a meaning in its own workspace only."""
TRIES = 24
"""Changes of one value that are tried at most."""
_SHORT = "what the campaign may spend on models does not last until it is judged; give it more, as --usd 5"
NO_MODEL = "words for a model can only be judged with one, and there is none here: see models"
UNPAID = (
    "it is judged by asking the model, and this campaign may spend nothing: add --usd 5 or --tokens 400000"
)


class Tried(Protocol):
    """How components of one kind are tried."""

    groups: tuple[str, ...]
    """What is tried apart."""
    sizes: Mapping[Split, int]
    """Tasks of each group."""
    kinds: Sequence[TaskKind]
    asks: bool
    """Whether a model does the tasks."""

    def text(self, tree: Path, group: str) -> str:
        """What a group has in a tree, or what stands for it where there is no file; blocking.

        Raises:
            OSError: it cannot be read.
            ValueError: it cannot be used.
        """

    def setup(self, text: str, group: str) -> Setup:
        """How agents are set up with a text.

        Raises:
            ValueError: it cannot be used; the message says why.
        """

    def near(self, text: str, rng: random.Random) -> Iterator[tuple[str, str]]:
        """Changes of one value: in words, and the whole text."""


class _BySettings:
    """What is tried by recipes alone, with one file."""

    groups: tuple[str, ...] = ("",)
    sizes: Mapping[Split, int] = {Split.WORK: 6, Split.CHOOSE: 6, Split.SEALED: 18}
    kinds: Sequence[TaskKind] = RECIPE_TASKS
    asks = False

    def __init__(self, path: str, usual: str) -> None:
        self._path, self.usual = path, usual

    def text(self, tree: Path, _group: str) -> str:
        """The file's text; see `Tried`."""
        file = tree / self._path
        return file.read_text(encoding="utf-8") if file.exists() else self.usual


class TriedThresholds(_BySettings):
    """Thresholds, which agents are created above."""

    def setup(self, text: str, _group: str) -> Setup:
        """The scratch workspace has the file; see `Tried`."""
        read_thresholds(text)
        return Setup({FILE: text}, {"thinker": PROCEDURAL})

    def near(self, text: str, rng: random.Random) -> Iterator[tuple[str, str]]:
        """One threshold changed; see `Tried`."""
        for what, tables in neighbours(read_thresholds(text), rng):
            yield what, thresholds_text(tables)


class TriedSpec(_BySettings):
    """The specification of an agent that plans by recipes or a model.

    Args:
        path: its file.
        agent: the agent's id.
        created: what it was created with: `type`, `description` and `meta`.
    """

    def __init__(self, path: str, agent: str, created: Mapping[str, Any]) -> None:
        super().__init__(path, spec_text(agent, created))
        self._agent, self._created = agent, created

    def setup(self, text: str, _group: str) -> Setup:
        """Agents are created with its configuration; see `Tried`."""
        config = read_config(text, self._agent, self._created)
        kept = {name: value for name, value in config.items() if name not in _LEFT_OUT}
        return Setup({}, {**kept, "thinker": PROCEDURAL})

    def near(self, text: str, rng: random.Random) -> Iterator[tuple[str, str]]:
        """One value of its configuration changed; see `Tried`."""
        config = read_config(text, self._agent, self._created)
        for what, changed in neighbours(config, rng):
            yield what, spec_text(self._agent, {**self._created, "meta": changed})


class TriedWords:
    """Words that guide a model, each style of thinking with its own."""

    groups: tuple[str, ...] = (PLANNING, DECIDING)
    sizes: Mapping[Split, int] = {Split.WORK: 3, Split.CHOOSE: 3, Split.SEALED: 10}
    kinds: Sequence[TaskKind] = MODEL_TASKS
    asks = True

    def text(self, tree: Path, group: str) -> str:
        """A part's words, empty where the built-in ones stand; see `Tried`."""
        file = tree / path_of(group)
        return checked(group, file.read_text(encoding="utf-8")) if file.exists() else ""

    def setup(self, text: str, group: str) -> Setup:
        """The scratch workspace has these words; see `Tried`."""
        return Setup({path_of(group): text} if text else {}, {"style": _STYLES[group], "thinker": CLAUDE})

    def near(self, _text: str, _rng: random.Random) -> Iterator[tuple[str, str]]:
        """None: words are a model's to propose."""
        yield from ()


@dataclass(slots=True)
class TrialSuite(Suite):
    """A candidate is better when more tasks are achieved, or the same with fewer actions and tokens."""

    component: Component
    seed: int
    """Of the campaign; the tasks follow from it."""
    opener: Opener
    tried: Tried
    model: str = ""
    """Its name where one does the tasks: another one makes other things of the same words."""
    limits: SpendingLimits = field(default_factory=SpendingLimits)
    """What models may take from now on."""
    usd: float = 0.0
    tokens: int = 0
    """What they took."""
    _done: dict[tuple[str, str, Split, int], asyncio.Task[list[TaskResult]]] = field(default_factory=dict)
    """By the text, its group, the split and how often it was asked again."""

    @property
    def key(self) -> str:
        """Names everything that is asked."""
        sizes = {split.value: count for split, count in self.tried.sizes.items()}
        usual = getattr(self.tried, "usual", "")
        key = json.dumps([FORMAT, self.component.id, self.model, self.seed, sizes, usual], sort_keys=True)
        return hashlib.sha256(key.encode()).hexdigest()

    @property
    def measure(self) -> Measure:
        """Points lost on the way."""
        lost = _FAILED[self.tried.asks]
        return Measure(f"points (an action 1, 1,000 tokens 1, a task not achieved {lost:g})")

    @property
    def pays(self) -> bool:
        """Whether judging takes money or tokens."""
        return self.tried.asks

    def checks(self, split: Split) -> Sequence[Check]:
        """One check for each task of each group."""
        checks = []
        for group in self.tried.groups:
            of = f"{split} {_STYLES[group]}" if group else split
            for number, task in enumerate(self._tasks(split, group)):
                name = f"{of} {number + 1}: {task.name}"
                checks.append(Check(name, split, data=(group, number), measured=True))
        return checks

    async def examine(self, tree: Path, check: Check, *, seed: int) -> Report:
        """What comes of a task with the candidate in a tree.

        Raises:
            NotJudged: the model could not be asked, or the budget does not last.
        """
        group, number = check.data
        lost = _FAILED[self.tried.asks]
        try:
            text = await asyncio.to_thread(self.tried.text, tree, group)
            setup = self.tried.setup(text, group)
        except (OSError, ValueError) as error:
            return Report(check.id, Outcome.FAILS, str(error), cost=lost)
        again, rest = divmod(seed - self.seed, ASKED_AGAIN)
        result = (await self._results(text, setup, group, check.split, 0 if rest else again))[number]
        cost = result.actions + result.tokens / 1_000 + (0.0 if result.achieved else lost)
        outcome = Outcome.HOLDS if result.achieved else Outcome.FAILS
        return Report(check.id, outcome, result.why or f"{result.actions} actions", cost=cost)

    def _tasks(self, split: Split, group: str) -> list[Task]:
        return drawn_tasks(self.tried.kinds, f"{split}/{group} {self.seed}", self.tried.sizes[split])

    async def _results(
        self, text: str, setup: Setup, group: str, split: Split, again: int
    ) -> list[TaskResult]:
        # Without a model the same comes out each time.
        key = (text, group, split, again if self.tried.asks else 0)
        if key not in self._done:
            trial = self._run(setup, self._tasks(split, group))
            self._done[key] = asyncio.create_task(trial, name=f"trial {split}")
        try:
            return await self._done[key]
        except BaseException:
            # One that was cut off or could not be paid says nothing of those that are asked later.
            self._done.pop(key).cancel()
            raise

    async def _run(self, setup: Setup, tasks: list[Task]) -> list[TaskResult]:
        """All tasks once; those that a model failed in once more, and what both took counts."""
        if not self.tried.asks:
            return await run_tasks(self.opener, tasks, setup)
        results = await self._asked(setup, tasks)
        failed = [number for number, result in enumerate(results) if not result.achieved]
        again = await self._asked(setup, [tasks[number] for number in failed]) if failed else []
        for number, result in zip(failed, again, strict=True):
            actions, tokens = results[number].actions + result.actions, results[number].tokens + result.tokens
            results[number] = replace(result, actions=actions, tokens=tokens)
        return results

    async def _asked(self, setup: Setup, tasks: Sequence[Task]) -> list[TaskResult]:
        limits = self.limits
        if (limits.usd or 0) <= 0 and (limits.tokens or 0) <= 0:
            raise NotJudged(_SHORT)
        results = await run_tasks(self.opener, tasks, setup, limits)
        usd, tokens = sum(result.usd for result in results), sum(result.tokens for result in results)
        self.usd, self.tokens = self.usd + usd, self.tokens + tokens
        self.limits = SpendingLimits(usd=_less(limits.usd, usd), tokens=_less(limits.tokens, tokens))
        if why := next((each.unasked for each in results if each.unasked and not each.achieved), ""):
            raise NotJudged(f"{self.model} could not be asked: {why}")
        return results


def _less(limit: Any, spent: Any) -> Any:
    return None if limit is None else max(0, limit - spent)


async def best_change(suite: TrialSuite, tree: Path, rng: random.Random) -> tuple[str, str, str] | None:
    """The change of one value that loses fewest points, and fewer than there are lost now; None for none.

    It does better on work tasks and on others, all of them drawn by `rng`.

    Returns:
        The change in words, the whole new text, and why it is proposed.

    Raises:
        OSError: the text cannot be read.
        ValueError: it cannot be used.
    """
    tried, key = suite.tried, rng.getrandbits(64)
    now = await asyncio.to_thread(tried.text, tree, "")
    tasks = {
        split: drawn_tasks(tried.kinds, f"{split}/search {key}", tried.sizes[split])
        for split in (Split.WORK, Split.CHOOSE)
    }

    async def lost(text: str, split: Split) -> float:
        results = await run_tasks(suite.opener, tasks[split], tried.setup(text, ""))
        return sum(result.actions + (0 if result.achieved else _FAILED[False]) for result in results)

    least, best, changes = (
        await lost(now, Split.WORK),
        ("", ""),
        [*itertools.islice(tried.near(now, rng), TRIES)],
    )
    for what, text in changes:
        points = await lost(text, Split.WORK)
        if points < least:
            least, best = points, (what, text)
    if not best[1]:
        return None
    before, after = await lost(now, Split.CHOOSE), await lost(best[1], Split.CHOOSE)
    if after >= before:
        return None
    points_lost = f"{before:g} points lost before, {after:g} with it"
    why = f"the best of {len(changes)} changes on work tasks; on others {points_lost}"
    return *best, why


def tried_for(component: Component, created: Mapping[str, Any]) -> Tried:
    """How thresholds, words, or the specification of an agent that was created so, are tried."""
    if component.kind is ComponentKind.PROMPT:
        return TriedWords()
    if component.kind is ComponentKind.THRESHOLDS:
        return TriedThresholds(component.paths[0], thresholds_text(DEFAULTS))
    return TriedSpec(component.paths[0], component.id.removeprefix(AGENT_PREFIX), created)
