"""Parts of prompts as a component: what a model makes of small tasks when it is guided by other words.

Words have no worth of their own, so without a model nothing is judged. With one a real agent flies each task
in a scratch workspace, and what it leaves behind is looked at: what a model claims counts for nothing. Models
do not answer alike each time, so a task that failed is flown twice, and the judge asks again before it
believes that something was mended. Source: issue 8 (components), mindX spec §6.4.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from engine.domain.improvement import Component
from engine.library.prompt_parts import (
    BUILT_IN,
    DECIDING,
    PARTS,
    PLANNING,
    PartError,
    Parts,
    checked,
    path_of,
)
from engine.mastermind.judge.suite import Check, Measure, Outcome, Report, Split
from engine.mastermind.parts import NotJudged
from engine.mastermind.search.flights import WORDS, Aloft, Errand, Landed, fly
from engine.thinkers import CLAUDE

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
LOST = 50.0
"""Points that a task counts which was not achieved; an action counts one, and so do 1,000 tokens."""
AT_ONCE = 4
"""Tasks in the air at a time, as an endpoint lets only so many calls through."""
UNIT = f"points (an action 1, 1,000 tokens 1, a task not achieved {LOST:g})"

ModelOpener = Callable[[Path, float], Awaitable[Aloft]]
"""Opens an engine with the workspace's model on a scratch workspace, which may take so many dollars."""


def built_in(part: str) -> str:
    """The words of a measured part that stand where a workspace has none."""
    from engine.thinkers.claude_prompt import DECIDER, ROLE

    return {PLANNING: ROLE, DECIDING: DECIDER}[part] + "\n"


def stands_for(component: Component) -> dict[str, str]:
    """What `{builtin}` stands for in each file of the component, for whoever is to write one."""
    return {f"what {BUILT_IN} stands for in {path}": built_in(Path(path).stem) for path in component.paths}


def tasks(split: Split, key: int | str, count: int) -> tuple[Errand, ...]:
    """Tasks by number, every kind in its turn; equal arguments give equal tasks.

    What each leaves behind is known. Some need a look at a file before the next step can be named.
    """
    kinds = (_copied, _counted, _replaced, _made, _moved)
    found = []
    for number in range(count):
        draws = random.Random(f"prompt task/{split}/{key}/{number}")
        found.append(kinds[number % len(kinds)](f"{draws.choice(WORDS)}_{number}", draws))
    return tuple(found)


def _copied(place: str, draws: random.Random) -> Errand:
    text, (old, new) = _text(draws), draws.sample(WORDS, 2)
    goal = f"copy the file {place}/{old}.txt to {place}/{new}.txt and leave the first one where it is"
    leaves = {f"{place}/{old}.txt": text, f"{place}/{new}.txt": text}
    return Errand(f"copy in {place}", goal, {f"{place}/{old}.txt": text}, leaves)


def _counted(place: str, draws: random.Random) -> Errand:
    lines = [_text(draws) for _ in range(draws.randint(3, 9))]
    name = draws.choice(WORDS)
    goal = f"write how many lines the file {place}/{name}.txt has to {place}/count.txt, as a number alone"
    leaves = {f"{place}/count.txt": str(len(lines))}
    return Errand(f"count in {place}", goal, {f"{place}/{name}.txt": "\n".join(lines) + "\n"}, leaves)


def _replaced(place: str, draws: random.Random) -> Errand:
    name, old, new, rest = draws.sample(WORDS, 4)
    path = f"{place}/{name}.txt"
    goal = f"in the file {path} put the word {new} in the place of the word {old}"
    return Errand(f"replace in {place}", goal, {path: f"{rest} {old}\n"}, {path: f"{rest} {new}"})


def _made(place: str, draws: random.Random) -> Errand:
    room, name, text = draws.choice(WORDS), draws.choice(WORDS), _text(draws)
    path = f"{place}/{room}/{name}.txt"
    goal = f"create the directory {place}/{room} and in it the file {name}.txt with the text '{text}'"
    return Errand(f"make {path}", goal, {f"{place}/readme.txt": _text(draws)}, {path: text})


def _moved(place: str, draws: random.Random) -> Errand:
    text, (old, new) = _text(draws), draws.sample(WORDS, 2)
    goal = f"rename the file {place}/{old}.txt to {new}.txt in the same directory"
    leaves = {f"{place}/{old}.txt": None, f"{place}/{new}.txt": text}
    return Errand(f"rename in {place}", goal, {f"{place}/{old}.txt": text}, leaves)


def _text(draws: random.Random) -> str:
    return " ".join(draws.sample(WORDS, 3))


@dataclass
class PromptSuite:
    """Words are better when tasks are achieved that were not, or the same with fewer actions and tokens.

    Each style of thinking is flown with its own part alone, so where a candidate leaves a part as it is
    nothing is flown anew and nothing can differ by chance.
    """

    component: Component
    seed: int
    """Of the campaign; the tasks follow from it."""
    opener: ModelOpener
    model: str
    """Its name: another model makes other things of the same words."""
    _left: float = 0.0
    _paid: float = 0.0
    _flown: dict[tuple[str, str, tuple[str, ...], int], asyncio.Task[tuple[Landed, ...]]] = field(
        default_factory=dict
    )

    @property
    def key(self) -> str:
        """Names everything that is asked."""
        sizes = {str(name): count for name, count in SIZES.items()}
        said = json.dumps([FORMAT, self.model, self.seed, sizes, LOST], sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()

    @property
    def measure(self) -> Measure:
        """Points lost on the way."""
        return Measure(UNIT, "less")

    def allow(self, usd: float) -> None:
        """Say what flying may cost from now on; see `engine.mastermind.parts.Paying`."""
        self._left = usd

    def paid(self) -> float:
        """What flying cost since this was asked last, in dollars."""
        paid, self._paid = self._paid, 0.0
        return paid

    def unsound(self, tree: Path) -> tuple[str, ...]:
        """What is wrong with the files of a tree, without flying anything; blocking."""
        wrong = [self._fault(tree, part) for part in MEASURED]
        return tuple(one for one in wrong if one)

    def checks(self, split: Split) -> Sequence[Check]:
        """One check for each task in each style."""
        return tuple(
            Check(
                f"{split} {STYLES[part]} {number + 1}: {errand.name}",
                split,
                data=(part, number),
                measured=True,
            )
            for part in MEASURED
            for number, errand in enumerate(self._tasks(split, part))
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
            return Report(check.id, Outcome.FAILS, wrong, cost=LOST)
        text = await asyncio.to_thread(_text_of, tree, part)
        through = self._tasks(check.split, part)
        if anew := self._anew(seed):
            (landed,) = await self._landed(part, text, (through[number],), anew)
        else:
            landed = (await self._landed(part, text, through, 0))[number]
        outcome = Outcome.HOLDS if landed.achieved else Outcome.FAILS
        cost = landed.actions + landed.tokens / 1_000 + (0.0 if landed.achieved else LOST)
        return Report(check.id, outcome, landed.why or f"{landed.actions} actions", cost=cost)

    def _tasks(self, split: Split, part: str) -> tuple[Errand, ...]:
        return tasks(split, f"{part} {self.seed}", SIZES[split])

    def _anew(self, seed: int) -> int:
        """0 where what was flown will do, as for its cost; to ask again the judge takes another seed."""
        return 0 if seed in (self.seed, 1_000 * self.seed) else seed

    def _fault(self, tree: Path, part: str) -> str:
        try:
            _text_of(tree, part)
        except (PartError, OSError, UnicodeDecodeError) as error:
            return str(error)
        return ""

    async def _landed(
        self, part: str, text: str, through: tuple[Errand, ...], anew: int
    ) -> tuple[Landed, ...]:
        words = Parts({part: text} if text else {}).words(part, built_in(part).strip())
        name = (part, words, tuple(one.goal for one in through), anew)
        if name not in self._flown:
            self._flown[name] = asyncio.create_task(self._fly(part, text, through), name=f"flight {part}")
        try:
            return await self._flown[name]
        except BaseException:
            # One that was cut off or could not be paid says nothing of those that are asked later.
            self._flown.pop(name).cancel()
            raise

    async def _fly(self, part: str, text: str, through: tuple[Errand, ...]) -> tuple[Landed, ...]:
        """All tasks once, and those that failed once more; what either took counts."""
        landed = list(await self._once(part, text, through))
        failed = [number for number, one in enumerate(landed) if not one.achieved]
        if failed:
            again = await self._once(part, text, tuple(through[number] for number in failed))
            for number, one in zip(failed, again, strict=True):
                first = landed[number]
                actions, tokens = first.actions + one.actions, first.tokens + one.tokens
                landed[number] = replace(one, actions=actions, tokens=tokens)
        return tuple(landed)

    async def _once(self, part: str, text: str, through: tuple[Errand, ...]) -> tuple[Landed, ...]:
        if self._left <= 0:
            raise NotJudged(_SHORT)
        allowed = self._left

        async def opened(place: Path) -> Aloft:
            return await self.opener(place, allowed)

        settings = {path_of(part): text} if text else {}
        config: Mapping[str, Any] = {"style": STYLES[part]}
        landed = await fly(opened, through, config=config, thinker=CLAUDE, settings=settings, at_once=AT_ONCE)
        cost = sum(one.usd for one in landed)
        self._paid, self._left = self._paid + cost, self._left - cost
        if why := next((one.unasked for one in landed if one.unasked and not one.achieved), ""):
            raise NotJudged(f"{self.model} could not be asked: {why}")
        return landed


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
