"""Actions: tool calls, what tools answer, how parameters were processed, and the events of all that.

The events of workspace snapshots, which are taken before actions, stand here too.
"""

from __future__ import annotations

import json
from dataclasses import field
from enum import StrEnum
from typing import Any

from engine.core.beliefs import BeliefTerms
from engine.core.journal import Payload
from engine.core.reasons import Reason
from engine.value import dataclass


class Reversibility(StrEnum):
    """Whether what an action does can be undone."""

    NONE = "none"
    """It changes nothing, so there is nothing to undo."""
    WORKSPACE = "workspace"
    """It changes only files below the sandbox root."""
    IRREVERSIBLE = "irreversible"
    """It may reach outside (network, other programs)."""


class ErrorCode(StrEnum):
    """Structured reason of a tool's refusal or failure; recovery classifies by this, never by prose."""

    UNKNOWN_TOOL = "unknown_tool"
    UNKNOWN_COMMAND = "unknown_command"
    BAD_ARGUMENTS = "bad_arguments"
    OUTSIDE_ROOT = "outside_root"
    NOT_FOUND = "not_found"
    WRONG_TYPE = "wrong_type"
    """A directory where a file was meant, or the reverse."""
    EXISTS = "exists"
    TOO_LARGE = "too_large"
    NOT_TEXT = "not_text"
    NOT_ALLOWED = "not_allowed"
    """Refused by policy: not on the allow-list, autonomous mode off, …"""
    PERMISSION = "permission"
    EXIT_STATUS = "exit_status"
    TIMEOUT = "timeout"
    NETWORK = "network"
    RATE_LIMIT = "rate_limit"
    NO_SPACE = "no_space"
    CANCELLED = "cancelled"
    INTERNAL = "internal"


class ResultStatus(StrEnum):
    """The seed's three answers."""

    SUCCESS = "SUCCESS"
    ERROR = "ERROR"
    """Refused, wrong arguments, or an internal error: nothing ran."""
    FAILURE = "FAILURE"
    """The command ran and did not succeed."""


@dataclass(frozen=True, slots=True)
class SandboxSession:
    """The state of one agent's sandbox session, kept in the journal between actions."""

    cwd: str = "."
    """Working directory relative to the root, `/`-separated, `.` at the root."""
    venv: str | None = None
    """Active virtual environment, relative to the root, or None."""
    autonomous: bool = False
    """The safety switch for deleting and overwriting; only the operator can turn it."""

    @property
    def prompt(self) -> str:
        """The prompt of the seed's transcript: `(.venv) ./project $`."""
        where = "./" if self.cwd == "." else f"./{self.cwd}"
        name = f"({self.venv.rsplit('/', 1)[-1]}) " if self.venv else ""
        return f"{name}{where} $"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered."""

    status: ResultStatus
    data: dict[str, Any] = field(default_factory=dict)
    """The answer without its status: `items`, `content`, `message`, `stdout`, …"""
    code: ErrorCode | None = None
    """Why it was refused or failed; None on success."""
    session: SandboxSession | None = None
    """The session afterwards, when the call changed it."""
    beliefs: dict[str, Any] = field(default_factory=dict)
    """Facts the call established, as belief keys and values."""
    world: dict[str, Any] | None = None
    """The caller's small world afterwards, when the call changed it."""
    duration_ms: int = 0
    terms: dict[str, BeliefTerms] = field(default_factory=dict)
    """For some of the facts: how sure they are, and for how long."""

    @property
    def ok(self) -> bool:
        """True on SUCCESS."""
        return self.status is ResultStatus.SUCCESS

    def as_json(self) -> dict[str, Any]:
        """The seed's JSON envelope: `status` first, then the data, then the reason of a refusal."""
        out: dict[str, Any] = {"status": self.status.value, **self.data}
        if self.code is not None:
            out["reason"] = self.code.value
        return out

    @property
    def message(self) -> str:
        """One line that says its result, at most 150 characters."""
        # What went well is told on standard output, what went wrong on standard error.
        first, second = ("stdout", "stderr") if self.ok else ("stderr", "stdout")
        text = self.data.get("message") or self.data.get(first) or self.data.get(second) or ""
        if not text and "items" in self.data:
            text = f"{len(self.data['items'])} items"
        if not text and "content" in self.data:
            text = f"{len(self.data['content'])} characters"
        lines = [line for line in str(text).strip().splitlines() if line.strip()]
        return (lines[-1].strip() if lines else self.status.value)[:150]


SHOWN = 80
"""Characters of a value in a sentence."""


class Stage(StrEnum):
    """The stages that parameters go through, in order."""

    COMPONENTS = "components"
    """Components that the goal names are looked for."""
    PATHS = "paths"
    """Arguments that are paths are compared with the workspace."""
    CORRECTIONS = "corrections"
    EXTRACTION = "extraction"
    """A model takes what is missing from the goal."""
    DEFAULTS = "defaults"
    VALIDATION = "validation"


@dataclass(frozen=True, slots=True)
class StageRecord:
    """What one stage was given, what it made of it, and why; only arguments that concern it."""

    stage: Stage
    came_in: dict[str, Any] = field(default_factory=dict)
    went_out: dict[str, Any] = field(default_factory=dict)
    why: tuple[str, ...] = ()
    skipped: bool = False
    """True when the stage is switched off."""


@dataclass(frozen=True, slots=True)
class Correction:
    """One argument that was changed or found."""

    argument: str
    before: Any
    """None where the argument was missing."""
    after: Any
    rule: str
    """`key`, `number`, `boolean`, `list`, `object`, `near path`, `component`, `placeholder` or `model`."""
    why: str

    @property
    def words(self) -> str:
        """The correction in a sentence."""
        before = "" if self.before is None else f"{value_text(self.before)} → "
        return f"{self.argument}: {before}{value_text(self.after)} because {self.why}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or directory of the workspace."""

    path: str
    """Relative to the root, as text."""
    directory: bool = False


@dataclass(frozen=True, slots=True)
class Survey:
    """What of the workspace corrections rest on."""

    missing: tuple[str, ...] = ()
    """Arguments whose path is not there."""
    entries: tuple[Entry, ...] = ()
    """What is there under a name like those that were looked for."""
    whole: bool = True
    """False when the workspace was too large to be searched to its end, so that nothing is certain."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """What a model found of the missing parameters."""

    model: str
    values: dict[str, Any] = field(default_factory=dict)
    repairs: tuple[tuple[str, ...], ...] = ()
    """What was wrong with the answer before each repair."""
    error: str = ""
    """Why there is no answer of use; empty when there is one."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A step's arguments after their processing."""

    args: dict[str, Any]
    corrections: tuple[Correction, ...] = ()


def value_text(value: Any) -> str:
    """A value for a sentence: texts in quotes, all else as JSON, cut to a line's length."""
    text = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


class ActionRequested(Payload, kind="action.requested"):
    """An action is about to pass the gate."""

    action: str
    step: str = ""
    goal: str = ""
    tool: str
    command: str
    args: dict[str, Any]


class ParametersAsked(Payload, kind="action.parameters_asked"):
    """A model is asked for parameters that are missing; what it finds comes later."""

    action: str
    model: str
    missing: tuple[str, ...]


class ParametersProcessed(Payload, kind="action.parameters"):
    """The parameters of a requested action were looked at, and something was found."""

    action: str
    args: dict[str, Any]
    """As they are from now on."""
    corrections: tuple[Correction, ...] = ()
    stages: tuple[StageRecord, ...] = ()
    survey: Survey = Survey()
    """What of the workspace all this rests on."""
    extraction: Extraction | None = None
    """What a model found, where one was asked before this."""


class OperatorNeeded(Payload, kind="action.needs_operator", external=True):
    """A requested action needs the operator's word: it would destroy something, or asks for more freedom."""

    action: str
    why: Reason
    request: bool = False
    """Whether only a word on this very call will do."""


class ActionHeld(Payload, kind="action.held"):
    """The gate holds the action."""

    action: str
    reason: Reason


class ActionWithdrawn(Payload, kind="action.withdrawn"):
    """A requested action will not start: its step was changed, or the session ended."""

    action: str
    reason: Reason


class ActionStarted(Payload, kind="action.started"):
    """The action runs; this is durable before its first effect."""

    action: str
    undo: Reversibility
    mutates: bool = False
    snapshot: str | None = None
    """Workspace snapshot taken before it, when there is one."""


class ActionOutput(Payload, kind="action.output", external=True):
    """A piece of what the action prints."""

    action: str
    stream: str
    text: str
    skipped: int = 0
    """Characters before this piece that were not kept."""


class ActionFinished(Payload, kind="action.finished"):
    """The action ended by itself, well or not."""

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


class ActionCancelled(Payload, kind="action.cancelled"):
    """The action was cut off by the operator or by shutdown."""

    action: str
    reason: Reason


class ActionOutcomeUnknown(Payload, kind="action.outcome_unknown"):
    """The program ended while the action ran; whether it took effect is not known."""

    action: str


class OperatorActionQueued(Payload, kind="action.queued"):
    """The operator, or a client that the workspace is served to, wants a tool called."""

    tool: str
    command: str
    args: dict[str, Any]
    client: str = ""
    """The client; empty for the operator."""
    wait_s: float = 0.0
    """Seconds that the operator has to answer where the call is asked about."""


class CallDropped(Payload, kind="action.dropped"):
    """A client no longer wants a call: it does not start, or is cut off."""

    queued: str
    """The event that queued it."""


class SnapshotTaken(Payload, kind="snapshot.taken"):
    """The files of the sandbox were saved before an action."""

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


class SnapshotFailed(Payload, kind="snapshot.failed"):
    """The files of the sandbox could not be saved before an action."""

    action: str
    reason: Reason


class SnapshotWaived(Payload, kind="snapshot.waived"):
    """The operator lets a step run without a snapshot."""

    step: str


class ToolOffered(Payload, kind="tool.offered", external=True):
    """What a tool from outside (an MCP server, custom functions) offers the agent from here on.

    Such tools come and go while agents live; on record, so that a replay checks calls as they were checked.
    """

    tool: str
    commands: tuple[dict[str, Any], ...] = ()
    """Fields of each `engine.core.ports.CommandSpec`, its schema left out; `checked` where another part
    checks the arguments."""
