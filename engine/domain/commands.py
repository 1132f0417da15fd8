"""Commands: what an operator may ask of the engine, validated at the border.

Every way in (key, command bar, mouse, headless) makes one of these; `Engine.submit` takes them.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

from engine.domain.belief import Belief
from engine.domain.budgets import BudgetKind, SpendingLimits
from engine.domain.command import Command as Command
from engine.domain.mastermind_commands import AnyMastermindCommand
from engine.domain.plan import PlanStep
from engine.domain.state import Intervention

AGENT_ID = re.compile(r"[a-z][a-z0-9_-]{0,31}")
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "for to that which with a an the and or but so as if when where how why what who "
        "create creating make making",
    )
)
"""Words that are no agent's id: a sentence was typed where an id was meant (mindX spec §1.2)."""
RESERVED_IDS = frozenset({"workspace", "mastermind", "all"})
GOAL_LIMIT = 8_000


def check_agent_id(value: str) -> str:
    """The id, if an agent may bear it.

    Raises:
        ValueError: says what is wrong and what an id looks like.
    """
    if value.lower() in STOP_WORDS or value in RESERVED_IDS:
        raise ValueError(f"'{value}' cannot be an agent's id; choose a name such as builder-2")
    if not AGENT_ID.fullmatch(value):
        raise ValueError(
            f"'{value[:40]}' is no agent id: a lower-case letter, then up to 31 of a-z 0-9 _ -, "
            "such as builder-2"
        )
    return value


AgentId = Annotated[str, AfterValidator(check_agent_id)]
GoalText = Annotated[str, Field(min_length=1, max_length=GOAL_LIMIT)]


class CreateAgent(Command):
    """Bring an agent to be."""

    do: Literal["create_agent"] = "create_agent"
    agent: AgentId
    agent_type: str = "bdi_agent"
    description: str = Field(default="", max_length=4_000)
    config: dict[str, Any] = Field(default_factory=dict)


class DeleteAgent(Command):
    """Remove an agent; its history stays."""

    do: Literal["delete_agent"] = "delete_agent"


class AdoptGoal(Command):
    """Give the agent a goal."""

    do: Literal["adopt_goal"] = "adopt_goal"
    text: GoalText
    priority: int = Field(default=1, ge=-1_000_000, le=1_000_000)
    criteria: tuple[Annotated[str, Field(min_length=1, max_length=2_000)], ...] = Field((), max_length=20)
    """What must be shown to hold before it counts as achieved."""


class ChangeGoal(Command):
    """Reword a goal or change its priority."""

    do: Literal["change_goal"] = "change_goal"
    goal: str
    text: GoalText | None = None
    priority: int | None = None


class PushGoal(Command):
    """Put a goal below another one: it is pursued first, then the other goes on."""

    do: Literal["push_goal"] = "push_goal"
    goal: str
    """The goal that it is to serve."""
    text: GoalText


class MoveGoal(Command):
    """Let a goal serve another one, or none."""

    do: Literal["move_goal"] = "move_goal"
    goal: str
    parent: str = ""
    """The goal that it is to serve; empty for none."""


class DropGoal(Command):
    """Give a goal up."""

    do: Literal["drop_goal"] = "drop_goal"
    goal: str
    reason: str = "dropped by the operator"


class Run(Command):
    """Let the agent run."""

    do: Literal["run"] = "run"
    max_loops: int | None = Field(default=None, ge=1)
    until: str | None = None
    """Pause when this goal has ended."""
    ask: bool = True
    """False when nobody will answer the agent's questions."""


class Pause(Command):
    """Start no new action."""

    do: Literal["pause"] = "pause"


class Step(Command):
    """Allow exactly one action or body step, or the whole of a goal."""

    do: Literal["step"] = "step"
    scope: Literal["step", "over", "out"] = "step"
    """`over`: until the pending step is through, with the goals below it. `out`: until its plan is."""
    strides: bool = True
    """False as it was recorded before agents with plans could step into, over and out of goals."""


class BudgetAmounts(Command):
    """What a budget is to be."""

    usd: float | None = Field(default=None, ge=0, le=1_000_000, allow_inf_nan=False)
    tokens: int | None = Field(default=None, ge=0, le=10**15)
    calls: int | None = Field(default=None, ge=0, le=10**9)
    actions: int | None = Field(default=None, ge=0, le=10**9)
    seconds: float | None = Field(default=None, ge=0, le=10**9, allow_inf_nan=False)
    keep: bool = False
    """Whether limits that are not named stay; else only the named ones hold."""
    more: tuple[BudgetKind, ...] = ()
    """Kinds of which the amount comes on top of the limit; of what was spent where there is none."""
    lifted: tuple[BudgetKind, ...] = ()
    """Kinds that are to have no limit, whatever the settings say."""

    @property
    def limits(self) -> SpendingLimits:
        """The limits that are named."""
        return SpendingLimits(
            self.usd, self.tokens, self.calls, self.actions, self.seconds, tuple(map(str, self.lifted))
        )


class SetBudget(BudgetAmounts):
    """Say what an agent or a goal may take over all sessions; nothing given is the settings' budget."""

    do: Literal["set_budget"] = "set_budget"
    goal: str = ""
    """The goal, with those below it; empty for the agent, with those that work for it."""


class SetWorkspaceBudget(BudgetAmounts):
    """Say what all agents together may take over all sessions; nothing given is the settings' budget."""

    do: Literal["set_workspace_budget"] = "set_workspace_budget"


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


class Stop(Command):
    """Stop in a grade: from holding the agent after its step to ending all that runs (the usual)."""

    do: Literal["stop"] = "stop"
    reason: str = "stopped by the operator"
    grade: Literal["after", "hold", "cut", "cancel", "freeze", "kill"] = "kill"
    """See `engine.domain.stopping.StopGrade`."""
    scope: Literal["agent", "children", "all"] = "agent"
    """This agent, with those that work for it too, or every agent of the workspace."""


class Thaw(Command):
    """Let frozen processes go on; the agent stays held."""

    do: Literal["thaw"] = "thaw"
    scope: Literal["agent", "children", "all"] = "agent"


class EditStep(Command):
    """Change what a step does; it is validated again before it may run."""

    do: Literal["edit_step"] = "edit_step"
    step: str
    tool: str | None = None
    command: str | None = None
    args: dict[str, Any] | None = None
    description: str | None = None


class InsertStep(Command):
    """Put a new step before another, or at the end."""

    do: Literal["insert_step"] = "insert_step"
    before: str | None = None
    tool: str = "simple_coder"
    command: str
    args: dict[str, Any] = Field(default_factory=dict)
    description: str = ""


class DeleteStep(Command):
    """Take a step that has not run out of the plan."""

    do: Literal["delete_step"] = "delete_step"
    step: str


class MoveStep(Command):
    """Move a step that has not run up (-1) or down (+1)."""

    do: Literal["move_step"] = "move_step"
    step: str
    by: Literal[-1, 1]


class SkipStep(Command):
    """Go on without a step."""

    do: Literal["skip_step"] = "skip_step"
    step: str
    reason: str = "skipped by the operator"


class RetryStep(Command):
    """Run a failed step again now, or ask for a goal's plan again now."""

    do: Literal["retry_step"] = "retry_step"
    step: str = ""
    goal: str = ""
    """The goal, where no step is named."""


class GiveResult(Command):
    """Settle a step with a result that the operator vouches for."""

    do: Literal["give_result"] = "give_result"
    step: str
    result: str = Field(max_length=100_000)


class ReplacePlan(Command):
    """Replace what has not run of the current plan, by steps in JSON or by clauses in English."""

    do: Literal["replace_plan"] = "replace_plan"
    goal: str
    plan: str = Field(min_length=1, max_length=1_000_000)


class AbortGoal(Command):
    """Fail a goal by the operator's decision."""

    do: Literal["abort_goal"] = "abort_goal"
    goal: str
    reason: str = "aborted by the operator"


class SetBreakpoint(Command):
    """Hold the agent before a step, or no longer."""

    do: Literal["set_breakpoint"] = "set_breakpoint"
    step: str
    on: bool = True


class AnswerApproval(Command):
    """Say what becomes of an action that waits for approval."""

    do: Literal["answer_approval"] = "answer_approval"
    action: str = ""
    """The action; empty for the one that waits."""
    allow: bool
    scope: Literal["once", "session", "always"] = "once"
    rule: str = Field(default="", max_length=2_000)
    """To allow: the rule on a line that is granted, and that the call must fit; empty for the one offered."""
    args: dict[str, Any] | None = None
    """To allow once: other arguments, with which the step runs."""
    reason: str = Field(default="", max_length=2_000)
    """To deny: why, as the agent is to see it."""


class GrantRule(Command):
    """Let calls that fit a rule run unasked."""

    do: Literal["grant_rule"] = "grant_rule"
    rule: str = Field(min_length=1, max_length=2_000)
    scope: Literal["session", "always"] = "session"


class RevokeRule(Command):
    """Ask again about calls that fit a rule which was granted, or that a goal's envelope covers."""

    do: Literal["revoke_rule"] = "revoke_rule"
    grant: str = Field(min_length=1, max_length=40)
    """Id of the grant, or of the goal whose envelope it is."""


class SetApprovals(Command):
    """Say what this agent is to ask about, beside what the workspace says; `allow` adds nothing."""

    do: Literal["set_approvals"] = "set_approvals"
    policy: str | dict[str, Any]
    """A preset's name, or a policy as in the settings."""


class AcceptPlan(Command):
    """Accept a goal's plan as it is now, with what may be done for it unasked."""

    do: Literal["accept_plan"] = "accept_plan"
    goal: str
    envelope: dict[str, Any] = Field(default_factory=dict)
    """Parts of the envelope that are other than proposed; see `engine.steering.envelopes`."""


class RejectReplan(Command):
    """Refuse a re-plan that waits: the thinker is asked again, or the operator's turn begins."""

    do: Literal["reject_replan"] = "reject_replan"
    goal: str
    reason: str = Field(default="", max_length=2_000)


class Intervene(Command):
    """Take the agent's turn: it waits for the operator's decision."""

    do: Literal["intervene"] = "intervene"


class HandBack(Command):
    """End the intervention without changing anything; the agent looks at its workspace afresh."""

    do: Literal["hand_back"] = "hand_back"


class CallTool(Command):
    """Call a tool as the operator, through the agent's own pipeline and session."""

    do: Literal["call_tool"] = "call_tool"
    tool: str = "simple_coder"
    command: str
    args: dict[str, Any] = Field(default_factory=dict)


class Believe(Command):
    """Put a belief into the agent's mind."""

    do: Literal["believe"] = "believe"
    key: str = Field(min_length=1, max_length=200)
    value: Any


class Forget(Command):
    """Take a belief out of the agent's mind."""

    do: Literal["forget"] = "forget"
    key: str


class Dispute(Command):
    """Mark something recorded as wrong, or take that back; nothing else follows by itself."""

    do: Literal["dispute"] = "dispute"
    event: str = Field(min_length=1, max_length=200)
    """An event of the agent's, as `stream:version`."""
    reason: str = Field(default="", max_length=2_000)
    lifted: bool = False


class TakeShell(Command):
    """Take the agent's shell: it is held, and the operator works in its sandbox."""

    do: Literal["take_shell"] = "take_shell"


class ReturnShell(Command):
    """Hand the shell back; what changed meanwhile is offered as beliefs."""

    do: Literal["return_shell"] = "return_shell"
    note: str = Field(default="", max_length=2_000)
    """A word to the agent about what was done."""


class SettleChanges(Command):
    """Say what of the changes made at the shell the agent is to know."""

    do: Literal["settle_changes"] = "settle_changes"
    accept: tuple[str, ...] | None = None
    """Keys of the offered beliefs; None accepts all."""
    follow: bool = True
    """Whether the agent goes on in the directory and virtual environment in which the shell ended."""


class StopJob(Command):
    """End a background job."""

    do: Literal["stop_job"] = "stop_job"
    job: str


class WaiveSnapshot(Command):
    """Let a step run although the workspace could not be saved before it."""

    do: Literal["waive_snapshot"] = "waive_snapshot"
    step: str


class TellBelief(Command):
    """Give a reasoner a belief, or take one away, whatever its sources."""

    do: Literal["tell_belief"] = "tell_belief"
    literal: str = Field(min_length=1, max_length=10_000)
    removed: bool = False


class SteerIntention(Command):
    """Hold an intention back, let it go on, let its present step fail, or take it away."""

    do: Literal["steer_intention"] = "steer_intention"
    intention: int
    how: Literal["suspend", "resume", "drop", "fail"]
    reason: str = Field(default="", max_length=1_000)


class BreakOn(Command):
    """Hold a reasoner where a belief, goal, plan or error comes up."""

    do: Literal["break_on"] = "break_on"
    on: Literal["step", "belief", "goal", "plan", "error"]
    pattern: str = Field(min_length=1, max_length=1_000)
    """An action, belief or goal with variables, the label of a plan, or an error id."""


class SetBreak(Command):
    """Hold an agent where something comes; see `engine.domain.break_lines`."""

    do: Literal["set_break"] = "set_break"
    line: str = Field(min_length=1, max_length=1_000)
    """Such as `tool write path=*.toml when failures > 2 after 3 once`."""


class ChangeBreak(Command):
    """Switch a breakpoint on or off, or clear it."""

    do: Literal["change_break"] = "change_break"
    breakpoint: str
    enabled: bool = True
    cleared: bool = False


class SetTracing(Command):
    """Journal every change of beliefs, events and intentions, or no longer."""

    do: Literal["set_tracing"] = "set_tracing"
    on: bool


class DecidePlans(Command):
    """Say what becomes of plans that a model made and that wait for approval."""

    do: Literal["decide_plans"] = "decide_plans"
    generation: str
    decision: Literal["approve", "reject", "again"]
    text: str = Field(default="", max_length=1_000_000)
    """To approve: the plans as edited, or empty for the accepted ones as they are. Else the reason."""


class ForceMeta(Command):
    """Have a background task done now, whether it is due or not."""

    do: Literal["force_meta"] = "force_meta"
    task: Literal["adapt", "reflect", "consolidate", "optimise", "promote", "maintain", "link"]


class VetoMeta(Command):
    """Let a background task not be begun by itself, or let it again."""

    do: Literal["veto_meta"] = "veto_meta"
    task: Literal["adapt", "reflect", "consolidate", "optimise", "promote", "maintain", "link"]
    lifted: bool = False


class CancelBackground(Command):
    """Cut a background job of the agent's thinking off."""

    do: Literal["cancel_background"] = "cancel_background"
    job: str = Field(min_length=1, max_length=64)


class SetThresholds(Command):
    """Say after how many successes a reflection and a consolidation are due; None leaves one as it is."""

    do: Literal["set_thresholds"] = "set_thresholds"
    reflection: int | None = Field(default=None, ge=0, le=1_000_000)
    consolidation: int | None = Field(default=None, ge=0, le=1_000_000)


class Guide(Command):
    """Say something to the thinker; the next prompt has it, once."""

    do: Literal["guide"] = "guide"
    text: str = Field(min_length=1, max_length=4_000)


class AcceptTier(Command):
    """Let programs run in a weaker jail than the policy requires, until this session ends."""

    do: Literal["accept_tier"] = "accept_tier"
    tier: Literal["FULL", "KERNEL", "SEATBELT", "PATHS"]
    """What this machine gives; the operator names it, so that nobody accepts less than they read."""


class Remember(Command):
    """Write to memory as the operator; an agent's current workflow stands for one that is not named."""

    do: Literal["remember"] = "remember"
    verb: str = Field(min_length=1, max_length=100)
    """Name of the request, ours or the seed's."""
    arguments: dict[str, Any] = Field(default_factory=dict)


AnyCommand = (
    CreateAgent
    | DeleteAgent
    | AdoptGoal
    | ChangeGoal
    | PushGoal
    | MoveGoal
    | DropGoal
    | Run
    | Pause
    | Step
    | Rewind
    | ForkAgent
    | AdoptFork
    | Undo
    | PutBack
    | Stop
    | Thaw
    | EditStep
    | InsertStep
    | DeleteStep
    | MoveStep
    | SkipStep
    | RetryStep
    | GiveResult
    | ReplacePlan
    | AbortGoal
    | SetBreakpoint
    | AnswerApproval
    | GrantRule
    | RevokeRule
    | SetApprovals
    | AcceptPlan
    | RejectReplan
    | Intervene
    | HandBack
    | CallTool
    | Believe
    | Forget
    | Dispute
    | TakeShell
    | ReturnShell
    | SettleChanges
    | StopJob
    | WaiveSnapshot
    | TellBelief
    | SteerIntention
    | BreakOn
    | SetBreak
    | ChangeBreak
    | SetTracing
    | DecidePlans
    | ForceMeta
    | VetoMeta
    | CancelBackground
    | SetThresholds
    | Guide
    | AcceptTier
    | SetBudget
    | SetWorkspaceBudget
    | Remember
    | AnyMastermindCommand
)


class Receipt(BaseModel):
    """What became of a command; when it is returned, what it says is durable."""

    model_config = ConfigDict(frozen=True)
    ok: bool
    message: str
    event: str = ""
    """Reference of the event that recorded the command."""
    data: dict[str, Any] = Field(default_factory=dict)


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
