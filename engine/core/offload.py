"""Work in threads that can be cut off: what computes for long holds nothing but itself.

`in_thread` is for work that is awaited. Whoever cannot wait, as a reasoner between two events, begins a
`Slice`, waits a few milliseconds for it, in which nearly all end, and goes on with other work where it does
not. What does not end is cut off by an exception in its thread. A call of C that never returns cannot be.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class CutOffError(BaseException):
    """Raised in the thread of a slice that is cut off; what works there must not catch it."""


class Slice:
    """Some work in a thread.

    Args:
        work: what is done; what it raises is raised by `result`.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._error: BaseException | None = None
        self._over = threading.Lock()
        self._over.acquire()
        self._waiters: list[Callable[[], None]] = []
        self.finished = False
        self._worker = _worker()
        self._worker.current = self
        self._worker.work.put(self)

    def wait(self, seconds: float) -> bool:
        """Wait in this thread; whether it has ended."""
        return self._over.acquire(timeout=seconds)

    async def ended(self) -> None:
        """Wait while others go on."""
        loop = asyncio.get_running_loop()
        end = loop.create_future()

        def tell() -> None:
            if not end.done():
                end.set_result(None)

        def ended() -> None:
            with suppress(RuntimeError):  # the loop has closed
                loop.call_soon_threadsafe(tell)

        self._waiters.append(ended)
        if self.finished:
            tell()
        await end

    def result(self) -> None:
        """Raise what the work has raised."""
        if self._error is not None:
            raise self._error

    @property
    def cut(self) -> bool:
        """Whether it was cut off before its end."""
        return isinstance(self._error, CutOffError)

    def cut_off(self) -> None:
        """Let the work end at its next instruction; its thread is used no more."""
        if not self.finished and not self._worker.retired:
            self._worker.retired = True
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._worker.ident or 0), ctypes.py_object(CutOffError)
            )
            self._worker.work.put(None)

    def run(self) -> None:
        """Do the work; in its thread."""
        error: BaseException | None = None
        try:
            self._work()
        except CutOffError:
            raise
        except BaseException as raised:  # noqa: BLE001  whatever it is, it is for whoever waits
            error = raised
        self.end(error)

    def end(self, error: BaseException | None) -> None:
        """Let whoever waits know; called again where it was cut off in this."""
        self._error = error
        self.finished = True
        with suppress(RuntimeError):
            self._over.release()
        for ended in list(self._waiters):
            ended()


class _Worker(threading.Thread):
    """A thread for slices, one after the other."""

    def __init__(self) -> None:
        super().__init__(name="work", daemon=True)
        self.work: SimpleQueue[Slice | None] = SimpleQueue()
        """Nothing wakes a thread that waits, so that the exception reaches it."""
        self.current: Slice | None = None
        self.retired = False
        """Whether an exception may still come into it, so that it must do nothing else."""
        ready = self._ready = threading.Lock()
        ready.acquire()
        self.start()
        ready.acquire()  # before this the exception would meet code of the standard library

    def run(self) -> None:
        try:
            self._ready.release()
            while True:  # only the exception ends it: one that came later would have nobody to catch it
                current = self.work.get()
                if current is not None:
                    current.run()
                    self.current = None
                    _IDLE.append(self)
        except CutOffError as error:
            if self.current is not None:  # cut off before it began, or when it had just ended
                self.current.end(error)


_IDLE: list[_Worker] = []
"""Threads that wait for work; there are as many as ever ran at the same time."""


def _worker() -> _Worker:
    while _IDLE:
        worker = _IDLE.pop()
        if not worker.retired:
            return worker
    return _Worker()


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What a function returns that runs in a thread; where this is cancelled, the function is cut off.

    It must hold nothing that has to be given back, such as a lock.
    """
    given: list[T] = []
    current = Slice(lambda: given.append(work(*args, **kwargs)))
    try:
        await current.ended()
    except asyncio.CancelledError:
        current.cut_off()
        raise
    current.result()
    return given[0]
