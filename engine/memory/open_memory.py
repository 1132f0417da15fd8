"""Memory once it is open: one writer and one reader, each with a connection and a thread of its own.

So nothing waits on the event loop, and a search never waits for a write. The memory of a workspace whose
journal another process writes is only read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from engine.core.journal import MEMORY
from engine.core.memory import Content, MemoryStatus
from engine.core.ports import Clock
from engine.core.store.blobs import BlobStore
from engine.core.store.opening import address_of, blobs_of
from engine.core.store.port import JournalStore
from engine.memory import fold, judgements, memories, note_writer, upkeep
from engine.memory.connection import Connection, TablesError, roll_back
from engine.memory.database import Projection
from engine.memory.embedder_choice import EmbedderChoice
from engine.memory.embedding import OTHER_SIZE, TEXT_LIMIT, Embedder, EmbedderError, Vector
from engine.memory.errors import MemoryInputError, MemoryRefused, MemoryUnavailable
from engine.memory.notes import Noted
from engine.memory.requests import Request, View, named
from engine.memory.search import MemorySearcher
from engine.memory.sqlite import FileMemory, temporary_tables
from engine.memory.tables import Reading
from engine.memory.vector_upkeep import VectorUpkeep
from engine.memory.vectors import StoredLikeness, VectorWriter
from engine.memory.writer import CATCH_UP_PAGE, Writer, WriteResult
from engine.value import replace

R = TypeVar("R")

SPILL_BYTES = 16_384
"""Bytes from which a result or an artifact becomes a blob."""
HEAD_CHARACTERS = 2_000
"""Characters of a blob that stay in its event."""
QUERY_S = 5.0
"""How long a search waits for the vector of what it looks for, before words alone count."""
QUERY_AGAIN_S = 30.0
"""How long it does not wait again after that."""
_REQUESTS = (note_writer, upkeep, memories, judgements)
"""The modules that define requests; importing them makes these known by name."""


class MemoryDatabase(Protocol):
    """Where the tables of a workspace's memory are, and the vectors beside them."""

    name: str
    """In words."""

    def open(self, known: Callable[[int], str]) -> Projection:
        """Open the tables to write to them, or make them anew where they cannot be used. Blocking.

        Args:
            known: the hash of the event with this version in the memory's stream; empty where there is none.

        Raises:
            MemoryUnavailable: there is no space, or they may not be written.
        """

    def reader(self) -> Connection:
        """A connection for reading. Blocking.

        Raises:
            TablesError: that cannot be had.
        """

    def readable(self) -> tuple[Connection, tuple[int, str]] | None:
        """A connection for reading, and the last event that the tables have; None where there are none."""

    def vectors(self, embedder: str) -> VectorWriter:
        """Keeps the vectors of an embedder. Blocking.

        Raises:
            TablesError, OSError: they cannot be kept.
        """

    def likeness(self, embedder: str) -> StoredLikeness:
        """The vectors of an embedder, as searches use them; it connects when it is first asked."""


def database_of(workspace: Path, clock: Clock) -> MemoryDatabase:
    """Where a workspace's memory is: beside its journal.

    Raises:
        JournalError: the URL of the journal is none.
    """
    if (address := address_of(workspace)) is not None:
        from engine.memory.postgres import PostgresMemory  # late: most journals are in a file

        return PostgresMemory(address, clock)
    return FileMemory(workspace)


class MemoryReader:
    """What a workspace's agents remember, to be read; open it with `look`, and always `close` it."""

    def __init__(
        self,
        database: MemoryDatabase,
        store: JournalStore,
        clock: Clock,
        thread: ThreadPoolExecutor,
        connection: Connection,
    ) -> None:
        self._database = database
        self._store = store
        self._clock = clock
        self._reading_thread = thread
        self._connection = connection
        self._finder = MemorySearcher()
        self._embedder: Embedder | None = None
        self._choosing = asyncio.Lock()
        """Held while another embedder takes the place of one."""
        self._likeness: StoredLikeness | None = None
        self._embedder_fault = ""
        self._embedder_rests_until = 0.0
        self._closed = False
        self.note = ""
        """What the answers may lack, in a sentence; empty when they are of the newest event."""

    @classmethod
    async def look(
        cls, directory: Path, store: JournalStore, *, clock: Clock, embedder: EmbedderChoice | None = None
    ) -> Self:
        """Look into the memory of a workspace, also while another process writes to it.

        Tables that are missing or of another format are made from the journal in a temporary database.

        Args:
            directory: the workspace.
            store: its journal, open for reading.
            clock: what time it is.
            embedder: who embeds what is looked for; None for words alone.

        Raises:
            MemoryUnavailable: there is no space to make the tables that are missing.
            JournalError: the journal could not be read, or holds what this version does not know.
        """
        thread = ThreadPoolExecutor(1, "memory-read")
        loop = asyncio.get_running_loop()
        try:
            last = (await store.head(MEMORY)).version
            database = database_of(directory, clock)
            tables = await loop.run_in_executor(thread, database.readable)
            note = ""
            if tables is not None and tables[1][1] == await _event_hash(store, tables[1][0]):
                connection, (version, _) = tables
                if version < last:
                    note = f"the newest {last - version} writes are not in {database.name} yet"
            else:
                projection = await loop.run_in_executor(thread, temporary_tables)
                connection = projection.connection
                for first in range(1, last + 1, CATCH_UP_PAGE):
                    page = await store.read(MEMORY, first, min(last, first + CATCH_UP_PAGE - 1))
                    await loop.run_in_executor(thread, projection.apply, page)
                if last:
                    note = f"there is no {database.name} to be read, so this was folded from the journal"
            memory = cls(database, store, clock, thread, connection)
            memory.note = note
            await memory.use_embedder(embedder)
            await memory._read(lambda reading: None)
        except BaseException:
            thread.shutdown(wait=False)
            raise
        return memory

    async def close(self) -> None:
        """Close thread and connection; may be called again."""
        if not self._closed:
            self._closed = True
            await self._close_reading()

    async def use_embedder(self, choice: EmbedderChoice | None) -> None:
        """Let searches count the likeness of vectors that this embedder makes; None for words alone."""
        async with self._choosing:
            await self._use_embedder(choice)

    async def _use_embedder(self, choice: EmbedderChoice | None) -> None:
        old, self._embedder = self._embedder, None
        if old is not None:
            await old.close()
        self._embedder_fault = choice.missing if choice is not None else ""
        self._embedder_rests_until = 0.0
        if choice is not None and not choice.missing:
            self._embedder = choice.open()
        embedder = self._embedder
        fresh = self._database.likeness(embedder.id) if embedder is not None else None

        def replaced() -> None:
            if self._likeness is not None:
                self._likeness.close()
            self._likeness = self._finder.likeness = fresh
            if fresh is not None:
                fresh.refresh()

        await asyncio.get_running_loop().run_in_executor(self._reading_thread, replaced)

    async def _close_reading(self) -> None:
        await self.use_embedder(None)
        loop = asyncio.get_running_loop()
        for closing in (self._finder.close, self._connection.close):
            await loop.run_in_executor(self._reading_thread, closing)
        self._reading_thread.shutdown(wait=False)

    async def ask(self, request: Request[R], *, as_of: int | None = None) -> R:
        """Answer a request that only reads; see `Memory.do`."""
        if request.writes:
            raise MemoryRefused(f"{request.verb} writes, and memory is read here.")
        now, seq = fold.seconds(self._clock.now()), as_of
        if as_of is not None:
            event = await self._store.get(as_of)
            if event is None:
                head = await self._store.head_seq()
                raise MemoryInputError("as_of", f"as_of: there is no event {as_of}; the newest is {head}.")
            now = fold.seconds(event.at)
        vector = await self._embedded(request.meant)
        return await self._read(lambda reading: request.answer(View(reading, self._finder, vector)), now, seq)

    async def _embedded(self, text: str) -> Vector | None:
        """The vector of what is looked for; None where words alone count."""
        loop, embedder = asyncio.get_running_loop(), self._embedder
        if not text.strip() or embedder is None or loop.time() < self._embedder_rests_until:
            return None
        try:
            async with asyncio.timeout(QUERY_S):
                (vector,) = await embedder.embed([text[:TEXT_LIMIT]], "query")
        except (EmbedderError, TimeoutError) as error:
            self._embedder_fault = str(error) or f"the embedder did not answer within {QUERY_S:g} s"
            self._embedder_rests_until = loop.time() + QUERY_AGAIN_S
            return None
        known = self._likeness.dim if self._likeness is not None else 0
        odd = known not in (0, len(vector))
        self._embedder_fault = f"{embedder.id} {OTHER_SIZE}: {len(vector)} numbers" if odd else ""
        return None if odd else vector

    async def ask_by_name(self, verb: str, arguments: Mapping[str, Any], *, as_of: int | None = None) -> Any:
        """Answer a request by its name, short or original, and its arguments; see `Memory.recall`."""
        return await self.ask(named(verb, arguments), as_of=as_of)

    @property
    def status(self) -> MemoryStatus:
        """How memory is doing."""
        likeness = self._likeness
        fault = f"{self._embedder_fault}; words alone count" if self._embedder_fault else ""
        if likeness is None:
            return MemoryStatus(note=fault)
        return MemoryStatus(likeness.embedder, len(likeness), note=fault or likeness.note)

    async def _read(self, work: Callable[[Reading], R], now: float = 0.0, seq: int | None = None) -> R:
        """Run something in the reading thread, on one state of the database."""
        if self._closed:
            raise MemoryUnavailable("Memory is closed: open the workspace again.")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reading_thread, self._at_once, work, now, seq)

    def _at_once(self, work: Callable[[Reading], R], now: float, seq: int | None) -> R:
        connection = self._connection
        try:
            connection.begin()
            try:
                return work(Reading(connection, now, None if seq is None else _version_at(connection, seq)))
            finally:
                roll_back(connection)
        except TablesError as error:
            raise MemoryUnavailable(
                f"Memory cannot be read just now ({error}): open the workspace again, and what is damaged is "
                "built again from the journal."
            ) from error


def _version_at(connection: Connection, seq: int) -> int:
    """The last event of memory's stream up to a place in the journal."""
    ((version,),) = connection.rows("select coalesce(max(number), 0) from operations where seq <= ?", (seq,))
    return int(version)


async def _event_hash(store: JournalStore, version: int) -> str:
    """The hash of an event of memory's stream; that of the beginning for 0, no hash where there is none."""
    if not version:
        return ""
    event = await store.get(f"{MEMORY}:{version}")
    return event.hash if event is not None else "none"


class OpenedMemory(MemoryReader):
    """What a workspace's agents remember; open it with `open`, and always `close` it."""

    def __init__(
        self,
        database: MemoryDatabase,
        store: JournalStore,
        blobs: BlobStore,
        clock: Clock,
        threads: tuple[ThreadPoolExecutor, ThreadPoolExecutor],
        projection: Projection,
        reader: Connection,
    ) -> None:
        super().__init__(database, store, clock, threads[1], reader)
        self._upkeep: VectorUpkeep | None = None
        self._blobs = blobs
        self._writing_thread = threads[0]
        self._projection = projection
        self.rebuilt = projection.note
        """Why the tables were built again; empty where they were not."""
        self.writer = Writer(store, projection, threads[0], clock)

    @classmethod
    async def open(cls, directory: Path, store: JournalStore, clock: Clock) -> Self:
        """Open the memory of a workspace whose journal is open for writing.

        Raises:
            MemoryUnavailable: the journal is open for reading only, or the database cannot be made.
            JournalError: the journal could not be read, or holds what this version does not know.
        """
        if store.read_only:
            raise MemoryUnavailable("Memory needs a journal that is open for writing: open the workspace so.")
        loop = asyncio.get_running_loop()
        database, blobs = database_of(directory, clock), blobs_of(directory, clock)
        threads = (ThreadPoolExecutor(1, "memory-write"), ThreadPoolExecutor(1, "memory-read"))

        def known(version: int) -> str:
            return asyncio.run_coroutine_threadsafe(_event_hash(store, version), loop).result()

        memory: Self | None = None
        try:
            projection = await _finished(loop.run_in_executor(threads[0], database.open, known))
            reader = await loop.run_in_executor(threads[1], database.reader)
            memory = cls(database, store, blobs, clock, threads, projection, reader)
            await memory.writer.catch_up()
            await memory._read(lambda reading: None)
        except BaseException:
            if memory is not None:
                await memory.close()
            for thread in threads:
                thread.shutdown(wait=False)
            raise
        return memory

    async def close(self) -> None:
        """Finish what waits, and close threads and connections; may be called again."""
        if self._closed:
            return
        self._closed = True
        try:
            await self.writer.close()
        finally:
            await self._close_reading()
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._writing_thread, self._projection.close)
            self._writing_thread.shutdown(wait=False)

    async def _use_embedder(self, choice: EmbedderChoice | None) -> None:
        """The same; all texts are embedded in the background, and words find them until then."""
        if self._upkeep is not None:
            await self._upkeep.close()
            self._upkeep = None
        await super()._use_embedder(choice)
        if self._embedder is not None and not self._closed:
            self._upkeep = VectorUpkeep(self._database.vectors, self._embedder)

    @property
    def status(self) -> MemoryStatus:
        """How memory is doing."""
        status, upkeep = super().status, self._upkeep
        if upkeep is None:
            return status
        note = f"{upkeep.waiting:,} texts wait to be embedded; words find them" if upkeep.waiting else ""
        fault = f"{upkeep.fault}; words alone count" if upkeep.fault else ""
        note = status.note or fault or note
        return replace(status, vectors=upkeep.embedded, waiting=upkeep.waiting, note=note, fault=fault)

    async def embedded(self) -> None:
        """Return once all texts are embedded, or could not be."""
        if self._upkeep is not None:
            await self._upkeep.settled()

    def _wake(self) -> None:
        if self._upkeep is not None:
            self._upkeep.wake()

    async def write(self, request: Request[R], *, actor: str, causes: tuple[str, ...] = ()) -> WriteResult[R]:
        """See `Memory.write`."""
        if not request.writes:
            raise MemoryInputError("", f"{request.verb} only reads: ask for it, there is nothing to write.")
        contents = {name: await self._spill(getattr(request, name)) for name in request.big}
        try:
            return await self.writer.write(request.write, actor=actor, causes=causes, contents=contents)
        finally:
            self._wake()

    def named(self, verb: str, arguments: Mapping[str, Any]) -> Request[Any]:
        """A request by its name and arguments; see `requests.named`."""
        return named(verb, arguments)

    async def workflow_of(self, agent: str, goal: str) -> str:
        """See `Memory.workflow_of`."""
        return await self.ask(note_writer.FindWorkflow(agent=agent, goal=goal))

    async def write_notes(self, noted: Sequence[Noted]) -> list[str]:
        """See `Memory.write_notes`."""
        work = partial(note_writer.write_notes, noted=noted)
        kept = (await self.writer.write(work, actor="system")).answer
        self._wake()
        return kept

    async def _spill(self, text: str) -> Content:
        """A text as memory keeps it; blobs are durable before any event names them."""
        whole = text.encode()
        if len(whole) <= SPILL_BYTES:
            return Content(text, "", len(whole))
        return Content(text[:HEAD_CHARACTERS], await self._blobs.put(whole), len(whole))


async def _finished(work: asyncio.Future[Projection]) -> Projection:
    """The result of a thread; after a cancellation it is let finish, and closed."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        if work.exception() is None:
            work.result().connection.close()
        raise
