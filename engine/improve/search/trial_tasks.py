"""Small tasks that agents of a candidate are given, in a scratch workspace and without a screen.

The tasks are made from a seed: programs that fail once or twice before they work, a file whose name is
written otherwise than it is asked for, plain work, and a program that never works, where patience is wasted.
The agent is a real one, planned for by recipes; what it runs is confined as always.

Better thresholds and specifications are searched by trying each change on work tasks, and the best on others.
"""

from __future__ import annotations

import asyncio
import math
import random
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from engine.agent.actions.snapshots import SnapshotRule
from engine.agent.settings import FILE as THRESHOLDS_FILE
from engine.agent.shared import EngineConfig
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import LOOPS_OVER
from engine.core.budgets import SpendingLimits, Spent
from engine.core.goals import GoalStatus
from engine.core.journal import Event
from engine.core.ports import Clock, Ports, SystemClock
from engine.core.state import AgentState
from engine.value import dataclass, field, replace

PROCEDURAL = "procedural"
"""The thinker that plans by recipes."""
LOOPS = 60
"""Loops after which a task is given up."""
PATIENCE_S = 120.0
"""Wall-clock time after which a trial is given up; a task takes a fraction of a second."""
FAILED_GOAL_COST = 20
"""Points that a goal counts which was not achieved; an action counts one."""
HURRY = 50.0
_ANSWERS = frozenset({"refused", "truncated", "unreadable"})
"""Failed calls that are the model's own doing; after any other one it is unknown what it would have done."""
WORDS = (
    *("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath"),
    *("islet", "juniper", "knoll", "larch", "maple", "north", "otter"),
)
"""What tasks are named by."""
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

    async def view(self, agent: str, at: int | None = None) -> AgentState:
        """An agent's state."""

    def events(self, since: int = 0) -> AsyncIterator[Event]:
        """Durable events behind a place."""

    async def close(self, reason: str = "") -> None:
        """Give the workspace up."""


Opener = Callable[[Path], Awaitable[TrialEngine]]
"""Opens an engine on a scratch workspace, without a model and with `FastClock`."""
ModelOpener = Callable[[Path, float], Awaitable[TrialEngine]]
"""Opens an engine with the workspace's model on a scratch workspace, which may take so many dollars."""


class FastClock(SystemClock):
    """Waits a fiftieth of what it is asked to: a retry's delay teaches nothing in a scratch workspace."""

    async def sleep(self, seconds: float) -> None:
        """Wait a little."""
        await asyncio.sleep(seconds / HURRY)


@dataclass(frozen=True, slots=True)
class TrialTask:
    """One task."""

    name: str
    goal: str
    files: Mapping[str, str]
    """What lies in the sandbox before, by path."""
    leaves: Mapping[str, str | None] = field(default_factory=dict)
    """Texts of files that have to be there in the end, but for blanks around them; `""` means a directory and
    None that nothing is there. A model that says it is done is not believed."""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The result of a task."""

    achieved: bool
    actions: int
    why: str = ""
    """Why it was not achieved."""
    usd: float = 0.0
    """What models cost on the way."""
    tokens: int = 0
    unasked: str = ""
    """Why the model could not be asked; the result then says nothing."""

    @property
    def cost(self) -> float:
        """Actions, and `LOST` for a goal that was not achieved."""
        return self.actions + (0 if self.achieved else FAILED_GOAL_COST)


def draw_trial_tasks(split: str, key: int | str, count: int) -> tuple[TrialTask, ...]:
    """Tasks by number, every kind in its turn; equal arguments give equal tasks."""
    kinds = (_flaky(1), _plain, _miscased, _flaky(2), _written, _flaky(99))
    tasks = []
    for number in range(count):
        draws = random.Random(f"errand/{split}/{key}/{number}")
        word = f"{draws.choice(WORDS)}_{number}"
        tasks.append(kinds[number % len(kinds)](word, draws))
    return tuple(tasks)


def _flaky(times: int) -> Callable[[str, random.Random], TrialTask]:
    def made(word: str, _draws: random.Random) -> TrialTask:
        script = f"{word}.py"
        name = f"{script} fails {times} times" if times < LOOPS else f"{script} never works"
        return TrialTask(name, f"run 'python -S {script}'", {script: _FLAKY.format(name=word, times=times)})

    return made


def _plain(word: str, draws: random.Random) -> TrialTask:
    names = [f"{word}_{part}" for part in draws.sample(WORDS, 2)]
    return TrialTask(f"directories {word}", f"create the directories {names[0]} and {names[1]}", {})


def _miscased(word: str, draws: random.Random) -> TrialTask:
    stored = f"{word.capitalize()}.txt"
    return TrialTask(
        f"read {stored} as {word}.txt", f"read the file {word}.txt", {stored: draws.choice(WORDS)}
    )


def _written(word: str, draws: random.Random) -> TrialTask:
    text = " ".join(draws.sample(WORDS, 3))
    return TrialTask(f"write {word}.txt", f"write '{text}' to {word}.txt, then read the file {word}.txt", {})


async def run_trial_tasks(
    opener: Opener,
    through: Sequence[TrialTask],
    *,
    thresholds: str = "",
    config: Mapping[str, Any] | None = None,
    thinker: str = PROCEDURAL,
    settings: Mapping[str, str] | None = None,
    at_once: int = 64,
) -> tuple[TrialResult, ...]:
    """The result of each task, side by side, each by an agent of its own and with files of its own.

    Args:
        opener: opens an engine on a scratch workspace.
        through: the tasks.
        thresholds: the workspace's `thresholds.toml`; empty for none.
        config: what each agent is created with.
        thinker: who plans.
        settings: further files of the scratch workspace, by path.
        at_once: how many run at a time.
    """
    beside = {**({THRESHOLDS_FILE: thresholds} if thresholds else {}), **(settings or {})}
    given = {**(config or {}), "thinker": thinker}
    places = asyncio.Semaphore(at_once)
    with tempfile.TemporaryDirectory(prefix="pilothouse-trial-", ignore_cleanup_errors=True) as place:
        workspace = Path(place)
        await asyncio.to_thread(_lay_down, workspace, through, beside)
        engine = await opener(workspace)
        try:

            async def run(number: int, task: TrialTask) -> TrialResult:
                async with places:
                    return await _run(engine, f"t{number}", task, given)

            results = await asyncio.gather(*(run(number, task) for number, task in enumerate(through)))
            return tuple(await asyncio.to_thread(_looked_at, workspace / "sandbox", through, results))
        finally:
            await engine.close("the trial is over")


def _lay_down(workspace: Path, through: Sequence[TrialTask], settings: Mapping[str, str]) -> None:
    sandbox = workspace / "sandbox"
    sandbox.mkdir()
    below = ((sandbox, path, text) for task in through for path, text in task.files.items())
    for top, path, text in (*((workspace, *item) for item in settings.items()), *below):
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text, encoding="utf-8")


def _looked_at(
    sandbox: Path, through: Sequence[TrialTask], results: Sequence[TrialResult]
) -> Iterator[TrialResult]:
    """The results of tasks, checked by the files that they leave."""
    for task, result in zip(through, results, strict=True):
        wrong = [path for path, text in task.leaves.items() if not _is_left(sandbox / path, text)]
        why = f"{wrong[0]} is not as it should be" if wrong else ""
        yield replace(result, achieved=False, why=why) if result.achieved and wrong else result


def _is_left(path: Path, text: str | None) -> bool:
    if text is None:
        return not path.exists()
    if not text:
        return path.is_dir()
    try:
        return path.read_text(encoding="utf-8").strip() == text.strip()
    except (OSError, UnicodeDecodeError):
        return False


async def _run(engine: TrialEngine, agent: str, task: TrialTask, config: dict[str, Any]) -> TrialResult:
    created = await engine.submit(cmd.CreateAgent(agent=agent, config=config))
    if not created.ok:
        return TrialResult(False, 0, created.message)
    adopted = await engine.submit(cmd.AdoptGoal(agent=agent, text=task.goal))
    if not adopted.ok:
        return TrialResult(False, 0, adopted.message)
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
    return TrialResult(achieved, state.actions, why, spent.usd, spent.tokens, unasked)


async def _ended(engine: TrialEngine, agent: str, goal: str) -> tuple[str, str]:
    """Wait until a goal has ended or will not end by itself.

    Returns:
        Why it was not achieved, and why the model could not be asked; either is empty where it was.
    """
    unasked = ""
    async for event in engine.events(0):
        if event.stream != agent:
            continue
        payload = ev.payload_of(event)
        if isinstance(payload, ev.GoalEnded) and payload.goal == goal:
            return (payload.reason if payload.status is not GoalStatus.ACHIEVED else ""), unasked
        if isinstance(payload, ev.BudgetReached):
            unasked = payload.reason
        if isinstance(payload, ev.ModelCalled) and payload.error and payload.error_kind not in _ANSWERS:
            unasked = payload.error
        if isinstance(payload, ev.InterventionOpened | ev.ApprovalAsked | ev.BudgetReached):
            why = payload.reason if not isinstance(payload, ev.ApprovalAsked) else payload.why
            await engine.submit(cmd.AbortGoal(agent=agent, goal=goal, reason=why))
            return why, unasked
        if isinstance(payload, ev.AgentPaused) and payload.reason.startswith(LOOPS_OVER):
            return payload.reason, unasked
    return "the journal ended", unasked


TASKS = 6
"""Work tasks, and choose tasks: one of each kind."""
MOST = 24
"""Candidates that are tried at most."""


@dataclass(frozen=True, slots=True)
class SettingsCandidate:
    """One set of values."""

    what: str
    text: str
    thresholds: str = ""
    config: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class BestSettings:
    """A candidate that lost fewer points than what is there, on work and on choose tasks."""

    candidate: SettingsCandidate
    before: float
    """Points lost on the choose tasks."""
    after: float
    tried: int


async def best_settings(
    opener: Opener, now: SettingsCandidate, candidates: Iterable[SettingsCandidate], rng: random.Random
) -> BestSettings | None:
    """The candidate that does best, where one does better; None where none does.

    Args:
        opener: opens an engine on a scratch workspace.
        now: what is there.
        candidates: what may be better, in the order in which it is tried.
        rng: names the tasks.
    """
    key = rng.getrandbits(64)
    work, choose = draw_trial_tasks("work", key, TASKS), draw_trial_tasks("choose", key, TASKS)

    async def lost(candidate: SettingsCandidate, through: Sequence[TrialTask]) -> float:
        results = await run_trial_tasks(
            opener, through, thresholds=candidate.thresholds, config=candidate.config
        )
        return sum(result.cost for result in results)

    present = await lost(now, work)
    best: tuple[float, SettingsCandidate] | None = None
    tried = 0
    for candidate in candidates:
        if tried == MOST:
            break
        tried += 1
        points = await lost(candidate, work)
        if points < present and (best is None or points < best[0]):
            best = (points, candidate)
    if best is None:
        return None
    before, after = await lost(now, choose), await lost(best[1], choose)
    return BestSettings(best[1], before, after, tried) if after < before else None


SEED = 7
"""Of the randomness in scratch workspaces: the same each time."""


def opener_of(host: Any) -> Opener:
    """Opens scratch workspaces by engines like the host, without a model.

    What runs there is held by the same policy; nothing is saved before actions, as nothing is kept.
    """

    async def opened(place: Path) -> TrialEngine:
        return await _open(host, place, FastClock(), {})

    return opened


def thinking_opener_of(host: Any) -> ModelOpener:
    """The same with the model that thinks, within a budget; a model is not hurried."""

    async def opened(place: Path, usd: float) -> TrialEngine:
        limits = SpendingLimits(usd=None if math.isinf(usd) else usd)
        return await _open(host, place, SystemClock(), {"model": host.config.model, "budget": limits})

    return opened


async def _open(host: Any, place: Path, clock: Clock, more: Mapping[str, Any]) -> TrialEngine:
    config = EngineConfig(policy=host.sandbox().policy, snapshots=SnapshotRule.OFF, **more)
    ports = Ports(clock=clock, seed=lambda: SEED)
    return cast("TrialEngine", await type(host).open(place, ports=ports, config=config))
