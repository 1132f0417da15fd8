"""The state of one agent: what a fold of its events gives.

Only `engine.core.fold` changes an `AgentState`; everybody else reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from engine.bdi.trace import IntentionView
from engine.core.actions import SandboxSession, Settled
from engine.core.agents import HANDOFF, PROOF, RUN_TYPES, AgentConfig, Forked, Mode, PausePoint, RunState
from engine.core.approvals import Approvals
from engine.core.beliefs import Belief
from engine.core.breakpoints import Breakpoint, Reached
from engine.core.budgets import BudgetHold, SpendingLimits, Spent, StepCosts
from engine.core.control import Control
from engine.core.goals import Goal
from engine.core.journal import Event, Payload
from engine.core.late_values import LateValues
from engine.core.metacognition import MetaState
from engine.core.plan import Op, Plan, PlanStep
from engine.core.reasoner import (
    REASONER,
    GeneratedPlan,
    Generation,
    HeldBelief,
    MindBreakpoint,
    MindState,
    Stride,
    WantedAction,
)
from engine.core.reasons import NONE, Reason
from engine.core.recovery import (
    ActiveAction,
    Failure,
    Intervention,
    OpenWorkflow,
    OperatorRequest,
    Retry,
    Rewinding,
    Strategy,
)
from engine.core.restored import RestoredText
from engine.core.sandbox import SHELL_COMMAND, SHELL_TOOL, Handover, Job, ReturnedShell, StopReceipt, place_of
from engine.core.thinking import RecentAction


@dataclass(slots=True)
class AgentState:
    """Everything an agent is, at one event of its stream."""

    agent_id: str = ""
    agent_type: str = ""
    description: str = ""
    control: Control = field(default_factory=Control)
    """Which operator holds its controls."""
    config: AgentConfig = field(default_factory=AgentConfig)
    deleted: bool = False
    forked: Forked | None = None
    """Where it began, for a fork of another agent."""

    version: int = 0
    hash: str = ""
    at: str = ""
    session: str = ""
    tick: int = 0

    run: RunState = RunState.PAUSED
    run_reason: Reason = NONE
    """Why it is paused or stopped."""
    run_event: str = ""
    stop_event: str = ""
    """The newest stop, by which what was under way then is told to be no longer wanted."""
    held: str = ""
    """The grade of the stop that holds it (a value of `StopGrade`); empty when none does."""
    frozen: bool = False
    """Whether its processes stand still."""
    stop_receipt: StopReceipt | None = None
    """What was seen of the newest stop."""
    grants: int = 0
    """Actions that the operator allowed one by one while paused."""
    max_loops: int | None = None
    until: str | None = None
    """The goal at whose end the agent pauses."""
    loops: int = 0
    """Ticks since the agent was last set running."""

    goals: dict[str, Goal] = field(default_factory=dict)
    current_goal: str = ""
    plans: LateValues[Plan] = field(default_factory=LateValues)
    """Plan of each goal, by goal id."""
    editors: dict[str, str] = field(default_factory=dict)
    """Which operator last changed a goal's text (`text g1`), a goal's plan (`g1`) or a step (`s1`)."""
    needs_replan: bool = False
    replans: dict[str, str] = field(default_factory=dict)
    """Goals whose rest is to be planned anew, to the event that decided it."""

    beliefs: dict[str, Belief] = field(default_factory=dict)
    beliefs_end: str = ""
    """When the first belief that has an end ends; empty where none has."""
    sandbox: SandboxSession = field(default_factory=SandboxSession)
    perceived: bool = False
    """False when the workspace must be looked at before anything is decided."""

    action: ActiveAction | None = None
    settled: dict[str, Settled] = field(default_factory=dict)
    """Steps whose arguments are no longer those of the plan: what was corrected and found, by step id."""
    written: dict[str, str] = field(default_factory=dict)
    """Files that the agent put in place whole, to the SHA-256 of what it wrote, the newest last."""
    requests: list[OperatorRequest] = field(default_factory=list)
    jobs: dict[str, Job] = field(default_factory=dict)
    """What runs in the background, and the newest of what did."""
    returned: ReturnedShell | None = None
    """The operator's shell that has ended, until what it changed has been looked at."""
    handover: Handover | None = None
    """What the operator changed at the shell and has not settled yet."""
    rewinding: Rewinding | None = None
    """The rewind that changes files right now; nothing acts meanwhile."""
    unsaved_step: str = ""
    """The step that the operator lets run without a workspace snapshot."""
    retry: Retry | None = None
    intervention: Intervention | None = None
    failures: list[Failure] = field(default_factory=list)
    breakpoints: dict[str, str] = field(default_factory=dict)
    """Step id to the event that set it."""
    breakpoint_hit: str = ""
    """The step at whose breakpoint the agent was held, until it acts."""
    points: dict[str, Breakpoint] = field(default_factory=dict)
    """All other breakpoints, by id."""
    watched: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The breakpoints that count, by the kinds of events that can come to them."""
    came: dict[str, int] = field(default_factory=dict)
    """How often each of them came."""
    reached: tuple[Reached, ...] = ()
    """Breakpoints that have come and for which the agent is to be held now."""

    approvals: Approvals = field(default_factory=Approvals)
    """What is asked and allowed, and which plans the operator accepted."""

    disputed: dict[str, str] = field(default_factory=dict)
    """Events that the operator marked as wrong, to why."""

    consecutive_errors: int = 0
    successes_since_reflection: float = 0.0
    successes_since_consolidation: float = 0.0
    recovery_rates: dict[str, float] = field(default_factory=dict)
    """`KIND/STRATEGY` to its success rate, an exponential moving average."""
    resting: dict[str, int] = field(default_factory=dict)
    """`KIND/STRATEGY` to the tick until which it is not chosen, since it was used up in vain."""
    tried: dict[str, list[Strategy]] = field(default_factory=dict)
    """Strategies tried on each failing step since its last success, and on each goal's plan."""

    workflows: tuple[OpenWorkflow, ...] = ()
    """Workflows begun inside that of the root goal, the outermost first."""
    recent: tuple[RecentAction, ...] = ()
    """What was done lately, oldest first; only where a model thinks, which is to be told."""
    restored: tuple[RestoredText, ...] = ()
    """What the operator brought back into prompts, oldest first."""
    deferred: tuple[str, ...] = ()
    """Calls that the thinker wanted in the same breath as the last one that it decided on."""
    musings: int = 0
    """Thoughts since something was last done."""
    actions: int = 0
    failed_actions: int = 0
    operator_actions: int = 0
    last_summary: str = ""
    tokens: int = 0
    output_tokens: int = 0
    """Of these, what models said."""
    cost_usd: float = 0.0
    """Of the calls whose price is known."""
    model_calls: int = 0
    unpriced_calls: int = 0
    """Calls of unknown price; the cost is then only part of the sum."""
    worked_us: int = 0
    """Microseconds at work, see `engine.core.folds.agents.works`."""
    budget: SpendingLimits | None = None
    """What the operator set for this agent; None where the workspace's settings hold."""
    goal_budgets: dict[str, SpendingLimits] = field(default_factory=dict)
    """What the operator set for goals, each with those below it."""
    spent: dict[str, Spent] = field(default_factory=dict)
    """What was taken for each goal, without those below it."""
    paces: dict[str, StepCosts] = field(default_factory=dict)
    """What the steps took that are done, by goal."""
    budget_hold: BudgetHold | None = None
    """The budget that held it last; see `held_by` for now."""
    model: str = ""
    """The model that was asked last."""
    context: tuple[tuple[str, int], ...] = ()
    """Estimated tokens of each named block of the last prompt, in the order sent."""
    context_window: int = 0
    """Tokens that the model holds at a time; 0 before one was asked."""
    next_id: dict[str, int] = field(default_factory=dict)
    """Last number given per kind of id (`g`, `p`, `s`, `a`, `b`, `q`, `bg`)."""
    meta: MetaState = field(default_factory=MetaState)
    """How it looks after its own thinking."""

    mind: MindState | None = None
    """How the reasoner stands; None before it has gone on, and for agents without one."""
    intentions: dict[int, IntentionView] = field(default_factory=dict)
    """What the reasoner pursues, oldest first."""
    held_beliefs: dict[str, HeldBelief] = field(default_factory=dict)
    """What the reasoner believes, by the literal's text, newest last."""
    wanted: list[WantedAction] = field(default_factory=list)
    """External actions that intentions wait for, oldest first."""
    stride: Stride | None = None
    """How far the operator's step goes; None for one action, as it was before strides."""
    mind_breakpoints: dict[str, MindBreakpoint] = field(default_factory=dict)
    generations: dict[str, Generation] = field(default_factory=dict)
    """Plans being made, and the newest of those that were."""
    generated: tuple[GeneratedPlan, ...] = ()
    """Plans that models made and that the reasoner has."""
    tracing: bool = False
    """Whether every change of the reasoner's is journaled."""
    world: dict[str, Any] = field(default_factory=dict)
    """The small world that the agent lives in, ready to be drawn; empty where it lives in none."""

    @property
    def goal(self) -> Goal | None:
        """The goal being pursued."""
        return self.goals.get(self.current_goal)

    @property
    def goal_at_hand(self) -> str:
        """Id of the goal being pursued; empty when there is none, or it is over."""
        goal = self.goal
        return goal.id if goal is not None and not goal.status.terminal else ""

    @property
    def workflow_at_hand(self) -> str:
        """The innermost workflow begun for the goal at hand or one above it; empty for its root's own."""
        line = {goal.id for goal in self.lineage(self.current_goal)}
        return next((workflow.id for workflow in reversed(self.workflows) if workflow.goal in line), "")

    @property
    def plan(self) -> Plan | None:
        """The plan of the goal being pursued."""
        return self.plans.get(self.current_goal)

    @property
    def step(self) -> PlanStep | None:
        """The step that runs or would run next."""
        return self.plan.current if self.plan else None

    @property
    def held_by(self) -> BudgetHold | None:
        """The budget that holds it now; None when none does."""
        held = self.budget_hold
        return held if held is not None and held.event == self.run_event else None

    @property
    def open_goals(self) -> list[Goal]:
        """Goals for which something is still to be done, in adoption order."""
        return [goal for goal in self.goals.values() if not goal.status.terminal]

    @property
    def handed_back(self) -> bool:
        """True for a run whose work is over: it is history, and takes nothing up again."""
        return self.hands_back and bool(self.goals) and not self.open_goals

    @property
    def hands_back(self) -> bool:
        """True for a run: an agent that was made for one handoff, of whatever type."""
        return self.agent_type in RUN_TYPES or HANDOFF in self.config.meta

    @property
    def proves(self) -> bool:
        """True for a run that only proves a new agent, and is shown with its build alone."""
        handed = self.config.meta.get(HANDOFF)
        about = handed.get("metadata") if isinstance(handed, dict) else None
        return isinstance(about, dict) and bool(about.get(PROOF))

    @property
    def core(self) -> bool:
        """True for an agent that the workspace needs, so that it cannot be deleted; a fork of one is none."""
        return self.config.meta.get("core") is True and self.forked is None

    @property
    def reasons(self) -> bool:
        """True for an agent whose goals are pursued by an AgentSpeak(L) program."""
        return self.agent_type == REASONER

    @property
    def has_work(self) -> bool:
        """True when there is something that it could do by itself, now or in a while."""
        if not self.reasons:
            return bool(self.open_goals)
        waits = any(not generation.stage.over for generation in self.generations.values())
        mind = self.mind
        return mind is None or not mind.idle or mind.due_ms is not None or bool(self.wanted) or waits

    @property
    def context_share(self) -> float | None:
        """Part of the model's context that the last prompt took; None before one was asked."""
        if not self.context_window:
            return None
        return min(1.0, sum(tokens for _, tokens in self.context) / self.context_window)

    @property
    def acting(self) -> bool:
        """True while an action runs."""
        return self.action is not None and self.action.started

    @property
    def own_content(self) -> str:
        """SHA-256 of what the agent itself wrote last to where its action writes; empty for nothing."""
        path = self.action.args.get("path") if self.action is not None else None
        return self.written.get(place_of(self.sandbox.cwd, path), "") if isinstance(path, str) else ""

    @property
    def running_jobs(self) -> list[Job]:
        """Background jobs that have not ended, oldest first."""
        return [job for job in self.jobs.values() if job.running]

    @property
    def busy(self) -> bool:
        """True while an action runs, or a call of the operator is on its way."""
        return self.acting or (self.action is not None and not self.action.step)

    @property
    def shell_taken(self) -> bool:
        """True while the operator holds the shell, or waits for it."""
        if self.action is not None and self.action.shell:
            return True
        return any((call.tool, call.command) == (SHELL_TOOL, SHELL_COMMAND) for call in self.requests)

    @property
    def timed_out(self) -> bool:
        """True while it stands because the loops of its run are used up, with something left to do."""
        paused = self.run is RunState.PAUSED and self.run_reason.is_a("run.loops-over")
        return paused and self.has_work

    @property
    def mode(self) -> Mode:
        """What the status line shows."""
        if self.frozen:
            return Mode.FROZEN
        if self.action is not None and self.action.started and self.action.shell:
            return Mode.SHELL
        if self.run is RunState.STOPPED:
            return Mode.STOPPED
        if self.intervention is not None:
            return Mode.INTERVENTION
        if self.approvals.question is not None:
            return Mode.WAITING
        if self.run is RunState.PAUSED:
            if self.grants or self.acting:
                return Mode.STEPPING
            return Mode.TIMED_OUT if self.timed_out else Mode.PAUSED
        return Mode.RUNNING if self.has_work or self.acting else Mode.IDLE

    @property
    def pause_point(self) -> PausePoint:
        """Where the agent stands, or will stand when what runs has ended."""
        if self.acting:
            return PausePoint.ACTING
        if not self.has_work:
            return PausePoint.NOTHING_TO_DO
        if self.reasons:
            ready = self.wanted or (self.mind is not None and self.mind.poised)
            return PausePoint.BEFORE_ACTING if ready else PausePoint.BEFORE_THINKING
        return PausePoint.BEFORE_ACTING if self.step else PausePoint.BEFORE_THINKING

    def find_step(self, step_id: str) -> tuple[Plan, PlanStep] | None:
        """The plan and the step with this id, or None."""
        # Newest first: that is where it nearly always is, and there may be thousands of plans.
        for goal in reversed(self.plans):
            plan = self.plans[goal]
            step = plan.step(step_id)
            if step is not None:
                return plan, step
        return None

    def open_thought(self, goal_id: str) -> PlanStep | None:
        """The abstract step of a goal's plan on which the thinker is still to decide, or None."""
        plan = self.plans.get(goal_id)
        steps = plan.steps if plan is not None else ()
        return next((step for step in steps if step.op is Op.THINK and not step.status.terminal), None)

    def as_settled(self, step: PlanStep) -> PlanStep:
        """A step with the arguments that it is run with: the plan's, or what was made of them."""
        settled = self.settled.get(step.id)
        return step if settled is None else replace(step, args=settled.args)

    def belief_values(self) -> dict[str, Any]:
        """Belief values by key."""
        return {key: belief.value for key, belief in self.beliefs.items()}

    def root_goals(self) -> list[Goal]:
        """Goals that serve no other, most urgent and oldest first."""
        return sorted(
            (goal for goal in self.goals.values() if goal.parent is None),
            key=lambda goal: (-goal.priority, goal.order),
        )

    def lineage(self, goal_id: str) -> tuple[Goal, ...]:
        """A goal and those it serves, the nearest first and the root last; empty where there is none."""
        line: list[Goal] = []
        goal = self.goals.get(goal_id)
        while goal is not None:
            line.append(goal)
            goal = self.goals.get(goal.parent or "")
        return tuple(line)

    def children(self, goal_id: str) -> list[Goal]:
        """Sub-goals of a goal in adoption order."""
        return [goal for goal in self.goals.values() if goal.parent == goal_id]

    def open_child(self, goal_id: str) -> Goal | None:
        """The sub-goal that a goal waits for, or None."""
        return next((child for child in self.children(goal_id) if not child.status.terminal), None)


HANDLERS: dict[type[Payload], Callable[[AgentState, Any, Event], None]] = {}
"""What each kind of event changes in a state; `folds` fills it."""
Handler = TypeVar("Handler", bound=Callable[[AgentState, Any, Event], None])


def folds(*kinds: type[Payload]) -> Callable[[Handler], Handler]:
    """Decorates the function of `engine/core/folds` that brings a state forward by events of these kinds."""

    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(kinds, handler))
        return handler

    return register


def count_id(state: AgentState, ident: str) -> None:
    """Remember the highest number given to an id such as `s12` or `bg3`."""
    kind = "bg" if ident.startswith("bg") else ident[:1]
    if (digits := ident[len(kind) :]).isdigit():
        state.next_id[kind] = max(state.next_id.get(kind, 0), int(digits))
