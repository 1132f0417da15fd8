"""The façade: the one door between whoever steers and the agents of a workspace."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from engine import __version__, inquiry, loop, reasoner, thinkers
from engine.actions.pipeline import LiveToolbox
from engine.actions.saving import NoSaver, SnapshotRule, WorkspaceSaver
from engine.domain import commands as cmd
from engine.domain.approval import Envelope, Policy, Source
from engine.domain.break_lines import read_break
from engine.domain.budgets import SpendingLimits, check_limits
from engine.domain.mastermind import MastermindSettings
from engine.domain.mastermind_commands import ForMastermind
from engine.domain.ports import Clock, CommandSpec, Ids, Ports
from engine.domain.reasoning import REASONER, SentMessage
from engine.domain.rewinding import RewindScope
from engine.domain.state import AgentConfig, AgentState, RunState
from engine.domain.strict_json import NESTING_LIMIT, too_deep
from engine.domain.thinking import Thinker
from engine.generation import pgp
from engine.journal import events as ev
from engine.journal.blobs import BlobStore
from engine.journal.errors import BlobError, JournalError, JournalLocked
from engine.journal.event import GENESIS, MASTERMIND, WORKSPACE, Event, canonical, of_agent
from engine.journal.fold import SNAPSHOT_FORMAT, copy_state, dump_state, fold
from engine.journal.log import StreamLog
from engine.journal.past import Past
from engine.journal.restoring import restore as restore_state
from engine.journal.store import DATA_DIRECTORY, JournalStore
from engine.journal.verify import workspace_head
from engine.library.plan_library import PlanLibrary
from engine.loop.agent import Agent
from engine.loop.budgets import Budgets
from engine.loop.perceive import WorkspacePerceiver
from engine.loop.recording import Surroundings
from engine.loop.stopping import Stops
from engine.loop.voice import Voice
from engine.memory import Memory, MemoryStatus, MemoryUnavailable
from engine.memory.keeper import Keeper
from engine.memory.operating import remember
from engine.memory.tool import MemoryTool
from engine.metacognition import (
    BackgroundRunner,
    MetaSettingsError,
    StuckSettingError,
    read_metacognition,
    read_stuck,
    workflow_of,
)
from engine.models.choice import NO_MODEL, ModelChoice
from engine.parameters import SettingsError, read_settings
from engine.parameters.thresholds import ThresholdsError, with_thresholds
from engine.recovery import RecoverySettingsError, read_recovery
from engine.sandbox.files import make_root
from engine.sandbox.paths import PathError
from engine.sandbox.policy import PolicyError, SandboxPolicy, Tier
from engine.sandbox.probe import layers
from engine.sandbox.report import SandboxReport
from engine.sandbox.terminal import Terminal
from engine.sandbox.tier import JailRefusal, best_jail
from engine.snapshots import Changes, Restoration, SnapshotError, SnapshotPolicy, Snapshots
from engine.steering.ledger import Ledger
from engine.steering.policies import policy_of
from engine.steering.rewinding import Preview, RewindError, place_of
from engine.steering.rewinding import Surroundings as BackFrom
from engine.steering.rewinding import preview as preview_rewind
from engine.steering.rules import RuleError
from engine.steering.standing import Standing
from engine.thinkers.procedural import ProceduralThinker
from engine.thinkers.recalling import Recall, Recaller, nothing
from engine.tools.coders import Coders, narrowing
from engine.tools.mind import Mind
from engine.tools.registry import ToolRegistry
from engine.tools.simple_coder import SimpleCoder
from engine.tools.worlds import WorldTool
from engine.worlds.explorer_world import WORLDS

if TYPE_CHECKING:
    from engine.inquiry.index import JournalIndex
    from engine.mastermind.mastermind import Mastermind
    from engine.memory.requests import Request
    from engine.models.port import ModelClient
    from engine.steering.undoing import Offer

R = TypeVar("R")

SANDBOX_DIRECTORY = "sandbox"
"""Where agents work, below the workspace; what steers them (journal, recipes) lies outside of it."""
FORKS_DIRECTORY = "forks"
"""Where forks of agents have files of their own, below the workspace."""
SNAPSHOT_EVERY = 500
"""Events of a stream between two snapshots of its state."""
SNAPSHOT_PART = 16
"""The part of its events, one in so many, that may follow the newest snapshot of a long stream."""
SNAPSHOTS_DIRECTORY = "snapshots"
"""Where the sandbox's files are kept as they were before each action, in the data directory."""
TIDY_AFTER_S = 60.0
"""How long after opening a workspace its old snapshots are cleared away."""
KEEP_UP_S = 2.0
"""How long closing waits for memory to hold what has happened; the rest is for the next session."""
INDEX_FROM = 1_024
"""Events of a journal from which on it has an index; fewer are read as quickly."""
RETRY_JOURNAL_S = 1.0
"""How often a journal that could not write is tried again."""
LOCK_TRIES, LOCK_WAIT_S = 100, 0.02
"""How often and at what distance a lock is tried whose holder is dead."""
MIND = "@mind"
"""A snapshot of a reasoner's mind stands beside that of its agent's state under the agent's id and this."""
STYLES = ("plan", "decide")
"""How a model thinks for an agent: whole plans, or one decision after the other (`"style"` at creation)."""
ACTING = (cmd.Run, cmd.Step, cmd.CallTool, cmd.TakeShell, cmd.AdoptGoal)
"""Commands by which an agent comes to act, which it may not while files are brought back under it."""
AGENT_TYPES = ("bdi_agent", REASONER)
"""Types that can be created."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """How a workspace is opened."""

    sandbox: Path | None = None
    """Root of the agents' work; `sandbox` below the workspace by default."""
    policy: SandboxPolicy = field(default_factory=SandboxPolicy)
    snapshots: SnapshotRule = SnapshotRule.REQUIRED
    """Whether the sandbox's files are saved before each action that may change them."""
    approvals: Policy = field(default_factory=Policy)
    """What agents ask about before they do it, as the workspace's settings say."""
    create: bool = True
    model: ModelChoice | None = None
    """The model that thinks; None where there is none: agents then plan by the plan library."""
    budget: SpendingLimits = field(default_factory=SpendingLimits)
    """What all agents together may take over all sessions."""
    agent_budget: SpendingLimits = field(default_factory=SpendingLimits)
    """What each agent may take, with those that work for it."""
    mastermind: MastermindSettings = field(default_factory=MastermindSettings)
    """How the system improves itself."""
    answerer: Callable[[AgentState], pgp.Answerer | None] | None = None
    """Who makes plans for an agent's reasoner; by default the recorded answers that it was created with."""


@dataclass(frozen=True, slots=True)
class Health:
    """What does not work, in words; empty when all is well."""

    journal: str = ""
    library: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    """Agents that ended by a fault of the program or could not be taken up, with the reason."""
    sandbox: str = ""
    """Why no program may run here, when the jail that the policy requires cannot be had."""
    snapshots: str = ""
    """Why old snapshots could not be cleared away; new ones are taken all the same."""
    states: tuple[str, ...] = ()
    """What opening found damaged, and how it went on: a torn end, kept states that were built again."""
    memory: str = ""
    """Why memory is not to be had, or holds not all that it should; agents go on without."""
    memory_behind: int = 0
    """Events of the journal that memory has not been written from yet."""


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
        self._ports = ports
        self._agents: dict[str, Agent] = {}
        self._log: StreamLog | None = None
        self._coder: SimpleCoder | None = None
        self._coders: Coders
        self._faults: dict[str, str] = {}
        """Agents that are here and cannot be taken up, with the reason."""
        self._rebuilt: dict[str, str] = {}
        """Agents of which a kept state could not be used, with the reason."""
        self._saver: WorkspaceSaver | None = None
        self._memory: Memory | None = None
        self._keeper: Keeper | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._carrying: set[asyncio.Task[cmd.Receipt]] = set()
        self._stop = asyncio.Event()
        self._snapshots: dict[str, int] = {}
        """Workspace snapshots that were compared, for questions to the record."""
        self.final_head = ""
        """One hash over all streams, once the engine is closed."""
        self._procedural: Thinker = ProceduralThinker(library)
        self._client = config.model.client() if config.model is not None else None
        self._background = BackgroundRunner()
        self._stops = Stops()
        model = config.model.budget.limits if config.model is not None else SpendingLimits()
        usual = config.agent_budget.over(model)
        self._budgets = Budgets(Ledger(config.budget, usual, ports.clock.now))
        self._rewinds: set[str] = set()
        """Agents whose files are being brought back."""
        self._apart: set[str] = set()
        """Agents that work on files of their own, deleted ones too."""
        self._savers: dict[str, WorkspaceSaver] = {}
        """Who saves the files of those."""
        self._mastermind: asyncio.Task[Mastermind] | None = None

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
        store = await _open_store(workspace, ports.clock, config.create)
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
        self._log = StreamLog(WORKSPACE, version, head, self._ports.clock, self._commit)
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
        for stream in streams:
            if of_agent(stream):
                state = await self._restore(stream)
                self._budgets.ledger.join(state)
                if state.forked is not None:
                    self._apart.add(stream)
                if why := "" if state.deleted else self._why_not(state.agent_type, state.config):
                    self._faults[stream] = why
                elif not state.deleted:
                    try:
                        await self._take_up(state)
                    except reasoner.ForgottenError as error:
                        self._faults[stream] = f"its mind cannot be had again: {error}"
        await self._budgets.restore(self.store)
        if MASTERMIND in streams:
            # What the last session left half done is settled without being asked for.
            self._begin_mastermind()
        self._keeper = Keeper(self._memory, self.store, self.blobs, self._ports.clock, self._restore)
        self._keeper.begin()
        self._tasks = [
            asyncio.create_task(self._keep_journal_alive(), name="journal watch"),
            asyncio.create_task(self._keep_index(), name="journal index"),
            asyncio.create_task(self.library.watch(lambda: None, self._stop), name="recipe watch"),
        ]

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
        kinds = (ev.SnapshotTaken.kind, ev.RewindBegun.kind)
        agents = list(self._agents)
        taken = [await self.store.last(actions, agent, kind=kind) for agent in agents for kind in kinds]
        payloads = [ev.payload_of(event) for events in taken for event in events]
        before = {said.saved for said in payloads if isinstance(said, ev.RewindBegun)}
        return before | {said.snapshot for said in payloads if isinstance(said, ev.SnapshotTaken)}

    async def close(self, reason: str = "") -> None:
        """Stop every agent where it stands, record it, and give the workspace up."""
        self._stop.set()
        try:
            await self._close_mastermind()
            await asyncio.gather(*self._carrying, return_exceptions=True)
            await self._stops.close()
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
                await self._snapshot(agent, at_least=1)
            self.final_head = workspace_head(await self.store.streams())
        finally:
            await self._let_go()

    async def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _let_go(self) -> None:
        """End what still runs, recorded or not, and give up the sandbox and the journal."""
        await self._close_mastermind()
        await asyncio.gather(*(agent.close() for agent in self._agents.values()), return_exceptions=True)
        await self._end_tasks()
        await self._background.close()
        await self._close_memory()
        for saver in (*self._savers.values(), *filter(None, [self._saver])):
            await saver.close()
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
        return await asyncio.shield(self._begin_mastermind())

    def _begin_mastermind(self) -> asyncio.Task[Mastermind]:
        begun = self._mastermind
        if begun is None or (begun.done() and (begun.cancelled() or begun.exception() is not None)):
            begun = asyncio.create_task(self._open_mastermind(), name="mastermind opening")
            # Whoever asks is told.
            begun.add_done_callback(lambda task: task.cancelled() or task.exception())
            self._mastermind = begun
        return begun

    async def _open_mastermind(self) -> Mastermind:
        module = await asyncio.to_thread(import_module, "engine.mastermind.mastermind")
        opened: Mastermind = await module.Mastermind.open(self)
        return opened

    async def _close_mastermind(self) -> None:
        """End its jobs; may be called again."""
        if self._mastermind is not None:
            await asyncio.wait([self._mastermind])
            if not self._mastermind.cancelled() and self._mastermind.exception() is None:
                await self._mastermind.result().close()

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

    def _note(self, payload: ev.Payload, actor: str = "system", *causes: str) -> Event:
        assert self._log is not None
        return self._log.append(payload, actor=actor, causes=causes, tick=0)

    async def _commit(self, events: Sequence[Event]) -> Sequence[Event]:
        return await self.store.commit(events)

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
                await self._snapshot(agent, at_least=SNAPSHOT_EVERY)
            self._budgets.keep_time(self._agents)

    async def _keep_index(self) -> None:
        """Bring the index of the journal forward now and then; the first time behind the first screen."""
        index: JournalIndex | None = None
        try:
            while True:
                await self._ports.clock.sleep(RETRY_JOURNAL_S)
                if index is None and self.store.last_seq >= INDEX_FROM:
                    from engine.inquiry.index import JournalIndex

                    index = JournalIndex(self.workspace)
                if index is not None:
                    await index.bring_forward(self.store.last_seq)
        finally:
            if index is not None:
                await index.close()

    async def _snapshot(self, agent: Agent, *, at_least: int) -> None:
        state = agent.state
        if agent.log.trouble is not None:
            return
        # A long life is kept less often: its state is large, and what follows it is folded quickly.
        least = max(at_least, state.version // SNAPSHOT_PART) if at_least > 1 else at_least
        if state.version - self._snapshots.get(state.agent_id, 0) < least:
            return
        mind = agent.saved() if state.reasons and isinstance(agent, loop.ReasoningAgent) else None
        version, head, copied = state.version, state.hash, copy_state(state)
        self._snapshots[state.agent_id] = version
        with suppress(JournalError):
            text = await asyncio.to_thread(dump_state, copied)
            await agent.log.commit()
            await self.store.save_snapshot(state.agent_id, version, SNAPSHOT_FORMAT, text)
            if mind is not None:
                kept = await asyncio.to_thread(json.dumps, {"head": head, "mind": mind})
                await self.store.save_snapshot(f"{state.agent_id}{MIND}", version, reasoner.FORMAT, kept)

    # -------------------------------------------------------------- agents

    async def _restore(self, stream: str, at: int | None = None) -> AgentState:
        """The state of a stream at a version, from the nearest snapshot and what follows it."""
        state, why = await restore_state(self.store, stream, at)
        if why:
            self._rebuilt[stream] = why
        return state

    def _why_not(self, agent_type: str, config: AgentConfig, *, new: bool = False) -> str:
        """Why no agent can live here with this configuration; empty when one can.

        Args:
            agent_type: what kind of agent it is to be.
            config: the configuration.
            new: the operator is asking now, and is told when they ask for more than the workspace allows.
        """
        if config.thinker not in (self._procedural.name, thinkers.CLAUDE):
            known = f"{self._procedural.name}, {thinkers.CLAUDE}"
            return f"there is no thinker '{config.thinker}'; thinkers: {known}"
        if config.thinker == thinkers.CLAUDE and self._client is None:
            return NO_MODEL
        policy = self._coders.of().policy
        try:
            if agent_type == REASONER:
                reasoner.read_config(config.meta)
            (policy.check_narrowing if new else policy.narrowed)(narrowing(config.meta))
            read_settings(config.meta)
            read_metacognition(config.meta)
            read_stuck(config.meta)
            policy_of(config.meta)
            if wrong := check_limits(config.meta.get("budget", {})):
                return wrong
        except (
            RuleError,
            PolicyError,
            reasoner.ReasonerError,
            SettingsError,
            MetaSettingsError,
            StuckSettingError,
        ) as error:
            return str(error)
        if (style := config.meta.get("style", STYLES[0])) not in STYLES:
            return f"there is no style {style!r}; styles: {', '.join(STYLES)}"
        if style != STYLES[0] and (agent_type == REASONER or not config.replans):
            return f"the style {style!r} needs a model that thinks: give the thinker {thinkers.CLAUDE!r}"
        return ""

    async def _take_up(self, state: AgentState) -> Agent:
        """Make a live agent of a state, in this session."""
        if state.forked is not None:
            await self._set_apart(state.agent_id)
        self._budgets.ledger.join(state)
        self._coders.narrow(state.agent_id, narrowing(state.config.meta))
        self._snapshots[state.agent_id] = state.version
        log = StreamLog(state.agent_id, state.version, state.hash, self._ports.clock, self._commit)
        agent = await self._agent(state, log)
        agent.open(self.session, self._ports.seed())
        agent.begin_metacognition(read_metacognition(state.config.meta))
        own = policy_of(state.config.meta)
        agent.begin_approvals({Source.WORKSPACE: self.config.approvals, Source.AGENT: own})
        await log.commit()
        self._agents[state.agent_id] = agent
        agent.start()
        return agent

    async def _set_apart(self, agent: str) -> None:
        """Let a fork work on its own files."""
        self._apart.add(agent)
        root = self.root_of(agent)
        await asyncio.to_thread(make_root, root)
        self._coders.apart(agent, root)
        if self._saver is not None:
            snapshots = self._saver.snapshots.beside(root, agent)
            self._savers[agent] = WorkspaceSaver(snapshots, self._recent_snapshots)

    def root_of(self, agent: str) -> Path:
        """Where an agent's files are: the workspace's sandbox, or of a fork its own."""
        return self.workspace / FORKS_DIRECTORY / agent if agent in self._apart else self.root

    async def _agent(self, state: AgentState, log: StreamLog) -> Agent:
        around = self._surroundings(state)
        if not state.reasons:
            return Agent(state, log, around)
        return loop.ReasoningAgent(state, log, around, await self._mind(state))

    async def _mind(self, state: AgentState) -> reasoner.Reasoner:
        """An agent's mind: as it was kept, with what has happened since; else from the whole stream.

        Raises:
            ForgottenError: the stream cannot be done again.
        """
        (created,) = await self.store.read(state.agent_id, 1, 1)
        found = await self.store.load_snapshot(f"{state.agent_id}{MIND}", state.version, reasoner.FORMAT)
        if found is not None:
            version, text = found
            since = await self.store.read(state.agent_id, version)
            with suppress(reasoner.ForgottenError, ValueError, KeyError, TypeError):
                kept = await asyncio.to_thread(json.loads, text)
                if kept["head"] == since[0].hash:
                    mind = loop.make_reasoner(state, self.registry, created.at)
                    await asyncio.to_thread(reasoner.restore, mind, kept["mind"])
                    await asyncio.to_thread(_remember, mind, since[1:])
                    if state.mind is not None and mind.agent.cycles == state.mind.cycles:
                        return mind
            self._rebuilt[state.agent_id + MIND] = (
                f"{state.agent_id}: the mind kept at event {version} could not be used; it was built again "
                "from the events"
            )
        past = await self.store.read(state.agent_id, 2)
        mind = loop.make_reasoner(state, self.registry, created.at)
        await asyncio.to_thread(_remember, mind, past)
        return mind

    def _surroundings(self, state: AgentState) -> Surroundings:
        assert self._coder is not None
        thinker = self._procedural
        answerer = (self.config.answerer or _recorded_answers)(state)
        voice: Voice | None = None
        purse: loop.Purse | None = None
        name = ""
        if self._client is not None and self.config.model is not None:
            name = self.config.model.name
            voice = Voice(self._client)
            purse = loop.Purse(self._client, self._budgets.ledger, lambda: voice.goal)
            if answerer is None and state.reasons:
                answerer = thinkers.ModelAnswerer(purse, name, sink=voice.piece, record=voice.called)
            if state.config.thinker == thinkers.CLAUDE:
                recall: Recall = nothing
                if self._memory is not None:
                    recall = Recaller(
                        self._memory, workflow_of, lambda: state, self._ports.clock, kept=self.kept
                    )
                thinker = thinkers.ClaudeThinker(
                    purse, self.registry, name, sink=voice.piece, record=voice.called, recall=recall
                )
        return Surroundings(
            thinker=thinker,
            toolbox=LiveToolbox(self.registry),
            saver=self._savers.get(state.agent_id) or self._saver or NoSaver(),
            perceiver=WorkspacePerceiver(self.registry, self._coders, state.agent_id),
            registry=self.registry,
            clock=self._ports.clock,
            put_blob=self.blobs.put,
            randomness=self._ports.randomness,
            control=self._coder.sessions,
            answerer=answerer,
            voice=voice,
            model=purse,
            # Whoever chose to plan by recipes alone did not choose to pay for a model.
            model_name=name if state.reasons or state.config.replans else "",
            post=self._post,
            ledger=self._budgets.ledger,
            background=self._background,
            watches=True,
            memory=self._memory,
        )

    def _post(self, sender: str, message: SentMessage) -> None:
        """Deliver a message between reasoners; one to nobody is in the sender's journal all the same."""
        receiver = self._agents.get(message.receiver)
        if isinstance(receiver, loop.ReasoningAgent):
            receiver.hear(sender, message)

    async def _create(self, command: cmd.CreateAgent, actor: str) -> cmd.Receipt:
        if command.agent in await self.store.streams():
            what = (
                "exists already"
                if command.agent in self.agents
                else "was deleted; its history bears the name"
            )
            return cmd.Receipt(ok=False, message=f"agent {command.agent} {what}; choose another id")
        if command.agent_type not in AGENT_TYPES:
            known = ", ".join(AGENT_TYPES)
            return cmd.Receipt(
                ok=False, message=f"there is no agent type '{command.agent_type}'; types: {known}"
            )
        usual = thinkers.CLAUDE if self._client is not None else self._procedural.name
        if command.agent_type == REASONER:
            usual = self._procedural.name
        thinker = str(command.config.get("thinker", usual))
        try:
            meta = await asyncio.to_thread(with_thresholds, self.workspace, command.config)
            errors = read_recovery(meta).max_consecutive_errors
        except (ThresholdsError, RecoverySettingsError) as error:
            return cmd.Receipt(ok=False, message=f"no agent was created: {error}")
        config = AgentConfig(thinker=thinker, max_consecutive_errors=errors, meta=meta)
        if why := self._why_not(command.agent_type, config, new=True):
            return cmd.Receipt(ok=False, message=why)
        if config.parent and config.parent not in self._agents:
            return cmd.Receipt(ok=False, message=f"its parent: {self._no_agent(config.parent)}")
        planned = AgentState(command.agent, command.agent_type, config=config)
        if why := self._budgets.ledger.admit(planned, thinks=self._thinks(planned)):
            return cmd.Receipt(ok=False, message=f"no agent was created: {why}")
        try:
            return await self._begin_agent(command, config, actor)
        finally:
            # The real one stands for it once it is there.
            self._budgets.ledger.leave(planned)

    def _thinks(self, state: AgentState) -> bool:
        """Whether an agent may call a model."""
        return self._client is not None and (state.reasons or state.config.replans)

    async def _begin_agent(self, command: cmd.CreateAgent, config: AgentConfig, actor: str) -> cmd.Receipt:
        log = StreamLog(command.agent, 0, GENESIS, self._ports.clock, self._commit)
        created = ev.AgentCreated(
            agent_id=command.agent,
            agent_type=command.agent_type,
            description=command.description,
            config=config,
        )
        event = log.append(created, actor=actor, causes=(), tick=0)
        await log.commit()
        await self._take_up(fold([event]))
        return cmd.Receipt(ok=True, message=f"agent {command.agent} created", event=event.ref)

    # -------------------------------------------------------------- the door

    async def submit(self, command: cmd.Command, *, operator: str = "operator") -> cmd.Receipt:
        """Carry out a command; what the receipt says is durable when it is returned.

        A command that cannot be carried out is answered with `ok=False` and the reason, never an exception.
        It is carried out to the end even when the caller is cancelled.
        """
        carrying = asyncio.create_task(self._carry_out(command, f"operator:{operator}"), name=command.do)
        self._carrying.add(carrying)
        carrying.add_done_callback(self._carrying.discard)
        return await asyncio.shield(carrying)

    async def _carry_out(self, command: cmd.Command, actor: str) -> cmd.Receipt:
        try:
            command = _recordable(command)
        except (ValueError, TypeError, RecursionError) as error:
            return cmd.Receipt(ok=False, message=f"this cannot be recorded: {error}")
        try:
            if isinstance(command, cmd.CreateAgent):
                return await self._create(command, actor)
            if isinstance(command, cmd.AcceptTier):
                return await self._accept_tier(command, actor)
            if isinstance(command, ForMastermind):
                return await (await self.mastermind()).carry_out(command, actor)
            if isinstance(command, cmd.Remember):
                return await self._remember(command, actor)
            if isinstance(command, cmd.Stop | cmd.Thaw):
                return await self._halt(command, actor)
            if isinstance(command, cmd.SetWorkspaceBudget):
                return await self._set_workspace_budget(command, actor)
            agent = self._agents.get(command.agent)
            if agent is None:
                return cmd.Receipt(ok=False, message=self._no_agent(command.agent))
            if isinstance(command, cmd.Run | cmd.Step):
                thinks = self._thinks(agent.state)
                if why := self._budgets.ledger.no_start(command.agent, thinks=thinks):
                    return cmd.Receipt(ok=False, message=why)
            if self._rewinds and isinstance(command, ACTING) and (busy := self._held_by_rewind(agent)):
                return cmd.Receipt(ok=False, message=busy)
            if isinstance(command, cmd.Rewind | cmd.AdoptFork):
                return await self._rewind(agent, command, actor)
            if isinstance(command, cmd.ForkAgent):
                return await self._fork(agent, command, actor)
            receipt = agent.handle(self._budgets.resolved(command, agent.state), actor)
            await agent.log.commit()
            if agent.state.deleted:
                await agent.close()
                del self._agents[command.agent]
                self._coders.leave(command.agent)
            if isinstance(command, cmd.SetBudget | cmd.DeleteAgent | cmd.Undo) and receipt.ok:
                receipt = self._with_eased(receipt, actor, command.agent)
        except JournalError as error:
            return cmd.Receipt(ok=False, message=f"not recorded yet: {error}")
        else:
            return receipt

    async def _halt(self, command: cmd.Stop | cmd.Thaw, actor: str) -> cmd.Receipt:
        """Stop or thaw every agent that is meant, in one go."""
        if command.scope == "all":
            meant = tuple(self._agents)
        elif command.agent in self._agents:
            meant = self.family(command.agent) if command.scope == "children" else (command.agent,)
        else:
            return cmd.Receipt(ok=False, message=self._no_agent(command.agent))
        if not meant:
            return cmd.Receipt(ok=False, message=self._no_agent(command.agent))
        agents = [self._agents[name] for name in meant]
        if isinstance(command, cmd.Thaw):
            return await self._stops.thaw(agents, command, actor)
        return await self._stops.carry_out(agents, command, actor)

    async def stopped(self) -> None:
        """Return when every stop has its last receipt: all that was to die is dead, or said to live."""
        await self._stops.settled()

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
        agent = self._agents[agent_id]
        await agent.log.commit()
        now = copy_state(agent.state)
        return await preview_rewind(self._back_from(agent), now, to, RewindScope(scope), paths)

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

    async def _rewind(self, agent: Agent, command: cmd.Rewind | cmd.AdoptFork, actor: str) -> cmd.Receipt:
        from engine.loop.rewinding import Rewind

        scope = RewindScope(command.scope) if isinstance(command, cmd.Rewind) else RewindScope.FILES
        rewind = Rewind(agent, scope, actor, self._back_from(agent), lambda: self._in_the_way(agent))
        self._rewinds.add(command.agent)
        try:
            if isinstance(command, cmd.Rewind):
                return await rewind.carry_out(command)
            theirs = await self._files_of_fork(command.agent, command.fork)
            return await rewind.adopt(command, theirs)
        except RewindError as error:
            return cmd.Receipt(ok=False, message=str(error))
        finally:
            self._rewinds.discard(command.agent)
            if (saver := self._savers.get(command.agent, self._saver)) is not None:
                saver.changed_otherwise()

    async def _files_of_fork(self, agent_id: str, fork: str) -> str:
        """A snapshot of the files that a fork has now.

        Raises:
            RewindError: there is no such fork of the agent, it acts, or its files cannot be saved.
        """
        theirs, saver = self._agents.get(fork), self._savers.get(fork)
        if theirs is None or theirs.state.forked is None or theirs.state.forked.agent != agent_id:
            forks = ", ".join(name for name in self.agents if self._is_fork(name, agent_id)) or "none yet"
            raise RewindError(f"{fork} is no fork of {agent_id}; its forks: {forks}")
        if theirs.state.busy or theirs.state.shell_taken:
            raise RewindError(f"an action of {fork} is running; wait for it, or pause and stop it first")
        if saver is None:
            raise RewindError("no snapshots of files are taken here, so none can be taken over")
        try:
            return (await saver.snapshots.take(label=f"{fork} is taken over by {agent_id}")).id
        except SnapshotError as error:
            raise RewindError(str(error)) from error

    def _is_fork(self, name: str, of: str) -> bool:
        live = self._agents.get(name)
        return live is not None and live.state.forked is not None and live.state.forked.agent == of

    async def adopt_preview(self, agent_id: str, fork: str) -> Restoration:
        """What taking over a fork's files would do to the agent's; nothing is changed.

        Raises:
            KeyError: there is no such agent.
            RewindError: the fork's files cannot be taken over.
        """
        around = self._back_from(self._agents[agent_id])
        theirs = await self._files_of_fork(agent_id, fork)
        assert around.snapshots is not None
        try:
            return await around.snapshots.restore(theirs, dry_run=True)
        except SnapshotError as error:
            raise RewindError(str(error)) from error

    async def files_between(self, one: str, other: str) -> Changes | str:
        """What differs between the files of two agents as they are now, or why that is not known."""
        if self._saver is None:
            return "no snapshots are taken here"
        try:
            ids = []
            for agent in (one, other):
                saver = self._savers.get(agent, self._saver)
                ids.append((await saver.snapshots.take(label=f"{agent} is compared")).id)
            return await self._saver.snapshots.diff(*ids)
        except SnapshotError as error:
            return str(error)

    async def _fork(self, agent: Agent, command: cmd.ForkAgent, actor: str) -> cmd.Receipt:
        """A new agent from an event of another one; nothing of the other one's stream or files changes."""
        if command.name in await self.store.streams():
            return cmd.Receipt(
                ok=False, message=f"there is an agent {command.name}, or was; choose another id"
            )
        planned = AgentState(command.name, agent.state.agent_type, config=agent.state.config)
        if why := self._budgets.ledger.admit(planned, thinks=self._thinks(planned)):
            return cmd.Receipt(ok=False, message=f"no fork was made: {why}")
        try:
            return await self._begin_fork(agent, command, actor)
        finally:
            # The real one stands for it once it is there.
            self._budgets.ledger.leave(planned)

    async def _begin_fork(self, agent: Agent, command: cmd.ForkAgent, actor: str) -> cmd.Receipt:
        from engine.loop.forking import begun_at

        await agent.log.commit()
        lacks: list[str] = []
        own = (self.config.policy.home, self.config.policy.tmp)
        try:
            created, forked = await begun_at(agent.state, self._back_from(agent), command)
            root = self.workspace / FORKS_DIRECTORY / command.name
            if forked.snapshot and self._saver is not None:
                await asyncio.to_thread(make_root, root)
                done = await self._saver.snapshots.beside(root, command.name).restore(forked.snapshot)
                lacks = [one.path for one in (*done.left, *done.failed) if one.path not in own]
        except (RewindError, SnapshotError, PathError) as error:
            return cmd.Receipt(ok=False, message=str(error))
        log = StreamLog(command.name, 0, GENESIS, self._ports.clock, self._commit)
        first = log.append(created, actor=actor, causes=(), tick=0)
        second = log.append(forked, actor=actor, causes=(first.ref, forked.parent), tick=0)
        await log.commit()
        state = fold([first, second])
        self._budgets.ledger.join(state)
        await self._take_up(state)
        files = f"files of its own in {FORKS_DIRECTORY}/{command.name}"
        message = f"{command.name} begins where {forked.parent} stood, with {files}; no model was asked"
        if lacks:
            message += f"; it lacks what snapshots leave out: {', '.join(lacks[:5])}"
        data = {"agent": command.name, "lacks": lacks[:100]}
        return cmd.Receipt(ok=True, message=message, event=second.ref, data=data)

    def _back_from(self, agent: Agent) -> BackFrom:
        """What a rewind of an agent reads."""
        name = agent.state.agent_id
        saver = self._savers.get(name, self._saver)
        snapshots = saver.snapshots if saver is not None else None
        return BackFrom(self.store, self.past(name), snapshots, self._sharing(agent.state))

    def _sharing(self, state: AgentState) -> list[str]:
        """The agents that work on the same files as one."""
        if state.forked is not None:
            return [state.agent_id]
        return [stream for stream in self.store.names if of_agent(stream) and stream not in self._apart]

    def _in_the_way(self, agent: Agent) -> str:
        """Why an agent's files cannot be brought back now: another agent may change them."""
        for name in self._sharing(agent.state):
            other = self._agents.get(name)
            if other is None or other is agent:
                continue
            state = other.state
            runs = state.run is RunState.RUNNING and state.has_work
            if state.busy or state.requests or state.grants or state.shell_taken or runs:
                return f"{name} works on the same files; pause it first, and take no shell"
        return ""

    def _held_by_rewind(self, agent: Agent) -> str:
        """Why an agent may not be set to work now; empty when it may."""
        shared = self._rewinds.intersection(self._sharing(agent.state)) - {agent.state.agent_id}
        return f"the files are being brought back for {', '.join(shared)}; a moment" if shared else ""

    async def _accept_tier(self, command: cmd.AcceptTier, actor: str) -> cmd.Receipt:
        """Go on with less than the policy requires, for this session and recorded before it counts."""
        report, tier = self.sandbox(), Tier(command.tier)
        if not report.refusal:
            return cmd.Receipt(ok=False, message=f"programs run already, in the jail {report.tier}")
        if tier is not report.tier:
            return cmd.Receipt(ok=False, message=f"this machine gives {report.tier}, not {tier}")
        accepted = best_jail(report.policy.accepting(tier))
        if isinstance(accepted, JailRefusal):
            return cmd.Receipt(ok=False, message=accepted.message)
        event = self._note(ev.TierAccepted(session=self.session, tier=tier, reason=report.refusal), actor)
        assert self._log is not None
        await self._log.commit()
        self._coders.accept(tier)
        return cmd.Receipt(ok=True, message=self.sandbox().standing, event=event.ref)

    async def _set_workspace_budget(self, command: cmd.SetWorkspaceBudget, actor: str) -> cmd.Receipt:
        resolved = self._budgets.resolved(command, None)
        assert isinstance(resolved, cmd.SetWorkspaceBudget)
        said, told = self._budgets.of_all(resolved)
        event = self._note(said, actor)
        assert self._log is not None
        await self._log.commit()
        self._budgets.now_holds(said.limits)
        return self._with_eased(cmd.Receipt(ok=True, message=told, event=event.ref), actor)

    def _with_eased(self, receipt: cmd.Receipt, actor: str, agent: str = "") -> cmd.Receipt:
        """Let agents go on for which there is more of a budget now, and say which do."""
        eased = self._budgets.ease(self._agents, actor)
        running = [name for name in eased if self._agents[name].state.run is RunState.RUNNING]
        told = f"; {', '.join(running)} {'goes' if len(running) == 1 else 'go'} on" if running else ""
        live = self._agents.get(agent)
        if live is not None and live.state.held_by is not None:
            why = self._budgets.ledger.still(agent)
            told += f"; {agent} is still held: {why.reason}" if why is not None else ""
        return receipt.model_copy(update={"message": receipt.message + told})

    async def _remember(self, command: cmd.Remember, actor: str) -> cmd.Receipt:
        agent = self._agents.get(command.agent)
        if command.agent and agent is None:
            return cmd.Receipt(ok=False, message=self._no_agent(command.agent))
        assert self._memory is not None
        goal = agent.state.goal_at_hand if agent is not None else ""
        return await remember(self._memory, command, actor, goal, self.kept)

    def _no_agent(self, wanted: str) -> str:
        if wanted in self._faults:
            return f"agent {wanted} cannot be taken up: {self._faults[wanted]}"
        if not self._agents:
            return "there is no agent yet; agent_create bdi_agent ID makes one"
        return f"there is no agent '{wanted}'; agents: {', '.join(self._agents)}"

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
        state = await self._restore(agent_id, at)
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
        return (await self._restore(agent, before) if before else AgentState()), past

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
        found = inquiry.waiting_for(state, trouble=str(live.log.trouble or "") if live is not None else "")
        last = await self.store.last(1, agent_id)
        found = inquiry.in_particular(found, last[0] if last else None)
        if found.kind is inquiry.WaitKind.MODEL and self._client is not None and self._client.rests:
            rest = self._client.rests[-1]
            what = f"{found.what}; it answered {rest.why}, and is asked again after {rest.seconds:.1f} s"
            return replace(found, what=what, since=rest.at, until_s=rest.seconds)
        if found.kind is inquiry.WaitKind.MODEL:
            asked = [await self.newest(agent_id, kind) for kind in (ev.PlanAsked, ev.DecisionAsked)]
            newest = max((one[0] for one in asked if one), key=lambda event: event.version, default=None)
            if newest is not None and not found.since:
                return replace(found, since=newest.at, event=newest.ref)
        if not found.since:
            event = await self.store.get(found.event) if found.event else None
            found = replace(found, since=event.at if event is not None else state.at)
        return found

    async def inbox(self) -> tuple[inquiry.Need, ...]:
        """All that needs the operator, the most urgent first, each with since when."""
        found: list[inquiry.Need] = []
        for agent in list(self._agents.values()):
            for need in inquiry.needs_of(agent.state):
                event = await self.store.get(need.event) if need.event and not need.since else None
                found.append(replace(need, since=need.since or (event.at if event else agent.state.at)))
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
        """Who asks the model that thinks; None where there is none."""
        return self._client

    @property
    def model_name(self) -> str:
        """The model that thinks; empty where there is none."""
        return self.config.model.name if self.config.model is not None else ""

    @property
    def mastermind_settings(self) -> MastermindSettings:
        """How the system improves itself."""
        return self.config.mastermind

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
        coder = self._coders.of(agent)
        return SandboxReport(coder.policy, coder.jail, layers())

    def terminal(self, agent: str) -> Terminal | None:
        """The operator's open terminal in an agent's sandbox, or None when there is none."""
        return self._coder.sessions.terminal(agent) if self._coder is not None else None

    @property
    def agents(self) -> tuple[str, ...]:
        """Ids of the agents that exist, oldest first; those that could not be taken up last."""
        return (*self._agents, *self._faults)

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
        found = [agent]
        for above in found:  # which grows as those below it are found
            found += [name for name, live in self._agents.items() if live.state.config.parent == above]
        return tuple(found)

    def fault(self, agent: str) -> str:
        """Why the agent does nothing and never will in this session; empty when it is well."""
        live = self._agents.get(agent)
        return self._faults.get(agent, "") if live is None else live.fault

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
        trouble = next((str(log.trouble) for log in logs if log.trouble is not None), "")
        faults = tuple(f"{name}: {fault}" for name in self.agents if (fault := self.fault(name)))
        errors = tuple(str(error) for error in self.library.errors)
        untidy = self._saver.trouble if self._saver is not None else ""
        status = self._memory.status if self._memory is not None else MemoryStatus()
        keeper = self._keeper
        forgets, behind = (keeper.note, keeper.behind) if keeper is not None else ("", 0)
        return Health(
            journal=trouble,
            library=errors,
            agents=faults,
            sandbox=self.sandbox().refusal,
            snapshots=untidy,
            states=(*filter(None, [self._torn()]), *self._rebuilt.values()),
            memory=status.trouble or forgets,
            memory_behind=behind,
        )


def _recorded_answers(state: AgentState) -> pgp.Answerer | None:
    """Answers that are known beforehand, where an agent's reasoner was given some."""
    if not state.reasons:
        return None
    answers = reasoner.read_config(state.config.meta).generation.answers
    return pgp.RecordedAnswers(answers) if answers else None


def _remember(mind: reasoner.Reasoner, past: Sequence[Event]) -> None:
    """Let a reasoner do again what it has done."""
    for event in past:
        mind.remember(event, ev.payload_of(event))


def _recordable(command: cmd.Command) -> cmd.Command:
    """The command as the journal will give it back, so that the live state and its fold are the same.

    Raises:
        ValueError, TypeError, RecursionError: it holds what JSON cannot say or what is nested too deep.
    """
    plain = json.loads(canonical(command.model_dump()))
    if too_deep(plain):
        raise ValueError(f"it is nested more than {NESTING_LIMIT} deep")
    return cmd.parse_command(plain)


async def _open_store(workspace: Path, clock: Clock, create: bool) -> JournalStore:
    """Open the journal; where the engine that holds its lock is dead, wait until the lock is free.

    A killed engine that was about to start a program leaves a copy of itself, which lets go of the lock
    when it becomes that program a moment later.
    """
    for _ in range(LOCK_TRIES):
        try:
            return await JournalStore.open(workspace, clock=clock, create=create)
        except JournalLocked as locked:
            if _lives(locked.pid):
                raise
            await clock.sleep(LOCK_WAIT_S)
    return await JournalStore.open(workspace, clock=clock, create=create)


def _lives(pid: str) -> bool:
    """Whether there is such a process, or might be."""
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (ValueError, OverflowError, PermissionError):
        return True
    return True
