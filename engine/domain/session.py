"""What lives in an agent's sandbox besides its actions: background jobs, and the operator at its shell."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import Any

from engine.domain.action import SandboxSession

SHELL_TOOL, SHELL_COMMAND = "simple_coder", "shell"
"""The call that is the operator's shell."""
WRITE_TOOL, WRITE_COMMAND = "simple_coder", "write"
"""The call that puts a whole file in place, by `path` and `content`."""


def place_of(cwd: str, path: str) -> str:
    """The path that is meant from a directory, both relative to the root, without `.` and `..`."""
    return posixpath.normpath(posixpath.join(cwd, path))


@dataclass(frozen=True, slots=True)
class Job:
    """A program that an action started and that goes on after it."""

    id: str
    """`j` and the number of the action that started it."""
    command: str
    """As it was asked for, in words."""
    at: str = ""
    """When it started."""
    ended: str = ""
    """Why it ended (a value of `engine.sandbox.process.Ended`), empty while it runs."""
    code: int | None = None
    """Exit code, -N for signal N, None while it runs or when its end was not seen."""
    message: str = ""
    """What there is to say about its end."""
    event: str = ""

    @property
    def running(self) -> bool:
        """True until it has ended."""
        return not self.ended


@dataclass(frozen=True, slots=True)
class ReturnedShell:
    """The operator's shell after its end, until what it changed has been looked at."""

    action: str
    snapshot: str = ""
    """Workspace snapshot taken before it; empty where there is none."""
    answer: dict[str, Any] = field(default_factory=dict)
    """What its action answered, as the journal has it; empty when it was cut off."""
    event: str = ""


@dataclass(frozen=True, slots=True)
class OfferedBelief:
    """Something that changed while the operator held the shell, put to them as a belief for the agent."""

    key: str
    value: Any
    text: str
    """In words, on one line."""


@dataclass(frozen=True, slots=True)
class Handover:
    """What the operator's time at the shell changed, until they say what the agent is to know of it."""

    action: str
    offers: tuple[OfferedBelief, ...] = ()
    session: SandboxSession | None = None
    """Where the shell stood at its end, when the agent would go on elsewhere."""
    event: str = ""
