"""The memory of a workspace as others use it: available at once, and opened when it is first needed.

Opening takes longer than the first screen may wait (what is missing in the tables is folded from the
journal), so it runs in the background, and callers wait for it. Nothing heavy is imported before that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from engine.core.memory import MemoryStatus
from engine.core.ports import Clock
from engine.core.store.port import JournalStore
from engine.memory.errors import MemoryInputError, MemoryRefused, MemoryUnavailable
from engine.memory.notes import Noted

if TYPE_CHECKING:
    from engine.memory.embedder_choice import EmbedderChoice
    from engine.memory.memories import HybridSearch
    from engine.memory.open_memory import OpenedMemory
    from engine.memory.requests import Request
    from engine.memory.rewriting import Rewriter
    from engine.memory.writer import WriteResult


R = TypeVar("R")
RewriterOf: TypeAlias = "Callable[[str, str], Awaitable[Rewriter | None]]"


class Memory:
    """What a workspace's agents remember; always `close` it.

    Args:
        directory: the workspace; the tables are `.pilothouse/memory.db` in it.
        store: its journal, open for writing.
        clock: what time it is.
        embedder: who turns texts into vectors; None for words alone.
        rewriter: gives the model that helps the searches of an agent (of the operator where none is named)
            that follow from an event; None where searches are plain.
    """

    def __init__(
        self,
        directory: Path,
        store: JournalStore,
        *,
        clock: Clock,
        embedder: EmbedderChoice | None = None,
        rewriter: RewriterOf | None = None,
    ) -> None:
        self.embedder, self._rewriter = embedder, rewriter
        self._open = partial(_open, directory, store, clock)
        self._opening: asyncio.Task[OpenedMemory] | None = None
        self._closed = False

    def begin(self) -> asyncio.Task[OpenedMemory]:
        """Begin to open it, where that is not begun; one caller's cancellation does not stop the opening."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._open(self.embedder), name="memory opening")
            # Callers get the error, and the status says it as well.
            self._opening.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._opening

    async def ready(self) -> None:
        """Wait until memory is open.

        Raises:
            MemoryUnavailable: it could not be opened, or is closed.
        """
        await self._opened()

    async def close(self) -> None:
        """Finish what waits, and close threads and connections; may be called again."""
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
        if (opened := self._here) is not None:
            await opened.close()

    # -------------------------------------------------------------- requests

    async def do(
        self,
        request: Request[R],
        *,
        actor: str = "agent",
        causes: tuple[str, ...] = (),
        as_of: int | None = None,
    ) -> R:
        """Answer a request.

        Args:
            request: what is asked.
            actor: who asks, for the journal.
            causes: references of the events that a write follows from.
            as_of: the place in the journal (`seq`) of the last event that counts, for reading only.

        Raises:
            MemoryInputError: something in the request does not fit; nothing was written.
            MemoryRefused: it is not allowed as things stand; nothing was written.
            MemoryUnavailable: the database could not be opened, or not be read or written just now.
            JournalError: the journal refused; nothing was written.
        """
        opened = await self._opened()
        if not request.writes:
            return await opened.ask(request, as_of=as_of)
        if as_of is not None:
            raise MemoryInputError("as_of", "as_of: the past can be read and not written.")
        return (await opened.write(request, actor=actor, causes=causes)).answer

    async def recall(
        self,
        request: Request[Any] | str,
        arguments: Mapping[str, Any] | None = None,
        *,
        as_of: int | None = None,
        agent: str = "",
        cause: str = "",
    ) -> Any:
        """Answer a request that only reads, made already or given by its name and arguments.

        Args:
            request: what is asked.
            arguments: its arguments where it is given by name.
            as_of: see `do`.
            agent: who asks; empty for the operator.
            cause: reference of the event that it follows from.

        Raises:
            MemoryInputError: there is no such request, or its arguments do not fit.
            MemoryRefused: it writes.
            MemoryFault, JournalError: as `do`.
        """
        opened = await self._opened()
        request = opened.named(request, arguments or {}) if isinstance(request, str) else request
        if request.writes:
            raise MemoryRefused(f"{request.verb} writes: submit the command Remember for that.")
        if self._rewriter is not None and getattr(request, "rewrite", False):
            from engine.memory.rewriting import search_rewritten  # late: memory's requests are large

            request = cast("HybridSearch", request)
            if (rewriter := await self._rewriter(agent, cause)) is not None:
                return await search_rewritten(partial(opened.ask, as_of=as_of), request, rewriter)
        return await opened.ask(request, as_of=as_of)

    async def workflow_of(self, agent: str, goal: str) -> str:
        """Id of the workflow that a goal of an agent's has; empty when there is none.

        Raises:
            MemoryFault: memory refused.
        """
        return await (await self._opened()).workflow_of(agent, goal)

    async def write(self, request: Request[R], *, actor: str, causes: tuple[str, ...] = ()) -> WriteResult[R]:
        """Answer a request that writes, and say by which event; arguments as for `do`.

        Raises:
            MemoryFault, JournalError: as `do`; also MemoryInputError for a request that only reads.
        """
        return await (await self._opened()).write(request, actor=actor, causes=causes)

    async def write_notes(self, noted: Sequence[Noted]) -> list[str]:
        """Write what was noted of agents' events in one unit of work; says of which ones nothing was kept.

        Raises:
            MemoryFault, JournalError: as `do`.
        """
        return await (await self._opened()).write_notes(noted)

    async def use_embedder(self, choice: EmbedderChoice | None) -> None:
        """Let another embedder embed all texts, in the background; until then words find them.

        Raises:
            MemoryFault: memory could not be opened.
        """
        self.embedder = choice
        await (await self._opened()).use_embedder(choice)

    async def embedded(self, seconds: float) -> bool:
        """Wait until all texts are embedded or could not be, for so long at most; whether that is so.

        Raises:
            MemoryFault: memory could not be opened.
        """
        opened = await self._opened()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await opened.embedded()
                return True
        return False

    @property
    def status(self) -> MemoryStatus:
        """How memory is doing."""
        if self._here is not None:
            return self._here.status
        if self._opening is None or not self._opening.done():
            return MemoryStatus(note="memory is being opened", open=False)
        if self._opening.cancelled():
            return MemoryStatus(note="memory is closed", open=False)
        trouble = str(self._opening.exception())
        return MemoryStatus(note="memory is not to be had", open=False, trouble=trouble)

    @property
    def rebuilt(self) -> str:
        """Why its tables were built again from the journal; empty where they were not."""
        return self._here.rebuilt if self._here is not None else ""

    @property
    def _here(self) -> OpenedMemory | None:
        """Memory, where it is open by now."""
        opening = self._opening
        if opening is None or not opening.done() or opening.cancelled() or opening.exception() is not None:
            return None
        return opening.result()

    async def _opened(self) -> OpenedMemory:
        if not self._closed and not self.begin().done():
            await asyncio.wait([self.begin()])
        opening = self._opening
        if opening is None or opening.cancelled() or self._closed:
            raise MemoryUnavailable("Memory is closed: open the workspace again.")
        error = opening.exception()
        if error is not None:
            raise MemoryUnavailable(f"Memory could not be opened: {error}") from error
        return opening.result()


async def _open(
    directory: Path, store: JournalStore, clock: Clock, embedder: EmbedderChoice | None
) -> OpenedMemory:
    module = await asyncio.to_thread(import_module, "engine.memory.open_memory")
    opened = cast("type[OpenedMemory]", module.OpenedMemory)
    memory = await opened.open(directory, store, clock)
    await memory.use_embedder(embedder)
    return memory
