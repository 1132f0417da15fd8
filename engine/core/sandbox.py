"""What lives in an agent's sandbox: background jobs, the operator's shell, and escalating stops.

Values with the receipt of a stop, commands and events.
"""

from __future__ import annotations

import posixpath
from dataclasses import field
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from engine.core.actions import SandboxSession
from engine.core.command import Command
from engine.core.journal import Payload
from engine.core.reasons import NONE, Reason
from engine.value import dataclass


class CallTool(Command, do="call_tool"):
    """Call a tool as the operator, through the agent's own pipeline and session; or for a client."""

    tool: str = "simple_coder"
    command: str
    args: dict[str, Any] = Field(default_factory=dict)
    client: str = Field(default="", pattern=r"^[\w.-]{0,32}$")
    """The program that asks for it, where the workspace is served to one: then it passes the gate as an
    agent's action does."""
    wait_s: float = Field(default=0.0, ge=0, le=86_400, allow_inf_nan=False)
    """Seconds that the operator has to answer where a client's call is asked about; 0 without one."""


class DropCall(Command, do="drop_call"):
    """A client no longer wants a call: it is taken out of the queue, or cut off where it runs."""

    call: str = Field(min_length=1, max_length=200)
    """The event that queued it."""
    client: str = Field(default="", pattern=r"^[\w.-]{0,32}$")


class TakeShell(Command, do="take_shell"):
    """Take the agent's shell: it is held, and the operator works in its sandbox."""


class ReturnShell(Command, do="return_shell"):
    """Hand the shell back; what changed meanwhile is offered as beliefs."""

    note: str = Field(default="", max_length=2_000)
    """A word to the agent about what was done."""


class SettleChanges(Command, do="settle_changes"):
    """Say what of the changes made at the shell the agent is to know."""

    accept: tuple[str, ...] | None = None
    """Keys of the offered beliefs; None accepts all."""
    follow: bool = True
    """Whether the agent continues in the directory and virtual environment in which the shell ended."""


class StopJob(Command, do="stop_job"):
    """End a background job."""

    job: str


class AcceptTier(Command, do="accept_tier"):
    """Let programs run in a weaker jail than the policy requires, until this session ends."""

    tier: Literal["FULL", "KERNEL", "PATHS"]
    """What this machine gives; the operator names it, so that no less is accepted than was read."""


class GrantNetwork(Command, do="grant_network"):
    """Say what programs may reach over the network, until this session ends."""

    network: Literal["off", "ports", "on"]


SHELL_TOOL, SHELL_COMMAND = "simple_coder", "shell"
"""The call that is the operator's shell."""
WRITE_TOOL, WRITE_COMMAND = "simple_coder", "write"
"""The call that puts a whole file in place, by `path` and `content`."""


def place_of(cwd: str, path: str) -> str:
    """The path that is meant from a directory, both relative to the root, without `.` and `..`."""
    return posixpath.normpath(posixpath.join(cwd, path))


@dataclass(frozen=True, slots=True)
class Job:
    """A program that an action started and that continues after it."""

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
    message: Reason = NONE
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
    """Where the shell stood at its end, when the agent would continue elsewhere."""
    event: str = ""


class StopGrade(StrEnum):
    """How much is stopped, from the least; each takes in what those before it stop, but for `freeze`.

    A frozen tool call is not cancelled: it stands still and can continue.
    """

    AFTER = "after"
    """Let the present step be finished, then hold."""
    HOLD = "hold"
    """Start no new action from now on; what runs ends by itself."""
    CUT = "cut"
    """Cut the call of the model off, too."""
    CANCEL = "cancel"
    """Cancel the running tool call, too; its step runs again when the agent continues."""
    FREEZE = "freeze"
    """Stop all of its processes where they are, until they are thawed or killed."""
    KILL = "kill"
    """End everything of it: calls, background jobs, the operator's shell, each with its whole tree."""

    @property
    def rank(self) -> int:
        """Its place among the grades, from 0."""
        return list(StopGrade).index(self)


class TreeKind(StrEnum):
    """Whose processes these are."""

    CALL = "call"
    JOB = "job"
    SHELL = "shell"


@dataclass(frozen=True, slots=True)
class Census:
    """The processes of one program, with all that it started, at one moment."""

    alive: int = 0
    going: int = 0
    """Those that are not stopped."""
    frozen: bool = False
    """Whether they are kept frozen."""
    names: tuple[str, ...] = ()
    """What they call themselves, some of them; where one of a frozen tree continues, those that do."""


class ItemKind(StrEnum):
    """What a line of a receipt is about."""

    MODEL = "model"
    THINKING = "thinking"
    """Background work of the agent's thinking."""
    TOOL = "tool"
    SHELL = "shell"
    """The operator's."""
    JOB = "job"
    ACTION = "action"
    """An action that had been asked for and had not started."""
    RETRY = "retry"
    CALL = "call"
    """A call of the operator's that had not begun."""


@dataclass(frozen=True, slots=True)
class StopItem:
    """One thing that a stop met, as it was seen afterwards."""

    kind: ItemKind
    name: str
    """Id of the action, job or goal; empty where there is none."""
    what: str
    """The command, or what it was about, in words."""
    fate: str
    """How it ended, in words: `cut off`, `frozen`, `ends by itself`."""
    processes: int = 0
    """Processes that were seen: those that were stopped or, where it continues, those that live."""
    names: tuple[str, ...] = ()
    """What some of these call themselves."""
    took_ms: int = 0
    """From the request until it was seen to be so."""


@dataclass(frozen=True, slots=True)
class StopReceipt:
    """The result of a stop of one agent, from looking at it afterwards."""

    stop: str
    """The event that recorded the request."""
    agent: str
    grade: StopGrade
    changed: bool
    """Whether anything was stopped that was not stopped already."""
    complete: bool
    """False while something is still dying; another receipt follows when it is dead."""
    stopped: tuple[StopItem, ...] = ()
    running: tuple[StopItem, ...] = ()
    """What still runs."""
    took_ms: int = 0
    """From the request until all of this had been seen."""

    @property
    def alive(self) -> int:
        """Processes that live and are not stopped."""
        return sum(item.processes for item in self.running)


class JobStarted(Payload, kind="job.started", external=True):
    """A program continues in the background of the session."""

    job: str
    command: str
    action: str


class JobOutput(Payload, kind="job.output", external=True):
    """A piece of what a job prints."""

    job: str
    stream: str
    text: str
    skipped: int = 0
    """Characters before this piece that were not kept."""


class JobEnded(Payload, kind="job.ended", external=True):
    """A job has ended with everything it started."""

    job: str
    ended: str
    """Why: `exit`, `signal`, `cancelled`, `memory`, …; `unknown` when it was not seen."""
    code: int | None = None
    message: Reason = NONE


class JobStopAsked(Payload, kind="job.stop_asked"):
    """The operator wants a job ended."""

    job: str


class ShellTyped(Payload, kind="shell.typed", external=True):
    """The operator typed at the shell."""

    action: str
    text: str = ""
    hidden: bool = False
    """True where the terminal's echo was off: what was typed is kept nowhere."""


class ShellResized(Payload, kind="shell.resized", external=True):
    """The operator's terminal has another size; a recorded session plays back with it."""

    action: str
    rows: int
    columns: int


class ShellReturned(Payload, kind="shell.returned"):
    """The operator hands the shell back."""

    action: str
    note: str = ""


class ChangesOffered(Payload, kind="shell.changes_offered", external=True):
    """What changed while the operator held the shell, put to them as beliefs for the agent."""

    action: str
    offers: tuple[OfferedBelief, ...]
    session: SandboxSession | None = None
    """Where the shell stood at its end, when the agent would continue elsewhere."""


class ChangesSettled(Payload, kind="shell.changes_settled"):
    """The operator said what the agent is to know; the session is where it continues."""

    accepted: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    session: SandboxSession | None = None


class AgentHeld(Payload, kind="agent.held"):
    """The agent starts nothing more; by its grade, what runs is cut off or frozen."""

    grade: StopGrade
    reason: Reason


class AgentThawed(Payload, kind="agent.thawed"):
    """The agent's processes continue; the agent itself stays held."""


class StopObserved(Payload, kind="agent.stop_observed", external=True):
    """What was seen of a stop: what stands, and what still runs."""

    receipt: StopReceipt


class Stop(Command, do="stop"):
    """Stop in a grade: from holding the agent after its step to ending all that runs (the usual)."""

    reason: Reason = Reason("run.stopped")
    grade: Literal["after", "hold", "cut", "cancel", "freeze", "kill"] = "kill"
    """See `engine.core.sandbox.StopGrade`."""
    scope: Literal["agent", "children", "all"] = "agent"
    """This agent, with those that work for it too, or every agent of the workspace."""


class Thaw(Command, do="thaw"):
    """Let frozen processes continue; the agent stays held."""

    scope: Literal["agent", "children", "all"] = "agent"
