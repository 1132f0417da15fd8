"""The live agents of a workspace: resumed, created, forked, retired, and their states saved now and then.

A run that has handed back its work, and an agent that was deleted, never act again; a workspace needs of them
only what they took, and for whom. That is saved beside the stream as a cache, so that thousands of them cost
nothing to open; it counts only where it is of the stream's newest event.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial

from engine.agent.agent import Agent
from engine.agent.deliberation import Deliberation, PlanDeliberation
from engine.agent.execution import AgentParts
from engine.agent.recorder import AgentRecorder
from engine.agent.settings import SettingsError, ThresholdsError, read_recovery, with_thresholds
from engine.agent.shared import SharedServices, from_outside, offer_of
from engine.agent.steering.ledger import Ledger, taken_by
from engine.agent.steering.rewind_preview import RewindError
from engine.agent.steering.rules import policy_of
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.actions import ToolOffered
from engine.core.agents import ACP, ACP_AGENT, BY_SPEC, RUN_TYPES, AgentConfig
from engine.core.approvals import Answer, Policy, Source
from engine.core.fold import SNAPSHOT_FORMAT, copy_state, dump_state, fold, with_checksum
from engine.core.folds.agents import microseconds_between
from engine.core.journal import GENESIS, JournalError
from engine.core.reasoner import MIND, MIND_FORMAT, REASONER, ForgottenError, SentMessage
from engine.core.state import AgentState
from engine.core.store.port import Head, JournalStore
from engine.core.streams import ENDED_AGENTS_FORMAT, ENDED_AGENTS_SUFFIX, StreamLog, ended_agents, restore_all
from engine.core.streams import restore as restore_state
from engine.core.trust import FolderTrust
from engine.memory.metacognition.schedule import read_metacognition
from engine.planning import thinkers
from engine.sandbox.files import FORKS_DIRECTORY
from engine.sandbox.paths import PathError
from engine.sandbox.snapshots.entry import SnapshotError
from engine.tools.shared_coder import policy_limits


def has_ended(state: AgentState) -> bool:
    """Whether an agent never does anything again."""
    return state.deleted or state.handed_back


async def save_ended_agent(store: JournalStore, state: AgentState) -> None:
    """Keep what is needed of an agent that is over.

    Raises:
        JournalError: it cannot be kept.
    """
    spent = taken_by(state)
    amounts = [spent.calls, spent.tokens, spent.usd, spent.unpriced, spent.actions, spent.us]
    data = {"of": state.agent_id, "head": state.hash, "parent": state.config.parent, "spent": amounts}
    name, text = state.agent_id + ENDED_AGENTS_SUFFIX, with_checksum(json.dumps(data))
    await store.save_snapshot(name, state.version, ENDED_AGENTS_FORMAT, text)


async def count_ended_agents(store: JournalStore, streams: Mapping[str, Head], ledger: Ledger) -> list[str]:
    """Count what agents took of which it is known that they are over.

    Args:
        store: the journal.
        streams: the agents' streams with their heads.
        ledger: counts.

    Returns:
        The streams of all other agents, in order.

    Raises:
        JournalError: the journal cannot be read.
    """
    over = await ended_agents(store, streams)
    for name, (parent, spent) in over.items():
        ledger.count_ended_agent(name, parent, spent)
    return [name for name in streams if name not in over]


SNAPSHOT_PART = 16
"""The part of its events, one in so many, that may follow the newest snapshot of a long stream."""
KEPT_AT_ONCE = 64
"""Agents that are over of which that is kept together."""
RETIRED_AFTER_S = 10
"""How long a run whose work is over can still be asked something as a live agent."""
AGENT_TYPES = ("bdi_agent", REASONER, ACP_AGENT, *RUN_TYPES)
"""Types that can be created."""


class LiveAgents:
    """The agents that live in this session.

    Args:
        shared: what they share.
        session: the session's id.
        here: filled with those that live, by their ids, oldest first.
    """

    def __init__(self, shared: SharedServices, session: str, here: dict[str, Agent]) -> None:
        self._shared, self._session = shared, session
        self.thinks = shared.client is not None
        """Whether there is a model."""
        self.here = here
        self.faults: dict[str, str] = {}
        """Agents that are here and cannot be resumed, with the reason."""
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
        """Ids of the agents that exist, oldest first; those that could not be resumed last."""
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

    def unreachable_reason(self, target: str) -> str:
        """Why an agent cannot be reached."""
        if target in self.faults:
            return f"agent {target} cannot be taken up: {self.faults[target]}"
        if target in self.retired:
            return f"{target} is over: nothing is done by it any more; its history stays"
        if not self.here:
            return "there is no agent yet; agent_create bdi_agent ID makes one"
        return f"there is no agent '{target}'; agents: {', '.join(self.here)}"

    def family(self, agent: str) -> tuple[str, ...]:
        """An agent and those that work for it or for one of these, each after its parent."""
        family = [agent]
        for above in family:  # which grows as those below it are found
            family += [name for name, live in self.here.items() if live.state.config.parent == above]
        return tuple(family)

    # -------------------------------------------------------------- resumed

    async def restore(self, stream: str, at: int | None = None) -> AgentState:
        """The state of a stream at a version, from the nearest snapshot and what follows it."""
        state, why = await restore_state(self._shared.store, stream, at)
        if why:
            self.rebuilt[stream] = why
        return state

    async def resume(self, streams: Mapping[str, Head]) -> None:
        """Resume the agents of an earlier session, or note why they cannot be; `go_on` lets them begin.

        Raises:
            JournalError: the journal cannot be read, or takes nothing.
        """
        taken = []
        others = await count_ended_agents(self._shared.store, streams, self._shared.ledger)
        self.retired.update(streams.keys() - others)
        async for stream, state, kept, why in restore_all(self._shared.store, others):
            if why:
                self.rebuilt[stream] = why
            if (agent := await self._resumed(state)) is not None:
                taken.append(agent)
                self._kept[stream] = kept
        # Made durable together: two hundred of them, one after the other, would take the disk a second.
        await asyncio.gather(*(agent.log.commit() for agent in taken))
        for agent in taken:
            self._join(agent)

    def go_on(self) -> None:
        """Let the agents begin that were resumed."""
        for agent in self.here.values():
            self._start(agent)

    async def _resumed(self, state: AgentState) -> Agent | None:
        if has_ended(state) and state.forked is None:
            self._shared.ledger.count_ended_agent(state.agent_id, state.config.parent, taken_by(state))
            self._over.append(state)
            self.retired.add(state.agent_id)
            return None
        self._shared.ledger.join(state)
        if state.forked is not None:
            self._shared.branches.note(state.agent_id)
        if has_ended(state):
            return None
        if why := self._shared.why_not(state.agent_type, state.config):
            self.faults[state.agent_id] = why
            return None
        try:
            return await self._open(state, resumed=True)
        except ForgottenError as error:
            self.faults[state.agent_id] = f"its mind cannot be had again: {error}"
            return None

    async def activate(self, state: AgentState) -> Agent:
        """Make a live agent of a state, in this session."""
        agent = await self._open(state)
        await agent.log.commit()
        self._join(agent)
        self._start(agent)
        return agent

    async def _open(self, state: AgentState, *, resumed: bool = False) -> Agent:
        """An agent of a state, with what is to be recorded before it begins."""
        if state.forked is not None:
            root = await self._shared.branches.set_apart(state.agent_id)
            self._shared.coders.apart(state.agent_id, root)
        self._shared.ledger.join(state)
        self._shared.coders.narrow(state.agent_id, policy_limits(state.config.meta))
        self._kept[state.agent_id] = state.version
        log = self._log(state.agent_id, state.version, state.hash)
        agent = await self._agent(state, log)
        agent.open(self._session, self._shared.ports.seed())
        agent.begin_metacognition(read_metacognition(state.config.meta))
        own, folder = policy_of(state.config.meta), self._shared.config.folder_approvals
        trust = self._shared.config.trust
        if resumed and trust is not None:
            uncounted = await not_counted(self._shared.store, state, trust)
            if uncounted != ev.GrantsNotCounted():
                agent.append(uncounted, "system", state.run_event)
            if trust.foreign:
                denied = tuple(rule for rule in folder.rules if rule.answer is Answer.DENY)
                folder = Policy(denied, Answer.ASK)
        policies = {Source.WORKSPACE: self._shared.config.approvals, Source.AGENT: own, Source.FOLDER: folder}
        agent.begin_approvals(policies)
        return agent

    def _join(self, agent: Agent) -> None:
        self.here[agent.state.agent_id] = agent
        for tool in from_outside(self._shared.registry):
            agent.offered(offer_of(tool))

    def _start(self, agent: Agent) -> None:
        agent.start(lambda: self._ended.add(agent.state.agent_id))

    def offer(self, event: ToolOffered) -> None:
        """Tell every agent's stream what a tool from outside offers from now on."""
        for agent in self.here.values():
            if not agent.state.deleted:
                agent.offered(event)

    def _log(self, agent: str, version: int = 0, head: str = GENESIS) -> StreamLog:
        return StreamLog(agent, version, head, self._shared.ports.clock, self._shared.store.commit)

    async def _agent(self, state: AgentState, log: StreamLog) -> Agent:
        """An agent with its strategy.

        Raises:
            ForgottenError: the mind of an agent with a program cannot be had again.
        """
        strategy: Callable[[AgentParts], Deliberation] = PlanDeliberation
        if state.reasons:
            from engine.agent.reasoner_deliberation import resumed_strategy  # late: few have a program

            strategy, why = await resumed_strategy(state, self._shared.store, self._shared.registry)
            if why:
                self.rebuilt[state.agent_id + MIND] = why
        return Agent(AgentRecorder(state, log), self._shared.surroundings(state, self._post), strategy)

    def _post(self, sender: str, message: SentMessage) -> None:
        """Deliver a message between reasoners; one to nobody is in the sender's journal all the same."""
        receiver = self.here.get(message.receiver)
        if receiver is not None:
            receiver.deliberation.hear(sender, message)

    # -------------------------------------------------------------- new ones

    async def create(self, command: cmd.CreateAgent, actor: str) -> cmd.Receipt:
        """Bring an agent to be.

        Raises:
            JournalError: it cannot be recorded.
        """
        if command.agent in await self._shared.store.streams():
            exists = command.agent in self.ids
            what = "exists already" if exists else "was deleted; its history bears the name"
            return _refused(f"agent {command.agent} {what}; choose another id")
        if command.agent_type not in AGENT_TYPES:
            known = ", ".join(AGENT_TYPES)
            return _refused(f"there is no agent type '{command.agent_type}'; types: {known}")
        asks = self._shared.client is not None and command.agent_type != REASONER
        usual = thinkers.CLAUDE if asks else self._shared.procedural.name
        if command.agent_type in RUN_TYPES:
            usual = BY_SPEC
        if command.agent_type == ACP_AGENT:
            usual = ACP
            if not actor.startswith("operator"):
                return _refused(
                    "an agent of another program is the operator's to create: it gets what they grant"
                )
        thinker = str(command.config.get("thinker", usual))
        try:
            given = command.config
            if command.agent_type == ACP_AGENT:
                from engine.agent.acp import support  # late: few agents are programs

                given = support.defaults(given)
            elif command.agent_type == REASONER:
                given = {"edition": 2, **given}
            meta = await asyncio.to_thread(
                with_thresholds, self._shared.workspace, given, self._shared.config.trust
            )
            errors = read_recovery(meta).max_consecutive_errors
        except (ThresholdsError, SettingsError) as error:
            return _refused(f"no agent was created: {error}")
        config = AgentConfig(thinker=thinker, max_consecutive_errors=errors, meta=meta)
        if why := self._shared.why_not(command.agent_type, config, new=True):
            return _refused(why)
        if config.parent and config.parent not in self.here:
            return _refused(f"its parent: {self.unreachable_reason(config.parent)}")
        planned = AgentState(command.agent, command.agent_type, config=config)
        begin = partial(self._begin_agent, command, config, actor)
        return await self._admitted(planned, "no agent was created", begin)

    async def _begin_agent(self, command: cmd.CreateAgent, config: AgentConfig, actor: str) -> cmd.Receipt:
        log = self._log(command.agent)
        name, kind, description = command.agent, command.agent_type, command.description
        created = ev.AgentCreated(agent_id=name, agent_type=kind, description=description, config=config)
        event = log.append(created, actor=actor, causes=(), tick=0)
        await log.commit()
        await self.activate(fold([event]))
        return cmd.Receipt(ok=True, message=f"agent {command.agent} created", event=event.ref)

    async def fork(self, agent: Agent, command: cmd.ForkAgent, actor: str) -> cmd.Receipt:
        """A new agent from an event of another one; nothing of the other one's stream or files changes.

        Raises:
            JournalError: it cannot be read or recorded.
        """
        if command.name in await self._shared.store.streams():
            return _refused(f"there is an agent {command.name}, or was; choose another id")
        planned = AgentState(command.name, agent.state.agent_type, config=agent.state.config)
        begin = partial(self._begin_fork, agent, command, actor)
        return await self._admitted(planned, "no fork was made", begin)

    async def _admitted(
        self, planned: AgentState, refused: str, begin: Callable[[], Awaitable[cmd.Receipt]]
    ) -> cmd.Receipt:
        """Begin an agent for which the budgets have room."""
        ledger = self._shared.ledger
        if why := ledger.admit(planned, thinks=self._shared.thinks(planned)):
            return _refused(f"{refused}: {why}")
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
            return _refused(str(error))
        lacks = [path for path in lacks if path not in own]
        log = self._log(command.name)
        first = log.append(created, actor=actor, causes=(), tick=0)
        second = log.append(forked, actor=actor, causes=(first.ref, forked.parent), tick=0)
        await log.commit()
        state = fold([first, second])
        self._shared.ledger.join(state)
        await self.activate(state)
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
        self._shared.coders.remove(name)
        self._shared.ledger.count_ended_agent(name, agent.state.config.parent, taken_by(agent.state))
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
            and microseconds_between(state.at, now) > RETIRED_AFTER_S * 1_000_000
        ]

    async def save_ended_agents(self) -> None:
        """Keep of agents of earlier sessions that they are over, so that the next opening need not look."""
        while self._over:
            some, self._over = self._over[:KEPT_AT_ONCE], self._over[KEPT_AT_ONCE:]
            kept = (save_ended_agent(self._shared.store, state) for state in some)
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
                    await save_ended_agent(store, state)
            return
        # A long life is kept less often: its state is large, and what follows it is folded quickly.
        least = max(at_least, state.version // SNAPSHOT_PART) if at_least > 1 else at_least
        if state.version - self._kept.get(state.agent_id, 0) < least:
            return
        mind = agent.deliberation.saved()
        version, head, copied = state.version, state.hash, copy_state(state)
        self._kept[state.agent_id] = version
        with suppress(JournalError):
            text = await asyncio.to_thread(dump_state, copied)
            await agent.log.commit()
            await store.save_snapshot(state.agent_id, version, SNAPSHOT_FORMAT, text)
            if mind is not None:
                kept = await asyncio.to_thread(json.dumps, {"head": head, "mind": mind})
                name = f"{state.agent_id}{MIND}"
                await store.save_snapshot(name, version, MIND_FORMAT, with_checksum(kept))


async def not_counted(store: JournalStore, state: AgentState, trust: FolderTrust) -> ev.GrantsNotCounted:
    """What of an agent's earlier sessions does not count in this one.

    Raises:
        JournalError: the journal cannot be read.
    """
    known = state.approvals
    asks_again = trust.restricted or trust.foreign

    async def counts(ref: str) -> bool:
        event = None if asks_again else await store.get(ref)
        return event is not None and trust.sealed(event)

    allowed: set[tuple[str, str]] = set()
    for answer in known.answered if known.once and not asks_again else ():
        event = await store.get(answer.event)
        if (
            event is not None
            and trust.sealed(event)
            and isinstance(payload := ev.payload_of(event), ev.ApprovalAnswered)
        ):
            allowed.add((payload.step, payload.key))
    return ev.GrantsNotCounted(
        # What only tightens counts whoever said it.
        grants=tuple(
            [
                grant.id
                for grant in known.grants
                if grant.rule.answer is Answer.ALLOW and not await counts(grant.event)
            ]
        ),
        once=tuple(step for step, key in known.once.items() if (step, key) not in allowed),
        envelopes=tuple([goal for goal, held in known.envelopes.items() if not await counts(held.event)]),
        journal=trust.foreign,
    )


def _refused(message: str) -> cmd.Receipt:
    return cmd.Receipt(ok=False, message=message)
