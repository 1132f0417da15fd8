"""Runs background jobs: a few at a time, each within a total time, and always with a recorded end.

A slot is held by the work itself, from its beginning until it has truly ended, so that no slot can leak or be
released twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from engine.core.metacognition import JobOutcome
from engine.value import dataclass, field

SLOTS = 10
"""Jobs that run at a time."""
DEADLINE_S = 60.0
"""Seconds that a job may take in all, waiting for a slot included."""
DRAIN_S = 5.0
"""Seconds that a job has to end in once it is cancelled."""
BACKLOG = 100
"""Jobs that may wait for a slot."""


class BacklogFull(Exception):  # noqa: N818  named after what happened, as the journal's errors are
    """Too many jobs wait for a slot."""


@dataclass(frozen=True, slots=True)
class JobEnding:
    """How a job ended."""

    outcome: JobOutcome
    message: str = ""
    """Why it did not succeed; empty when it did."""
    result: Any = None
    duration_s: float = 0.0
    """From when it was asked for."""


@dataclass(slots=True, eq=False)
class _Job:
    ident: str
    work: Callable[[], Awaitable[Any]]
    ended: Callable[[JobEnding], None]
    since: float
    cut: asyncio.Event = field(default_factory=asyncio.Event)
    why: str = ""
    watcher: asyncio.Task[None] | None = None


class BackgroundRunner:
    """Runs jobs beside everything else; always `close` it.

    Args:
        slots: jobs that run at a time.
        deadline_s: seconds that each may take in all.
        drain_s: seconds that each has to end in once it is cancelled.
        backlog: jobs that may wait.
    """

    def __init__(
        self,
        *,
        slots: int = SLOTS,
        deadline_s: float = DEADLINE_S,
        drain_s: float = DRAIN_S,
        backlog: int = BACKLOG,
    ) -> None:
        self.slots = slots
        self._deadline_s, self._drain_s, self._backlog = deadline_s, drain_s, backlog
        self._free = asyncio.Semaphore(slots)
        self._holding = 0
        self._jobs: dict[str, _Job] = {}
        self._workers: set[asyncio.Task[Any]] = set()

    @property
    def free(self) -> int:
        """Slots that no work holds."""
        return self.slots - self._holding

    def start(
        self, ident: str, work: Callable[[], Awaitable[Any]], ended: Callable[[JobEnding], None]
    ) -> None:
        """Begin a job; it may have to wait for a slot.

        Args:
            ident: names it among all jobs.
            work: what is to be done.
            ended: called once with how it ended, whatever happens.

        Raises:
            BacklogFull: too many wait already; nothing was begun.
        """
        if len(self._jobs) >= self.slots + self._backlog:
            raise BacklogFull(f"{self._backlog} jobs wait for a slot already: try again when some have ended")
        job = _Job(ident, work, ended, asyncio.get_running_loop().time())
        self._jobs[ident] = job
        job.watcher = asyncio.create_task(self._watch(job), name=f"background {ident}")

    def cancel(self, ident: str, why: str = "cancelled") -> bool:
        """Cut a job off; its end is reported soon after. False when there is no such job."""
        job = self._jobs.get(ident)
        if job is None:
            return False
        job.why = job.why or why
        job.cut.set()
        return True

    async def drain(self, prefix: str = "", why: str = "the session ends") -> None:
        """Cut off every job whose name begins so, and return when the end of each was reported."""
        jobs = [job for ident, job in self._jobs.items() if ident.startswith(prefix)]
        for job in jobs:
            self.cancel(job.ident, why)
        watchers = [job.watcher for job in jobs if job.watcher is not None]
        if watchers:
            await asyncio.wait(watchers)

    async def close(self) -> None:
        """Cut off everything."""
        await self.drain()

    async def _watch(self, job: _Job) -> None:
        """Make sure that a job ends, and report how it did."""
        worker = asyncio.create_task(self._work(job), name=f"background work {job.ident}")
        self._workers.add(worker)
        worker.add_done_callback(self._workers.discard)
        cut = asyncio.ensure_future(job.cut.wait())
        try:
            await asyncio.wait({worker, cut}, timeout=self._deadline_s, return_when=asyncio.FIRST_COMPLETED)
            in_time = worker.done() or job.cut.is_set()
            if not worker.done():
                worker.cancel()
                await asyncio.wait({worker}, timeout=self._drain_s)
        finally:
            cut.cancel()
            del self._jobs[job.ident]
        job.ended(self._ending(job, worker, in_time=in_time))

    async def _work(self, job: _Job) -> Any:
        async with self._free:
            self._holding += 1
            try:
                return await job.work()
            finally:
                self._holding -= 1

    def _ending(self, job: _Job, worker: asyncio.Task[Any], *, in_time: bool) -> JobEnding:
        took = asyncio.get_running_loop().time() - job.since
        late = f"it was not over after {self._deadline_s:g} s"
        if not worker.done():
            why = job.why if in_time else late
            return JobEnding(
                JobOutcome.ABANDONED, f"{why}, and did not end when it was cancelled", duration_s=took
            )
        if worker.cancelled():
            if in_time:
                return JobEnding(JobOutcome.CANCELLED, job.why or "cancelled", duration_s=took)
            return JobEnding(JobOutcome.TIMED_OUT, late, duration_s=took)
        error = worker.exception()
        if error is not None:
            message = str(error) or type(error).__name__
            return JobEnding(JobOutcome.FAILED, message, duration_s=took)
        return JobEnding(JobOutcome.DONE, result=worker.result(), duration_s=took)
