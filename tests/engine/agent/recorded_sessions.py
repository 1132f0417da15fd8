"""Sessions of many kinds with a scripted model, recorded so that they can be replayed without it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engine.agent.shared import EngineConfig
from engine.core import commands as cmd
from engine.core.ports import SystemClock
from engine.core.state import AgentState
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint, Retries
from tests.engine.agent.engine_flight import Flight, QuickClock
from tests.engine.agent.model_flight import MODEL, planned
from tests.messages_server import MessagesServer, Reply, failure, plan_call
from tests.patience import PATIENCE_S as PATIENCE_S

RULES = """```yaml
EVENT: achieve lay_out(Name)
CONDITIONS:
  - <none>
OPERATIONS:
  - execute mkdir(Name)
  - execute cd(Name)
  - execute write("note.txt", "laid out")
  - execute ls(Found)
```"""


@dataclass(frozen=True)
class Script:
    """What a model says in one session, and what the operator does."""

    name: str
    replies: tuple[Reply, ...]
    fly: Callable[[Flight, MessagesServer], Awaitable[None]]


@dataclass(frozen=True)
class Recorded:
    """A session that was recorded."""

    name: str
    workspace: Path
    head: str
    """One hash over all streams when it was closed."""
    requests: int


async def _until(flight: Flight, holds: Callable[[AgentState], object]) -> AgentState:
    async with asyncio.timeout(PATIENCE_S):
        while not holds(state := await flight.state()):
            await asyncio.sleep(0.01)
    return state


def _goals(*texts: str) -> Callable[[Flight, MessagesServer], Awaitable[None]]:
    """An operator who gives goals and lets the agent run until they have ended."""

    async def fly(flight: Flight, server: MessagesServer) -> None:
        await flight.do(cmd.CreateAgent)
        for text in texts:
            await flight.do(cmd.AdoptGoal, text=text)
        await flight.do(cmd.Run, ask=False)
        await _until(flight, lambda state: not state.open_goals)

    return fly


async def _by_rules(flight: Flight, server: MessagesServer) -> None:
    await flight.do(cmd.CreateAgent, agent_type="asl_agent", config={"program": "!lay_out(project)."})
    await flight.do(cmd.Run)
    await _until(flight, lambda state: state.goals["g1"].status.terminal)


async def _cut(flight: Flight, server: MessagesServer) -> None:
    """An operator who stops the model in the middle of its answer, and has it asked again."""
    await flight.do(cmd.CreateAgent)
    await flight.do(cmd.AdoptGoal, text="make a directory for drafts")
    await flight.do(cmd.Run)
    async with asyncio.timeout(PATIENCE_S):
        await server.held.wait()
    await flight.do(cmd.Stop)
    await _until(flight, lambda state: state.model_calls == 1)
    await flight.do(cmd.Run)
    await _until(flight, lambda state: not state.open_goals)


async def _by_steps(flight: Flight, server: MessagesServer) -> None:
    """An operator who takes every step by hand, skips one and believes something."""
    await flight.do(cmd.CreateAgent)
    await flight.do(cmd.AdoptGoal, text="make a directory for drafts")
    await flight.do(cmd.Step)
    state = await _until(flight, lambda state: state.actions == 1 and not state.acting)
    await flight.do(cmd.Believe, key="weather", value="fair")
    last = state.plans["g1"].steps[-1].id
    await flight.do(cmd.SkipStep, step=last)
    await flight.do(cmd.Run)
    await _until(flight, lambda state: not state.open_goals)


def script(number: int) -> Script:
    """The session of that number; it is the same each time."""
    name = f"d{number}"
    lines = "\n".join(f"line {line} of {name}" for line in range(3 + number % 5))
    steps = (
        planned("mkdir", path=name),
        planned("write", path=f"{name}/a.txt", content=lines),
        planned("append", path=f"{name}/a.txt", content="the end\n"),
        planned("read", path=f"{name}/a.txt"),
        planned("ls", path=name),
    )
    good, wrong = plan_call(*steps), plan_call(planned("mkdri", path=name), *steps[1:])
    missing = plan_call(steps[0], planned("read", path=f"{name}/none.txt"))
    look = plan_call(planned("ls"), planned("find", text="line"))
    runs = plan_call(*steps[:2], planned("run", command=["python", "-c", "print('counted', 1 + 1)"]))
    held = Reply(text="I think of a directory first. " * 4, after=8, then="hold")
    text = f"make the directory {name} with a text in it"
    kinds = (
        Script("a plan", (good,), _goals(text)),
        Script("a wrong plan mended", (wrong, good), _goals(text)),
        Script("two goals", (good, look), _goals(text, "look for lines")),
        Script("planned anew", (missing, look, look, look), _goals(text)),
        Script("rules", (Reply(text=RULES),), _by_rules),
        Script("cut off", (held, good), _cut),
        Script("overloaded", (failure(529, "overloaded_error"), good), _goals(text)),
        Script("a program", (runs,), _goals(text)),
        Script("nonsense", (Reply(text="Done!"),) * 9, _goals(text)),
        Script("by steps", (good,), _by_steps),
    )
    return kinds[number % len(kinds)]


def checkpoint(replies: Sequence[Reply], seed: int) -> tuple[Reply, ...]:
    """The replies as a real model gives them: it thinks, takes its time, and speaks piece by piece."""
    dice = random.Random(seed)
    musing = "A directory first, then what goes into it; then I look whether all of it is there. "
    return tuple(
        replace(
            reply,
            thinking=musing * dice.randint(2, 4) if reply.body is None else "",
            first_byte_delay_ms=dice.randint(400, 1200),
            event_delay_ms=dice.randint(8, 25),
            after=reply.after + 15 if reply.then == "hold" else reply.after,
        )
        for reply in replies
    )


async def record(workspace: Path, number: int, *, leisurely: bool = False) -> Recorded:
    """Fly the session of that number in a new workspace, and close it."""
    flown = script(number)
    replies = checkpoint(flown.replies, number) if leisurely else flown.replies
    async with MessagesServer(replies) as server:
        choice = ModelChoice(Endpoint(server.url), MODEL, retries=Retries(attempts=1))
        clock = SystemClock() if leisurely else QuickClock()
        flight = Flight(workspace, clock, EngineConfig(model=choice))
        await flight.open()
        try:
            await flown.fly(flight, server)
        finally:
            await flight.engine.close()
        return Recorded(flown.name, workspace, flight.engine.final_head, len(server.requests))
