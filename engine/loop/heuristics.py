"""How a plan and its counters change with what an action brought (spec master-loop §3.10).

The outcome is matched to the step that ran, never to "the first step" (defect W7), and a failure
is counted once (defect W8). The counters themselves move in the fold.
"""

from __future__ import annotations

from engine.domain.action import ErrorCode, ToolResult
from engine.domain.failure import FailureKind
from engine.domain.plan import PlanStep, StepStatus
from engine.domain.state import AgentState
from engine.journal import events as ev
from engine.recovery.classify import classify


def subject_of(step: PlanStep) -> str:
    """A step in a few words: its command and first argument."""
    first = next((str(value) for value in step.args.values()), "")
    return f"{step.command or step.op} {' '.join(first.split())}"[:80].strip()


def after_success(state: AgentState, goal: str, step: PlanStep, answer: ToolResult) -> tuple[ev.Payload, ...]:
    """The step is completed with a summary; a recovery that led here has succeeded."""
    ended = ev.StepEnded(goal=goal, step=step.id, status=StepStatus.COMPLETED, summary=answer.message)
    return (*_recovery_ended(state, step, success=True), ended)


def after_failure(
    state: AgentState,
    goal: str,
    step: PlanStep,
    answer: ToolResult,
    code: ErrorCode | None,
    kind: FailureKind | None = None,
) -> tuple[ev.Payload, ...]:
    """The step has failed and stays in its place; a recovery that led here has failed."""
    action = state.action.id if state.action else ""
    failed = ev.StepEnded(goal=goal, step=step.id, status=StepStatus.FAILED, summary=answer.message)
    recorded = ev.FailureRecorded(
        failure=kind or classify(code or ErrorCode.INTERNAL),
        message=answer.message,
        subject=subject_of(step),
        goal=goal,
        step=step.id,
        action=action,
    )
    return (*_recovery_ended(state, step, success=False), failed, recorded)


def _recovery_ended(state: AgentState, step: PlanStep, *, success: bool) -> tuple[ev.Payload, ...]:
    tried = state.tried.get(step.id)
    if not tried:
        return ()
    last = next((failure for failure in reversed(state.failures) if failure.step == step.id), None)
    if last is None:
        return ()
    return (ev.RecoveryEnded(failure=last.kind, strategy=tried[-1], step=step.id, success=success),)
