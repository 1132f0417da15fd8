"""What the operator's shell is started with, and what it leaves behind: where it stood, and what was done.

The shell notes its state at each prompt and at its end in a directory beneath the sandbox root. Whatever
is read there came out of the jail, where anything could have written it: it is capped and checked, and
names of variables are all that is ever noted of them, because values may have been typed with echo off.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.domain.action import SandboxSession
from engine.domain.text import clean_line
from engine.sandbox.files import SandboxFiles
from engine.sandbox.paths import PathError
from engine.sandbox.programs import validate_venv

NOTES_LIMIT = 64 * 1024
HISTORY_LIMIT = 1024 * 1024
COMMANDS = 100
"""Newest commands that are kept of a session."""
COMMAND_LIMIT = 200
VARIABLES = 100
"""Names of variables that are kept of each kind."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


@dataclass(frozen=True, slots=True)
class Variables:
    """Names of the variables that a shell set, by what became of them."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShellNotes:
    """What is known of a shell after its end."""

    session: SandboxSession
    """Where it stood; parts of it that no agent could go on with are as they were before."""
    commands: tuple[str, ...] = ()
    """The newest lines that were typed at its prompt, oldest first."""
    variables: Variables = field(default_factory=Variables)


class NotesPlace:
    """The directory in which one shell is told and tells.

    Args:
        files: the sandbox.
        owner: the agent whose shell it is.
    """

    def __init__(self, files: SandboxFiles, owner: str) -> None:
        self._files = files
        self._path = f"{files.policy.tmp}/shell-{owner}"

    def prepare(self, session: SandboxSession, script: str) -> Path:
        """Make the directory anew with what the shell reads when it starts; where that is.

        Args:
            session: where the shell begins.
            script: `shell.bash` or `shell.sh`.

        Raises:
            PathError: it cannot be written.
        """
        self.remove()
        self._files.make_directory(self._path)
        root, venv = self._files.root, session.venv
        told = {"root": root, "place": root / self._path, "venv": root / venv if venv is not None else ""}
        head = "".join(f"__pilothouse_{name}={shlex.quote(str(value))}\n" for name, value in told.items())
        text = Path(__file__).with_name(script).read_text(encoding="utf-8")
        self._files.write(f"{self._path}/rc", (head + text).encode())
        return root / self._path / "rc"

    def remove(self) -> None:
        """Take the directory away, also one that a killed shell has left."""
        status = self._files.entry(self._path)
        if status is not None and stat.S_ISDIR(status.st_mode):
            self._files.remove_tree(self._path)
        elif status is not None:
            self._files.remove(self._path)

    def read(self, before: SandboxSession) -> ShellNotes:
        """What the shell noted.

        Args:
            before: the session in which it began.
        """
        noted = [os.fsdecode(part) for part in self._bytes("notes", NOTES_LIMIT).split(b"\0")]
        where, venv, *said = noted if len(noted) > 2 else ["", "", ""]
        names = {sign: _names(sign, said) for sign in "+*-"}
        return ShellNotes(
            session=self._venv(self._cwd(before, where), venv) if where else before,
            commands=_commands(self._bytes("history", HISTORY_LIMIT)),
            variables=Variables(names["+"], names["*"], names["-"]),
        )

    def _bytes(self, name: str, limit: int) -> bytes:
        try:
            return self._files.read_bytes(f"{self._path}/{name}", limit)
        except PathError:
            return b""

    def _cwd(self, before: SandboxSession, where: str) -> SandboxSession:
        try:
            path = self._files.relative(where)
            with self._files.directory(path):
                return replace(before, cwd=path)
        except PathError:
            return before

    def _venv(self, before: SandboxSession, venv: str) -> SandboxSession:
        if not venv:
            return replace(before, venv=None)
        try:
            path = self._files.relative(venv)
            validate_venv(self._files, path)
        except PathError:
            return before
        return replace(before, venv=path)


def _names(sign: str, said: list[str]) -> tuple[str, ...]:
    names = {entry[1:] for entry in said if entry[:1] == sign and _NAME.fullmatch(entry[1:])}
    return tuple(sorted(names)[:VARIABLES])


def _commands(history: bytes) -> tuple[str, ...]:
    lines = history.decode("utf-8", "replace").splitlines()
    cleaned = (clean_line(line, limit=COMMAND_LIMIT) for line in lines)
    return tuple([line for line in cleaned if line][-COMMANDS:])
