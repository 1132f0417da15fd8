"""The jail: what a policy means for the kernel, as rules, a filter and namespaces.

A confinement says here, as data, how a command is held; the supervisor carries it out (see
`engine.sandbox.supervisor`, which imports nothing from above it and gets a specification of plain
values).

In the tier FULL a command is in namespaces of its own, by the distribution's bubblewrap: only what is
listed is mounted; processes, IPC, host name and, when the network is off, interfaces are the command's
own. A bwrap that anybody but root could have put there is not used. Besides the sandbox root a program
may read the system's programs and libraries, the interpreter, and a picked list of settings and devices:
everything that ordinary tools need and nothing that holds a secret.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from engine.sandbox import kernel, landlock
from engine.sandbox.policy import Network, SandboxPolicy, Tier
from engine.sandbox.seccomp import FilterOptions, build_filter
from engine.value import dataclass, field

_PATHS = tomllib.loads(Path(__file__).with_name("jail_paths.toml").read_text("utf-8"))
SYSTEM, SETTINGS = tuple(_PATHS["system"]), tuple(f"/etc/{name}" for name in _PATHS["settings"])
DEVICES, FACTS = tuple(_PATHS["devices"]), tuple(f"/proc/{name}" for name in _PATHS["facts"])

_PATH_SETTING = re.compile(
    r"PIP_(FIND_LINKS|CERT|INDEX_URL|EXTRA_INDEX_URL)|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE"
)
_URL_SETTING = re.compile(r"PIP_(EXTRA_)?INDEX_URL|(HTTPS?|ALL)_PROXY|(https?|all)_proxy")
_DEFAULT_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


@cache
def interpreter() -> tuple[str, ...]:
    """The directories of the Python that venvs are made with, as small as they can be."""
    prefixes = {os.path.realpath(prefix) for prefix in (sys.base_prefix, sys.base_exec_prefix)}
    return tuple(
        sorted(path for path in prefixes if path != "/" and not f"{path}/".startswith(("/usr/", "/bin/")))
    )


def settings_paths(env: Mapping[str, str]) -> tuple[str, ...]:
    """Local files and directories that the operator's package index settings name: certificates, wheels."""
    paths = []
    for name, value in env.items():
        if _PATH_SETTING.fullmatch(name):
            for word in value.split():
                path = word.removeprefix("file://")
                if path.startswith("/") and ".." not in path.split("/") and path.strip("/"):
                    paths.append(_whole_index(path) if "INDEX_URL" in name else path)
    return tuple(dict.fromkeys(paths))


def _whole_index(path: str) -> str:
    """A local index's directory: the files that its `simple` pages name lie beside them."""
    above, _, last = path.rstrip("/").rpartition("/")
    return above if last == "simple" and above.count("/") > 1 else path


def settings_ports(env: Mapping[str, str]) -> tuple[int, ...]:
    """TCP ports of the package index and proxy that the operator has set, which a grant of network means."""
    paths = []
    for name, value in env.items():
        if _URL_SETTING.fullmatch(name):
            for word in value.split():
                try:
                    parts = urlsplit(word)
                    port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
                except ValueError:
                    continue  # pip will say what is wrong with it
                if port:
                    paths.append(port)
    return tuple(dict.fromkeys(paths))


@dataclass(frozen=True, slots=True)
class Launch:
    """A program, ready to be executed."""

    executable: str
    """Absolute path."""
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    terminal: str = ""
    """Path of the terminal that becomes its own; empty without one."""
    umask: int = 0o077


@dataclass(frozen=True, slots=True)
class Confined:
    """How one command is held."""

    outer: tuple[str, ...] = ()
    """Program, absolute, with arguments, that starts the supervisor; none when it is started directly."""
    outer_arguments: tuple[str, ...] = ()
    """More arguments for it, in a descriptor named by `--args`: the process list shows no path."""
    rules: Mapping[str, Any] | None = None
    """The Landlock ruleset (`engine.sandbox.landlock`): rights on `files`, `ports` and in `scope` that are
    held back, but for `paths` (a path, and the rights on it and below) and the TCP ports to `connect` to.
    """
    filter: bytes = b""
    """The seccomp filter as BPF; none when empty."""
    broker: tuple[str, ...] = ()
    """Roots beneath which the supervisor changes metadata for the command; none when it is not asked."""
    scope: bool = False
    """Whether the supervisor enters a signal scope, so that `kill(-1)` ends exactly the command's tree."""
    namespaces: bool = False
    """Whether the supervisor sees other processes and mounts than the cockpit."""


class Confinement(Protocol):
    """What keeps a command inside the root, other than good manners."""

    @property
    def tier(self) -> Tier:
        """How firmly."""

    def confine(self, launch: Launch, root: Path, policy: SandboxPolicy) -> Confined:
        """How to hold this program; pure and quick, it runs on the loop."""


class Unconfined:
    """No confinement: only the file commands are held to the root, commands are not."""

    tier = Tier.PATHS

    def confine(self, launch: Launch, root: Path, policy: SandboxPolicy) -> Confined:
        """Nothing but the supervisor with its limits, and no privileges."""
        return Confined()


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
    standard: tuple[int, ...],
    status: int,
    limit_s: float,
) -> dict[str, Any]:
    """What the supervisor gets, as plain values; see `engine.sandbox.supervisor.main`."""
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
        "standard": list(standard),
        "umask": launch.umask,
        "status": status,
        "limit_s": limit_s,
        "grace_s": policy.grace_s,
        "nice": policy.nice,
        "limits": {name: getattr(policy, name) for name in _WATCHED},
        "rlimits": _rlimits(confined, policy),
        "scope": confined.scope,
        "canary": _INIT if confined.namespaces else os.getpid(),
        "reserve": not confined.namespaces,
        "landlock": confined.rules,
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


CANDIDATES = ("/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap")
SCRATCH = ("/tmp", "/dev/shm")
CONSOLE = "/dev/console"
"""Where a command finds the terminal that it was given, for its own /dev/pts does not have it."""
OWN_CODE = str(Path(__file__).resolve().parent)


def find_bwrap(candidates: Sequence[str] = CANDIDATES) -> str | None:
    """The first bwrap, absolute, that only root can have written, with all directories above it."""
    for candidate in candidates:
        path = os.path.realpath(candidate)
        if os.access(path, os.X_OK) and all(_only_roots(part) for part in (Path(path), *Path(path).parents)):
            return path
    return None


def _only_roots(path: Path) -> bool:
    status = path.stat()
    return status.st_uid == 0 and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def bwrap_arguments(
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
    for path in (*SYSTEM, *SETTINGS, *readable, OWN_CODE):
        args += _mounted(path)
    args += ["--bind", str(root), str(root)]
    for name in policy.protected:
        if (root / name).is_dir() and not (root / name).is_symlink():
            args += ["--tmpfs", str(root / name), "--remount-ro", str(root / name)]
    return (*args, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/")


def _mounted(path: str) -> list[str]:
    """A system directory that is a link stays one; everything else is mounted by what it leads to."""
    if path in SYSTEM and os.path.islink(path):  # noqa: PTH114
        return ["--symlink", os.readlink(path), path]  # noqa: PTH115
    return ["--ro-bind-try", path, path]


_TCP_ABI, _SCOPE_ABI, _RESOLVE_UNIX_ABI = 4, 6, 9
_built = lru_cache(maxsize=64)(build_filter)


@dataclass(frozen=True, slots=True)
class KernelJail:
    """Landlock and seccomp, in namespaces where there is a bwrap: tiers KERNEL and FULL."""

    landlock_abi: int
    """What this kernel supports, from 1."""
    broker: bool
    """Whether the filter can hand calls to the supervisor."""
    bwrap: str | None = None
    """Absolute path of bubblewrap; None without namespaces."""

    @property
    def tier(self) -> Tier:
        """FULL with namespaces, else KERNEL."""
        return Tier.KERNEL if self.bwrap is None else Tier.FULL

    def confine(self, launch: Launch, root: Path, policy: SandboxPolicy) -> Confined:
        """How to hold this program."""
        if policy.network is not Network.OFF:
            ports = (*policy.ports, *settings_ports(launch.env))
            read = (*policy.read_only, *settings_paths(launch.env))
        else:
            ports, read = (), policy.read_only
        readable = (*interpreter(), *read)
        namespaces = self.bwrap is not None
        return Confined(
            outer=(self.bwrap,) if self.bwrap is not None else (),
            outer_arguments=bwrap_arguments(root, policy, readable, launch.terminal) if namespaces else (),
            rules=self._rules(root, policy, readable, ports, launch.terminal),
            filter=_built(self._options(policy), kernel.MACHINE),
            broker=(str(root), *(SCRATCH if namespaces else ())) if self.broker else (),
            scope=self.landlock_abi >= _SCOPE_ABI,
            namespaces=namespaces,
        )

    def _rules(
        self,
        root: Path,
        policy: SandboxPolicy,
        readable: tuple[str, ...],
        ports: tuple[int, ...],
        terminal: str,
    ) -> Mapping[str, Any]:
        paths = [(path, landlock.READ) for path in (*SYSTEM, *readable)]
        paths += [(path, landlock.LOOK) for path in SETTINGS]
        paths += [(path, landlock.DEVICE) for path in DEVICES]
        commanded = landlock.DEVICE | landlock.READ_DIR | landlock.IOCTL_DEV
        if self.bwrap is None:
            paths += [(path, landlock.LOOK) for path in FACTS]
            paths += [(path, commanded) for path in ("/dev/tty", terminal) if terminal]
        else:
            paths += [("/proc", landlock.LOOK), ("/dev", landlock.READ_DIR)]
            paths += [(path, commanded) for path in ("/dev/tty", "/dev/pts", "/dev/ptmx", CONSOLE)]
            paths += [(path, landlock.ALL_BUT_DEVICES) for path in SCRATCH]
        paths.append((str(root), landlock.ALL_BUT_DEVICES))
        open_network = policy.network is Network.ON
        return {
            "files": landlock.handled_files(self.landlock_abi),
            "ports": 0 if open_network else landlock.handled_ports(self.landlock_abi),
            "scope": landlock.scopes(self.landlock_abi),
            "paths": tuple(paths),
            "connect": tuple(dict.fromkeys(ports)) if policy.network is Network.PORTS else (),
        }

    def _options(self, policy: SandboxPolicy) -> FilterOptions:
        scoped = self.landlock_abi >= _SCOPE_ABI
        namespaces = self.bwrap is not None
        held_by_pid = () if scoped or namespaces else (os.getpid(), -os.getpgrp(), -1)
        return FilterOptions(
            network=policy.network,
            unix_sockets=self._unix_sockets_are_safe(policy),
            namespaces=namespaces,
            broker=self.broker,
            landlock_abi=self.landlock_abi,
            protected=held_by_pid,
        )

    def _unix_sockets_are_safe(self, policy: SandboxPolicy) -> bool:
        """No socket of the host can be named: neither by path nor by an abstract name."""
        if self.landlock_abi >= _RESOLVE_UNIX_ABI:
            return True
        own_names = policy.network is Network.OFF or self.landlock_abi >= _SCOPE_ABI
        return self.bwrap is not None and own_names

    def lacks(self, policy: SandboxPolicy) -> str:
        """What of the policy this jail cannot hold, in words; empty when it holds all."""
        if policy.network is Network.PORTS and self.landlock_abi < _TCP_ABI:
            return (
                f"the network `ports` needs Landlock ABI {_TCP_ABI}, a kernel since 6.7; this one has ABI "
                f"{self.landlock_abi}. Choose the network `off` or `on`"
            )
        return ""
