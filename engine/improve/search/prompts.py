"""Parts of prompts as a component: what a model makes of small tasks when it is guided by other words.

Words have no worth of their own, so without a model nothing is judged. With one a real agent does each task
in a scratch workspace, and what it leaves behind is looked at: what a model claims counts for nothing. Models
do not answer alike each time, so a task that failed is tried twice, and the judge asks again before it
believes that something was mended.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from engine.core.improvement import Component
from engine.improve.ports import Check, Measure, NotJudged, Outcome, Report, Split
from engine.improve.search.trial_tasks import (
    WORDS,
    ModelOpener,
    TrialEngine,
    TrialResult,
    TrialTask,
    run_trial_tasks,
)
from engine.models.prompt_parts import BUILT_IN, DECIDING, PARTS, PLANNING, PartError, Parts, checked, path_of
from engine.planning.thinkers import CLAUDE
from engine.planning.thinkers.claude_prompt import DECIDER, ROLE

FORMAT = "prompt tasks 1"
MEASURED = (PLANNING, DECIDING)
"""Parts that tasks tell apart, by the style of thinking that is guided by each."""
NO_MODEL = (
    "a prompt can only be judged with a model, and there is none here: set ANTHROPIC_API_KEY and open the "
    "workspace again"
)
STYLES = {PLANNING: "plan", DECIDING: "decide"}
SIZES = {Split.WORK: 3, Split.CHOOSE: 3, Split.SEALED: 10}
"""Tasks of each style."""
FAILED_TASK_COST = 50.0
"""Points that a task counts which was not achieved; an action counts one, and so do 1,000 tokens."""
AT_ONCE = 4
"""Tasks in the air at a time, as an endpoint lets only so many calls through."""
UNIT = f"points (an action 1, 1,000 tokens 1, a task not achieved {FAILED_TASK_COST:g})"


def builtin_text(part: str) -> str:
    """The words of a measured part that stand where a workspace has none."""
    return {PLANNING: ROLE, DECIDING: DECIDER}[part] + "\n"


def stands_for(component: Component) -> dict[str, str]:
    """What `{builtin}` stands for in each file of the component, for whoever is to write one."""
    return {
        f"what {BUILT_IN} stands for in {path}": builtin_text(Path(path).stem) for path in component.paths
    }


def prompt_tasks(split: Split, key: int | str, count: int) -> tuple[TrialTask, ...]:
    """Tasks by number, every kind in its turn; equal arguments give equal tasks.

    What each leaves behind is known. Some need a look at a file before the next step can be named.
    """
    kinds = (_copied, _counted, _replaced, _made, _moved)
    tasks = []
    for number in range(count):
        draws = random.Random(f"prompt task/{split}/{key}/{number}")
        tasks.append(kinds[number % len(kinds)](f"{draws.choice(WORDS)}_{number}", draws))
    return tuple(tasks)


def _copied(place: str, draws: random.Random) -> TrialTask:
    text, (old, new) = _text(draws), draws.sample(WORDS, 2)
    goal = f"copy the file {place}/{old}.txt to {place}/{new}.txt and leave the first one where it is"
    leaves = {f"{place}/{old}.txt": text, f"{place}/{new}.txt": text}
    return TrialTask(f"copy in {place}", goal, {f"{place}/{old}.txt": text}, leaves)


def _counted(place: str, draws: random.Random) -> TrialTask:
    lines = [_text(draws) for _ in range(draws.randint(3, 9))]
    name = draws.choice(WORDS)
    goal = f"write how many lines the file {place}/{name}.txt has to {place}/count.txt, as a number alone"
    leaves = {f"{place}/count.txt": str(len(lines))}
    return TrialTask(f"count in {place}", goal, {f"{place}/{name}.txt": "\n".join(lines) + "\n"}, leaves)


def _replaced(place: str, draws: random.Random) -> TrialTask:
    name, old, new, rest = draws.sample(WORDS, 4)
    path = f"{place}/{name}.txt"
    goal = f"in the file {path} put the word {new} in the place of the word {old}"
    return TrialTask(f"replace in {place}", goal, {path: f"{rest} {old}\n"}, {path: f"{rest} {new}"})


def _made(place: str, draws: random.Random) -> TrialTask:
    room, name, text = draws.choice(WORDS), draws.choice(WORDS), _text(draws)
    path = f"{place}/{room}/{name}.txt"
    goal = f"create the directory {place}/{room} and in it the file {name}.txt with the text '{text}'"
    return TrialTask(f"make {path}", goal, {f"{place}/readme.txt": _text(draws)}, {path: text})


def _moved(place: str, draws: random.Random) -> TrialTask:
    text, (old, new) = _text(draws), draws.sample(WORDS, 2)
    goal = f"rename the file {place}/{old}.txt to {new}.txt in the same directory"
    leaves = {f"{place}/{old}.txt": None, f"{place}/{new}.txt": text}
    return TrialTask(f"rename in {place}", goal, {f"{place}/{old}.txt": text}, leaves)


def _text(draws: random.Random) -> str:
    return " ".join(draws.sample(WORDS, 3))


@dataclass
class PromptSuite:
    """Words are better when tasks are achieved that were not, or the same with fewer actions and tokens.

    Each style of thinking is tried with its own part alone, so where a candidate leaves a part as it is
    nothing is run anew and nothing can differ by chance.
    """

    component: Component
    seed: int
    """Of the campaign; the tasks follow from it."""
    opener: ModelOpener
    model: str
    """Its name: another model makes other things of the same words."""
    _left: float = 0.0
    _paid: float = 0.0
    _results_by_text: dict[tuple[str, str, tuple[str, ...], int], asyncio.Task[tuple[TrialResult, ...]]] = (
        field(default_factory=dict)
    )

    @property
    def key(self) -> str:
        """Names everything that is asked."""
        sizes = {str(name): count for name, count in SIZES.items()}
        key = json.dumps([FORMAT, self.model, self.seed, sizes, FAILED_TASK_COST], sort_keys=True)
        return hashlib.sha256(key.encode()).hexdigest()

    @property
    def measure(self) -> Measure:
        """Points lost on the way."""
        return Measure(UNIT)

    def allow(self, usd: float) -> None:
        """Say what the tasks may cost from now on; see `engine.improve.ports.PaidSuite`."""
        self._left = usd

    def paid(self) -> float:
        """What the tasks cost since this was asked last, in dollars."""
        paid, self._paid = self._paid, 0.0
        return paid

    def unsound(self, tree: Path) -> tuple[str, ...]:
        """What is wrong with the files of a tree, without running anything; blocking."""
        wrong = [self._fault(tree, part) for part in MEASURED]
        return tuple(problem for problem in wrong if problem)

    def checks(self, split: Split) -> Sequence[Check]:
        """One check for each task in each style."""
        return tuple(
            Check(
                f"{split} {STYLES[part]} {number + 1}: {task.name}", split, data=(part, number), measured=True
            )
            for part in MEASURED
            for number, task in enumerate(self._tasks(split, part))
        )

    def owns(self, path: str) -> bool:
        """No file is the suite's."""
        return False

    async def examine(self, tree: Path, check: Check, *, seed: int) -> Report:
        """What a model makes of a task with the words of a tree.

        Raises:
            NotJudged: the model could not be asked, or the budget does not last.
        """
        part, number = check.data
        if wrong := await asyncio.to_thread(self._fault, tree, part):
            return Report(check.id, Outcome.FAILS, wrong, cost=FAILED_TASK_COST)
        text = await asyncio.to_thread(_text_of, tree, part)
        through = self._tasks(check.split, part)
        if anew := self._anew(seed):
            (results,) = await self._results(part, text, (through[number],), anew)
        else:
            results = (await self._results(part, text, through, 0))[number]
        outcome = Outcome.HOLDS if results.achieved else Outcome.FAILS
        cost = results.actions + results.tokens / 1_000 + (0.0 if results.achieved else FAILED_TASK_COST)
        return Report(check.id, outcome, results.why or f"{results.actions} actions", cost=cost)

    def _tasks(self, split: Split, part: str) -> tuple[TrialTask, ...]:
        return prompt_tasks(split, f"{part} {self.seed}", SIZES[split])

    def _anew(self, seed: int) -> int:
        """0 where an earlier result will do, as for its cost; to ask again the judge takes another seed."""
        return 0 if seed in (self.seed, 1_000 * self.seed) else seed

    def _fault(self, tree: Path, part: str) -> str:
        try:
            _text_of(tree, part)
        except (PartError, OSError, UnicodeDecodeError) as error:
            return str(error)
        return ""

    async def _results(
        self, part: str, text: str, through: tuple[TrialTask, ...], anew: int
    ) -> tuple[TrialResult, ...]:
        words = Parts({part: text} if text else {}).words(part, builtin_text(part).strip())
        name = (part, words, tuple(result.goal for result in through), anew)
        if name not in self._results_by_text:
            self._results_by_text[name] = asyncio.create_task(
                self._run(part, text, through), name=f"trial {part}"
            )
        try:
            return await self._results_by_text[name]
        except BaseException:
            # One that was cut off or could not be paid says nothing of those that are asked later.
            self._results_by_text.pop(name).cancel()
            raise

    async def _run(self, part: str, text: str, through: tuple[TrialTask, ...]) -> tuple[TrialResult, ...]:
        """All tasks once, and those that failed once more; what either took counts."""
        results = list(await self._once(part, text, through))
        failed = [number for number, result in enumerate(results) if not result.achieved]
        if failed:
            again = await self._once(part, text, tuple(through[number] for number in failed))
            for number, result in zip(failed, again, strict=True):
                first = results[number]
                actions, tokens = first.actions + result.actions, first.tokens + result.tokens
                results[number] = replace(result, actions=actions, tokens=tokens)
        return tuple(results)

    async def _once(self, part: str, text: str, through: tuple[TrialTask, ...]) -> tuple[TrialResult, ...]:
        if self._left <= 0:
            raise NotJudged(_SHORT)
        allowed = self._left

        async def opened(place: Path) -> TrialEngine:
            return await self.opener(place, allowed)

        settings = {path_of(part): text} if text else {}
        config: Mapping[str, Any] = {"style": STYLES[part]}
        results = await run_trial_tasks(
            opened, through, config=config, thinker=CLAUDE, settings=settings, at_once=AT_ONCE
        )
        cost = sum(result.usd for result in results)
        self._paid, self._left = self._paid + cost, self._left - cost
        if why := next((result.unasked for result in results if result.unasked and not result.achieved), ""):
            raise NotJudged(f"{self.model} could not be asked: {why}")
        return results


_SHORT = (
    "what the campaign may spend on models does not last until it is judged; give it more, such as --usd 5"
)


def _text_of(tree: Path, part: str) -> str:
    """A part's text in a tree; empty where the built-in one stands."""
    path = tree / path_of(part)
    return checked(part, path.read_text(encoding="utf-8")) if path.exists() else ""


def measure_of(model: str) -> str:
    """How the component is measured, in words."""
    others = " and ".join(part for part in PARTS if part not in MEASURED)
    by = f"goals achieved, actions and tokens of {model} on sealed small tasks" if model else NO_MODEL
    return f"{by}; {others} is the operator's to write, as no small task tells its words apart"
