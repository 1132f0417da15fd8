"""Background jobs: programs that continue after the call that started them, each agent's in a table.

A job is one run of the launcher, so it is confined and limited as any command, its whole tree ends with it,
and it dies with this process: its supervisor hangs on a life line. Commands enter; their output in bounded
pieces, their newest lines and how they ended leave.

`Sessions` has what continues in agents' sandboxes beside their calls: nothing where nothing runs (replays).
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from engine.core.actions import ErrorCode
from engine.core.ports import SessionObserver
from engine.core.sandbox import TreeKind
from engine.core.text import clean_line
from engine.sandbox.completion import run_to_completion
from engine.sandbox.jail import Confinement, Launch
from engine.sandbox.output import OutputPump
from engine.sandbox.paths import PathError
from engine.sandbox.policy import SandboxPolicy, size_text
from engine.sandbox.process import Ended, Launcher, ProcessResult, signal_name
from engine.sandbox.process_trees import ProcessTree
from engine.sandbox.shell import OperatorShell
from engine.sandbox.terminal import Terminal

PERIOD_S = 0.1
"""Seconds between two pieces of a stream: with two streams at most 20 pieces a second."""
KEPT = 64 * 1024
"""Characters of its newest output that are kept of a job."""
ENDED_KEPT = 20
"""Ended jobs of an agent that can still be asked about."""
SETTLE_S = 0.3
"""Seconds after its start in which a program's end still counts as a failed start."""


class BackgroundJob:
    """A program in the background, or how it ended.

    Args:
        ident: what it is called.
        command: as it was asked for.
        action: the action that started it.
        observer: records its life; None where nothing does.
    """

    def __init__(self, ident: str, command: str, action: str, observer: SessionObserver | None) -> None:
        self.id = ident
        self.command = command
        self.up = asyncio.Event()
        """Set once the program has started."""
        self.over = asyncio.Event()
        """Set once it has ended with all that it started."""
        self.result: ProcessResult | None = None
        """Its result; None while it runs, and when it was stopped."""
        self.told = ""
        """How it ended, in words; empty while it runs."""
        self._action = action
        self._observer = observer
        self._begun, self._over_at = time.monotonic(), 0.0
        self._newest, self._stream = "", ""
        self._early: list[tuple[str, str]] = []
        self._pump = OutputPump(self._record, PERIOD_S)
        self._heard = asyncio.Event()
        self._task: asyncio.Task[ProcessResult]

    @property
    def age_s(self) -> float:
        """Seconds since it was started, or that it ran."""
        return (self._over_at or time.monotonic()) - self._begun

    def newest(self, lines: int) -> list[str]:
        """The newest lines of both streams that are kept, as they came."""
        return self._newest.splitlines()[-lines:]

    def printed(self, text: str) -> bool:
        """Whether the output that is kept holds a text."""
        return text in self._newest

    async def wait(self, text: str, seconds: float) -> bool:
        """Wait until it has ended, or has printed a text; False when the time was up before."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.over.is_set() and not (text and self.printed(text)):
                    self._heard.clear()
                    await self._heard.wait()
                return True
        return False

    def run(self, work: Coroutine[Any, Any, ProcessResult], policy: SandboxPolicy) -> None:
        """Let it live as a task of the running loop."""
        self._task = asyncio.create_task(work, name=f"job {self.id}")
        self._task.add_done_callback(lambda task: self._ended(task, policy))

    async def settled(self) -> None:
        """Wait until it is up and seems to stay so, or has ended.

        Raises:
            OSError: its supervisor could not be started.
        """
        up = asyncio.ensure_future(self.up.wait())
        await asyncio.wait((up, self._task), return_when=asyncio.FIRST_COMPLETED)
        up.cancel()
        await asyncio.wait((self._task,), timeout=SETTLE_S)
        if not self.up.is_set() and not self._task.cancelled() and (failed := self._task.exception()):
            raise failed

    def stop(self) -> None:
        """End it with all that it started; `over` is set when that is done."""
        self._task.cancel()

    # What the launcher tells

    def started(self) -> None:
        """The program is up."""
        self.up.set()
        if self._observer is not None:
            self._observer.job_started(self.id, self.command, self._action)
        for piece in self._early:
            self._pump(*piece)
        self._early.clear()

    def output(self, stream: str, text: str) -> None:
        """Take what it prints; what comes before the start is known is recorded after it."""
        torn = self._stream not in ("", stream) and not self._newest.endswith("\n")
        self._newest = (self._newest + "\n" * torn + text)[-KEPT:]
        self._stream = stream
        self._heard.set()
        if self.up.is_set():
            self._pump(stream, text)
        else:
            self._early.append((stream, text))

    def _record(self, stream: str, text: str, skipped: int) -> None:
        if self._observer is not None:
            self._observer.job_output(self.id, stream, text, skipped)

    def _ended(self, task: asyncio.Task[ProcessResult], policy: SandboxPolicy) -> None:
        self._over_at = time.monotonic()
        ended, code = Ended.CANCELLED, None
        if task.cancelled():
            self.told = f"stopped after {duration_text(self.age_s)}"
        elif failed := task.exception():
            ended, self.told = Ended.LOST, f"lost after {duration_text(self.age_s)}: {failed}"
        else:
            self.result = task.result()
            ended, code = self.result.ended, self.result.return_code
            self.told = end_text(self.result, policy, self.age_s)
        self._pump.flush()
        if self.up.is_set() and self._observer is not None:
            self._observer.job_ended(self.id, ended.value, code, self.told)
        self.over.set()
        self._heard.set()


class Sessions:
    """Processes, jobs and operator's shells of all agents of one sandbox, as the agents' lives reach them."""

    def __init__(self) -> None:
        self.shells: dict[str, OperatorShell] = {}
        """Shells that are open, by agent."""
        self._trees: dict[str, list[ProcessTree]] = {}
        self._frozen: set[str] = set()
        self._jobs: dict[str, dict[str, BackgroundJob]] = {}
        self._numbers = itertools.count(1)

    # Processes

    def new_tree(self, agent: str, kind: TreeKind, name: str, words: str) -> ProcessTree:
        """A tree for a run that is about to begin; it is forgotten once it is over."""
        tree = ProcessTree(kind, name, clean_line(words, limit=200))
        if agent in self._frozen:
            tree.freeze()
        self._trees[agent] = [*self.processes(agent), tree]
        return tree

    def processes(self, agent: str) -> list[ProcessTree]:
        """The agent's process trees that are not over, oldest first."""
        return [tree for tree in self._trees.get(agent, ()) if not tree.over.is_set()]

    def freeze(self, agent: str) -> None:
        """Stop all of the agent's processes where they are, and those of runs that are about to begin."""
        self._frozen.add(agent)
        for tree in self.processes(agent):
            tree.freeze()

    def thaw(self, agent: str) -> None:
        """Let all of the agent's processes continue."""
        self._frozen.discard(agent)
        for tree in self.processes(agent):
            tree.thaw()

    # The operator's shell

    def terminal(self, agent: str) -> Terminal | None:
        """The operator's terminal in the agent's sandbox, or None when it has no shell open."""
        shell = self.shells.get(agent)
        return shell.terminal if shell is not None and shell.terminal.open else None

    def return_shell(self, agent: str, note: str) -> None:
        """Let the operator's shell end in good order; its action finishes soon after."""
        if shell := self.shells.get(agent):
            shell.hand_back(note)

    # Background jobs

    def jobs(self, agent: str) -> list[BackgroundJob]:
        """An agent's jobs, oldest first: all that run, and the newest of those that ended."""
        return list(self._jobs.get(agent, {}).values())

    def running_jobs(self, agent: str) -> list[BackgroundJob]:
        """Those of an agent's jobs that have not ended."""
        return [job for job in self.jobs(agent) if not job.over.is_set()]

    def job(self, agent: str, ident: str) -> BackgroundJob:
        """One job.

        Raises:
            PathError: the agent has no job of that name in this session.
        """
        job = self._jobs.get(agent, {}).get(ident)
        if job is None:
            known = ", ".join(job.id for job in self.jobs(agent)) or "none"
            raise PathError(ErrorCode.NOT_FOUND, f"There is no job {ident!r} in this session; jobs: {known}.")
        return job

    async def start_job(
        self,
        agent: str,
        command: str,
        launch: Launch,
        cwd: int,
        *,
        launcher: Launcher,
        jail: Confinement,
        action: str = "",
        observer: SessionObserver | None = None,
        name: str = "",
        standard: tuple[int, ...] = (),
    ) -> BackgroundJob:
        """Start a program and return when it is up, or has ended already.

        Args:
            agent: whose job it is.
            command: as it was asked for, in words.
            launch: executable, arguments and the whole environment.
            cwd: descriptor of the working directory; may be closed when this has returned.
            launcher: starts it, and says with its policy what it may use.
            jail: what holds it to the root.
            action: id of the action that starts it.
            observer: records its life; None where nothing does.
            name: what it is called; by default its action's number says that.
            standard: descriptors of its standard input and output, where somebody speaks with it.

        Raises:
            PathError: the agent has as many jobs as the policy allows.
            OSError: the supervisor could not be started.
            asyncio.CancelledError: after the program has ended.
        """
        policy = launcher.policy
        self._make_room(agent, policy.jobs)
        name = name or f"j{action.lstrip('a') or next(self._numbers)}"
        job = BackgroundJob(name, command, action, observer)
        run = Launcher(launcher.root, policy.for_jobs).run(
            launch,
            cwd,
            jail=jail,
            limit_s=policy.job_s,
            output=job.output,
            standard=standard,
            started=job.started,
            tree=self.new_tree(agent, TreeKind.JOB, job.id, command),
        )
        job.run(run, policy)
        self._jobs.setdefault(agent, {})[job.id] = job
        try:
            await run_to_completion(job.settled(), on_cancel=job.stop)
        finally:
            if not job.up.is_set():
                del self._jobs[agent][job.id]
        return job

    def _make_room(self, agent: str, most: int) -> None:
        running = self.running_jobs(agent)
        if len(running) >= most:
            raise PathError(
                ErrorCode.NOT_ALLOWED,
                f"No more than {most} jobs may run at a time, and these do: {jobs_text(running)}. "
                f"End one first, as with: stop_job {running[0].id}",
            )
        over = [job.id for job in self.jobs(agent) if job.over.is_set()]
        for ident in over[: -ENDED_KEPT + 1]:
            del self._jobs[agent][ident]

    def stop_job(self, agent: str, job: str) -> None:
        """End one job; its end is observed soon after. Nothing happens where it has ended."""
        if instance := self._jobs.get(agent, {}).get(job):
            instance.stop()

    def stop_jobs(self, agent: str) -> None:
        """End all of the agent's background jobs; nothing more of it is frozen from now on."""
        self._frozen.discard(agent)
        for job in self.running_jobs(agent):
            job.stop()

    async def close(self, agent: str) -> None:
        """End all of the agent's jobs, and return when all ends were observed; its shell ended before."""
        for job in self.running_jobs(agent):
            job.stop()
        for job in self.jobs(agent):
            await job.over.wait()
        self._jobs.pop(agent, None)


def jobs_text(jobs: Sequence[BackgroundJob]) -> str:
    """Jobs by name and command, on one line."""
    return ", ".join(f"{job.id} {clean_line(job.command, limit=60)}" for job in jobs)


def end_text(result: ProcessResult, policy: SandboxPolicy, ran_s: float) -> str:
    """How a job ended, in words."""
    after = f" after {duration_text(ran_s)}"
    left = f"; what it left running was ended too ({result.leftover})" if result.leftover else ""
    match result.ended:
        case Ended.EXIT:
            return f"exited {result.return_code}{after}{left}"
        case Ended.SIGNAL:
            return f"ended by signal {signal_name(result.return_code or 0)}{after}"
        case Ended.TIMEOUT:
            return f"ended{after}, as long as a job may run"
        case Ended.OUTPUT:
            return f"ended{after}: it wrote more than {size_text(policy.output_bytes)} of output, the limit"
        case Ended.LOST:
            return f"its supervisor was killed{after}; all of its processes were ended"
        case _:
            return f"ended{after}: {result.problem}"


def duration_text(seconds: float) -> str:
    """A time for people, in one unit: `3 s`, `12 min`, `2.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
