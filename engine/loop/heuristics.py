"""How a plan and its counters change with what an action brought (spec master-loop §3.10).

The outcome is matched to the step that ran, never to "the first step" (defect W7), and a failure
is counted once (defect W8). The counters themselves move in the fold.
"""

from __future__ import annotations

from engine.domain.action import ToolResult
from engine.domain.failure import FailureKind, Strategy
from engine.domain.plan import PlanStep, StepStatus
from engine.domain.state import AgentState
from engine.journal import events as ev
from engine.recovery.strategy import REST_TICKS
from engine.recovery.taxonomy import tries_of


def subject_of(step: PlanStep) -> str:
    """A step in a few words: its command and first argument."""
    first = next((str(value) for value in step.args.values()), "")
    return f"{step.command or step.op} {' '.join(first.split())}"[:80].strip()


def after_success(state: AgentState, goal: str, step: PlanStep, answer: ToolResult) -> tuple[ev.Payload, ...]:
    """The step is completed with a summary; a recovery that led here has succeeded."""
    ended = ev.StepEnded(goal=goal, step=step.id, status=StepStatus.COMPLETED, summary=answer.message)
    return (*_step_recovered(state, goal, step, success=True), ended)


def after_failure(
    state: AgentState, goal: str, step: PlanStep, message: str, kind: FailureKind, *, escalated_from: str = ""
) -> tuple[ev.Payload, ...]:
    """The step has failed and stays in its place; a recovery that led here has failed."""
    failed = ev.StepEnded(goal=goal, step=step.id, status=StepStatus.FAILED, summary=message)
    recorded = ev.FailureRecorded(
        failure=kind,
        message=message,
        subject=subject_of(step),
        goal=goal,
        step=step.id,
        action=state.action.id if state.action else "",
        escalated_from=escalated_from,
    )
    return (*_step_recovered(state, goal, step, success=False), failed, recorded)


def _step_recovered(state: AgentState, goal: str, step: PlanStep, *, success: bool) -> tuple[ev.Payload, ...]:
    tried = state.tried.get(step.id)
    return recovered(state, tried[-1], goal=goal, step=step.id, success=success) if tried else ()


def recovered(
    state: AgentState, strategy: Strategy, *, goal: str, step: str = "", success: bool
) -> tuple[ev.Payload, ...]:
    """What became of a strategy whose outcome was open; nothing when it is not under way.

    A strategy that is used up in vain rests for a while.
    """
    open_ = (f for f in reversed(state.failures) if f.open_under(strategy, goal=goal, step=step))
    answered = next(open_, None)
    if answered is None:
        return ()
    tries = tries_of(answered.kind, strategy)
    used_up = not success and 0 < tries <= answered.attempt
    return (
        ev.RecoveryEnded(
            failure=answered.kind,
            strategy=strategy,
            goal=goal,
            step=step,
            success=success,
            rests_until=state.tick + REST_TICKS if used_up else 0,
        ),
    )
