"""The operator's shell in an agent's jail, from its start to the end of its last process.

It is one run of the launcher with a terminal: confined, limited and ended as any command of the agent's.
Handing back asks the shell to end, as a terminal does that goes away; what does not end within a second is
ended by the life line. Source: steering S3 (hand-back within 2 s).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from engine.domain.action import ErrorCode
from engine.domain.text import clean_line
from engine.sandbox.completion import to_the_end
from engine.sandbox.confinement import Confinement, Launch
from engine.sandbox.paths import PathError
from engine.sandbox.process import Launcher, ProcessResult
from engine.sandbox.programs import SYSTEM_PATH
from engine.sandbox.terminal import Terminal
from engine.sandbox.tree import Table
from engine.sandbox.trees import ProcessTree

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
                terminal=self.terminal.slave,
                tree=tree,
            )
        )

        def cut() -> None:
            run.cancel()

        return await to_the_end(self._until_end(run), on_cancel=cut)

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
    table = Table()
    supervisor = table.parent.get(leader, 0)
    if supervisor <= 1:
        return ()
    found = (_arguments(pid) for pid in table.below(supervisor) if pid != leader)
    return tuple(words for words in found if words)


def _arguments(pid: int) -> tuple[str, ...]:
    """The name of the program's file, which is nobody's to choose, and its arguments."""
    process = Path(f"/proc/{pid}")
    try:
        name = (process / "exe").readlink().name
        words = (process / "cmdline").read_bytes().decode("utf-8", "replace").rstrip("\0").split("\0")
    except OSError:
        return ()
    return (name, *words[1:])
