"""What a confinement hands to the launcher: how a command is held, as data.

A confinement decides in the cockpit; the supervisor and the child carry it out (sandbox spec §5.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from engine.sandbox.policy import SandboxPolicy, Tier


@dataclass(frozen=True, slots=True)
class Launch:
    """A program, ready to be executed."""

    executable: str
    """Absolute path."""
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    terminal: str = ""
    """Path of the terminal that becomes its own; empty without one."""


@dataclass(frozen=True, slots=True)
class FileRules:
    """A Landlock ruleset as numbers; see `engine.sandbox.landlock`."""

    files: int
    """Rights on files that are held back but for `paths`."""
    ports: int
    """Rights on TCP ports that are held back but for `connect`."""
    scope: int
    paths: tuple[tuple[str, int], ...]
    """Path and the rights on it and all below; a path that is not there is passed over."""
    connect: tuple[int, ...] = ()
    """TCP ports that may be connected to."""


@dataclass(frozen=True, slots=True)
class Confined:
    """How one command is held."""

    outer: tuple[str, ...] = ()
    """Program, absolute, with arguments, that starts the supervisor; none when it is started directly."""
    outer_arguments: tuple[str, ...] = ()
    """More arguments for it, in a descriptor named by `--args`: the process list shows no path."""
    rules: FileRules | None = None
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
