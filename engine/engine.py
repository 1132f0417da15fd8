"""The façade: the one door between whoever steers and the agents of a workspace."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from engine import __version__, inquiry, loop, mcp, reasoner
from engine.actions.saving import SnapshotRule, WorkspaceSaver
from engine.crew.opening import LateCrew
from engine.crew.tool import CrewTool
from engine.domain import commands as cmd
from engine.domain.approval import Envelope
from engine.domain.break_lines import read_break
from engine.domain.budgets import SpendingLimits
from engine.domain.crew import CrewSettings
from engine.domain.health import Health
from engine.domain.mastermind import MastermindSettings
from engine.domain.ports import Clock, CommandSpec, Ids, Permits, Ports
from engine.domain.rewinding import RewindScope
from engine.domain.state import AgentState
from engine.inquiry.index_keeping import keep_index
from engine.journal import events as ev
from engine.journal.blobs import BlobStore
from engine.journal.errors import BlobError, JournalError
from engine.journal.event import CREW, GENESIS, MASTERMIND, WORKSPACE, Event, of_agent
from engine.journal.fold import copy_state
from engine.journal.log import StreamLog
from engine.journal.opening import open_store
from engine.journal.past import Past
from engine.journal.store import DATA_DIRECTORY, JournalStore
from engine.journal.verify import workspace_head
from engine.library.plan_library import PlanLibrary
from engine.library.prompt_parts import PromptReader
from engine.loop.agent import Agent
from engine.loop.branching import FORKS_DIRECTORY, Branches
from engine.loop.budgets import Budgets
from engine.loop.door import Door
from engine.loop.live_agents import MIND, LiveAgents
from engine.loop.sharing import EngineConfig, Shared
from engine.mastermind.opening import LateMastermind
from engine.memory import Memory, MemoryStatus, MemoryUnavailable
from engine.memory.keeper import Keeper
from engine.memory.tool import MemoryTool
from engine.metacognition import BackgroundRunner
from engine.sandbox.files import make_root
from engine.sandbox.paths import PathError
from engine.sandbox.policy import Tier
from engine.sandbox.probe import layers
from engine.sandbox.report import SandboxReport
from engine.sandbox.terminal import Terminal
from engine.snapshots import Changes, Restoration, SnapshotError, SnapshotPolicy, Snapshots
from engine.steering.ledger import Ledger
from engine.steering.rewinding import Preview, place_of
from engine.steering.standing import Standing
from engine.thinkers.procedural import ProceduralThinker
from engine.tools.coders import Coders
from engine.tools.mind import Mind
from engine.tools.registry import ToolRegistry
from engine.tools.simple_coder import SimpleCoder
from engine.tools.worlds import WorldTool
from engine.worlds.explorer_world import WORLDS

if TYPE_CHECKING:
    from engine.agents.spec import AgentSpec
    from engine.crew.crew import Crew
    from engine.crew.parts import Desk as HandoffDesk
    from engine.crew.runs.worker import Runs
    from engine.mastermind.desk import Desk
    from engine.mastermind.mastermind import Mastermind
    from engine.mcp.fleet import Servers
    from engine.mcp.health import ServerView
    from engine.memory.requests import Request
    from engine.models.port import ModelClient
    from engine.steering.undoing import Offer
    from engine.thinkers.brief import Colleagues

__all__ = [
    "FORKS_DIRECTORY",
    "MIND",
    "RETRY_JOURNAL_S",
    "SANDBOX_DIRECTORY",
    "SNAPSHOTS_DIRECTORY",
    "Engine",
    "EngineConfig",
    "Health",
]

R = TypeVar("R")

SANDBOX_DIRECTORY = "sandbox"
"""Where agents work, below the workspace; what steers them (journal, recipes) lies outside of it."""
MCP_SETTINGS = "mcp.json"
"""The workspace's file that names MCP servers; see `engine.mcp.settings`."""
SNAPSHOT_EVERY = 500
"""Events of a stream between two snapshots of its state."""
SNAPSHOTS_DIRECTORY = "snapshots"
"""Where the sandbox's files are kept as they were before each action, in the data directory."""
TIDY_AFTER_S = 60.0
"""How long after opening a workspace its old snapshots are cleared away."""
KEEP_UP_S = 2.0
"""How long closing waits for memory to hold what has happened; the rest is for the next session."""
RETRY_JOURNAL_S = 1.0
"""How often a journal that could not write is tried again."""


class Engine:
    """A workspace with its agents; open it with `open`, and always `close` it."""

    def __init__(
        self,
        workspace: Path,
        config: EngineConfig,
        ports: Ports,
        store: JournalStore,
        library: PlanLibrary,
    ) -> None:
        self.workspace = workspace
        self.config = config
        self.root = config.sandbox or workspace / SANDBOX_DIRECTORY
        self.session = ports.ids.new("session")
        self.store = store
        self.blobs = BlobStore(workspace / DATA_DIRECTORY / "blobs")
        self.registry = ToolRegistry()
        self.library = library
        self._parts = PromptReader(workspace)
        self._ports = ports
        self._agents: dict[str, Agent] = {}
        self._log: StreamLog | None = None
        self._coder: SimpleCoder | None = None
        self._coders: Coders
        self._saver: WorkspaceSaver | None = None
        self._memory: Memory | None = None
        self._keeper: Keeper | None = None
        self._servers: Servers | None = None
        self._offered: dict[str, ev.ToolOffered] = {}
        """What tools from outside offered last."""
        self._tasks: list[asyncio.Task[None]] = []
        self._stop = asyncio.Event()
        self.final_head = ""
        """One hash over all streams, once the engine is closed."""
        self._client = config.model.client() if config.model is not None else None
        self._background = BackgroundRunner()
        model = config.model.budget.limits if config.model is not None else SpendingLimits()
        usual = config.agent_budget.over(model)
        self._budgets = Budgets(Ledger(config.budget, usual, ports.clock.now))
        self._branches = Branches(
            workspace, self.root, store, self._agents, main=lambda: self._saver, recent=self._recent_snapshots
        )
        self._shared: Shared
        self._live: LiveAgents
        self._door: Door
        self._mastermind = LateMastermind(self)
        self._staffed: Callable[[], Awaitable[HandoffDesk]] | None = None
        self._runs: Runs | None = None
        self._crew = LateCrew(self)
        self._treasury = self._treasure()

    def _treasure(self) -> ModelClient | None:
        if self._client is None:
            return None
        from engine.loop.treasury import Treasury

        return Treasury(self._client, self._budgets.ledger, self._mastermind.note)

    # -------------------------------------------------------------- life

    @classmethod
    async def open(
        cls, workspace: Path, *, ports: Ports | None = None, config: EngineConfig | None = None
    ) -> Engine:
        """Open a workspace, restore its agents as they were, and begin a session.

        Raises:
            JournalError: the workspace cannot be opened; the message says why and what to do.
        """
        ports = ports or Ports()
        config = config or EngineConfig()
        store = await open_store(workspace, ports.clock, create=config.create)
        try:
            # Finding out what this kernel offers takes trial processes: they run while the library is read.
            library, _ = await asyncio.gather(
                asyncio.to_thread(PlanLibrary.load, None, workspace / "recipes"), asyncio.to_thread(layers)
            )
            engine = cls(workspace, config, ports, store, library)
        except BaseException:
            await store.close()
            raise
        try:
            await engine._begin()
        except BaseException:
            await engine._let_go()
            raise
        return engine

    async def _begin(self) -> None:
        try:
            await asyncio.to_thread(make_root, self.root)
            self._coder = SimpleCoder(self.root, self.config.policy)
        except PathError as error:
            raise JournalError(f"There is no sandbox to work in: {error.message}") from error
        self._saver = await asyncio.to_thread(self._make_saver)
        self._coders = Coders(self._coder)
        self.registry.register(self._coders)
        self.registry.register(Mind())
        for world in WORLDS.values():
            self.registry.register(WorldTool(world))
        streams = await self.store.streams()
        version, head = streams.get(WORKSPACE, (0, GENESIS))
        self._log = StreamLog(WORKSPACE, version, head, self._ports.clock, self.store.commit)
        if version == 0:
            self._note(ev.WorkspaceCreated(workspace=self._ports.ids.new("workspace")))
        self._note(ev.SessionOpened(session=self.session, version=__version__))
        if self.sandbox().unconfined:
            self._note(
                ev.TierAccepted(session=self.session, tier=Tier.PATHS, reason="the session was opened so")
            )
        await self._log.commit()
        self._memory = Memory.begin(self.workspace, self.store, clock=self._ports.clock)
        self.registry.register(MemoryTool(self._memory, self.kept))
        self.registry.register(CrewTool(self._crew_desk))
        self._shared = self._all_share(self._memory)
        self._live = LiveAgents(self._shared, self.session, self._agents)
        self._door = Door(
            self._shared,
            self._live,
            self._budgets,
            self._log,
            self.session,
            self._mastermind.carry_out,
            self._crew.carry_out,
        )
        await self._begin_servers()
        for stream in streams:
            if of_agent(stream):
                await self._live.resume(await self._live.restore(stream))
        await self._budgets.restore(self.store)
        if MASTERMIND in streams:
            # What the last session left half done is settled without being asked for.
            self._mastermind.begin()
        if CREW in streams:
            self._crew.begin()
        self._keeper = Keeper(self._memory, self.store, self.blobs, self._ports.clock, self._live.restore)
        self._keeper.begin()
        index = keep_index(self.workspace, self.store, self._ports.clock, RETRY_JOURNAL_S)
        self._tasks = [
            asyncio.create_task(self._keep_journal_alive(), name="journal watch"),
            asyncio.create_task(index, name="journal index"),
            asyncio.create_task(self.library.watch(lambda: None, self._stop), name="recipe watch"),
        ]

    async def _begin_servers(self) -> None:
        """Begin to connect the MCP servers of the workspace's settings; they are ready a little later."""
        if not await asyncio.to_thread((self.workspace / MCP_SETTINGS).exists):
            return
        settings = await asyncio.to_thread(mcp.load, self.workspace)
        around = mcp.Surroundings(self.workspace, self.root, self.config.policy, os.environ)
        self._servers = mcp.Servers(settings, around, self._ports.clock, self._server_changed)
        self._servers.register(self.registry)
        self._servers.begin()

    def _server_changed(self, view: ServerView) -> None:
        if view.name in self.registry:
            self.tool_changed(view.name)

    def tool_changed(self, tool: str) -> None:
        """A registered tool from outside may offer something else now: tell every agent's stream.

        Raises:
            UnknownToolError: there is no such tool.
        """
        said = loop.offer_of(self.registry.get(tool))
        if self._offered.get(tool) != said:
            self._offered[tool] = said
            self._live.offer(said)

    def _all_share(self, memory: Memory) -> Shared:
        assert self._coder is not None
        return Shared(
            workspace=self.workspace,
            config=self.config,
            ports=self._ports,
            store=self.store,
            blobs=self.blobs,
            registry=self.registry,
            coders=self._coders,
            control=self._coder.sessions,
            memory=memory,
            kept=self.kept,
            client=self._client,
            ledger=self._budgets.ledger,
            background=self._background,
            branches=self._branches,
            procedural=ProceduralThinker(self.library),
            parts=self._parts,
        )

    def _make_saver(self) -> WorkspaceSaver | None:
        if self.config.snapshots is SnapshotRule.OFF:
            return None
        store = self.workspace / DATA_DIRECTORY / SNAPSHOTS_DIRECTORY
        try:
            snapshots = Snapshots(self.root, store, SnapshotPolicy.for_sandbox(self.config.policy))
        except SnapshotError as error:
            raise JournalError(str(error)) from error
        return WorkspaceSaver(snapshots, self._recent_snapshots)

    async def _recent_snapshots(self, actions: int) -> set[str]:
        """The snapshots of that many newest actions of each agent."""
        named = {ev.SnapshotTaken.kind: "snapshot", ev.RewindBegun.kind: "saved"}
        found: set[str] = set()
        for agent in list(self._agents):
            for kind, name in named.items():
                # Of many agents these are tens of thousands, so they are not made into payloads.
                found.update(
                    json.loads(e.body)[name] for e in await self.store.last(actions, agent, kind=kind)
                )
        return found

    async def close(self, reason: str = "") -> None:
        """Stop every agent where it stands, record it, and give the workspace up."""
        self._stop.set()
        try:
            await self._mastermind.close()
            await self._crew.close()
            await self._door.close()
            await asyncio.gather(*(agent.close() for agent in self._agents.values()), return_exceptions=True)
            await self._end_tasks()
            if self._keeper is not None and not self._keeper.trouble:
                with suppress(TimeoutError):
                    async with asyncio.timeout(KEEP_UP_S):
                        await self._keeper.caught_up()
                        await self._embedded()
            await self._close_memory()
            if self._log is not None:
                self._note(ev.SessionClosed(session=self.session, reason=reason))
                with suppress(JournalError):
                    await self._log.commit()
            for agent in self._agents.values():
                await self._live.keep(agent, at_least=1)
            self.final_head = workspace_head(await self.store.streams())
        finally:
            await self._let_go()

    async def _end_tasks(self) -> None:
        if self._runs is not None:
            await self._runs.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _let_go(self) -> None:
        """End what still runs, recorded or not, and give up the sandbox and the journal."""
        await self._mastermind.close()
        await self._crew.close()
        await asyncio.gather(*(agent.close() for agent in self._agents.values()), return_exceptions=True)
        await self._end_tasks()
        await self._background.close()
        await self._close_memory()
        if self._servers is not None:
            await self._servers.close()
        await self._branches.close()
        if self._saver is not None:
            await self._saver.close()
        if self._client is not None:
            await self._client.close()
        if self._coder is not None:
            self._coders.close()
            self._coder.close()
        await self.store.close()

    async def mastermind(self) -> Mastermind:
        """Who changes the system itself; opened when it is first needed.

        Raises:
            JournalError: its stream cannot be read.
        """
        return await self._mastermind.opened()

    async def _crew_desk(self) -> HandoffDesk:
        if self._staffed is None:
            await self._crew.opened()  # which staffs it
        if self._staffed is None:
            raise JournalError("there is nobody here who makes runs of handoffs")
        return await self._staffed()

    def staff(
        self,
        desk: Callable[[], Awaitable[HandoffDesk]],
        *,
        permits: Permits | None = None,
        colleagues: Colleagues | None = None,
        present: bool = True,
        text_of: Callable[[AgentSpec], str] | None = None,
    ) -> Runs:
        """Who makes agents of handoffs; from now on the desk answers these agents' tool `crew`.

        Args:
            desk: opens the manager of handoffs.
            permits: leave to ask a model.
            colleagues: knows whom an agent may hand work to.
            present: whether somebody is there to be asked.
            text_of: the system text of a specification that has it in a file.
        """
        from engine.crew.runs.worker import Runs

        self._staffed = desk
        self._runs = Runs(self._live, self.submit, self.store, present=present, text_of=text_of)
        self._shared.permits, self._shared.colleagues = permits, colleagues
        return self._runs

    async def crew(self) -> Crew:
        """Who manages agents that hand work to each other; opened when it is first needed.

        Raises:
            JournalError: its stream cannot be read.
        """
        return await self._crew.opened()

    async def desk(self) -> Desk:
        """What can be done with agents, identities and registries; opened with Mastermind.

        Raises:
            JournalError: Mastermind's stream cannot be read.
        """
        return await self._mastermind.desk()

    async def _embedded(self) -> None:
        """Wait until what was remembered can be found by likeness as well."""
        if self._memory is not None:
            with suppress(MemoryUnavailable):
                await self._memory.embedded()

    async def _close_memory(self) -> None:
        if self._keeper is not None:
            await self._keeper.close()
        if self._memory is not None:
            await self._memory.close()

    def _note(self, payload: ev.Payload) -> None:
        assert self._log is not None
        self._log.append(payload, actor="system", causes=(), tick=0)

    async def _keep_journal_alive(self) -> None:
        """While the journal is in trouble, try it again; snapshot states now and then."""
        tidy_at = self._ports.clock.monotonic() + TIDY_AFTER_S
        while not self._stop.is_set():
            if self._saver is not None and self._ports.clock.monotonic() > tidy_at:
                self._saver.tidy()
                tidy_at = inf
            await self._ports.clock.sleep(RETRY_JOURNAL_S)
            for agent in list(self._agents.values()):
                if agent.log.trouble is not None:
                    with suppress(JournalError):
                        await agent.log.commit()
                        agent.poke()
                await self._live.keep(agent, at_least=SNAPSHOT_EVERY)
            await self._mastermind.try_again()
            await self._crew.try_again()
            self._budgets.keep_time(self._agents)

    # -------------------------------------------------------------- the door

    async def submit(self, command: cmd.Command, *, operator: str = "operator") -> cmd.Receipt:
        """Carry out a command; what the receipt says is durable when it is returned.

        A command that cannot be carried out is answered with `ok=False` and the reason, never an exception.
        It is carried out to the end even when the caller is cancelled.
        """
        return await self._door.submit(command, operator=operator)

    async def stopped(self) -> None:
        """Return when every stop has its last receipt: all that was to die is dead, or said to live."""
        await self._door.stops.settled()

    def root_of(self, agent: str) -> Path:
        """Where an agent's files are: the workspace's sandbox, or of a fork its own."""
        return self._branches.root_of(agent)

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
    def servers(self) -> Servers | None:
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

    def give_way(self) -> None:
        """The operator did something that is to be on the screen at once: agents wait for a moment."""
        self._shared.pace.give_way()

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
