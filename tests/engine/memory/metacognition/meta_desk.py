"""A real agent whose thinker, tools and model are scripted, and what must hold of its stream in the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from engine.agent.actions.snapshots import NoSaver
from engine.agent.agent import Agent
from engine.agent.perception import AgentEnvironment
from engine.agent.recorder import AgentRecorder
from engine.api.replay import replay_stream
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.actions import ErrorCode, ResultStatus, Reversibility, SandboxSession, Survey, ToolResult
from engine.core.agents import AgentConfig
from engine.core.fold import fold
from engine.core.journal import GENESIS, Event
from engine.core.metacognition import JobOutcome, MetaSettings, MetaTask
from engine.core.plan import Op, PlanStep
from engine.core.ports import CallContext, CommandSpec, Ports
from engine.core.state import AgentState
from engine.core.streams import StreamLog
from engine.core.thinking import PlanProposal, PlanRequest, ThinkingError
from engine.memory.metacognition.job import BackgroundJobResult
from engine.memory.metacognition.runner import BackgroundRunner, JobEnding
from engine.models.messages import ModelAnswer, StopReason, Text, Usage
from engine.models.model_table import Capabilities
from engine.models.request import ModelRequest
from engine.sandbox.jobs import Sessions
from engine.tools.belief_tool import BeliefTool
from engine.tools.registry import ToolRegistry
from engine.tools.simple_coder_commands import COMMANDS
from tests.engine.memory.metacognition.virtual_time import LoopClock

CALLS = 400
"""Turns of the loop that something may take to come about."""


class Coder:
    """The sandbox tool's commands; what they answer is scripted elsewhere."""

    id = "simple_coder"
    description = "scripted"
    commands: Mapping[str, CommandSpec] = COMMANDS

    async def call(self, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        raise AssertionError("the scripted toolbox answers")


def good(path: str = "") -> ToolResult:
    return ToolResult(ResultStatus.SUCCESS, {"message": f"wrote {path}"})


def bad(message: str = "there is no such file") -> ToolResult:
    return ToolResult(ResultStatus.ERROR, {"message": message}, ErrorCode.NOT_FOUND)


def write(path: str, number: int = 1) -> PlanStep:
    return PlanStep(str(number), f"write {path}", tool="simple_coder", command="write",
                    args={"path": path, "content": "x"})  # fmt: skip


def achieve(goal: str, number: int = 1) -> PlanStep:
    return PlanStep(str(number), goal, op=Op.ACHIEVE, args={"goal": goal})


def read(path: str, number: int = 1) -> PlanStep:
    return PlanStep(str(number), f"read {path}", tool="simple_coder", command="read", args={"path": path})


class World:
    """Thinker, tools and surroundings, as a test scripts them."""

    name = "claude"
    free = False

    def __init__(self) -> None:
        self.asked: list[PlanRequest] = []
        self.plans: list[Sequence[PlanStep]] = []
        """Given one after the other; the last one over and over."""
        self.next_plan: Callable[[], Sequence[PlanStep]] | None = None
        """Where it is set it gives the plans."""
        self.trouble: Callable[[], ThinkingError | None] = lambda: (
            self.troubles.pop(0) if self.troubles else None
        )
        self.troubles: list[ThinkingError] = []
        self.takes_s = 0.0
        self.answers: Callable[[int, str, Mapping[str, Any]], ToolResult] = lambda _n, _c, _a: good()
        self.calls = 0
        self.after_call: Callable[[int], Awaitable[None]] | None = None

    async def plan(self, request: PlanRequest) -> PlanProposal:
        self.asked.append(request)
        await asyncio.sleep(0.1)
        if (trouble := self.trouble()) is not None:
            raise trouble
        if self.next_plan is not None:
            return PlanProposal(tuple(self.next_plan()), thinker=self.name)
        steps = self.plans.pop(0) if len(self.plans) > 1 else self.plans[0]
        return PlanProposal(tuple(steps), thinker=self.name)

    async def call(
        self, action: str, tool: str, command: str, args: Mapping[str, Any], context: CallContext
    ) -> ToolResult:
        self.calls += 1
        if self.takes_s:
            await asyncio.sleep(self.takes_s)
        answer = self.answers(self.calls, command, args)
        if self.after_call is not None:
            await self.after_call(self.calls)
        return answer

    async def perceive(self, session: SandboxSession) -> tuple[dict[str, Any], SandboxSession]:
        return {}, session

    async def bytes_overwritten(self, *_args: Any) -> int:
        return 0

    async def survey(self, *args: Any) -> Survey:
        return Survey()


class Writer:
    """A model that writes what it is told to, after a while."""

    def __init__(self, *answers: dict[str, Any], takes_s: float = 0.0) -> None:
        self.answers = list(answers)
        self.takes_s = takes_s
        self.requests: list[ModelRequest] = []
        self.next_answer: Callable[[], dict[str, Any]] = lambda: self.answers.pop(0)

    def capabilities(self, model: str) -> Capabilities:
        return Capabilities(model)

    async def send(self, request: ModelRequest, *, record: Any, **_how: Any) -> ModelAnswer:
        self.requests.append(request)
        await asyncio.sleep(self.takes_s)
        said = Text(json.dumps(self.next_answer()))
        answer = ModelAnswer((said,), StopReason.END_TURN, usage=Usage(10, 5), model=request.model)
        record(request, answer)
        return answer


class MetaDesk:
    """One agent with its stream; begin it with `open`, and always `close` it."""

    def __init__(
        self, world: World | None = None, *, runner: BackgroundRunner | None = None, **around: Any
    ) -> None:
        self.world = world or World()
        self.runner = runner
        self.around = around
        self.events: list[Event] = []
        self.agent: Agent

    @property
    def state(self) -> AgentState:
        return self.agent.state

    async def keep(self, batch: Sequence[Event]) -> Sequence[Event]:
        self.events += batch
        return batch

    def open(self, settings: MetaSettings | None = None, **config: Any) -> MetaDesk:
        clock = self.around.pop("clock", None) or LoopClock()
        commit = self.around.pop("commit", None) or self.keep
        stream = self.around.pop("stream", "pilot")
        around = AgentEnvironment(
            thinker=self.world,
            toolbox=self.world,
            saver=NoSaver(),
            perceiver=self.world,
            registry=ToolRegistry([Coder(), BeliefTool()]),
            clock=clock,
            put_blob=self._put,
            randomness=Ports().randomness,
            control=Sessions(),
            background=self.runner,
            **self.around,
        )
        self.agent = Agent(AgentRecorder(fold([]), StreamLog(stream, 0, GENESIS, clock, commit)), around)
        created = ev.AgentCreated(
            agent_id=stream, agent_type="bdi_agent", config=AgentConfig(thinker="claude", **config)
        )
        self.agent.append(created, "operator:test")
        self.agent.open("session", 1)
        self.agent.begin_metacognition(settings or MetaSettings())
        return self

    async def _put(self, content: bytes) -> str:
        raise AssertionError("no answer is large here")

    def do(self, kind: type[cmd.Command], **fields: Any) -> None:
        receipt = self.agent.handle(kind(**fields), "operator:test")
        assert receipt.ok, receipt.message

    def fly(self, *steps: PlanStep, goal: str = "get it done") -> None:
        """Let the agent run for a goal with this plan."""
        if steps:
            self.world.plans.append(steps)
        self.do(cmd.AdoptGoal, text=goal)
        self.do(cmd.Run)
        self.agent.start()

    async def until(self, holds: Callable[[AgentState], object], patience_s: float = 300.0) -> None:
        async with asyncio.timeout(patience_s):
            while not holds(self.state):
                assert not self.agent.fault, self.agent.fault
                await asyncio.sleep(0.01)

    async def close(self) -> None:
        await self.agent.close()
        if self.runner is not None:
            await self.runner.close()

    async def replays(self) -> None:
        """The stream comes out the same again, without thinker, tools, model and runner."""
        await self.agent.log.commit()
        assert fold(self.events) == self.state
        replay = await replay_stream(self.events, _no_blob)
        assert replay.matches, replay.difference

    def payloads(self, kind: type[ev.Payload]) -> list[Any]:
        return [said for event in self.events if isinstance(said := ev.payload_of(event), kind)]

    # -------------------------------------------------------------- by hand, without a cycle

    def say(self, payload: ev.Payload, actor: str = "agent") -> Event:
        return self.agent.append(payload, actor, self.state.run_event)

    def goal(self, name: str = "g1") -> None:
        self.say(ev.GoalAdopted(goal=name, text=f"reach {name}"), "operator:test")
        self.say(ev.GoalSelected(goal=name))
        self.say(ev.AgentResumed(), "operator:test")

    def act(self, ok: bool = True, path: str = "", *, command: str = "write", ms: int = 5) -> None:
        """An action of the agent's own, from request to end."""
        number = self.state.next_id.get("a", 0) + 1
        name, args = f"a{number}", {"path": path or f"f{number}"}
        self.say(
            ev.ActionRequested(
                action=name, step=f"s{number}", goal=self.state.current_goal, tool="simple_coder",
                command=command, args=args,
            )
        )  # fmt: skip
        self.say(ev.ActionStarted(action=name, undo=Reversibility.NONE, mutates=command == "write"))
        status, code = (ResultStatus.SUCCESS, None) if ok else (ResultStatus.ERROR, ErrorCode.NOT_FOUND)
        self.say(
            ev.ActionFinished(
                action=name, status=status, code=code, result={}, duration_ms=ms, summary=f"{command} {path}"
            )
        )

    def boundary(self) -> list[MetaTask]:
        """The reflect stage; what it began."""
        before = {job.id for job in self.state.meta.running}
        self.agent.reflector.reflect()
        return [job.task for job in self.state.meta.running if job.id not in before]

    def end(self, task: MetaTask, outcome: JobOutcome = JobOutcome.DONE, **result: Any) -> None:
        """The end of a job as the runner tells it."""
        job = self.state.meta.doing(task)
        assert job is not None, f"{task} does not run"
        done = outcome is JobOutcome.DONE
        ending = JobEnding(
            outcome, "" if done else "no", BackgroundJobResult("done", **result) if done else None
        )
        self.agent.reflector.job_over(job.id, ending)

    def end_all(self) -> None:
        for job in self.state.meta.running:
            self.end(job.task)


async def _no_blob(_digest: str) -> bytes | None:
    return None
