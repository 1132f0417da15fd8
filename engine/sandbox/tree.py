"""The processes of a command, however they forked, and ending all of them.

Loaded in the supervisor, to which orphans come back because it is their subreaper. Source: sandbox spec
§3.2, §5.4.
"""

from __future__ import annotations

import os

SIGKILL = 9


class Table:
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
    must be left before this process becomes a subreaper. Source: sandbox spec §6 case 61.
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
    signal_each(Table().below(ancestor), SIGKILL)
