"""What operators' programs use of an open workspace, whichever process its engine runs in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.agent.agent import Agent
from engine.agent.branches import Branches
from engine.agent.command_router import AgentBudgets, CommandRouter
from engine.agent.decisions.approvals import proposed_envelope
from engine.agent.live_agents import LiveAgents
from engine.agent.shared import EngineConfig
from engine.agent.steering.budget_status import BudgetStatus, budget_statuses
from engine.agent.steering.ledger import Ledger
from engine.agent.turn_scheduler import TurnScheduler
from engine.api.disk_quota import DiskQuota
from engine.core import commands as cmd
from engine.core.agents import Health
from engine.core.approvals import Envelope
from engine.core.breakpoints import read_break
from engine.core.budgets import SpendingLimits
from engine.core.fold import copy_state
from engine.core.journal import BlobError, Event, JournalError
from engine.core.memory import MemoryStatus
from engine.core.ports import Ports
from engine.core.state import AgentState
from engine.core.store.opening import blobs_of
from engine.core.store.port import DATA_DIRECTORY, JournalStore
from engine.core.streams import StreamHistory
from engine.crew.late_crew import LateCrew
from engine.improve.lazy import LazyMastermind
from engine.inquiry.dry_run import DryAnswer, dry_run_of
from engine.inquiry.inbox import (
    Need,
    NeedKind,
    in_order,
    need_of_crew,
    need_of_server,
    needs_of,
    needs_of_system,
    rules_of,
)
from engine.inquiry.waiting import Waiting, WaitKind, waiting_now
from engine.memory.errors import MemoryUnavailable
from engine.memory.memory import Memory
from engine.memory.recorder import MemoryRecorder
from engine.models.prompt_parts import PromptReader
from engine.planning.library.plan_library import PlanLibrary
from engine.sandbox.files import SANDBOX_DIRECTORY
from engine.sandbox.terminal import OperatorTerminal as OperatorTerminal
from engine.sandbox.tier import SandboxReport
from engine.tools.registry import ToolRegistry
from engine.tools.shared_coder import SharedCoder
from engine.tools.simple_coder import SimpleCoder

if TYPE_CHECKING:
    from engine.crew.crew import Crew
    from engine.improve.agent_creation import AgentService
    from engine.improve.mastermind import Mastermind
    from engine.inquiry.record import Record
    from engine.memory.requests import Request
    from engine.models.completion import ModelClient
    from engine.tools.mcp.workspace_servers import Servers


class EngineAwayError(JournalError):
    """It cannot be done with an engine of another process, or that one cannot be reached."""


class WorkspaceEngine(ABC):
    """An engine as it is operated: it takes commands and answers questions.

    What cannot be done with an engine of another process raises `EngineAwayError`, whose message says so.

    Args:
        workspace: the workspace's directory.
        config: how it is opened.
        ports: clock, ids and randomness.
        store: the journal.
        library: the procedural thinker's recipes.
    """

    session: str
    pace: TurnScheduler
    _coders: SharedCoder
    _crew: LateCrew
    _live: LiveAgents
    _mastermind: LazyMastermind
    _router: CommandRouter

    def __init__(
        self, workspace: Path, config: EngineConfig, ports: Ports, store: JournalStore, library: PlanLibrary
    ) -> None:
        self.workspace, self.config, self.store, self.library = workspace, config, store, library
        self.clock, self.ids, self.draw_seed = ports.clock, ports.ids, ports.seed
        self.root = config.sandbox or workspace / SANDBOX_DIRECTORY
        self.here = Path()
        """From where typed paths lead, where that is not this process's directory."""
        self.blobs = blobs_of(workspace, ports.clock)
        self.quota = DiskQuota(workspace / DATA_DIRECTORY, config.disk_mb)
        """The room that the data may take."""
        self.archived = ""
        """What was archived by itself, in a sentence."""
        self.registry = ToolRegistry()
        self.mastermind_settings, self.crew_settings = config.mastermind, config.crew
        self.memory: Memory | None = None
        """What the workspace's agents remember; it may still be opening. None before the engine is open."""
        self.servers: Servers | None = None
        """The MCP servers of the workspace; None where its settings name none."""
        self.model: ModelClient | None = None
        """Asks the model that thinks, on the workspace's budget; None where there is none."""
        self.model_name = config.model.name if config.model is not None else ""
        self.trust = config.trust
        self._ports, self._parts = ports, PromptReader(workspace, config.trust)
        self._client = config.model.client() if config.model is not None else None
        model_budget = config.model.budget if config.model is not None else SpendingLimits()
        usual = config.agent_budget.over(model_budget)
        self._budgets = AgentBudgets(Ledger(config.budget, usual, ports.clock.now))
        self._agents: dict[str, Agent] = {}
        self.time_travel = Branches(workspace, self.root, store, self._agents)
        """What going back, undoing and taking over a fork would change."""
        self._coder: SimpleCoder | None = None
        self._keeper: MemoryRecorder | None = None

    @abstractmethod
    async def submit(
        self, command: cmd.Command, *, operator: str = "operator", own: bool = False
    ) -> cmd.Receipt:
        """Carry out a command; `own` counts only in the engine's process."""

    @abstractmethod
    async def stopped(self) -> None:
        """Return when every stop has its last receipt."""

    @abstractmethod
    async def mastermind(self) -> Mastermind:
        """Who changes the system itself."""

    @abstractmethod
    async def crew(self) -> Crew:
        """Who manages agents that hand work to each other."""

    @abstractmethod
    async def agent_service(self) -> AgentService:
        """What can be done with agents."""

    @abstractmethod
    async def close(self, reason: str = "") -> None:
        """End the engine; one of another process runs on, and only the connection ends."""

    def events(
        self, since: int = 0, *, stream: str | None = None, follow: bool = True
    ) -> AsyncIterator[Event]:
        """Durable events after a place in the workspace, each once, then new ones as they come."""
        return self.store.events(since, stream=stream, follow=follow)

    async def view(self, agent_id: str, at: int | None = None) -> AgentState:
        """The state of an agent now, or after one of its past versions.

        Raises:
            KeyError: there is no such agent.
        """
        if at is None and agent_id in self._agents:
            return copy_state(self._agents[agent_id].state)
        state = await self._live.restore(agent_id, at)
        if not state.version:
            raise KeyError(agent_id)
        return state

    def holder(self, agent: str) -> str:
        """Who holds the controls of an agent; empty for nobody."""
        return self._agents[agent].state.control.holder if agent in self._agents else ""

    def past(self, agent: str) -> StreamHistory:
        """What an agent was at each of its durable events."""
        return StreamHistory(self.store, agent)

    async def head(self) -> int:
        """The place of the newest durable event."""
        return await self.store.head_seq()

    async def story(self, agent: str, count: int) -> tuple[AgentState, list[Event]]:
        """The newest durable events of an agent, oldest first, and its state before them."""
        past = await self.store.last(count, agent)
        before = past[0].version - 1 if past else 0
        return (await self._live.restore(agent, before) if before else AgentState()), past

    async def record(self) -> Record:
        """All durable events of the workspace with what caused it, as of now."""
        from engine.inquiry.indexed_record import record_of

        return await record_of(self.workspace, self.store)

    async def dry_run(self, agent: str, lines: Sequence[str], last: int | None = None) -> DryAnswer:
        """What breakpoints would have done over an agent's durable events, or the newest of them.

        Args:
            agent: whose.
            lines: the breakpoints as they are typed (`engine.core.breakpoints`).
            last: how many events count; None for all.

        Raises:
            BreakError: a line says no breakpoint.
            JournalError: the journal cannot be read.
        """
        specs = [read_break(line) for line in lines]
        return await dry_run_of(self.store, agent, specs, last=last)

    async def waiting(self, agent_id: str) -> Waiting:
        """What an agent waits for now, with since when; a pause that is not durable yet has the state's time.

        Raises:
            KeyError: there is no such agent.
        """
        state = await self.view(agent_id)
        live = self._agents.get(agent_id)
        if fault := self.fault(agent_id):
            return Waiting(WaitKind.NOTHING, f"nothing: it ended by a fault: {fault}", state.at)
        trouble = str(live.log.trouble or "") if live is not None else ""
        rests = self._client.rests if self._client is not None else ()
        return await waiting_now(self.store, state, trouble=trouble, rest=rests[-1] if rests else None)

    async def inbox(self) -> tuple[Need, ...]:
        """All that needs the operator, the most urgent first, each with since when."""
        needs: list[Need] = []
        for agent in list(self._agents.values()):
            for need in (*needs_of(agent.state), *rules_of(agent.state)):
                event = await self.store.get(need.event) if need.event and not need.since else None
                until = self._router.deadlines.until(agent.state) if need.kind is NeedKind.APPROVAL else ""
                since = need.since or (event.at if event else agent.state.at)
                needs.append(replace(need, since=since, until=until))
        if (mastermind := await self._mastermind.known()) is not None:
            needs += needs_of_system(mastermind.state)
        if (crew := await self._crew.known()) is not None:
            needs += map(need_of_crew, crew.needs)
        asked = self.servers.asked if self.servers is not None else ()
        needs += [need_of_server(ask.server, ask.line, ask.since) for ask in asked if not ask.refused]
        return in_order(needs)

    def propose(self, state: AgentState, goal: str) -> Envelope | None:
        """The narrowest envelope that covers what is left of a goal's plan; None where there is no plan."""
        plan = state.plans.get(goal)
        return proposed_envelope(state, plan, self.registry) if plan is not None else None

    async def recall(
        self,
        request: Request[Any] | str,
        arguments: Mapping[str, Any] | None = None,
        *,
        as_of: int | None = None,
    ) -> Any:
        """See `Memory.recall`; `as_of` is the place in the journal (`seq`) of the last event that counts."""
        if self.memory is None:
            raise MemoryUnavailable("Memory is closed: open the workspace again.")
        return await self.memory.recall(request, arguments, as_of=as_of)

    async def kept(self) -> None:
        """Wait until memory holds what the journal holds now, or cannot be had."""
        if self._keeper is not None:
            await self._keeper.caught_up()

    def files_changed(self) -> None:
        """Take note that files of the sandbox were changed by something else than an action."""
        if self.time_travel.main is not None:
            self.time_travel.main.note_other_changes()

    @property
    def examples(self) -> tuple[str, ...]:
        """Goals in plain English that agents understand without a model."""
        return tuple(recipe.example for recipe in self.library.recipes)

    @property
    def memory_status(self) -> MemoryStatus | None:
        """How memory is; None before there is one."""
        return self.memory.status if self.memory is not None else None

    @property
    def link(self) -> str:
        """Where the engine is, in a few words; empty where it is in this process."""
        return ""

    @property
    def watching(self) -> bool:
        """Whether nothing may be changed from here, as in a cockpit that was attached to watch."""
        return False

    @property
    def lost(self) -> bool:
        """Whether the engine of another process cannot be reached now."""
        return False

    @property
    def clients(self) -> Sequence[Mapping[str, Any]]:
        """See `WorkspaceEngine`."""
        return ()

    async def line(self, line: str, agent: str, *, dry: bool = False) -> tuple[int, dict[str, Any], str]:
        """Only an engine of another process has lines sent to it.

        Raises:
            JournalError: always.
        """
        raise JournalError("this engine is in this process: carry the line out here")

    def sandbox(self, agent: str = "") -> SandboxReport:
        """How an agent's programs are held; without one, those of agents that have no policy of their own."""
        return self._coders.report(agent)

    def terminal(self, agent: str) -> OperatorTerminal | None:
        """The operator's open terminal in an agent's sandbox, or None when there is none."""
        return self._coder.sessions.terminal(agent) if self._coder is not None else None

    @property
    def agents(self) -> tuple[str, ...]:
        """Ids of the agents that exist, oldest first; those that could not be resumed last."""
        return self._live.ids

    def budgets(self, agent: str, goal: str = "") -> tuple[BudgetStatus, ...]:
        """The budgets that an agent draws on, the nearest first; without one, the workspace's.

        Args:
            agent: the agent's id.
            goal: the goal that is asked about; empty for the one at hand.
        """
        live = self._agents.get(agent)
        return budget_statuses(self._budgets.ledger, live.state if live is not None else AgentState(), goal)

    def family(self, agent: str) -> tuple[str, ...]:
        """An agent and those that work for it or for one of these, each after its parent."""
        return self._live.family(agent)

    def fault(self, agent: str) -> str:
        """Why the agent does nothing and never will in this session; empty when it is well."""
        return self._live.fault(agent)

    @property
    def faulty(self) -> tuple[str, ...]:
        """Ids of the agents that `fault` says something of."""
        return tuple(self._live.faulty)

    async def faulted(self, agent: str) -> str:
        """Wait until the agent's cycle has ended, and say why where that was a fault."""
        live = self._agents.get(agent)
        if live is not None:
            await live.ended()
        return self.fault(agent)

    async def durable(self, agent: str) -> None:
        """Wait until what counts for an agent's state is durable, or the journal refuses it."""
        live = self._agents.get(agent)
        if live is not None:
            with suppress(JournalError):
                await live.log.commit()

    async def blob(self, digest: str) -> bytes | None:
        """A large value by its digest, or None when it is gone or damaged."""
        try:
            return await self.blobs.get(digest)
        except BlobError:
            return None

    def _torn(self) -> str:
        """What was cut off at the journal's end, in words; empty where it was whole."""
        if not self.store.torn:
            return ""
        return (
            f"the end of the journal was torn: its last {self.store.torn:,} bytes were never written whole "
            "and are no part of it; all before them is there"
        )

    @property
    def health(self) -> Health:
        """What does not work now."""
        troubles = [agent.log.trouble for agent in self._agents.values()]
        troubles += [self._mastermind.trouble, self._crew.trouble]
        trouble = next((str(error) for error in troubles if error is not None), "")
        saver = self.time_travel.main
        status = self.memory.status if self.memory is not None else MemoryStatus()
        keeper = self._keeper
        rebuilt = self.memory.rebuilt if self.memory is not None else ""
        states = filter(None, (self._torn(), self.quota.warning, self.archived, rebuilt))
        return Health(
            journal=trouble,
            library=tuple(map(str, self.library.errors)),
            prompts=self._parts.parts.faults,
            agents=tuple(f"{name}: {fault}" for name, fault in self._live.faulty.items()),
            sandbox=self.sandbox().refusal,
            snapshots=saver.trouble if saver is not None else "",
            states=(*states, *self.store.notes, *self._live.rebuilt.values()),
            memory=status.trouble or (keeper.note if keeper is not None else "") or status.fault,
            memory_behind=keeper.behind if keeper is not None else 0,
            servers=self.servers.troubles if self.servers is not None else (),
            restricted=self.trust is not None and (self.trust.restricted or self.trust.foreign),
        )


def check_plans(text: str, goal: str) -> list[str]:
    """Everything that is wrong with plans that an operator wrote for a goal, in sentences."""
    from engine.agent.reasoner.plan_generation import read_plans  # late: few agents have a program

    return list(read_plans(text, goal)[1])
