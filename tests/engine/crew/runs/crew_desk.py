"""A small manager of handoffs over an ordinary engine, so that runs are tested without the real one."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core.approvals import Policy
from engine.core.budgets import SpendingLimits
from engine.core.ports import Ports
from engine.core.state import AgentState
from engine.crew.ontology.context import Answer, HandoffContext, new_handoff_id
from engine.crew.ontology.criteria import Rubric, RubricVerdict, Subject
from engine.crew.ontology.kinds import ErrorCode, HandoffState, HandoffType
from engine.crew.ontology.results import HandoffResult
from engine.crew.ontology.spec import AgentSpec, SkillFiles
from engine.crew.ontology.spec_parser import parse_spec
from engine.crew.ports import HandoffError, HandoffRequest, OperatorQuestion, RunningHandoff
from engine.crew.worker import Runs
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint, Retries
from tests.engine.agent.engine_flight import (
    Flight,
    QuickClock,
    journal_holds_together,
    live_state_is_the_fold,
)
from tests.messages_server import MessagesServer, Reply, object_call
from tests.messages_server.server import Seen
from tests.patience import PATIENCE_S

MODEL = "claude-opus-4-6"
WHEN = datetime(2026, 1, 1, tzinfo=UTC)
Says = Callable[[OperatorQuestion], str | tuple[str, str] | None]


class SmallDesk:
    """Begins what is asked for at once, in no queue, and keeps what came of it."""

    def __init__(self, *specs: AgentSpec, says: Says | None = None, permits: int = 4) -> None:
        self.specs = {spec.id: spec for spec in specs}
        self.says = says
        self.runs: Runs
        self.handoffs: dict[str, RunningHandoff] = {}
        """By run."""
        self.results: dict[str, asyncio.Future[HandoffResult]] = {}
        """By handoff."""
        self.asked: list[OperatorQuestion] = []
        self.kept: list[tuple[str, str, str]] = []
        self.waiting: dict[str, str] = {}
        self.went_on: list[str] = []
        self.rules: list[str] = []
        self.late: list[HandoffResult] = []
        self.floor: list[str] = []
        self.ideas: list[str] = []
        self.limit = asyncio.Semaphore(permits)
        self.at_once = self.most_at_once = 0

    # ------------------------------------------------------------ Desk

    def handoff_of(self, run: str) -> RunningHandoff | None:
        return self.handoffs.get(run)

    def callable_by(self, run: str, *, remote: bool = False) -> Sequence[AgentSpec]:
        found = self.handoff_of(run)
        assert found is not None
        return [one for one in self.specs.values() if one.id in found.spec.handoff.routing.can_delegate_to]

    async def skill_of(self, run: str, opened: Sequence[str] = ()) -> SkillFiles | None:
        return None

    async def delegate(self, run: str, ask: HandoffRequest) -> HandoffResult:
        return await self.hand(self._context(run, ask), ask.spec or self.specs[ask.to], run)

    async def gather(
        self, run: str, asks: Sequence[HandoffRequest], *, min_success: int | None = None
    ) -> Sequence[HandoffResult]:
        return await asyncio.gather(*(self.delegate(run, ask) for ask in asks))

    async def transfer(self, run: str, to: str, reason: str) -> str:
        if not self.specs[to].handoff.supports.transfer:
            raise HandoffError(ErrorCode.NOT_CALLABLE, f"{to} does not take the floor")
        self.floor.append(to)
        return f"{to} has the floor"

    async def accept(self, run: str, result: HandoffResult) -> None:
        future = self.results[result.handoff_id]
        if future.done():
            self.late.append(result)
            raise HandoffError(ErrorCode.BAD_CONTEXT, "the handoff has ended")
        future.set_result(result.model_copy(update={"usage": self.runs.usage(run)}))

    async def ask(self, run: str, question: OperatorQuestion) -> Answer:
        self.asked.append(question)
        said = self.says(question) if self.says is not None else None
        if said is None and question.blocking:
            await asyncio.Event().wait()
        option, text = said if isinstance(said, tuple) else (None, said or "")
        return Answer(option_id=option, text=text, by="operator", at=WHEN)

    async def judge(
        self, run: str, rubrics: Sequence[Rubric], subject: Subject
    ) -> Mapping[Rubric, RubricVerdict]:
        return await self.runs.judge(run, rubrics, subject)

    async def log(self, run: str) -> frozenset[str]:
        return await self.runs.log(run)

    async def park(self, run: str, idea: str) -> str:
        self.ideas.append(idea)
        return f"i-{len(self.ideas)}"

    def parked(self, run: str) -> Sequence[str]:
        return tuple(self.ideas)

    async def keep(self, run: str, what: str, progress: dict[str, Any], note: str = "") -> None:
        json.dumps(progress)
        self.kept.append((run, what, note))
        self.handoffs[run] = replace(self.handoffs[run], progress=progress)

    # ------------------------------------------------------------ Watcher, Permits

    async def ended(self, run: str, *, ok: bool, text: str, code: ErrorCode | None = None) -> None:
        found = self.handoff_of(run)
        assert found is not None
        context = found.context
        state = HandoffState.COMPLETED if ok else HandoffState.FAILED
        result = HandoffResult(
            handoff_id=context.handoff_id,
            from_agent=context.to_agent,
            to_agent=context.return_to,
            success=ok,
            output=text if ok else "",
            error=None if ok else text,
            error_code=code,
            state=state,
        )
        self.results[context.handoff_id].set_result(result)

    async def wait_began(self, run: str, why: str) -> None:
        self.waiting[run] = why

    async def wait_ended(self, run: str) -> None:
        self.went_on.append(run)

    async def allowed(self, run: str, rule: str) -> None:
        self.rules.append(rule)

    async def rules_of(self, run: str) -> Sequence[str]:
        return ()

    @asynccontextmanager
    async def held(self, handoff: str) -> AsyncIterator[None]:
        assert handoff in self.results
        async with self.limit:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            try:
                yield
            finally:
                self.at_once -= 1

    # ------------------------------------------------------------ what a test does

    def _context(self, run: str, ask: HandoffRequest) -> HandoffContext:
        above = self.handoffs[run].context
        return above.derive(
            from_agent=above.to_agent,
            to_agent=ask.to,
            return_to=above.to_agent,
            task_description=ask.task,
            expected_output=ask.expected,
            handoff_type=HandoffType.DELEGATE,
            metadata=ask.metadata,
            lineage=(*above.lineage, above.to_agent),
        )

    async def hand(self, context: HandoffContext, spec: AgentSpec, parent: str = "") -> HandoffResult:
        """Begin a handoff and wait for its result; cancelled, it stops the run."""
        run = await self.begin(context, spec, parent)
        try:
            return await self.results[context.handoff_id]
        except asyncio.CancelledError:
            await self.runs.stop(run, "cancelled")
            raise

    async def begin(self, context: HandoffContext, spec: AgentSpec, parent: str = "", **progress: Any) -> str:
        handoff = RunningHandoff(context, spec, HandoffState.RUNNING, "", progress)
        self.results[context.handoff_id] = asyncio.get_running_loop().create_future()
        run = await self.runs.begin(handoff, parent)
        self.handoffs[run] = replace(handoff, run=run)
        return run


def task(spec: AgentSpec, words: str = "Look at the churn.", **more: Any) -> HandoffContext:
    """What a spec is handed."""
    said = {
        "handoff_id": new_handoff_id(),
        "from_agent": "user",
        "to_agent": spec.id,
        "task_description": words,
        "timestamp": WHEN,
    }
    return HandoffContext.read(said | more)


def spec(ident: str, kind: str, **more: Any) -> AgentSpec:
    """A spec of a type."""
    return parse_spec({"id": ident, "name": ident.title(), "type": kind, "description": f"a {kind}", **more})


class Scene(Flight):
    """An engine with a small desk."""

    def __init__(self, engine: Engine, desk: SmallDesk, server: MessagesServer | None) -> None:
        super().__init__(engine.workspace, QuickClock())
        self.engine, self.desk = engine, desk
        self._server = server

    @property
    def server(self) -> MessagesServer:
        assert self._server is not None
        return self._server

    def told(self, request: int) -> str:
        """What one request said to the model, its tools left out."""
        body = self.server.requests[request].body
        return json.dumps([body.get("system"), body["messages"]], ensure_ascii=False)

    def offered(self, request: int) -> dict[str, Any]:
        """The tools of one request, by name."""
        return {tool["name"]: tool for tool in self.server.requests[request].body.get("tools", ())}

    async def hand(self, one: AgentSpec, words: str = "Look at the churn.", **more: Any) -> HandoffResult:
        async with asyncio.timeout(PATIENCE_S):
            return await self.desk.hand(task(one, words, **more), one)

    async def over(self, run: str) -> AgentState:
        """The state of a run whose goal has ended."""
        agent = self.engine._agents[run]
        await self.holds(lambda: agent.state.goals and not agent.state.open_goals)
        return await self.state(run)

    async def holds(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not holds():
                await asyncio.sleep(0.002)


Script = Sequence[Reply | Callable[[Seen], Reply]]


@asynccontextmanager
async def opened(workspace: Path, desk: SmallDesk, config: EngineConfig) -> AsyncIterator[Engine]:
    """An engine whose runs are handed out by a small desk."""
    engine = await Engine.open(workspace, ports=Ports(clock=QuickClock()), config=config)

    async def at_hand() -> SmallDesk:
        return desk

    desk.runs = engine.set_run_service(at_hand, permits=desk, colleagues=desk)
    await desk.runs.open(desk)
    try:
        yield engine
    finally:
        await desk.runs.close()
        await engine.close()


@asynccontextmanager
async def scene(
    tmp_path: Path,
    desk: SmallDesk,
    script: Script | Callable[[Seen], Reply] | None = None,
    *,
    model: str = MODEL,
    tiers: dict[str, str] | None = None,
    approvals: Policy | None = None,
    budget: SpendingLimits | None = None,
) -> AsyncIterator[Scene]:
    """An engine whose runs ask the scripted model, or none; in the end every stream is sound and replays."""
    server = None
    config = EngineConfig(approvals=approvals or Policy(), agent_budget=budget or SpendingLimits())
    if script is not None:
        server = MessagesServer([script] if callable(script) else list(script), repeat=callable(script))
        await server.start()
        choice = ModelChoice(
            Endpoint(server.url, "sk-test"), model, retries=Retries(attempts=1), tiers=tiers or {}
        )
        config = replace(config, model=choice)
    try:
        async with opened(tmp_path / "ws", desk, config) as engine:
            made = Scene(engine, desk, server)
            yield made
            ended = [one.run for one in desk.handoffs.values() if desk.results[one.context.handoff_id].done()]
            for run in ended:
                await made.over(run)
            for agent in engine.agents:
                await live_state_is_the_fold(made, agent)
    finally:
        if server is not None:
            await server.stop()
    await journal_holds_together(tmp_path / "ws")


def as_killed(workspace: Path, to: Path) -> Path:
    """What a kill at this moment leaves: the files, and of the journal what is durable."""
    shutil.copytree(workspace, to, ignore=shutil.ignore_patterns("*.db*", "lock"))
    name = Path(".pilothouse") / "journal.db"
    with closing(sqlite3.connect(workspace / name)) as source, closing(sqlite3.connect(to / name)) as copy:
        source.backup(copy)
    return to


def returns(output: str = "Churn comes from onboarding.", **fields: Any) -> Reply:
    """A result as a model returns it."""
    return object_call("return_result", output=output, **fields)
