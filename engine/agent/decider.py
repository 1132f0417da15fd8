"""Deciding: an abstract step is settled by one decision of the thinker after the other.

Each decision is recorded before anything follows from it. A call becomes a step in front of the abstract one,
so the operator sees, edits or skips it before it runs; what went wrong is shown to the thinker, which decides
again, until too much has failed in a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from engine.agent.decisions.outcome import fresh_id, renumber
from engine.agent.execution import AgentParts, Executor, is_current_step
from engine.agent.recoverer import trouble_of
from engine.core import events as ev
from engine.core.goals import Goal
from engine.core.plan import Op, Plan, PlanStep, Provenance, StepStatus
from engine.core.reasons import NONE, Reason, free_text
from engine.core.recovery import FailureKind
from engine.core.thinking import Decision, DecisionKind, DecisionRequest, ThinkingError, invalid
from engine.planning.plan_notation import problems_of, step_problems

THOUGHT_LIMIT = 5
"""Thoughts in a row after which something must be done."""
WHAT_NEXT = "decide what to do next"


class Decider:
    """Asks the thinker what to do about an abstract step, and follows what it decides."""

    def __init__(self, parts: AgentParts, executor: Executor) -> None:
        self._recorder, self._around, self._executor = parts.recorder, parts.around, executor
        self._recoverer, self._registry = parts.recoverer, parts.around.registry
        self._append, self._state = parts.recorder.append, parts.recorder.state

    def _new_step(self, description: str, **fields: Any) -> PlanStep:
        """A step of the thinker's with an id of its own."""
        by = Provenance(self._state.config.thinker, clause=fields.pop("clause", ""))
        return PlanStep(fresh_id(self._state, "s"), description, provenance=by, **fields)

    def _revise(
        self, plan: Plan, change: Reason, steps: Sequence[PlanStep], cause: str, kept: int = 0
    ) -> None:
        revised = ev.PlanRevised(plan=plan.id, goal=plan.goal, change=change, steps=tuple(steps), kept=kept)
        self._append(revised, "agent", cause)

    def adopt_open_plan(self, goal: Goal) -> None:
        """Begin a goal with nothing planned but to decide."""
        step = self._new_step(WHAT_NEXT, op=Op.THINK, clause=goal.text)
        adopted = ev.PlanAdopted(plan=fresh_id(self._state, "p"), goal=goal.id, steps=(step,))
        self._append(adopted, "agent", goal.event)

    def ask_for_proof(self, plan: Plan) -> None:
        """Have the thinker show that the goal's criteria hold, now that its plan is done."""
        step = self._new_step("show that what the goal asks for holds", op=Op.THINK)
        self._revise(plan, Reason("plan.to-show"), (*plan.steps, step), plan.event)

    async def decide(self, goal: Goal, step: PlanStep) -> None:
        """Have one decision made about an abstract step, and follow it."""
        if not await self._executor.admit(goal, step):
            return
        request, thinker = self._decision_request(goal, step), self._state.config.thinker
        asks = ev.DecisionAsked(goal=goal.id, step=step.id, thinker=thinker)
        asked = self._append(asks, "agent", step.event, self._state.run_event)
        self._recorder.asked = asked.ref
        self._recorder.commit_soon()

        def is_current() -> bool:
            interrupted = self._state.meta.pressing("now") is not None
            return not self._recorder.stopped and not interrupted and is_current_step(self._state, goal, step)

        try:
            decision = await self._recorder.run_while(is_current, self._decision(request))
        except ThinkingError as error:
            if is_current() and not error.held:
                self._no_decision(goal, step, error, asked.ref)
            return
        if decision is None or not is_current():
            return
        decided = ev.DecisionMade(goal=goal.id, step=step.id, thinker=thinker, decision=decision)
        made = self._append(decided, "agent", asked.ref)
        self._follow(goal, step, decision, made.ref)

    async def _decision(self, request: DecisionRequest) -> Decision:
        if self._around.model_stream is not None:
            self._around.model_stream.about(request.goal.id, f"decision on {request.step.id}")
        await self._around.learn()
        return await self._around.thinker.decide(request)

    def _decision_request(self, goal: Goal, step: PlanStep) -> DecisionRequest:
        """What the thinker is told."""
        state = self._state
        above = tuple(parent.text for parent in reversed(state.lineage(goal.id)[1:]))
        plan = state.plans[goal.id]
        trouble, advice = trouble_of(state, goal.id)
        deferred = ", ".join(state.deferred)
        held_off = (f"only the first call was made then; not made: {deferred}",) if deferred else ()
        return DecisionRequest(
            goal,
            step,
            state.sandbox,
            state.belief_values(),
            above,
            tuple(_line(other) for other in plan.steps if other.id != step.id),
            state.recent,
            trouble,
            advice,
            guidance=state.meta.guidance(plans=not any(other.status.terminal for other in plan.steps)),
            restored=state.restored,
            findings=(*held_off, *state.meta.findings),
            may_muse=state.musings < THOUGHT_LIMIT,
        )

    # -------------------------------------------------------------- what a decision leads to

    def _follow(self, goal: Goal, step: PlanStep, decision: Decision, made: str) -> None:
        match decision.kind:
            case DecisionKind.CALL:
                call = self._new_step(
                    _first_line(decision.text) or decision.command,
                    tool=decision.tool,
                    command=decision.command,
                    args=decision.args,
                )
                if problems := step_problems(call, self._registry, settled_later=True):
                    wrong = invalid(FailureKind.INVALID_PARAMETERS, problems)
                    self._undecided(goal, step, wrong, made)
                else:
                    self._put_before(goal, step, (call,), Reason("plan.decided", what=call.description), made)
            case DecisionKind.THINK if self._state.musings >= THOUGHT_LIMIT:
                why = Reason("thought.musing", thoughts=THOUGHT_LIMIT)
                self._undecided(goal, step, ThinkingError(FailureKind.PLANNING_ERROR, why), made)
            case DecisionKind.THINK:
                thought = ev.ThoughtRecorded(text=decision.text, type=decision.thought_type, goal=goal.id)
                self._append(thought, "agent", made)
            case DecisionKind.PLAN:
                self._replan(goal, step, decision.steps, made)
            case DecisionKind.SUBGOAL:
                args = {"goal": decision.text, "criteria": list(decision.criteria)}
                wait = self._new_step(_first_line(decision.text), op=Op.ACHIEVE, args=args)
                self._put_before(goal, step, (wait,), Reason("plan.goal-before", goal=decision.text), made)
            case DecisionKind.FINISH:
                self._finish(goal, step, decision, made)
            case DecisionKind.GIVE_UP:
                kind, why = FailureKind.GOAL_MANAGEMENT_ERROR, Reason("thought.given-up", why=decision.text)
                self._undecided(goal, step, ThinkingError(kind, why), made, final=True)
            case DecisionKind.OUTLINE:
                self._outline(goal, decision, made)
            case DecisionKind.ASK:
                self._end(goal, step, StepStatus.FAILED, Reason("step.asks", question=decision.text), made)
                reason = Reason("turn.asks", agent=self._state.agent_id, question=decision.text)
                self._append(ev.InterventionOpened(goal=goal.id, step=step.id, reason=reason), "agent", made)

    def _end(self, goal: Goal, step: PlanStep, status: StepStatus, summary: Reason, cause: str) -> None:
        ended = ev.StepEnded(goal=goal.id, step=step.id, status=status, summary=summary)
        self._append(ended, "agent", cause)

    def _put_before(
        self, goal: Goal, step: PlanStep, new: Sequence[PlanStep], change: Reason, cause: str
    ) -> None:
        """Put steps in front of the abstract one, which is decided on again once they are done."""
        plan = self._state.plans[goal.id]
        at = plan.steps.index(step)
        self._revise(plan, change, (*new, *plan.steps[at:]), cause, kept=at)

    def _replan(self, goal: Goal, step: PlanStep, given: Sequence[PlanStep], cause: str) -> None:
        """Put the given steps in place of all that have not run; the abstract one stays behind them."""
        plan = self._state.plans[goal.id]
        over = {old.id: old for old in plan.steps if old.status.terminal}
        unmet = [
            Reason("thought.abandoned", step=new.id, need=need, status=over[need].status.value)
            for new in given
            for need in new.depends_on
            if need in over and over[need].status is StepStatus.ABANDONED
        ]
        if unmet:
            wrong = invalid(FailureKind.DEPENDENCY_NOT_MET, unmet)
            self._undecided(goal, step, wrong, cause)
            return
        # What is done already is settled; it needs no waiting for.
        taken = {new.id for new in given}
        steps = [
            replace(new, depends_on=tuple(n for n in new.depends_on if n in taken or n not in over))
            for new in given
        ]
        if problems := problems_of(steps, self._registry, settled_later=True):
            rejected = ev.PlanRejected(goal=goal.id, problems=problems)
            ref = self._append(rejected, "agent", cause).ref
            self._undecided(goal, step, invalid(FailureKind.PLANNING_ERROR, problems), ref)
            return
        rest = (*over.values(), *renumber(self._state, steps), step)
        self._revise(plan, Reason("plan.planned", steps=len(steps)), rest, cause)

    def _outline(self, goal: Goal, decision: Decision, cause: str) -> None:
        """Show what the thinker means to do as abstract steps before the last; without any, end those."""
        plan = self._state.plans[goal.id]
        *before, last = plan.steps
        thoughts = [step for step in before if step.op is Op.THINK]
        open_ = {step.description: step for step in thoughts if not step.status.terminal}
        over = {step.description for step in thoughts if step.status.terminal}
        kept = [step for step in before if step.op is not Op.THINK or step.status.terminal]
        if decision.steps:
            meant = [step for step in decision.steps if step.description not in over]
            by = Provenance(self._state.config.thinker)
            new = [step for step in meant if step.description not in open_]
            added = {step.description: step for step in renumber(self._state, new)}
            steps = [
                replace(open_.get(s.description) or added[s.description], status=s.status, provenance=by)
                for s in meant
            ]
        else:
            steps = [replace(step, status=StepStatus.ABANDONED) for step in open_.values()]
        if (*kept, *steps, last) != plan.steps:
            change = Reason("plan.planned", steps=len(steps))
            self._revise(plan, change, (*kept, *steps, last), cause)

    def _finish(self, goal: Goal, step: PlanStep, decision: Decision, cause: str) -> None:
        """Take the thinker's word that it is done, where what must be shown is shown."""
        if why := self._not_shown(goal, self._state.plans[goal.id], decision.evidence):
            self._undecided(goal, step, ThinkingError(FailureKind.GOAL_MANAGEMENT_ERROR, why), cause)
            return
        self._end(goal, step, StepStatus.COMPLETED, free_text(_first_line(decision.text)), cause)

    def _not_shown(self, goal: Goal, plan: Plan, evidence: Sequence[str]) -> Reason:
        """Why the goal cannot be finished yet; empty when it can."""
        if (child := self._state.open_child(goal.id)) is not None:
            return Reason("thought.sub-goal", goal=child.id)
        if len(evidence) < len(goal.criteria):
            missing = goal.criteria[len(evidence)]
            return Reason("thought.not-shown", criterion=missing)
        for criterion, ident in zip(goal.criteria, evidence, strict=False):
            shown = plan.step(ident)
            if shown is None or shown.status is not StepStatus.COMPLETED or shown.op is Op.THINK:
                return Reason("thought.no-step", step=ident, criterion=criterion)
        return NONE

    # -------------------------------------------------------------- when there is none

    def _no_decision(self, goal: Goal, step: PlanStep, error: ThinkingError, cause: str) -> None:
        fields = {"failure": error.kind, "message": error.message, "retry_after_s": error.retry_after_s}
        failed = self._append(ev.ThinkingFailed(goal=goal.id, step=step.id, **fields), "agent", cause)
        self._undecided(goal, step, error, failed.ref)

    def _undecided(
        self, goal: Goal, step: PlanStep, error: ThinkingError, cause: str, *, final: bool = False
    ) -> None:
        """Record once that a decision came to nothing, and recover."""
        failed = self._recoverer.thought_failed(goal.id, error, cause, step=step.id, final=final)
        if self._state.intervention is not None:
            self._end(goal, step, StepStatus.FAILED, error.message, failed)


def _line(step: PlanStep) -> str:
    what = step.description or f"{step.tool} {step.command}"
    return f"{step.id} {step.status}: {what}" + (f": {step.summary}" if step.summary else "")


def _first_line(text: str) -> str:
    return " ".join(text.split())[:150]
