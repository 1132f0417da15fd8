"""The one task that writes: it commits everything that waits as one transaction, under the workspace's lock.

A caller awaits a future and never touches the connection, so a cancelled caller can neither keep a
transaction open nor take its events back; and since all that has gathered while one
transaction was under way goes into the next, sixteen agents cost about as many disk flushes as one.

A group is one INSERT of many rows outside of any explicit transaction: SQLite makes it durable as a
whole or not at all, it holds nothing open whatever happens, and it takes one trip to the connection's
thread where begin, insert and commit take three (a trip is about 0.1 ms, as much as a disk flush).

The lock is an advisory `flock` on an open file, so it ends with the process that holds it, however that ends.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import sqlite3
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Self

import aiosqlite

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
from engine.core.store.schema import insert, placed, to_row


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

_insert = lru_cache(maxsize=64)(insert)

_UNSTORABLE = (
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
    UnicodeEncodeError,
    OverflowError,
)


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
        self,
        connection: aiosqlite.Connection,
        heads: dict[str, Head],
        last_seq: int,
        committed: Callable[[list[Event]], None],
    ) -> None:
        """Begin to write behind what is on disk.

        Args:
            connection: an open connection without implicit transactions, used by nothing else.
            heads: the head of every stream on disk; kept up to date here.
            last_seq: the last place given out on disk.
            committed: called with what has become durable, in order, before the callers hear of it.
        """
        self._connection = connection
        self._committed = committed
        self._waiting: deque[_Batch | _MaintenanceTask] = deque()
        self._in_hand: list[_Batch | _MaintenanceTask] = []
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

    async def stop(self) -> None:
        """Commit everything that waits, then end; the connection is the caller's to close."""
        self._stopping = True
        self._wake.set()
        await asyncio.wait([self._task])

    def _enqueue(self, job: _Batch | _MaintenanceTask) -> None:
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
        if isinstance(first, _MaintenanceTask):
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
                _fail(batch, error)
        if not group.rows:
            return
        try:
            await self._guarded(self._insert(group.rows))
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
            await self._guarded(self._execute(chore.statements))
        except (JournalRefused, JournalWriteError) as error:
            _fail(chore, error)
        else:
            if not chore.done.done():
                chore.done.set_result(None)

    async def _insert(self, rows: Sequence[Row]) -> None:
        if len(rows) <= GROUP_LIMIT:
            await self._connection.execute(_insert(len(rows)), tuple(chain.from_iterable(rows)))
        else:
            await self._connection.execute("begin immediate")
            await self._connection.executemany(_insert(1), rows)
            await self._connection.commit()

    async def _execute(self, statements: Sequence[Statement]) -> None:
        for sql, parameters in statements:
            await self._connection.execute(sql, parameters)

    async def _guarded(self, writing: Coroutine[Any, Any, None]) -> None:
        """Write all or nothing, whatever goes wrong, and say what went wrong in the journal's words."""
        try:
            await writing
        except asyncio.CancelledError:
            # The statement in flight ends in its thread; what it left open is rolled back behind it.
            await self._connection.rollback()
            raise
        except _UNSTORABLE as error:
            await self._connection.rollback()
            raise JournalRefused(
                f"What was to be written cannot be stored ({error}); nothing of this batch was written."
            ) from error
        except sqlite3.Error as error:
            await self._connection.rollback()
            raise JournalWriteError(
                f"The journal could not be written ({error}); nothing of this batch was written. "
                "Make room or mend the disk, then try again."
            ) from error


def _fail(job: _Batch | _MaintenanceTask, error: JournalError) -> None:
    if not job.done.done():
        job.done.set_exception(error)
