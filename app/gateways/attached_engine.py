"""The engine of another process, as a cockpit operates it.

What is durable is read here, from the journal, memory and blobs of the workspace; what only lives in the
engine is asked over its socket. Where the connection is lost, what was read stays, and it is tried again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

from app.gateways.addresses import AddressError
from app.gateways.engine_client import LOST_S, EngineClient, EngineLostError, new_key
from app.gateways.protocol import ProtocolError
from app.gateways.remote_parts import RemoteBranches, RemoteTool, made, remote_tools
from app.gateways.terminal_relay import RemoteTerminal
from engine.agent.shared import EngineConfig
from engine.agent.steering.budget_status import BudgetStatus
from engine.agent.turn_scheduler import TurnScheduler
from engine.api.workspace_engine import EngineAwayError, WorkspaceEngine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.actions import ToolOffered
from engine.core.agents import Health, ServerDistrusted, ServerTrusted
from engine.core.budgets import SpendingLimits
from engine.core.fold import copy_state, fold
from engine.core.journal import CREW, MASTERMIND, WORKSPACE, Event
from engine.core.memory import MemoryStatus
from engine.core.ports import Ports
from engine.core.state import AgentState
from engine.core.store.opening import open_journal
from engine.core.store.stored import StoredJournal
from engine.core.streams import StateStream, restore
from engine.inquiry.inbox import Need
from engine.inquiry.waiting import Waiting
from engine.planning.library.plan_library import PlanLibrary, shipped_recipes
from engine.sandbox.files import make_root
from engine.sandbox.policy import Network, Tier
from engine.sandbox.tier import layers
from engine.tools.registry import built_in_tools
from engine.tools.shared_coder import SharedCoder
from engine.tools.simple_coder import SimpleCoder
from engine.value import replace

if TYPE_CHECKING:
    from engine.crew.crew import Crew
    from engine.improve.agent_creation import AgentService
    from engine.improve.mastermind import Mastermind
    from engine.memory.open_memory import MemoryReader
    from engine.memory.requests import Request

LOOK_S = 0.5
"""How often health and budgets are asked, and a lost connection is tried again."""
LOOK_AGENTS = 8
"""How many looks apart the list of agents is asked where no event has changed it."""
ANSWER_S = 5.0
"""After so long without an answer the connection counts as lost."""
UNREACHABLE = (EngineLostError, ProtocolError, AddressError, TimeoutError)
OF_TOOLS = frozenset(kind.kind for kind in (ToolOffered, ServerTrusted, ServerDistrusted))
"""Events after which tools or servers are others."""
CHANGE_AGENTS = (cmd.CreateAgent, cmd.ForkAgent, cmd.DeleteAgent)
READ_ONLY = "this cockpit only watches (--read-only), so nothing is sent"
SERVICE = "agents are created and deleted where the engine is: agent_create and agent_delete do it there"
AGAIN_S = 0.1
"""How long after a shell was not there it is asked for again."""


class AttachedEngine(WorkspaceEngine):
    """An engine that another process has; get it by `attach`, and `close` it."""

    def __init__(
        self,
        workspace: Path,
        config: EngineConfig,
        store: StoredJournal,
        client: EngineClient,
        operator: str,
        watch: bool,
    ) -> None:
        library = PlanLibrary(shipped_recipes(), workspace / "recipes", config.trust)
        super().__init__(workspace, replace(config, model=None), Ports(), store, library)
        self.model_name = config.model.name if config.model is not None else ""
        self.here = Path.cwd()
        self.pace = TurnScheduler()
        self.time_travel = RemoteBranches(workspace, self.root, store, self.view, self._ask)
        self.session = ""
        self._connection: EngineClient | None = client
        self._watching = watch
        self._operator = operator
        self._trouble = ""
        """Why the engine cannot be reached; empty where it can."""
        self._rows: dict[str, dict[str, Any]] = {}
        """What is known of each agent."""
        self._parents: dict[str, str] = {}
        self._states: dict[str, AgentState] = {}
        """States as they were when they were asked for last."""
        self._folding = asyncio.Lock()
        self._stale = 0
        """Looks until the agents are asked again."""
        self._health, self._clients = Health(), list[dict[str, Any]]()
        self._budget_asked: tuple[str, str] | None = None
        self._budgets_seen: dict[tuple[str, str], tuple[BudgetStatus, ...]] = {}
        self._followed: dict[str, Any] = {}
        """The crew and Mastermind as their streams have them."""
        self._streams: dict[str, StateStream[Any]] = {}
        self._terminals: dict[str, RemoteTerminal] = {}
        self._reaching: dict[str, asyncio.Task[None]] = {}
        """Shells that are being asked for."""
        self._tools_of: object = None
        """Session and troubles of servers for which the tools were asked last."""
        self._reader: MemoryReader | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._back = asyncio.Event()
        """Set while there is a connection."""
        self._closed = False

    @classmethod
    async def attach(
        cls, workspace: Path, config: EngineConfig, *, operator: str = "", watch: bool = False
    ) -> Self | None:
        """The running engine of a workspace; None where none answers.

        Args:
            workspace: its directory.
            config: how it would be opened.
            operator: in whose name commands are sent.
            watch: whether nothing is to be sent.

        Raises:
            JournalError: the journal cannot be read, or the engine does not answer or refuses this program.
        """
        try:
            client = await EngineClient.open(workspace, operator, watch=watch)
        except (AddressError, ProtocolError) as error:
            raise EngineAwayError(str(error)) from error
        if client is None:
            return None
        store: StoredJournal | None = None
        try:
            store = await open_journal(workspace, clock=Ports().clock, read_only=True)
            engine = cls(workspace, config, store, client, operator, watch)
            await engine._begin()
        except BaseException as error:
            await client.close()
            if store is not None:
                await store.close()
            if isinstance(error, UNREACHABLE):
                raise EngineAwayError(str(error)) from error
            raise
        return engine

    async def _begin(self) -> None:
        await asyncio.to_thread(make_root, self.root)
        await asyncio.to_thread(layers)
        self._coder = SimpleCoder(self.root, self.config.policy)
        self._coders = SharedCoder(self._coder)
        for tool in (self._coders, *built_in_tools()):
            self.registry.register(tool)
        await self._greeted()
        await self._look()
        if self._health.servers:  # what waits for permission is said at once
            await self.look_at_tools()
        self._tasks = [asyncio.create_task(self._keep_looking(), name="attached engine")]

    async def close(self, reason: str = "") -> None:
        """End the connection; the engine runs on."""
        self._closed = True
        self._back.set()
        tasks = [*self._tasks, *self._reaching.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for terminal in self._terminals.values():
            await terminal.close()
        if self._connection is not None:
            await self._connection.close()
        if self._reader is not None:
            await self._reader.close()
        for stream in self._streams.values():
            await stream.log.close()
        self._coders.close()
        if self._coder is not None:
            self._coder.close()
        await self.store.close()

    # -------------------------------------------------------------- the connection

    async def _greeted(self) -> None:
        """Take in what the engine says of itself."""
        assert self._connection is not None
        hello = self._connection.hello
        if hello.get("session") != self.session:
            self.session = str(hello.get("session"))
            for kind in (ev.TierAccepted.kind, ev.NetworkGranted.kind):
                for event in await self.store.last(1, WORKSPACE, kind=kind):
                    self._accept(ev.payload_of(event))
        self._trouble, self._stale = "", 0
        self._back.set()

    def _accept(self, payload: ev.Payload) -> None:
        if isinstance(payload, ev.TierAccepted) and payload.session == self.session:
            self._coders.accept(Tier(payload.tier))
        if isinstance(payload, ev.NetworkGranted) and payload.session == self.session:
            self._coders.grant_network(Network(payload.network))

    async def _keep_looking(self) -> None:
        while True:
            try:
                async with asyncio.timeout(ANSWER_S):
                    if self._connection is None:
                        self._connection = await EngineClient.open(
                            self.workspace, self._operator, watch=self._watching
                        )
                        if self._connection is not None:
                            await self._greeted()
                    if self._connection is not None:
                        await self._look()
                        await self.look_at_tools()
            except UNREACHABLE as error:
                await self._lose(error)
            await asyncio.sleep(LOOK_S)

    async def _lose(self, error: Exception) -> None:
        """Note that the engine does not answer; a connection that has ended is given up."""
        self._trouble = str(error) or f"the engine has not answered for {ANSWER_S:g} s"
        if not isinstance(error, EngineLostError) or self._connection is None:
            return
        client, self._connection = self._connection, None
        self._back.clear()
        self._clients = []
        await client.close()

    async def _look(self) -> None:
        """Ask what changes without an event."""
        client = self._connection
        assert client is not None
        answer = await client.ask("health")
        self._clients = [row for row in answer.pop("clients", ()) if isinstance(row, dict)]
        self._health = made(Health, answer)
        if self._stale <= 0:
            self._stale = LOOK_AGENTS
            self._rows = {row["agent"]: row for row in await client.ask("agents")}
        self._stale -= 1
        if self._budget_asked is not None:
            await self._look_at_budgets(*self._budget_asked)
        self._trouble = ""

    async def _ask_once(self, name: str, **given: Any) -> Any:
        """Ask for something that is carried out once: while there is no engine, another one is waited for.

        Raises:
            EngineAwayError: no engine has answered for a while, or it refuses.
        """
        key, until = new_key(), asyncio.get_running_loop().time() + LOST_S
        while True:
            try:
                return await self._ask(name, key=key, **given)
            except EngineAwayError as error:
                refused = self._connection is not None and not isinstance(error.__cause__, EngineLostError)
                if refused or asyncio.get_running_loop().time() > until:
                    raise
            await asyncio.sleep(LOOK_S)

    async def look_at_tools(self) -> None:
        """Ask for tools and servers where they may be others now."""
        if (now := (self.session, self._health.servers)) == self._tools_of or self._connection is None:
            return
        self._tools_of = now
        said = await self._connection.ask("tools")
        for tool in remote_tools(said):
            known = self.registry.get(tool.id) if tool.id in self.registry else None
            if known is None:
                self.registry.register(tool)
            elif isinstance(known, RemoteTool):
                known.commands = tool.commands
        self.servers = None
        if said["views"]:
            from app.gateways.remote_servers import RemoteServers  # late: few workspaces have servers

            self.servers = RemoteServers(said, self.workspace, self.root)

    async def _ask(self, name: str, **given: Any) -> Any:
        """Ask the engine.

        Raises:
            EngineAwayError: it cannot be reached, or refuses.
        """
        if self._connection is None:
            raise EngineAwayError(f"the engine cannot be reached: {self._trouble}")
        try:
            return await self._connection.ask(name, **given)
        except UNREACHABLE as error:
            raise EngineAwayError(str(error)) from error

    @property
    def link(self) -> str:
        """See `WorkspaceEngine`."""
        if self.lost:
            return "connection lost, trying again"
        hello = self._connection.hello if self._connection is not None else {}
        return f"{'watching' if self._watching else 'attached to'} {hello.get('kind')} {hello.get('pid')}"

    @property
    def watching(self) -> bool:
        """See `WorkspaceEngine`."""
        return self._watching

    @property
    def lost(self) -> bool:
        """See `WorkspaceEngine`."""
        return bool(self._trouble)

    @property
    def clients(self) -> Sequence[Mapping[str, Any]]:
        """See `WorkspaceEngine`."""
        return self._clients

    # -------------------------------------------------------------- commands and events

    async def submit(
        self, command: cmd.Command, *, operator: str = "operator", own: bool = False
    ) -> cmd.Receipt:
        """Have the engine carry out a command, in the name that the connection has."""
        if self._watching:
            return cmd.Receipt(ok=False, message=READ_ONLY)
        try:
            answer = await self._ask_once("submit", command=command.model_dump(mode="json"))
            if isinstance(command, CHANGE_AGENTS):
                self._rows = {row["agent"]: row for row in await self._ask("agents")}
        except EngineAwayError as error:
            return cmd.Receipt(ok=False, message=str(error))
        return cmd.Receipt.model_validate(answer)

    async def line(self, line: str, agent: str, *, dry: bool = False) -> tuple[int, dict[str, Any], str]:
        """Have the engine carry out a line of the command bar."""
        if self._watching and not dry:
            return 1, {"ok": False, "message": READ_ONLY}, READ_ONLY
        given = await self._ask_once("line", line=line, agent=agent, dry=dry, cwd=str(self.here))
        self._stale = 0
        return given["code"], given["answer"], given["text"]

    async def stopped(self) -> None:
        """The engine's own receipts say it; nothing is waited for."""

    async def events(
        self, since: int = 0, *, stream: str | None = None, follow: bool = True
    ) -> AsyncIterator[Event]:
        """See `WorkspaceEngine.events`; what came while the connection was lost is read from the journal."""
        place = since
        while True:
            if follow and (client := self._connection) is not None:
                with suppress(*UNREACHABLE):
                    async for event in client.events(place, stream or ""):
                        place = event.seq
                        await self._take(event)
                        yield event
            async for event in self.store.events(place, stream=stream):
                place = event.seq
                await self._take(event)
                yield event
            if not follow or self._closed:
                return
            await asyncio.sleep(LOOK_S)
            await self._back.wait()

    async def _take(self, event: Event) -> None:
        """Keep up what is folded here."""
        if (part := self._streams.get(event.stream)) is not None:
            version = part.state.version
            if event.version > version:
                missing = await self.store.read(event.stream, version + 1, event.version)
                part.take(each for each in missing if each.version > part.state.version)
        payload = ev.payload_of(event) if event.stream == WORKSPACE else None
        if payload is not None:
            self._accept(payload)
        if event.kind in OF_TOOLS:
            self._tools_of = None
        if event.kind.startswith("agent.") and event.kind != ev.AgentPaused.kind:
            self._stale = min(self._stale, 1)

    # -------------------------------------------------------------- what is asked

    async def view(self, agent_id: str, at: int | None = None) -> AgentState:
        """See `WorkspaceEngine.view`; what is durable counts, as all is that a receipt says."""
        if at is not None:
            state, _ = await restore(self.store, agent_id, at)
        else:
            async with self._folding:
                if (state := self._states.get(agent_id) or AgentState()).version:
                    state = fold(await self.store.read(agent_id, state.version + 1), state)
                else:
                    state, _ = await restore(self.store, agent_id)
                if state.version:
                    self._states[agent_id] = state
            state = copy_state(state)
        if not state.version:
            raise KeyError(agent_id)
        self._parents[agent_id] = state.config.parent
        return state

    async def story(self, agent: str, count: int) -> tuple[AgentState, list[Event]]:
        """See `WorkspaceEngine.story`."""
        past = await self.store.last(count, agent)
        before = past[0].version - 1 if past else 0
        return ((await restore(self.store, agent, before))[0] if before else AgentState()), past

    @property
    def agents(self) -> tuple[str, ...]:
        """See `WorkspaceEngine.agents`."""
        return tuple(self._rows)

    def fault(self, agent: str) -> str:
        """See `WorkspaceEngine.fault`."""
        return str(self._rows.get(agent, {}).get("fault", ""))

    @property
    def faulty(self) -> tuple[str, ...]:
        """See `WorkspaceEngine.faulty`."""
        return tuple(agent for agent in self._rows if self.fault(agent))

    async def faulted(self, agent: str) -> str:
        """See `WorkspaceEngine.faulted`."""
        return str(await self._ask("faulted", agent=agent))

    async def durable(self, agent: str) -> None:
        """Nothing to wait for: states here are folded from what is durable."""

    def family(self, agent: str) -> tuple[str, ...]:
        """See `WorkspaceEngine.family`."""
        family = [agent]
        for above in family:  # which grows as those below it are found
            family += [name for name in self._rows if self._parents.get(name) == above]
        return tuple(family)

    @property
    def health(self) -> Health:
        """See `WorkspaceEngine.health`."""
        return self._health

    async def waiting(self, agent_id: str) -> Waiting:
        """See `WorkspaceEngine.waiting`."""
        return made(Waiting, await self._ask("waiting", agent=agent_id))

    async def inbox(self) -> tuple[Need, ...]:
        """See `WorkspaceEngine.inbox`."""
        return tuple(made(Need, row) for row in await self._ask("inbox"))

    def budgets(self, agent: str, goal: str = "") -> tuple[BudgetStatus, ...]:
        """See `WorkspaceEngine.budgets`; as they were a moment ago, and nothing before they were asked."""
        self._budget_asked = (agent, goal)
        return self._budgets_seen.get(self._budget_asked, ())

    async def _look_at_budgets(self, agent: str, goal: str) -> None:
        assert self._connection is not None
        with suppress(ProtocolError):
            rows = await self._connection.ask("budgets", agent=agent, goal=goal)
            self._budgets_seen = {(agent, goal): tuple(made(BudgetStatus, row) for row in rows)}

    def terminal(self, agent: str) -> RemoteTerminal | None:
        """See `WorkspaceEngine.terminal`; it is there a moment after it was asked for."""
        terminal = self._terminals.get(agent)
        if terminal is not None and terminal.open:
            return terminal
        if agent not in self._reaching:
            self._reaching[agent] = asyncio.create_task(self._reach(agent), name="terminal")
        return None

    async def _reach(self, agent: str) -> None:
        try:
            if self._connection is not None:
                wire = await self._connection.carry("terminal", agent=agent)
                self._terminals[agent] = RemoteTerminal(wire, watching=self._watching)
        except UNREACHABLE:
            await asyncio.sleep(AGAIN_S)
        finally:
            del self._reaching[agent]

    @property
    def memory_status(self) -> MemoryStatus | None:
        """See `WorkspaceEngine`."""
        return self._reader.status if self._reader is not None else MemoryStatus()

    async def recall(
        self,
        request: Request[Any] | str,
        arguments: Mapping[str, Any] | None = None,
        *,
        as_of: int | None = None,
    ) -> Any:
        """See `WorkspaceEngine.recall`; memory is read, and never written here."""
        from engine.memory.open_memory import MemoryReader  # late: memory's database is large

        if self._reader is not None and self._reader.note:
            old, self._reader = self._reader, None
            await old.close()
        if self._reader is None:
            self._reader = await MemoryReader.look(
                self.workspace, self.store, clock=self.clock, embedder=self.config.embedder
            )
        if isinstance(request, str):
            return await self._reader.ask_by_name(request, arguments or {}, as_of=as_of)
        return await self._reader.ask(request, as_of=as_of)

    async def crew(self) -> Crew:
        """The crew as its stream has it; commands to it are submitted."""
        from engine.crew.crew import Crew  # late: the crew is large
        from engine.crew.event_stream import EventStream

        if CREW not in self._followed:
            stream = self._streams[CREW] = await EventStream.open(self.store, self.clock)
            self._followed[CREW] = Crew(self, stream)
        part: Crew = self._followed[CREW]
        return part

    async def mastermind(self) -> Mastermind:
        """Mastermind as its stream has it; commands to it are submitted."""
        from engine.improve.mastermind import Mastermind  # late: Mastermind is large
        from engine.improve.state import EventStream

        if MASTERMIND not in self._followed:
            stream = self._streams[MASTERMIND] = await EventStream.open(self.store, self.clock)
            self._followed[MASTERMIND] = Mastermind(self, stream)
        part: Mastermind = self._followed[MASTERMIND]
        return part

    async def open_scratch(self, place: Path, limits: SpendingLimits | None) -> NoReturn:
        """Refused: its campaigns run in the engine.

        Raises:
            EngineAwayError: always.
        """
        raise EngineAwayError(SERVICE)

    async def agent_service(self) -> AgentService:
        """Refused: it writes; see `line`.

        Raises:
            EngineAwayError: always.
        """
        raise EngineAwayError(SERVICE)
