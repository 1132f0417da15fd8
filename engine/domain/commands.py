"""Commands: what an operator may ask of the engine, validated at the border.

Every way in (key, command bar, mouse, headless) makes one of these; `Engine.submit` takes them. Each
stands in the module of its noun (`engine/domain/*_commands.py`) and is had from here.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from engine.domain.agent_commands import (
    AgentCommand,
    BudgetAmounts,
    CreateAgent,
    DeleteAgent,
    HandBack,
    Intervene,
    Pause,
    Run,
    SetBudget,
    SetWorkspaceBudget,
    Step,
    Stop,
    Thaw,
)
from engine.domain.approval_commands import (
    AcceptPlan,
    AnswerApproval,
    ApprovalCommand,
    GrantRule,
    RejectReplan,
    RevokeRule,
    SetApprovals,
)
from engine.domain.break_commands import (
    BreakCommand,
    BreakOn,
    ChangeBreak,
    SetBreak,
    SetBreakpoint,
    SetTracing,
)
from engine.domain.command import (
    AGENT_ID,
    GOAL_LIMIT,
    RESERVED_IDS,
    STOP_WORDS,
    AgentId,
    Command,
    GoalText,
    Receipt,
    check_agent_id,
)
from engine.domain.crew_commands import AnyCrewCommand
from engine.domain.goal_commands import (
    AbortGoal,
    AdoptGoal,
    ChangeGoal,
    DeleteStep,
    DropGoal,
    EditStep,
    GiveResult,
    GoalCommand,
    InsertStep,
    MoveGoal,
    MoveStep,
    PushGoal,
    ReplacePlan,
    RetryStep,
    SkipStep,
    WaiveSnapshot,
)
from engine.domain.mastermind_commands import AnyMastermindCommand
from engine.domain.mind_commands import (
    Believe,
    CancelBackground,
    DecidePlans,
    Dispute,
    ForceMeta,
    Forget,
    Guide,
    MindCommand,
    Remember,
    SetThresholds,
    SteerIntention,
    TellBelief,
    VetoMeta,
)
from engine.domain.sandbox_commands import (
    AcceptTier,
    CallTool,
    DropCall,
    ReturnShell,
    SandboxCommand,
    SettleChanges,
    StopJob,
    TakeShell,
)
from engine.domain.server_commands import DistrustServer, ServerCommand, TrustServer
from engine.domain.time_commands import AdoptFork, ForkAgent, PutBack, Rewind, TimeCommand, Undo

__all__ = [
    "AGENT_ID",
    "GOAL_LIMIT",
    "RESERVED_IDS",
    "STOP_WORDS",
    "AbortGoal",
    "AcceptPlan",
    "AcceptTier",
    "AdoptFork",
    "AdoptGoal",
    "AgentId",
    "AnswerApproval",
    "AnyCommand",
    "Believe",
    "BreakOn",
    "BudgetAmounts",
    "CallTool",
    "CancelBackground",
    "ChangeBreak",
    "ChangeGoal",
    "Command",
    "CreateAgent",
    "DecidePlans",
    "DeleteAgent",
    "DeleteStep",
    "Dispute",
    "DistrustServer",
    "DropCall",
    "DropGoal",
    "EditStep",
    "ForceMeta",
    "Forget",
    "ForkAgent",
    "GiveResult",
    "GoalText",
    "GrantRule",
    "Guide",
    "HandBack",
    "InsertStep",
    "Intervene",
    "MoveGoal",
    "MoveStep",
    "Pause",
    "PushGoal",
    "PutBack",
    "Receipt",
    "RejectReplan",
    "Remember",
    "ReplacePlan",
    "RetryStep",
    "ReturnShell",
    "RevokeRule",
    "Rewind",
    "Run",
    "SetApprovals",
    "SetBreak",
    "SetBreakpoint",
    "SetBudget",
    "SetThresholds",
    "SetTracing",
    "SetWorkspaceBudget",
    "SettleChanges",
    "SkipStep",
    "SteerIntention",
    "Step",
    "Stop",
    "StopJob",
    "TakeShell",
    "TellBelief",
    "Thaw",
    "TrustServer",
    "Undo",
    "VetoMeta",
    "WaiveSnapshot",
    "check_agent_id",
    "parse_command",
    "parse_recorded",
]

AnyCommand = (
    AgentCommand
    | GoalCommand
    | TimeCommand
    | ApprovalCommand
    | SandboxCommand
    | BreakCommand
    | MindCommand
    | AnyMastermindCommand
    | AnyCrewCommand
    | ServerCommand
)


def parse_command(value: dict[str, Any]) -> AnyCommand:
    """A command from its JSON object.

    Raises:
        pydantic.ValidationError: it is none, or one of its fields is wrong.
    """
    return _adapter().validate_python(value)


def parse_recorded(value: dict[str, Any]) -> AnyCommand:
    """A command as the journal has it: what has been added since means what it was without.

    Raises:
        pydantic.ValidationError: it is none, or one of its fields is wrong.
    """
    return parse_command({"strides": False, **value} if value.get("do") == "step" else value)


@cache
def _adapter() -> TypeAdapter[AnyCommand]:
    # Building it takes milliseconds, of each key if it were built for each command.
    return TypeAdapter(Annotated[AnyCommand, Field(discriminator="do")])
