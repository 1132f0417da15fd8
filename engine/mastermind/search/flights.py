"""Small tasks that agents of a candidate are given, in a scratch workspace and without a screen.

The tasks are made from a seed: programs that fail once or twice before they work, a file whose name is
written otherwise than it is asked for, plain work, and a program that never works, where patience is wasted.
The agent is a real one, planned for by recipes; what it runs is confined as always.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from engine.domain import commands as cmd
from engine.domain.goal import GoalStatus
from engine.domain.ports import SystemClock
from engine.domain.state import LOOPS_OVER, AgentState
from engine.journal import events as ev
from engine.journal.event import Event

LOOPS = 60
"""Loops after which a task is given up."""
PATIENCE_S = 120.0
"""Wall-clock time after which a flight is given up; a task takes a fraction of a second."""
LOST = 20
"""Points that a goal counts which was not achieved; an action counts one."""
HURRY = 50.0
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


@dataclass(frozen=True, slots=True)
class Landed:
    """What came of a task."""

    achieved: bool
    actions: int
    why: str = ""
    """Why it was not achieved."""

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
        word = f"{draws.choice(_WORDS)}_{number}"
        found.append(kinds[number % len(kinds)](word, draws))
    return tuple(found)


def _flaky(times: int) -> Callable[[str, random.Random], Errand]:
    def made(word: str, _draws: random.Random) -> Errand:
        script = f"{word}.py"
        name = f"{script} fails {times} times" if times < LOOPS else f"{script} never works"
        return Errand(name, f"run 'python -S {script}'", {script: _FLAKY.format(name=word, times=times)})

    return made


def _plain(word: str, draws: random.Random) -> Errand:
    names = [f"{word}_{part}" for part in draws.sample(_WORDS, 2)]
    return Errand(f"directories {word}", f"create the directories {names[0]} and {names[1]}", {})


def _miscased(word: str, draws: random.Random) -> Errand:
    stored = f"{word.capitalize()}.txt"
    return Errand(f"read {stored} as {word}.txt", f"read the file {word}.txt", {stored: draws.choice(_WORDS)})


def _written(word: str, draws: random.Random) -> Errand:
    text = " ".join(draws.sample(_WORDS, 3))
    return Errand(f"write {word}.txt", f"write '{text}' to {word}.txt, then read the file {word}.txt", {})


async def fly(
    opener: Opener,
    through: Sequence[Errand],
    *,
    thresholds: str = "",
    config: Mapping[str, Any] | None = None,
    agent_type: str = "bdi_agent",
) -> tuple[Landed, ...]:
    """What comes of each task, side by side, each by an agent of its own and with files of its own.

    Args:
        opener: opens an engine on a scratch workspace.
        through: the tasks.
        thresholds: the workspace's `thresholds.toml`; empty for none.
        config: what each agent is created with.
        agent_type: its type.
    """
    with tempfile.TemporaryDirectory(prefix="pilothouse-flight-", ignore_cleanup_errors=True) as place:
        workspace = Path(place)
        await asyncio.to_thread(_lay_down, workspace, through, thresholds)
        engine = await opener(workspace)
        try:
            flights = (
                _flown(engine, f"t{number}", errand, dict(config or {}), agent_type)
                for number, errand in enumerate(through)
            )
            return tuple(await asyncio.gather(*flights))
        finally:
            await engine.close("the flight is over")


def _lay_down(workspace: Path, through: Sequence[Errand], thresholds: str) -> None:
    if thresholds:
        (workspace / "thresholds.toml").write_text(thresholds, encoding="utf-8")
    sandbox = workspace / "sandbox"
    sandbox.mkdir()
    for errand in through:
        for path, text in errand.files.items():
            (sandbox / path).write_text(text, encoding="utf-8")


async def _flown(
    engine: Aloft, agent: str, errand: Errand, config: dict[str, Any], agent_type: str
) -> Landed:
    created = await engine.submit(
        cmd.CreateAgent(agent=agent, agent_type=agent_type, config={**config, "thinker": "procedural"})
    )
    if not created.ok:
        return Landed(False, 0, created.message)
    adopted = await engine.submit(cmd.AdoptGoal(agent=agent, text=errand.goal))
    if not adopted.ok:
        return Landed(False, 0, adopted.message)
    state = await engine.view(agent)
    goal = max(state.goals.values(), key=lambda one: one.order).id
    await engine.submit(cmd.Run(agent=agent, until=goal, ask=False, max_loops=LOOPS))
    why = "it took too long"
    try:
        async with asyncio.timeout(PATIENCE_S):
            why = await _ended(engine, agent, goal)
    except TimeoutError:
        await engine.submit(cmd.Stop(agent=agent, reason=why))
    state = await engine.view(agent)
    return Landed(state.goals[goal].status is GoalStatus.ACHIEVED, state.actions, why)


async def _ended(engine: Aloft, agent: str, goal: str) -> str:
    """Wait until a goal has ended or will not end by itself; answers why it was not achieved."""
    async for event in engine.events(0):
        if event.stream != agent:
            continue
        said = ev.payload_of(event)
        if isinstance(said, ev.GoalEnded) and said.goal == goal:
            return said.reason if said.status is not GoalStatus.ACHIEVED else ""
        if isinstance(said, ev.InterventionOpened | ev.ApprovalAsked | ev.BudgetReached):
            why = said.reason if not isinstance(said, ev.ApprovalAsked) else said.why
            await engine.submit(cmd.AbortGoal(agent=agent, goal=goal, reason=why))
            return why
        if isinstance(said, ev.AgentPaused) and said.reason.startswith(LOOPS_OVER):
            return said.reason
    return "the journal ended"
