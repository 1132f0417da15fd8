"""The façade: the one door between whoever steers and the agents of a workspace."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from engine import __version__, loop, mcp
from engine.actions.saving import SnapshotRule, WorkspaceSaver
from engine.answers import Answers
from engine.crew.opening import LateCrew
from engine.crew.tool import CrewTool
from engine.domain import commands as cmd
from engine.domain.budgets import SpendingLimits
from engine.domain.health import Health
from engine.domain.ports import Permits, Ports
from engine.domain.server_commands import ForServers
from engine.domain.state import AgentState
from engine.inquiry.index_keeping import keep_index
from engine.journal import events as ev
from engine.journal.blobs import BlobStore
from engine.journal.errors import JournalError
from engine.journal.event import CREW, GENESIS, MASTERMIND, WORKSPACE, of_agent
from engine.journal.log import StreamLog
from engine.journal.opening import open_store
from engine.journal.store import DATA_DIRECTORY, JournalStore
from engine.journal.verify import workspace_head
from engine.library.plan_library import PlanLibrary
from engine.library.prompt_parts import PromptReader
from engine.loop.agent import Agent
from engine.loop.branching import FORKS_DIRECTORY, Branches
from engine.loop.budgets import Budgets
from engine.loop.door import Door
from engine.loop.live_agents import MIND, LiveAgents
from engine.loop.pacing import GIVE_WAY_S
from engine.loop.sharing import EngineConfig, Shared
from engine.mastermind.opening import LateMastermind
from engine.memory import Memory, MemoryUnavailable
from engine.memory.keeper import Keeper
from engine.memory.tool import MemoryTool
from engine.metacognition import BackgroundRunner
from engine.sandbox.files import make_root
from engine.sandbox.paths import PathError
from engine.sandbox.policy import Tier
from engine.sandbox.probe import layers
from engine.snapshots import SnapshotError, SnapshotPolicy, Snapshots
from engine.steering.ledger import Ledger
from engine.thinkers.procedural import ProceduralThinker
from engine.tools.coders import Coders
from engine.tools.mind import Mind
from engine.tools.registry import ToolRegistry
from engine.tools.simple_coder import SimpleCoder
from engine.tools.worlds import WorldTool
from engine.worlds.explorer_world import WORLDS

if TYPE_CHECKING:
    from engine.crew.crew import Crew
    from engine.crew.parts import Desk as HandoffDesk
    from engine.crew.runs.worker import Runs
    from engine.mastermind.desk import Desk
    from engine.mastermind.mastermind import Mastermind
    from engine.mcp.health import ServerView
    from engine.mcp.starting import StartedServers
    from engine.models.port import ModelClient
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


class Engine(Answers):
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
        self._servers: StartedServers | None = None
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
            self._about_servers,
        )
        await self._begin_servers()
        await self._live.resume({name: head for name, head in streams.items() if of_agent(name)})
        await self._budgets.restore(self.store)
        if MASTERMIND in streams:
            # What the last session left half done is settled without being asked for.
            self._mastermind.begin()
        if CREW in streams:
            self._crew.begin()
        self._keeper = Keeper(
            self._memory, self.store, self.blobs, self._ports.clock, self._live.restore, self.at_leisure
        )
        self._keeper.begin()
        index = keep_index(self.workspace, self.store, self._ports.clock, RETRY_JOURNAL_S)
        self._tasks = [
            asyncio.create_task(self._keep_journal_alive(), name="journal watch"),
            asyncio.create_task(index, name="journal index"),
            asyncio.create_task(self.library.watch(lambda: None, self._stop), name="recipe watch"),
        ]
        self._live.go_on()

    async def _begin_servers(self) -> None:
        """Begin to connect the MCP servers that have leave to start; they are ready a little later."""
        home, log = self.config.home, self._log
        files = [place / MCP_SETTINGS for place in (self.workspace, home) if place is not None]
        if log is None or not await asyncio.to_thread(lambda: any(file.exists() for file in files)):
            return
        settings = await asyncio.to_thread(mcp.load_all, self.workspace, home)
        around = mcp.Surroundings(self.workspace, self.root, self.config.policy, os.environ)
        self._servers = await mcp.open_servers(
            settings, around, self._ports.clock, self._server_changed, home=home, store=self.store, log=log
        )
        self._servers.register(self.registry)
        self._servers.begin()

    async def _about_servers(self, command: ForServers, actor: str) -> cmd.Receipt:
        if self._servers is None:
            return cmd.Receipt(ok=False, message="mcp.json names no servers here")
        return await self._servers.carry_out(command, actor)

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
    ) -> Runs:
        """Who makes agents of handoffs; from now on the desk answers these agents' tool `crew`.

        Args:
            desk: opens the manager of handoffs.
            permits: leave to ask a model.
            colleagues: knows whom an agent may hand work to.
            present: whether somebody is there to be asked.
        """
        from engine.crew.runs.equipping import Equipment
        from engine.crew.runs.worker import Runs

        self._staffed = desk
        policy = self.config.policy
        self._runs = Runs(
            self._live,
            self.submit,
            self.store,
            present=present,
            equipment=Equipment(self.registry, self.tool_changed, self.root, policy),
            policy=policy,
        )
        self._shared.permits, self._shared.colleagues = permits, colleagues
        return self._runs

    def script_proofs(self, scripted: Callable[[AgentState], ModelClient | None]) -> None:
        """Say who answers runs that prove a new agent, instead of the model; None for all other runs."""
        self._shared.scripted = scripted

    def let_read(self, lent: Callable[[str], Path | None]) -> None:
        """Say where programs of an agent may read besides what its policy says, as the files of its skill."""
        self._coders.lent = lent

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
        await self._live.keep_over()
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
            for run in self._live.idle_runs():
                if self._runs is None or not self._runs.works_on(run):
                    await self._live.retire(run)
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

    def give_way(self, seconds: float = GIVE_WAY_S) -> None:
        """The operator did something that is to be on the screen at once: agents wait for a moment.

        Args:
            seconds: how long at most; `go_on` ends it.
        """
        self._shared.pace.give_way(seconds)

    def go_on(self) -> None:
        """What agents gave way to is done."""
        self._shared.pace.go_on()

    async def at_leisure(self) -> None:
        """Let others have their turn of the loop; for who has much to do that can wait for a moment."""
        await self._shared.pace.at_leisure()

    def root_of(self, agent: str) -> Path:
        """Where an agent's files are: the workspace's sandbox, or of a fork its own."""
        return self._branches.root_of(agent)
