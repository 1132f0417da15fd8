"""Follows what agents did in the journal, and writes memory from it.

It reads durable events only and never writes to an agent's stream. What it writes names the event that it
follows from and is in the journal itself; so after any end, however sudden, it continues behind the last
event that it recorded, and writes nothing twice.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from engine.core import events as ev
from engine.core import journal
from engine.core.memory import Content
from engine.core.ports import Clock
from engine.core.state import AgentState
from engine.core.store.blobs import BlobStore
from engine.core.store.port import JournalStore
from engine.memory.commands import RECORDED_PREFIX
from engine.memory.errors import MemoryUnavailable
from engine.memory.memory import Memory
from engine.memory.notes import KINDS, ActionEndNote, NoteCollector, Noted

BATCH = 64
"""Events whose notes are written together at most."""
SLICE = 16
"""Events looked at between two turns of the loop."""
AHEAD = 256
"""Events that are read ahead of what was written."""
RETRY_S = 1.0
"""How often what the disk refused is tried again."""
HEAD_CHARACTERS = 2_000
"""Characters of a large result that stand in its event."""

StateAt = Callable[[str, int], Awaitable[AgentState]]
"""The state of a stream after one of its versions."""


GOAL_RESETS = frozenset({ev.Rewound.kind, ev.AgentForked.kind})
"""Events after which an agent stands otherwise with its goals."""


class MemoryRecorder:
    """Keeps memory up with the journal; start it with `begin`, and always `close` it."""

    def __init__(
        self,
        memory: Memory,
        store: JournalStore,
        blobs: BlobStore,
        clock: Clock,
        state_at: StateAt,
        rest: Callable[[], Awaitable[None]] = lambda: asyncio.sleep(0),
    ) -> None:
        self._memory = memory
        self._store = store
        self._blobs = blobs
        self._clock = clock
        self._state_at, self._rest = state_at, rest
        self._noters: dict[str, NoteCollector] = {}
        self._read: asyncio.Queue[journal.Event] = asyncio.Queue(AHEAD)
        self._tasks: list[asyncio.Task[None]] = []
        self._moved = asyncio.Event()
        self.place = 0
        """The place in the journal (`seq`) up to which memory holds what is to be kept."""
        self.kept = 0
        """Events that something was written of, in this session."""
        self.fault = ""
        """The last event that could not be kept, and why; it was passed over."""
        self.trouble = ""
        """Why nothing can be written just now; it is tried again."""

    def begin(self) -> None:
        """Begin to follow, as soon as memory is open."""
        self._tasks = [asyncio.create_task(self._run(), name="memory recorder")]

    @property
    def note(self) -> str:
        """What is wrong, in a sentence; empty when all is well."""
        return self.trouble or self.fault

    @property
    def behind(self) -> int:
        """How many events of the journal have not been looked at yet."""
        return max(0, self._store.last_seq - self.place)

    async def caught_up(self) -> None:
        """Wait until memory holds what the journal holds now; return as well where that cannot be."""
        until = self._store.last_seq
        while self.place < until and self._tasks and not any(task.done() for task in self._tasks):
            moved = asyncio.ensure_future(self._moved.wait())
            await asyncio.wait({moved, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
            moved.cancel()

    async def close(self) -> None:
        """End where it is; the next session continues from there. May be called again."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._moved.set()

    # -------------------------------------------------------------- the task

    async def _run(self) -> None:
        try:
            self.place = await self._last_kept()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow(), name="memory recorder reading")
                group.create_task(self._write(), name="memory recorder writing")
        except* Exception as faults:  # noqa: BLE001 - whatever it is, memory stands still and says so
            first: BaseException = faults
            while isinstance(first, BaseExceptionGroup):
                first = first.exceptions[0]
            if not isinstance(first, journal.JournalClosed):
                self.trouble = f"memory no longer follows what agents do: {first}"
        finally:
            self._moved.set()

    async def _last_kept(self) -> int:
        """The place of the last event that something was written of, as the journal has it."""
        last = (await self._store.head(journal.MEMORY)).version
        while last > 0:
            for written in reversed(await self._store.read(journal.MEMORY, max(1, last - BATCH + 1), last)):
                if str(json.loads(written.body).get("key", "")).startswith(RECORDED_PREFIX):
                    source = await self._store.get(written.causes[0]) if written.causes else None
                    return source.seq if source is not None else 0
            last -= BATCH
        return 0

    async def _follow(self) -> None:
        async for event in self._store.events(self.place, follow=True):
            await self._read.put(event)

    async def _write(self) -> None:
        while True:
            events = [await self._read.get()]
            while len(events) < BATCH and not self._read.empty():
                events.append(self._read.get_nowait())
            noted = []
            for at, event in enumerate(events):
                if not at % SLICE:
                    await self._rest()
                if (entry := await self._noted(event)) is not None:
                    noted.append(entry)
            if noted:
                await self._keep(noted)
                self.kept += len(noted)
            self.place = events[-1].seq
            self._moved.set()
            self._moved = asyncio.Event()

    async def _noted(self, event: journal.Event) -> Noted | None:
        """What is to be kept of an event, with its big texts as they are kept."""
        if event.kind in GOAL_RESETS:
            self._noters.pop(event.stream, None)  # what it went along with is no longer how the agent stands
        if event.kind not in KINDS or not journal.of_agent(event.stream):
            return None
        noter = self._noters.get(event.stream)
        if noter is None:
            before = event.version - 1
            state = await self._state_at(event.stream, before) if before else AgentState()
            noter = self._noters[event.stream] = NoteCollector.after(state)
        note = noter.note(ev.payload_of(event))
        if isinstance(note, ActionEndNote) and note.blob:
            whole = await self._whole(note.blob)
            if whole is not None:
                return event, replace(note, result={}), {"tool_result": whole}
        return None if note is None else (event, note, {})

    async def _whole(self, digest: str) -> Content | None:
        """A large result as it is kept: by the blob that it is in already."""
        try:
            whole = await self._blobs.get(digest)
        except journal.BlobError:
            return None
        return Content(
            whole[: 4 * HEAD_CHARACTERS].decode(errors="ignore")[:HEAD_CHARACTERS], digest, len(whole)
        )

    async def _keep(self, noted: Sequence[Noted]) -> None:
        """Write notes in one unit of work, however long the disk refuses."""
        while True:
            try:
                faults = await self._memory.write_notes(noted)
            except journal.JournalRefused as error:
                # One of them spoils it for all, and will again.
                if len(noted) == 1:
                    faults = [f"{noted[0][0].ref} could not be kept in memory: {error}"]
                    break
                for entry in noted:
                    await self._keep([entry])
                return
            except (MemoryUnavailable, journal.JournalError) as error:
                if isinstance(error, journal.JournalClosed) or not self._memory.status.open:
                    raise
                self.trouble = f"memory is not written just now: {error}"
                await self._clock.sleep(RETRY_S)
            else:
                break
        self.trouble = ""
        self.fault = faults[-1] if faults else self.fault
