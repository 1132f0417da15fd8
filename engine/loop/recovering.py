"""After an action: what its outcome does to the step, and what is done about a failure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from engine.domain.action import ErrorCode, ToolResult
from engine.domain.belief import BeliefSource
from engine.domain.failure import OF_GOALS, FailureKind, Strategy
from engine.domain.goal import Goal, GoalStatus
from engine.domain.plan import Op, PlanStep, StepStatus
from engine.journal import events as ev
from engine.loop.decide_goals import end_goal
from engine.loop.heuristics import after_failure, after_success, recovered
from engine.loop.reflecting import ReflectingAgent
from engine.loop.workflows import turned_over
from engine.recovery import (
    Alternative,
    Choice,
    Learned,
    alternative,
    choose,
    classify,
    lost_on_the_way,
    may_repeat,
)

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
"""Strategies under which a plan goes on, so that the one planned anew may still turn out well."""


IN_DOUBT = "whether the write took effect is not known, so it is not repeated by itself"


class RecoveringAgent(ReflectingAgent):
    """Settles steps and recovers from failures."""

    def _settle(self, step: PlanStep, goal: str, answer: ToolResult) -> None:
        cause = f"{self.log.stream}:{self.log.version}"
        step = self.state.as_settled(step)  # what ran, which another call is to stand for
        if answer.ok:
            self._append_all(after_success(self.state, goal, step, answer), cause)
            for payload in turned_over(self.state, goal, step, answer):
                ended = self.append(payload, "agent", cause)
                if isinstance(payload, ev.GoalEnded):
                    self._reached(self.state.goals[payload.goal], ended.ref)
            return
        code = answer.code or ErrorCode.INTERNAL
        kind = classify(code, answer.data.get("status_code"))
        self._step_failed(
            step, goal, kind, answer.message, cause, instead=alternative(step, code, self.around.registry)
        )

    def _reached(self, goal: Goal, cause: str) -> None:
        """Settle the step of the goal above that waited for one that has ended."""
        step = self._step_above(goal)
        if step is None or goal.parent is None:
            return
        if goal.status is GoalStatus.FAILED:
            kind = FailureKind.GOAL_MANAGEMENT_ERROR
            self._step_failed(step, goal.parent, kind, f"goal {goal.id} failed: {goal.reason}", cause)
            return
        status = StepStatus.COMPLETED if goal.status is GoalStatus.ACHIEVED else StepStatus.SKIPPED
        done = ev.StepEnded(
            goal=goal.parent, step=step.id, status=status, summary=f"goal {goal.id} {goal.status}"
        )
        self.append(done, "agent", cause)

    def _step_failed(
        self,
        step: PlanStep,
        goal: str,
        kind: FailureKind,
        message: str,
        cause: str,
        *,
        instead: Alternative | None = None,
    ) -> None:
        self._append_all(after_failure(self.state, goal, step, message, kind), cause)
        self._recover(kind, goal, step.id, message, self.state.failures[-1].event, instead=instead)

    def _append_all(self, payloads: Iterable[ev.Payload], cause: str) -> None:
        for payload in payloads:
            self.append(payload, "agent", cause)

    def _recover(
        self,
        kind: FailureKind,
        goal: str,
        step: str,
        message: str,
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
            message: what went wrong, in words.
            cause: the event that recorded it.
            instead: another call that can do the same.
            wait_s: seconds that whoever failed asked to wait.
            escalated: a goal below this one failed.
            final: the thinker itself gave it up, and is not asked again.
        """
        state = self.state
        own = tuple(state.tried.get(step or goal, ()))
        of_goal = tuple(s for s in state.tried.get(goal, ()) if s in OF_GOALS) if step else ()
        choice = choose(
            kind,
            (*of_goal, *own),
            consecutive_errors=state.consecutive_errors,
            max_consecutive_errors=state.config.max_consecutive_errors,
            ask=state.config.ask,
            randomness=self._random,
            able=self._able(kind, goal, step, instead),
            under_way=own[-1] if own else None,
            # What failed for a sub-goal is new to the goal above.
            learned=Learned(state.recovery_rates, {} if escalated else state.resting, state.tick),
            wait_s=wait_s,
        )
        if choice.strategy not in _OF_STEPS and not final and self._decides_anew(kind, goal, step):
            left = state.config.max_consecutive_errors - 1
            why = "the thinker is told and decides what comes next"
            choice = Choice(Strategy.DECIDE_ANEW, min(state.consecutive_errors, left), left, 0.0, why)
        found = state.find_step(step)
        in_doubt = found is not None and self._in_doubt(kind, found[1])
        if choice.strategy not in _OF_STEPS:
            self._end_replanning(goal, success=False, cause=cause)
        chosen = self.append(
            ev.RecoveryChosen(
                failure=kind,
                strategy=choice.strategy,
                goal=goal,
                step=step,
                attempt=choice.attempt,
                of=choice.of,
                delay_s=choice.delay_s,
                why=f"{choice.why}; {IN_DOUBT}" if in_doubt else choice.why,
            ),
            "agent",
            cause,
        )
        match choice.strategy:
            case Strategy.ALTERNATIVE_TOOL if instead is not None:
                self._revise(goal, step, instead, chosen.ref)
            case Strategy.ESCALATE_TO_AGINT:
                self._escalate(kind, state.goals[goal], message, chosen.ref)
            case Strategy.FALLBACK_MANUAL:
                tried = tuple(f"{strategy} ({number})" for number, strategy in enumerate(own, 1))
                opened = ev.InterventionOpened(
                    goal=goal, step=step, reason=message, failure=kind, tried=tried
                )
                self.append(opened, "agent", chosen.ref)
            case Strategy.ABORT_GRACEFULLY:
                self._abort(goal, f"{kind}: {message}", chosen.ref)

    def _decides_anew(self, kind: FailureKind, goal: str, step: str) -> bool:
        """Whether the thinker may be told of a failure and decide how to go on."""
        thought = self.state.open_thought(goal)
        if thought is None or self.state.consecutive_errors >= self.state.config.max_consecutive_errors:
            return False
        return kind not in (_NOT_DECIDED_ANEW if thought.id == step else _OPERATORS)

    def _able(
        self, kind: FailureKind, goal: str, step: str, instead: Alternative | None
    ) -> Collection[Strategy]:
        """What can be done here at all."""
        able = {Strategy.RETRY_WITH_DELAY}
        found = self.state.find_step(step)
        if found is not None and (found[1].op is Op.ACHIEVE or self._in_doubt(kind, found[1])):
            able.clear()
        if instead is not None:
            able.add(Strategy.ALTERNATIVE_TOOL)
        if self.state.config.replans and (step or kind in _OF_PLANS):
            able.add(Strategy.SIMPLIFIED_APPROACH)
            if self._step_above(self.state.goals[goal]) is not None:
                able.add(Strategy.ESCALATE_TO_AGINT)
        return able

    def _in_doubt(self, kind: FailureKind, step: PlanStep) -> bool:
        """Whether the step's call may have taken effect, so that it is not repeated by itself."""
        if not lost_on_the_way(kind) or step.op is not Op.ACT or step.tool not in self.around.registry:
            return False
        spec = self.around.registry.get(step.tool).commands.get(step.command)
        return spec is not None and not may_repeat(spec, self.state.as_settled(step).args)

    def _step_above(self, goal: Goal) -> PlanStep | None:
        """The open step that waits for a sub-goal."""
        found = self.state.find_step(goal.parent_step or "")
        return found[1] if found is not None and not found[1].status.terminal else None

    def _revise(self, goal: str, step_id: str, instead: Alternative, cause: str) -> None:
        """Put another call in place of the one that failed; it runs next."""
        plan = self.state.plans[goal]
        steps = tuple(
            replace(
                step,
                tool=instead.tool,
                command=instead.command,
                args=instead.args,
                status=StepStatus.PLANNED,
                summary="",
                provenance=replace(step.provenance, by="recovery"),
            )
            if step.id == step_id
            else step
            for step in plan.steps
        )
        change = f"step {step_id}: {instead.why}"
        self.append(ev.PlanRevised(plan=plan.id, goal=goal, change=change, steps=steps), "agent", cause)

    def _escalate(self, kind: FailureKind, goal: Goal, message: str, cause: str) -> None:
        """Fail a sub-goal, and recover in the plan of the goal above."""
        step = self._step_above(goal)
        assert step is not None
        assert goal.parent is not None
        self._fail(goal, f"{kind}: {message}", f"goal.escalated.{goal.id}", cause)
        failed = after_failure(self.state, goal.parent, step, message, kind, escalated_from=goal.id)
        self._append_all(failed, cause)
        cause = self.state.failures[-1].event
        self._recover(kind, goal.parent, step.id, message, cause, escalated=True)

    def _abort(self, goal_id: str, reason: str, cause: str) -> None:
        """Fail a goal with all that it serves, and go on with others."""
        root = self.state.lineage(goal_id)[-1]
        self._fail(root, reason, f"goal.aborted.{root.id}", cause)

    def _fail(self, goal: Goal, reason: str, belief: str, cause: str) -> None:
        """End a goal as failed; the agent goes on believing why."""
        believed = ev.BeliefAdded(key=belief, value=reason, source=BeliefSource.INFERENCE)
        self._append_all((believed, *end_goal(self.state, goal, GoalStatus.FAILED, reason)), cause)

    def _end_replanning(self, goal: str, *, success: bool, cause: str) -> None:
        """Record what became of planning the goal anew, where that is open."""
        payloads = recovered(self.state, Strategy.SIMPLIFIED_APPROACH, goal=goal, success=success)
        self._append_all(payloads, cause)
