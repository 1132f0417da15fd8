"""An engine in flight on a real workspace, and what must hold of its journal after every scenario."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from engine.agent.shared import EngineConfig
from engine.api.engine import RETRY_JOURNAL_S, Engine
from engine.api.replay import Replay, replay_stream
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.fold import SNAPSHOT_FORMAT, dump_state, fold, load_state
from engine.core.journal import BlobError, Event, of_agent
from engine.core.ports import Ports, SystemClock
from engine.core.state import AgentState
from engine.core.store.blobs import BlobStore
from engine.core.store.opening import open_journal
from engine.core.store.port import DATA_DIRECTORY, JournalStore
from engine.core.store.verify import verify
from tests.patience import PATIENCE_S as PATIENCE_S

FIRST_LOOK_S, EVERY_S = 0.001, 0.008
"""When a scenario looks again: soon at first, then seldom, since looking costs processor too."""

FROM_OUTSIDE = {
    *("agent.created", "agent.opened", "command.received", "world.perceived"),
    *("reasoner.time_passed", "reasoner.message_heard", "tool.offered"),
}
"""Kinds that follow from nothing in the journal."""


class QuickClock(SystemClock):
    """Waits for nothing but the journal, and remembers what it was to wait for."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        if seconds == RETRY_JOURNAL_S:
            await asyncio.sleep(0.02)
        else:
            self.slept.append(seconds)
            await asyncio.sleep(0)


class HeldClock(QuickClock):
    """A retry's delay lasts until the test lets it pass."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        if seconds != RETRY_JOURNAL_S:
            await self.gate.wait()


def act(command: str, /, **args: Any) -> dict[str, Any]:
    """One action of a plan in JSON."""
    return {"type": "EXECUTE_TOOL", "params": {"tool_id": "simple_coder", "command": command, "args": args}}


def python(code: str) -> dict[str, Any]:
    """An action that runs a Python program."""
    return act("run", command=["python", "-c", code])


class Flight:
    """One workspace, its engine, and the agent `pilot`."""

    agent = "pilot"

    def __init__(self, workspace: Path, clock: SystemClock, config: EngineConfig | None = None) -> None:
        self.workspace = workspace
        self.clock = clock
        self.config = config
        self.engine: Engine

    @property
    def sandbox(self) -> Path:
        return self.workspace / "sandbox"

    async def open(self) -> None:
        self.engine = await Engine.open(self.workspace, ports=Ports(clock=self.clock), config=self.config)

    async def reopen(self) -> None:
        await self.engine.close()
        await self.open()

    async def submit(self, kind: type[cmd.Command], /, **fields: Any) -> cmd.Receipt:
        return await self.engine.submit(kind(**{"agent": self.agent, **fields}))

    async def do(self, kind: type[cmd.Command], /, **fields: Any) -> cmd.Receipt:
        receipt = await self.submit(kind, **fields)
        assert receipt.ok, receipt.message
        return receipt

    async def refused(self, kind: type[cmd.Command], /, **fields: Any) -> str:
        receipt = await self.submit(kind, **fields)
        assert not receipt.ok, receipt.message
        return receipt.message

    async def state(self, agent: str = "") -> AgentState:
        return await self.engine.view(agent or self.agent)

    async def until(
        self, holds: Callable[[AgentState], object], agent: str = "", *, patience_s: float = PATIENCE_S
    ) -> AgentState:
        """The state as soon as something holds of it."""
        async with asyncio.timeout(patience_s):
            pause = FIRST_LOOK_S
            while not holds(state := await self.state(agent)):
                await asyncio.sleep(pause)
                pause = min(2 * pause, EVERY_S)
        return state

    async def plan(self, *actions: dict[str, Any]) -> list[str]:
        """Have the paused agent follow these actions; their steps' ids."""
        receipt = await self.do(cmd.AdoptGoal, text="list the files")
        state = await self.until(lambda s: s.open_goals and s.open_goals[-1].id in s.plans)
        assert receipt.ok
        goal = state.open_goals[-1].id
        await self.do(cmd.ReplacePlan, goal=goal, plan=json.dumps(actions))
        plan = (await self.state()).plans[goal]
        return [step.id for step in plan.steps if not step.status.terminal]

    async def at_gate(self, step: str) -> AgentState:
        """The state once the step's action stands at the gate."""
        return await self.until(lambda s: s.action and s.action.step == step and not s.action.started)

    async def events(self, agent: str = "") -> list[Event]:
        """The durable events of the agent, once nothing of it is pending."""
        name = agent or self.agent
        await self.until_durable(name)
        return await self.engine.store.read(name)

    async def until_durable(self, agent: str) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while (await self.engine.store.head(agent)).version < (await self.state(agent)).version:
                await asyncio.sleep(0.002)

    async def payloads(self, kind: type[ev.Payload], agent: str = "") -> list[Any]:
        """What the events of one kind say, oldest first."""
        return [ev.payload_of(event) for event in await self.events(agent) if event.kind == kind.kind]

    async def started(self) -> list[str]:
        """The steps whose actions started, in order; an operator's call is ''."""
        steps = {said.action: said.step for said in await self.payloads(ev.ActionRequested)}
        return [steps[said.action] for said in await self.payloads(ev.ActionStarted)]


async def live_state_is_the_fold(flight: Flight, agent: str) -> None:
    assert not flight.engine.health.agents
    async with asyncio.timeout(PATIENCE_S):
        while (live := await flight.state(agent)).version != len(events := await flight.events(agent)):
            await asyncio.sleep(0.002)
    assert fold(events) == live
    folded = AgentState()
    for version in range(1, len(events) + 1, max(1, len(events) // 12)):
        folded = fold(events[folded.version : version], folded)
        assert await flight.engine.view(agent, version) == folded


async def journal_holds_together(workspace: Path) -> list[Replay]:
    """The chain is sound, states come out the same whichever way, and every agent replays."""
    store = await open_journal(workspace, clock=SystemClock(), read_only=True)
    try:
        verdict = await verify(store)
        assert verdict.ok, verdict.reason
        agents = [stream for stream in await store.streams() if of_agent(stream)]
        replays = []
        for agent in agents:
            events = await store.read(agent)
            every_event_has_a_cause(events)
            await snapshot_and_rest_is_the_fold(store, agent, events)
            replays.append(await replay_of(workspace, events))
    finally:
        await store.close()
    for replay in replays:
        assert replay.matches, replay.difference
    return replays


def every_event_has_a_cause(events: Sequence[Event]) -> None:
    forked = any(event.kind == ev.AgentForked.kind for event in events)
    for event in events:
        assert event.causes or event.kind in FROM_OUTSIDE, f"{event.ref} {event.kind} has no cause"
        for cause in event.causes:
            stream, version = cause.rsplit(":", 1)
            assert stream == event.stream or forked  # whose goals come from another's stream
            assert int(version) < event.version or stream != event.stream


async def snapshot_and_rest_is_the_fold(store: JournalStore, agent: str, events: list[Event]) -> None:
    whole = fold(events)
    assert load_state(dump_state(whole)) == whole
    found = await store.load_snapshot(agent, None, SNAPSHOT_FORMAT)
    if found is not None:
        version, text = found
        assert fold(events[version:], load_state(text)) == whole


async def replay_of(workspace: Path, events: Sequence[Event], writers: Sequence[str] = ()) -> Replay:
    blobs = BlobStore(workspace / DATA_DIRECTORY / "blobs")

    async def blob(digest: str) -> bytes | None:
        try:
            return await blobs.get(digest)
        except BlobError:
            return None

    return await replay_stream(events, blob, writers)
