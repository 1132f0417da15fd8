"""Jobs: they run beside everything else, end when they are told to, and their end is always on record."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import threading
import time
from collections.abc import Awaitable, Callable

from running_craft import Craft
from words import plug

from engine.core.campaigns import CancelJob, StartJob
from engine.core.improvement import JobStatus
from engine.core.journal import MASTERMIND
from engine.improve.ports import JobRefused, JobRequest, JobResult, Progress

DONE = JobResult(JobStatus.DONE, "done", {"n": 1})


async def _gone(pid: int) -> bool:
    for _ in range(200):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        await asyncio.sleep(0.01)
    return False


async def test_another_command_is_taken_while_a_job_runs_and_cancel_ends_its_processes(craft: Craft) -> None:
    """Behaviour 12: the operator goes on at once; cancel ends the job with its process within two seconds."""
    pids: list[int] = []
    begun = asyncio.Event()

    async def worker(_asked: JobRequest, _progress: Progress) -> JobResult:
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(600)")
        pids.append(child.pid)
        begun.set()
        try:
            await child.wait()
        finally:
            child.kill()
            await child.wait()
        return DONE

    async def quick(_asked: JobRequest, _progress: Progress) -> JobResult:
        return DONE

    craft.mastermind.register("long", worker, heavy=True)
    craft.mastermind.register("quick", quick)
    job = await craft.start("long")
    await begun.wait()
    assert (await craft.job("quick")).status is JobStatus.DONE
    assert not craft.mastermind.state.jobs[job].status.over
    assert "cancelled" in await craft.do(CancelJob(job=job))
    assert await _gone(pids[0])
    assert craft.mastermind.state.jobs[job].status is JobStatus.CANCELLED
    assert "is over already" in await craft.do(CancelJob(job=job), ok=False)
    assert "no job 'j99'" in await craft.do(CancelJob(job="j99"), ok=False)


async def test_work_in_a_thread_learns_that_it_is_cancelled(craft: Craft) -> None:
    """Behaviour 12, for work that no task can cut off."""
    begun, ended = threading.Event(), threading.Event()

    def work(progress: Progress) -> None:
        begun.set()
        while not progress.cancelled:
            time.sleep(0.001)
        ended.set()

    async def worker(_asked: JobRequest, progress: Progress) -> JobResult:
        progress.tell(1, 2, "half")
        await asyncio.to_thread(work, progress)
        return DONE

    craft.mastermind.register("spin", worker)
    job = await craft.start("spin")
    assert await asyncio.to_thread(begun.wait, 5)
    await craft.do(CancelJob(job=job))
    assert await asyncio.to_thread(ended.wait, 5)


async def test_a_job_that_breaks_leaves_an_id_and_the_log_has_its_traceback(craft: Craft) -> None:
    """Behaviour 4: the error has an id, the traceback is in the log only, and the next job runs."""

    async def worker(_asked: JobRequest, _progress: Progress) -> JobResult:
        raise ZeroDivisionError("secret\x1b[2J detail")

    async def refuses(_asked: JobRequest, _progress: Progress) -> JobResult:
        raise JobRefused("there is no such thing")

    craft.mastermind.register("breaks", worker)
    craft.mastermind.register("refuses", refuses)
    job = await craft.job("breaks")
    assert job.status is JobStatus.FAILED
    assert job.error in job.message
    assert "\x1b" not in job.message
    assert "Traceback" not in job.message
    log = craft.workspace / ".pilothouse/mastermind.log"
    assert f"--- {job.error}\nTraceback" in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert all("Traceback" not in event.body for event in await craft.engine.store.read(MASTERMIND))
    job = await craft.job("refuses")
    assert (job.status, job.message, job.error) == (JobStatus.REFUSED, "there is no such thing", "")


async def test_heavy_jobs_run_one_after_the_other_and_say_so(craft: Craft) -> None:
    go, running = asyncio.Event(), []

    async def worker(asked: JobRequest, _progress: Progress) -> JobResult:
        running.append(asked.job)
        await go.wait()
        return DONE

    craft.mastermind.register("heavy", worker, heavy=True)
    first = await craft.start("heavy")
    second = await craft.start("heavy")
    third = await craft.start("heavy")
    while craft.mastermind.state.jobs[third].text == "":
        await craft.mastermind.stream.changed()
    assert craft.mastermind.state.jobs[second].status is JobStatus.QUEUED
    assert craft.mastermind.state.jobs[second].text == f"waits for {first} to end"
    await craft.do(CancelJob(job=second))
    go.set()
    assert (await craft.mastermind.wait(third)).status is JobStatus.DONE
    assert running == [first, third]


async def test_progress_is_told_a_few_times_a_second_only(craft: Craft) -> None:
    async def worker(_asked: JobRequest, progress: Progress) -> JobResult:
        for number in range(10_000):
            progress.tell(number, 10_000, "on the way")
            if number % 100 == 0:
                await asyncio.sleep(0)
        return DONE

    craft.mastermind.register("busy", worker)
    job = await craft.job("busy")
    told = [e for e in await craft.engine.store.read(MASTERMIND) if e.kind == "mastermind.job_progressed"]
    assert job.status is JobStatus.DONE
    assert 0 < len(told) < 50


async def test_a_job_of_a_session_that_was_killed_is_interrupted(
    craft: Craft, reopen: Callable[..., Awaitable[Craft]]
) -> None:
    from engine.core.campaigns import JobAsked, JobBegun

    await craft.mastermind.stream.write(JobAsked(job="j1", verb="evolve", heavy=True))
    await craft.mastermind.stream.write(JobBegun(job="j1"))
    craft = await reopen()
    job = craft.mastermind.state.jobs["j1"]
    assert (job.status, job.message) == (JobStatus.INTERRUPTED, "the session ended before it did")


async def test_what_is_no_job_is_refused_in_a_line_and_nothing_is_recorded(craft: Craft) -> None:
    plug(craft.mastermind)
    before = craft.mastermind.state.version
    assert "there is no job nothing_such" in await craft.do(StartJob(verb="nothing_such"), ok=False)
    assert craft.mastermind.state.version == before
    for verb in ("evolve", "coord_improve"):
        job = await craft.job(verb)
        assert job.status is JobStatus.REFUSED, verb
        assert "\n" not in job.message
