"""Asking the thinker for a plan: what it is told, when it is asked again, what is done when it gives none."""

from __future__ import annotations

from collections.abc import Sequence

from engine.domain.failure import Failure, Strategy
from engine.domain.goal import Goal
from engine.domain.plan import PlanStep
from engine.domain.state import AgentState, RunState
from engine.domain.thinking import PlanProposal, PlanRequest, ThinkingError
from engine.journal import events as ev
from engine.loop.acting import ActingAgent
from engine.loop.heuristics import recovered
from engine.recovery import TAXONOMY

TROUBLE_TOLD = 5
"""Failures of a goal that the thinker is told of, the newest."""


class AskingAgent(ActingAgent):
    """Asks the thinker, and recovers where there is no answer."""

    def _is_planned(self, goal: str) -> bool:
        """Whether the goal has a plan to follow, and is not to be planned anew."""
        state = self.state
        if state.open_thought(goal) is not None:
            return True
        return goal in state.plans and not state.needs_replan and goal not in state.replans

    async def _waited_to_ask(self, goal: Goal) -> bool:
        """Wait until the thinker may be asked again; False when something came meanwhile that goes first."""
        retry = self.state.retry
        if retry is None or (retry.step, retry.goal) != ("", goal.id) or self.state.run is RunState.PAUSED:
            return True
        await self.commit()

        def awaited() -> bool:
            state = self.state
            return (
                state.retry == retry
                and state.run is RunState.RUNNING
                and not (state.requests or state.reached or self._attends)
                and not (state.intervention or state.handover)
                and self._plan_wanted(goal)
                and self._best_goal(goal)
            )

        await self._while(awaited, self.around.clock.sleep(retry.delay_s))
        return awaited()

    async def _think(self, request: PlanRequest) -> PlanProposal | None:
        """Ask the thinker; None in a replay of a question that was cut off."""
        if self.around.voice is not None:
            self.around.voice.about(request.goal.id, "plan")
        return await self.around.thinker.plan(request)

    def _plan_wanted(self, goal: Goal) -> bool:
        """Whether a plan that is being made for a goal is still of use; a pause lets it be finished."""
        state = self.state
        stopped = state.run is RunState.STOPPED or state.deleted or state.stop_event != self._stop
        return not stopped and self.state.goals.get(goal.id) == goal and not self._is_planned(goal.id)

    def _request(self, goal: Goal) -> PlanRequest:
        """What the thinker is told: after a failure also what is done and what went wrong."""
        state = self.state
        plan = state.plans.get(goal.id)
        done = [step for step in plan.steps if step.status.terminal] if plan else []
        trouble, advice = trouble_of(state, goal.id)
        return PlanRequest(
            goal,
            state.sandbox,
            state.belief_values(),
            done=tuple(f"{step.status}: {step.description or step.command}: {step.summary}" for step in done),
            trouble=trouble,
            advice=advice,
            guidance=state.meta.guidance,
            findings=state.meta.findings,
        )

    def _no_thought(self, goal: Goal, error: ThinkingError, cause: str) -> None:
        """Record that a thinker gave no plan, and recover."""
        failed = self.append(
            ev.ThinkingFailed(
                goal=goal.id, failure=error.kind, message=error.message, retry_after_s=error.retry_after_s
            ),
            "agent",
            cause,
        )
        self._end_asking(goal.id, success=False, cause=failed.ref)
        recorded = self.append(
            ev.FailureRecorded(
                failure=error.kind, message=error.message, subject=f"plan for {goal.id}", goal=goal.id
            ),
            "agent",
            failed.ref,
        )
        wait_s = error.retry_after_s or None
        self._recover(error.kind, goal.id, "", error.message, recorded.ref, wait_s=wait_s)

    def _end_asking(self, goal: str, *, success: bool, cause: str) -> None:
        """Record what became of asking for the goal's plan again, where that is open."""
        tried = self.state.tried.get(goal, ())
        if tried and tried[-1] is Strategy.RETRY_WITH_DELAY:
            payloads = recovered(self.state, Strategy.RETRY_WITH_DELAY, goal=goal, success=success)
            self._append_all(payloads, cause)

    def _planned_anew(self, goal: Goal, steps: Sequence[PlanStep], cause: str) -> bool:
        """Let the steps stand for the rest of the goal's plan; False when there is no plan to keep."""
        plan = self.state.plans.get(goal.id)
        if plan is None or goal.id not in self.state.replans:
            return False
        done = tuple(step for step in plan.steps if step.status.terminal)
        change = "the rest planned anew after a failure"
        revised = ev.PlanRevised(plan=plan.id, goal=goal.id, change=change, steps=(*done, *steps))
        self.append(revised, "agent", cause)
        return True


def trouble_of(state: AgentState, goal: str) -> tuple[tuple[str, ...], str]:
    """What went wrong for a goal and is not settled, oldest first, and what may help against the last."""
    wrong = [failure for failure in state.failures if failure.goal == goal and not failure.resolved]
    advice = TAXONOMY[wrong[-1].kind].advice if wrong else ""
    return tuple(_told(failure) for failure in wrong[-TROUBLE_TOLD:]), advice


def _told(failure: Failure) -> str:
    """A failure in a line, with what was done about it."""
    tried = f" (answered by {failure.strategy})" if failure.strategy else ""
    return f"{failure.kind}: {failure.subject}: {failure.message}{tried}"
