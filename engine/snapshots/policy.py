"""What a workspace snapshot holds, what it leaves out, and how much it may take.

Pure data. A snapshot never leaves anything out silently: whatever a limit or a treatment keeps away is
named in the snapshot and in the answer of `take`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from engine.sandbox.policy import GIB, MIB, SandboxPolicy

Treatment = Literal["whole", "list", "skip"]
"""`whole`: file by file; `list`: what is in it is written down, not kept; `skip`: only named."""


@dataclass(frozen=True, slots=True)
class SnapshotPolicy:
    """Treatments and limits of snapshots; it belongs to the operator, never to an agent."""

    venvs: Treatment = "list"
    """Directories with a `pyvenv.cfg` beside `bin`: `list` keeps that file and the installed distributions.

    They cannot be restored byte for byte then, which the snapshot says.
    """
    caches: Treatment = "skip"
    """Directories that tools make anew: `list` keeps the names in them."""
    cache_names: tuple[str, ...] = (
        *("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"),
        *(".tox", ".nox", ".cache", ".npm", "node_modules"),
    )
    """Names of cache directories, wherever they are."""
    cache_paths: tuple[str, ...] = (".home/tmp",)
    """Cache directories by their path from the root."""
    protected: tuple[str, ...] = (".pilothouse",)
    """Names at the root that are never read, recorded, restored or removed."""
    file_bytes: int = 64 * MIB
    """Largest file that is kept."""
    total_bytes: int = 1 * GIB
    """Content of one snapshot, each file counted once."""
    entries: int = 200_000
    """Names in one snapshot."""
    depth: int = 10_000
    """Levels of directories."""
    attempts: int = 3
    """How often something that changes while it is read is tried."""
    store_bytes: int = 4 * GIB
    """Size of the store to which `collect` brings it back by forgetting the oldest snapshots."""
    snapshots: int = 2_000
    """How many `collect` leaves; each take looks through their names."""
    floor_bytes: int = 256 * MIB
    """Free disk space below which nothing is taken; 0 for no floor."""

    @classmethod
    def for_sandbox(cls, sandbox: SandboxPolicy) -> SnapshotPolicy:
        """The policy for a sandbox's root: HOME and TMPDIR of its programs are caches."""
        names = tuple(name.casefold() for name in sandbox.protected)
        return cls(cache_paths=(sandbox.home, sandbox.tmp), protected=names)

    def protects(self, name: str) -> bool:
        """Whether a name at the root is Pilothouse's own, however a file system spells it."""
        return name.casefold() in self.protected

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            least = 0 if item.name == "floor_bytes" else 1
            if isinstance(value, int) and value < least:
                raise ValueError(f"snapshot policy: {item.name} must be at least {least}, not {value}")
