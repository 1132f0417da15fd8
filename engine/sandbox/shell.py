"""The operator's shell in an agent's jail, from its start to the end of its last process.

It is one run of the launcher with a terminal: confined, limited and ended as any command of the agent's.
Handing back asks the shell to end, as a terminal does that goes away; what does not end within a second is
ended by the life line.

What the operator's shell is started with, and what it leaves behind: where it stood, and what was done.

The shell notes its state at each prompt and at its end in a directory beneath the sandbox root. Whatever
is read there came out of the jail, where anything could have written it: it is capped and checked, and
names of variables are all that is ever noted of them, because values may have been typed with echo off.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.core.actions import ErrorCode, SandboxSession
from engine.core.text import clean_line
from engine.sandbox.completion import run_to_completion
from engine.sandbox.files import SandboxFiles
from engine.sandbox.jail import Confinement, Launch
from engine.sandbox.paths import PathError
from engine.sandbox.process import Launcher, ProcessResult
from engine.sandbox.process_table import ProcessTable
from engine.sandbox.process_trees import ProcessTree
from engine.sandbox.programs import SYSTEM_PATH, validate_venv
from engine.sandbox.terminal import Terminal
from engine.value import dataclass, field, replace

ASKED_S = 1.0
"""Seconds that the shell has to end when it is asked."""
PROCESSES = 20
"""Processes that are named of those that ran at the hand-back."""
PROCESS_LIMIT = 200
_FOR_PROGRAMS_ALONE = ("PAGER", "GIT_PAGER", "GIT_TERMINAL_PROMPT", "PIP_NO_INPUT", "PIP_PROGRESS_BAR")
"""Settings of a command's environment that make programs ask nothing, which a person at a terminal undoes."""


class OperatorShell:
    """A shell with the operator at its terminal."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.note = ""
        """The operator's word at the hand-back."""
        self.running: tuple[tuple[str, ...], ...] = ()
        """Program and arguments of each process that still ran at the hand-back."""
        self._asked = asyncio.Event()

    @property
    def handed_back(self) -> bool:
        """True once the operator has handed the shell back, rather than left it with `exit`."""
        return self._asked.is_set()

    def hand_back(self, note: str) -> None:
        """Let the shell end in good order; harmless when done twice."""
        if not self.handed_back:
            self.note = note
            self._asked.set()

    async def live(
        self,
        launcher: Launcher,
        launch: Launch,
        cwd: int,
        jail: Confinement,
        limit_s: float,
        tree: ProcessTree | None = None,
    ) -> ProcessResult | None:
        """Run the shell to its end; None when it had to be ended by the life line at the hand-back.

        Raises:
            asyncio.CancelledError: after the whole tree has ended.
        """
        run = asyncio.create_task(
            launcher.run(
                launch,
                cwd,
                jail=jail,
                limit_s=limit_s,
                output=lambda _stream, _text: None,
                standard=(self.terminal.slave,),
                tree=tree,
            )
        )
        return await run_to_completion(self._until_end(run), on_cancel=run.cancel)

    async def _until_end(self, run: asyncio.Task[ProcessResult]) -> ProcessResult | None:
        asked = asyncio.create_task(self._asked.wait())
        await asyncio.wait({run, asked}, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if not run.done():
            self.running = await asyncio.to_thread(_running_below, self.terminal.leader)
            self.terminal.hang_up()
            await asyncio.wait({run}, timeout=ASKED_S)
            run.cancel()
        await asyncio.wait({run})
        return None if run.cancelled() else run.result()

    def programs(self, commands: Sequence[str]) -> list[str]:
        """The processes that still ran at the hand-back, in words.

        An argument is shown only where it was typed at the prompt in so many words: it may be the value of
        a variable that was read with echo off.
        """
        typed = "\n".join(commands)
        shown = [
            " ".join((name, *(word if word in typed else "…" for word in words)))
            for name, *words in self.running[:PROCESSES]
        ]
        more = len(self.running) - len(shown)
        lines = [clean_line(line, limit=PROCESS_LIMIT) for line in shown]
        return [*lines, f"and {more} more"] if more else lines


def shell_command(directories: Sequence[str] = SYSTEM_PATH) -> tuple[str, str]:
    """The shell of this machine and the name of the script that it reads: bash, or else sh.

    Raises:
        PathError: there is neither.
    """
    for name in ("bash", "sh"):
        for directory in directories:
            if Path(directory, name).is_file():
                return str(Path(directory, name)), f"shell.{name}"
    raise PathError(ErrorCode.NOT_FOUND, "Neither bash nor sh is installed on this machine.")


def shell_launch(launch: Launch, rc: Path) -> Launch:
    """How the shell is started.

    Args:
        launch: bash or sh, as a command of the agent's would be started.
        rc: what it reads first.
    """
    program = launch.executable
    env = {name: value for name, value in launch.env.items() if name not in _FOR_PROGRAMS_ALONE}
    # The agent could have put an .inputrc into the HOME of commands, which binds keys to what it likes.
    env |= {"TERM": "xterm-256color", "INPUTRC": "/etc/inputrc", "SHELL": program}
    if program.endswith("/bash"):
        return replace(launch, argv=(program, "--noprofile", "--rcfile", str(rc), "-i"), env=env)
    return replace(launch, argv=(program, "-i"), env={**env, "ENV": str(rc)})


def _running_below(leader: int) -> tuple[tuple[str, ...], ...]:
    """Program and arguments of all processes beside the shell that its supervisor has; blocking."""
    table = ProcessTable()
    supervisor = table.parent.get(leader, 0)
    if supervisor <= 1:
        return ()
    result = (_arguments(pid) for pid in table.below(supervisor) if pid != leader)
    return tuple(words for words in result if words)


def _arguments(pid: int) -> tuple[str, ...]:
    """The name of the program's file, which is nobody's to choose, and its arguments."""
    process = Path(f"/proc/{pid}")
    try:
        name = (process / "exe").readlink().name
        words = (process / "cmdline").read_bytes().decode("utf-8", "replace").rstrip("\0").split("\0")
    except OSError:
        return ()
    return (name, *words[1:])


NOTES_LIMIT = 64 * 1024
HISTORY_LIMIT = 1024 * 1024
COMMANDS = 100
"""Newest commands that are kept of a session."""
COMMAND_LIMIT = 200
VARIABLES = 100
"""Names of variables that are kept of each kind."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


@dataclass(frozen=True, slots=True)
class ShellNotes:
    """What is known of a shell after its end."""

    session: SandboxSession
    """Where it stood; parts of it that no agent could continue with are as they were before."""
    commands: tuple[str, ...] = ()
    """The newest lines that were typed at its prompt, oldest first."""
    variables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of the variables that it set: added, changed and removed ones."""


class ShellNotesDirectory:
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
        result = {"root": root, "place": root / self._path, "venv": root / venv if venv is not None else ""}
        head = "".join(f"__pilothouse_{name}={shlex.quote(str(value))}\n" for name, value in result.items())
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
        where, venv, *text = noted if len(noted) > 2 else ["", "", ""]
        signs = {"added": "+", "changed": "*", "removed": "-"}
        return ShellNotes(
            session=self._venv(self._cwd(before, where), venv) if where else before,
            commands=_commands(self._bytes("history", HISTORY_LIMIT)),
            variables={name: _names(sign, text) for name, sign in signs.items()},
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


def _names(sign: str, event: list[str]) -> tuple[str, ...]:
    names = {entry[1:] for entry in event if entry[:1] == sign and _NAME.fullmatch(entry[1:])}
    return tuple(sorted(names)[:VARIABLES])


def _commands(history: bytes) -> tuple[str, ...]:
    lines = history.decode("utf-8", "replace").splitlines()
    cleaned = (clean_line(line, limit=COMMAND_LIMIT) for line in lines)
    return tuple([line for line in cleaned if line][-COMMANDS:])
