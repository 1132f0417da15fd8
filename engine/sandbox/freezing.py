"""Freezing the processes of a command, and looking at them; loaded in the supervisor.

SIGSTOP cannot be caught, blocked or ignored, and a stopped process cannot fork. So the tree is whole when
every process that was found is stopped, and a second look, begun after that, finds no other. The supervisor
itself goes on: it keeps the life line, and SIGKILL ends stopped processes as any. Source: steering §3 idea 8.
"""

from __future__ import annotations

import os
import time

from engine.sandbox import tree

SIGCONT, SIGSTOP = 18, 19
FREEZE_S = 0.2
"""How long the first try may take; what is not stopped by then is reported as going on, and tried again."""
AGAIN_S, WATCH_S = 0.05, 0.5
"""Seconds between two looks at what is not all frozen yet, and at what is."""
NAMED = 20
"""Processes that are named in one look."""
_STOPPED = (b"T", b"t")

TYPE_CHECKING = False  # typing itself is slow to load
if TYPE_CHECKING:
    from typing import Any


class Frost:
    """Whether a command's processes are stopped, and for how long they were in all.

    Args:
        all_at_once: whether one signal to all that can be signalled reaches exactly the command's tree.
    """

    def __init__(self, all_at_once: bool) -> None:
        self._all_at_once = all_at_once
        self._since = self._before = 0.0
        self._own: set[int] = set()
        """Processes that had stopped themselves, or each other, before."""
        self.frozen = False
        self.whole = False
        """Whether the last look found all stopped."""

    @property
    def total_s(self) -> float:
        """Seconds for which it was frozen, in all."""
        return self._before + (time.monotonic() - self._since if self.frozen else 0.0)

    @property
    def wait_s(self) -> float:
        """Seconds until the next look at what is frozen."""
        return WATCH_S if self.whole else AGAIN_S

    def freeze(self) -> None:
        """Stop every process, for as long as that takes at most."""
        if not self.frozen:
            table = tree.Table()
            self._own = {pid for pid in table.below(os.getpid()) if table.state[pid] in _STOPPED}
            self.frozen, self._since = True, time.monotonic()
        until = time.monotonic() + FREEZE_S
        while not self.hold() and time.monotonic() < until:
            time.sleep(0.001)

    def hold(self) -> bool:
        """Stop what is not stopped; True when two looks after each other found nothing of that kind."""
        if self._all_at_once:
            try:  # noqa: SIM105 - contextlib costs start-up time
                os.kill(-1, SIGSTOP)
            except ProcessLookupError:
                pass  # there is none
        before = self._stop_those_found()
        self.whole = before is not None and before == self._stop_those_found()
        return self.whole

    def _stop_those_found(self) -> list[int] | None:
        """Stop each process that is there; all of them where each was stopped already, else None."""
        table = tree.Table()
        found = table.below(os.getpid())
        going = [pid for pid in found if table.state[pid] not in _STOPPED]
        tree.signal_each(going, SIGSTOP)
        return None if going else found

    def thaw(self) -> None:
        """Let all go on that did before, children first: a shell is not to find its children stopped."""
        self._before, self.frozen, self.whole = self.total_s, False, False
        found = tree.Table().below(os.getpid())[::-1]
        tree.signal_each([pid for pid in found if pid not in self._own], SIGCONT)

    def look(self) -> dict[str, Any]:
        """What is alive now: how many processes, how many of them are not stopped, and some by name."""
        table = tree.Table()
        found = table.below(os.getpid())
        going = [pid for pid in found if table.state[pid] not in _STOPPED]
        return {
            "frozen": self.frozen,
            "alive": len(found),
            "going": len(going),
            "names": [_name(pid) for pid in (going if self.frozen and going else found)[:NAMED]],
        }


def _name(pid: int) -> str:
    """What a process calls itself, which may be anything."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:  # noqa: PTH123 - pathlib costs start-up time
            return file.read(64).decode("utf-8", "replace").rstrip("\n")
    except OSError:
        return ""
