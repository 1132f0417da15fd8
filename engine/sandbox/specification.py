"""What a supervisor is told of the command that it starts, as plain values.

The other side of it is `engine.sandbox.supervisor`, which loads nothing of the house.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from engine.sandbox.confinement import Confined, FileRules, Launch
from engine.sandbox.policy import SandboxPolicy

_INIT = 1
_OWN_THREADS = 8
"""Threads in a namespace that are not the command's: its init, the supervisor, a command that forks."""
_WATCHED = (
    *("memory_bytes", "memory_floor_bytes", "processes", "disk_floor_bytes"),
    *("disk_bytes", "disk_entries", "disk_depth"),
)


def specification(
    launch: Launch,
    confined: Confined,
    policy: SandboxPolicy,
    *,
    root: Path,
    cwd: int,
    terminal: int,
    status: int,
    limit_s: float,
) -> dict[str, Any]:
    """What the supervisor is told, as plain values; see `engine.sandbox.supervisor.main`."""
    status_of = os.fstat(cwd)
    return {
        "executable": launch.executable,
        "argv": list(launch.argv),
        "env": dict(launch.env),
        "root": str(root),
        # A descriptor from outside would lead out of the namespace, so there the way is walked again.
        "cwd": -1 if confined.namespaces else cwd,
        "cwd_path": os.path.relpath(Path(f"/proc/self/fd/{cwd}").readlink(), root),
        "cwd_identity": (status_of.st_dev, status_of.st_ino),
        "terminal": terminal,
        "status": status,
        "limit_s": limit_s,
        "grace_s": policy.grace_s,
        "nice": policy.nice,
        "limits": {name: getattr(policy, name) for name in _WATCHED},
        "rlimits": _rlimits(confined, policy),
        "scope": confined.scope,
        "canary": _INIT if confined.namespaces else os.getpid(),
        "reserve": not confined.namespaces,
        "landlock": None if confined.rules is None else _landlock(confined.rules),
        "filter": confined.filter,
        "broker": list(confined.broker),
    }


def _rlimits(confined: Confined, policy: SandboxPolicy) -> dict[str, int]:
    limits = {
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": policy.cpu_s,
        "RLIMIT_AS": policy.address_bytes,
        "RLIMIT_DATA": policy.memory_bytes,
        "RLIMIT_FSIZE": policy.file_bytes,
        "RLIMIT_NOFILE": policy.open_files,
    }
    # In a namespace only its own processes count, and root's are held by samples alone; for everybody else
    # the supervisor adds what the user has already.
    if confined.namespaces or os.getuid() == 0:
        limits["RLIMIT_NPROC"] = policy.processes + _OWN_THREADS
    return limits


def _landlock(rules: FileRules) -> dict[str, Any]:
    return {
        "files": rules.files,
        "ports": rules.ports,
        "scope": rules.scope,
        "paths": list(rules.paths),
        "connect": list(rules.connect),
    }
