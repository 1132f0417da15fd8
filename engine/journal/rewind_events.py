"""The kinds of events by which an agent is taken back in its time, or begins as a fork of another's.

All but one come from outside the agent's cycle: whoever rewinds has read the journal and the snapshots, and
the events carry what came of that, so that the fold and a replay need neither.
"""

from __future__ import annotations

from typing import ClassVar

from engine.domain.budgets import SpendingLimits
from engine.domain.rewinding import Course, RewindScope
from engine.journal.payload import Payload


class RewindBegun(Payload):
    """A rewind is about to change files; this is durable before the first of them is touched."""

    kind: ClassVar[str] = "rewind.begun"
    external: ClassVar[bool] = True
    to: int
    """The version of the stream that is come back to."""
    what: RewindScope
    snapshot: str
    """Whose files are brought back."""
    saved: str
    """Snapshot of the files as they were right before, by which the rewind is rewound."""
    paths: tuple[str, ...] = ()
    """The only paths that are brought back; empty for all."""
    adopted: str = ""
    """The fork whose files are taken over; empty where the agent's own earlier files are brought back."""


class RewindFailed(Payload):
    """A rewind was not carried out, or not to its end; it can be repeated."""

    kind: ClassVar[str] = "rewind.failed"
    external: ClassVar[bool] = True
    reason: str
    partly: bool = False
    """Whether files may have been changed already."""


class RewindCutOff(Payload):
    """The program ended while a rewind changed files; how far it came is not known."""

    kind: ClassVar[str] = "rewind.cut_off"
    to: int


class Rewound(Payload):
    """The agent stands again as it did after an earlier event; what happened since stays in the journal."""

    kind: ClassVar[str] = "agent.rewound"
    external: ClassVar[bool] = True
    to: int
    what: RewindScope
    course: Course | None = None
    """How it stands with its goals from now on; None where only files were brought back."""
    snapshot: str = ""
    """Whose files it has; empty where none were to be changed."""
    changed: int = 0
    """Paths that were written, made, removed or given other permissions."""
    verified: bool | None = None
    """Whether a second look by content found nothing left to do; None where no files were brought back."""
    adopted: str = ""
    """The fork whose files were taken over; empty where the agent's own earlier files were brought back."""
    left: int = 0
    """Things that the snapshot does not hold and that were left as they are."""


class AgentForked(Payload):
    """The agent begins where another one stood after one of its events, with its own copy of the files."""

    kind: ClassVar[str] = "agent.forked"
    external: ClassVar[bool] = True
    parent: str
    """Reference of that event, such as `pilot-1:31`."""
    course: Course
    snapshot: str = ""
    """Whose files it began with; empty where it began without any."""
    next_id: dict[str, int]
    """Last number of each kind of id that the other agent had given."""
    budget: SpendingLimits | None = None
    """What the operator had set for the other agent; the fork's own spending counts against it."""
