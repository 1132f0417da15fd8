"""The stand-alone SimpleCoder shell: a person at the same tool that agents use.

The transcript is as the seed (the brain and the hands) has it. There is no second dispatcher: a line becomes
one call of `SimpleCoder`, with the operator as its actor.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import re
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from engine.core.actions import ErrorCode, ResultStatus, SandboxSession, ToolResult
from engine.core.ports import CallContext, CommandSpec, Parameter
from engine.core.text import clean_line
from engine.sandbox.files import make_root
from engine.sandbox.jobs import jobs_text
from engine.sandbox.paths import PathError
from engine.sandbox.policy import SandboxPolicy
from engine.tools.simple_coder import SimpleCoder

BANNER = "--- SimpleCoder Interactive Session ---\nType 'help' for a list of commands, or 'exit' to quit."
ACTOR = "operator:shell"
_WHOLE_REST = {"run": "command", "start": "command", "write": "content", "append": "content"}
"""Commands whose last argument is the rest of the line, with this argument's name."""


async def coder(
    root: Path,
    commands: Sequence[str] | None = None,
    *,
    policy: SandboxPolicy | None = None,
    source: TextIO | None = None,
    out: TextIO | None = None,
) -> int:
    """Run a SimpleCoder session on a sandbox root.

    With `commands`, or when the source is no terminal, each command gives one line of JSON; else the
    session is interactive.

    Args:
        root: the sandbox root; made when it is missing.
        commands: command lines to run instead of reading any.
        policy: limits and grants.
        source: where lines come from; standard input by default.
        out: where answers go; standard output by default.

    Returns:
        0 when the session was interactive or every command succeeded, 1 when one did not, 2 when the
        root cannot be used.
    """
    source, out = source or sys.stdin, out or sys.stdout
    try:
        make_root(root)
        tool = SimpleCoder(root, policy)
    except PathError as error:
        print(f"pilothouse: there is no sandbox to work in: {clean_line(error.message)}", file=sys.stderr)
        return 2
    try:
        shell = Shell(tool, out)
        if commands is not None:
            return await shell.batch(commands)
        if source.isatty():
            return await shell.interact(source)
        return await shell.read_lines(source)
    finally:
        if running := tool.sessions.running_jobs(""):
            print(f"background jobs end with this shell: {jobs_text(running)}", file=sys.stderr)
        await tool.sessions.close("")
        tool.close()


class Shell:
    """One session: lines in, JSON out; a failing line never ends it."""

    def __init__(self, tool: SimpleCoder, out: TextIO) -> None:
        self._tool = tool
        self._out = out
        self.session = SandboxSession()
        self._running: asyncio.Task[ToolResult] | None = None

    async def batch(self, lines: Sequence[str]) -> int:
        """Run the lines; 0 when all succeeded."""
        good = True
        for line in lines:
            good = await self._answer_line(line) and good
        return 0 if good else 1

    async def read_lines(self, source: TextIO) -> int:
        """Run lines until the source ends or says `exit`; blank lines and `#` comments are skipped."""
        good = True
        while line := await asyncio.to_thread(source.readline):
            text = line.strip()
            if text == "exit":
                break
            if text and not text.startswith("#"):
                good = await self._answer_line(text) and good
        return 0 if good else 1

    async def _answer_line(self, line: str) -> bool:
        result = await self.execute(line)
        self._say(_inert(json.dumps(result.as_json())))
        return result.ok

    async def interact(self, source: TextIO) -> int:
        """Prompt until `exit` or the end of input; ctrl-C ends the running command, not the session."""
        self._say(BANNER)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        try:
            while (line := await asyncio.to_thread(self._ask, source)) is not None:
                text = line.strip()
                if text == "exit":
                    break
                if text:
                    result = await self.execute(text)
                    self._say(_inert(json.dumps(result.as_json(), indent=2)))
        finally:
            loop.remove_signal_handler(signal.SIGINT)
        self._say("Exiting.")
        return 0

    async def execute(self, line: str) -> ToolResult:
        """Run one line and keep the session it leaves."""
        try:
            command, args = parse_line(line, self._tool.commands.get)
        except LineError as error:
            return ToolResult(ResultStatus.ERROR, {"message": str(error)}, error.code)
        context = CallContext(self.session, actor=ACTOR)
        self._running = asyncio.create_task(self._tool.call(command, args, context))
        try:
            result = await self._running
        except asyncio.CancelledError:
            if not self._interrupted():
                raise
            message = "Interrupted; everything it started has ended."
            return ToolResult(ResultStatus.FAILURE, {"message": message}, ErrorCode.CANCELLED)
        finally:
            self._running = None
        if result.session is not None:
            self.session = result.session
        return result

    def _interrupted(self) -> bool:
        """Whether the command was cancelled, not this shell."""
        task = asyncio.current_task()
        return task is not None and task.cancelling() == 0

    def _interrupt(self) -> None:
        if self._running is not None:
            self._running.cancel()
        else:
            self._say("\n(type exit or press ctrl-D to leave)")

    def _ask(self, source: TextIO) -> str | None:
        """One line from the terminal, with history where readline exists; None at the end of input."""
        prompt = clean_line(self.session.prompt) + " "
        if source is sys.stdin and self._out is sys.stdout:
            _load_history()
            try:
                return input(prompt)
            except EOFError:
                self._say("")
                return None
        self._out.write(prompt)
        self._out.flush()
        return source.readline() or None

    def _say(self, text: str) -> None:
        print(text, file=self._out, flush=True)


class LineError(Exception):
    """A line that is no command; its text says why."""

    code = ErrorCode.BAD_ARGUMENTS


def parse_line(line: str, spec_of: Callable[[str], CommandSpec | None]) -> tuple[str, dict[str, Any]]:
    """The command and its arguments by name.

    Words are split as a shell would. The last argument of run, start, write and append is the rest of the
    line as it was typed, quotes and all, unless the rest is one quoted word.

    Raises:
        LineError: a quote is open, or there are more words than arguments.
    """
    try:
        words = shlex.split(line)
    except ValueError:
        raise LineError("A quote is not closed, or the line ends in a backslash; nothing was run.") from None
    if not words:
        raise LineError("The line is empty; type 'help' for a list of commands.")
    command, given = words[0], words[1:]
    spec = spec_of(command)
    if spec is None:  # the tool says which commands there are
        return command, {}
    names = [parameter.name for parameter in spec.parameters]
    if command in _WHOLE_REST and len(given) >= len(names):
        before = len(names) - 1
        given = [*given[:before], _rest(line, skip=before + 1)]
    if len(given) > len(names):
        takes = " ".join(names) or "no arguments"
        raise LineError(f"{command} takes {takes}; quote an argument that has blanks in it.")
    return command, {
        parameter.name: _value(parameter, word)
        for parameter, word in zip(spec.parameters, given, strict=False)
    }


def _value(parameter: Parameter, word: str) -> Any:
    """A word as what the argument is; one that does not fit stays, and the tool says so."""
    try:
        return {"integer": int, "number": float}.get(parameter.type, str)(word)
    except ValueError:
        return word


def _rest(line: str, skip: int) -> str:
    """The line after some words; unquoted when it is one quoted word."""
    rest = line.strip()
    for _ in range(skip):
        rest = _after_word(rest)
    if rest[:1] in ("'", '"') and len(words := shlex.split(rest)) == 1:
        return words[0]
    return rest


_WORD = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+\s*""", re.DOTALL)


def _after_word(text: str) -> str:
    match = _WORD.match(text)
    return text[match.end() :] if match else ""


def _inert(text: str) -> str:
    """JSON that a terminal only shows: json escapes everything but DEL."""
    return text.replace("\x7f", "\\u007f")


def _load_history() -> None:
    """Line editing and history for `input`, where the platform has them."""
    with suppress(ImportError):
        importlib.import_module("readline")
