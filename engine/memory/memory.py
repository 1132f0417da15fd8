"""The memory of a workspace, as everybody else sees it: there at once, answering once it is open.

Opening takes longer than a first screen may (what is missing in the tables is folded from the journal), so it
goes on in the background, and whoever asks meanwhile waits for it. Nothing heavy is imported before that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast, overload

from engine.domain.memory import Content
from engine.domain.ports import Clock
from engine.journal.store import JournalStore
from engine.memory.embedding import Embedder
from engine.memory.errors import MemoryUnavailable

if TYPE_CHECKING:
    from engine.memory.opened import OpenedMemory
    from engine.memory.requests import Request
    from engine.memory.writing import Unit, Written

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class MemoryStatus:
    """How memory is doing."""

    embedder: str = ""
    """Whose vectors are compared; empty for none."""
    vectors: int = 0
    """Texts that have one."""
    waiting: bool = False
    """Whether texts wait to be embedded."""
    note: str = ""
    """Why likeness says less than it could; empty when all is well."""
    open: bool = True
    """False while memory is being opened, and where it could not be."""
    trouble: str = ""
    """Why it could not be opened."""

    @property
    def degraded(self) -> bool:
        """True when a search goes by words and spelling alone."""
        return bool(self.note)


class Memory:
    """What a workspace's agents remember; make it with `begin` or `open`, and always `close` it."""

    def __init__(self, opening: asyncio.Task[OpenedMemory]) -> None:
        self._opening = opening
        # Whoever asks is told, and the status says so as well.
        opening.add_done_callback(lambda task: task.cancelled() or task.exception())
        self._closed = False

    @classmethod
    def begin(
        cls, directory: Path, store: JournalStore, *, clock: Clock, embedder: Embedder | None = None
    ) -> Self:
        """Begin to open the memory of a workspace, and return at once.

        Args:
            directory: the workspace; the tables are `.pilothouse/memory.db` in it.
            store: its journal, open for writing.
            clock: what time it is.
            embedder: makes vectors; by hashing unless something better is given.
        """
        return cls(asyncio.create_task(_opened(directory, store, clock, embedder), name="memory opening"))

    @classmethod
    async def open(
        cls, directory: Path, store: JournalStore, *, clock: Clock, embedder: Embedder | None = None
    ) -> Self:
        """Open the memory of a workspace; arguments as for `begin`.

        Raises:
            MemoryUnavailable: the journal is open for reading only, or the database cannot be made.
            JournalError: the journal could not be read, or holds what this version does not know.
        """
        memory = cls.begin(directory, store, clock=clock, embedder=embedder)
        try:
            await asyncio.shield(memory._opening)
        except BaseException:
            await memory.close()
            raise
        return memory

    async def ready(self) -> None:
        """Wait until memory is open.

        Raises:
            MemoryUnavailable: it could not be opened, or is closed.
        """
        await self._here()

    async def close(self) -> None:
        """Finish what waits, and give up threads and connections; may be called again."""
        self._closed = True
        if not self._opening.done():
            self._opening.cancel()
            await asyncio.wait([self._opening])
        if not self._opening.cancelled() and self._opening.exception() is None:
            await self._opening.result().close()

    # -------------------------------------------------------------- requests

    async def do(
        self,
        request: Request[R],
        *,
        actor: str = "agent",
        causes: tuple[str, ...] = (),
        tick: int = 0,
        as_of: int | None = None,
    ) -> R:
        """Answer a request.

        Args:
            request: what is asked.
            actor: who asks, for the journal.
            causes: references of the events that a write follows from.
            tick: the agent's tick.
            as_of: the place in the journal (`seq`) of the last event that counts, for reading only.

        Raises:
            MemoryInputError: something in the request does not fit; nothing was written.
            MemoryRefused: it is not allowed as things stand; nothing was written.
            MemoryUnavailable: the database could not be opened, or not be read or written just now.
            JournalError: the journal refused; nothing was written.
        """
        here = await self._here()
        return await here.do(request, actor=actor, causes=causes, tick=tick, as_of=as_of)

    async def call(self, verb: str, arguments: Mapping[str, Any], **how: Any) -> Any:
        """Answer a request by name and arguments, as a model or a person gives them.

        Raises:
            MemoryInputError: there is no such request, or its arguments do not fit.
            MemoryFault, JournalError: as `do`.
        """
        return await (await self._here()).call(verb, arguments, **how)

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
        """Answer a request that only reads, made already or given by its name and arguments.

        Raises:
            MemoryRefused: it writes.
            MemoryFault, JournalError: as `do`.
        """
        here = await self._here()
        if isinstance(request, str):
            # Importing it takes memory's whole room, which is there by now.
            from engine.memory.requests import named

            request = named(request, arguments or {})
        return await here.recall(request, as_of=as_of)

    async def write(
        self, request: Request[R], *, actor: str, causes: tuple[str, ...] = (), tick: int = 0
    ) -> Written[R]:
        """Answer a request that writes, and say by which event; arguments as for `do`.

        Raises:
            MemoryFault, JournalError: as `do`; also MemoryInputError for a request that only reads.
        """
        return await (await self._here()).write(request, actor=actor, causes=causes, tick=tick)

    async def work(
        self,
        work: Callable[[Unit], R],
        *,
        actor: str,
        causes: tuple[str, ...] = (),
        tick: int = 0,
        at: str = "",
        contents: Mapping[str, Content] | None = None,
    ) -> Written[R]:
        """Do a unit of work: all that it emits is written, or nothing; for the engine's own writes.

        Args:
            work: runs in the database's thread.
            actor: who does it, for the journal.
            causes: references of the events that it follows from.
            tick: the agent's tick.
            at: when it happened, as an event's time; empty for now.
            contents: texts that came with it as they are kept, by name; see `spill`.

        Raises:
            MemoryFault, JournalError: as `do`.
        """
        here = await self._here()
        return await here.work(work, actor=actor, causes=causes, tick=tick, at=at, contents=contents)

    async def spill(self, text: str) -> Content:
        """A text as memory keeps it: one that is too long for an event becomes a blob.

        Raises:
            BlobError: there is no room for it.
        """
        return await (await self._here()).spill(text)

    async def whole(self, content: Content) -> str:
        """The whole text of a result or an artifact, byte for byte.

        Raises:
            BlobError: its blob is missing or damaged.
        """
        return await (await self._here()).whole(content)

    @property
    def status(self) -> MemoryStatus:
        """How memory is doing."""
        if not self._opening.done():
            return MemoryStatus(waiting=True, note="memory is being opened", open=False)
        if self._opening.cancelled():
            return MemoryStatus(note="memory is closed", open=False)
        error = self._opening.exception()
        if error is not None:
            return MemoryStatus(note="memory is not to be had", open=False, trouble=str(error))
        return self._opening.result().status

    async def embedded(self) -> None:
        """Wait until every text has its vector, or the embedder cannot answer."""
        await (await self._here()).embedded()

    async def _here(self) -> OpenedMemory:
        """Memory once it is open; one caller's cancellation does not stop the opening."""
        if not self._opening.done():
            await asyncio.wait([self._opening])
        if self._opening.cancelled() or self._closed:
            raise MemoryUnavailable("Memory is closed: open the workspace again.")
        error = self._opening.exception()
        if error is not None:
            raise MemoryUnavailable(f"Memory could not be opened: {error}") from error
        return self._opening.result()


async def _opened(
    directory: Path, store: JournalStore, clock: Clock, embedder: Embedder | None
) -> OpenedMemory:
    module = await asyncio.to_thread(import_module, "engine.memory.opened")
    opened = cast("type[OpenedMemory]", module.OpenedMemory)
    return await opened.open(directory, store, clock=clock, embedder=embedder)
