"""A crew on a real journal with a clock that the test moves, and a worker whose runs are coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from engine.agent.steering.budget_status import BudgetStatus
from engine.core.command import Command, Receipt
from engine.core.crew import CrewSettings
from engine.core.crew_commands import Delegate, ForCrew
from engine.core.ports import SystemClock
from engine.core.store.sqlite import SqliteJournal
from engine.core.trust import FolderTrust
from engine.crew.command_handlers import run_crew_command
from engine.crew.crew import Crew
from engine.crew.handoffs.schedule import Permits
from engine.crew.ontology.context import HandoffContext
from engine.crew.ontology.kinds import ErrorCode, HandoffState
from engine.crew.ontology.results import HandoffResult, Usage
from engine.crew.ontology.spec_parser import parse_spec
from engine.crew.ports import HandoffError, HandoffRequest, Lacks, RunningHandoff
from engine.crew.run_service import RunService
from tests.patience import PATIENCE_S

CLEAR = {
    "what": "Churn of pilots rises",
    "who": "Two hundred pilots of one line",
    "success": "Under 5 % a year",
}


class HandClock:
    """Time passes when the test says so."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> str:
        moment = datetime(2027, 1, 15, 8, tzinfo=UTC) + timedelta(seconds=self.seconds)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.seconds + seconds, waiting))
        await waiting

    def advance(self, seconds: float) -> None:
        """Let time pass, and wake who slept until then."""
        self.seconds += seconds
        due = [one for one in self._sleepers if one[0] <= self.seconds + 1e-9]
        self._sleepers = [one for one in self._sleepers if one not in due]
        for _, waiting in due:
            if not waiting.done():
                waiting.set_result(None)


@dataclass
class Ground:
    """What the crew stands on."""

    workspace: Path
    store: SqliteJournal
    clock: HandClock
    servers: None = None
    session: str = "session-1"
    crew_settings: CrewSettings = field(default_factory=CrewSettings)
    trust: FolderTrust | None = None
    standing: tuple[BudgetStatus, ...] = ()
    submitted: list[Command] = field(default_factory=list)

    async def submit(self, command: Command, *, operator: str = "operator") -> Receipt:
        self.submitted.append(command)
        return Receipt(ok=True, message=f"{operator} asks")

    @property
    def root(self) -> Path:
        return self.workspace / "sandbox"

    def budgets(self, agent: str, goal: str = "") -> tuple[BudgetStatus, ...]:
        return self.standing


@dataclass
class Job:
    """A handoff as a script of the test sees it."""

    run: str
    handoff: RunningHandoff
    desk: RunService
    permits: Permits
    worker: Worker

    @property
    def context(self) -> HandoffContext:
        return self.handoff.context

    async def delegate(self, to: str, task: str = "go on", **how: Any) -> HandoffResult:
        return await self.desk.delegate(self.run, HandoffRequest(to, task, **how))

    def model(self) -> Any:
        """A model call: `async with job.model():`."""
        self.worker.calls += 1
        return self.permits.held(self.run)

    def say(self, text: str) -> None:
        self.worker.said[self.run] = text

    def done(self, text: str = "done", **more: Any) -> HandoffResult:
        return result_of(self.context, text, **more)


def result_of(context: HandoffContext, text: str = "done", **more: Any) -> HandoffResult:
    """A success, or with `code` a failure."""
    code: ErrorCode | None = more.pop("code", None)
    given: dict[str, Any] = {
        "handoff_id": context.handoff_id,
        "from_agent": context.to_agent,
        "to_agent": context.return_to,
        "success": code is None,
        "output": text,
        "error": None if code is None else str(code).lower(),
        "error_code": code,
        "state": HandoffState.COMPLETED if code is None else HandoffState.FAILED,
    }
    return HandoffResult(**given | more)


Script = Callable[[Job], Awaitable[HandoffResult | str | None]]


class Worker:
    """Makes runs of coroutines: a script for each agent."""

    thinks = True

    def __init__(self) -> None:
        self.scripts: dict[str, Script] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.said: dict[str, str] = {}
        self.began: list[str] = []
        self.ended: list[str] = []
        self.resumed: list[str] = []
        self.paused: list[str] = []
        self.calls = 0
        self.crew: Crew | None = None
        self.deaf = False
        """Whether runs do not end when they are told to."""

    async def begin(self, handoff: RunningHandoff, parent: str) -> str:
        run = f"{handoff.context.to_agent}-{len(self.began) + 1}"
        self.began.append(handoff.context.to_agent)
        self.tasks[run] = asyncio.create_task(self._work(run, handoff), name=run)
        return run

    async def _work(self, run: str, handoff: RunningHandoff) -> None:
        assert self.crew is not None
        job = Job(run, handoff, self.crew.service, self.crew.permits, self)
        script = self.scripts.get(handoff.context.to_agent)
        try:
            made = await script(job) if script is not None else job.done()
        except HandoffError as error:
            await job.desk.ended(run, ok=False, text=error.message, code=error.code)
            return
        finally:
            self.ended.append(handoff.context.to_agent)
        if isinstance(made, HandoffResult):
            await job.desk.accept(run, made)
        elif made is not None:
            await job.desk.ended(run, ok=True, text=made)

    async def resume(self, handoff: RunningHandoff) -> None:
        self.resumed.append(handoff.context.handoff_id)
        if handoff.run not in self.tasks:
            self.tasks[handoff.run] = asyncio.create_task(self._work(handoff.run, handoff))

    async def pause(self, run: str) -> None:
        self.paused.append(run)

    async def recall(self, runs: Mapping[str, str]) -> Mapping[str, str]:
        return {}

    async def stop(self, run: str, reason: str) -> None:
        if self.deaf:
            await asyncio.Event().wait()
        task = self.tasks.get(run)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def usage(self, run: str) -> Usage:
        return Usage(calls=1, input_tokens=10, output_tokens=5)

    def streamed(self, run: str) -> str:
        return self.said.get(run, "")


class Flight:
    """One crew in a workspace; sessions of it follow each other."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.clock = HandClock()
        self.worker = Worker()
        self.store: SqliteJournal
        self.ground: Ground
        self.crew: Crew
        self.sessions = 0

    async def open(
        self,
        *,
        calls: int = 4,
        learn: bool = True,
        lacks: Lacks | None = None,
        trust: FolderTrust | None = None,
        remote: bool = False,
    ) -> Crew:
        self.sessions += 1
        self.store = await SqliteJournal.open(self.workspace, clock=SystemClock())
        settings = CrewSettings(model_calls=calls, learn=learn, remote=remote)
        self.ground = Ground(
            self.workspace, self.store, self.clock, None, f"session-{self.sessions}", settings, trust
        )
        self.crew = self.worker.crew = await Crew.open(self.ground, worker=self.worker, lacks=lacks)
        return self.crew

    async def close(self) -> None:
        await self.crew.close()
        await self.store.close()

    async def kill(self) -> None:
        """End without a word, as a killed process does: only what is durable is there afterwards."""
        await self.crew.stream.commit()
        self.crew.handoffs.moves.closing = True
        for task in self.worker.tasks.values():
            task.cancel()
        await asyncio.gather(*self.worker.tasks.values(), return_exceptions=True)
        await self.crew.handoffs.moves.drop_tasks()
        await self.crew._alarms.close()
        await self.store.close()
        self.worker.tasks.clear()

    async def register(self, *ids: str, **more: Any) -> None:
        for one in ids:
            await self.crew.registry.register(parse_spec(spec_of(one, **more)))

    async def do(self, command: ForCrew, *, ok: bool = True) -> dict[str, Any]:
        receipt = await run_crew_command(self.crew, command, "operator:ann")
        assert receipt.ok is ok, receipt.message
        return {"message": receipt.message, **receipt.data}

    async def hand(self, to: str, task: str = "look at churn", **more: Any) -> str:
        """Hand a task over; gives the handoff's id, whether it was rejected or not."""
        given = {"clarity": CLEAR, **more}
        receipt = await run_crew_command(self.crew, Delegate(to=to, task=task, **given), "operator:ann")
        return str(receipt.data["handoff"])

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait for something that follows from what was done."""
        async with asyncio.timeout(PATIENCE_S):
            while not true():
                await asyncio.sleep(0.001)

    def state(self, handoff: str) -> HandoffState:
        return self.crew.state.handoffs[handoff].state


async def group_results(crew: Crew, group: str) -> tuple[HandoffResult, ...]:
    """Wait for the end of a group; its results in the order given."""
    while not crew.state.groups[group].ended:
        await crew.stream.changed()
    results = (crew.state.handoffs[name].result for name in crew.state.groups[group].handoffs)
    return tuple(result for result in results if result is not None)


async def alone(crew: Crew) -> None:
    """Take the built-in agents out, so that only those of the test are there."""
    for one in list(crew.state.agents):
        await crew.registry.remove(one)


def spec_of(name: str, *, kind: str = "operator", may: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """A spec of any type that asks for nothing but `what`, and may call anybody it names."""
    parts: dict[str, Any] = {
        "pipeline": {"phases": [{"id": "one", "name": "One"}]},
        "guided": {"steps": [{"id": "one", "title": "One"}]},
        "collaborative": {"sub_agents": [{"id": "a", "role": "A"}, {"id": "b", "role": "B"}]},
    }
    receives = more.pop("receives", {"requires_who": False, "requires_success": False, "min_clarity": 0.3})
    return {
        "id": name,
        "name": name.replace("-", " ").title(),
        "type": kind,
        "description": f"The agent {name}.",
        "handoff": {"receives": receives, "routing": {"can_delegate_to": list(may)}},
        **parts.get(kind, {}),
        **more,
    }
