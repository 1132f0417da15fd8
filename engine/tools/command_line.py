"""Splits a command line into words without a shell, and turns a finished program into a tool's result.

What only a shell would do is refused with a message rather than passed on as a literal word, since a program
that gets `>` as an argument fails in ways that are hard to read. Only here does a program's output decide
that the network was the reason; recovery goes by the code alone.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.core.actions import ErrorCode, ResultStatus, ToolResult
from engine.sandbox.policy import Network, SandboxPolicy, Tier, size_text
from engine.sandbox.process import Ended, ProcessResult, signal_name

_DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_SIGNS = {name: re.compile("|".join(signs)) for name, signs in _DATA["signs"].items()}
_WORTH_A_LOOK = re.compile(r"""\\.|'[^']*'|"(?:[^"\\]|\\.)*"|['"\\|&;><`$\n*?]""", re.DOTALL)
"""A quoted or escaped part whole, or a character that only a shell would understand."""
LINE_LIMIT = 64 * 1024
"""Characters of a command given as one string; longer texts belong into a file."""
_VARIABLE = re.compile(r"\$(?:\w+|\{)")


class CommandLineError(Exception):
    """A command line that cannot be run; its text says what to do."""


def split_command(command: str | Sequence[str]) -> list[str]:
    """The words of a command; a sequence is taken as words already.

    Raises:
        CommandLineError: it is empty, a quote is open, a word holds a NUL, or it needs a shell.
    """
    if isinstance(command, str):
        if len(command) > LINE_LIMIT:
            raise CommandLineError(
                f"The command has {len(command):,} characters and {LINE_LIMIT:,} is the most. Put what is "
                "long into a file and give the program its name."
            )
        _refuse_shell_syntax(command.strip())
        try:
            words = shlex.split(command)
        except ValueError as error:
            why = "a quote is not closed" if "quotation" in str(error) else "it ends in a backslash"
            raise CommandLineError(f"The command cannot be read: {why}.") from None
    else:
        words = list(command)
    if not words or not words[0]:
        raise CommandLineError("The command is empty; give a program and its arguments.")
    if any("\0" in word for word in words):
        raise CommandLineError("The command holds a NUL character.")
    try:
        "".join(words).encode()
    except UnicodeEncodeError:
        raise CommandLineError("The command is not valid Unicode.") from None
    return words


def _refuse_shell_syntax(command: str) -> None:
    plain_to = 0
    for match in _WORTH_A_LOOK.finditer(command):
        mark, position = match[0], match.start()
        if mark in ("'", '"'):
            return  # it is not closed, which is reported elsewhere
        if len(mark) > 1 or mark == "\\":
            continue
        _refuse_unquoted(command, position)
        if mark in "*?" and position >= plain_to:
            plain_to = _plain_word_end(command, position)
            if not plain_to:
                raise CommandLineError(
                    f"There is no shell to expand {mark!r}. Name the files, or quote it if it is "
                    "meant as it stands."
                )


def _refuse_unquoted(command: str, position: int) -> None:
    for operator, advice in _DATA["operators"].items():
        if command.startswith(operator, position):
            shown = "a line break" if operator == "\n" else repr(operator)
            raise CommandLineError(
                f"There is no shell, so {shown} cannot be used. {advice} "
                "Quote it if it is meant as it stands, as in 'httpx>=0.27'."
            )
    if match := _VARIABLE.match(command, position):
        raise CommandLineError(
            f"There is no shell to expand {match[0]!r}. Write the value itself, or quote it if it is "
            "meant as it stands."
        )


def _plain_word_end(command: str, position: int) -> int:
    """Where the word ends, if it is an address or a version: shells leave `*` and `?` alone there. Else 0."""
    start = max(command.rfind(" ", 0, position), command.rfind("\t", 0, position)) + 1
    word = re.split(r"\s", command[start:], maxsplit=1)[0]
    return start + len(word) if "://" in word or "==" in word else 0


NETWORK_OFF = "The sandbox's network is off; `network ports`, --network ports or pilothouse.toml allow it"
"""Said where a program fails for want of it: the line of the bar, the option, the settings."""
_NETWORK_PROGRAMS = frozenset({"pip", "pip3", "git", "npm"})
_LAUNCH_FAILURES = {
    os.strerror(getattr(errno, failure["error"])): (
        ErrorCode[failure["code"]],
        failure["why"].replace("{machine}", os.uname().machine),
    )
    for failure in _DATA["launch"]
}
"""What a refused start means, by the system's own words for it."""


def run_result(argv: list[str], outcome: ProcessResult, limit_s: float, policy: SandboxPolicy) -> ToolResult:
    """The seed's answer to `run`: return code and both streams, and why it failed when it did."""
    data: dict[str, Any] = {
        "return_code": outcome.return_code,
        "stdout": outcome.stdout,
        "stderr": outcome.stderr,
        "tier": outcome.tier.value,
    }
    if outcome.truncated:
        data["truncated"] = {"stdout": outcome.stdout_dropped, "stderr": outcome.stderr_dropped}
    beliefs = {"run.last.command": " ".join(argv), "run.last.return_code": outcome.return_code}
    if outcome.ended is Ended.LAUNCH:
        code, why = _LAUNCH_FAILURES.get(outcome.problem, (ErrorCode.INTERNAL, ""))
        message = f"{argv[0]!r} could not be started: {outcome.problem}. {why}".rstrip()
        return ToolResult(ResultStatus.ERROR, {"message": message}, code)
    if outcome.ended is Ended.JAIL:
        message = f"The jail could not be closed, so {argv[0]!r} did not run: {outcome.problem}."
        data = {"message": message, "return_code": outcome.return_code, "tier": outcome.tier.value}
        return ToolResult(ResultStatus.ERROR, data, ErrorCode.NOT_ALLOWED)
    if outcome.ended is Ended.EXIT and outcome.return_code == 0:
        return ToolResult(ResultStatus.SUCCESS, data, beliefs=beliefs)
    code, message = _failure(argv, outcome, limit_s, policy)
    if message:
        data["message"] = message
    if hint := _hint(outcome, code, policy):
        data["hint"] = hint
    return ToolResult(ResultStatus.FAILURE, data, code, beliefs=beliefs)


def _failure(
    argv: list[str], result: ProcessResult, limit_s: float, policy: SandboxPolicy
) -> tuple[ErrorCode, str]:
    match result.ended:
        case Ended.TIMEOUT:
            return ErrorCode.TIMEOUT, f"Ended after {limit_s:g} s, the time limit, with all of its processes."
        case Ended.OUTPUT:
            size = size_text(policy.output_bytes)
            return ErrorCode.TOO_LARGE, f"Ended: it wrote more than {size} of output, the limit."
        case Ended.MEMORY | Ended.PROCESSES:
            return ErrorCode.TOO_LARGE, f"Ended: {result.problem}."
        case Ended.DISK:
            return ErrorCode.NO_SPACE, f"Ended: {result.problem}."
        case Ended.LOST:
            return ErrorCode.INTERNAL, "Its supervisor was killed; all of its processes were ended."
        case Ended.CANCELLED:
            return ErrorCode.CANCELLED, "Cancelled."
        case Ended.SIGNAL:
            return ErrorCode.EXIT_STATUS, f"Ended by signal {signal_name(result.return_code or 0)}."
        case _:
            pass
    output = result.stdout + result.stderr
    if policy.network is Network.OFF and (sign := _SIGNS["network_off"].search(output)) is not None:
        return ErrorCode.NETWORK, f"{NETWORK_OFF}. {sign[0].strip()}"
    if is_network_failure(argv, result.stdout, result.stderr):
        return ErrorCode.NETWORK, ""
    return ErrorCode.EXIT_STATUS, ""


def _hint(result: ProcessResult, code: ErrorCode, policy: SandboxPolicy) -> str:
    """What an agent should know when it was the jail that said no."""
    output = result.stderr + result.stdout
    if result.ended in (Ended.EXIT, Ended.TIMEOUT) and _SIGNS["no_terminal"].search(output):
        return (
            "There is no terminal here and nothing to read. Give the input as arguments or in a file; the "
            "operator can take the shell, which has a terminal (key t)."
        )
    if code is ErrorCode.NETWORK and policy.network is not Network.ON:
        return f"The network is {policy.network} in this sandbox; only the operator can grant more."
    if result.tier is Tier.PATHS or not _SIGNS["refused"].search(output):
        return ""
    return "The jail may have refused something. Do not work around it: ask the operator; see `policy`."


def is_network_failure(argv: list[str], stdout: str, stderr: str) -> bool:
    """Whether a program failed because it could not reach a server.

    Package and repository programs say so anywhere in their output; of any other program only the
    last line on standard error counts, where an uncaught exception stands.
    """
    program = _program(argv)
    if program in _NETWORK_PROGRAMS:
        return _SIGNS["network"].search(stdout + stderr) is not None
    last = stderr.rstrip().rpartition("\n")[2]
    return _SIGNS["network"].search(last) is not None


def _program(argv: list[str]) -> str:
    """The program's name, `pip` for Python's module too."""
    return "pip" if argv[0].startswith("python") and argv[1:3] == ["-m", "pip"] else argv[0]
