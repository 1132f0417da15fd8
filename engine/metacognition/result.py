"""What came of a background job."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a job, for the event of its end."""

    message: str
    """In a line."""
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
    counts: dict[str, int] = field(default_factory=dict)
    """What was counted or done, by name."""
