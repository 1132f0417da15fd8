"""How an agent looks after its own thinking: what is due, what runs in the background, with what result.

Only the fold changes a `MetaState`. A loop is one turn of the agent: an action that has ended, a sub-goal
adopted, a thought. Values, commands and events.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Literal

from pydantic import Field

from engine.core.command import Command
from engine.core.journal import Payload
from engine.core.reasons import NONE, Reason
from engine.value import dataclass

WINDOW = 50
"""Newest actions of the agent's own that its failure rate is taken from."""
COOLDOWN_LOOPS = 3
"""Loops without another reflection after one that asked for another plan, unless something fails."""
REST_LOOPS = 3
"""Loops before a task is tried again whose job did not succeed."""
FEEDBACK_KEPT = 10
FEEDBACK_LIMIT = 4_000
"""Characters of one piece of feedback; more belongs into memory."""
ENDED_KEPT = 20
"""Jobs that a state remembers after their end."""


class MetaTask(StrEnum):
    """What is done in the background, in the order in which it is looked at."""

    ADAPT = "adapt"
    """Count memories and failures, so that the thresholds follow."""
    REFLECT = "reflect"
    CONSOLIDATE = "consolidate"
    OPTIMISE = "optimise"
    """Cut working memory down to size, and bring into focus what draws it most."""
    PROMOTE = "promote"
    MAINTAIN = "maintain"
    """Let expired memories go, and old links weaken."""
    LINK = "link"
    """Link new memories with those that are like them."""

    @property
    def needs_memory(self) -> bool:
        """False for what can be computed from the agent's own record."""
        return self not in (MetaTask.ADAPT, MetaTask.REFLECT)


class JobOutcome(StrEnum):
    """How a background job ended."""

    DONE = "done"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    REFUSED = "refused"
    """Too many others waited."""
    ABANDONED = "abandoned"
    """It did not end when it was cancelled; it is waited for no longer."""
    LOST = "lost"
    """The session ended while it ran."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a threshold begins, and how far it may go."""

    base: int
    low: int
    high: int

    def clamp(self, value: int) -> int:
        """The nearest value within the bounds."""
        return min(self.high, max(self.low, value))


@dataclass(frozen=True, slots=True)
class MetaSettings:
    """When what is due; Intervals are in loops."""

    enabled: bool = True
    model: bool = False
    """Whether a model writes reflections and consolidations; otherwise they are computed."""
    reflection: Bounds = Bounds(7, 3, 15)
    consolidation: Bounds = Bounds(12, 5, 25)
    optimise_every: int = 8
    adapt_every: int = 10
    promote_every: int = 15
    maintain_every: int = 50
    link_every: int = 5
    """The seed links after each action that stored something; here several are linked at once."""
    sources: int = 10
    """Memories that one consolidation brings together at most."""


PRESETS = {
    "seed": MetaSettings(),
    "long": MetaSettings(
        reflection=Bounds(15, 8, 30),
        consolidation=Bounds(25, 15, 50),
        optimise_every=50,
        adapt_every=60,
        promote_every=75,
        maintain_every=100,
        link_every=25,
    ),
}
"""Named settings: those of the seed, and those of its author's later, longer runs."""


class ActionSort(StrEnum):
    """What an action is to the question whether its agent is stuck."""

    LOOK = "look"
    """It asks something and changes nothing."""
    EDIT = "edit"
    """It changes a file, or what is remembered."""
    RUN = "run"
    """It runs a program, which may do anything."""
    PAUSE = "pause"
    """It lets time pass."""


@dataclass(frozen=True, slots=True)
class PastAction:
    """One action of the agent's own, as the window remembers it."""

    call: str
    """Tool and command."""
    digest: str
    """Names the arguments, and the directory that they are understood in."""
    subject: str
    """Command and first argument, for a person."""
    ok: bool
    code: str = ""
    """Error code, empty when it succeeded."""
    duration_ms: int = 0
    polls: bool = False
    """True for looking after a background job, which may well be done over and over."""
    sort: ActionSort = ActionSort.RUN
    answer: str = ""
    """Names what it answered, without times and the like."""
    error: str = ""
    """What sort of error it was, without what it was about; empty when it succeeded."""
    may_change: bool | None = None
    """Whether what it looks at can change without the agent; None where that is not known."""
    gap_ms: int = 0
    """Time between the end of the action before and its start."""
    decided: str = ""
    """The plan's revision that had it; actions of one revision were all wanted before any of them ran."""
    again: bool = False
    """True where recovery ran the same step once more."""
    phase: int = 0
    """How often the work had changed before it (`MetaState.phase`)."""

    @property
    def same_as(self) -> tuple[str, str]:
        """Equal for calls with the same arguments."""
        return self.call, self.digest


@dataclass(frozen=True, slots=True)
class ToolStatistics:
    """How the calls of one command went, since the agent was created."""

    succeeded: int = 0
    failed: int = 0
    duration_ms: int = 0
    """In all."""


@dataclass(frozen=True, slots=True)
class Signal:
    """A sign that the agent may be stuck."""

    kind: str
    """`repeated`, `alternating`, `error_loop` or `no_progress`."""
    text: Reason


@dataclass(frozen=True, slots=True)
class Stuck:
    """An agent was seen to be stuck, and has not come out of it."""

    signs: tuple[Signal, ...]
    event: str = ""
    at: str = ""
    """When it was seen, ISO 8601 UTC."""

    @property
    def text(self) -> str:
        """The signs on a line."""
        return "; ".join(sign.text for sign in self.signs)


@dataclass(frozen=True, slots=True)
class Feedback:
    """What waits to be told to the thinker, once."""

    text: str
    source: str
    """`reflection`, `consolidation` or `operator`."""
    event: str
    """The event it came from."""
    computed: bool = False
    asked: str = ""
    """The event that took it into a prompt; empty while it waits."""
    when: str = ""
    """Of the operator's words: `now`, `after` or `plan` as in `Guide`; empty for the next prompt."""
    led: str = ""
    """The decision or plan that answered that prompt; empty while none did."""

    @property
    def line(self) -> str:
        """The text, and whose it is."""
        return f"{self.source}{' (computed)' if self.computed else ''}: {self.text}"


@dataclass(frozen=True, slots=True)
class BackgroundJob:
    """Work beside the agent's cycle; the ids it works with are those of when it began."""

    id: str
    task: MetaTask
    why: Reason
    loop: int
    goal: str = ""
    """The root goal that was pursued, whose workflow the job keeps to whatever the agent turns to."""
    counter: float = 0.0
    """Successes that it was begun for."""
    failures: int = 0
    """Failures that it was begun for."""
    kind: str = ""
    """Of a reflection: what it asks (`engine.core.memory.ReflectionKind`)."""
    at: str = ""
    """When it began."""
    event: str = ""


@dataclass(frozen=True, slots=True)
class EndedJob:
    """A background job that is over."""

    job: BackgroundJob
    outcome: JobOutcome
    message: Reason
    at: str = ""
    event: str = ""


@dataclass(frozen=True, slots=True)
class MemoryCounts:
    """What the count of memories gave, until the thresholds have followed it."""

    episodic: int = 0
    total: int = 0
    unconsolidated: int = 0
    """Episodic memories that went into no other one."""
    event: str = ""


@dataclass(frozen=True, slots=True)
class MetaState:
    """Everything about an agent's looking after itself."""

    on: bool = False
    """False for streams from before there was any of this."""
    memory: bool = False
    """Whether this session has a memory."""
    settings: MetaSettings = MetaSettings()
    reflection_threshold: int = MetaSettings().reflection.base
    consolidation_threshold: int = MetaSettings().consolidation.base
    loop: int = 0
    last: dict[MetaTask, int] = field(default_factory=dict)
    """The loop at which each task was begun last; never changed in place."""
    cycle: int = 0
    """Reflections that succeeded; the next one's kind follows from it."""
    failures: int = 0
    """Failures since a reflection was begun last."""
    cooldown_until: int = 0
    """The loop before which only a failure makes a reflection due."""
    resting: dict[MetaTask, int] = field(default_factory=dict)
    """Tasks that did not succeed, to the loop from which they are tried again; never changed in place."""
    forced: tuple[MetaTask, ...] = ()
    """Tasks that the operator wants done now."""
    vetoed: tuple[MetaTask, ...] = ()
    """Tasks that the operator does not want to be begun by themselves."""
    running: tuple[BackgroundJob, ...] = ()
    ended: tuple[EndedJob, ...] = ()
    """The newest of what was running, oldest first."""
    counts: MemoryCounts | None = None
    overdue: bool = False
    """Whether so much waits that a consolidation is due at once."""
    replan: str = ""
    """The event by which a reflection asked for another plan; empty when none waits to be asked for."""
    replan_goal: str = ""
    """The goal whose plan that is about."""
    feedback: tuple[Feedback, ...] = ()
    told: tuple[Feedback, ...] = ()
    """The newest of what the thinker was told, with the event that asked it."""
    window: tuple[PastAction, ...] = ()
    tools: dict[str, ToolStatistics] = field(default_factory=dict)
    """By tool and command; never changed in place."""
    phase: int = 0
    """How often a goal, or something that the operator said, has changed what the work is."""
    acted: str = ""
    """The event by which the newest action of its own ended."""
    acted_at: str = ""
    """When that was."""
    stuck: Stuck | None = None
    """What was seen of its being stuck, while it is."""
    unlinked: int = 0
    """Actions since memories were linked that may have made new ones."""

    @property
    def failed(self) -> int:
        """Failures within the window."""
        return sum(not action.ok for action in self.window)

    @property
    def messages(self) -> tuple[Feedback, ...]:
        """What the operator said to the thinker and no answer of it has taken up, oldest first."""
        asked = (entry for entry in self.told if not entry.led)
        return tuple(entry for entry in (*asked, *self.feedback) if entry.source == "operator")

    def guidance(self, *, plans: bool) -> tuple[str, ...]:
        """What the next prompt has of that; `plans` where it asks for a plan."""
        return tuple(entry.text for entry in self.messages if plans or entry.when != "plan")

    def pressing(self, *when: str) -> Feedback | None:
        """A message that is to be taken up at one of these times, and is in no prompt yet."""
        return next((entry for entry in self.feedback if entry.when in when), None)

    @property
    def findings(self) -> tuple[str, ...]:
        """What looking back has found, and the thinker has not been told."""
        return tuple(entry.line for entry in self.feedback if entry.source != "operator")

    def job(self, ident: str) -> BackgroundJob | None:
        """The running job with this id."""
        return next((job for job in self.running if job.id == ident), None)

    def doing(self, task: MetaTask) -> BackgroundJob | None:
        """The running job of a task."""
        return next((job for job in self.running if job.task is task), None)


class MetacognitionBegun(Payload, kind="meta.begun", external=True):
    """From here on an agent looks after its thinking, or otherwise than before, or no longer."""

    settings: MetaSettings
    memory: bool = False


class BackgroundStarted(Payload, kind="meta.started"):
    """Work begins beside the agent's cycle."""

    job: str
    task: MetaTask
    why: Reason
    goal: str = ""
    """The root goal that is pursued; the job keeps to its workflow."""
    about: str = ""
    """Of a reflection: its kind."""


class BackgroundEnded(Payload, kind="meta.ended", external=True):
    """Work beside the cycle is over, however it ended."""

    job: str
    outcome: JobOutcome
    message: Reason = NONE
    """Its result, or why nothing did, in a line."""
    feedback: str = ""
    """What the thinker is to be told."""
    computed: bool = True
    """False where a model wrote it."""
    replan: bool = False
    """Whether another plan is asked for."""
    made: str = ""
    """Id of the resulting reflection or memory."""
    sources: tuple[str, ...] = ()
    """Memories that went into it."""
    counts: dict[str, int] = Field(default_factory=dict)
    """What was counted or done, by name."""
    duration_ms: int = 0


class StuckNoticed(Payload, kind="meta.stuck", external=True):
    """An agent was seen to be stuck, or to be no longer; from outside, as nothing that it does itself."""

    signs: tuple[Signal, ...] = ()
    """What was seen; none when it is stuck no longer."""
    holds: bool = False
    """Whether it pauses, as its configuration says."""


class ThresholdsAdapted(Payload, kind="meta.adapted"):
    """The thresholds follow how the work went."""

    reflection: int
    consolidation: int
    calls: int
    """Actions in the window."""
    failures: int
    episodic: int
    total: int
    overdue: bool = False
    """Whether so many memories wait that a consolidation is due at once."""


class ThresholdsSet(Payload, kind="meta.thresholds_set"):
    """The operator set thresholds; None leaves one as it is."""

    reflection: int | None = None
    consolidation: int | None = None


class MetaForced(Payload, kind="meta.forced"):
    """The operator wants a task done now."""

    task: MetaTask


class MetaVetoed(Payload, kind="meta.vetoed"):
    """The operator does not want a task to be begun by itself, or lets it again."""

    task: MetaTask
    lifted: bool = False


class BackgroundCancelAsked(Payload, kind="meta.cancel_asked"):
    """A background job is to be cut off; its end follows."""

    job: str


class GuidanceGiven(Payload, kind="meta.guidance"):
    """The operator has something to say to the thinker; the next prompt has it, until one is answered."""

    text: str
    when: Literal["", "now", "after", "plan"] = ""


class ReplanAsked(Payload, kind="meta.replan_asked"):
    """The rest of a goal is planned anew, as a reflection asked for."""

    goal: str


class ForceMeta(Command, do="force_meta"):
    """Have a background task done now, whether it is due or not."""

    task: Literal["adapt", "reflect", "consolidate", "optimise", "promote", "maintain", "link"]


class VetoMeta(Command, do="veto_meta"):
    """Let a background task not be begun by itself, or let it again."""

    task: Literal["adapt", "reflect", "consolidate", "optimise", "promote", "maintain", "link"]
    lifted: bool = False


class CancelBackground(Command, do="cancel_background"):
    """Cut a background job of the agent's thinking off."""

    job: str = Field(min_length=1, max_length=64)


class SetThresholds(Command, do="set_thresholds"):
    """Say after how many successes a reflection and a consolidation are due; None leaves one as it is."""

    reflection: int | None = Field(default=None, ge=0, le=1_000_000)
    consolidation: int | None = Field(default=None, ge=0, le=1_000_000)


class Guide(Command, do="guide"):
    """Say something to the thinker, or to a program as the belief `operator_says(TEXT)`."""

    text: str = Field(min_length=1, max_length=4_000)
    when: Literal["", "now", "after", "plan"] = ""
    """`now` cuts a thought off, never a tool; `after` waits for the action or thought that is under way; both
    have a plan made anew. `plan` waits until a plan is made for another reason; empty for the next prompt.
    """
