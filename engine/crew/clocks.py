"""Deadlines that can stand still, on the engine's clock (ontology spec §1.8).

A deadline counts only while its handoff works: it stands still while the handoff, or anything below it, waits
for the operator or is paused, and before it begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from math import inf

from engine.domain.ports import Clock

MARGIN_S = 2.0
"""Seconds that a child's deadline lies before its parent's."""
LEAST_S = 1.0
"""Seconds below which a child does not begin at all."""


def moment(clock: Clock, plus: float = 0.0) -> datetime:
    """The clock's time, aware, in UTC, that many seconds later."""
    return datetime.fromisoformat(clock.now()) + timedelta(seconds=plus)


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
        """Let it stand still until `go` is told the same."""
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
        self._due: dict[str, tuple[float, Callable[[], None]]] = {}
        self._poked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def set(self, name: str, seconds: float, then: Callable[[], None]) -> None:
        """Call `then` after some seconds; one of the same name is replaced."""
        self._due[name] = (self._clock.monotonic() + seconds, then)
        self._poked.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch(), name="crew alarms")

    def drop(self, name: str) -> None:
        """Forget one, if it is there."""
        if self._due.pop(name, None) is not None:
            self._poked.set()

    async def close(self) -> None:
        """Forget all."""
        self._due.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _watch(self) -> None:
        while self._due:
            self._poked.clear()
            first = min((due for due, _ in self._due.values()), default=inf)
            left = first - self._clock.monotonic()
            if left > 0:
                await self._wait(left)
            now = self._clock.monotonic()
            for name, (due, then) in list(self._due.items()):
                if due <= now and name in self._due:
                    del self._due[name]
                    then()

    async def _wait(self, seconds: float) -> None:
        """Wait some seconds, or until an alarm is set or dropped."""
        waits = [
            asyncio.ensure_future(self._clock.sleep(seconds)),
            asyncio.ensure_future(self._poked.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
            await asyncio.gather(*waits, return_exceptions=True)


class Deadlines:
    """The stopwatches of all handoffs that began, and who holds whom still.

    Args:
        clock: what counts.
        alarms: what tells that one has run out.
        above: the handoffs above one, the nearest first.
        over: what is done with a handoff whose time is over.
    """

    def __init__(
        self,
        clock: Clock,
        alarms: Alarms,
        above: Callable[[str], list[str]],
        over: Callable[[str], None],
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
        for one in (handoff, *self._above(handoff)):
            if one in self._watches:
                self._watches[one].hold(handoff)
                self._alarms.drop(one)

    def go(self, handoff: str, why: str) -> None:
        """One reason less; with the last, the clocks go on."""
        reasons = self._stills.get(handoff, set())
        reasons.discard(why)
        if reasons:
            return
        self._stills.pop(handoff, None)
        for one in (handoff, *self._above(handoff)):
            if one in self._watches:
                self._watches[one].go(handoff)
                self._arm(one)

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
