"""SimpleCoder's commands on background jobs, and `shell`, by which the operator works in the agent's sandbox.

The shell is an action like any other, so it passes the gate, is recorded, is cut off by Stop, and has an
unknown outcome after a kill; while it lasts the agent waits at its step.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from typing import Any

from engine.core.actions import ErrorCode, ResultStatus, ToolResult
from engine.core.ports import CallContext
from engine.core.sandbox import TreeKind
from engine.core.text import clean_line
from engine.sandbox.completion import run_to_completion
from engine.sandbox.files import SandboxFiles
from engine.sandbox.jail import Confinement, Launch
from engine.sandbox.jobs import BackgroundJob, Sessions, duration_text, jobs_text
from engine.sandbox.paths import PathError
from engine.sandbox.process import Ended, Launcher, ProcessResult
from engine.sandbox.shell import OperatorShell, ShellNotesDirectory, shell_command, shell_launch
from engine.sandbox.terminal import Terminal
from engine.tools.command_line import run_result, split_command

Handler = Callable[[Mapping[str, Any], CallContext], Awaitable[ToolResult]]
PreparedLaunch = tuple[Launch, int, Confinement]
"""A program ready to be launched, its working directory, and what holds it."""
Prepare = Callable[[list[str], CallContext], AbstractAsyncContextManager[PreparedLaunch]]
LINES_MOST = 500
"""Lines of output that one answer holds."""
_WAIT_LINES = 20


class ProgramCommands:
    """The handlers of commands on background jobs and of the operator's shell, by command.

    Args:
        sessions: where jobs and open shells can be reached.
        launcher: starts programs under the policy that holds for these commands.
        files: the sandbox.
        prepare: makes the words of a command line ready, as for `run`.
        hold: makes a program ready, whatever programs are allowed.
    """

    def __init__(
        self, sessions: Sessions, launcher: Launcher, files: SandboxFiles, prepare: Prepare, hold: Prepare
    ) -> None:
        self._sessions, self._launcher, self._files = sessions, launcher, files
        self._prepare, self._hold = prepare, hold
        self.handlers: Mapping[str, Handler] = {
            "start": self._start,
            "jobs": self._list,
            "job_output": self._output,
            "wait_job": self._wait,
            "stop_job": self._stop,
            "shell": self._shell,
        }

    async def _start(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        asked = args["command"]
        words = split_command(asked)
        return await self.start(words, context, self._prepare, asked if isinstance(asked, str) else "")

    async def start(
        self, words: list[str], context: CallContext, prepare: Prepare, shown: str = ""
    ) -> ToolResult:
        """Start a job of these words, made ready by `prepare`."""
        async with prepare(words, context) as (launch, cwd, jail):
            job = await self._sessions.start_job(
                context.agent,
                shown or shlex.join(words),
                launch,
                cwd,
                launcher=self._launcher,
                jail=jail,
                action=context.action,
                observer=context.observer,
            )
        if not job.over.is_set():
            shows = f"job_output {job.id} shows what it prints, stop_job {job.id} ends it."
            message = f"Job {job.id} runs. {shows}"
            return ToolResult(ResultStatus.SUCCESS, {"job": job.id, "message": message})
        if job.result is None:
            return _answer(job, ErrorCode.CANCELLED, message=f"Job {job.id} {job.told}.")
        ended = run_result(words, job.result, self._launcher.policy.job_s, self._launcher.policy)
        if not job.up.is_set():
            return ended
        message = f"Job {job.id} is over already: {job.told}."
        return ToolResult(ended.status, {"job": job.id, **ended.data, "message": message}, ended.code)

    async def _list(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        items = [_line(job) for job in self._sessions.jobs(context.agent)]
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
        jobs, running = self._sessions.jobs(context.agent), self._sessions.running_jobs(context.agent)
        if ident or not jobs:
            return self._sessions.job(context.agent, ident)
        if len(running) > 1:
            raise PathError(ErrorCode.BAD_ARGUMENTS, f"Several jobs run; name one of {jobs_text(running)}.")
        return (running or jobs)[-1]

    async def _shell(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Open the shell and stay until it has ended."""
        if not context.by_operator:
            return _refused("The shell is the operator's; an agent cannot take it. Use `run`.")
        if context.observer is None:
            return _refused("A shell needs the cockpit, which shows its terminal and records it.")
        if context.agent in self._sessions.shells:
            return _refused(f"The shell of {context.agent} is open already.")
        try:
            terminal = Terminal(context.observer, context.action, context.output)
        except OSError as error:
            what = f"No terminal could be opened: {error.strerror}."
            return _refused(f"{what} Close another one and try again.")
        shell = OperatorShell(terminal)
        place = ShellNotesDirectory(self._files, context.agent)
        self._sessions.shells[context.agent] = shell
        try:
            result = await self._live(shell, place, context)
            shell.terminal.close()
            return await run_to_completion(asyncio.to_thread(self._left, shell, place, context, result))
        finally:
            shell.terminal.close()
            del self._sessions.shells[context.agent]
            with suppress(PathError):  # the next shell tries again
                await run_to_completion(asyncio.to_thread(place.remove))

    async def _live(
        self, shell: OperatorShell, place: ShellNotesDirectory, context: CallContext
    ) -> ProcessResult | None:
        program, script = shell_command()
        plain = replace(context, session=replace(context.session, venv=None))  # the shell activates its own
        async with self._hold([program], plain) as (launch, cwd, jail):
            rc = await run_to_completion(asyncio.to_thread(place.prepare, context.session, script))
            limit_s = self._launcher.policy.shell_s
            tree = self._sessions.new_tree(context.agent, TreeKind.SHELL, context.action, "your shell")
            return await shell.live(self._launcher, shell_launch(launch, rc), cwd, jail, limit_s, tree)

    def _left(
        self,
        shell: OperatorShell,
        place: ShellNotesDirectory,
        context: CallContext,
        result: ProcessResult | None,
    ) -> ToolResult:
        policy = self._launcher.policy
        if result is not None and result.ended in (Ended.LAUNCH, Ended.JAIL):
            return run_result(["shell"], result, policy.shell_s, policy)
        notes = place.read(context.session)
        processes = shell.programs(notes.commands)
        data: dict[str, Any] = {
            "message": _message(shell, len(shell.running) or (result.leftover if result else 0)),
            "commands": list(notes.commands),
            "cwd": notes.session.cwd,
            "venv": notes.session.venv,
            "variables": dict(notes.variables),
            "processes": processes,
            "note": shell.note,
        }
        if result is None or result.ended in (Ended.EXIT, Ended.SIGNAL):
            return ToolResult(ResultStatus.SUCCESS, data)
        failed = run_result(["shell"], result, policy.shell_s, policy)
        return ToolResult(failed.status, {**data, "message": failed.message}, failed.code)


def _state(job: BackgroundJob) -> str:
    return job.told or f"running for {duration_text(job.age_s)}"


def _line(job: BackgroundJob) -> str:
    last = next((line for line in reversed(job.newest(_WAIT_LINES)) if line.strip()), "")
    parts = [job.id, _state(job), clean_line(job.command, limit=80), clean_line(last, limit=120)]
    return " | ".join(part for part in parts if part)


def _answer(job: BackgroundJob, code: ErrorCode | None, *, message: str) -> ToolResult:
    data = {"job": job.id, "message": message, "content": "\n".join(job.newest(_WAIT_LINES))}
    return ToolResult(ResultStatus.SUCCESS if code is None else ResultStatus.FAILURE, data, code)


def _message(shell: OperatorShell, ended: int) -> str:
    how = "The operator handed the shell back" if shell.handed_back else "The operator left the shell"
    which = f"; {ended} process{'es' * (ended != 1)} that still ran ended with it" if ended else ""
    return f"{how}{which}."


def _refused(message: str) -> ToolResult:
    return ToolResult(ResultStatus.ERROR, {"message": message}, ErrorCode.NOT_ALLOWED)
