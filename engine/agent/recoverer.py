"""After an action: what its result does to the step, and what is done about a failure.

The result is matched to the step that ran, and a failure is counted once; the counters themselves move in
the fold. A workflow that the agent begins keeps the goal that it was begun for, so its end is never taken for
that of another goal that happens to be pursued then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from engine.agent.decisions.goals import end_goal
from engine.agent.recorder import AgentRecorder
from engine.agent.recovery import (
    REST_TICKS,
    TAXONOMY,
    Alternative,
    StrategyChoice,
    StrategyRecord,
    alternative,
    choose_strategy,
    classify,
    may_have_taken_effect,
    may_repeat,
    tries_of,
)
from engine.core import events as ev
from engine.core.actions import ErrorCode, ToolResult
from engine.core.beliefs import BeliefSource
from engine.core.goals import Goal, GoalStatus
from engine.core.plan import Op, PlanStep, StepStatus
from engine.core.ports import Randomness
from engine.core.reasons import NONE, Reason, free_text
from engine.core.recovery import OF_GOALS, Failure, FailureKind, Strategy
from engine.core.state import AgentState
from engine.core.thinking import ThinkingError
from engine.tools.registry import ToolRegistry


def step_summary(step: PlanStep) -> str:
    """A step in a few words: its command and first argument."""
    first = next((str(value) for value in step.args.values()), "")
    return f"{step.command or step.op} {' '.join(first.split())}"[:80].strip()


def after_success(state: AgentState, goal: str, step: PlanStep, answer: ToolResult) -> tuple[ev.Payload, ...]:
    """The step is completed with a summary; a recovery that led here has succeeded."""
    summary = free_text(answer.message)
    ended = ev.StepEnded(goal=goal, step=step.id, status=StepStatus.COMPLETED, summary=summary)
    return (*_step_recovered(state, goal, step, success=True), ended)


def after_failure(
    state: AgentState, goal: str, step: PlanStep, message: Reason, kind: FailureKind, escalated_from: str = ""
) -> tuple[ev.Payload, ...]:
    """The step has failed and stays in its place; a recovery that led here has failed."""
    failed = ev.StepEnded(goal=goal, step=step.id, status=StepStatus.FAILED, summary=message)
    action = state.action.id if state.action else ""
    about = {"goal": goal, "step": step.id, "action": action, "escalated_from": escalated_from}
    recorded = ev.FailureRecorded(failure=kind, message=message, subject=step_summary(step), **about)
    return (*_step_recovered(state, goal, step, success=False), failed, recorded)


def _step_recovered(state: AgentState, goal: str, step: PlanStep, *, success: bool) -> tuple[ev.Payload, ...]:
    tried = state.tried.get(step.id)
    return recovered(state, tried[-1], goal=goal, step=step.id, success=success) if tried else ()


def recovered(
    state: AgentState, strategy: Strategy, *, goal: str, step: str = "", success: bool
) -> tuple[ev.Payload, ...]:
    """The result of a strategy whose outcome was open; nothing when it is not under way.

    A strategy that is used up without success rests for a while.
    """
    open_ = (f for f in reversed(state.failures) if f.open_under(strategy, goal=goal, step=step))
    if (answered := next(open_, None)) is None:
        return ()
    kind, used_up = answered.kind, not success and 0 < tries_of(answered.kind, strategy) <= answered.attempt
    rests = state.tick + REST_TICKS if used_up else 0
    about = {"failure": kind, "strategy": strategy, "goal": goal, "step": step}
    return (ev.RecoveryEnded(**about, success=success, rests_until=rests),)


BEGINS = frozenset({"begin_workflow", "create_workflow"})
ENDS = frozenset({"set_workflow", "update_workflow_status"})
"""Commands of the tool `memory`, by our names and the seed's."""
_ENDINGS: Mapping[str, GoalStatus] = {
    "completed": GoalStatus.ACHIEVED,
    "failed": GoalStatus.FAILED,
    "abandoned": GoalStatus.DROPPED,
}


def workflow_events(
    state: AgentState, goal: str, step: PlanStep, answer: ToolResult
) -> tuple[ev.Payload, ...]:
    """What follows from a step that began or ended a workflow; nothing from any other.

    Args:
        state: the agent, with the step settled.
        goal: the goal that the step serves.
        step: what was done.
        answer: what memory answered: the workflow as it is now.
    """
    ident = str(answer.data.get("id", ""))
    if step.tool != "memory" or not ident:
        return ()
    if step.command in BEGINS:
        return (ev.WorkflowEntered(workflow=ident, goal=goal),)
    status = str(answer.data.get("status", ""))
    begun = next((workflow for workflow in state.workflows if workflow.id == ident), None)
    if step.command not in ENDS or status not in _ENDINGS or begun is None:
        return ()
    left = ev.WorkflowLeft(workflow=ident, status=status)
    owner = state.goals.get(begun.goal)
    # What must be shown is not shown by saying that a workflow is over.
    unshown = status == "completed" and owner is not None and owner.criteria
    if owner is None or owner.status.terminal or unshown:
        return (left,)
    reason = Reason("goal.workflow", workflow=ident, status=status)
    return (left, *end_goal(state, owner, _ENDINGS[status], reason))


TROUBLE_SHOWN = 5
"""Failures of a goal that the thinker is shown, the newest."""


def trouble_of(state: AgentState, goal: str) -> tuple[tuple[str, ...], str]:
    """What went wrong for a goal and is not settled, oldest first, and what may help against the last."""
    wrong = [failure for failure in state.failures if failure.goal == goal and not failure.resolved]
    advice = TAXONOMY[wrong[-1].kind].advice if wrong else ""
    return tuple(_failure_line(failure) for failure in wrong[-TROUBLE_SHOWN:]), advice


def _failure_line(failure: Failure) -> str:
    """A failure in a line, with what was done about it."""
    tried = f" (answered by {failure.strategy})" if failure.strategy else ""
    return f"{failure.kind}: {failure.subject}: {failure.message}{tried}"


_OF_PLANS = frozenset({FailureKind.PLANNING_ERROR, FailureKind.GOAL_PARSE_ERROR})
"""What a thinker that is told of it may mend by another answer."""

_OPERATORS = frozenset({FailureKind.CANCELLED})
"""What only the operator answers."""
_NOT_DECIDED_ANEW = frozenset(FailureKind) - {
    *_OF_PLANS,
    FailureKind.INVALID_PARAMETERS,
    FailureKind.GOAL_MANAGEMENT_ERROR,
    FailureKind.DEPENDENCY_NOT_MET,
}
"""What keeps a thinker from deciding at all, so that asking it again is of no use."""

_OF_STEPS = frozenset({Strategy.RETRY_WITH_DELAY, Strategy.ALTERNATIVE_TOOL})
"""Strategies under which a plan continues, so that the one planned anew may still turn out well."""


class Recoverer:
    """Settles steps and recovers from failures.

    Args:
        recorder: the agent's record.
        registry: what steps can call.
        randomness: gives the random numbers of a session by its seed.
    """

    def __init__(
        self, recorder: AgentRecorder, registry: ToolRegistry, randomness: Callable[[int], Randomness]
    ) -> None:
        self._recorder, self._registry = recorder, registry
        self._append, self._append_all = recorder.append, recorder.append_all
        self._state = recorder.state
        self._seeded, self._random = randomness, randomness(0)

    def seed(self, seed: int) -> None:
        """Draw random numbers from a session's seed from now on."""
        self._random = self._seeded(seed)

    def settle(self, step: PlanStep, goal: str, answer: ToolResult) -> None:
        """Settle the step that ran with the answer of its call, and recover where it failed."""
        cause = self._recorder.newest
        step = self._state.as_settled(step)  # what ran, which another call is to stand for
        if answer.ok:
            self._append_all(after_success(self._state, goal, step, answer), cause)
            for payload in workflow_events(self._state, goal, step, answer):
                ended = self._append(payload, "agent", cause)
                if isinstance(payload, ev.GoalEnded):
                    self._reached(self._state.goals[payload.goal], ended.ref)
            return
        code = answer.code or ErrorCode.INTERNAL
        kind = classify(code, answer.data.get("status_code"))
        instead = alternative(step, code, self._registry)
        self.step_failed(step, goal, kind, free_text(answer.message), cause, instead=instead)

    def _reached(self, goal: Goal, cause: str) -> None:
        """Settle the step of the goal above that waited for one that has ended."""
        step = self._step_above(goal)
        if step is None or goal.parent is None:
            return
        if goal.status is GoalStatus.FAILED:
            kind = FailureKind.GOAL_MANAGEMENT_ERROR
            message = Reason("step.goal-failed", goal=goal.id, why=goal.reason)
            self.step_failed(step, goal.parent, kind, message, cause)
            return
        status = StepStatus.COMPLETED if goal.status is GoalStatus.ACHIEVED else StepStatus.SKIPPED
        summary = Reason("step.goal", goal=goal.id, status=goal.status.value)
        done = ev.StepEnded(goal=goal.parent, step=step.id, status=status, summary=summary)
        self._append(done, "agent", cause)

    def step_failed(
        self,
        step: PlanStep,
        goal: str,
        kind: FailureKind,
        message: Reason,
        cause: str,
        *,
        instead: Alternative | None = None,
    ) -> None:
        """Record that a step failed, and recover."""
        self._append_all(after_failure(self._state, goal, step, message, kind), cause)
        self.recover(kind, goal, step.id, message, self._state.failures[-1].event, instead=instead)

    def thought_failed(
        self, goal: str, error: ThinkingError, cause: str, *, step: str = "", final: bool = False
    ) -> str:
        """Record once that a plan or a decision came to nothing, and recover; the event that says so.

        Args:
            goal: the goal that was thought about.
            error: what went wrong.
            cause: the event that it follows from.
            step: the step that was to be decided on; empty for a plan.
            final: the thinker itself gave it up, and is not asked again.
        """
        about = {"goal": goal, "step": step, "subject": f"decision on {step}" if step else f"plan for {goal}"}
        failed = self._append(
            ev.FailureRecorded(failure=error.kind, message=error.message, **about), "agent", cause
        )
        wait_s = error.retry_after_s or None
        self.recover(error.kind, goal, step, error.message, failed.ref, wait_s=wait_s, final=final)
        return failed.ref

    def recover(
        self,
        kind: FailureKind,
        goal: str,
        step: str,
        message: Reason,
        cause: str,
        *,
        instead: Alternative | None = None,
        wait_s: float | None = None,
        escalated: bool = False,
        final: bool = False,
    ) -> None:
        """Choose a strategy and carry out what of it happens at once.

        Args:
            kind: what went wrong.
            goal: the goal concerned.
            step: the step concerned; empty where it is the goal's plan.
            message: what went wrong.
            cause: the event that recorded it.
            instead: another call that can do the same.
            wait_s: seconds that whoever failed asked to wait.
            escalated: a goal below this one failed.
            final: the thinker itself gave it up, and is not asked again.
        """
        state = self._state
        own = tuple(state.tried.get(step or goal, ()))
        of_goal = tuple(s for s in state.tried.get(goal, ()) if s in OF_GOALS) if step else ()
        choice = choose_strategy(
            kind,
            (*of_goal, *own),
            consecutive_errors=state.consecutive_errors,
            max_consecutive_errors=state.config.max_consecutive_errors,
            ask=state.config.ask,
            randomness=self._random,
            able=self._able(kind, goal, step, instead),
            under_way=own[-1] if own else None,
            # What failed for a sub-goal is new to the goal above.
            learned=StrategyRecord(state.recovery_rates, {} if escalated else state.resting, state.tick),
            wait_s=wait_s,
        )
        told = state.config.told_of_failures or choice.strategy not in _OF_STEPS
        if told and not final and self._decides_anew(kind, goal, step):
            left = state.config.max_consecutive_errors - 1
            why = Reason("recovery.decide")
            choice = StrategyChoice(Strategy.DECIDE_ANEW, min(state.consecutive_errors, left), left, 0.0, why)
        located = state.find_step(step)
        in_doubt = located is not None and self._in_doubt(kind, located[1])
        if choice.strategy not in _OF_STEPS:
            self.end_replanning(goal, success=False, cause=cause)
        made = {"strategy": choice.strategy, "attempt": choice.attempt, "of": choice.of}
        why = Reason("recovery.in-doubt", why=choice.why) if in_doubt else choice.why
        recovery = ev.RecoveryChosen(
            failure=kind, goal=goal, step=step, delay_s=choice.delay_s, why=why, **made
        )
        chosen = self._append(recovery, "agent", cause)
        match choice.strategy:
            case Strategy.ALTERNATIVE_TOOL if instead is not None:
                self._revise(goal, step, instead, chosen.ref)
            case Strategy.ESCALATE_TO_AGINT:
                self._escalate(kind, state.goals[goal], message, chosen.ref)
            case Strategy.FALLBACK_MANUAL:
                tries = enumerate(own, 1)
                tried = tuple(Reason("recovery.tried", strategy=way.value, number=nth) for nth, way in tries)
                turn = {"goal": goal, "step": step, "failure": kind, "tried": tried}
                opened = ev.InterventionOpened(reason=message, **turn)
                self._append(opened, "agent", chosen.ref)
            case Strategy.ABORT_GRACEFULLY:
                self._abort(goal, Reason("goal.failed", failure=kind.value, why=message), chosen.ref)

    def _decides_anew(self, kind: FailureKind, goal: str, step: str) -> bool:
        """Whether the thinker may be told of a failure and decide how to continue."""
        thought = self._state.open_thought(goal)
        if thought is None or self._state.consecutive_errors >= self._state.config.max_consecutive_errors:
            return False
        return kind not in (_NOT_DECIDED_ANEW if thought.id == step else _OPERATORS)

    def _able(
        self, kind: FailureKind, goal: str, step: str, instead: Alternative | None
    ) -> Collection[Strategy]:
        """The strategies that can be used here at all."""
        able = {Strategy.RETRY_WITH_DELAY}
        located = self._state.find_step(step)
        if located is not None and (located[1].op is Op.ACHIEVE or self._in_doubt(kind, located[1])):
            able.clear()
        if instead is not None:
            able.add(Strategy.ALTERNATIVE_TOOL)
        if self._state.config.replans and (step or kind in _OF_PLANS):
            able.add(Strategy.SIMPLIFIED_APPROACH)
            if self._step_above(self._state.goals[goal]) is not None:
                able.add(Strategy.ESCALATE_TO_AGINT)
        return able

    def _in_doubt(self, kind: FailureKind, step: PlanStep) -> bool:
        """Whether the step's call may have taken effect, so that it is not repeated by itself."""
        if not may_have_taken_effect(kind) or step.op is not Op.ACT:
            return False
        spec = self._registry.spec(step.tool, step.command)
        return spec is not None and not may_repeat(spec, self._state.as_settled(step).args)

    def _step_above(self, goal: Goal) -> PlanStep | None:
        """The open step that waits for a sub-goal."""
        located = self._state.find_step(goal.parent_step or "")
        return located[1] if located is not None and not located[1].status.terminal else None

    def _revise(self, goal: str, step_id: str, instead: Alternative, cause: str) -> None:
        """Put another call in place of the one that failed; it runs next."""
        plan = self._state.plans[goal]
        call: dict[str, Any] = {"tool": instead.tool, "command": instead.command, "args": instead.args}

        def revised(step: PlanStep) -> PlanStep:
            by = replace(step.provenance, by="recovery")
            return replace(step, **call, status=StepStatus.PLANNED, summary=NONE, provenance=by)

        steps = tuple(revised(step) if step.id == step_id else step for step in plan.steps)
        change = Reason("plan.recovered", step=step_id, why=instead.why)
        self._append(ev.PlanRevised(plan=plan.id, goal=goal, change=change, steps=steps), "agent", cause)

    def _escalate(self, kind: FailureKind, goal: Goal, message: Reason, cause: str) -> None:
        """Fail a sub-goal, and recover in the plan of the goal above."""
        step = self._step_above(goal)
        assert step is not None
        assert goal.parent is not None
        reason = Reason("goal.failed", failure=kind.value, why=message)
        self._fail(goal, reason, f"goal.escalated.{goal.id}", cause)
        failed = after_failure(self._state, goal.parent, step, message, kind, escalated_from=goal.id)
        self._append_all(failed, cause)
        cause = self._state.failures[-1].event
        self.recover(kind, goal.parent, step.id, message, cause, escalated=True)

    def _abort(self, goal_id: str, reason: Reason, cause: str) -> None:
        """Fail a goal with all that it serves, and continue with others."""
        root = self._state.lineage(goal_id)[-1]
        self._fail(root, reason, f"goal.aborted.{root.id}", cause)

    def _fail(self, goal: Goal, reason: Reason, belief: str, cause: str) -> None:
        """End a goal as failed; the agent keeps believing why."""
        believed = ev.BeliefAdded(key=belief, value=str(reason), source=BeliefSource.INFERENCE)
        self._append_all((believed, *end_goal(self._state, goal, GoalStatus.FAILED, reason)), cause)

    def end_replanning(self, goal: str, *, success: bool, cause: str) -> None:
        """Record the result of planning the goal anew, where that is open."""
        payloads = recovered(self._state, Strategy.SIMPLIFIED_APPROACH, goal=goal, success=success)
        self._append_all(payloads, cause)
