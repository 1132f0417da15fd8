"""The one task that writes: it commits everything that waits as one transaction, under the workspace's lock.

A caller awaits a future and never touches the connection, so a cancelled caller can neither keep a
transaction open nor take its events back; and since all that has gathered while one
transaction was under way goes into the next, sixteen agents cost about as many disk flushes as one.

The lock is an advisory `flock` on an open file, so it ends with the process that holds it, however that ends.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

from engine.core.journal import (
    Event,
    JournalClosed,
    JournalConflict,
    JournalError,
    JournalLocked,
    JournalRefused,
    JournalWriteError,
)
from engine.core.store.port import START, Head, Row
from engine.core.store.schema import placed, to_row


class WriterLock:
    """The right to write to one workspace, held from `acquire` to `release`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def acquire(cls, path: Path, since: str) -> Self:
        """Take the lock and write down who holds it.

        Args:
            path: the lock file; it is created when missing and never removed, so that no process can
                lock a file which is no longer the one others look at.
            since: the current time, as others shall read it.

        Raises:
            JournalLocked: another process (or another store of this one) holds it.
            JournalError: the file cannot be opened or locked.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise JournalError(
                f"{path} cannot be opened ({error.strerror}): check who may write to the workspace."
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()} {since}\n".encode(), 0)
        except BlockingIOError as error:
            pid, since_then = _holder(descriptor)
            os.close(descriptor)
            raise JournalLocked(path, pid, since_then) from error
        except OSError as error:
            os.close(descriptor)
            raise JournalError(
                f"{path} cannot be locked ({error.strerror}): a workspace must be on a local disk."
            ) from error
        return cls(descriptor)

    def release(self) -> None:
        """Let others write; may be called again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _holder(descriptor: int) -> tuple[str, str]:
    """Process id and start time as the holder wrote them, or words for not knowing."""
    words = os.pread(descriptor, 200, 0).decode("ascii", "replace").split()
    return (words[0], words[1]) if len(words) == 2 else ("unknown", "an unknown time")


GROUP_LIMIT = 256
"""Events at which a group is closed; one that a large batch takes beyond goes as an explicit transaction."""

AT_ONCE = 1_024
"""Events of a large batch that are given their places between two turns of the loop."""

Statement = tuple[str, tuple[Any, ...]]
"""SQL and its parameters."""


class Overtaken(Exception):  # noqa: N818 - as `JournalLocked` is named
    """Another process wrote meanwhile, or it is not known what of this was written: see what is there."""


class Ledger(Protocol):
    """Writes events and what is kept beside them into a database, as the only user of a connection.

    Each method raises `JournalRefused` for what cannot be stored and `JournalWriteError` where the database
    refuses, and then has written nothing of it.
    """

    async def insert(self, rows: Sequence[Row], after: int) -> None:
        """Keep events, all or none, which follow a place.

        Raises:
            Overtaken: they do not follow it any more, or may be there already.
        """

    async def execute(self, statements: Sequence[Statement]) -> None:
        """Run statements one by one; each is durable when it is done."""

    async def missed(self, after: int) -> list[Event]:
        """What others wrote behind a place, in order; some of it where it is much."""

    async def kept(self, events: Sequence[Event]) -> list[Event] | None:
        """The same events with their places where all of them are there, or None."""


@dataclass(slots=True)
class _Batch:
    """Events that are committed together or not at all."""

    events: Sequence[Event]
    done: asyncio.Future[list[Event]]


@dataclass(slots=True)
class _MaintenanceTask:
    """Statements beside the events."""

    statements: Sequence[Statement]
    done: asyncio.Future[None]


class _CatchUp:
    """A look at what others wrote."""


_Job = _Batch | _MaintenanceTask | _CatchUp


@dataclass(slots=True)
class _Group:
    """Batches that have found their place, ready for one transaction."""

    seq: int
    """The last place given out."""
    rows: list[Row] = field(default_factory=list)
    heads: dict[str, Head] = field(default_factory=dict)
    """Heads of the streams that move with this group."""
    answers: list[tuple[_Batch, list[Event]]] = field(default_factory=list)

    async def add(self, batch: _Batch, heads: Mapping[str, Head]) -> None:
        """Give a batch its place behind those before it, or raise JournalConflict and stay as it is."""
        moved: dict[str, Event] = {}
        for number, event in enumerate(batch.events, 1):
            if not number % AT_ONCE:
                await asyncio.sleep(0)
            stream = event.stream
            head: Event | Head = moved.get(stream) or self.heads.get(stream) or heads.get(stream, START)
            if event.version != head.version + 1:
                raise JournalConflict(
                    f"Stream {stream} is at version {head.version}, so its next event must be version "
                    f"{head.version + 1} and not {event.version}; nothing of this batch was written."
                )
            moved[stream] = event
        answer: list[Event] = []
        for number, event in enumerate(batch.events, 1):
            answer.append(placed(event, self.seq + number))
            self.rows.append(to_row(answer[-1]))
            if not number % AT_ONCE:
                await asyncio.sleep(0)
        self.seq += len(answer)
        self.heads.update((stream, Head(last.version, last.hash)) for stream, last in moved.items())
        self.answers.append((batch, answer))


class GroupWriter:
    """Owns the only connection that writes, from its making to `stop`."""

    def __init__(
        self, ledger: Ledger, heads: dict[str, Head], last_seq: int, committed: Callable[[list[Event]], None]
    ) -> None:
        """Begin to write behind what is on disk.

        Args:
            ledger: writes into the database, and is used by nothing else.
            heads: the head of every stream on disk; kept up to date here.
            last_seq: the last place given out on disk.
            committed: called with what has become durable, in order, before the callers hear of it.
        """
        self.ledger = ledger
        self._committed = committed
        self._waiting: deque[_Job] = deque()
        self._in_hand: list[_Job] = []
        self._wake = asyncio.Event()
        self._stopping = False
        self.heads = heads
        self.last_seq = last_seq
        self._task = asyncio.create_task(self._run(), name="journal writer")

    async def append(self, events: Sequence[Event]) -> list[Event]:
        """Commit events together; see `JournalStore.commit`."""
        done: asyncio.Future[list[Event]] = asyncio.get_running_loop().create_future()
        self._enqueue(_Batch(events, done))
        return await done

    async def write(self, statements: Sequence[Statement]) -> None:
        """Run statements one by one, each durable when it is done, between groups of events."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._enqueue(_MaintenanceTask(statements, done))
        await done

    def look(self) -> None:
        """Take in soon what others wrote."""
        if not self._stopping and not any(isinstance(job, _CatchUp) for job in self._waiting):
            self._enqueue(_CatchUp())

    async def stop(self) -> None:
        """Commit everything that waits, then end; the connection is the caller's to close."""
        self._stopping = True
        self._wake.set()
        await asyncio.wait([self._task])

    def _enqueue(self, job: _Job) -> None:
        if self._stopping or self._task.done():
            raise JournalClosed("The journal is closed; open the workspace again to write to it.")
        self._waiting.append(job)
        self._wake.set()

    async def _run(self) -> None:
        try:
            while True:
                if self._waiting:
                    await self._write_next()
                elif self._stopping:
                    return
                else:
                    self._wake.clear()
                    await self._wake.wait()
        finally:
            # Only after a cancellation is anything left: these events may or may not be on disk.
            for job in (*self._in_hand, *self._waiting):
                _fail(job, JournalClosed("The journal was cut off while writing; open the workspace again."))

    async def _write_next(self) -> None:
        first = self._waiting.popleft()
        self._in_hand = [first]
        if isinstance(first, _CatchUp):
            with suppress(JournalError):  # which the next who writes hears
                await self.catch_up()
        elif isinstance(first, _MaintenanceTask):
            await self._write_chore(first)
        else:
            batches, size = [first], len(first.events)
            while self._waiting and size < GROUP_LIMIT and isinstance(self._waiting[0], _Batch):
                batch = self._waiting.popleft()
                assert isinstance(batch, _Batch)
                batches.append(batch)
                size += len(batch.events)
            self._in_hand = [*batches]
            await self._write_batches(batches)
        self._in_hand = []

    async def _write_batches(self, batches: list[_Batch]) -> None:
        group = _Group(self.last_seq)
        for batch in batches:
            try:
                await group.add(batch, self.heads)
            except JournalConflict as error:
                if kept := await self._kept(batch, error):
                    batch.done.set_result(kept)
        if not group.rows:
            return
        try:
            await self.ledger.insert(group.rows, self.last_seq)
        except Overtaken:
            await self._catch_up_and_write([batch for batch, _ in group.answers])
        except JournalRefused as error:
            if len(group.answers) == 1:
                _fail(group.answers[0][0], error)
                return
            # One event spoils the transaction for all: each batch gets its own, so that the others are kept.
            for batch, _ in group.answers:
                await self._write_batches([batch])
        except JournalWriteError as error:
            for batch, _ in group.answers:
                _fail(batch, error)
        else:
            self._settle(group)

    async def _kept(self, batch: _Batch, conflict: JournalConflict) -> list[Event] | None:
        """What of a batch that does not follow is there already; where it is not, the batch has failed."""
        try:
            kept = await self.ledger.kept(batch.events)
        except JournalError as error:
            _fail(batch, error)
            return None
        if kept is None:
            _fail(batch, conflict)
        return None if batch.done.done() else kept

    async def _catch_up_and_write(self, batches: list[_Batch]) -> None:
        try:
            await self.catch_up()
        except JournalError as error:
            for batch in batches:
                _fail(batch, error)
        else:
            await self._write_batches(batches)

    async def catch_up(self) -> None:
        """Take in what others wrote."""
        while events := await self.ledger.missed(self.last_seq):
            self.heads.update((event.stream, Head(event.version, event.hash)) for event in events)
            self.last_seq = events[-1].seq
            self._committed(events)

    def _settle(self, group: _Group) -> None:
        """Make known what is durable now."""
        self.heads.update(group.heads)
        self.last_seq = group.seq
        self._committed([event for _, answer in group.answers for event in answer])
        for batch, answer in group.answers:
            if not batch.done.done():
                batch.done.set_result(answer)

    async def _write_chore(self, chore: _MaintenanceTask) -> None:
        try:
            await self.ledger.execute(chore.statements)
        except (JournalRefused, JournalWriteError) as error:
            _fail(chore, error)
        else:
            if not chore.done.done():
                chore.done.set_result(None)


def _fail(job: _Job, error: JournalError) -> None:
    if not isinstance(job, _CatchUp) and not job.done.done():
        job.done.set_exception(error)
