"""Small tasks that agents of a candidate are given, in a scratch workspace and without a screen.

The tasks are made from a seed: programs that fail once or twice before they work, a file whose name is
written otherwise than it is asked for, plain work, and a program that never works, where patience is wasted.
The agent is a real one, planned for by recipes; what it runs is confined as always.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from engine.domain import commands as cmd
from engine.domain.budgets import Spent
from engine.domain.goal import GoalStatus
from engine.domain.ports import SystemClock
from engine.domain.state import LOOPS_OVER, AgentState
from engine.journal import events as ev
from engine.journal.event import Event
from engine.parameters.thresholds import FILE as THRESHOLDS_FILE

PROCEDURAL = "procedural"
"""The thinker that plans by recipes."""
LOOPS = 60
"""Loops after which a task is given up."""
PATIENCE_S = 120.0
"""Wall-clock time after which a flight is given up; a task takes a fraction of a second."""
LOST = 20
"""Points that a goal counts which was not achieved; an action counts one."""
HURRY = 50.0
_ANSWERS = frozenset({"refused", "truncated", "unreadable"})
"""Failed calls that are the model's own doing; after any other one nobody knows what it would have done."""
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


class Aloft(Protocol):
    """What flights need of an engine; `engine.engine.Engine` is one."""

    async def submit(self, command: cmd.Command, *, operator: str = "operator") -> cmd.Receipt:
        """Carry out a command."""

    async def view(self, agent: str, at: int | None = None) -> AgentState:
        """An agent's state."""

    def events(self, since: int = 0) -> AsyncIterator[Event]:
        """Durable events behind a place."""

    async def close(self, reason: str = "") -> None:
        """Give the workspace up."""


Opener = Callable[[Path], Awaitable[Aloft]]
"""Opens an engine on a scratch workspace, without a model and with `HurriedClock`."""


class HurriedClock(SystemClock):
    """Waits a fiftieth of what it is asked to: a retry's delay teaches nothing in a scratch workspace."""

    async def sleep(self, seconds: float) -> None:
        """Wait a little."""
        await asyncio.sleep(seconds / HURRY)


@dataclass(frozen=True, slots=True)
class Errand:
    """One task."""

    name: str
    goal: str
    files: Mapping[str, str]
    """What lies in the sandbox before, by path."""
    leaves: Mapping[str, str | None] = field(default_factory=dict)
    """Texts of files that have to be there in the end, but for blanks around them; `""` means a directory and
    None that nothing is there. A model that says it is done is not believed."""


@dataclass(frozen=True, slots=True)
class Landed:
    """What came of a task."""

    achieved: bool
    actions: int
    why: str = ""
    """Why it was not achieved."""
    usd: float = 0.0
    """What models cost on the way."""
    tokens: int = 0
    unasked: str = ""
    """Why the model could not be asked; what came of the task then says nothing."""

    @property
    def cost(self) -> float:
        """Actions, and `LOST` for a goal that was not achieved."""
        return self.actions + (0 if self.achieved else LOST)


def errands(split: str, key: int | str, count: int) -> tuple[Errand, ...]:
    """Tasks by number, every kind in its turn; equal arguments give equal tasks."""
    kinds = (_flaky(1), _plain, _miscased, _flaky(2), _written, _flaky(99))
    found = []
    for number in range(count):
        draws = random.Random(f"errand/{split}/{key}/{number}")
        word = f"{draws.choice(WORDS)}_{number}"
        found.append(kinds[number % len(kinds)](word, draws))
    return tuple(found)


def _flaky(times: int) -> Callable[[str, random.Random], Errand]:
    def made(word: str, _draws: random.Random) -> Errand:
        script = f"{word}.py"
        name = f"{script} fails {times} times" if times < LOOPS else f"{script} never works"
        return Errand(name, f"run 'python -S {script}'", {script: _FLAKY.format(name=word, times=times)})

    return made


def _plain(word: str, draws: random.Random) -> Errand:
    names = [f"{word}_{part}" for part in draws.sample(WORDS, 2)]
    return Errand(f"directories {word}", f"create the directories {names[0]} and {names[1]}", {})


def _miscased(word: str, draws: random.Random) -> Errand:
    stored = f"{word.capitalize()}.txt"
    return Errand(f"read {stored} as {word}.txt", f"read the file {word}.txt", {stored: draws.choice(WORDS)})


def _written(word: str, draws: random.Random) -> Errand:
    text = " ".join(draws.sample(WORDS, 3))
    return Errand(f"write {word}.txt", f"write '{text}' to {word}.txt, then read the file {word}.txt", {})


async def fly(
    opener: Opener,
    through: Sequence[Errand],
    *,
    thresholds: str = "",
    config: Mapping[str, Any] | None = None,
    agent_type: str = "bdi_agent",
    thinker: str = PROCEDURAL,
    settings: Mapping[str, str] | None = None,
    at_once: int = 64,
) -> tuple[Landed, ...]:
    """What comes of each task, side by side, each by an agent of its own and with files of its own.

    Args:
        opener: opens an engine on a scratch workspace.
        through: the tasks.
        thresholds: the workspace's `thresholds.toml`; empty for none.
        config: what each agent is created with.
        agent_type: its type.
        thinker: who plans.
        settings: further files of the scratch workspace, by path.
        at_once: how many are in the air at a time.
    """
    beside = {**({THRESHOLDS_FILE: thresholds} if thresholds else {}), **(settings or {})}
    given = {**(config or {}), "thinker": thinker}
    places = asyncio.Semaphore(at_once)
    with tempfile.TemporaryDirectory(prefix="pilothouse-flight-", ignore_cleanup_errors=True) as place:
        workspace = Path(place)
        await asyncio.to_thread(_lay_down, workspace, through, beside)
        engine = await opener(workspace)
        try:
            flights = (
                _in_turn(places, engine, f"t{number}", errand, given, agent_type)
                for number, errand in enumerate(through)
            )
            landed = await asyncio.gather(*flights)
            return tuple(await asyncio.to_thread(_looked_at, workspace / "sandbox", through, landed))
        finally:
            await engine.close("the flight is over")


def _lay_down(workspace: Path, through: Sequence[Errand], settings: Mapping[str, str]) -> None:
    sandbox = workspace / "sandbox"
    sandbox.mkdir()
    below = ((sandbox, path, text) for errand in through for path, text in errand.files.items())
    for top, path, text in (*((workspace, *one) for one in settings.items()), *below):
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text, encoding="utf-8")


def _looked_at(sandbox: Path, through: Sequence[Errand], landed: Sequence[Landed]) -> Iterator[Landed]:
    """What came of tasks, once it was looked at what they leave."""
    for errand, one in zip(through, landed, strict=True):
        wrong = [path for path, text in errand.leaves.items() if not _is_left(sandbox / path, text)]
        why = f"{wrong[0]} is not as it should be" if wrong else ""
        yield replace(one, achieved=False, why=why) if one.achieved and wrong else one


def _is_left(path: Path, text: str | None) -> bool:
    if text is None:
        return not path.exists()
    if not text:
        return path.is_dir()
    try:
        return path.read_text(encoding="utf-8").strip() == text.strip()
    except (OSError, UnicodeDecodeError):
        return False


async def _in_turn(
    places: asyncio.Semaphore,
    engine: Aloft,
    agent: str,
    errand: Errand,
    config: dict[str, Any],
    agent_type: str,
) -> Landed:
    async with places:
        return await _flown(engine, agent, errand, config, agent_type)


async def _flown(
    engine: Aloft, agent: str, errand: Errand, config: dict[str, Any], agent_type: str
) -> Landed:
    created = await engine.submit(cmd.CreateAgent(agent=agent, agent_type=agent_type, config=config))
    if not created.ok:
        return Landed(False, 0, created.message)
    adopted = await engine.submit(cmd.AdoptGoal(agent=agent, text=errand.goal))
    if not adopted.ok:
        return Landed(False, 0, adopted.message)
    state = await engine.view(agent)
    goal = max(state.goals.values(), key=lambda one: one.order).id
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
    return Landed(achieved, state.actions, why, spent.usd, spent.tokens, unasked)


async def _ended(engine: Aloft, agent: str, goal: str) -> tuple[str, str]:
    """Wait until a goal has ended or will not end by itself.

    Returns:
        Why it was not achieved, and why the model could not be asked; either is empty where it was.
    """
    unasked = ""
    async for event in engine.events(0):
        if event.stream != agent:
            continue
        said = ev.payload_of(event)
        if isinstance(said, ev.GoalEnded) and said.goal == goal:
            return (said.reason if said.status is not GoalStatus.ACHIEVED else ""), unasked
        if isinstance(said, ev.BudgetReached):
            unasked = said.reason
        if isinstance(said, ev.ModelCalled) and said.error and said.error_kind not in _ANSWERS:
            unasked = said.error
        if isinstance(said, ev.InterventionOpened | ev.ApprovalAsked | ev.BudgetReached):
            why = said.reason if not isinstance(said, ev.ApprovalAsked) else said.why
            await engine.submit(cmd.AbortGoal(agent=agent, goal=goal, reason=why))
            return why, unasked
        if isinstance(said, ev.AgentPaused) and said.reason.startswith(LOOPS_OVER):
            return said.reason, unasked
    return "the journal ended", unasked
