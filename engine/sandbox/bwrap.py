"""A command in namespaces of its own, by the distribution's bubblewrap.

Only what is listed is mounted; processes, IPC, host name and, when the network is off, interfaces are the
command's own. A bwrap that anybody but root could have put there is not used. Source: sandbox spec §5.1
L7, §6 case 90.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from engine.sandbox import places
from engine.sandbox.policy import Network, SandboxPolicy

CANDIDATES = ("/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap")
SCRATCH = ("/tmp", "/dev/shm")
CONSOLE = "/dev/console"
"""Where a command finds the terminal that it was given, for its own /dev/pts does not have it."""
OWN_CODE = str(Path(__file__).resolve().parent)


def find(candidates: Sequence[str] = CANDIDATES) -> str | None:
    """The first bwrap, absolute, that only root can have written, with all directories above it."""
    for candidate in candidates:
        path = os.path.realpath(candidate)
        if os.access(path, os.X_OK) and all(_only_roots(part) for part in (Path(path), *Path(path).parents)):
            return path
    return None


def _only_roots(path: Path) -> bool:
    status = path.stat()
    return status.st_uid == 0 and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def arguments(
    root: Path, policy: SandboxPolicy, readable: Sequence[str], terminal: str = ""
) -> tuple[str, ...]:
    """Arguments for bwrap, without the command.

    Args:
        root: the sandbox root, mounted read-write at its own path.
        policy: network and the size of scratch space.
        readable: paths mounted read-only at their own place; those that are not there are passed over.
        terminal: path of the terminal that becomes the command's own; empty without one.
    """
    unshare = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    if policy.network is Network.OFF:
        unshare.append("--unshare-net")
    args = [*unshare, "--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    args += ["--uid", str(os.getuid()), "--gid", str(os.getgid()), "--hostname", "sandbox"]
    args += ["--dev", "/dev", "--proc", "/proc"]
    if terminal:
        args += ["--dev-bind", terminal, CONSOLE]
    for path in SCRATCH:
        args += ["--size", str(policy.scratch_bytes), "--tmpfs", path]
    for path in (*places.SYSTEM, *places.SETTINGS, *readable, OWN_CODE):
        args += _mounted(path)
    args += ["--bind", str(root), str(root)]
    for name in policy.protected:
        if (root / name).is_dir() and not (root / name).is_symlink():
            args += ["--tmpfs", str(root / name), "--remount-ro", str(root / name)]
    return (*args, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/")


def _mounted(path: str) -> list[str]:
    """A system directory that is a link stays one; everything else is mounted by what it leads to."""
    if path in places.SYSTEM and os.path.islink(path):  # noqa: PTH114
        return ["--symlink", os.readlink(path), path]  # noqa: PTH115
    return ["--ro-bind-try", path, path]
