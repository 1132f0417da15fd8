"""The one task that writes to memory: it decides, commits to the journal, and then to the tables.

A write is a function that runs in the database's thread within an open transaction: it sees what the writes
before it did, and what it emits is folded at once. When all writes of a group have run, their events are
committed to the journal, and only then the transaction. If the journal refuses, the transaction is rolled
back and nothing was written anywhere. A write that raises is rolled back alone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, TypeVar

from engine.core import memory as core
from engine.core import memory_events as ev
from engine.core.journal import MEMORY, Event, JournalError, Payload, chain_hash
from engine.core.ports import Clock
from engine.core.store.port import JournalStore, parse_ref
from engine.memory import fold, scoring
from engine.memory.connection import Connection, TablesError, ValueRefused, roll_back, take_back
from engine.memory.database import Projection
from engine.memory.errors import MemoryFault, MemoryInputError, MemoryUnavailable
from engine.memory.tables import THOUGHTS, Reading

R = TypeVar("R")


class WriteResult(NamedTuple, Generic[R]):
    """The result of a unit of work."""

    answer: R
    event: str = ""
    """Reference of the last event that it wrote; empty when nothing was to be written."""


GROUP_LIMIT = 256
"""Writes that share one transaction."""
CATCH_UP_PAGE = 1_000
"""Events folded at a time when the database is behind the journal."""
KNOWN_MOST = 4_000
"""Values that are remembered from one transaction to the next; a memory has at most 64,000 characters."""


class Unit:
    """A unit of work: all that it emits is written, or nothing."""

    def __init__(self, connection: Connection, head: tuple[int, str], job: _Job) -> None:
        self._connection = connection
        self._head = head
        self._job = job
        self.now = fold.seconds(job.at)
        """When it happens, in seconds since 1970."""
        self.reading = Reading(connection, self.now, writing=True)
        """Memory with all that was emitted so far."""
        self.events: list[Event] = []

    def new_id(self, letter: str, *, ahead: int = 0) -> str:
        """An id for what the next event makes, or one that is so many events ahead of it."""
        return f"{letter}{self._head[0] + 1 + ahead}"

    def content(self, name: str, text: str) -> core.Content:
        """A text of any size that was part of the request, as an event keeps it."""
        return self._job.contents.get(name) or core.Content(text, "", len(text.encode()))

    def emit(self, payload: Payload) -> None:
        """Write an event, and have it in the tables at once."""
        version, previous = self._head[0] + 1, self._head[1]
        job, body = self._job, payload.body()
        digest = chain_hash(
            previous, MEMORY, version, job.at, job.tick, job.actor, job.causes, payload.kind, body
        )
        event = Event(MEMORY, version, job.at, job.tick, job.actor, job.causes, payload.kind, body, digest)
        fold.apply(self._connection, event, payload)
        self._head = (version, digest)
        self.events.append(event)

    def part(self, work: Callable[[Unit], object], **other: Any) -> Exception | None:
        """Do a part of the work on behalf of something else; what it may not do is taken back alone.

        Args:
            work: the part.
            other: its own `at`, `actor`, `causes`, `tick` and `contents`.

        Returns:
            Why it was taken back; None when it was done.

        Raises:
            MemoryUnavailable: the database refused, which concerns the whole.
        """
        unit = Unit(self._connection, self._head, replace(self._job, **other))
        self._connection.run("savepoint part")
        error = None
        try:
            work(unit)
            self._connection.run("release part")
        except Exception as fault:  # whatever it is, it is handed back
            error = _as_fault(fault)
            take_back(self._connection, "rollback to part")
            self._connection.run("release part")
            if isinstance(error, MemoryUnavailable):
                raise error from fault
        else:
            self.events += unit.events
            self._head = unit._head
        return error

    def made_before(self, kind: type[Payload], key: str, workflow: str = "") -> str:
        """Id of what a request with this idempotency key made already; empty when there is none."""
        if not key:
            return ""
        made = self.reading.made(kind.kind, key)
        return next((subject for place, subject in made if workflow in ("", place)), "")


@dataclass(slots=True)
class _Job:
    """A write that waits for its turn."""

    work: Callable[[Unit], Any]
    at: str
    actor: str
    causes: tuple[str, ...]
    tick: int
    contents: Mapping[str, core.Content]
    done: asyncio.Future[Any]
    answer: Any = None
    error: Exception | None = None
    events: list[Event] = field(default_factory=list)


class Writer:
    """Takes writes from any task; close it, and it finishes what waits."""

    def __init__(
        self, store: JournalStore, projection: Projection, thread: ThreadPoolExecutor, clock: Clock
    ) -> None:
        self._store = store
        self._projection = projection
        self._thread = thread
        self._clock = clock
        self._head = projection.head
        self._jobs: deque[_Job] = deque()
        self._wake = asyncio.Event()
        self._closing = False
        self._behind = False
        self._task = asyncio.create_task(self._run(), name="memory writer")

    async def write(
        self,
        work: Callable[[Unit], R],
        *,
        actor: str = "agent",
        causes: tuple[str, ...] = (),
        contents: Mapping[str, core.Content] | None = None,
    ) -> WriteResult[R]:
        """Do a unit of work and answer what it answers, once it is durable.

        Once called it is done even if the caller is cancelled.

        Raises:
            MemoryFault: the work was refused; nothing of it was written.
            JournalError: the journal refused; nothing of it was written.
        """
        if self._closing:
            raise MemoryUnavailable("Memory is closed: open the workspace again.")
        await self._check_causes(causes)
        done: asyncio.Future[WriteResult[R]] = asyncio.get_running_loop().create_future()
        # An error whose caller no longer waits is dropped.
        done.add_done_callback(lambda future: future.cancelled() or future.exception())
        job = _Job(work, self._clock.now(), actor, causes, 0, contents or {}, done)
        self._jobs.append(job)
        self._wake.set()
        return await asyncio.shield(done)

    async def _check_causes(self, causes: tuple[str, ...]) -> None:
        # Verification takes an event whose cause is not there for a sign that the journal was changed.
        for cause in causes:
            ref = parse_ref(cause)
            if ref is None or not 1 <= ref[1] <= (await self._store.head(ref[0])).version:
                raise MemoryInputError("causes", f"causes: there is no event {cause!r} in the journal.")

    async def close(self) -> None:
        """Finish what waits and end the task; may be called again."""
        self._closing = True
        self._wake.set()
        await asyncio.wait([self._task])

    async def catch_up(self) -> None:
        """Fold the events that are in the journal and not in the tables.

        Raises:
            MemoryUnavailable: the database refused.
            JournalError: the journal could not be read.
        """
        loop = asyncio.get_running_loop()
        last = (await self._store.head(MEMORY)).version
        version, digest = await loop.run_in_executor(self._thread, lambda: self._projection.head)
        while version < last:
            page = await self._store.read(MEMORY, version + 1, version + CATCH_UP_PAGE)
            try:
                await loop.run_in_executor(self._thread, self._projection.apply, page)
            except TablesError as error:
                raise _refused(error) from error
            version, digest = page[-1].version, page[-1].hash
        self._head = (version, digest)
        self._behind = False

    # -------------------------------------------------------------- the task

    async def _run(self) -> None:
        while not (self._closing and not self._jobs):
            await self._wake.wait()
            self._wake.clear()
            while self._jobs:
                group = [self._jobs.popleft() for _ in range(min(GROUP_LIMIT, len(self._jobs)))]
                await self._serve(group)

    async def _serve(self, group: Sequence[_Job]) -> None:
        loop = asyncio.get_running_loop()
        try:
            if self._behind:
                await self.catch_up()
            head = await loop.run_in_executor(self._thread, self._decide, group)
            await self._make_durable(group, head)
        except (MemoryFault, JournalError) as error:
            with contextlib.suppress(TablesError):
                await loop.run_in_executor(self._thread, self._projection.roll_back)
            for job in group:
                job.error = job.error or error
        for job in group:
            if not job.done.cancelled():
                if job.error is None:
                    last = job.events[-1].ref if job.events else ""
                    job.done.set_result(WriteResult(job.answer, last))
                else:
                    job.done.set_exception(job.error)

    def _decide(self, group: Sequence[_Job]) -> tuple[int, str]:
        """Run every write within one open transaction; those that fail are taken back alone."""
        connection = self._projection.connection
        known = connection.known
        if len(known) > KNOWN_MOST:
            for place in list(known)[: -KNOWN_MOST // 2]:
                del known[place]
        try:
            try:
                return self._run_all(group)
            except TablesError:
                if not connection.refused_late:
                    raise
            roll_back(connection)  # nobody can say whose value that was
            return self._run_all(group, careful=True)
        except TablesError as error:
            raise _refused(error) from error

    def _run_all(self, group: Sequence[_Job], *, careful: bool = False) -> tuple[int, str]:
        connection, head = self._projection.connection, self._head
        connection.begin(careful=careful)
        for job in group:
            connection.run("savepoint job")
            job.error, job.events = None, []
            unit = Unit(connection, head, job)
            try:
                job.answer = job.work(unit)
                connection.run("release job")
            except Exception as error:  # noqa: BLE001 - whatever it is, it is the caller's
                job.error = _as_fault(error)
                take_back(connection, "rollback to job")
                connection.run("release job")
            else:
                job.events = unit.events
                if unit.events:
                    head = (unit.events[-1].version, unit.events[-1].hash)
        connection.settle()
        return head

    async def _make_durable(self, group: Sequence[_Job], head: tuple[int, str]) -> None:
        """Commit to the journal, then to the tables."""
        loop = asyncio.get_running_loop()
        events = [event for job in group for event in job.events]
        placed = await self._store.commit(events) if events else []
        self._head = head
        try:
            await loop.run_in_executor(self._thread, self._show, placed)
        except TablesError as error:
            with contextlib.suppress(TablesError):
                await loop.run_in_executor(self._thread, self._projection.roll_back)
            if not placed:
                raise _refused(error) from error
            # The events are durable, so the writes were done; the tables are brought forward before the next.
            self._behind = True

    def _show(self, placed: Sequence[Event]) -> None:
        connection = self._projection.connection
        if placed:
            places = [(event.seq, event.version) for event in placed]
            connection.run_many("update operations set seq = ? where number = ?", places)
            self._projection.note_head(placed[-1])
        connection.run("commit")


def _refused(error: TablesError) -> MemoryUnavailable:
    return MemoryUnavailable(
        f"Memory cannot be written just now ({error}): check the space on the disk, then try again."
    )


def _as_fault(error: Exception) -> Exception:
    """The database's and Python's words about a value as memory's own."""
    if isinstance(error, (ValueRefused, UnicodeError, OverflowError)):
        return MemoryInputError("", f"The request holds a value that cannot be kept: {error}.")
    return _refused(error) if isinstance(error, TablesError) else error


def remember(
    unit: Unit, workflow: str, content: str, *, ttl: int | None = None, key: str = "", **fields: Any
) -> core.MemoryItem:
    """Store a memory with its tags, time to live and place among the vectors settled.

    Args:
        unit: the work that it is part of.
        workflow: where it belongs.
        content: its text.
        ttl: seconds to keep it, 0 for ever; None is the usual one.
        key: the idempotency key of the request.
        fields: the other fields of `MemoryItem`; type and level come to the tags.
    """
    memory = core.MemoryItem(unit.new_id("m"), workflow, content, **fields)
    ttl = scoring.time_to_live(memory) if ttl is None else ttl
    settled = replace(
        memory,
        tags=tuple(dict.fromkeys((*memory.tags, str(memory.type), str(memory.level)))),
        ttl=ttl,
        expires_at=scoring.expiry(unit.now, ttl),
        digest=scoring.text_digest(memory.description, content),
        created_at=unit.now,
        updated_at=unit.now,
    )
    unit.emit(ev.MemoryStored(memory=settled, key=key))
    return settled


def by_workflow(memories: list[core.MemoryItem]) -> dict[str, list[str]]:
    """The ids of memories, by their workflow."""
    mine: dict[str, list[str]] = {}
    for memory in memories:
        mine.setdefault(memory.workflow, []).append(memory.id)
    return mine


def forget(unit: Unit, memories: list[core.MemoryItem], *, expired: bool) -> None:
    """Let memories go, with one event for each workflow."""
    for workflow, idents in by_workflow(memories).items():
        unit.emit(ev.MemoriesForgotten(workflow=workflow, memories=tuple(idents), expired=expired))


def think(
    unit: Unit,
    chain: core.ThoughtChain,
    kind: core.ThoughtType,
    content: str,
    *,
    parent: str = "",
    action: str = "",
    artifact: str = "",
    memory: str = "",
    key: str = "",
) -> core.Thought:
    """Add a thought to a chain; what it refers to was checked."""
    before = unit.reading.last_in(THOUGHTS, chain.id)
    thought = core.Thought(
        unit.new_id("t"), chain.id, kind, content, before + 1, parent, action, artifact, memory, unit.now
    )
    unit.emit(ev.ThoughtAdded(workflow=chain.workflow, thought=thought, key=key))
    if kind in scoring.THOUGHT_IMPORTANCE:
        remember(
            unit,
            chain.workflow,
            content,
            level=core.MemoryLevel.SEMANTIC,
            type=core.MemoryType.REASONING_STEP,
            importance=scoring.THOUGHT_IMPORTANCE[kind],
            description=f"Thought ({kind})",
            action=action,
            thought=thought.id,
        )
    return thought
