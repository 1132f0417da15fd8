"""The kinds of events of background jobs, and of the operator at the shell."""

from __future__ import annotations

from typing import ClassVar

from engine.domain.action import SandboxSession
from engine.domain.session import OfferedBelief
from engine.journal.payload import Payload


class JobStarted(Payload):
    """A program goes on in the background of the session."""

    kind: ClassVar[str] = "job.started"
    external: ClassVar[bool] = True
    job: str
    command: str
    action: str


class JobOutput(Payload):
    """A piece of what a job prints."""

    kind: ClassVar[str] = "job.output"
    external: ClassVar[bool] = True
    job: str
    stream: str
    text: str
    skipped: int = 0
    """Characters before this piece that were not kept."""


class JobEnded(Payload):
    """A job has ended with everything it started."""

    kind: ClassVar[str] = "job.ended"
    external: ClassVar[bool] = True
    job: str
    ended: str
    """Why: `exit`, `signal`, `cancelled`, `memory`, …; `unknown` when nobody saw it."""
    code: int | None = None
    message: str = ""


class JobStopAsked(Payload):
    """The operator wants a job ended."""

    kind: ClassVar[str] = "job.stop_asked"
    job: str


class ShellTyped(Payload):
    """The operator typed at the shell."""

    kind: ClassVar[str] = "shell.typed"
    external: ClassVar[bool] = True
    action: str
    text: str = ""
    hidden: bool = False
    """True where the terminal's echo was off: what was typed is kept nowhere."""


class ShellResized(Payload):
    """The operator's terminal has another size; a recorded session plays back with it."""

    kind: ClassVar[str] = "shell.resized"
    external: ClassVar[bool] = True
    action: str
    rows: int
    columns: int


class ShellReturned(Payload):
    """The operator hands the shell back."""

    kind: ClassVar[str] = "shell.returned"
    action: str
    note: str = ""


class ChangesOffered(Payload):
    """What changed while the operator held the shell, put to them as beliefs for the agent."""

    kind: ClassVar[str] = "shell.changes_offered"
    external: ClassVar[bool] = True
    action: str
    offers: tuple[OfferedBelief, ...]
    session: SandboxSession | None = None
    """Where the shell stood at its end, when the agent would go on elsewhere."""


class ChangesSettled(Payload):
    """The operator said what the agent is to know; the session is where it goes on."""

    kind: ClassVar[str] = "shell.changes_settled"
    accepted: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    session: SandboxSession | None = None
