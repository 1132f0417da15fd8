"""Jobs: background work with events from being requested to its end.

A job is a task of the event loop; what takes the processor goes to threads or to processes of the sandbox's
launcher, which end with the task. Heavy jobs run one at a time. A job that breaks ends as failed under an id,
by which `.pilothouse/mastermind.log` has the traceback.
"""

from __future__ import annotations

import asyncio
import os
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.core import campaigns as me
from engine.core.improvement import JobRecord, JobStatus
from engine.core.journal import JournalError, canonical
from engine.core.reasons import Reason
from engine.core.text import clean
from engine.improve.ports import JobRefused, JobRequest, JobResult, Worker
from engine.improve.state import EventStream
from engine.models.errors import ModelError

_CANCELLED = Reason("job.cancelled")
HEAVY = 1
"""Heavy jobs that run at a time."""
AT_ONCE = 16
"""Jobs that are under way at a time, those that wait among them."""
TELL_S = 0.25
"""Seconds between two events that say how far a job is."""
END_S = 1.5
"""Seconds that a cancelled job has to end in; what is left then is reported and not waited for."""
LOG = "mastermind.log"
LOG_BYTES = 1_048_576
"""From which size on the log is begun anew; the one before is kept as `mastermind.log.1`."""
ANSWER_CHARACTERS = 200_000
"""Characters of an answer, as JSON, that an event takes."""


class JobProgress:
    """See `engine.improve.ports.Progress`: collects reports; now and then one becomes an event."""

    def __init__(self, report: Callable[[float, float, str], None]) -> None:
        self._told = report
        self._loop = asyncio.get_running_loop()
        self._newest: tuple[float, float, str] | None = None
        self._waiting: asyncio.TimerHandle | None = None
        self._next = 0.0
        self.stop = threading.Event()

    def tell(self, done: float, of: float, text: str) -> None:
        """See `Progress`."""
        with suppress(RuntimeError):  # the loop is closed: no one waits for it
            self._loop.call_soon_threadsafe(self._take, (done, of, clean(text, limit=500)))

    @property
    def cancelled(self) -> bool:
        """See `Progress`."""
        return self.stop.is_set()

    def end(self) -> None:
        """Tell nothing any more."""
        self.stop.set()
        if self._waiting is not None:
            self._waiting.cancel()

    def _take(self, newest: tuple[float, float, str]) -> None:
        if self.stop.is_set():
            return
        self._newest = newest
        if self._waiting is None or self._waiting.cancelled():
            self._waiting = self._loop.call_at(max(self._next, self._loop.time()), self._tell)

    def _tell(self) -> None:
        self._waiting = None
        self._next = self._loop.time() + TELL_S
        if self._newest is not None and not self.stop.is_set():
            self._told(*self._newest)


@dataclass(slots=True)
class _Live:
    """A job that has not ended."""

    progress: JobProgress
    task: asyncio.Task[None] | None = None
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    why: str = ""
    by: str = ""

    async def ended_or(self, task: asyncio.Future[Any]) -> None:
        """Wait for a task, or for being cut off."""
        ending = asyncio.create_task(self.ending.wait())
        await asyncio.wait({task, ending}, return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()


class Jobs:
    """The jobs of a workspace; always `close` it.

    Args:
        stream: where their events go.
        data: the workspace's data directory, which has the log.
    """

    def __init__(self, stream: EventStream, data: Path) -> None:
        self._stream = stream
        self._data = data
        self._live: dict[str, _Live] = {}
        self._heavy = asyncio.Semaphore(HEAVY)
        self._left: set[asyncio.Future[JobResult]] = set()
        """Work that did not end in time."""

    async def interrupt_old(self) -> None:
        """Say of jobs of a session that is over that they were cut off.

        Raises:
            JournalError: the journal refused.
        """
        for job in list(self._stream.state.jobs.values()):
            if not job.status.over and job.id not in self._live:
                message = Reason("job.interrupted")
                self._stream.append(me.JobEnded(job=job.id, status=JobStatus.INTERRUPTED, message=message))
        await self._stream.commit()

    async def start(self, verb: str, asked: JobRequest, worker: Worker, *, heavy: bool) -> JobRecord:
        """Begin a job; it is durable when this returns, and continues by itself.

        Args:
            verb: what it does.
            asked: what was asked for; its `job` is given here.
            worker: does it.
            heavy: whether it waits for other heavy ones.

        Raises:
            JobRefused: too many are under way.
            JournalError: the journal refused.
        """
        if len(self._live) >= AT_ONCE:
            raise JobRefused(f"{len(self._live)} jobs are under way; wait for one, or cancel one")
        name = f"j{len(self._stream.state.jobs) + 1}"
        event = me.JobAsked(job=name, verb=verb, argument=asked.argument, heavy=heavy)
        self._stream.append(event, actor=asked.actor)
        live = _Live(JobProgress(lambda done, of, text: self._progressed(name, done, of, text)))
        self._live[name] = live
        asked = JobRequest(name, asked.argument, asked.options, asked.actor)
        try:
            await self._stream.commit()
        except JournalError:
            del self._live[name]
            why = Reason("job.not-begun")
            self._stream.append(me.JobEnded(job=name, status=JobStatus.REFUSED, message=why))
            raise
        live.task = asyncio.create_task(self._run(asked, worker, live, heavy=heavy), name=f"job {name}")
        return self._stream.state.jobs[name]

    def cancel(self, job: str, *, by: str, why: str = _CANCELLED) -> bool:
        """Cut a job off; its end comes within two seconds. False when it is not under way."""
        live = self._live.get(job)
        if live is None:
            return False
        live.why, live.by = live.why or why, live.by or by
        live.progress.stop.set()
        live.ending.set()
        return True

    def must_wait(self, job: str) -> bool:
        """Whether another heavy job is under way, so that this one waits."""
        jobs = self._stream.state.jobs.values()
        return any(other.heavy and not other.status.over and other.id != job for other in jobs)

    async def wait(self, job: str) -> JobRecord:
        """Wait until a job is over and that is durable.

        Raises:
            KeyError: there is no such job.
        """
        live = self._live.get(job)
        if live is not None and live.task is not None:
            await asyncio.wait([live.task])
        return self._stream.state.jobs[job]

    async def close(self) -> None:
        """Cut every job off, and wait for the ends."""
        for name in list(self._live):
            self.cancel(name, by="system", why=Reason("job.session-ended"))
        tasks = [live.task for live in self._live.values() if live.task is not None]
        if tasks:
            await asyncio.wait(tasks)
        for work in self._left:
            work.cancel()

    async def _run(self, asked: JobRequest, worker: Worker, live: _Live, *, heavy: bool) -> None:
        begins = not heavy or await self._room(asked.job, live)
        result, error = JobResult(JobStatus.CANCELLED, live.why), ""
        try:
            if begins:
                result, error = await self._work(asked, worker, live)
        finally:
            live.progress.end()
            if begins and heavy:
                self._heavy.release()
        answer = dict(result.answer)
        try:
            if len(canonical(answer)) > ANSWER_CHARACTERS:
                answer = {"left_out": "the answer is longer than the journal takes"}
        except (ValueError, TypeError, RecursionError):
            answer = {"left_out": "the answer is no JSON"}
        message = result.message
        message = message if isinstance(message, Reason) else clean(message, limit=8_000)
        ended = me.JobEnded(job=asked.job, status=result.status, message=message, answer=answer, error=error)
        self._stream.append(ended, actor=live.by or "system")
        with suppress(JournalError):  # it stays pending, and the journal reports the trouble
            await self._stream.commit()
        self._live.pop(asked.job, None)

    async def _room(self, job: str, live: _Live) -> bool:
        """Wait for the turn of a heavy job; False when it is cancelled before that."""
        if self._heavy.locked():
            jobs = self._stream.state.jobs.values()
            running = tuple(other.id for other in jobs if other.heavy and other.status is JobStatus.RUNNING)
            self._progressed(job, 0, 0, Reason("job.waits", jobs=running))
        turn = asyncio.create_task(self._heavy.acquire())
        await live.ended_or(turn)
        if not live.ending.is_set():
            return True
        if not turn.cancel():  # it came at the same moment
            self._heavy.release()
        return False

    async def _work(self, asked: JobRequest, worker: Worker, live: _Live) -> tuple[JobResult, str]:
        """The result of a job, and the id under which the log has its traceback; it never raises."""
        self._stream.append(me.JobBegun(job=asked.job))
        work = asyncio.ensure_future(worker(asked, live.progress))
        await live.ended_or(work)
        if not work.done():
            work.cancel()
            await asyncio.wait({work}, timeout=END_S)
        if not work.done():
            self._left.add(work)
            work.add_done_callback(self._left.discard)
            return JobResult(JobStatus.CANCELLED, Reason("job.left", why=live.why)), ""
        if work.cancelled():
            return JobResult(JobStatus.CANCELLED, live.why or _CANCELLED), ""
        error = work.exception()
        if error is None:
            return work.result(), ""
        if isinstance(error, JobRefused):
            return JobResult(JobStatus.REFUSED, str(error)), ""
        if isinstance(error, ModelError):
            return JobResult(JobStatus.FAILED, Reason("job.model", message=error.message)), ""
        return self._broken(asked.job, error)

    def _broken(self, job: str, error: BaseException) -> tuple[JobResult, str]:
        ident = f"{self._stream.log.head[:8] or 'e'}-{job}"
        what = clean(f"{type(error).__name__}: {error}", limit=300)
        message = Reason("job.broken", what=what, error=ident, log=LOG)
        with suppress(OSError):
            _log(self._data / LOG, ident, error)
        return JobResult(JobStatus.FAILED, message), ident

    def _progressed(self, job: str, done: float, of: float, text: str) -> None:
        self._stream.append(me.JobProgressed(job=job, done=done, of=of, text=text))
        self._stream.log.commit_soon()


def _log(path: Path, ident: str, error: BaseException) -> None:
    """Append a traceback; mode 0600."""
    if path.exists() and path.stat().st_size > LOG_BYTES:
        path.replace(path.with_suffix(".log.1"))
    text = "".join(traceback.format_exception(error))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace") as file:
        file.write(f"--- {ident}\n{text}\n")
