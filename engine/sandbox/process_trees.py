"""The process trees of agents, as the cockpit reaches them: frozen, thawed, and looked at.

Each run of the launcher is one tree: a command's, a job's or the operator's shell. What is said of a tree is
what its supervisor saw; nothing is inferred from having asked. A frozen agent starts no program either: its
next run waits until it is thawed.

What a supervisor says of its command on its status pipe, line by line.

`up`, `started`, an `answer` to each letter on its life line, `ending` before it ends the command because that
line was cut, and in the end a report.
"""

from __future__ import annotations

import ast
import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from engine.core.sandbox import Census, TreeKind
from engine.core.text import clean_line

_MOST_BYTES = 64 * 1024
Look = dict[str, Any]
"""What `engine.sandbox.process_table.ProcessFreezer.look` found."""


class Status(asyncio.Protocol):
    """Receives what the supervisor says; only the supervisor holds the pipe, so its end is the supervisor's.

    Args:
        started: called once, when the program has replaced the supervisor's child.
        told: called with each look at the processes, and whether it answers a letter.
    """

    def __init__(self, started: Callable[[], None], message: Callable[[Look, bool], None]) -> None:
        self._started = started
        self._told = message
        self._rest = b""
        self.up = False
        """Whether the supervisor came to life."""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the pipe is closed."""

    @property
    def report(self) -> dict[str, Any] | None:
        """The supervisor's last word, or None when it died before."""
        return _read(self._rest)

    def data_received(self, data: bytes) -> None:
        """Take whole lines in, and keep what follows the last."""
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[:_MOST_BYTES]
        for line in lines:
            kind, _, words = line.partition(b" ")
            if line == b"up":
                self.up = True
            elif line == b"started":
                self._started()
            elif kind in (b"answer", b"ending") and (look := _read(words)) is not None:
                self._told(look, kind == b"answer")

    def connection_lost(self, exc: Exception | None) -> None:
        """The supervisor has ended."""
        self.finish()

    def finish(self) -> None:
        """Expect nothing more; harmless when done twice."""
        if not self.ended.done():
            self.ended.set_result(None)


def _read(text: bytes) -> dict[str, Any] | None:
    try:
        answer = ast.literal_eval(text.decode("utf-8", "replace"))
    except (SyntaxError, ValueError):
        return None
    return answer if isinstance(answer, dict) else None


NAME_LIMIT = 40
"""Characters that are shown of what a process calls itself."""


class Supervised(Protocol):
    """What the launcher lets be done to a run."""

    @property
    def ending(self) -> bool:
        """Whether its life line is cut."""

    def tell(self, letter: bytes) -> bool:
        """Ask the supervisor for something; False when its life line is cut already."""

    def hold_clock(self, held: bool) -> None:
        """Let the time that the supervisor is waited for stand still, or continue."""


class ProcessTree:
    """The processes of one run of the launcher, from before its start to the end of the last of them.

    Args:
        kind: whose they are.
        name: id of the action or job.
        words: the command, as it was asked for.
    """

    def __init__(self, kind: TreeKind, name: str, words: str) -> None:
        self.kind, self.name, self.words = kind, name, words
        self.over = asyncio.Event()
        """Set once every process was seen to be gone, or could not be ended."""
        self.remaining = 0
        """Processes that could not be ended."""
        self.last = Census()
        """What was seen last."""
        self._run: Supervised | None = None
        self._warm = asyncio.Event()
        self._warm.set()
        self._asked: deque[asyncio.Future[Census | None]] = deque()

    @property
    def running(self) -> bool:
        """Whether it has, or may have, processes."""
        return self._run is not None and not self.over.is_set()

    @property
    def ending(self) -> bool:
        """Whether it is being ended."""
        return self._run is not None and self._run.ending

    @property
    def frozen(self) -> bool:
        """Whether it is to stand still."""
        return not self._warm.is_set()

    # What agents' lives do to it

    def freeze(self) -> None:
        """Have its processes stopped; a run that has not begun does not begin."""
        if not self.frozen:
            self._warm.clear()
            self._tell(b"f")
            if self._run is not None:
                self._run.hold_clock(True)

    def thaw(self) -> None:
        """Let its processes continue."""
        if self.frozen:
            self._warm.set()
            self._tell(b"t")
            if self._run is not None:
                self._run.hold_clock(False)

    async def look(self, limit_s: float) -> Census | None:
        """What its supervisor sees now; None when it does not answer in time or has ended."""
        answer = self._tell(b"l")
        await asyncio.wait({answer}, timeout=limit_s)
        return answer.result() if answer.done() else None

    async def ended(self) -> None:
        """Return when every process was seen to be gone, or could not be ended."""
        await self.over.wait()

    def _tell(self, letter: bytes) -> asyncio.Future[Census | None]:
        answer: asyncio.Future[Census | None] = asyncio.get_running_loop().create_future()
        if self.running and self._run is not None and self._run.tell(letter):
            self._asked.append(answer)
        else:
            answer.set_result(None)
        return answer

    # What the launcher tells

    async def may_start(self) -> None:
        """Return when the run may begin."""
        await self._warm.wait()

    def mark_started(self, run: Supervised) -> None:
        """There are processes from now on."""
        self._run = run

    def set_census(self, look: Look, answers: bool) -> None:
        """Take in what the supervisor saw; the names are the processes' own choice."""
        names = tuple(clean_line(name, limit=NAME_LIMIT) or "?" for name in look["names"])
        self.last = Census(look["alive"], look["going"], look["frozen"], names)
        if answers and self._asked:
            self._asked.popleft().set_result(self.last)

    def is_over(self, remaining: int = 0) -> None:
        """Every process is gone, or could not be ended."""
        self.remaining = remaining
        self.over.set()
        while self._asked:
            self._asked.popleft().set_result(None)
