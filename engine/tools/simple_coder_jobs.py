"""SimpleCoder's commands on background jobs: start, watch, wait for and stop what runs beside the calls."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from engine.domain.action import ErrorCode, ResultStatus, ToolResult
from engine.domain.ports import CallContext
from engine.domain.text import clean_line
from engine.sandbox.confinement import Confinement, Launch
from engine.sandbox.jobs import BackgroundJob, Jobs, duration_text, listed
from engine.sandbox.paths import PathError
from engine.sandbox.process import Launcher
from engine.tools.command_line import split_command
from engine.tools.run_outcome import run_result

Handler = Callable[[Mapping[str, Any], CallContext], Awaitable[ToolResult]]
Held = tuple[Launch, int, Confinement]
"""A program ready to be launched, its working directory, and what holds it."""
Prepare = Callable[[list[str], CallContext], AbstractAsyncContextManager[Held]]
LINES_MOST = 500
"""Lines of output that one answer holds."""
_WAIT_LINES = 20


class JobCommands:
    """The handlers, by command.

    Args:
        jobs: the table of jobs.
        launcher: starts programs under the policy that holds for these commands.
        prepare: makes the words of a command line ready, as for `run`.
    """

    def __init__(self, jobs: Jobs, launcher: Launcher, prepare: Prepare) -> None:
        self._jobs = jobs
        self._launcher = launcher
        self._prepare = prepare
        self.handlers: Mapping[str, Handler] = {
            "start": self._start,
            "jobs": self._list,
            "job_output": self._output,
            "wait_job": self._wait,
            "stop_job": self._stop,
        }

    async def _start(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        asked = args["command"]
        words = split_command(asked)
        async with self._prepare(words, context) as (launch, cwd, jail):
            job = await self._jobs.start(
                context.agent,
                asked if isinstance(asked, str) else shlex.join(words),
                launch,
                cwd,
                launcher=self._launcher,
                jail=jail,
                action=context.action,
                observer=context.observer,
            )
        if not job.over.is_set():
            message = (
                f"Job {job.id} runs. job_output {job.id} shows what it prints, stop_job {job.id} ends it."
            )
            return ToolResult(ResultStatus.SUCCESS, {"job": job.id, "message": message})
        if job.result is None:
            return _answer(job, ErrorCode.CANCELLED, message=f"Job {job.id} {job.told}.")
        ended = run_result(words, job.result, self._launcher.policy.job_s, self._launcher.policy)
        if not job.up.is_set():
            return ended
        message = f"Job {job.id} is over already: {job.told}."
        return ToolResult(ended.status, {"job": job.id, **ended.data, "message": message}, ended.code)

    async def _list(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        items = [_line(job) for job in self._jobs.of(context.agent)]
        return ToolResult(ResultStatus.SUCCESS, {"items": items})

    async def _output(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        if not 1 <= args["lines"] <= LINES_MOST:
            raise PathError(ErrorCode.BAD_ARGUMENTS, f"job_output: 'lines' is 1 to {LINES_MOST}.")
        job = self._named(args["job"], context)
        data = {"job": job.id, "state": _state(job), "content": "\n".join(job.newest(args["lines"]))}
        return ToolResult(ResultStatus.SUCCESS, data)

    async def _wait(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        job, text, most = self._named(args["job"], context), args["text"], self._launcher.policy.wall_clock_s
        if not 0 < args["seconds"] <= most:
            raise PathError(ErrorCode.BAD_ARGUMENTS, f"wait_job: 'seconds' is more than 0, at most {most:g}.")
        if not await job.wait(text, args["seconds"]):
            return _answer(job, ErrorCode.TIMEOUT, message=f"Job {job.id} still runs.")
        if text and job.printed(text):
            return _answer(job, None, message=f"Job {job.id} printed {text!r}.")
        good = not text and job.result is not None and job.result.return_code == 0
        return _answer(job, None if good else ErrorCode.EXIT_STATUS, message=f"Job {job.id} {job.told}.")

    async def _stop(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        job = self._named(args["job"], context)
        running = not job.over.is_set()
        job.stop()
        await job.over.wait()
        message = f"Job {job.id} {'was over already: ' * (not running)}{job.told}."
        return ToolResult(ResultStatus.SUCCESS, {"job": job.id, "message": message})

    def _named(self, ident: str, context: CallContext) -> BackgroundJob:
        """The job of that name; without a name the only one that runs, or the newest when none does."""
        jobs, running = self._jobs.of(context.agent), self._jobs.running(context.agent)
        if ident or not jobs:
            return self._jobs.get(context.agent, ident)
        if len(running) > 1:
            raise PathError(ErrorCode.BAD_ARGUMENTS, f"Several jobs run; name one of {listed(running)}.")
        return (running or jobs)[-1]


def _state(job: BackgroundJob) -> str:
    return job.told or f"running for {duration_text(job.age_s)}"


def _line(job: BackgroundJob) -> str:
    last = next((line for line in reversed(job.newest(_WAIT_LINES)) if line.strip()), "")
    parts = [job.id, _state(job), clean_line(job.command, limit=80), clean_line(last, limit=120)]
    return " | ".join(part for part in parts if part)


def _answer(job: BackgroundJob, code: ErrorCode | None, *, message: str) -> ToolResult:
    data = {"job": job.id, "message": message, "content": "\n".join(job.newest(_WAIT_LINES))}
    return ToolResult(ResultStatus.SUCCESS if code is None else ResultStatus.FAILURE, data, code)
