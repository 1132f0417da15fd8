"""The engine of one workspace: it opens it, takes commands and hands out events."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import __version__
from engine.agent.actions.snapshots import SnapshotRule
from engine.agent.command_router import CommandRouter
from engine.agent.controls import Clients, Controls
from engine.agent.live_agents import LiveAgents
from engine.agent.model_calls import WorkspaceBudget, rewriter_for
from engine.agent.shared import EngineConfig, SharedServices, offer_of
from engine.agent.turn_scheduler import TurnScheduler
from engine.api.disk_quota import MB
from engine.api.workspace_engine import WorkspaceEngine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import ForServers
from engine.core.budgets import SpendingLimits
from engine.core.journal import CREW, GENESIS, MASTERMIND, WORKSPACE, JournalError, of_agent
from engine.core.ports import HastyClock, Permits, Ports
from engine.core.reasons import Reason
from engine.core.store.opening import IN_FILE, note_place, open_store
from engine.core.store.port import DATA_DIRECTORY, JournalStore
from engine.core.store.verify import workspace_head
from engine.core.streams import StreamLog
from engine.crew.late_crew import LateCrew, LateRunThinkers
from engine.crew.tool.crew_tool import CrewTool
from engine.improve.lazy import LazyMastermind
from engine.inquiry.indexer import keep_index
from engine.memory.memory import Memory
from engine.memory.metacognition.runner import BackgroundRunner
from engine.memory.recorder import MemoryRecorder
from engine.memory.tool import MemoryTool
from engine.planning.library.plan_library import PlanLibrary, shipped_recipes
from engine.planning.thinkers.procedural import ProceduralThinker
from engine.sandbox.files import make_root
from engine.sandbox.paths import PathError
from engine.sandbox.policy import Tier
from engine.sandbox.snapshots.entry import SnapshotError
from engine.sandbox.tier import layers
from engine.tools.registry import built_in_tools
from engine.tools.shared_coder import SharedCoder
from engine.tools.simple_coder import SimpleCoder
from engine.value import fields_of

if TYPE_CHECKING:
    from engine.crew.crew import Crew
    from engine.crew.run_service import RunService
    from engine.crew.worker import Runs
    from engine.improve.agent_creation import AgentService
    from engine.improve.mastermind import Mastermind
    from engine.planning.thinkers.query_rewriter import ModelRewriter
    from engine.tools.mcp.health import ServerView


MCP_SETTINGS = "mcp.json"
"""The workspace's file that names MCP servers; see `engine.tools.mcp.settings`."""
SNAPSHOT_EVERY, SNAPSHOT_LEAST = 500, 50
"""Events of a stream between two snapshots of its state, at most and at least."""
FOLDED_AT_OPENING = 10_000
"""Events that an opening folds at most, about, of all agents together: half a second's work."""
TIDY_AFTER_S = 60.0
"""How long after opening a workspace its old snapshots are cleared away."""
KEEP_UP_S = 2.0
"""How long closing waits for memory to hold what has happened; the rest is for the next session."""
WEIGH_EVERY_S = 10.0
"""How often it is looked how much room the data take."""
ARCHIVE_EVERY_S = 3600.0
"""How often old contents are archived where the settings say so."""
ARCHIVE_TO_PERCENT = 80
"""Of the room for the journal, what is left in it once it was too little."""
SCRATCH_SEED = 7
"""Of the randomness in scratch workspaces: the same each time."""
RETRY_JOURNAL_S = 1.0
"""How often a journal that could not write is tried again."""


class Engine(WorkspaceEngine):
    """A workspace with its agents; open it with `open`, and always `close` it."""

    def __init__(
        self, workspace: Path, config: EngineConfig, ports: Ports, store: JournalStore, library: PlanLibrary
    ) -> None:
        super().__init__(workspace, config, ports, store, library)
        self.session = ports.ids.new("session")
        self.pace = TurnScheduler()
        """Whose turn it is among agents, and the operator."""
        self.gateways: list[Clients] = []
        """Each knows whom it has connected with this engine."""
        self.final_head = ""
        """One hash over all streams, once the engine is closed."""
        self._log: StreamLog | None = None
        self._offered: dict[str, ev.ToolOffered] = {}
        """What tools from outside offered last."""
        self._tasks: list[asyncio.Task[None]] = []
        self._stop = asyncio.Event()
        self._background = BackgroundRunner()
        self._shared: SharedServices
        self._router: CommandRouter
        self._mastermind = LazyMastermind(self)
        self._crew = LateCrew(self)
        self._open_run_service: Callable[[], Awaitable[RunService]] | None = None
        """Opens the manager of handoffs, once the crew is open."""
        self._runs: Runs | None = None
        self._run_thinkers = LateRunThinkers(self.registry)
        self._searching: ModelRewriter | None = None
        """Helps the operator's searches of memory."""
        if self._client is not None:
            self.model = WorkspaceBudget(self._client, self._budgets.ledger, self._mastermind.note)

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
        if config.trust is not None:
            await asyncio.to_thread(config.trust.refuse_link)
        store = await open_store(workspace, ports.clock, create=config.create)
        try:
            await asyncio.to_thread(layers)  # finding out what this kernel offers takes trial processes
            library = PlanLibrary(shipped_recipes(), workspace / "recipes", config.trust)
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
        if self.config.snapshots is not SnapshotRule.OFF:
            try:
                await asyncio.to_thread(self.time_travel.open, self.config.policy)
            except SnapshotError as error:
                raise JournalError(str(error)) from error
        self._coders = SharedCoder(self._coder)
        self.registry.register(self._coders)
        for tool in built_in_tools():
            self.registry.register(tool)
        streams = await self.store.streams()
        version, head = streams.get(WORKSPACE, (0, GENESIS))
        self._log = StreamLog(WORKSPACE, version, head, self.clock, self.store.commit)
        if version == 0:
            created = ev.WorkspaceCreated(workspace=self.ids.new("workspace"))
            first = self._log.append(created, actor="system", causes=(), tick=0)
            if self.trust is not None:
                await asyncio.to_thread(self.trust.began, first.hash)
        self._note(ev.SessionOpened(session=self.session, version=__version__))
        if self.sandbox().unconfined:
            self._note(
                ev.TierAccepted(session=self.session, tier=Tier.PATHS, reason=Reason("session.opened-so"))
            )
        await self._log.commit()
        rewriter = self._rewriter if self.config.rewrite else None
        self.memory = Memory(
            self.workspace, self.store, clock=self.clock, embedder=self.config.embedder, rewriter=rewriter
        )
        self.registry.register(MemoryTool(self.memory, self.kept))
        self.registry.register(CrewTool(self._run_service))
        self._shared = self._all_share(self.memory)
        self._live = LiveAgents(self._shared, self.session, self._agents)
        self._router = CommandRouter(
            self._shared,
            self._live,
            self._budgets,
            self._log,
            self.session,
            self._mastermind.carry_out,
            self._crew.carry_out,
            self._about_servers,
            Controls(self._live, lambda: self.clients),
        )
        await self._begin_servers()
        await self._live.resume({name: head for name, head in streams.items() if of_agent(name)})
        await self._budgets.restore(self.store, foreign=self.trust is not None and self.trust.foreign)
        self._mastermind.has_stream, self._crew.has_stream = MASTERMIND in streams, CREW in streams
        cut_off = any(each.state.hands_back for each in self._agents.values())
        if CREW in streams and (cut_off or self.crew_settings.remote):
            self._crew.begin()  # it says at once what becomes of what was cut off, or is elsewhere
        self._keeper = MemoryRecorder(
            self.memory, self.store, self.blobs, self.clock, self._live.restore, self.pace.checkpoint
        )
        self._keeper.begin()
        index = keep_index(self.workspace, self.store, self.clock, RETRY_JOURNAL_S)
        self._tasks = [
            asyncio.create_task(self._keep_journal_alive(), name="journal watch"),
            asyncio.create_task(index, name="journal index"),
            asyncio.create_task(self.library.watch(), name="recipe watch"),
        ]
        if self.config.keep_days or self.config.journal_mb:
            self._tasks.append(asyncio.create_task(self._archive_old(), name="archiving"))
        await self._weigh_data()
        self._live.go_on()

    async def _begin_servers(self) -> None:
        """Begin to connect the MCP servers that may start; they are ready a little later."""
        home, log = self.config.home, self._log
        files = [place / MCP_SETTINGS for place in (self.workspace, home) if place is not None]
        if log is None or not await asyncio.to_thread(lambda: any(file.exists() for file in files)):
            return
        # late: few workspaces have servers
        from engine.tools.mcp import permissions, process, settings, workspace_servers

        named = await asyncio.to_thread(settings.load_all, self.workspace, home, self.trust)
        around = process.ProgramEnvironment(self.workspace, self.root, self.config.policy, os.environ)
        decided = permissions.ServerPermissions(self.workspace, home)
        await decided.restore(self.store)
        self.servers = workspace_servers.Servers(
            named, around, self.clock, self._server_changed, decided, log
        )
        self.servers.register(self.registry)
        self.servers.begin()

    async def _about_servers(self, command: ForServers, actor: str) -> cmd.Receipt:
        if self.servers is None:
            return cmd.Receipt(ok=False, message="mcp.json names no servers here")
        return await self.servers.carry_out(command, actor)

    def _server_changed(self, view: ServerView) -> None:
        if view.name in self.registry:
            self.tool_changed(view.name)

    def tool_changed(self, tool: str) -> None:
        """A registered tool from outside may offer something else now: tell every agent's stream.

        Raises:
            UnknownToolError: there is no such tool.
        """
        offer = offer_of(self.registry.get(tool))
        if self._offered.get(tool) != offer:
            self._offered[tool] = offer
            self._live.offer(offer)

    async def _rewriter(self, agent: str, cause: str) -> ModelRewriter | None:
        """What helps an agent's searches of memory, or the operator's."""
        if agent:
            one = self._agents.get(agent)
            if one is None or one.around.model is None or not one.around.model_name:
                return None
            return rewriter_for(one.around.model, one.around.model_name, one.recorder, cause)
        if self.model is None:
            return None
        from engine.planning.thinkers.query_rewriter import ModelRewriter  # late: few have one

        await self.mastermind()  # its stream holds what calls of the workspace's own took
        self._searching = self._searching or ModelRewriter(self.model, self.model_name)
        return self._searching

    def _all_share(self, memory: Memory) -> SharedServices:
        assert self._coder is not None
        return SharedServices(
            ports=self._ports,
            coders=self._coders,
            control=self._coder.sessions,
            memory=memory,
            client=self._client,
            ledger=self._budgets.ledger,
            background=self._background,
            branches=self.time_travel,
            run_thinkers=self._run_thinkers,
            procedural=ProceduralThinker(self.library),
            parts=self._parts,
            **fields_of(self, "workspace", "config", "store", "blobs", "registry", "kept", "pace"),
        )

    async def open_scratch(self, place: Path, limits: SpendingLimits | None) -> Engine:
        """An engine on a scratch workspace; see `engine.improve.ports.MastermindHost`.

        What runs there is held by the same policy; nothing is saved before actions, as nothing is kept.
        """
        (place / DATA_DIRECTORY).mkdir(mode=0o700, exist_ok=True)
        note_place(place, IN_FILE)
        config = EngineConfig(policy=self.sandbox().policy, snapshots=SnapshotRule.OFF)
        ports = Ports(seed=lambda: SCRATCH_SEED)
        if limits is None:
            ports.clock = HastyClock()
        else:
            config = replace(config, model=self.config.model, budget=limits)
        return await Engine.open(place, ports=ports, config=config)

    async def close(self, reason: str = "") -> None:
        """Stop every agent where it stands, record it, and close the workspace."""
        self._stop.set()
        try:
            await self._mastermind.close()
            await self._crew.close()
            await self._router.close()
            await self._end_tasks()
            if self._keeper is not None and not self._keeper.trouble:
                with suppress(TimeoutError):
                    async with asyncio.timeout(KEEP_UP_S):
                        await self._keeper.caught_up()
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
        await asyncio.gather(*(agent.close() for agent in self._agents.values()), return_exceptions=True)
        if self._runs is not None:
            await self._runs.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _let_go(self) -> None:
        """End what still runs, recorded or not, and give up the sandbox and the journal."""
        await self._mastermind.close()
        await self._crew.close()
        await self._end_tasks()
        await self._background.close()
        await self._close_memory()
        if self.servers is not None:
            await self.servers.close()
        await self.time_travel.close()
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

    async def _run_service(self) -> RunService:
        if self._open_run_service is None:
            await self._crew.opened()  # which staffs it
        if self._open_run_service is None:
            raise JournalError("nothing in this workspace runs handoffs")
        return await self._open_run_service()

    def set_run_service(
        self,
        open_service: Callable[[], Awaitable[RunService]],
        *,
        permits: Permits | None = None,
        colleagues: RunService | None = None,
        present: bool = True,
    ) -> Runs:
        """Make the service that runs handoffs; from now on it answers the agents' tool `crew`.

        Args:
            open_service: opens the manager of handoffs.
            permits: leave to ask a model.
            colleagues: knows whom an agent may hand work to.
            present: whether an operator is here to be asked.
        """
        from engine.crew.worker import Runs

        self._open_run_service = open_service
        policy = self.config.policy
        submit = partial(self.submit, own=True)
        self._runs = Runs(self._live, submit, self.store, present=present, policy=policy)
        self._shared.permits, self._run_thinkers.colleagues = permits, colleagues
        return self._runs

    def allow_reading(self, lent: Callable[[str], Path | None]) -> None:
        """Say where programs of an agent may read besides what its policy says, as the files of its skill."""
        self._coders.lent = lent

    async def crew(self) -> Crew:
        """Who manages agents that hand work to each other; opened when it is first needed.

        Raises:
            JournalError: its stream cannot be read.
        """
        return await self._crew.opened()

    async def agent_service(self) -> AgentService:
        """What can be done with agents, identities and registries; opened with Mastermind.

        Raises:
            JournalError: Mastermind's stream cannot be read.
        """
        return (await self._mastermind.opened()).service

    async def _close_memory(self) -> None:
        if self._keeper is not None:
            await self._keeper.close()
        if self.memory is not None:
            await self.memory.close()

    def _note(self, payload: ev.Payload) -> None:
        assert self._log is not None
        self._log.append(payload, actor="system", causes=(), tick=0)

    async def _weigh_data(self) -> None:
        """Hold agents where the data take all the room that they may, until they do not."""
        disk = await asyncio.to_thread(self.quota.weigh)
        freed = bool(self._budgets.ledger.disk) and not disk
        self._budgets.ledger.disk = disk
        if freed:
            self._budgets.release_agents(self._agents, "system")

    async def _archive_old(self) -> None:
        """Archive what is older, or more, than the settings keep: now, and once an hour."""
        from engine.api.archiving import Archiver, days_before, live_bytes  # late: few settings say so

        assert self._log is not None
        archiver = Archiver(self.workspace, self.store, self._log, "system")
        while True:
            try:
                now, limit = self.clock.now(), self.config.journal_mb
                made = []
                if self.config.keep_days is not None:
                    made.append(await archiver.archive(days_before(now, self.config.keep_days), now))
                if limit is not None:
                    used = await asyncio.to_thread(live_bytes, self.store.path, self.blobs)
                    if used > limit * MB:
                        excess = used - limit * MB * ARCHIVE_TO_PERCENT // 100
                        made.append(await archiver.archive(now, now, excess=excess))
                for each in made:
                    if each.file is not None:
                        self.archived = each.words
            except (JournalError, OSError, sqlite3.Error) as error:
                self.archived = f"old contents were not archived: {error}"
            await self.clock.sleep(ARCHIVE_EVERY_S)

    async def _keep_journal_alive(self) -> None:
        """While the journal is in trouble, try it again; snapshot states now and then."""
        weigh_at = self.clock.monotonic()
        tidy_at = self.clock.monotonic() + TIDY_AFTER_S
        await self._live.save_ended_agents()
        unsettled: list[Memory | LazyMastermind | LateCrew] = [self.memory] if self.memory is not None else []
        unsettled += [each for each in (self._mastermind, self._crew) if each.has_stream]
        while not self._stop.is_set():
            if self.time_travel.main is not None and self.clock.monotonic() > tidy_at:
                self.time_travel.main.tidy()
                tidy_at = inf
            if self.clock.monotonic() >= weigh_at:
                weigh_at = self.clock.monotonic() + WEIGH_EVERY_S
                await self._weigh_data()
            await self.clock.sleep(RETRY_JOURNAL_S)
            while unsettled:
                # What the last session left half done is settled, and what is wrong is said, unasked.
                unsettled.pop().begin()
            agents = list(self._agents.values())
            share = FOLDED_AT_OPENING // max(1, len(agents))
            for agent in agents:
                if agent.log.trouble is not None:
                    with suppress(JournalError):
                        await agent.log.commit()
                        agent.wake()
                await self._live.keep(agent, at_least=max(SNAPSHOT_LEAST, min(SNAPSHOT_EVERY, share)))
            for run in self._live.idle_runs():
                if self._runs is None or not self._runs.works_on(run):
                    await self._live.retire(run)
            await self._mastermind.try_again()
            await self._crew.try_again()
            self._budgets.keep_time(self._agents)
            await self._router.deny_overdue()

    # -------------------------------------------------------------- commands

    async def submit(
        self, command: cmd.Command, *, operator: str = "operator", own: bool = False
    ) -> cmd.Receipt:
        """Carry out a command; what the receipt says is durable when it is returned.

        A command that cannot be carried out is answered with `ok=False` and the reason, never an exception.
        It is carried out to the end even when the caller is cancelled. `own`: it is no operator's, and so
        done whoever holds the agent's controls.
        """
        return await self._router.submit(command, operator=operator, own=own)

    async def stopped(self) -> None:
        """Return when every stop has its last receipt: all that was to die is dead, or said to live."""
        await self._router.stops.settled()

    @property
    def clients(self) -> Sequence[Mapping[str, Any]]:
        """Who is connected to this engine, with whoever operates it in its own process."""
        return [row for clients in self.gateways for row in clients()]

    def root_of(self, agent: str) -> Path:
        """Where an agent's files are: the workspace's sandbox, or of a fork its own."""
        return self.time_travel.root_of(agent)
