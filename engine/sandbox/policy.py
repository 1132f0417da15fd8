"""What a sandbox session may use: limits, programs, network.

Pure data. Defaults follow sandbox spec §5.5 and mastermind-and-simple-coder §4.2, with the time limits
of the seed.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

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


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """Limits and grants of one sandbox; it belongs to the operator, never to an agent."""

    wall_clock_s: float = 60.0
    """Seconds a command may run."""
    install_s: float = 300.0
    """Seconds for package installers, clones and `create_venv`."""
    grace_s: float = 0.5
    """Seconds between SIGTERM and SIGKILL."""
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
    """Bytes of one stream that are passed on live."""
    memory_bytes: int = 4 * GIB
    """Resident memory of a command's whole process tree; also RLIMIT_DATA of each process."""
    file_bytes: int = 1 * GIB
    """RLIMIT_FSIZE: the largest file a command may write."""
    open_files: int = 1024
    processes: int = 256
    """Processes a command may add to those the user has; the kernel does not hold root to it."""
    disk_floor_bytes: int = 256 * MIB
    """A command is ended when free disk space falls below this."""
    programs: tuple[str, ...] = (*PYTHON_PROGRAMS, *VENV_PROGRAMS, *SYSTEM_PROGRAMS)
    """Names that `run` accepts as its first word. Good manners, not a boundary (sandbox spec §3.7)."""
    network: bool = True
    """Whether package-index and proxy settings are passed on.

    False tells pip to ask no index; cutting commands off from the network is a confinement's work.
    """
    home: str = ".home"
    """HOME of commands, a directory at the root that `ls` and `find` leave out."""
    protected: tuple[str, ...] = (".pilothouse",)
    """Names at the root that no file command may touch."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, (int, float)) and not isinstance(value, bool) and value <= 0:
                raise ValueError(f"sandbox policy: {item.name} must be more than 0, not {value}")


def size_text(count: int) -> str:
    """A number of bytes for people: `512 bytes`, `10.0 MiB`."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"
