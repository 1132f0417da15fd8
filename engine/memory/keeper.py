"""The keeper: follows what agents did in the journal, and writes memory from it.

It reads durable events only and never touches an agent's stream. What it writes names the event that it
follows from, and stands in the journal itself; so after any end, however sudden, it goes on behind the last
event that it wrote of, and writes nothing twice.
Source: spec master-loop-and-memory §1.4, §3.9, §3.11.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.domain.memory import Content
from engine.domain.ports import Clock
from engine.domain.state import AgentState
from engine.journal import events as ev
from engine.journal.blobs import BlobStore
from engine.journal.errors import BlobError, JournalClosed, JournalError, JournalRefused
from engine.journal.event import Event, of_agent
from engine.journal.store import JournalStore
from engine.memory.errors import MemoryFault, MemoryUnavailable
from engine.memory.memory import Memory
from engine.memory.noting import KINDS, DeedEnded, Note, Noter

if TYPE_CHECKING:
    from engine.memory.writing import Unit

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
ACTOR = "system"
"""Who writes what is no single event's."""

StateAt = Callable[[str, int], Awaitable[AgentState]]
"""The state of a stream after one of its versions."""
_Noted = tuple[Event, Note, dict[str, Content]]


ANEW = frozenset({ev.Rewound.kind, ev.AgentForked.kind})
"""Events after which an agent stands otherwise with its goals."""


class Keeper:
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
        self._noters: dict[str, Noter] = {}
        self._read: asyncio.Queue[Event] = asyncio.Queue(AHEAD)
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
        self._tasks = [asyncio.create_task(self._run(), name="memory keeper")]

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
        """End where it is; the next session goes on from there. May be called again."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._moved.set()

    # -------------------------------------------------------------- the task

    async def _run(self) -> None:
        try:
            await self._memory.ready()
            self.place = await self._last_kept()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow(), name="memory keeper reading")
                group.create_task(self._write(), name="memory keeper writing")
        except* (MemoryFault, JournalError) as faults:
            first = next(iter(_leaves(faults)))
            if not isinstance(first, JournalClosed):
                self.trouble = f"memory no longer follows what agents do: {first}"
        finally:
            self._moved.set()

    async def _last_kept(self) -> int:
        """The place of the last event that something was written of, as the journal has it."""
        from engine.memory.keeping import last_kept

        def find(unit: Unit) -> int:
            return last_kept(unit.reading)

        number = (await self._memory.work(find, actor=ACTOR)).answer
        if not number:
            return 0
        written = await self._store.get(f"workspace@memory:{number}")
        source = await self._store.get(written.causes[0]) if written is not None and written.causes else None
        return source.seq if source is not None else 0

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
                if (one := await self._noted(event)) is not None:
                    noted.append(one)
            if noted:
                await self._keep(noted)
                self.kept += len(noted)
            self.place = events[-1].seq
            self._moved.set()
            self._moved = asyncio.Event()

    async def _noted(self, event: Event) -> _Noted | None:
        """What is to be kept of an event, with its big texts as they are kept."""
        if event.kind in ANEW:
            self._noters.pop(event.stream, None)  # what it went along with is no longer how the agent stands
        if event.kind not in KINDS or not of_agent(event.stream):
            return None
        noter = self._noters.get(event.stream)
        if noter is None:
            before = event.version - 1
            state = await self._state_at(event.stream, before) if before else AgentState()
            noter = self._noters[event.stream] = Noter.after(state)
        note = noter.note(ev.payload_of(event))
        if isinstance(note, DeedEnded) and note.blob:
            whole = await self._whole(note.blob)
            if whole is not None:
                return event, replace(note, result={}), {"tool_result": whole}
        return None if note is None else (event, note, {})

    async def _whole(self, digest: str) -> Content | None:
        """A large result as it is kept: by the blob that it is in already."""
        try:
            whole = await self._blobs.get(digest)
        except BlobError:
            return None
        return Content(
            whole[: 4 * HEAD_CHARACTERS].decode(errors="ignore")[:HEAD_CHARACTERS], digest, len(whole)
        )

    async def _keep(self, noted: Sequence[_Noted]) -> None:
        """Write notes in one unit of work, however long the disk refuses."""
        from engine.memory.keeping import keep

        def work(unit: Unit) -> list[str]:
            faults = []
            for event, note, contents in noted:

                def one(part: Unit, event: Event = event, note: Note = note) -> None:
                    keep(part, event.stream, event.ref, note)

                error = unit.part(
                    one,
                    at=event.at,
                    actor=event.actor,
                    causes=(event.ref,),
                    tick=event.tick,
                    contents=contents,
                )
                if error is not None:
                    faults.append(f"{event.ref} ({event.kind}) could not be kept in memory: {error}")
            return faults

        while True:
            try:
                faults = (await self._memory.work(work, actor=ACTOR)).answer
            except JournalRefused as error:
                # One of them spoils it for all, and will again.
                if len(noted) == 1:
                    faults = [f"{noted[0][0].ref} could not be kept in memory: {error}"]
                    break
                for one in noted:
                    await self._keep([one])
                return
            except (MemoryUnavailable, JournalError) as error:
                if isinstance(error, JournalClosed) or not self._memory.status.open:
                    raise
                self.trouble = f"memory is not written just now: {error}"
                await self._clock.sleep(RETRY_S)
            else:
                break
        self.trouble = ""
        self.fault = faults[-1] if faults else self.fault


def _leaves(faults: BaseExceptionGroup[Any]) -> list[BaseException]:
    found: list[BaseException] = []
    for fault in faults.exceptions:
        found += _leaves(fault) if isinstance(fault, BaseExceptionGroup) else [fault]
    return found
