"""The kinds of events about breakpoints of any agent."""

from __future__ import annotations

from typing import ClassVar

from engine.domain.breakpoints import BreakSpec
from engine.journal.payload import Payload


class BreakpointAdded(Payload):
    """The agent will be held where this comes."""

    kind: ClassVar[str] = "breakpoint.added"
    breakpoint: str
    spec: BreakSpec


class BreakpointChanged(Payload):
    """A breakpoint was switched on or off, or cleared."""

    kind: ClassVar[str] = "breakpoint.changed"
    breakpoint: str
    enabled: bool = True
    cleared: bool = False


class BreakpointSet(Payload):
    """The agent will be held before this step."""

    kind: ClassVar[str] = "breakpoint.set"
    step: str


class BreakpointCleared(Payload):
    """The step no longer holds the agent."""

    kind: ClassVar[str] = "breakpoint.cleared"
    step: str


class BreakpointHit(Payload):
    """The agent reached a breakpoint, and starts nothing until it is let go on."""

    kind: ClassVar[str] = "breakpoint.hit"
    step: str = ""
    """The step before which it stands, of a breakpoint on a step alone."""
    breakpoint: str = ""
    """Any other breakpoint; empty for one on a step alone."""
    what: str = ""
    """What came, in words."""
    came: str = ""
    """The event by which it came."""
    at: str = ""
    """The action or step that it stands before and that may run then; empty where it stands between two."""
