"""SimpleCoder's command `shell`: the operator works in the agent's sandbox with their own hands.

It is an action like any other, so it passes the gate, is recorded, cut off by Stop, and unknown after a kill;
while it lasts the agent stands at its step. Source: steering S3, textual-craft §4.3 ii.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from engine.domain.action import ErrorCode, ResultStatus, ToolResult
from engine.domain.ports import CallContext
from engine.domain.stopping import TreeKind
from engine.sandbox.completion import to_the_end
from engine.sandbox.files import SandboxFiles
from engine.sandbox.paths import PathError
from engine.sandbox.process import Ended, Launcher, ProcessResult
from engine.sandbox.sessions import Sessions
from engine.sandbox.shell import OperatorShell, shell_command, shell_launch
from engine.sandbox.shell_notes import NotesPlace
from engine.sandbox.terminal import Terminal
from engine.tools.run_outcome import run_result
from engine.tools.simple_coder_jobs import Prepare


class ShellCommand:
    """The handler of the command.

    Args:
        sessions: where an open shell can be reached.
        launcher: runs it.
        files: the sandbox.
        prepare: makes a program ready, with its jail and environment.
    """

    def __init__(self, sessions: Sessions, launcher: Launcher, files: SandboxFiles, prepare: Prepare) -> None:
        self._sessions, self._launcher, self._files, self._prepare = sessions, launcher, files, prepare

    async def call(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
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
            return _refused(
                f"No terminal could be opened: {error.strerror}. Close another one and try again."
            )
        shell = OperatorShell(terminal)
        place = NotesPlace(self._files, context.agent)
        self._sessions.shells[context.agent] = shell
        try:
            outcome = await self._live(shell, place, context)
            shell.terminal.close()
            return await to_the_end(asyncio.to_thread(self._answer, shell, place, context, outcome))
        finally:
            shell.terminal.close()
            del self._sessions.shells[context.agent]
            with suppress(PathError):  # the next shell tries again
                await to_the_end(asyncio.to_thread(place.remove))

    async def _live(
        self, shell: OperatorShell, place: NotesPlace, context: CallContext
    ) -> ProcessResult | None:
        program, script = shell_command()
        plain = replace(context, session=replace(context.session, venv=None))  # the shell activates its own
        async with self._prepare([program], plain) as (launch, cwd, jail):
            rc = await to_the_end(asyncio.to_thread(place.prepare, context.session, script))
            limit_s = self._launcher.policy.shell_s
            tree = self._sessions.trees.plant(context.agent, TreeKind.SHELL, context.action, "your shell")
            return await shell.live(self._launcher, shell_launch(launch, rc), cwd, jail, limit_s, tree)

    def _answer(
        self, shell: OperatorShell, place: NotesPlace, context: CallContext, outcome: ProcessResult | None
    ) -> ToolResult:
        policy = self._launcher.policy
        if outcome is not None and outcome.ended in (Ended.LAUNCH, Ended.JAIL):
            return run_result(["shell"], outcome, policy.shell_s, policy)
        notes = place.read(context.session)
        processes = shell.programs(notes.commands)
        data: dict[str, Any] = {
            "message": _message(shell, len(shell.running) or (outcome.leftover if outcome else 0)),
            "commands": list(notes.commands),
            "cwd": notes.session.cwd,
            "venv": notes.session.venv,
            "variables": asdict(notes.variables),
            "processes": processes,
            "note": shell.note,
        }
        if outcome is None or outcome.ended in (Ended.EXIT, Ended.SIGNAL):
            return ToolResult(ResultStatus.SUCCESS, data)
        failed = run_result(["shell"], outcome, policy.shell_s, policy)
        return ToolResult(failed.status, {**data, "message": failed.message}, failed.code)


def _message(shell: OperatorShell, ended: int) -> str:
    how = "The operator handed the shell back" if shell.handed_back else "The operator left the shell"
    which = f"; {ended} process{'es' * (ended != 1)} that still ran ended with it" if ended else ""
    return f"{how}{which}."


def _refused(message: str) -> ToolResult:
    return ToolResult(ResultStatus.ERROR, {"message": message}, ErrorCode.NOT_ALLOWED)
