"""Stopping in grades, and the receipt that says what was stopped and what still runs (steering §3 idea 8)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class StopGrade(StrEnum):
    """How much is stopped, from the least; each takes in what those before it stop, but for `freeze`.

    A frozen tool call is not cancelled: it stands still and can go on.
    """

    AFTER = "after"
    """Let the present step be finished, then hold."""
    HOLD = "hold"
    """Start no new action from now on; what runs ends by itself."""
    CUT = "cut"
    """Cut the call of the model off, too."""
    CANCEL = "cancel"
    """Cancel the running tool call, too; its step runs again when the agent goes on."""
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
    """What they call themselves, some of them; where one of a frozen tree goes on, those that do."""


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
    """What became of it, in words: `cut off`, `frozen`, `ends by itself`."""
    processes: int = 0
    """Processes that were seen: those that were stopped or, where it goes on, those that live."""
    names: tuple[str, ...] = ()
    """What some of these call themselves."""
    took_ms: int = 0
    """From the request until it was seen to be so."""


@dataclass(frozen=True, slots=True)
class StopReceipt:
    """What came of a stop of one agent, from looking at it afterwards."""

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
