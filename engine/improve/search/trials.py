"""Small tasks that agents of a candidate do in a scratch workspace, by which settings and words are judged.

The tasks are drawn from a seed: programs that fail once or twice before they work, a file whose name is
written otherwise than it is asked for, plain work, and a program that never works, where patience is wasted.
For words that guide a model there are others, of which some need a look at a file before the next step can be
named. The agents are real ones and what they run is confined as always. What an agent claims counts for
nothing: the files that it leaves are looked at.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.budgets import SpendingLimits, Spent
from engine.core.goals import GoalStatus
from engine.core.journal import Event
from engine.core.state import AgentState
from engine.value import dataclass, field, replace

LOOPS = 60
"""Loops after which a task is given up."""
PATIENCE_S = 120.0
"""Seconds by the clock after which a task is given up; without a model it takes a fraction of one."""
AT_ONCE = 4
"""Tasks that models do at a time, as an endpoint lets only so many calls through."""
_ANSWERS = frozenset({"refused", "truncated", "unreadable"})
"""Failed calls that are the model's own doing; after any other one it is unknown what it would have done."""
_WORDS = (
    *("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath"),
    *("islet", "juniper", "knoll", "larch", "maple", "north", "otter"),
)
_FLAKY = """\
import pathlib, sys
count = pathlib.Path({name!r} + ".count")
tries = int(count.read_text()) if count.exists() else 0
count.write_text(str(tries + 1))
sys.exit(1 if tries < {times} else 0)
"""


class TrialEngine(Protocol):
    """What trials need of an engine; `engine.api.engine.Engine` is one."""

    async def submit(self, command: cmd.Command, *, operator: str = "operator") -> cmd.Receipt:
        """Carry out a command."""

    async def view(self, agent_id: str, at: int | None = None) -> AgentState:
        """An agent's state."""

    def events(self, since: int = 0) -> AsyncIterator[Event]:
        """Durable events behind a place."""

    async def close(self, reason: str = "") -> None:
        """Give the workspace up."""


Opener = Callable[[Path, SpendingLimits | None], Awaitable[TrialEngine]]
"""Opens an engine on a scratch workspace; with limits it has the model that thinks, without it has none."""


@dataclass(frozen=True, slots=True)
class Task:
    """One task."""

    name: str
    goal: str
    files: Mapping[str, str]
    """What lies in the sandbox before, by path."""
    leaves: Mapping[str, str | None] = field(default_factory=dict)
    """Texts of files that have to be there in the end, but for blanks around them; None means no file."""


TaskKind = Callable[[str, random.Random], Task]
"""Makes a task of a place in the sandbox and a generator."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What came of a task."""

    achieved: bool
    actions: int
    why: str = ""
    """Why it was not achieved."""
    usd: float = 0.0
    tokens: int = 0
    unasked: str = ""
    """Why the model could not be asked; the result then says nothing."""


@dataclass(frozen=True, slots=True)
class Setup:
    """How agents are set up for tasks."""

    files: Mapping[str, str] = field(default_factory=dict)
    """Texts of the scratch workspace's settings, by path."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """What each agent is created with."""


def drawn_tasks(kinds: Sequence[TaskKind], key: str, count: int) -> list[Task]:
    """Tasks by number, every kind in its turn; equal arguments give equal tasks."""
    tasks = []
    for number in range(count):
        draws = random.Random(f"task/{key}/{number}")
        place = f"{draws.choice(_WORDS)}_{number}{draws.randrange(1_000):03}"
        tasks.append(kinds[number % len(kinds)](place, draws))
    return tasks


def _flaky(times: int) -> TaskKind:
    def made(place: str, _draws: random.Random) -> Task:
        script = f"{place}.py"
        name = f"{script} fails {times} times" if times < LOOPS else f"{script} never works"
        return Task(name, f"run 'python -S {script}'", {script: _FLAKY.format(name=place, times=times)})

    return made


def _plain(place: str, draws: random.Random) -> Task:
    names = [f"{place}_{part}" for part in draws.sample(_WORDS, 2)]
    return Task(f"directories {place}", f"create the directories {names[0]} and {names[1]}", {})


def _miscased(place: str, draws: random.Random) -> Task:
    stored = f"{place.capitalize()}.txt"
    return Task(f"read {stored} as {place}.txt", f"read the file {place}.txt", {stored: draws.choice(_WORDS)})


def _written(place: str, draws: random.Random) -> Task:
    goal = f"write '{_text(draws)}' to {place}.txt, then read the file {place}.txt"
    return Task(f"write {place}.txt", goal, {})


def _copied(place: str, draws: random.Random) -> Task:
    text, (old, new) = _text(draws), draws.sample(_WORDS, 2)
    goal = f"copy the file {place}/{old}.txt to {place}/{new}.txt and leave the first one where it is"
    leaves = {f"{place}/{old}.txt": text, f"{place}/{new}.txt": text}
    return Task(f"copy in {place}", goal, {f"{place}/{old}.txt": text}, leaves)


def _counted(place: str, draws: random.Random) -> Task:
    lines = [_text(draws) for _ in range(draws.randint(3, 9))]
    name = draws.choice(_WORDS)
    goal = f"write how many lines the file {place}/{name}.txt has to {place}/count.txt, as a number alone"
    leaves = {f"{place}/count.txt": str(len(lines))}
    return Task(f"count in {place}", goal, {f"{place}/{name}.txt": "\n".join(lines) + "\n"}, leaves)


def _replaced(place: str, draws: random.Random) -> Task:
    name, old, new, rest = draws.sample(_WORDS, 4)
    path = f"{place}/{name}.txt"
    goal = f"in the file {path} put the word {new} in the place of the word {old}"
    return Task(f"replace in {place}", goal, {path: f"{rest} {old}\n"}, {path: f"{rest} {new}"})


def _made(place: str, draws: random.Random) -> Task:
    room, name, text = draws.choice(_WORDS), draws.choice(_WORDS), _text(draws)
    path = f"{place}/{room}/{name}.txt"
    goal = f"create the directory {place}/{room} and in it the file {name}.txt with the text '{text}'"
    return Task(f"make {path}", goal, {f"{place}/readme.txt": _text(draws)}, {path: text})


def _moved(place: str, draws: random.Random) -> Task:
    text, (old, new) = _text(draws), draws.sample(_WORDS, 2)
    goal = f"rename the file {place}/{old}.txt to {new}.txt in the same directory"
    leaves = {f"{place}/{old}.txt": None, f"{place}/{new}.txt": text}
    return Task(f"rename in {place}", goal, {f"{place}/{old}.txt": text}, leaves)


def _text(draws: random.Random) -> str:
    return " ".join(draws.sample(_WORDS, 3))


RECIPE_TASKS: Sequence[TaskKind] = (_flaky(1), _plain, _miscased, _flaky(2), _written, _flaky(99))
"""Kinds of tasks that recipes plan for."""
MODEL_TASKS: Sequence[TaskKind] = (_copied, _counted, _replaced, _made, _moved)
"""Kinds of tasks for a model."""


async def run_tasks(
    opener: Opener, tasks: Sequence[Task], setup: Setup, limits: SpendingLimits | None = None
) -> list[TaskResult]:
    """What comes of each task, side by side, each by an agent of its own and with files of its own.

    Args:
        opener: opens an engine on a scratch workspace.
        tasks: what is to be done.
        setup: how the agents are set up.
        limits: what models may take; None asks none.
    """
    places = asyncio.Semaphore(AT_ONCE if limits else 64)
    with tempfile.TemporaryDirectory(prefix="pilothouse-trial-", ignore_cleanup_errors=True) as place:
        workspace = Path(place)
        await asyncio.to_thread(_lay_down, workspace, tasks, setup.files)
        engine = await opener(workspace, limits)
        try:

            async def run(number: int, task: Task) -> TaskResult:
                async with places:
                    return await _run(engine, f"t{number}", task, dict(setup.config))

            results = await asyncio.gather(*(run(number, task) for number, task in enumerate(tasks)))
            return await asyncio.to_thread(_looked_at, workspace / "sandbox", tasks, results)
        finally:
            await engine.close("the trial is over")


def _lay_down(workspace: Path, tasks: Sequence[Task], settings: Mapping[str, str]) -> None:
    files = {workspace / path: text for path, text in settings.items()}
    files |= {workspace / "sandbox" / path: text for task in tasks for path, text in task.files.items()}
    (workspace / "sandbox").mkdir()
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _looked_at(sandbox: Path, tasks: Sequence[Task], results: Sequence[TaskResult]) -> list[TaskResult]:
    """The results, of which none is achieved that did not leave the right files."""
    looked = []
    for task, result in zip(tasks, results, strict=True):
        wrong = [path for path, text in task.leaves.items() if _left(sandbox / path) != text]
        why = f"{wrong[0]} is not as it should be" if wrong else ""
        looked.append(replace(result, achieved=False, why=why) if result.achieved and wrong else result)
    return looked


def _left(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None


async def _run(engine: TrialEngine, agent: str, task: Task, config: dict[str, Any]) -> TaskResult:
    for command in (cmd.CreateAgent(agent=agent, config=config), cmd.AdoptGoal(agent=agent, text=task.goal)):
        receipt = await engine.submit(command)
        if not receipt.ok:
            return TaskResult(False, 0, receipt.message)
    state = await engine.view(agent)
    goal = max(state.goals.values(), key=lambda entry: entry.order).id
    await engine.submit(cmd.Run(agent=agent, until=goal, ask=False, max_loops=LOOPS))
    why, unasked = "it took too long", ""
    try:
        async with asyncio.timeout(PATIENCE_S):
            why, unasked = await _ended(engine, agent, goal)
    except TimeoutError:
        await engine.submit(cmd.Stop(agent=agent, reason=why))
    state = await engine.view(agent)
    spent = sum(state.spent.values(), Spent())
    achieved = state.goals[goal].status is GoalStatus.ACHIEVED
    return TaskResult(achieved, state.actions, why, spent.usd, spent.tokens, unasked)


async def _ended(engine: TrialEngine, agent: str, goal: str) -> tuple[str, str]:
    """Wait until a goal has ended or will not end by itself.

    Returns:
        Why it was not achieved, and why the model could not be asked; either is empty where it was.
    """
    unasked = ""
    async for event in engine.events(0):
        if event.stream != agent:
            continue
        match ev.payload_of(event):
            case ev.GoalEnded() as ended if ended.goal == goal:
                return ("" if ended.status is GoalStatus.ACHIEVED else str(ended.reason)), unasked
            case ev.ModelCalled() as call if call.error and call.error_kind not in _ANSWERS:
                unasked = call.error
            case ev.AgentPaused(reason=reason) if reason.is_a("run.loops-over"):
                return str(reason), unasked
            case ev.InterventionOpened() | ev.ApprovalAsked() | ev.BudgetReached() as held:
                why = str(held.why if isinstance(held, ev.ApprovalAsked) else held.reason)
                unasked = why if isinstance(held, ev.BudgetReached) else unasked
                await engine.submit(cmd.AbortGoal(agent=agent, goal=goal, reason=why))
                return why, unasked
    return "the journal ended", unasked
