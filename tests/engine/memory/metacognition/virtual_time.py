"""An event loop whose time passes as fast as nothing happens: an hour of waiting takes no time at all."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

T = TypeVar("T")

STUCK_S = 20.0
"""Real seconds after which a test that waits for nothing is given up."""


class _Selector(selectors.DefaultSelector):
    """Does not wait for timers: it moves the time on."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            found = super().select(STUCK_S)
            assert found, "the test waits for something that never comes"
            return found
        found = super().select(0)
        if not found and timeout > 0:
            self.now += timeout
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """Tells the selector's time."""

    def __init__(self) -> None:
        self._told = _Selector()
        super().__init__(self._told)

    def time(self) -> float:
        return self._told.now


def in_virtual_time(main: Coroutine[Any, Any, T]) -> T:
    """What the coroutine returns, on virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


class LoopClock:
    """The event loop's time, whatever that is."""

    def now(self) -> str:
        passed = asyncio.get_running_loop().time()
        moment = datetime.fromtimestamp(1_800_000_000 + passed % 10_000_000, UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
