"""Freezing the processes of a command, and looking at them; loaded in the supervisor.

SIGSTOP cannot be caught, blocked or ignored, and a stopped process cannot fork. So the tree is whole when
every process that was found is stopped, and a second look, begun after that, finds no other. The supervisor
itself continues: it keeps the life line, and SIGKILL ends stopped processes as any.

The processes of a command, however they forked, and ending all of them.

Loaded in the supervisor, to which orphans come back because it is their subreaper.
"""

from __future__ import annotations

import os
import time

SIGKILL = 9


class ProcessTable:
    """Every process that can be seen now, once."""

    def __init__(self) -> None:
        self.parent: dict[int, int] = {}
        self.state: dict[int, bytes] = {}
        self.threads: dict[int, int] = {}
        self.pages: dict[int, int] = {}
        for name in os.listdir("/proc"):  # noqa: PTH208
            if name.isdigit():
                self._add(int(name))

    def _add(self, pid: int) -> None:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib costs start-up time
                words = file.read().rpartition(b")")[2].split()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return
        self.parent[pid], self.state[pid] = int(words[1]), words[0]
        self.threads[pid], self.pages[pid] = int(words[17]), int(words[21])

    def below(self, ancestor: int) -> list[int]:
        """Living processes below one, nearest first."""
        children: dict[int, list[int]] = {}
        for pid, parent in self.parent.items():
            children.setdefault(parent, []).append(pid)
        order = list(children.get(ancestor, ()))
        for pid in order:
            order.extend(children.get(pid, ()))
        return [pid for pid in order if self.state[pid] not in (b"Z", b"X")]


def signal_each(pids: list[int], number: int) -> None:
    """Send a signal to each, whether or not it is still there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def out_of_reach(canaries: list[int]) -> bool:
    """Whether the kernel keeps this process from signalling each of these processes of the same user.

    The guard before `kill(-1)`: it must be True right after the process entered a signal scope. A process
    that is gone or belongs to somebody else proves nothing, and no canary at all proves nothing either.
    """
    return bool(canaries) and all(_refused(pid) and _real_user(pid) == os.getuid() for pid in canaries)


def _refused(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    return False


def _real_user(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:  # noqa: PTH123
            for line in file:
                if line.startswith("Uid:"):
                    return int(line.split()[1])
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        pass  # then it is no evidence
    return -1


def leave_reserve() -> None:
    """Leave a process that kills the whole tree when this one ends, in whatever way.

    Only after the guard held. It is nobody's child, so it is not counted among the command's processes; it
    must be left before this process becomes a subreaper.
    """
    end, _kept_open = os.pipe()
    between = os.fork()
    if between == 0:
        try:
            if os.fork() == 0:
                _kill_at_end_of(end)
        finally:
            os._exit(0)
    os.waitpid(between, 0)
    os.close(end)


def _kill_at_end_of(pipe: int) -> None:
    """Hold nothing but the pipe, wait for its end, and kill."""
    os.dup2(pipe, 0)
    os.closerange(1, os.sysconf("SC_OPEN_MAX"))
    os.read(0, 1)
    kill_all(True, 0)


def kill_all(guarded: bool, ancestor: int) -> None:
    """Kill every process of the command at once where the guard held, else one by one.

    Args:
        guarded: whether `out_of_reach` was True; without it `kill(-1)` would reach the whole user, and
            as root the host.
        ancestor: the supervisor.
    """
    if guarded:
        try:  # noqa: SIM105 - contextlib costs start-up time
            os.kill(-1, SIGKILL)
        except ProcessLookupError:
            pass  # there was none left
        return
    signal_each(ProcessTable().below(ancestor), SIGKILL)


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


class ProcessFreezer:
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
            table = ProcessTable()
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
        table = ProcessTable()
        result = table.below(os.getpid())
        going = [pid for pid in result if table.state[pid] not in _STOPPED]
        signal_each(going, SIGSTOP)
        return None if going else result

    def thaw(self) -> None:
        """Let all continue that did before, children first: a shell is not to find its children stopped."""
        self._before, self.frozen, self.whole = self.total_s, False, False
        result = ProcessTable().below(os.getpid())[::-1]
        signal_each([pid for pid in result if pid not in self._own], SIGCONT)

    def look(self) -> dict[str, Any]:
        """What is alive now: how many processes, how many of them are not stopped, and some by name."""
        table = ProcessTable()
        result = table.below(os.getpid())
        going = [pid for pid in result if table.state[pid] not in _STOPPED]
        return {
            "frozen": self.frozen,
            "alive": len(result),
            "going": len(going),
            "names": [_name(pid) for pid in (going if self.frozen and going else result)[:NAMED]],
        }


def _name(pid: int) -> str:
    """What a process calls itself, which may be anything."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:  # noqa: PTH123 - pathlib costs start-up time
            return file.read(64).decode("utf-8", "replace").rstrip("\n")
    except OSError:
        return ""
