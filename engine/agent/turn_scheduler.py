"""Turns of the event loop shared out: agents work so long in each, and then others come.

With many agents at work a group commit or a shared snapshot lets hundreds of them continue in one turn of the
loop, and a key that is pressed meanwhile waits for all of them, in each of the half a dozen turns that it
takes to the screen. So their steps wait in line, first come, first served, and each turn takes as many as fit
in; after a key they wait a moment altogether. What an agent does is not changed by when it does it
(see ARCHITECTURE.md, events).
"""

from __future__ import annotations

import asyncio
import types
from collections import deque
from collections.abc import Coroutine, Generator
from time import perf_counter
from typing import Any, TypeVar

T = TypeVar("T")

TURN_S = 0.002
"""How long agents work in one turn of the loop; one step of one agent may take longer."""
YIELD_AFTER_S = 0.03
"""How long agents wait for what the operator does to be on the screen; half as long they work then."""
_WEIGHT = 0.05
"""How much the newest step counts in the mean of a step's time."""


class TurnScheduler:
    """Lets the agents of one loop continue in turn.

    Args:
        turn_s: how long they may work in one turn of the loop, in seconds.
    """

    def __init__(self, turn_s: float = TURN_S) -> None:
        self._turn = turn_s
        self._spent = 0.0
        self._mean = turn_s / 4
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._counting = False
        self._rest: asyncio.TimerHandle | None = None
        self._rested = asyncio.Event()
        self._works_until = 0.0
        """When the agents may be asked to wait again."""

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run an agent's work to its end, each step when there is room; gives and raises what it does."""
        return await self._stepped(work)  # type: ignore[no-any-return]

    def yield_to_operator(self, seconds: float = YIELD_AFTER_S) -> None:
        """The operator did something: let the agents wait a moment, as often as leaves them time to work."""
        if self._rest is None and perf_counter() >= self._works_until:
            self._rested.clear()
            self._rest = asyncio.get_running_loop().call_later(seconds, self.go_on)

    def go_on(self) -> None:
        """What they gave way to is done."""
        if self._rest is None:
            return
        self._rest.cancel()
        self._rest = None
        self._rested.set()
        self._works_until = perf_counter() + YIELD_AFTER_S / 2
        if self._waiting:
            self._count(0.0)

    async def checkpoint(self) -> None:
        """Let others have their turn, and what the operator does the whole of its moment."""
        await asyncio.sleep(0)
        while self._rest is not None:
            await self._rested.wait()

    @types.coroutine
    def _stepped(self, work: Coroutine[Any, Any, Any]) -> Generator[Any, None, Any]:
        thrown: BaseException | None = None
        while True:
            if thrown is None and (self._waiting or self._rest is not None or self._spent >= self._turn):
                try:
                    yield from self._in_line()
                except asyncio.CancelledError as error:
                    thrown = error
            began = perf_counter()
            try:
                awaited = work.send(None) if thrown is None else work.throw(thrown)
            except StopIteration as end:
                return end.value
            finally:
                self._count(perf_counter() - began)
            thrown = None
            try:
                yield awaited
            except BaseException as error:  # noqa: BLE001  whatever it is, it is the work's to take
                thrown = error

    def _in_line(self) -> asyncio.Future[None]:
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        self._count(0.0)
        return place

    def _count(self, seconds: float) -> None:
        self._spent += seconds
        self._mean += _WEIGHT * (seconds - self._mean) if seconds else 0.0
        if not self._counting:
            self._counting = True
            asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        """A turn has passed: as many continue as will fit into the next."""
        self._counting, self._spent = False, 0.0
        if self._rest is not None:
            return
        room = max(1, int(self._turn / max(self._mean, 1e-6)))
        while self._waiting and room:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                room -= 1
        if self._waiting:
            self._count(0.0)
