"""The crew: agents that hand work to each other, under one manager.

`Engine` opens it when it is first needed. Commands are carried out by `engine.crew.command_handlers`, runs
call `service`, everything that happens is an event of the stream `workspace@crew`, and `state` is its fold.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from engine.agent.steering.budget_status import BudgetStatus
from engine.core import crew as ce
from engine.core.crew import CrewSettings
from engine.core.ports import Clock
from engine.core.store.port import JournalStore
from engine.core.trust import FolderTrust
from engine.crew.event_stream import EventStream
from engine.crew.groups import HandoffGroups, SelectiveMode
from engine.crew.handoff_results import HandoffResults
from engine.crew.handoffs.admission import AdmissionChecks, AgentRegistry, key_by_prefix
from engine.crew.handoffs.contexts import SessionContext
from engine.crew.handoffs.lifecycle import Handoffs
from engine.crew.handoffs.schedule import Alarms, Deadlines, Permits, time_of
from engine.crew.ontology.context import HumanRequest
from engine.crew.ontology.results import HandoffResult
from engine.crew.operator_requests import CONVERSATION, OperatorRequests
from engine.crew.ports import CrewBuilds, Lacks, Worker, no_servers
from engine.crew.run_service import RunService, recover, suspend
from engine.crew.speaker import SpeakerStack
from engine.crew.state import CrewState, Handoff

if TYPE_CHECKING:
    from engine.models.completion import ModelClient
    from engine.tools.mcp.workspace_servers import Servers


PLUGINS = ("engine.crew.worker", "engine.crew.builds")
"""Modules that extend an opened crew: `plug_in(crew)`, which may return a coroutine."""


class CrewEngine(Protocol):
    """What a crew needs of the engine."""

    workspace: Path
    root: Path
    """The sandbox root."""
    session: str
    store: JournalStore
    trust: FolderTrust | None
    """What the user trusts of the folder; None for all."""
    model: ModelClient | None
    """Asks the model that thinks, within the workspace's budget."""

    @property
    def model_name(self) -> str:
        """Its name."""

    @property
    def clock(self) -> Clock:
        """What time it is."""

    @property
    def crew_settings(self) -> CrewSettings:
        """Its limits."""

    @property
    def servers(self) -> Servers | None:
        """The MCP servers; None where there are none."""

    def budgets(self, agent: str, goal: str = "") -> tuple[BudgetStatus, ...]:
        """The budgets that a run draws on; without one, the workspace's."""


class Crew:
    """Open it with `open`, and always `close` it."""

    def __init__(self, engine: CrewEngine, stream: EventStream, lacks: Lacks | None = None) -> None:
        self.engine, self.stream = engine, stream
        clock, settings = engine.clock, engine.crew_settings
        self._alarms = Alarms(clock)
        servers = engine.servers
        self.lacks = lacks or (servers.lacks if servers is not None else no_servers)
        """What is missing of a server's tools."""
        self.checks = AdmissionChecks(self.lacks, self._no_budget)
        self.permits = Permits(
            settings.model_calls, clock.monotonic, lambda name: self.handoffs.moves.priority(name)
        )
        setting = SessionContext(engine.session, lambda: time_of(clock))
        self.handoffs = Handoffs(stream, clock, setting, self.checks, self.permits)
        self.handoffs.moves.deadlines = Deadlines(
            clock,
            self._alarms,
            lambda name: [handoff.id for handoff in self.state.ancestors(name)],
            self.handoffs.moves.expire,
        )
        self.requests = OperatorRequests(self.handoffs, engine.session)
        self.registry = AgentRegistry(stream)
        self.attended = settings.attended
        """Whether an operator can be asked."""
        self.floor = SpeakerStack(self.handoffs, self.requests, attended=self.attended)
        self.results = HandoffResults(self.handoffs, self.requests, self.floor)
        self.groups = HandoffGroups(self.handoffs)
        self.selective = SelectiveMode(self.handoffs, self.groups, learns=settings.learn)
        self.service = RunService(self.handoffs, self.requests, self.results, self.groups, self.floor)
        self.handoffs.moves.ended += [self.floor.ended, self.requests.ended, self.groups.member_ended]
        self.builds: CrewBuilds | None = None
        """Builds agents; None where none are built (`engine.crew.builds.builds_of`)."""

    @classmethod
    async def open(
        cls, engine: CrewEngine, *, worker: Worker | None = None, lacks: Lacks | None = None
    ) -> Self:
        """Read what there is, plug in the parts that are there, and settle what the last session left.

        Raises:
            JournalError: the stream cannot be read or written.
        """
        crew = cls(engine, await EventStream.open(engine.store, engine.clock), lacks)
        crew.handoffs.moves.worker = worker
        if crew.state.remote is not (remote := engine.crew_settings.remote):
            crew.stream.append(ce.RemoteAgents(on=remote))
        for name in PLUGINS if worker is None else ():
            plugin = await asyncio.to_thread(import_module, name)
            registered = plugin.plug_in(crew)
            if registered is not None:
                await registered
        foreign = engine.trust is not None and engine.trust.foreign
        await recover(crew.handoffs, crew.requests, crew.groups, foreign=foreign)
        return crew

    async def close(self) -> None:
        """End what runs, in good order; what waits, rests or is queued is there in the next session."""
        await suspend(self.handoffs)
        await self._alarms.close()
        await self.stream.close()

    # -------------------------------------------------------------- what there is

    @property
    def state(self) -> CrewState:
        """Everything that it knows; it keeps changing."""
        return self.stream.state

    @property
    def thinks(self) -> bool:
        """Whether there is a model; work that needs one is refused without."""
        worker = self.handoffs.moves.worker
        return worker is None or worker.thinks

    @property
    def needs(self) -> tuple[HumanRequest, ...]:
        """What waits for the operator, the most severe first, then the oldest; no turns of a conversation."""
        asked = self.state.open_requests()
        return tuple(request for request in asked if request.reason_code != CONVERSATION)

    def handoff(self, name: str) -> Handoff:
        """A handoff by its id, or a unique beginning of it.

        Raises:
            HandoffError: none or several are meant.
        """
        return self.state.handoffs[key_by_prefix("handoff", name, self.state.handoffs, "h-")]

    async def wait(self, handoff: str) -> HandoffResult:
        """Wait for the end of a handoff.

        Raises:
            KeyError: there is none.
        """
        return await self.handoffs.outcome(self.state.handoffs[handoff].id)

    # -------------------------------------------------------------- budgets

    def _no_budget(self, run: str) -> str:
        for standing in self.engine.budgets(run):
            for line in standing.lines:
                if line.limit and line.left is not None and line.left <= 0:
                    return f"nothing is left of the budget of {standing.budget}: {line.kind}"
        return ""
