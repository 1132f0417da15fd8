"""What an agent has under way: an action, a retry, the operator's turn, a workflow, a rewind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.domain.failure import FailureKind
from engine.domain.session import SHELL_COMMAND, SHELL_TOOL


@dataclass(frozen=True, slots=True)
class ActiveAction:
    """An action on its way through the pipeline."""

    id: str
    tool: str
    command: str
    args: dict[str, Any]
    actor: str
    step: str = ""
    goal: str = ""
    started: bool = False
    mutates: bool = False
    """Whether it may change something outside of the agent; known once it has started."""
    snapshot: str = ""
    """Workspace snapshot taken for it; empty before that, and where none is taken."""
    needs: str = ""
    """Why it needs the operator whatever the rules say, in words; empty where it does not."""
    request: bool = False
    """Whether it needs the operator's word on this very call: nothing that was allowed before answers it."""
    client: str = ""
    """The client that it is for; empty for the agent's own and the operator's."""
    attended: bool = False
    """Whether a client's call waits for the operator where it is asked about."""
    queued: str = ""
    """The event by which the operator or a client asked for it."""
    dropped: bool = False
    """Whether its client no longer wants it."""
    at: str = ""
    """When it was requested, then when it started."""
    event: str = ""

    @property
    def shell(self) -> bool:
        """True for the operator's shell."""
        return (self.tool, self.command, self.step) == (SHELL_TOOL, SHELL_COMMAND, "")


@dataclass(frozen=True, slots=True)
class Retry:
    """What recovery will try again: a failed step, or asking for a goal's plan."""

    step: str
    """Empty when the plan is asked for again."""
    attempt: int
    of: int
    delay_s: float
    event: str = ""
    goal: str = ""
    at: str = ""
    """When it was decided, from which the delay counts."""


@dataclass(frozen=True, slots=True)
class Intervention:
    """The operator's turn: the agent waits for a decision."""

    goal: str
    step: str
    """Empty when no step is concerned, such as after a planning failure."""
    reason: str
    kind: str = ""
    """Failure kind, empty when the operator opened it."""
    tried: tuple[str, ...] = ()
    """What recovery did before, in words."""
    event: str = ""

    @property
    def unsaved(self) -> bool:
        """True when the step waits because the workspace could not be saved before it."""
        return self.kind == FailureKind.DEPENDENCY_NOT_MET


@dataclass(frozen=True, slots=True)
class OperatorRequest:
    """A tool call that the operator or a client asked for and that has not started."""

    tool: str
    command: str
    args: dict[str, Any]
    actor: str
    event: str = ""
    client: str = ""
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class OpenWorkflow:
    """A workflow that the agent began below that of its root goal, and has not ended."""

    id: str
    goal: str
    """The goal that it was begun for; whatever the agent turns to meanwhile, its end is that goal's."""


@dataclass(frozen=True, slots=True)
class Rewinding:
    """A rewind that has begun to change files and has not ended."""

    to: int
    """The version of the stream that is come back to."""
    what: str
    """A value of `engine.domain.rewinding.RewindScope`."""
    snapshot: str
    saved: str
    """Snapshot of the files as they were right before."""
    event: str = ""
