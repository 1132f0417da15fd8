"""Limits on a command: those that the kernel holds for each process, and those that must be watched.

No rlimit counts a whole tree's memory, shared memory, the disk in all, or root's processes; the supervisor
samples these. Loaded in the supervisor.
"""

from __future__ import annotations

import os
import resource
import time

from engine.sandbox.process_table import ProcessTable

TYPE_CHECKING = False  # typing itself is slow to load
if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLE_S = 0.25
_WALK_SHARE = 20
"""The walk over the disk may take one part in so many of the supervisor's time."""
_STEP_S = 0.01
"""Seconds of walking at one look."""
_CPU_NOTICE_S = 1
"""Seconds between SIGXCPU, which says why a program ends, and SIGKILL."""
_COUNT_S = 0.02
"""Seconds between two counts of threads, where these must be watched closely."""
CALM_S = 60.0
"""Seconds after which a command is looked at less and less often: a background job lives for hours."""
CALMEST = 4.0
"""How many times less often in the end."""
_PAGE = resource.getpagesize()
_EACCES = 13


def apply(target: dict[str, int]) -> None:
    """Set resource limits by name, never above the ones in force.

    Raises:
        OSError, ValueError: the kernel refused.
    """
    for name, value in target.items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        soft = value if name != "RLIMIT_CPU" else max(1, value - _CPU_NOTICE_S)
        resource.setrlimit(kind, (soft, value))


def threads_of_user() -> int:
    """Threads that the user has now, the base of RLIMIT_NPROC outside of a user namespace."""
    total, user = 0, os.getuid()
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            try:
                if os.stat(f"/proc/{name}").st_uid == user:  # noqa: PTH116
                    total += os.stat(f"/proc/{name}/task").st_nlink - 2  # noqa: PTH116
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
    return total


def threads_of_machine() -> int:
    """Threads that there are now, in all; 0 where /proc does not say."""
    try:
        with open("/proc/loadavg", "rb") as file:  # noqa: PTH123
            return int(file.read().split()[3].partition(b"/")[2])
    except OSError:
        return 0


def free_memory() -> int:
    """Bytes that the machine could give out; a huge number where it does not say."""
    try:
        with open("/proc/meminfo", "rb") as file:  # noqa: PTH123
            for line in file:
                if line.startswith(b"MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass  # without /proc this floor is not watched
    return 1 << 62


class DiskWalk:
    """The size of what lies below a directory, taken a few hundred entries at a time.

    Directories are opened one below the other without following links, one descriptor for each level, so
    that neither a path's length nor a link swapped in meanwhile leads the walk astray.
    """

    def __init__(self, root: int, depth: int) -> None:
        self._root = root
        self._depth = depth
        self._stack: list[tuple[int, Iterator[os.DirEntry[str]]]] = []
        self._next = 0.0
        self._spent = 0.0
        self._sums = (0, 0)
        self.bytes = 0
        """Space taken on the disk, in the walk so far or the last whole one, whichever is more."""
        self.entries = 0
        self.too_deep = False
        self.closed = False
        """Whether this walk met a directory that may not be opened; what lies in it is not counted."""

    def step(self, calm: float = 1.0) -> None:
        """Go on for a while; begins again when the time for it has come, which calm makes later."""
        now = time.monotonic()
        if not self._stack:
            if now < self._next:
                return
            self._sums, self._spent, self.closed = (0, 0), 0.0, False
            self._open(".", self._root)
        while self._stack and time.monotonic() < now + _STEP_S:
            self._advance()
        self._spent += time.monotonic() - now
        size, entries = self._sums
        done = not self._stack
        self.bytes = size if done else max(self.bytes, size)
        self.entries = entries if done else max(self.entries, entries)
        self._next = time.monotonic() + self._spent * _WALK_SHARE * calm

    def _advance(self) -> None:
        directory, names = self._stack[-1]
        entry = next(names, None)
        if entry is None:
            os.close(directory)
            self._stack.pop()
            return
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            return  # gone meanwhile, or not ours to see
        size, entries = self._sums
        self._sums = (size + status.st_blocks * 512, entries + 1)
        if status.st_mode & 0o170000 == 0o040000:
            self._open(entry.name, directory)

    def _open(self, name: str, parent: int) -> None:
        if len(self._stack) > self._depth:
            self.too_deep = True
            return
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
        except OSError as error:
            self.closed = self.closed or error.errno == _EACCES
            return  # what cannot be opened cannot be counted; free space is watched besides
        self._stack.append((descriptor, os.scandir(descriptor)))


class HeldFiles:
    """Space taken by open files that no directory names: memfds, and files removed while they are open."""

    def __init__(self) -> None:
        self.bytes: dict[int, int] = {}
        """By device, when it was last looked."""
        self._next = 0.0

    def look(self, pids: list[int]) -> None:
        """Go through what these processes hold open, when the time for it has come."""
        begun = time.monotonic()
        if begun < self._next:
            return
        result: dict[tuple[int, int], int] = {}
        for pid in pids:
            for status in _opened(pid):
                if status.st_nlink == 0 and status.st_mode & 0o170000 == 0o100000:
                    result[status.st_dev, status.st_ino] = status.st_blocks * 512
        self.bytes = {}
        for (device, _), size in result.items():
            self.bytes[device] = self.bytes.get(device, 0) + size
        self._next = begun + (time.monotonic() - begun) * _WALK_SHARE


def _opened(pid: int) -> Iterator[os.stat_result]:
    """The status of each file that a process has open, as far as it lets itself be looked at."""
    try:
        names = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208
    except OSError:
        return
    for name in names:
        try:
            yield os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116
        except OSError:
            continue


class Sampler:
    """Looks at a command's tree and its disk, and says which limit is broken."""

    def __init__(self, root: int, limits: dict[str, int]) -> None:
        self._limits = limits
        self._root = root
        self._walk = DiskWalk(root, limits["disk_depth"])
        self._held = HeldFiles()
        self._device = os.fstat(root).st_dev
        self._free_before = self._free_disk()
        self._disk_floor = min(limits["disk_floor_bytes"], self._free_before // 2)
        self._memory_floor = min(limits["memory_floor_bytes"], free_memory() // 2)
        self._begun = time.monotonic()
        self._due = self._begun + SAMPLE_S
        # The kernel holds root to no number of processes, and a fork bomb does not wait for the next look.
        self._counting = os.getuid() == 0
        self._threads_before = threads_of_machine()

    def _free_disk(self) -> int:
        status = os.fstatvfs(self._root)
        return status.f_bavail * status.f_frsize

    def wait_s(self) -> float:
        """Seconds until the next look."""
        left = max(0.0, self._due - time.monotonic())
        return min(left, _COUNT_S * self._calm()) if self._counting else left

    def _calm(self) -> float:
        return min(CALMEST, max(1.0, (time.monotonic() - self._begun) / CALM_S))

    def breach(self) -> tuple[str, str]:
        """What kind of limit is broken, and the words for it; empty when none is or it is not yet time."""
        # So many threads more on the machine may be the command's.
        more = threads_of_machine() - self._threads_before if self._counting else 0
        grown = more > self._limits["processes"]
        if time.monotonic() < self._due and not grown:
            return "", ""
        self._due = time.monotonic() + SAMPLE_S * self._calm()
        broken = self._tree() or self._disk() or ("", "")
        self._threads_before = threads_of_machine()  # what came since was counted, and is not the command's
        return broken

    def _tree(self) -> tuple[str, str] | None:
        table = ProcessTable()
        pids = table.below(os.getpid())
        self._held.look(pids)
        unnamed = sum(size for device, size in self._held.bytes.items() if device != self._device)
        if sum(table.pages[pid] for pid in pids) * _PAGE + unnamed > self._limits["memory_bytes"]:
            return "memory", "its processes took more memory than the limit"
        if sum(table.threads[pid] for pid in pids) > self._limits["processes"]:
            return "processes", "it had more processes and threads than the limit"
        if free_memory() < self._memory_floor:
            return "memory", "the machine was nearly out of memory"
        return None

    def _disk(self) -> tuple[str, str] | None:
        free = self._free_disk()
        if free < self._disk_floor:
            return "disk", "the disk was nearly full"
        self._walk.step(self._calm())
        if self._walk.bytes + self._held.bytes.get(self._device, 0) > self._limits["disk_bytes"]:
            return "disk", "the sandbox took more disk than the limit"
        if self._walk.closed and self._free_before - free > self._limits["disk_bytes"]:
            return "disk", "the disk was filled while a directory of the sandbox could not be looked into"
        if self._walk.entries > self._limits["disk_entries"]:
            return "disk", "the sandbox held more files than the limit"
        if self._walk.too_deep:
            return "disk", "directories of the sandbox lay deeper in each other than the limit"
        return None
