"""An agent whose tools fail as they are told to, on a clock that writes down what is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from engine_flight import HeldClock, QuickClock

from engine.agent.actions.snapshots import NoSaver
from engine.agent.agent import Agent
from engine.agent.perception import AgentEnvironment
from engine.agent.recorder import AgentRecorder
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.actions import ErrorCode, ResultStatus, SandboxSession, ToolResult
from engine.core.agents import AgentConfig
from engine.core.fold import fold
from engine.core.journal import GENESIS, Event
from engine.core.plan import PlanStep
from engine.core.ports import CallContext, CommandSpec, Parameter, Ports
from engine.core.state import AgentState
from engine.core.streams import StreamLog
from engine.core.thinking import PlanProposal, PlanRequest
from engine.sandbox.jobs import Sessions
from engine.tools.registry import ToolRegistry
from engine.tools.simple_coder_commands import COMMANDS

TURNS = 20_000
"""Turns of the event loop within which a run must come to rest."""

_KEY = Parameter("idempotency_key", "known again by this", required=False, default="")


class _Coder:
    id, description, commands = "simple_coder", "answers as it is told", COMMANDS


_PUT = CommandSpec("put", "keep it", (Parameter("what", "the thing"), _KEY), writes=True)


class _Depot:
    id, description, commands = "depot", "keeps things elsewhere", MappingProxyType({"put": _PUT})


class RetryBench:
    """One agent with one plan of one step, whose call is answered in turn: None for success."""

    def __init__(
        self,
        step: PlanStep,
        answers: Sequence[ErrorCode | None],
        *,
        clock: QuickClock | None = None,
        max_errors: int = 3,
        statuses: Mapping[int, int] | None = None,
    ) -> None:
        self.name, self.free = "procedural", True
        self.clock = clock or QuickClock()
        self.calls: list[dict[str, Any]] = []
        self.journal: list[Event] = []
        self._step, self._answers, self._statuses = step, list(answers), statuses or {}
        log = StreamLog("a", 0, GENESIS, self.clock, self._keep)
        config = AgentConfig(max_consecutive_errors=max_errors)
        created = ev.AgentCreated(agent_id="a", agent_type="bdi_agent", config=config)
        self.state: AgentState = fold([log.append(created, actor="operator:x", causes=(), tick=0)])
        around = AgentEnvironment(
            thinker=self,
            toolbox=self,
            saver=NoSaver(),
            perceiver=self,
            registry=ToolRegistry([_Coder(), _Depot()]),
            clock=self.clock,
            put_blob=self._blob,
            randomness=Ports().randomness,
            control=Sessions(),
        )
        self.agent = Agent(AgentRecorder(self.state, log), around)

    async def _keep(self, batch: Sequence[Event]) -> Sequence[Event]:
        self.journal.extend(batch)
        return batch

    async def _blob(self, content: bytes) -> str:
        return "0" * 64

    async def call(
        self, action: str, tool: str, command: str, args: Mapping[str, Any], context: CallContext
    ) -> ToolResult:
        code = self._answers[min(len(self.calls), len(self._answers) - 1)]
        status = self._statuses.get(len(self.calls))
        self.calls.append(dict(args))
        data: dict[str, Any] = {"message": f"{command}: {code}"}
        if status is not None:
            data["status_code"] = status
        return ToolResult(ResultStatus.SUCCESS if code is None else ResultStatus.FAILURE, data, code)

    async def plan(self, request: PlanRequest) -> PlanProposal:
        return PlanProposal((self._step,), (), "scripted")

    async def perceive(self, session: SandboxSession) -> tuple[dict[str, Any], SandboxSession]:
        return {}, session

    async def bytes_overwritten(self, *_args: Any) -> int:
        return 0

    async def run(self) -> AgentState:
        """Let the agent pursue its goal until it rests."""
        self.begin()
        await self.until(lambda state: state.intervention or not state.open_goals)
        await self.agent.close()
        return self.state

    def begin(self) -> None:
        self.agent.open("one", 7)
        self.agent.start()
        self.agent.handle(cmd.AdoptGoal(agent="a", text="something"), "operator:x")
        self.agent.handle(cmd.Run(agent="a"), "operator:x")

    async def until(self, holds: Callable[[AgentState], object]) -> None:
        for _ in range(TURNS):
            assert not self.agent.fault
            if holds(self.state):
                return
            await asyncio.sleep(0)
        raise AssertionError("it did not come to rest")

    def said(self, kind: type[ev.Payload]) -> list[Any]:
        """What the durable events of one kind say."""
        return [ev.payload_of(event) for event in self.journal if event.kind == kind.kind]


class WaitingClock(HeldClock):
    """A held clock that knows who waits on it now."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = 0

    async def sleep(self, seconds: float) -> None:
        self.waiting += 1
        try:
            await super().sleep(seconds)
        finally:
            self.waiting -= 1


READ = PlanStep("1", "read it", tool="simple_coder", command="read", args={"path": "a"})
WRITE = PlanStep("1", "add to it", tool="simple_coder", command="append", args={"path": "a", "content": "b"})
PUT = PlanStep("1", "put it", tool="depot", command="put", args={"what": "x"})
PUT_BY_KEY = PlanStep("1", "put it", tool="depot", command="put", args={"what": "x", "idempotency_key": "k1"})
