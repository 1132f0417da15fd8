"""An agent with real tools, a given plan and perhaps a model, whose record is replayed in the end."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.agent.actions.pipeline import LiveToolbox
from engine.agent.actions.snapshots import NoSaver
from engine.agent.agent import Agent
from engine.agent.model_calls import ModelStreamRecorder
from engine.agent.perception import AgentEnvironment, WorkspacePerceiver
from engine.agent.recorder import AgentRecorder
from engine.api.replay import replay_stream
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import AgentConfig
from engine.core.fold import fold
from engine.core.journal import GENESIS, Event
from engine.core.plan import PlanStep, Provenance
from engine.core.ports import Ports, SystemClock
from engine.core.recovery import FailureKind
from engine.core.state import AgentState
from engine.core.streams import StreamLog
from engine.core.thinking import Decision, DecisionRequest, PlanProposal, PlanRequest, ThinkingError
from engine.models.completion import ModelClient
from engine.tools.belief_tool import BeliefTool
from engine.tools.registry import ToolRegistry
from engine.tools.shared_coder import SharedCoder
from engine.tools.simple_coder import SimpleCoder
from tests.patience import PATIENCE_S as PATIENCE_S


class Planner:
    """A thinker with one plan for every goal."""

    name = "planner"
    free = True

    def __init__(self, *steps: tuple[str, dict[str, Any]]) -> None:
        self._steps = steps

    async def plan(self, request: PlanRequest) -> PlanProposal:
        steps = (
            PlanStep(str(n), command, tool="simple_coder", command=command, args=args, provenance=BY)
            for n, (command, args) in enumerate(self._steps, 1)
        )
        return PlanProposal(tuple(steps), (), self.name)

    async def decide(self, request: DecisionRequest) -> Decision:
        raise ThinkingError(FailureKind.TOOL_UNAVAILABLE, "a planner decides nothing")


BY = Provenance("planner")


@dataclass
class AgentFlight:
    """The agent, its sandbox and everything that it recorded."""

    agent: Agent
    sandbox: Path
    kept: list[Event] = field(default_factory=list)

    @property
    def state(self) -> AgentState:
        return self.agent.state

    def do(self, kind: type[cmd.Command], /, **fields: Any) -> None:
        receipt = self.agent.handle(kind(**{"agent": "pilot", **fields}), "operator:test")
        assert receipt.ok, receipt.message
        self.agent.commit_soon()

    async def until(self, holds: Callable[[AgentState], object]) -> AgentState:
        async with asyncio.timeout(PATIENCE_S):
            while not holds(self.state):
                assert not self.agent.fault, self.agent.fault
                await asyncio.sleep(0.002)
        return self.state

    def said(self, kind: type[ev.Payload]) -> list[Any]:
        return [payload for event in self.kept if isinstance(payload := ev.payload_of(event), kind)]


@asynccontextmanager
async def flying(
    sandbox: Path,
    goal: str,
    *steps: tuple[str, dict[str, Any]],
    model: ModelClient | None = None,
    model_name: str = "",
    **meta: Any,
) -> AsyncIterator[AgentFlight]:
    """An agent that has adopted a goal, paused; what it recorded replays without tools and model."""
    sandbox.mkdir(exist_ok=True)
    coder = SimpleCoder(sandbox)
    coders = SharedCoder(coder)
    registry = ToolRegistry([coders, BeliefTool()])
    ports, clock = Ports(), SystemClock()
    kept: list[Event] = []

    async def put_blob(content: bytes) -> str:
        return hashlib.sha256(content).hexdigest()

    async def keep(batch: Sequence[Event]) -> Sequence[Event]:
        kept.extend(batch)
        return batch

    around = AgentEnvironment(
        thinker=Planner(*steps),
        toolbox=LiveToolbox(registry),
        saver=NoSaver(),
        perceiver=WorkspacePerceiver(registry, coders),
        registry=registry,
        clock=clock,
        put_blob=put_blob,
        randomness=ports.randomness,
        control=coder.sessions,
        model=model,
        model_name=model_name,
        model_stream=ModelStreamRecorder(model) if model is not None else None,
    )
    agent = Agent(AgentRecorder(fold([]), StreamLog("pilot", 0, GENESIS, clock, keep)), around)
    # As the procedural thinker it knows no other plan when it is told what went wrong.
    config = AgentConfig(thinker="procedural", meta=meta)
    agent.append(ev.AgentCreated(agent_id="pilot", agent_type="bdi_agent", config=config), "operator:test")
    agent.open("session-1", 7)
    agent.start()
    flight = AgentFlight(agent, sandbox, kept)
    flight.do(cmd.AdoptGoal, text=goal)
    try:
        yield flight
    finally:
        await agent.close()
        coder.close()
    assert fold(kept) == agent.state

    async def blob(digest: str) -> bytes | None:
        return None

    replay = await replay_stream(kept, blob)
    assert replay.matches, replay.difference
