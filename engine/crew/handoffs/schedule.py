"""Deadlines that can be held, the queue of handoffs, and the permits for model calls.

A deadline counts only while its handoff works: not while the handoff, or anything below it, waits for the
operator or is paused, and not before it begins. The next handoff is chosen by priority with ageing. Permits
limit model calls, not handoffs: a run that waits for others holds none, so that a limit of one never stops a
chain of delegations.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from math import inf

from engine.core.ports import Clock
from engine.crew.ontology.kinds import Priority

MARGIN_S = 2.0
"""Seconds that a child's deadline lies before its parent's."""
LEAST_S = 1.0
"""Seconds below which a child does not begin at all."""


def time_of(clock: Clock) -> datetime:
    """The clock's time, aware, in UTC."""
    return datetime.fromisoformat(clock.now())


class Stopwatch:
    """Counts seconds while nothing holds it.

    Args:
        clock: what counts.
        limit_s: when it has run out.
        spent_s: what it counted before.
    """

    def __init__(self, clock: Clock, limit_s: float, spent_s: float = 0.0) -> None:
        self._clock = clock
        self.limit_s = limit_s
        self._spent = spent_s
        self._since: float | None = clock.monotonic()
        self._held: set[str] = set()

    @property
    def spent_s(self) -> float:
        """Seconds counted."""
        return self._spent + (self._clock.monotonic() - self._since if self._since is not None else 0.0)

    @property
    def left_s(self) -> float:
        """Seconds until it has run out, 0 at least."""
        return max(self.limit_s - self.spent_s, 0.0)

    @property
    def runs(self) -> bool:
        """Whether it counts now."""
        return self._since is not None

    def hold(self, why: str) -> None:
        """Let it stand still until `go` is called with the same reason."""
        self._held.add(why)
        if self._since is not None:
            self._spent, self._since = self.spent_s, None

    def go(self, why: str) -> None:
        """One reason less to stand still."""
        self._held.discard(why)
        if not self._held and self._since is None:
            self._since = self._clock.monotonic()


class Alarms:
    """Calls back when a time has come; always `close` it.

    Args:
        clock: whose time it is.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[str, asyncio.Task[None]] = {}

    def set(self, name: str, seconds: float, then: Callable[[], None]) -> None:
        """Call `then` after some seconds; one of the same name is replaced."""
        self.drop(name)
        self._waiting[name] = asyncio.create_task(self._ring(name, seconds, then), name=f"alarm {name}")

    def drop(self, name: str) -> None:
        """Forget one, if it is there."""
        if (waiting := self._waiting.pop(name, None)) is not None:
            waiting.cancel()

    async def close(self) -> None:
        """Forget all."""
        waiting = tuple(self._waiting.values())
        for name in tuple(self._waiting):
            self.drop(name)
        await asyncio.gather(*waiting, return_exceptions=True)

    async def _ring(self, name: str, seconds: float, then: Callable[[], None]) -> None:
        due = self._clock.monotonic() + seconds
        while (left := due - self._clock.monotonic()) > 0:
            await self._clock.sleep(left)
        del self._waiting[name]
        then()


class Deadlines:
    """The stopwatches of all handoffs that began, and who holds whom still.

    Args:
        clock: what counts.
        alarms: call back when one has run out.
        above: the handoffs above one, the nearest first.
        over: what is done with a handoff whose time is over.
    """

    def __init__(
        self, clock: Clock, alarms: Alarms, above: Callable[[str], list[str]], over: Callable[[str], None]
    ) -> None:
        self._clock, self._alarms, self._above, self._over = clock, alarms, above, over
        self._watches: dict[str, Stopwatch] = {}
        self._stills: dict[str, set[str]] = {}
        """Why each handoff holds its own clock and those above."""

    def begin(self, handoff: str, limit_s: float, spent_s: float = 0.0) -> None:
        """Count for a handoff from now on; what stands still below it holds it from the start."""
        watch = self._watches[handoff] = Stopwatch(self._clock, limit_s, spent_s)
        for still, reasons in self._stills.items():
            if reasons and (still == handoff or handoff in self._above(still)):
                watch.hold(still)
        self._arm(handoff)

    @property
    def known(self) -> Collection[str]:
        """The handoffs that it counts for."""
        return self._watches.keys()

    def end(self, handoff: str) -> None:
        """Count no longer."""
        for why in tuple(self._stills.get(handoff, ())):
            self.go(handoff, why)
        self._watches.pop(handoff, None)
        self._alarms.drop(handoff)

    def hold(self, handoff: str, why: str) -> None:
        """Let the clock of a handoff, and of all above it, stand still."""
        reasons = self._stills.setdefault(handoff, set())
        reasons.add(why)
        for counted in (handoff, *self._above(handoff)):
            if counted in self._watches:
                self._watches[counted].hold(handoff)
                self._alarms.drop(counted)

    def go(self, handoff: str, why: str) -> None:
        """One reason less; with the last, the clocks continue."""
        reasons = self._stills.get(handoff, set())
        reasons.discard(why)
        if reasons:
            return
        self._stills.pop(handoff, None)
        for counted in (handoff, *self._above(handoff)):
            if counted in self._watches:
                self._watches[counted].go(handoff)
                self._arm(counted)

    def spent_s(self, handoff: str) -> float:
        """Seconds that a handoff has worked; 0 before it began."""
        return self._watches[handoff].spent_s if handoff in self._watches else 0.0

    def left_s(self, handoff: str) -> float:
        """Seconds until its deadline; endless where none counts."""
        return self._watches[handoff].left_s if handoff in self._watches else inf

    def _arm(self, handoff: str) -> None:
        watch = self._watches[handoff]
        if watch.runs:
            self._alarms.set(handoff, watch.left_s, lambda: self._over(handoff))


AGEING_S = 60.0
"""Seconds of waiting that raise the priority by one."""


def effective_priority(priority: int, waited_s: float) -> int:
    """The priority that counts, after some seconds of waiting."""
    return min(int(Priority.URGENT), priority + int(waited_s // AGEING_S))


@dataclass(slots=True)
class QueueEntry:
    """A handoff that waits for its turn."""

    name: str
    arrived: float
    """The clock's seconds."""
    number: int
    granted: asyncio.Event = field(default_factory=asyncio.Event)


class WaitingQueue:
    """Those who wait, the most urgent first, then who came first.

    Args:
        monotonic: the clock's seconds.
        priority: how urgent a handoff is, now.
    """

    def __init__(self, monotonic: Callable[[], float], priority: Callable[[str], int]) -> None:
        self._monotonic, self._priority = monotonic, priority
        self._turns: list[QueueEntry] = []
        self._count = 0

    def join(self, name: str) -> QueueEntry:
        """Wait from now on."""
        self._count += 1
        turn = QueueEntry(name, self._monotonic(), self._count)
        self._turns.append(turn)
        return turn

    def leave(self, turn: QueueEntry) -> None:
        """Wait no longer."""
        if turn in self._turns:
            self._turns.remove(turn)

    def drop(self, name: str) -> None:
        """Remove a handoff from the queue, if it is there."""
        self._turns = [turn for turn in self._turns if turn.name != name]

    def urgency(self, turn: QueueEntry) -> int:
        """The priority that counts."""
        return effective_priority(self._priority(turn.name), self._monotonic() - turn.arrived)

    @property
    def turns(self) -> list[QueueEntry]:
        """Those who wait, the next one first."""
        return sorted(self._turns, key=lambda turn: (-self.urgency(turn), turn.number))

    @property
    def order(self) -> tuple[str, ...]:
        """Their names, the next one first."""
        return tuple(turn.name for turn in self.turns)


class Permits:
    """Permits for calls of models, so many at a time; those that wait are served by their priority.

    Args:
        limit: calls at a time.
        monotonic: the clock's seconds.
        priority: how urgent the handoff of a run (or a handoff) is, now.
    """

    def __init__(self, limit: int, monotonic: Callable[[], float], priority: Callable[[str], int]) -> None:
        self.limit = limit
        self._line = WaitingQueue(monotonic, priority)
        self.in_use = 0
        """Permits that are held."""
        self.freed: Callable[[], None] = lambda: None
        """Called when a call has ended and no other waits for its permit."""

    @asynccontextmanager
    async def held(self, handoff: str) -> AsyncIterator[None]:
        """Hold a permit while a model is called.

        Args:
            handoff: the handoff that calls, or its run.
        """
        turn = self._line.join(handoff)
        self._grant()
        try:
            await turn.granted.wait()
            yield
        finally:
            self._line.leave(turn)
            if turn.granted.is_set():
                self.in_use -= 1
                self._grant()
                self.freed()

    def admits(self, urgency: int) -> bool:
        """Whether something of this urgency would be served before all that waits."""
        if self.in_use < self.limit:
            return True
        return any(urgency > self._line.urgency(first) for first in self._line.turns[:1])

    def _grant(self) -> None:
        for turn in self._line.turns[: max(self.limit - self.in_use, 0)]:
            self._line.leave(turn)
            self.in_use += 1
            turn.granted.set()
