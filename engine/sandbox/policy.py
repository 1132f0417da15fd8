"""What a sandbox session may use: limits, programs, files to read, network, and how strong its jail must be.

Pure data. The defaults are measured: ordinary builds and tests fit, a runaway program does not.
"""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from engine.value import asdict, dataclass, fields, replace

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

SYSTEM_PROGRAMS = (
    *("git", "ls", "cat", "grep", "find", "head", "tail", "wc", "mkdir", "touch", "cp", "mv", "echo"),
    *("diff", "sort", "uniq", "tree", "make", "which", "node", "npm"),
)
"""Allowed programs that only ever come from the host."""
PYTHON_PROGRAMS = ("python", "python3", "pip", "pip3")
VENV_PROGRAMS = ("pytest", "ruff", "mypy", "black", "flake8", "coverage", "tox")
"""Allowed Python tools; an active virtual environment's own copy is preferred."""


class Network(StrEnum):
    """What commands may reach."""

    OFF = "off"
    PORTS = "ports"
    """TCP to the policy's ports, and UDP, which name resolution needs."""
    ON = "on"


class Tier(StrEnum):
    """How firmly commands are held, strongest first."""

    FULL = "FULL"
    """Namespaces, Landlock and seccomp: what is not listed cannot be seen."""
    KERNEL = "KERNEL"
    """Landlock and seccomp: what is not listed cannot be read or changed."""
    PATHS = "PATHS"
    """Commands are not confined; only the file commands are."""

    @property
    def strength(self) -> int:
        """2 for FULL down to 0 for PATHS."""
        return 2 - list(Tier).index(self)


class PolicyError(ValueError):
    """A policy that cannot be; the message names the field and says what is wrong."""


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """Limits and grants of one sandbox; it belongs to the operator, never to an agent."""

    wall_clock_s: float = 60.0
    """Seconds a command may run."""
    install_s: float = 300.0
    """Seconds for package installers, clones and `create_venv`."""
    job_s: float = 8 * 3600.0
    """Seconds a background job may run."""
    jobs: int = 8
    """Background jobs of one agent at a time."""
    shell_s: float = 8 * 3600.0
    """Seconds that the operator may hold a shell."""
    grace_s: float = 0.5
    """Seconds between SIGTERM and SIGKILL."""
    cpu_s: int = 120
    """Processor seconds of each process."""
    job_cpu_s: int = 3600
    """Processor seconds of each process of a background job."""
    read_bytes: int = 10 * MIB
    """Largest file that `read` takes."""
    write_bytes: int = 10 * MIB
    """Largest file that `write`, `append`, `replace` and `copy` make."""
    list_entries: int = 10_000
    """Names that `ls` returns at most."""
    output_head_bytes: int = 64 * KIB
    """Bytes kept from the start of each output stream."""
    output_tail_bytes: int = 64 * KIB
    """Bytes kept from the end of each output stream."""
    output_bytes: int = 64 * MIB
    """Bytes of one stream after which the command is ended."""
    streamed_bytes: int = 1 * MIB
    """Bytes of one stream that are passed on live; a job's are all passed on."""
    memory_bytes: int = 4 * GIB
    """Resident memory of a command's whole process tree; also RLIMIT_DATA of each process."""
    address_bytes: int = 16 * GIB
    """RLIMIT_AS: address space of each process."""
    memory_floor_bytes: int = 512 * MIB
    """A command is ended when the machine's free memory falls below this."""
    file_bytes: int = 1 * GIB
    """RLIMIT_FSIZE: the largest file a command may write."""
    open_files: int = 1024
    processes: int = 256
    """Threads of a command's whole process tree."""
    disk_bytes: int = 5 * GIB
    """Size of everything below the root; a command that exceeds it is ended."""
    disk_entries: int = 200_000
    """Files and directories below the root."""
    disk_depth: int = 64
    """Directories within each other below the root."""
    disk_floor_bytes: int = 2 * GIB
    """A command is ended when free disk space falls below this."""
    scratch_bytes: int = 1 * GIB
    """Size of the private /tmp and of /dev/shm, each, where a command has its own."""
    nice: int = 5
    """How far commands stand back behind other work, 1 to 19."""
    programs: tuple[str, ...] = (*PYTHON_PROGRAMS, *VENV_PROGRAMS, *SYSTEM_PROGRAMS)
    """Names that `run` accepts as its first word. Good manners, not a boundary."""
    read_only: tuple[str, ...] = ()
    """Absolute paths that commands may read and execute, besides the system's own directories."""
    network: Network = Network.OFF
    ports: tuple[int, ...] = (443, 80)
    """TCP ports for the network `ports`."""
    require: Tier = Tier.KERNEL
    """The weakest jail in which a command may run."""
    accept_paths: bool = False
    """Whether the operator lets commands run without any jail; only then counts `require` PATHS."""
    home: str = ".home"
    """HOME of commands, a directory at the root that `ls` and `find` leave out."""
    tmp: str = ".tmp"
    """TMPDIR of commands, likewise."""
    protected: tuple[str, ...] = (".pilothouse",)
    """Names at the root that no file command may touch."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, (int, float)) and not isinstance(value, bool) and value <= 0:
                raise PolicyError(f"sandbox policy: {item.name} must be more than 0, not {value}")
        for port in self.ports:
            if not 0 < port < 65536:
                raise PolicyError(f"sandbox policy: {port} is no TCP port; use 1 to 65535")
        for path in self.read_only:
            if not path.strip("/") or path[0] != "/" or "\0" in path or ".." in path.split("/"):
                raise PolicyError(f"sandbox policy: read_only needs absolute paths below /, not {path!r}")
        for name in (self.home, self.tmp, *self.protected):
            if not name or "/" in name or name in (".", ".."):
                raise PolicyError(f"sandbox policy: {name!r} is no name at the root")

    @property
    def hidden(self) -> frozenset[str]:
        """Names at the root that listings and searches leave out."""
        return frozenset({self.home, self.tmp, *self.protected})

    @property
    def lowest(self) -> Tier:
        """The weakest tier that will do: PATHS only when the operator accepted it."""
        if self.accept_paths:
            return Tier.PATHS
        return Tier.KERNEL if self.require is Tier.PATHS else self.require

    @property
    def for_jobs(self) -> SandboxPolicy:
        """The policy as it holds for a background job, which is to live and to be watched for long."""
        return replace(self, cpu_s=self.job_cpu_s, streamed_bytes=self.output_bytes)

    def with_network(self, network: Network, *ports: int) -> SandboxPolicy:
        """The policy with another grant of network; the ports stay when none is given."""
        return replace(self, network=network, ports=ports or self.ports)

    def accepting(self, tier: Tier) -> SandboxPolicy:
        """The policy whose weakest jail is this one, because the operator said so."""
        return replace(self, require=tier, accept_paths=tier is Tier.PATHS)

    def narrowed(self, data: Mapping[str, Any]) -> SandboxPolicy:
        """The policy tightened by some of its fields, as JSON; what would loosen it counts for nothing.

        Raises:
            PolicyError: a field is unknown or its value is of the wrong kind.
        """
        return self.tightened(self.changed(data)) if data else self

    def check_narrowing(self, data: Mapping[str, Any]) -> None:
        """Refuse fields that ask for more than this policy allows.

        Raises:
            PolicyError: names the fields, or says what is wrong with one.
        """
        asked, given = self.changed(data), self.narrowed(data)
        beyond = [name for name in data if _items(getattr(asked, name)) != _items(getattr(given, name))]
        if beyond:
            words = ", ".join(f"{name} {data[name]!r}" for name in beyond)
            raise PolicyError(
                f"sandbox policy: {words} is more than the workspace allows; it can only be less"
            )

    def changed(self, data: Mapping[str, Any]) -> SandboxPolicy:
        """The policy with some of its fields, as JSON; only for what the operator asks.

        Raises:
            PolicyError: a field is unknown or its value is of the wrong kind.
        """
        values = _values(data)
        if "require" in values:  # whoever requires a jail does not do without one
            values.setdefault("accept_paths", False)
        return replace(self, **values)

    def tightened(self, other: SandboxPolicy) -> SandboxPolicy:
        """The policy that allows only what both allow; places and names stay this policy's."""
        merged: dict[str, Any] = {}
        for item in fields(self):
            mine, theirs = getattr(self, item.name), getattr(other, item.name)
            if isinstance(mine, bool):
                merged[item.name] = mine and theirs
            elif isinstance(mine, (int, float)):
                loosens_when_small = item.name.endswith("_floor_bytes") or item.name == "nice"
                merged[item.name] = max(mine, theirs) if loosens_when_small else min(mine, theirs)
        order = list(Network)
        merged["programs"] = tuple(name for name in self.programs if name in other.programs)
        merged["read_only"] = _common_paths(self.read_only, other.read_only)
        merged["network"] = min(self.network, other.network, key=order.index)
        merged["ports"] = self._common_ports(other)
        merged["require"] = max(self.require, other.require, key=lambda tier: tier.strength)
        merged["protected"] = tuple(dict.fromkeys((*self.protected, *other.protected)))
        return replace(self, **merged)

    def _common_ports(self, other: SandboxPolicy) -> tuple[int, ...]:
        """Ports matter only where the network is PORTS; a network that is on grants all of them."""
        if self.network is Network.ON:
            return other.ports
        if other.network is Network.ON:
            return self.ports
        return tuple(port for port in self.ports if port in other.ports)

    def as_json(self) -> dict[str, Any]:
        """The policy as plain JSON values, by field."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()
        }

    def facts(self) -> dict[str, str]:
        """What commands may do, in words by subject."""
        network = {
            Network.OFF: "off",
            Network.PORTS: f"TCP ports {', '.join(map(str, self.ports))}; UDP to any port, which names need",
            Network.ON: "on, without restriction",
        }[self.network]
        needs = "none is required: the operator lets commands run unconfined"
        return {
            "files": "read and write below the sandbox root only",
            "read": f"the system's programs and libraries{''.join(f', {path}' for path in self.read_only)}",
            "network": network,
            "time": f"{self.wall_clock_s:g} s, installers {self.install_s:g} s; "
            f"{self.cpu_s} s of processor for each process",
            "jobs": f"{self.jobs} in the background at a time, {self.job_s / 3600:g} h each; "
            f"{self.job_cpu_s} s of processor for each process",
            "memory": f"{size_text(self.memory_bytes)} for a command and all it starts",
            "processes": f"{self.processes} threads for a command and all it starts",
            "disk": f"{size_text(self.disk_bytes)} and {self.disk_entries:,} entries below the root, "
            f"{size_text(self.file_bytes)} for one file",
            "output": f"ended after {size_text(self.output_bytes)}",
            "programs": ", ".join(self.programs),
            "jail": needs if self.accept_paths else f"at least {self.lowest}",
        }

    def explain(self) -> list[str]:
        """What commands may do, in lines for people."""
        return [f"{subject:<9} {words}" for subject, words in self.facts().items()]


def _values(data: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a policy from JSON."""
    hints = typing.get_type_hints(SandboxPolicy) if data else {}
    for name in data:
        if name not in hints:
            near = difflib.get_close_matches(name, hints, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"fields: {', '.join(hints)}"
            raise PolicyError(f"sandbox policy: there is no field {name!r}; {hint}")
    return {name: _checked(name, hints[name], value) for name, value in data.items()}


def _items(value: object) -> object:
    return frozenset(value) if isinstance(value, tuple) else value


def _common_paths(ours: tuple[str, ...], theirs: tuple[str, ...]) -> tuple[str, ...]:
    """The paths that lie below a path of the other side as well."""

    def below(path: str, roots: tuple[str, ...]) -> bool:
        return any(f"{path}/".startswith(f"{root.rstrip('/')}/") for root in roots)

    both = [path for path in ours if below(path, theirs)] + [path for path in theirs if below(path, ours)]
    return tuple(dict.fromkeys(both))


def _checked(name: str, kind: Any, value: Any) -> Any:
    """The value as the field's type, from JSON."""
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        if value not in list(kind):
            raise PolicyError(f"sandbox policy: {name} is one of {', '.join(kind)}, not {value!r}")
        return kind(value)
    if isinstance(kind, types.GenericAlias):
        inner = kind.__args__[0]
        if not isinstance(value, (list, tuple)) or any(type(entry) is not inner for entry in value):
            raise PolicyError(f"sandbox policy: {name} is a list of {inner.__name__}, not {value!r}")
        return tuple(value)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise PolicyError(f"sandbox policy: {name} is {kind.__name__}, not {value!r}")
    return value


def size_text(count: int) -> str:
    """A number of bytes for people: `512 bytes`, `10.0 MiB`."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"
