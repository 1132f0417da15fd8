"""What is asked of an open workspace: questions that change nothing, answered by the façade `Engine`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from engine import inquiry, loop, reasoner
from engine.actions.saving import WorkspaceSaver
from engine.crew.opening import LateCrew
from engine.domain.approval import Envelope
from engine.domain.break_lines import read_break
from engine.domain.crew import CrewSettings
from engine.domain.health import Health
from engine.domain.mastermind import MastermindSettings
from engine.domain.ports import Clock, CommandSpec, Ids, Ports
from engine.domain.rewinding import RewindScope
from engine.domain.state import AgentState
from engine.journal import events as ev
from engine.journal.blobs import BlobStore
from engine.journal.errors import BlobError
from engine.journal.event import Event
from engine.journal.fold import copy_state
from engine.journal.past import Past
from engine.journal.store import JournalStore
from engine.library.plan_library import PlanLibrary
from engine.library.prompt_parts import PromptReader
from engine.loop.agent import Agent
from engine.loop.branching import Branches
from engine.loop.budgets import Budgets
from engine.loop.live_agents import LiveAgents
from engine.loop.sharing import EngineConfig
from engine.mastermind.opening import LateMastermind
from engine.memory import Memory, MemoryStatus, MemoryUnavailable
from engine.memory.keeper import Keeper
from engine.sandbox.report import SandboxReport
from engine.sandbox.terminal import Terminal
from engine.snapshots import Changes, Restoration, SnapshotError
from engine.steering.rewinding import Preview, place_of
from engine.steering.standing import Standing
from engine.tools.coders import Coders
from engine.tools.registry import ToolRegistry
from engine.tools.simple_coder import SimpleCoder

if TYPE_CHECKING:
    from engine.mcp.starting import StartedServers
    from engine.memory.requests import Request
    from engine.models.client import MessagesClient
    from engine.models.port import ModelClient
    from engine.steering.undoing import Offer

R = TypeVar("R")


class Answers:
    """The half of the façade that answers; `engine.engine.Engine` opens, closes and takes commands."""

    workspace: Path
    config: EngineConfig
    store: JournalStore
    blobs: BlobStore
    registry: ToolRegistry
    library: PlanLibrary
    _ports: Ports
    _agents: dict[str, Agent]
    _branches: Branches
    _budgets: Budgets
    _client: MessagesClient | None
    _coder: SimpleCoder | None
    _coders: Coders
    _crew: LateCrew
    _keeper: Keeper | None
    _live: LiveAgents
    _mastermind: LateMastermind
    _memory: Memory | None
    _parts: PromptReader
    _saver: WorkspaceSaver | None
    _servers: StartedServers | None
    _treasury: ModelClient | None

    # -------------------------------------------------------------- going back

    async def rewind_preview(
        self, agent_id: str, to: int, scope: str = "both", paths: Sequence[str] = ()
    ) -> Preview:
        """What a rewind would do; nothing is changed.

        Args:
            agent_id: the agent.
            to: a version of its stream.
            scope: `both`, `state` or `files`.
            paths: of the files only these; none for all.

        Raises:
            KeyError: there is no such agent.
            RewindError: it cannot be gone back there.
            JournalError: the journal cannot be read.
        """
        return await self._branches.preview(self._agents[agent_id], to, RewindScope(scope), paths)

    async def place_of(self, agent_id: str, word: str, here: int | None = None) -> int:
        """The version of an agent's stream that a word names; see `engine.steering.rewinding.place_of`.

        Raises:
            RewindError: it names nothing.
        """
        return await place_of(self.store, agent_id, word, here)

    async def undo_offer(self, agent_id: str, *, again: bool = False) -> Offer:
        """What would undo the operator's newest change to an agent; nothing is changed.

        Args:
            agent_id: the agent.
            again: what would redo what was undone last.

        Raises:
            KeyError: there is no such agent.
            UndoError: there is nothing to undo, or it cannot be.
            JournalError: the journal cannot be read.
        """
        from engine.steering.undoing import last_change

        agent = self._agents[agent_id]
        await agent.log.commit()
        return await last_change(self.store, self.past(agent_id), copy_state(agent.state), again=again)

    async def adopt_preview(self, agent_id: str, fork: str) -> Restoration:
        """What taking over a fork's files would do to the agent's; nothing is changed.

        Raises:
            KeyError: there is no such agent.
            RewindError: the fork's files cannot be taken over.
        """
        return await self._branches.adopt_preview(self._agents[agent_id], fork)

    async def files_between(self, one: str, other: str) -> Changes | str:
        """What differs between the files of two agents as they are now, or why that is not known."""
        return await self._branches.between(one, other)

    # -------------------------------------------------------------- what was and what is

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

    def past(self, agent: str) -> Past:
        """What an agent was at each of its durable events."""
        return Past(self.store, agent)

    async def changed_files(self, one: str, other: str) -> Changes | str:
        """What differs between two workspace snapshots, or why that is not known."""
        if self._saver is None:
            return "no snapshots are taken here"
        try:
            return await self._saver.snapshots.diff(one, other)
        except SnapshotError as error:
            return str(error)

    async def head(self) -> int:
        """The place of the newest durable event."""
        return await self.store.head_seq()

    async def story(self, agent: str, count: int) -> tuple[AgentState, list[Event]]:
        """The newest durable events of an agent, oldest first, and its state before them."""
        past = await self.store.last(count, agent)
        before = past[0].version - 1 if past else 0
        return (await self._live.restore(agent, before) if before else AgentState()), past

    async def newest(self, agent: str, kind: type[ev.Payload]) -> tuple[Event, ev.Payload] | None:
        """The newest durable event of a kind in an agent's stream with what it says; None without one."""
        found = await self.store.last(1, agent, kind=kind.kind)
        return (found[0], ev.payload_of(found[0])) if found else None

    async def record(self) -> inquiry.Record:
        """All durable events of the workspace with what each stands on, as of now."""
        return await inquiry.record_of(self.workspace, self.store)

    async def dry_run(self, agent: str, lines: Sequence[str], last: int | None = None) -> inquiry.DryAnswer:
        """What breakpoints would have done over an agent's durable events, or the newest of them.

        Args:
            agent: whose.
            lines: the breakpoints as they are typed (`engine.domain.break_lines`).
            last: how many events count; None for all.

        Raises:
            BreakError: a line says no breakpoint.
            JournalError: the journal cannot be read.
        """
        specs = [read_break(line) for line in lines]
        return await inquiry.dry_run_of(self.store, agent, specs, last=last)

    async def waiting(self, agent_id: str) -> inquiry.Waiting:
        """What an agent waits for now, with since when; a pause that is not durable yet has the state's time.

        Raises:
            KeyError: there is no such agent.
        """
        state = await self.view(agent_id)
        live = self._agents.get(agent_id)
        if fault := self.fault(agent_id):
            return inquiry.Waiting(
                inquiry.WaitKind.NOTHING, f"nobody: it ended by a fault: {fault}", state.at
            )
        trouble = str(live.log.trouble or "") if live is not None else ""
        rests = self._client.rests if self._client is not None else ()
        return await inquiry.waiting_now(
            self.store, state, trouble=trouble, rest=rests[-1] if rests else None
        )

    async def inbox(self) -> tuple[inquiry.Need, ...]:
        """All that needs the operator, the most urgent first, each with since when."""
        found: list[inquiry.Need] = []
        for agent in list(self._agents.values()):
            for need in inquiry.needs_of(agent.state):
                event = await self.store.get(need.event) if need.event and not need.since else None
                found.append(replace(need, since=need.since or (event.at if event else agent.state.at)))
        if (system := await self._mastermind.known()) is not None:
            found += inquiry.needs_of_system(system)
        found += [inquiry.need_of_crew(request) for request in self._crew.needs]
        if self._servers is not None:
            found += [
                inquiry.need_of_server(one.server, one.line, one.since)
                for one in self._servers.asked
                if not one.refused
            ]
        return inquiry.in_order(found)

    def propose(self, state: AgentState, goal: str) -> Envelope | None:
        """The narrowest envelope that covers what is left of a goal's plan; None where there is no plan."""
        plan = state.plans.get(goal)
        return loop.proposed_envelope(state, plan, self.registry) if plan is not None else None

    @overload
    async def recall(self, request: Request[R], *, as_of: int | None = None) -> R: ...

    @overload
    async def recall(
        self, request: str, arguments: Mapping[str, Any] | None = None, *, as_of: int | None = None
    ) -> Any: ...

    async def recall(
        self,
        request: Request[Any] | str,
        arguments: Mapping[str, Any] | None = None,
        *,
        as_of: int | None = None,
    ) -> Any:
        """What memory answers to a request that only reads; waits while memory is being opened.

        Args:
            request: the request, or its name, ours or the seed's.
            arguments: the named request's arguments.
            as_of: the place in the journal (`seq`) of the last event that counts; None for now.

        Raises:
            MemoryFault: it cannot be answered; the message says why.
            JournalError: the journal could not be read.
        """
        if self._memory is None:
            raise MemoryUnavailable("Memory is closed: open the workspace again.")
        if isinstance(request, str):
            return await self._memory.recall(request, arguments, as_of=as_of)
        return await self._memory.recall(request, as_of=as_of)

    async def kept(self) -> None:
        """Wait until memory holds what the journal holds now, or cannot be had."""
        if self._keeper is not None:
            await self._keeper.caught_up()

    @property
    def clock(self) -> Clock:
        """What time it is."""
        return self._ports.clock

    @property
    def ids(self) -> Ids:
        """Names that are unique."""
        return self._ports.ids

    @property
    def model(self) -> ModelClient | None:
        """Who asks the model that thinks, at the workspace's expense; None where there is none."""
        return self._treasury

    @property
    def model_name(self) -> str:
        """The model that thinks; empty where there is none."""
        return self.config.model.name if self.config.model is not None else ""

    def draw_seed(self) -> int:
        """A seed for what is to be random and the same again."""
        return self._ports.seed()

    def files_changed(self) -> None:
        """Told when files of the sandbox were changed by something else than an action."""
        if self._saver is not None:
            self._saver.changed_otherwise()

    @property
    def mastermind_settings(self) -> MastermindSettings:
        """How the system improves itself."""
        return self.config.mastermind

    @property
    def crew_settings(self) -> CrewSettings:
        """Limits of the agents that hand work to each other."""
        return self.config.crew

    @property
    def servers(self) -> StartedServers | None:
        """The MCP servers of the workspace; None where its settings name none."""
        return self._servers

    @property
    def memory(self) -> Memory | None:
        """What the workspace's agents remember; it may still be opening. None before the engine is open."""
        return self._memory

    def check_call(self, tool: str, command: str, args: Mapping[str, Any]) -> list[str]:
        """Everything that is wrong with a tool call, in sentences."""
        return [problem.message for problem in self.registry.validate(tool, command, args)]

    def describe_command(self, command: str, tool: str = "simple_coder") -> CommandSpec | None:
        """What a command of a tool takes, or None when there is no such command."""
        return self.registry.get(tool).commands.get(command)

    @staticmethod
    def check_breakpoint(on: str, pattern: str) -> str:
        """What is wrong with a breakpoint of a reasoner; empty when it can be set."""
        return reasoner.check_pattern(on, pattern)

    @staticmethod
    def check_plans(text: str, goal: str) -> list[str]:
        """Everything that is wrong with plans that an operator wrote for a goal, in sentences."""
        return list(reasoner.read_plans(text, goal).problems)

    @property
    def examples(self) -> tuple[str, ...]:
        """Goals in plain English that agents understand without a model."""
        return tuple(recipe.example for recipe in self.library.recipes)

    def sandbox(self, agent: str = "") -> SandboxReport:
        """How an agent's programs are held; without one, those of agents that have no policy of their own."""
        return self._coders.report(agent)

    def terminal(self, agent: str) -> Terminal | None:
        """The operator's open terminal in an agent's sandbox, or None when there is none."""
        return self._coder.sessions.terminal(agent) if self._coder is not None else None

    @property
    def agents(self) -> tuple[str, ...]:
        """Ids of the agents that exist, oldest first; those that could not be taken up last."""
        return self._live.ids

    def budgets(self, agent: str, goal: str = "") -> tuple[Standing, ...]:
        """The budgets that an agent draws on, the nearest first; without one, the workspace's.

        Args:
            agent: the agent's id.
            goal: the goal that is asked about; empty for the one at hand.
        """
        live = self._agents.get(agent)
        return self._budgets.standings(live.state if live is not None else AgentState(), goal)

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
        logs = [agent.log for agent in self._agents.values()]
        troubles = [log.trouble for log in logs] + [self._mastermind.trouble, self._crew.trouble]
        trouble = next((str(one) for one in troubles if one is not None), "")
        faults = tuple(f"{name}: {fault}" for name, fault in self._live.faulty.items())
        errors = tuple(str(error) for error in self.library.errors)
        untidy = self._saver.trouble if self._saver is not None else ""
        status = self._memory.status if self._memory is not None else MemoryStatus()
        keeper = self._keeper
        forgets, behind = (keeper.note, keeper.behind) if keeper is not None else ("", 0)
        return Health(
            journal=trouble,
            library=errors,
            prompts=self._parts.parts.faults,
            agents=faults,
            sandbox=self.sandbox().refusal,
            snapshots=untidy,
            states=(*filter(None, [self._torn()]), *self._live.rebuilt.values()),
            memory=status.trouble or forgets,
            memory_behind=behind,
            servers=self._servers.troubles if self._servers is not None else (),
        )
