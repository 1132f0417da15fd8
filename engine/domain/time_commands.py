"""Commands that go back, begin anew from there, and undo."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from engine.domain.belief import Belief
from engine.domain.command import AgentId, Command
from engine.domain.plan import PlanStep
from engine.domain.state import Intervention


class Rewind(Command):
    """Take the agent and its files back to an event of its stream; the journal goes on."""

    do: Literal["rewind"] = "rewind"
    to: int = Field(ge=1)
    """A version of the agent's stream."""
    scope: Literal["both", "state", "files"] = "both"
    paths: tuple[Annotated[str, Field(min_length=1, max_length=4_096)], ...] = Field((), max_length=1_000)
    """Of the files only these; none for all."""


class ForkAgent(Command):
    """Let a new agent begin where one stood after an event, with its own copy of the files as of then."""

    do: Literal["fork"] = "fork"
    to: int = Field(ge=1)
    """A version of the agent's stream."""
    name: AgentId
    """The new agent's id."""


class AdoptFork(Command):
    """Give an agent the files that a fork of it has now; its own history stays."""

    do: Literal["adopt"] = "adopt"
    fork: AgentId


class Undo(Command):
    """Carry out what makes up for an earlier command; it was shown before."""

    do: Literal["undo"] = "undo"
    of: str = Field(max_length=200)
    """Reference of the earlier command."""
    command: dict[str, Any]
    """What makes up for it, an ordinary command."""
    again: bool = False
    """Whether the earlier command is an undo itself."""


class PutBack(Command):
    """Put steps of a plan, beliefs and the operator's turn back as they were; part of an undo."""

    do: Literal["put_back"] = "put_back"
    goal: str = ""
    steps: tuple[PlanStep, ...] | None = None
    beliefs: tuple[Belief, ...] = ()
    forget: tuple[str, ...] = ()
    turn: Intervention | None = None


TimeCommand = Rewind | ForkAgent | AdoptFork | Undo | PutBack
