"""Splitting a command line into words, without a shell.

What only a shell would do is refused with a message rather than passed on as a literal word, since a
program that gets `>` as an argument fails in ways that are hard to read.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

_OPERATORS = {
    "|": "Run the commands one after the other.",
    "&": "Run the commands one after the other; what is to go on in the background has the command start.",
    ";": "Run the commands one after the other.",
    ">": "Use the write command to put text into a file.",
    "<": "Give the program the file's name instead.",
    "`": "Run the inner command first and use what it prints.",
    "$(": "Run the inner command first and use what it prints.",
    "\n": "Run one command at a time.",
}
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
            raise CommandLineError(f"The command cannot be read: {_quote_problem(error)}.") from None
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


def _quote_problem(error: ValueError) -> str:
    return "a quote is not closed" if "quotation" in str(error) else "it ends in a backslash"


def _refuse_shell_syntax(command: str) -> None:
    plain_to = 0
    for found in _WORTH_A_LOOK.finditer(command):
        mark, position = found[0], found.start()
        if mark in ("'", '"'):
            return  # it is not closed, which is told elsewhere
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
    for operator, advice in _OPERATORS.items():
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
