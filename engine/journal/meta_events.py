"""The kinds of events by which an agent looks after its own thinking."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from engine.domain.metacognition import JobOutcome, MetaSettings, MetaTask, Signal
from engine.journal.payload import Payload


class MetacognitionBegun(Payload):
    """From here on an agent looks after its thinking, or otherwise than before, or no longer."""

    kind: ClassVar[str] = "meta.begun"
    external: ClassVar[bool] = True
    settings: MetaSettings
    memory: bool = False


class BackgroundStarted(Payload):
    """Work begins beside the agent's cycle."""

    kind: ClassVar[str] = "meta.started"
    job: str
    task: MetaTask
    why: str
    goal: str = ""
    """The root goal that is pursued; the job keeps to its workflow."""
    about: str = ""
    """Of a reflection: its kind."""


class BackgroundEnded(Payload):
    """Work beside the cycle is over, however it ended."""

    kind: ClassVar[str] = "meta.ended"
    external: ClassVar[bool] = True
    job: str
    outcome: JobOutcome
    message: str = ""
    """What came of it, or why nothing did, in a line."""
    feedback: str = ""
    """What the thinker is to be told."""
    computed: bool = True
    """False where a model wrote it."""
    replan: bool = False
    """Whether another plan is asked for."""
    made: str = ""
    """Id of the reflection or memory that came of it."""
    sources: tuple[str, ...] = ()
    """Memories that went into it."""
    counts: dict[str, int] = Field(default_factory=dict)
    """What was counted or done, by name."""
    duration_ms: int = 0


class StuckNoticed(Payload):
    """An agent was seen to be stuck, or to be no longer; from outside, as nothing that it does itself."""

    kind: ClassVar[str] = "meta.stuck"
    external: ClassVar[bool] = True
    signs: tuple[Signal, ...] = ()
    """What was seen; none when it is stuck no longer."""
    holds: bool = False
    """Whether it pauses, as its configuration says."""


class ThresholdsAdapted(Payload):
    """The thresholds follow how the work went (spec master-loop §3.5)."""

    kind: ClassVar[str] = "meta.adapted"
    reflection: int
    consolidation: int
    calls: int
    """Actions in the window."""
    failures: int
    episodic: int
    total: int
    overdue: bool = False
    """Whether so many memories wait that a consolidation is due at once."""


class ThresholdsSet(Payload):
    """The operator set thresholds; None leaves one as it is."""

    kind: ClassVar[str] = "meta.thresholds_set"
    reflection: int | None = None
    consolidation: int | None = None


class MetaForced(Payload):
    """The operator wants a task done now."""

    kind: ClassVar[str] = "meta.forced"
    task: MetaTask


class MetaVetoed(Payload):
    """The operator does not want a task to be begun by itself, or lets it again."""

    kind: ClassVar[str] = "meta.vetoed"
    task: MetaTask
    lifted: bool = False


class BackgroundCancelAsked(Payload):
    """A background job is to be cut off; its end follows."""

    kind: ClassVar[str] = "meta.cancel_asked"
    job: str


class GuidanceGiven(Payload):
    """The operator has something to say to the thinker; the next prompt has it, once."""

    kind: ClassVar[str] = "meta.guidance"
    text: str


class ReplanAsked(Payload):
    """The rest of a goal is planned anew, as a reflection asked for."""

    kind: ClassVar[str] = "meta.replan_asked"
    goal: str
