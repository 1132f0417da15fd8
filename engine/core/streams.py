"""A stream's log, its state while it is open, its past states, and its state restored from a snapshot.

Events are appended to a log at once and made durable together. Past states are folded from the journal in
small pieces, so that looking back over ten thousand events never holds the loop; some are kept in memory, so
that the next look begins near by. A snapshot is a cache: one that is damaged, was changed or does not fit the
journal is passed over, for an older one or for the whole stream, and that is reported.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from engine.core import events as ev
from engine.core.budgets import Spent
from engine.core.fold import (
    SNAPSHOT_FORMAT,
    apply,
    copy_state,
    dump_state,
    fold,
    load_state,
    without_checksum,
)
from engine.core.journal import Event, JournalError, Payload, chain_hash
from engine.core.ports import Clock
from engine.core.state import AgentState
from engine.core.store.port import Head, JournalStore, StoredSnapshot
from engine.value import dataclass

Commit = Callable[[Sequence[Event]], Awaitable[Sequence[Event]]]
"""Makes events durable, all or none; raises `JournalError`."""


class StreamLog:
    """Appends to one stream, keeps its hash chain, and commits what is pending.

    What is appended counts for the agent's state at once; it is published, and seen by
    anybody else, only when it is durable. A failed commit keeps the events pending.
    """

    def __init__(self, stream: str, version: int, head: str, clock: Clock, commit: Commit) -> None:
        self.stream = stream
        self.version = version
        self.head = head
        self._clock = clock
        self._commit = commit
        self._pending: list[Event] = []
        self._writing: asyncio.Task[None] | None = None
        self.trouble: Exception | None = None
        """Why the last commit failed, until one succeeds."""

    def append(self, payload: Payload, *, actor: str, causes: tuple[str, ...], tick: int) -> Event:
        """Add an event to the stream; it is pending until `commit`."""
        at = self._clock.now()
        version = self.version + 1
        body, kind = self._body(payload), payload.kind
        digest = chain_hash(self.head, self.stream, version, at, tick, actor, causes, kind, body)
        event = Event(self.stream, version, at, tick, actor, causes, kind, body, digest)
        self.version, self.head = version, digest
        self._pending.append(event)
        return event

    def _body(self, payload: Payload) -> str:
        """The payload as it is stored."""
        return payload.body()

    @property
    def pending(self) -> int:
        """How many events are not durable yet."""
        return len(self._pending)

    async def commit(self) -> None:
        """Make every pending event durable; a cancelled caller does not disturb the writing.

        Raises:
            JournalError: what is still pending was not written; it stays pending.
        """
        while self._pending:
            await asyncio.shield(self.commit_soon())

    def commit_soon(self) -> asyncio.Task[None]:
        """Start writing unless that is under way; failures show in `trouble` until a commit succeeds."""
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write(), name=f"journal {self.stream}")
            # An exception that is not awaited is not lost: `trouble` holds it.
            self._writing.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._writing

    async def _write(self) -> None:
        while self._pending:
            batch = tuple(self._pending)
            try:
                await self._commit(batch)
            except JournalError as error:
                self.trouble = error
                raise
            del self._pending[: len(batch)]
        self.trouble = None

    async def close(self) -> None:
        """Wait for the writing under way."""
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)


class _State(Protocol):
    version: int
    hash: str


S = TypeVar("S", bound=_State)


class StateStream(ABC, Generic[S]):
    """The one place that writes to a stream; `state` is the fold of all that was appended."""

    name: ClassVar[str]
    empty: ClassVar[Callable[[], Any]]
    """Makes the state before all events."""

    @staticmethod
    @abstractmethod
    def apply(state: Any, event: Event, payload: Payload) -> None:
        """Bring a state forward by one event."""

    def __init__(self, log: StreamLog, state: S) -> None:
        self.log = log
        self.state = state
        self._news = asyncio.Event()

    @classmethod
    def fold(cls, events: Iterable[Event], state: S | None = None) -> S:
        """The state after some events of the stream, from one before them.

        Raises:
            JournalError: an event is of no known kind or does not fit it.
        """
        folded: S = state if state is not None else cls.empty()
        for event in events:
            cls.apply(folded, event, ev.payload_of(event))
        return folded

    @classmethod
    async def open(cls, store: JournalStore, clock: Clock) -> Self:
        """Read the stream.

        Raises:
            JournalError: it cannot be read, or holds what this version does not know.
        """
        state = await asyncio.to_thread(cls.fold, await store.read(cls.name))
        return cls(StreamLog(cls.name, state.version, state.hash, clock, store.commit), state)

    def append(self, payload: Payload, *, actor: str = "system", causes: tuple[str, ...] = ()) -> Event:
        """Add an event and fold it, as the journal will give it back; it is pending until `commit`."""
        event = self.log.append(payload, actor=actor, causes=causes, tick=0)
        self.apply(self.state, event, ev.payload_of(event))
        news, self._news = self._news, asyncio.Event()
        news.set()
        return event

    def take(self, events: Iterable[Event]) -> None:
        """Fold what another process has appended; nothing may be pending here."""
        self.fold(events, self.state)
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def commit(self) -> None:
        """Make all that is pending durable.

        Raises:
            JournalError: the journal refused.
        """
        await self.log.commit()

    async def changed(self) -> None:
        """Wait for the next event."""
        await self._news.wait()

    async def close(self) -> None:
        """Make what is pending durable where that can be done."""
        with suppress(JournalError):
            await self.log.commit()
        await self.log.close()


AT_ONCE = 16
"""Streams that are read and folded together."""
READ_AT_ONCE = 2_048
"""Events of a stream that are read together; making them takes the loop some ten milliseconds."""
SAVED_AFTER = 10_000
"""Events after whose folding the state is kept, so that it does not take so long again."""


async def restore(store: JournalStore, stream: str, at: int | None = None) -> tuple[AgentState, str]:
    """The state of a stream at a version, and why a snapshot could not be used; empty when all is well.

    Args:
        store: the journal.
        stream: the stream; its state is empty when there is none.
        at: the last event that counts; None for all.

    Raises:
        JournalError: the events cannot be read.
    """
    state, why = await nearest(store, stream, at)
    began, more = state.version, True
    while more:
        last = state.version + READ_AT_ONCE
        events = await store.read(stream, state.version + 1, last if at is None else min(last, at))
        more, many = len(events) == READ_AT_ONCE, len(events) > KEEP_EVERY
        state = await asyncio.to_thread(fold, events, state) if many else fold(events, state)
    if state.version - began > SAVED_AFTER:
        with suppress(JournalError):  # a store that cannot be written to keeps nothing
            text = await asyncio.to_thread(dump_state, state)
            await store.save_snapshot(stream, state.version, SNAPSHOT_FORMAT, text)
    return state, why


ENDED_AGENTS_SUFFIX = "@over"
"""What is kept of an agent that is over stands beside its stream under its name and this."""
ENDED_AGENTS_FORMAT = 1


async def ended_agents(store: JournalStore, streams: Mapping[str, Head]) -> dict[str, tuple[str, Spent]]:
    """The agents of which it is kept that they are over, each with its parent and what it took.

    Args:
        store: the journal.
        streams: the agents' streams with their heads.

    Raises:
        JournalError: the journal cannot be read.
    """
    over: dict[str, tuple[str, Spent]] = {}
    for kept in await store.load_snapshots(list(streams), ENDED_AGENTS_FORMAT, beside=ENDED_AGENTS_SUFFIX):
        if (kept.version, kept.hash) != tuple(streams[kept.stream]):
            continue
        with suppress(ValueError, KeyError, TypeError):
            data = json.loads(without_checksum(kept.state))
            if (data["of"], data["head"]) == (kept.stream, kept.hash):
                over[kept.stream] = (data["parent"], Spent(*data["spent"]))
    return over


async def restore_all(
    store: JournalStore, streams: Sequence[str]
) -> AsyncIterator[tuple[str, AgentState, int, str]]:
    """`restore` of many streams, read and folded several at a time.

    Yields:
        each stream, its state, the version of the snapshot that it was made from (0: of none), and why.

    Raises:
        JournalError: the events cannot be read.
    """
    for first in range(0, len(streams), AT_ONCE):
        some = streams[first : first + AT_ONCE]
        kept = await store.load_snapshots(some, SNAPSHOT_FORMAT)
        versions = {snapshot.stream: snapshot.version for snapshot in kept}
        events = await store.since({name: versions.get(name, 0) for name in some})
        states = await asyncio.to_thread(_folded, some, kept, events)
        for name in some:
            if (state := states.get(name)) is not None:
                yield name, state, versions.get(name, 0), ""
            else:
                state, why = await restore(store, name)
                yield name, state, 0, why


def _folded(
    streams: Sequence[str], kept: Sequence[StoredSnapshot], events: Sequence[Event]
) -> dict[str, AgentState]:
    """The states of streams; those whose snapshot cannot be used are left out."""
    states = {name: AgentState() for name in streams}
    for snapshot in kept:
        try:
            states[snapshot.stream] = _usable(snapshot.state, snapshot.version, snapshot.hash)
        except ValueError:
            del states[snapshot.stream]
    for event in events:
        if event.stream in states:
            apply(states[event.stream], event)
    return states


async def nearest(store: JournalStore, stream: str, at: int | None = None) -> tuple[AgentState, str]:
    """The newest kept state up to a version, else that before all events, and what could not be used.

    Raises:
        JournalError: the journal cannot be read.
    """
    passed_over: list[str] = []
    before = at
    while (snapshot := await store.load_snapshot(stream, before, SNAPSHOT_FORMAT)) is not None:
        version, text = snapshot
        # Its own event says whether the state is one of this journal.
        events = await store.read(stream, version, version)
        try:
            state = await asyncio.to_thread(_usable, text, version, events[0].hash)
        except ValueError as error:
            passed_over.append(f"{version} ({str(error).splitlines()[0]})")
            before = version - 1
        else:
            return state, _why(stream, passed_over)
    return AgentState(), _why(stream, passed_over)


def _usable(text: str, version: int, digest: str) -> AgentState:
    """The state from a snapshot, if it is that after the event with this version and hash."""
    state = load_state(text)
    if (state.version, state.hash) != (version, digest):
        raise ValueError("it is not a state of this journal")
    return state


def _why(stream: str, passed_over: list[str]) -> str:
    if not passed_over:
        return ""
    which = ", ".join(passed_over)
    return f"{stream}: the state kept at event {which} could not be used; it was built again from the events"


PAGE = 256
"""Events read at a time."""
SLICE = 32
"""Events folded between two turns of the loop."""
KEEP_EVERY = 512
"""Events between two states that are kept; twice as many whenever there are too many of them."""
REST_S = 0.002
"""Between two slices while states are kept beforehand: the loop is for others most of the time."""
KEPT = 128


class MarkKind(StrEnum):
    """What sort of moment a mark is."""

    GOAL = "goal"
    PLAN = "plan"
    DECISION = "decision"
    ACTION = "action"
    FAILURE = "failure"
    OPERATOR = "operator"
    """The operator was asked for a decision, or made a mark."""
    REWIND = "rewind"
    """It was brought back to what it had been, or began as a fork."""
    HELD = "held"
    """It was held: at a breakpoint, by a budget, or for being stuck."""


_MARKED: dict[MarkKind, tuple[type[Payload], ...]] = {
    MarkKind.GOAL: (ev.GoalAdopted, ev.GoalEnded),
    MarkKind.PLAN: (ev.PlanAdopted, ev.PlanRevised),
    MarkKind.DECISION: (ev.DecisionMade,),
    MarkKind.ACTION: (ev.ActionFinished, ev.ActionCancelled, ev.ActionOutcomeUnknown),
    MarkKind.FAILURE: (ev.FailureRecorded,),
    MarkKind.OPERATOR: (
        *(ev.InterventionOpened, ev.ApprovalAsked, ev.ReplanHeld, ev.ChangesOffered, ev.PlansHeld),
        *(ev.ResultDisputed, ev.NoteAdded),
    ),
    MarkKind.HELD: (ev.BreakpointHit, ev.MindBreakpointHit, ev.BudgetReached, ev.StuckNoticed),
    MarkKind.REWIND: (ev.Rewound, ev.AgentForked),
}
_KINDS = {kind.kind: mark for mark, kinds in _MARKED.items() for kind in kinds}


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment that is worth going back to."""

    version: int
    """The event of the stream."""
    kind: MarkKind


def mark_at_offset(marks: Sequence[Mark], at: int | None, by: int) -> int | None:
    """Where so many marks lead from a place.

    Args:
        marks: oldest first.
        at: the version that is looked at; None for now.
        by: marks to go, back where negative.

    Returns:
        The version of a mark; behind the last one None, which is now. Before the first one is the first.
    """
    versions = [mark.version for mark in marks]
    if by < 0:
        place = len(versions) if at is None else bisect_left(versions, at)
        return versions[max(0, place + by)] if versions else at
    if at is None:
        return None
    place = bisect_right(versions, at) - 1 + by
    return versions[place] if place < len(versions) else None


class StreamHistory:
    """What one agent's stream was at each of its events.

    Args:
        store: the journal; reading it is all that is done to it.
        stream: the agent.
    """

    def __init__(self, store: JournalStore, stream: str) -> None:
        self.stream = stream
        self._store = store
        self._marks: list[Mark] = []
        self._looked_to = 0
        """The version up to which marks were looked for."""
        self._kept: dict[int, AgentState] = {}
        self._every = KEEP_EVERY
        self._prepared = 0
        """The version up to which states are kept beforehand."""

    async def head(self) -> int:
        """The newest durable version of the stream; 0 where there is no such stream."""
        return (await self._store.head(self.stream)).version

    async def marks(self) -> Sequence[Mark]:
        """The marks of the stream up to now, oldest first."""
        head = await self.head()
        if head > self._looked_to:
            places = await self._store.places(self.stream, tuple(_KINDS), self._looked_to + 1, head)
            # Whoever else asked meanwhile has them already.
            last = self._marks[-1].version if self._marks else 0
            self._marks += [Mark(version, _KINDS[kind]) for version, kind in places if version > last]
            self._looked_to = max(self._looked_to, head)
        return self._marks

    async def event(self, version: int) -> Event | None:
        """The event with this version, or None when there is none."""
        return await self._store.get(f"{self.stream}:{version}")

    async def events(self, first: int, last: int) -> list[Event]:
        """The events from one version to another, both included."""
        return await self._store.read(self.stream, first, last)

    async def version_at(self, seq: int) -> int:
        """The newest version of the stream at a place of the journal; 0 where it had not begun."""
        return await self._store.version_at(self.stream, seq)

    async def newest(self, kind: type[ev.Payload], at: int) -> Event | None:
        """The newest event of a kind up to a version, or None."""
        places = await self._store.places(self.stream, (kind.kind,), 1, at)
        return await self.event(places[-1][0]) if places else None

    async def saved(self, state: AgentState) -> Event | None:
        """The event of the workspace snapshot that comes nearest to the files as they were at a state.

        That is the next one, as the files were saved before they were changed again; while an action ran, and
        where there is no next one, the one before. None where none was taken.
        """
        places = await self._store.places(self.stream, (ev.SnapshotTaken.kind,), 1, await self.head())
        versions = [version for version, _ in places]
        place = bisect_right(versions, state.version)
        if (state.acting or place == len(versions)) and place:
            place -= 1
        return await self.event(versions[place]) if versions else None

    async def state(self, at: int) -> AgentState:
        """The state after an event; the caller may change it.

        Args:
            at: its version; beyond the newest one the newest counts, and 0 is before the first.

        Raises:
            JournalError: the events cannot be read.
        """
        state = await self._begin(at)
        while state.version < at and await self._fold_page(state, min(state.version + PAGE, at)):
            pass
        return state

    async def prepare(self) -> None:
        """Keep states of the whole stream beforehand, in the background, so that any look back is fast.

        Raises:
            JournalError: the events cannot be read.
        """
        last = max((version for version in self._kept if version <= self._prepared), default=0)
        state = copy_state(self._kept[last]) if last else AgentState()
        while await self._fold_page(state, state.version + PAGE, REST_S):
            self._prepared = state.version

    async def _fold_page(self, state: AgentState, last: int, rest_s: float = 0.0) -> bool:
        """Bring a state forward to an event at most, keeping some; false where none is left."""
        page = await self._store.read(self.stream, state.version + 1, last)
        for event in page:
            apply(state, event)
            if not event.version % self._every:
                self._keep(state)
            if not event.version % SLICE:
                await asyncio.sleep(rest_s)
        return bool(page)

    async def _begin(self, at: int) -> AgentState:
        """The nearest state that is at hand."""
        mine = max((version for version in self._kept if version <= at), default=0)
        if at - mine > self._every:
            state, _ = await nearest(self._store, self.stream, at)
            if state.version > mine:
                self._keep(state)
                return state
        return copy_state(self._kept[mine]) if mine else AgentState()

    def _keep(self, state: AgentState) -> None:
        self._kept[state.version] = copy_state(state)
        if len(self._kept) > KEPT:
            self._every *= 2
            self._kept = {version: kept for version, kept in self._kept.items() if not version % self._every}
