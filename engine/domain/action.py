"""Actions: tool calls, and what tools answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from engine.domain.belief import BeliefTerms


class Undo(StrEnum):
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
        """One line that says what came of it, at most 150 characters."""
        # What went well is told on standard output, what went wrong on standard error.
        first, second = ("stdout", "stderr") if self.ok else ("stderr", "stdout")
        text = self.data.get("message") or self.data.get(first) or self.data.get(second) or ""
        if not text and "items" in self.data:
            text = f"{len(self.data['items'])} items"
        if not text and "content" in self.data:
            text = f"{len(self.data['content'])} characters"
        lines = [line for line in str(text).strip().splitlines() if line.strip()]
        return (lines[-1].strip() if lines else self.status.value)[:150]
