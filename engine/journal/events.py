"""The kinds of events: one pydantic model a kind, named after what happened.

Adding a kind means: a model here, and a clause in `engine.journal.fold` when it changes a state.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any, ClassVar

from pydantic import ValidationError

from engine.domain.action import ErrorCode, ResultStatus, SandboxSession, Undo
from engine.domain.belief import BeliefSource
from engine.domain.failure import FailureKind, Strategy
from engine.domain.goal import GoalStatus
from engine.domain.parameters import Correction, Extraction, StageRecord, Survey
from engine.domain.plan import PlanStep, StepStatus
from engine.domain.reasoning import Stride
from engine.domain.session import OfferedBelief
from engine.domain.state import AgentConfig
from engine.domain.thinking import Uncovered
from engine.journal import mastermind_events, memory_events
from engine.journal.approval_events import (
    ApprovalAnswered,
    ApprovalAsked,
    ApprovalsSet,
    EnvelopeRevoked,
    PlanAccepted,
    ReplanHeld,
    ReplanRejected,
    RuleGranted,
    RuleRevoked,
)
from engine.journal.break_events import (
    BreakpointAdded,
    BreakpointChanged,
    BreakpointCleared,
    BreakpointHit,
    BreakpointSet,
)
from engine.journal.budget_events import BudgetEased, BudgetReached, BudgetSet, WorkspaceBudgetSet
from engine.journal.dispute_events import ResultDisputed
from engine.journal.errors import JournalError
from engine.journal.event import Event
from engine.journal.meta_events import (
    BackgroundCancelAsked,
    BackgroundEnded,
    BackgroundStarted,
    GuidanceGiven,
    MetacognitionBegun,
    MetaForced,
    MetaVetoed,
    ReplanAsked,
    StuckNoticed,
    ThresholdsAdapted,
    ThresholdsSet,
)
from engine.journal.model_events import (
    DecisionAsked,
    DecisionMade,
    ModelCalled,
    ModelSaid,
    ThinkingFailed,
)
from engine.journal.payload import Payload
from engine.journal.reasoner_events import (
    BeliefTold,
    GenerationAnswered,
    GenerationAsked,
    GenerationBegun,
    GenerationReviewed,
    GenerationSettled,
    IntentionSteered,
    MessageHeard,
    MindBreakpointChanged,
    MindBreakpointHit,
    PlansDecided,
    PlansHeld,
    ReasonerAdvanced,
    TimePassed,
    TracingSet,
)
from engine.journal.rewind_events import AgentForked, RewindBegun, RewindCutOff, RewindFailed, Rewound
from engine.journal.stopping_events import AgentHeld, AgentThawed, StopObserved

__all__ = [
    "AgentForked",
    "AgentHeld",
    "AgentThawed",
    "ApprovalAnswered",
    "ApprovalAsked",
    "ApprovalsSet",
    "BackgroundCancelAsked",
    "BackgroundEnded",
    "BackgroundStarted",
    "BeliefTold",
    "BreakpointAdded",
    "BreakpointChanged",
    "BreakpointCleared",
    "BreakpointHit",
    "BreakpointSet",
    "BudgetEased",
    "BudgetReached",
    "BudgetSet",
    "DecisionAsked",
    "DecisionMade",
    "EnvelopeRevoked",
    "GenerationAnswered",
    "GenerationAsked",
    "GenerationBegun",
    "GenerationReviewed",
    "GenerationSettled",
    "GuidanceGiven",
    "IntentionSteered",
    "MessageHeard",
    "MetaForced",
    "MetaVetoed",
    "MetacognitionBegun",
    "MindBreakpointChanged",
    "MindBreakpointHit",
    "ModelCalled",
    "ModelSaid",
    "Payload",
    "PlanAccepted",
    "PlansDecided",
    "PlansHeld",
    "ReasonerAdvanced",
    "ReplanAsked",
    "ReplanHeld",
    "ReplanRejected",
    "ResultDisputed",
    "RewindBegun",
    "RewindCutOff",
    "RewindFailed",
    "Rewound",
    "RuleGranted",
    "RuleRevoked",
    "StopObserved",
    "StuckNoticed",
    "ThinkingFailed",
    "ThresholdsAdapted",
    "ThresholdsSet",
    "TimePassed",
    "TracingSet",
    "WorkspaceBudgetSet",
    "mastermind_events",
    "memory_events",
]


# ------------------------------------------------------------------ workspace and session


class WorkspaceCreated(Payload):
    """A directory became a workspace."""

    kind: ClassVar[str] = "workspace.created"
    workspace: str


class SessionOpened(Payload):
    """An engine opened the workspace."""

    kind: ClassVar[str] = "session.opened"
    session: str
    version: str


class SessionClosed(Payload):
    """The engine closed the workspace in good order."""

    kind: ClassVar[str] = "session.closed"
    session: str
    reason: str = ""


class TierAccepted(Payload):
    """The operator lets programs run in a weaker jail than the policy requires, until the session ends."""

    kind: ClassVar[str] = "sandbox.tier_accepted"
    session: str
    tier: str
    reason: str
    """What was missing."""


# ------------------------------------------------------------------ agent


class AgentCreated(Payload):
    """An agent came to be; the first event of its stream."""

    kind: ClassVar[str] = "agent.created"
    external: ClassVar[bool] = True
    agent_id: str
    agent_type: str
    description: str = ""
    config: AgentConfig


class AgentOpened(Payload):
    """A session took the agent up; what ran when the last one ended is settled after this."""

    kind: ClassVar[str] = "agent.opened"
    external: ClassVar[bool] = True
    session: str
    seed: int


class AgentDeleted(Payload):
    """The agent was removed; its history stays."""

    kind: ClassVar[str] = "agent.deleted"


class AgentResumed(Payload):
    """The agent may run."""

    kind: ClassVar[str] = "agent.resumed"
    max_loops: int | None = None
    until: str | None = None
    ask: bool = True


class AgentPaused(Payload):
    """No new action starts; what runs ends by itself."""

    kind: ClassVar[str] = "agent.paused"
    reason: str


class StepGranted(Payload):
    """While paused, one more action is allowed; to an agent with a reasoner a stride of body steps."""

    kind: ClassVar[str] = "agent.step_granted"
    stride: Stride | None = None


class AgentStopped(Payload):
    """The agent was stopped; a running action is cut off."""

    kind: ClassVar[str] = "agent.stopped"
    reason: str


# ------------------------------------------------------------------ commands


class CommandReceived(Payload):
    """The operator asked for something."""

    kind: ClassVar[str] = "command.received"
    external: ClassVar[bool] = True
    command: dict[str, Any]


class CommandRefused(Payload):
    """What was asked for could not be done; nothing changed."""

    kind: ClassVar[str] = "command.refused"
    reason: str


# ------------------------------------------------------------------ goals and beliefs


class GoalAdopted(Payload):
    """A new desire."""

    kind: ClassVar[str] = "goal.adopted"
    goal: str
    text: str
    priority: int = 1
    parent: str | None = None
    parent_step: str | None = None
    criteria: tuple[str, ...] = ()


class GoalSelected(Payload):
    """Deliberation chose the goal to pursue."""

    kind: ClassVar[str] = "goal.selected"
    goal: str


class GoalMoved(Payload):
    """A goal serves another one than before, or none."""

    kind: ClassVar[str] = "goal.moved"
    goal: str
    parent: str | None = None


class GoalChanged(Payload):
    """The text or the priority of a goal was changed; its plan no longer holds when the text did."""

    kind: ClassVar[str] = "goal.changed"
    goal: str
    text: str
    priority: int


class GoalEnded(Payload):
    """A goal was achieved, failed or dropped."""

    kind: ClassVar[str] = "goal.ended"
    goal: str
    status: GoalStatus
    reason: str = ""


class BeliefAdded(Payload):
    """Something is now held true; an older value of the key is replaced."""

    kind: ClassVar[str] = "belief.added"
    key: str
    value: Any
    confidence: float = 0.9
    source: BeliefSource = BeliefSource.PERCEPTION


class BeliefRemoved(Payload):
    """Something is no longer held true."""

    kind: ClassVar[str] = "belief.removed"
    key: str
    reason: str = ""


class WorldPerceived(Payload):
    """The agent looked at its workspace; the facts are beliefs from then on, None removes one."""

    kind: ClassVar[str] = "world.perceived"
    external: ClassVar[bool] = True
    facts: dict[str, Any]
    session: SandboxSession
    world: dict[str, Any] | None = None
    """The agent's small world, where it lives in one."""


# ------------------------------------------------------------------ plans


class PlanAsked(Payload):
    """A thinker is asked for a plan; its answer comes later."""

    kind: ClassVar[str] = "plan.asked"
    goal: str
    thinker: str


class PlanGenerated(Payload):
    """A thinker answered with a plan."""

    kind: ClassVar[str] = "plan.generated"
    goal: str
    thinker: str
    steps: tuple[PlanStep, ...] = ()
    uncovered: tuple[Uncovered, ...] = ()


class PlanRejected(Payload):
    """A plan was not adopted, with every reason."""

    kind: ClassVar[str] = "plan.rejected"
    goal: str
    problems: tuple[str, ...]
    failure: FailureKind = FailureKind.PLANNING_ERROR


class PlanAdopted(Payload):
    """A plan is now followed for a goal."""

    kind: ClassVar[str] = "plan.adopted"
    plan: str
    goal: str
    steps: tuple[PlanStep, ...]


class PlanRevised(Payload):
    """The operator, or recovery in the agent's name, changed the steps of a plan."""

    kind: ClassVar[str] = "plan.revised"
    plan: str
    goal: str
    change: str
    """What was done, in words."""
    steps: tuple[PlanStep, ...]


class StepEnded(Payload):
    """A step was completed, failed, skipped, or put back to be run again."""

    kind: ClassVar[str] = "step.ended"
    goal: str
    step: str
    status: StepStatus
    summary: str = ""


# ------------------------------------------------------------------ actions


class ActionRequested(Payload):
    """An action is about to pass the gate."""

    kind: ClassVar[str] = "action.requested"
    action: str
    step: str = ""
    goal: str = ""
    tool: str
    command: str
    args: dict[str, Any]


class ParametersAsked(Payload):
    """A model is asked for parameters that are missing; what it finds comes later."""

    kind: ClassVar[str] = "action.parameters_asked"
    action: str
    model: str
    missing: tuple[str, ...]


class ParametersProcessed(Payload):
    """The parameters of a requested action were looked at, and something came of it."""

    kind: ClassVar[str] = "action.parameters"
    action: str
    args: dict[str, Any]
    """As they are from now on."""
    corrections: tuple[Correction, ...] = ()
    stages: tuple[StageRecord, ...] = ()
    survey: Survey = Survey()
    """What of the workspace all this rests on."""
    extraction: Extraction | None = None
    """What a model found, where one was asked before this."""


class ActionHeld(Payload):
    """The gate holds the action."""

    kind: ClassVar[str] = "action.held"
    action: str
    reason: str


class ActionWithdrawn(Payload):
    """A requested action will not start: its step was changed, or the session ended."""

    kind: ClassVar[str] = "action.withdrawn"
    action: str
    reason: str


class ActionStarted(Payload):
    """The action runs; this is durable before its first effect."""

    kind: ClassVar[str] = "action.started"
    action: str
    undo: Undo
    mutates: bool = False
    snapshot: str | None = None
    """Workspace snapshot taken before it, when there is one."""


class ActionOutput(Payload):
    """A piece of what the action prints."""

    kind: ClassVar[str] = "action.output"
    external: ClassVar[bool] = True
    action: str
    stream: str
    text: str
    skipped: int = 0
    """Characters before this piece that were not kept."""


class ActionFinished(Payload):
    """The action ended by itself, well or not."""

    kind: ClassVar[str] = "action.finished"
    action: str
    status: ResultStatus
    code: ErrorCode | None = None
    result: dict[str, Any]
    """The tool's answer; long strings are cut when `blob` is set."""
    blob: str | None = None
    """Digest of the whole answer as JSON, when it is large."""
    session: SandboxSession | None = None
    world: dict[str, Any] | None = None
    """The agent's small world after it, when it changed."""
    duration_ms: int = 0
    summary: str = ""


class ActionCancelled(Payload):
    """The action was cut off by the operator or by shutdown."""

    kind: ClassVar[str] = "action.cancelled"
    action: str
    reason: str


class ActionOutcomeUnknown(Payload):
    """The program ended while the action ran; whether it took effect is not known."""

    kind: ClassVar[str] = "action.outcome_unknown"
    action: str


class OperatorActionQueued(Payload):
    """The operator wants a tool called."""

    kind: ClassVar[str] = "action.queued"
    tool: str
    command: str
    args: dict[str, Any]


# ------------------------------------------------------------------ workspace snapshots


class SnapshotTaken(Payload):
    """The files of the sandbox were saved before an action."""

    kind: ClassVar[str] = "snapshot.taken"
    action: str
    snapshot: str
    """Its id; equal trees have equal ids."""
    files: int
    bytes: int
    new_bytes: int
    """Bytes that it added to the store."""
    skipped: int = 0
    """How many things it cannot bring back."""
    duration_ms: int = 0
    since: str = ""
    """The action before which the last one was taken (`pilot:a3`); empty where nothing changed, or it is
    not known."""
    written: tuple[str, ...] = ()
    """Files that are new or other ones since then, from the root; the first ones where they are many."""
    removed: tuple[str, ...] = ()


class SnapshotFailed(Payload):
    """The files of the sandbox could not be saved before an action."""

    kind: ClassVar[str] = "snapshot.failed"
    action: str
    reason: str


class SnapshotWaived(Payload):
    """The operator lets a step run without a snapshot."""

    kind: ClassVar[str] = "snapshot.waived"
    step: str


# ------------------------------------------------------------------ background jobs


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


# ------------------------------------------------------------------ the operator at the shell


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


# ------------------------------------------------------------------ recovery and intervention


class FailureRecorded(Payload):
    """Something went wrong and was classified."""

    kind: ClassVar[str] = "failure.recorded"
    failure: FailureKind
    message: str
    subject: str = ""
    goal: str = ""
    step: str = ""
    action: str = ""
    escalated_from: str = ""
    """The sub-goal that handed this failure up; it was counted there."""


class RecoveryChosen(Payload):
    """What will be done about a failure."""

    kind: ClassVar[str] = "recovery.chosen"
    failure: FailureKind
    strategy: Strategy
    goal: str = ""
    step: str = ""
    """Empty when the plan itself is what failed."""
    attempt: int = 1
    of: int = 1
    delay_s: float = 0.0
    why: str = ""


class RecoveryEnded(Payload):
    """Whether what was recovered succeeded: a step, the asking for a plan, or a goal planned anew."""

    kind: ClassVar[str] = "recovery.ended"
    failure: FailureKind
    strategy: Strategy
    goal: str = ""
    step: str = ""
    success: bool
    rests_until: int = 0
    """The tick until which the strategy is not chosen for this kind; 0 when it is not used up."""


class RecoveryHastened(Payload):
    """The operator wants what recovery waits with tried now."""

    kind: ClassVar[str] = "recovery.hastened"
    goal: str


class InterventionOpened(Payload):
    """The agent waits for the operator."""

    kind: ClassVar[str] = "intervention.opened"
    goal: str = ""
    step: str = ""
    reason: str
    failure: FailureKind | None = None
    tried: tuple[str, ...] = ()


class InterventionClosed(Payload):
    """The operator decided."""

    kind: ClassVar[str] = "intervention.closed"
    resolution: str


class ThoughtRecorded(Payload):
    """Something the agent says it thinks; without a model only what was computed."""

    kind: ClassVar[str] = "thought.recorded"
    text: str
    type: str = "inference"
    """What part it plays (`engine.domain.memory.ThoughtType`)."""
    goal: str = ""


class WorkflowEntered(Payload):
    """The agent began a workflow of its own for a goal; what it does next belongs there."""

    kind: ClassVar[str] = "workflow.entered"
    workflow: str
    goal: str


class WorkflowLeft(Payload):
    """A workflow that the agent began is over; what it does next belongs to the one around it."""

    kind: ClassVar[str] = "workflow.left"
    workflow: str
    status: str
    """A terminal `engine.domain.memory.WorkflowStatus`."""


def _subclasses(parent: type[Payload]) -> Iterable[type[Payload]]:
    for child in parent.__subclasses__():
        yield child
        yield from _subclasses(child)


@cache
def kinds() -> dict[str, type[Payload]]:
    """Every payload type by its kind."""
    return {child.kind: child for child in _subclasses(Payload)}


def payload_of(event: Event) -> Payload:
    """The typed payload of a stored event.

    Raises:
        JournalError: this version does not know the kind, or the stored payload does not fit it.
    """
    try:
        return kinds()[event.kind].model_validate(json.loads(event.body))
    except (KeyError, ValidationError, json.JSONDecodeError) as error:
        why = "is of no known kind" if isinstance(error, KeyError) else "does not fit its kind"
        raise JournalError(
            f"Event {event.ref} ({event.kind}) {why}: a newer Pilothouse wrote it, or it was changed. "
            "Check with: pilothouse sessions verify"
        ) from error


def as_dict(event: Event) -> dict[str, Any]:
    """The event as a JSON-ready object, for `--events` and exports."""
    return {
        "seq": event.seq,
        "ref": event.ref,
        "at": event.at,
        "tick": event.tick,
        "actor": event.actor,
        "causes": list(event.causes),
        "kind": event.kind,
        "payload": json.loads(event.body),
        "hash": event.hash,
    }
