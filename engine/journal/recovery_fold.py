"""What failures, recovery, the operator's turn and thinking do to a state; see `engine.journal.fold`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engine.domain.budgets import Spent
from engine.domain.failure import OF_GOALS, UNTRIED_RATE, Failure, Strategy, rate_key
from engine.domain.plan import Op, StepStatus
from engine.domain.state import AgentState, Intervention, Retry, RunState
from engine.domain.thinking import DecisionKind
from engine.journal import approval_fold, budget_fold, meta_fold, stride_fold
from engine.journal import events as ev
from engine.journal.event import Event
from engine.journal.goal_fold import change_step
from engine.journal.payload import Payload
from engine.journal.reasoner_fold import end_stride

FAILURES_KEPT = 100
BACKGROUND = "background "
"""How the purpose of a call begins that is no turn of the agent's, so that its prompt is not shown as one."""
LEARNING_RATE = 0.3
"""Weight of the newest outcome in a recovery's success rate (seed parameter processing)."""


def _failed(state: AgentState, said: ev.FailureRecorded, event: Event) -> None:
    state.failures.append(
        Failure(said.failure, said.message, said.goal, said.step, said.action, said.subject, event=event.ref)
    )
    del state.failures[:-FAILURES_KEPT]
    state.consecutive_errors += not said.escalated_from
    if not said.escalated_from:
        meta_fold.failed(state)
    state.needs_replan = True
    state.successes_since_reflection = 0.0


def _model_called(state: AgentState, said: ev.ModelCalled, event: Event) -> None:
    state.model_calls += 1
    state.unpriced_calls += said.cost_usd is None
    state.tokens += said.tokens
    state.output_tokens += ((said.answer or {}).get("usage") or {}).get("output_tokens") or 0
    state.cost_usd += said.cost_usd or 0.0
    took = Spent(1, said.tokens, said.cost_usd or 0.0, unpriced=int(said.cost_usd is None))
    budget_fold.take(state, said.goal, took)
    if not said.purpose.startswith(BACKGROUND):
        state.model = said.model
        state.context, state.context_window = said.shares, said.window


def _recovery_chosen(state: AgentState, said: ev.RecoveryChosen, event: Event) -> None:
    if state.failures:
        state.failures[-1] = replace(
            state.failures[-1],
            strategy=said.strategy,
            attempt=said.attempt,
            of=said.of,
            delay_s=said.delay_s,
        )
    tried_on = said.goal if said.strategy in OF_GOALS or not said.step else said.step
    state.tried.setdefault(tried_on, []).append(said.strategy)
    match said.strategy:
        case Strategy.RETRY_WITH_DELAY:
            state.retry = Retry(
                said.step, said.attempt, said.of, said.delay_s, event.ref, said.goal, at=event.at
            )
            state.needs_replan = False
        case Strategy.ALTERNATIVE_TOOL:
            state.needs_replan = False
        case Strategy.DECIDE_ANEW:
            _give_up_step(state, said.goal, said.step, event)
        case Strategy.SIMPLIFIED_APPROACH:
            state.replans[said.goal] = event.ref
            state.needs_replan = False
        case _:
            state.replans.pop(said.goal, None)


def _give_up_step(state: AgentState, goal: str, step_id: str, event: Event) -> None:
    """A failed step and all that wait for it stay in the plan as they are; the thinker does without them."""
    plan = state.plans.get(goal)
    failed = plan.step(step_id) if plan is not None else None
    if plan is None or failed is None or failed.op is Op.THINK:
        return
    lost = {step_id}
    for step in plan.steps:
        if step.op is not Op.THINK and not step.status.terminal and not lost.isdisjoint(step.depends_on):
            lost.add(step.id)
            change_step(state, step.id, event, status=StepStatus.ABANDONED, summary=f"needs {step_id}")
    change_step(state, step_id, event, status=StepStatus.ABANDONED)


def _recovery_ended(state: AgentState, said: ev.RecoveryEnded, event: Event) -> None:
    key = rate_key(said.failure, said.strategy)
    rate = state.recovery_rates.get(key, UNTRIED_RATE)
    state.recovery_rates[key] = (1 - LEARNING_RATE) * rate + LEARNING_RATE * (1.0 if said.success else 0.0)
    if said.rests_until:
        state.resting[key] = said.rests_until
    elif said.success:
        state.resting.pop(key, None)
    for at in range(len(state.failures) - 1, -1, -1):
        failure = state.failures[at]
        if failure.open_under(said.strategy, goal=said.goal, step=said.step):
            state.failures[at] = replace(failure, succeeded=said.success)
            break


def _hastened(state: AgentState, said: ev.RecoveryHastened, event: Event) -> None:
    if state.retry is not None and (state.retry.step, state.retry.goal) == ("", said.goal):
        state.retry = None


def _intervention_opened(state: AgentState, said: ev.InterventionOpened, event: Event) -> None:
    state.grants = 0
    state.intervention = Intervention(
        said.goal, said.step, said.reason, said.failure.value if said.failure else "", said.tried, event.ref
    )


def _intervention_closed(state: AgentState, said: ev.InterventionClosed, event: Event) -> None:
    state.intervention = None
    meta_fold.turned_to(state)
    state.consecutive_errors = 0
    state.needs_replan = False
    state.perceived = False


def _thought(state: AgentState, said: ev.ThoughtRecorded, event: Event) -> None:
    state.successes_since_reflection += 0.5
    state.successes_since_consolidation += 0.5
    state.consecutive_errors = 0
    state.musings += 1
    meta_fold.turned(state)


def _decision_asked(state: AgentState, said: ev.DecisionAsked, event: Event) -> None:
    if state.retry is not None and state.retry.step == said.step:
        state.retry = None
    meta_fold.asked(state, event)


def _decided(state: AgentState, said: ev.DecisionMade, event: Event) -> None:
    if said.decision.kind is not DecisionKind.CALL:
        state.loops += 1  # a call counts when it starts
    if said.decision.kind in (DecisionKind.CALL, DecisionKind.SUBGOAL):
        approval_fold.decided(state, said.goal, event)
    if said.decision.kind is DecisionKind.PLAN:
        meta_fold.turned(state)
    if said.decision.kind is not DecisionKind.THINK:
        state.musings = 0
    state.deferred = said.decision.deferred
    # Deciding is what a single step is for, as it costs: what was decided is looked at before it runs.
    if state.run is RunState.PAUSED and state.grants and not stride_fold.lasts(state.stride):
        end_stride(state)


HANDLERS: dict[type[Payload], Callable[[AgentState, Any, Event], None]] = {
    ev.FailureRecorded: _failed,
    ev.ModelCalled: _model_called,
    ev.RecoveryChosen: _recovery_chosen,
    ev.RecoveryEnded: _recovery_ended,
    ev.RecoveryHastened: _hastened,
    ev.InterventionOpened: _intervention_opened,
    ev.InterventionClosed: _intervention_closed,
    ev.ThoughtRecorded: _thought,
    ev.DecisionAsked: _decision_asked,
    ev.DecisionMade: _decided,
}
