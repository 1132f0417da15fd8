"""The kinds of events of actions, and of the files as they were saved before them."""

from __future__ import annotations

from typing import Any, ClassVar

from engine.domain.action import ErrorCode, ResultStatus, SandboxSession, Undo
from engine.domain.parameters import Correction, Extraction, StageRecord, Survey
from engine.journal.payload import Payload


class ActionRequested(Payload):
    """An action is about to pass the gate."""

    kind: ClassVar[str] = "action.requested"
    action: str
    step: str = ""
    goal: str = ""
    tool: str
    command: str
    args: dict[str, Any]


class ParametersAsked(Payload):
    """A model is asked for parameters that are missing; what it finds comes later."""

    kind: ClassVar[str] = "action.parameters_asked"
    action: str
    model: str
    missing: tuple[str, ...]


class ParametersProcessed(Payload):
    """The parameters of a requested action were looked at, and something came of it."""

    kind: ClassVar[str] = "action.parameters"
    action: str
    args: dict[str, Any]
    """As they are from now on."""
    corrections: tuple[Correction, ...] = ()
    stages: tuple[StageRecord, ...] = ()
    survey: Survey = Survey()
    """What of the workspace all this rests on."""
    extraction: Extraction | None = None
    """What a model found, where one was asked before this."""


class OperatorNeeded(Payload):
    """A requested action needs the operator's word: it would destroy something, or asks for more freedom."""

    kind: ClassVar[str] = "action.needs_operator"
    external: ClassVar[bool] = True
    action: str
    why: str
    request: bool = False
    """Whether only a word on this very call will do."""


class ActionHeld(Payload):
    """The gate holds the action."""

    kind: ClassVar[str] = "action.held"
    action: str
    reason: str


class ActionWithdrawn(Payload):
    """A requested action will not start: its step was changed, or the session ended."""

    kind: ClassVar[str] = "action.withdrawn"
    action: str
    reason: str


class ActionStarted(Payload):
    """The action runs; this is durable before its first effect."""

    kind: ClassVar[str] = "action.started"
    action: str
    undo: Undo
    mutates: bool = False
    snapshot: str | None = None
    """Workspace snapshot taken before it, when there is one."""


class ActionOutput(Payload):
    """A piece of what the action prints."""

    kind: ClassVar[str] = "action.output"
    external: ClassVar[bool] = True
    action: str
    stream: str
    text: str
    skipped: int = 0
    """Characters before this piece that were not kept."""


class ActionFinished(Payload):
    """The action ended by itself, well or not."""

    kind: ClassVar[str] = "action.finished"
    action: str
    status: ResultStatus
    code: ErrorCode | None = None
    result: dict[str, Any]
    """The tool's answer; long strings are cut when `blob` is set."""
    blob: str | None = None
    """Digest of the whole answer as JSON, when it is large."""
    session: SandboxSession | None = None
    world: dict[str, Any] | None = None
    """The agent's small world after it, when it changed."""
    duration_ms: int = 0
    summary: str = ""


class ActionCancelled(Payload):
    """The action was cut off by the operator or by shutdown."""

    kind: ClassVar[str] = "action.cancelled"
    action: str
    reason: str


class ActionOutcomeUnknown(Payload):
    """The program ended while the action ran; whether it took effect is not known."""

    kind: ClassVar[str] = "action.outcome_unknown"
    action: str


class OperatorActionQueued(Payload):
    """The operator, or a client that the workspace is served to, wants a tool called."""

    kind: ClassVar[str] = "action.queued"
    tool: str
    command: str
    args: dict[str, Any]
    client: str = ""
    """The client; empty for the operator."""
    wait_s: float = 0.0
    """Seconds that the operator has to answer where the call is asked about."""


class CallDropped(Payload):
    """A client no longer wants a call: it does not start, or is cut off."""

    kind: ClassVar[str] = "action.dropped"
    queued: str
    """The event that queued it."""


class SnapshotTaken(Payload):
    """The files of the sandbox were saved before an action."""

    kind: ClassVar[str] = "snapshot.taken"
    action: str
    snapshot: str
    """Its id; equal trees have equal ids."""
    files: int
    bytes: int
    new_bytes: int
    """Bytes that it added to the store."""
    skipped: int = 0
    """How many things it cannot bring back."""
    duration_ms: int = 0
    since: str = ""
    """The action before which the last one was taken (`pilot:a3`); empty where nothing changed, it is not
    known, or that one was taken before several actions at once."""
    written: tuple[str, ...] = ()
    """Files that are new or other ones since then, from the root; the first ones where they are many."""
    removed: tuple[str, ...] = ()


class SnapshotFailed(Payload):
    """The files of the sandbox could not be saved before an action."""

    kind: ClassVar[str] = "snapshot.failed"
    action: str
    reason: str


class SnapshotWaived(Payload):
    """The operator lets a step run without a snapshot."""

    kind: ClassVar[str] = "snapshot.waived"
    step: str


class ToolOffered(Payload):
    """What a tool from outside (an MCP server, custom functions) offers the agent from here on.

    Such tools come and go while agents live; on record, so that a replay checks calls as they were checked.
    """

    kind: ClassVar[str] = "tool.offered"
    external: ClassVar[bool] = True
    tool: str
    commands: tuple[dict[str, Any], ...] = ()
    """Fields of each `engine.domain.ports.CommandSpec`, its schema left out; `checked` where somebody else
    checks the arguments."""
