"""The live agents of a workspace: taken up again, created, forked, and their states kept now and then."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from engine import loop, reasoner, thinkers
from engine.domain import commands as cmd
from engine.domain.approval import Source
from engine.domain.reasoning import REASONER, SentMessage
from engine.domain.running import BY_SPEC, RUN_TYPES
from engine.domain.state import AgentConfig, AgentState
from engine.journal import events as ev
from engine.journal.budget_fold import between_us
from engine.journal.errors import JournalError
from engine.journal.event import GENESIS, Event
from engine.journal.events import ToolOffered
from engine.journal.fold import SNAPSHOT_FORMAT, copy_state, dump_state, fold
from engine.journal.log import StreamLog
from engine.journal.restoring import restore as restore_state
from engine.journal.restoring import restore_all
from engine.journal.rows import Head
from engine.loop import ended
from engine.loop.agent import Agent
from engine.loop.branching import FORKS_DIRECTORY
from engine.loop.offering import from_outside, offer_of
from engine.loop.sharing import Shared
from engine.metacognition import read_metacognition
from engine.parameters.thresholds import ThresholdsError, with_thresholds
from engine.recovery import RecoverySettingsError, read_recovery
from engine.sandbox.paths import PathError
from engine.snapshots import SnapshotError
from engine.steering.ledger import taken_by
from engine.steering.policies import policy_of
from engine.steering.rewinding import RewindError
from engine.tools.coders import narrowing

SNAPSHOT_PART = 16
"""The part of its events, one in so many, that may follow the newest snapshot of a long stream."""
KEPT_AT_ONCE = 64
"""Agents that are over of which that is kept together."""
RETIRED_AFTER_S = 10
"""How long a run whose work is over can still be asked something as a live agent."""
MIND = "@mind"
"""A snapshot of a reasoner's mind stands beside that of its agent's state under the agent's id and this."""
AGENT_TYPES = ("bdi_agent", REASONER, *RUN_TYPES)
"""Types that can be created."""


class LiveAgents:
    """The agents that live in this session.

    Args:
        shared: what they share.
        session: the session's id.
        here: filled with those that live, by their ids, oldest first.
    """

    def __init__(self, shared: Shared, session: str, here: dict[str, Agent]) -> None:
        self._shared, self._session = shared, session
        self.here = here
        self.faults: dict[str, str] = {}
        """Agents that are here and cannot be taken up, with the reason."""
        self.rebuilt: dict[str, str] = {}
        """Agents of which a kept state could not be used, with the reason."""
        self._ended: set[str] = set()
        """Agents whose cycle has ended."""
        self.retired: set[str] = set()
        """Agents that are over and no longer here."""
        self._over: list[AgentState] = []
        """Agents of earlier sessions that are over, of which that is not kept yet."""
        self._kept: dict[str, int] = {}
        """The version of each agent's state that was kept last."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the agents that exist, oldest first; those that could not be taken up last."""
        return (*self.here, *self.faults)

    def fault(self, agent: str) -> str:
        """Why an agent does nothing and never will in this session; empty when it is well."""
        live = self.here.get(agent)
        return self.faults.get(agent, "") if live is None else live.fault

    @property
    def faulty(self) -> dict[str, str]:
        """The agents that do nothing and never will, with why; found without asking each."""
        names = [name for name in self.here if name in self._ended] if self._ended else []
        return {name: why for name in (*names, *self.faults) if (why := self.fault(name))}

    def nobody(self, wanted: str) -> str:
        """Why a command to an agent reaches nobody."""
        if wanted in self.faults:
            return f"agent {wanted} cannot be taken up: {self.faults[wanted]}"
        if wanted in self.retired:
            return f"{wanted} is over: nothing is done by it any more; its history stays"
        if not self.here:
            return "there is no agent yet; agent_create bdi_agent ID makes one"
        return f"there is no agent '{wanted}'; agents: {', '.join(self.here)}"

    def family(self, agent: str) -> tuple[str, ...]:
        """An agent and those that work for it or for one of these, each after its parent."""
        found = [agent]
        for above in found:  # which grows as those below it are found
            found += [name for name, live in self.here.items() if live.state.config.parent == above]
        return tuple(found)

    # -------------------------------------------------------------- taken up again

    async def restore(self, stream: str, at: int | None = None) -> AgentState:
        """The state of a stream at a version, from the nearest snapshot and what follows it."""
        state, why = await restore_state(self._shared.store, stream, at)
        if why:
            self.rebuilt[stream] = why
        return state

    async def resume(self, streams: Mapping[str, Head]) -> None:
        """Take up the agents of an earlier session, or note why they cannot be; `go_on` lets them begin.

        Raises:
            JournalError: the journal cannot be read, or takes nothing.
        """
        taken = []
        others = await ended.bury(self._shared.store, streams, self._shared.ledger)
        self.retired.update(streams.keys() - others)
        async for stream, state, why in restore_all(self._shared.store, others):
            if why:
                self.rebuilt[stream] = why
            if (agent := await self._resumed(state)) is not None:
                taken.append(agent)
        # Made durable together: two hundred of them, one after the other, would take the disk a second.
        await asyncio.gather(*(agent.log.commit() for agent in taken))
        for agent in taken:
            self._join(agent)

    def go_on(self) -> None:
        """Let the agents begin that were taken up again."""
        for agent in self.here.values():
            self._start(agent)

    async def _resumed(self, state: AgentState) -> Agent | None:
        if ended.is_over(state) and state.forked is None:
            self._shared.ledger.bury(state.agent_id, state.config.parent, taken_by(state))
            self._over.append(state)
            self.retired.add(state.agent_id)
            return None
        self._shared.ledger.join(state)
        if state.forked is not None:
            self._shared.branches.note(state.agent_id)
        if ended.is_over(state):
            return None
        if why := self._shared.why_not(state.agent_type, state.config):
            self.faults[state.agent_id] = why
            return None
        try:
            return await self._open(state)
        except reasoner.ForgottenError as error:
            self.faults[state.agent_id] = f"its mind cannot be had again: {error}"
            return None

    async def take_up(self, state: AgentState) -> Agent:
        """Make a live agent of a state, in this session."""
        agent = await self._open(state)
        await agent.log.commit()
        self._join(agent)
        self._start(agent)
        return agent

    async def _open(self, state: AgentState) -> Agent:
        """An agent of a state, with what is to be recorded before it begins."""
        if state.forked is not None:
            root = await self._shared.branches.set_apart(state.agent_id)
            self._shared.coders.apart(state.agent_id, root)
        self._shared.ledger.join(state)
        self._shared.coders.narrow(state.agent_id, narrowing(state.config.meta))
        self._kept[state.agent_id] = state.version
        log = self._log(state.agent_id, state.version, state.hash)
        agent = await self._agent(state, log)
        agent.open(self._session, self._shared.ports.seed())
        agent.begin_metacognition(read_metacognition(state.config.meta))
        own = policy_of(state.config.meta)
        agent.begin_approvals({Source.WORKSPACE: self._shared.config.approvals, Source.AGENT: own})
        return agent

    def _join(self, agent: Agent) -> None:
        self.here[agent.state.agent_id] = agent
        for tool in from_outside(self._shared.registry):
            agent.offered(offer_of(tool))

    def _start(self, agent: Agent) -> None:
        agent.start(lambda: self._ended.add(agent.state.agent_id))

    def offer(self, said: ToolOffered) -> None:
        """Tell every agent's stream what a tool from outside offers from now on."""
        for agent in self.here.values():
            if not agent.state.deleted:
                agent.offered(said)

    def _log(self, agent: str, version: int = 0, head: str = GENESIS) -> StreamLog:
        return StreamLog(agent, version, head, self._shared.ports.clock, self._shared.store.commit)

    async def _agent(self, state: AgentState, log: StreamLog) -> Agent:
        around = self._shared.surroundings(state, self._post)
        if not state.reasons:
            return Agent(state, log, around)
        return loop.ReasoningAgent(state, log, around, await self._mind(state))

    async def _mind(self, state: AgentState) -> reasoner.Reasoner:
        """An agent's mind: as it was kept, with what has happened since; else from the whole stream.

        Raises:
            ForgottenError: the stream cannot be done again.
        """
        store, registry = self._shared.store, self._shared.registry
        (created,) = await store.read(state.agent_id, 1, 1)
        found = await store.load_snapshot(f"{state.agent_id}{MIND}", state.version, reasoner.FORMAT)
        if found is not None:
            version, text = found
            since = await store.read(state.agent_id, version)
            with suppress(reasoner.ForgottenError, ValueError, KeyError, TypeError):
                kept = await asyncio.to_thread(json.loads, text)
                if kept["head"] == since[0].hash:
                    mind = loop.make_reasoner(state, registry, created.at)
                    await asyncio.to_thread(reasoner.restore, mind, kept["mind"])
                    await asyncio.to_thread(_remember, mind, since[1:])
                    if state.mind is not None and mind.agent.cycles == state.mind.cycles:
                        return mind
            self.rebuilt[state.agent_id + MIND] = (
                f"{state.agent_id}: the mind kept at event {version} could not be used; it was built again "
                "from the events"
            )
        past = await store.read(state.agent_id, 2)
        mind = loop.make_reasoner(state, registry, created.at)
        await asyncio.to_thread(_remember, mind, past)
        return mind

    def _post(self, sender: str, message: SentMessage) -> None:
        """Deliver a message between reasoners; one to nobody is in the sender's journal all the same."""
        receiver = self.here.get(message.receiver)
        if isinstance(receiver, loop.ReasoningAgent):
            receiver.hear(sender, message)

    # -------------------------------------------------------------- new ones

    async def create(self, command: cmd.CreateAgent, actor: str) -> cmd.Receipt:
        """Bring an agent to be.

        Raises:
            JournalError: it cannot be recorded.
        """
        if command.agent in await self._shared.store.streams():
            what = (
                "exists already" if command.agent in self.ids else "was deleted; its history bears the name"
            )
            return cmd.Receipt(ok=False, message=f"agent {command.agent} {what}; choose another id")
        if command.agent_type not in AGENT_TYPES:
            known = ", ".join(AGENT_TYPES)
            return cmd.Receipt(
                ok=False, message=f"there is no agent type '{command.agent_type}'; types: {known}"
            )
        usual = thinkers.CLAUDE if self._shared.client is not None else self._shared.procedural.name
        if command.agent_type == REASONER:
            usual = self._shared.procedural.name
        if command.agent_type in RUN_TYPES:
            usual = BY_SPEC
        thinker = str(command.config.get("thinker", usual))
        try:
            meta = await asyncio.to_thread(with_thresholds, self._shared.workspace, command.config)
            errors = read_recovery(meta).max_consecutive_errors
        except (ThresholdsError, RecoverySettingsError) as error:
            return cmd.Receipt(ok=False, message=f"no agent was created: {error}")
        config = AgentConfig(thinker=thinker, max_consecutive_errors=errors, meta=meta)
        if why := self._shared.why_not(command.agent_type, config, new=True):
            return cmd.Receipt(ok=False, message=why)
        if config.parent and config.parent not in self.here:
            return cmd.Receipt(ok=False, message=f"its parent: {self.nobody(config.parent)}")
        planned = AgentState(command.agent, command.agent_type, config=config)
        return await self._admitted(
            planned, "no agent was created", lambda: self._begin_agent(command, config, actor)
        )

    async def _begin_agent(self, command: cmd.CreateAgent, config: AgentConfig, actor: str) -> cmd.Receipt:
        log = self._log(command.agent)
        created = ev.AgentCreated(
            agent_id=command.agent,
            agent_type=command.agent_type,
            description=command.description,
            config=config,
        )
        event = log.append(created, actor=actor, causes=(), tick=0)
        await log.commit()
        await self.take_up(fold([event]))
        return cmd.Receipt(ok=True, message=f"agent {command.agent} created", event=event.ref)

    async def fork(self, agent: Agent, command: cmd.ForkAgent, actor: str) -> cmd.Receipt:
        """A new agent from an event of another one; nothing of the other one's stream or files changes.

        Raises:
            JournalError: it cannot be read or recorded.
        """
        if command.name in await self._shared.store.streams():
            return cmd.Receipt(
                ok=False, message=f"there is an agent {command.name}, or was; choose another id"
            )
        planned = AgentState(command.name, agent.state.agent_type, config=agent.state.config)
        return await self._admitted(
            planned, "no fork was made", lambda: self._begin_fork(agent, command, actor)
        )

    async def _admitted(
        self, planned: AgentState, refused: str, begin: Callable[[], Awaitable[cmd.Receipt]]
    ) -> cmd.Receipt:
        """Begin an agent for which the budgets have room."""
        ledger = self._shared.ledger
        if why := ledger.admit(planned, thinks=self._shared.thinks(planned)):
            return cmd.Receipt(ok=False, message=f"{refused}: {why}")
        try:
            return await begin()
        finally:
            # The real one stands for it once it is there.
            ledger.leave(planned)

    async def _begin_fork(self, agent: Agent, command: cmd.ForkAgent, actor: str) -> cmd.Receipt:
        own = (self._shared.config.policy.home, self._shared.config.policy.tmp)
        try:
            created, forked, lacks = await self._shared.branches.begun(agent, command)
        except (RewindError, SnapshotError, PathError) as error:
            return cmd.Receipt(ok=False, message=str(error))
        lacks = [path for path in lacks if path not in own]
        log = self._log(command.name)
        first = log.append(created, actor=actor, causes=(), tick=0)
        second = log.append(forked, actor=actor, causes=(first.ref, forked.parent), tick=0)
        await log.commit()
        state = fold([first, second])
        self._shared.ledger.join(state)
        await self.take_up(state)
        files = f"files of its own in {FORKS_DIRECTORY}/{command.name}"
        message = f"{command.name} begins where {forked.parent} stood, with {files}; no model was asked"
        if lacks:
            message += f"; it lacks what snapshots leave out: {', '.join(lacks[:5])}"
        data = {"agent": command.name, "lacks": lacks[:100]}
        return cmd.Receipt(ok=True, message=message, event=second.ref, data=data)

    # -------------------------------------------------------------- kept states

    async def retire(self, name: str) -> None:
        """Let go of a run whose work is over: from now on it is history, as after another opening."""
        agent = self.here.pop(name)
        self.retired.add(name)
        await agent.close()
        await self.keep(agent, at_least=1)
        self._shared.coders.leave(name)
        self._shared.ledger.bury(name, agent.state.config.parent, taken_by(agent.state))
        self._ended.discard(name)
        self._kept.pop(name, None)

    def idle_runs(self) -> list[str]:
        """Runs whose work has been over for a while, and of which nothing is under way."""
        now = self._shared.ports.clock.now()
        return [
            name
            for name, agent in self.here.items()
            if (state := agent.state).handed_back
            and not (state.acting or state.running_jobs or state.requests or state.handover)
            and state.intervention is None
            and not (agent.log.pending or agent.log.trouble)
            and between_us(state.at, now) > RETIRED_AFTER_S * 1_000_000
        ]

    async def keep_over(self) -> None:
        """Keep of agents of earlier sessions that they are over, so that the next opening need not look."""
        while self._over:
            some, self._over = self._over[:KEPT_AT_ONCE], self._over[KEPT_AT_ONCE:]
            kept = (ended.keep(self._shared.store, state) for state in some)
            await asyncio.gather(*kept, return_exceptions=True)

    async def keep(self, agent: Agent, *, at_least: int) -> None:
        """Keep an agent's state where so many events have come since it was kept last."""
        state, store = agent.state, self._shared.store
        if agent.log.trouble is not None:
            return
        if state.handed_back:
            if state.version > self._kept.get(state.agent_id, 0):
                self._kept[state.agent_id] = state.version
                with suppress(JournalError):
                    await agent.log.commit()
                    await ended.keep(store, state)
            return
        # A long life is kept less often: its state is large, and what follows it is folded quickly.
        least = max(at_least, state.version // SNAPSHOT_PART) if at_least > 1 else at_least
        if state.version - self._kept.get(state.agent_id, 0) < least:
            return
        mind = agent.saved() if state.reasons and isinstance(agent, loop.ReasoningAgent) else None
        version, head, copied = state.version, state.hash, copy_state(state)
        self._kept[state.agent_id] = version
        with suppress(JournalError):
            text = await asyncio.to_thread(dump_state, copied)
            await agent.log.commit()
            await store.save_snapshot(state.agent_id, version, SNAPSHOT_FORMAT, text)
            if mind is not None:
                kept = await asyncio.to_thread(json.dumps, {"head": head, "mind": mind})
                await store.save_snapshot(f"{state.agent_id}{MIND}", version, reasoner.FORMAT, kept)


def _remember(mind: reasoner.Reasoner, past: Sequence[Event]) -> None:
    """Let a reasoner do again what it has done."""
    for event in past:
        mind.remember(event, ev.payload_of(event))
