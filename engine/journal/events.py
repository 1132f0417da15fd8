"""The kinds of events: one pydantic model a kind, named after what happened.

Adding a kind means: a model in the module of its noun (`engine/journal/*_events.py`), its name here, and a
handler in a `*_fold` module when it changes a state.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from pydantic import ValidationError

from engine.journal import crew_events, mastermind_events, memory_events
from engine.journal.action_events import (
    ActionCancelled,
    ActionFinished,
    ActionHeld,
    ActionOutcomeUnknown,
    ActionOutput,
    ActionRequested,
    ActionStarted,
    ActionWithdrawn,
    CallDropped,
    OperatorActionQueued,
    OperatorNeeded,
    ParametersAsked,
    ParametersProcessed,
    SnapshotFailed,
    SnapshotTaken,
    SnapshotWaived,
    ToolOffered,
)
from engine.journal.agent_events import (
    AgentCreated,
    AgentDeleted,
    AgentOpened,
    AgentPaused,
    AgentResumed,
    AgentStopped,
    CommandReceived,
    CommandRefused,
    SessionClosed,
    SessionOpened,
    StepGranted,
    TierAccepted,
    WorkspaceCreated,
)
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
from engine.journal.goal_events import (
    BeliefAdded,
    BeliefOutweighed,
    BeliefRemoved,
    GoalAdopted,
    GoalChanged,
    GoalEnded,
    GoalMoved,
    GoalSelected,
    PlanAdopted,
    PlanAsked,
    PlanGenerated,
    PlanRejected,
    PlanRevised,
    StepEnded,
    WorkflowEntered,
    WorkflowLeft,
    WorldPerceived,
)
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
from engine.journal.recovery_events import (
    FailureRecorded,
    InterventionClosed,
    InterventionOpened,
    RecoveryChosen,
    RecoveryEnded,
    RecoveryHastened,
    ThoughtRecorded,
)
from engine.journal.rewind_events import AgentForked, RewindBegun, RewindCutOff, RewindFailed, Rewound
from engine.journal.sandbox_events import (
    ChangesOffered,
    ChangesSettled,
    JobEnded,
    JobOutput,
    JobStarted,
    JobStopAsked,
    ShellResized,
    ShellReturned,
    ShellTyped,
)
from engine.journal.server_events import ServerDistrusted, ServerTrusted
from engine.journal.stopping_events import AgentHeld, AgentThawed, StopObserved

__all__ = [
    "ActionCancelled",
    "ActionFinished",
    "ActionHeld",
    "ActionOutcomeUnknown",
    "ActionOutput",
    "ActionRequested",
    "ActionStarted",
    "ActionWithdrawn",
    "AgentCreated",
    "AgentDeleted",
    "AgentForked",
    "AgentHeld",
    "AgentOpened",
    "AgentPaused",
    "AgentResumed",
    "AgentStopped",
    "AgentThawed",
    "ApprovalAnswered",
    "ApprovalAsked",
    "ApprovalsSet",
    "BackgroundCancelAsked",
    "BackgroundEnded",
    "BackgroundStarted",
    "BeliefAdded",
    "BeliefOutweighed",
    "BeliefRemoved",
    "BeliefTold",
    "BreakpointAdded",
    "BreakpointChanged",
    "BreakpointCleared",
    "BreakpointHit",
    "BreakpointSet",
    "BudgetEased",
    "BudgetReached",
    "BudgetSet",
    "CallDropped",
    "ChangesOffered",
    "ChangesSettled",
    "CommandReceived",
    "CommandRefused",
    "DecisionAsked",
    "DecisionMade",
    "EnvelopeRevoked",
    "FailureRecorded",
    "GenerationAnswered",
    "GenerationAsked",
    "GenerationBegun",
    "GenerationReviewed",
    "GenerationSettled",
    "GoalAdopted",
    "GoalChanged",
    "GoalEnded",
    "GoalMoved",
    "GoalSelected",
    "GuidanceGiven",
    "IntentionSteered",
    "InterventionClosed",
    "InterventionOpened",
    "JobEnded",
    "JobOutput",
    "JobStarted",
    "JobStopAsked",
    "MessageHeard",
    "MetaForced",
    "MetaVetoed",
    "MetacognitionBegun",
    "MindBreakpointChanged",
    "MindBreakpointHit",
    "ModelCalled",
    "ModelSaid",
    "OperatorActionQueued",
    "OperatorNeeded",
    "ParametersAsked",
    "ParametersProcessed",
    "Payload",
    "PlanAccepted",
    "PlanAdopted",
    "PlanAsked",
    "PlanGenerated",
    "PlanRejected",
    "PlanRevised",
    "PlansDecided",
    "PlansHeld",
    "ReasonerAdvanced",
    "RecoveryChosen",
    "RecoveryEnded",
    "RecoveryHastened",
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
    "ServerDistrusted",
    "ServerTrusted",
    "SessionClosed",
    "SessionOpened",
    "ShellResized",
    "ShellReturned",
    "ShellTyped",
    "SnapshotFailed",
    "SnapshotTaken",
    "SnapshotWaived",
    "StepEnded",
    "StepGranted",
    "StopObserved",
    "StuckNoticed",
    "ThinkingFailed",
    "ThoughtRecorded",
    "ThresholdsAdapted",
    "ThresholdsSet",
    "TierAccepted",
    "TimePassed",
    "ToolOffered",
    "TracingSet",
    "WorkflowEntered",
    "WorkflowLeft",
    "WorkspaceBudgetSet",
    "WorkspaceCreated",
    "WorldPerceived",
    "as_dict",
    "crew_events",
    "kinds",
    "mastermind_events",
    "memory_events",
    "payload_of",
]


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
