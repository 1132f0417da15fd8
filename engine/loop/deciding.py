"""Deciding: an abstract step is settled by one decision of the thinker after the other.

Each decision is recorded before anything follows from it. A call becomes a step in front of the abstract one,
so the operator sees, edits or skips it before it runs; what went wrong is told to the thinker, which decides
again, until too much has failed in a row (spec master-loop §3.8, §3.10).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.domain.failure import FailureKind
from engine.domain.goal import Goal
from engine.domain.plan import Op, Plan, PlanStep, Provenance, StepStatus
from engine.domain.state import RunState
from engine.domain.thinking import Decision, DecisionKind, DecisionRequest, ThinkingError
from engine.generation.validation import problems_of, step_problems
from engine.journal import events as ev
from engine.loop.asking import AskingAgent, trouble_of
from engine.loop.decide import renumber
from engine.loop.outcome import fresh_id

MUSINGS = 5
"""Thoughts in a row after which something must be done."""
WHAT_NEXT = "decide what to do next"


class DecidingAgent(AskingAgent):
    """Asks the thinker what to do about an abstract step, and follows what it decides."""

    def _adopt_open_plan(self, goal: Goal) -> None:
        """Begin a goal with nothing planned but to decide."""
        step = PlanStep(
            fresh_id(self.state, "s"),
            WHAT_NEXT,
            op=Op.THINK,
            provenance=Provenance(self.state.config.thinker, clause=goal.text),
        )
        adopted = ev.PlanAdopted(plan=fresh_id(self.state, "p"), goal=goal.id, steps=(step,))
        self.append(adopted, "agent", goal.event)

    def _ask_for_proof(self, goal: Goal, plan: Plan) -> None:
        """Have the thinker show that the goal's criteria hold, now that its plan is done."""
        step = PlanStep(
            fresh_id(self.state, "s"),
            "show that what the goal asks for holds",
            op=Op.THINK,
            provenance=Provenance(self.state.config.thinker),
        )
        change, steps = "the criteria are still to be shown", (*plan.steps, step)
        self.append(
            ev.PlanRevised(plan=plan.id, goal=goal.id, change=change, steps=steps), "agent", plan.event
        )

    async def _decide(self, goal: Goal, step: PlanStep) -> None:
        """Have one decision made about an abstract step, and follow it."""
        if not await self._admitted(goal, step):
            return
        request = self._decision_request(goal, step)
        asked = self.append(
            ev.DecisionAsked(goal=goal.id, step=step.id, thinker=self.state.config.thinker),
            "agent",
            step.event,
            self.state.run_event,
        )
        self.asked = asked.ref
        self.commit_soon()

        def wanted() -> bool:
            stopped = self.state.run is RunState.STOPPED or self.state.stop_event != self._stop
            return not stopped and self._still_current(goal, step)

        try:
            decision = await self._while(wanted, self._decision(request))
        except ThinkingError as error:
            if wanted() and not error.held:
                self._no_decision(goal, step, error, asked.ref)
            return
        if decision is None or not wanted():
            return
        made = self.append(
            ev.DecisionMade(goal=goal.id, step=step.id, thinker=self.state.config.thinker, decision=decision),
            "agent",
            asked.ref,
        )
        self._follow(goal, step, decision, made.ref)

    async def _decision(self, request: DecisionRequest) -> Decision | None:
        """Ask the thinker; None in a replay of a question that was cut off."""
        if self.around.voice is not None:
            self.around.voice.about(request.goal.id, f"decision on {request.step.id}")
        return await self.around.thinker.decide(request)

    def _decision_request(self, goal: Goal, step: PlanStep) -> DecisionRequest:
        """What the thinker is told."""
        state = self.state
        above = tuple(one.text for one in reversed(state.lineage(goal.id)[1:]))
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
            tuple(_line(one) for one in plan.steps if one.id != step.id),
            state.recent,
            trouble,
            advice,
            guidance=state.meta.guidance,
            findings=(*held_off, *state.meta.findings),
            may_muse=state.musings < MUSINGS,
        )

    # -------------------------------------------------------------- what a decision leads to

    def _follow(self, goal: Goal, step: PlanStep, decision: Decision, made: str) -> None:
        match decision.kind:
            case DecisionKind.CALL:
                call = self._call_of(decision)
                if problems := step_problems(call, self.around.registry, settled_later=True):
                    self._undecided(goal, step, FailureKind.INVALID_PARAMETERS, "; ".join(problems), made)
                else:
                    self._put_before(goal, step, (call,), f"decided: {call.description}", made)
            case DecisionKind.THINK if self.state.musings >= MUSINGS:
                why = f"{MUSINGS} thoughts in a row, and nothing was done"
                self._undecided(goal, step, FailureKind.PLANNING_ERROR, why, made)
            case DecisionKind.THINK:
                thought = ev.ThoughtRecorded(text=decision.text, type=decision.thought_type, goal=goal.id)
                self.append(thought, "agent", made)
            case DecisionKind.PLAN:
                self._replan(goal, step, decision.steps, made)
            case DecisionKind.SUBGOAL:
                wait = self._wait_for(decision)
                self._put_before(goal, step, (wait,), f"a goal before: {decision.text}", made)
            case DecisionKind.FINISH:
                self._finish(goal, step, decision, made)
            case DecisionKind.GIVE_UP:
                self._undecided(
                    goal,
                    step,
                    FailureKind.GOAL_MANAGEMENT_ERROR,
                    f"given up: {decision.text}",
                    made,
                    final=True,
                )
            case DecisionKind.ASK:
                asks = ev.StepEnded(
                    goal=goal.id, step=step.id, status=StepStatus.FAILED, summary=f"asks: {decision.text}"
                )
                self.append(asks, "agent", made)
                reason = f"{self.state.agent_id} asks: {decision.text}"
                self.append(ev.InterventionOpened(goal=goal.id, step=step.id, reason=reason), "agent", made)

    def _call_of(self, decision: Decision) -> PlanStep:
        return PlanStep(
            fresh_id(self.state, "s"),
            _first_line(decision.text) or decision.command,
            tool=decision.tool,
            command=decision.command,
            args=decision.args,
            provenance=Provenance(self.state.config.thinker),
        )

    def _wait_for(self, decision: Decision) -> PlanStep:
        args = {"goal": decision.text, "criteria": list(decision.criteria)}
        return PlanStep(
            fresh_id(self.state, "s"),
            _first_line(decision.text),
            op=Op.ACHIEVE,
            args=args,
            provenance=Provenance(self.state.config.thinker),
        )

    def _put_before(
        self, goal: Goal, step: PlanStep, new: Sequence[PlanStep], change: str, cause: str
    ) -> None:
        """Put steps in front of the abstract one, which is decided on again once they are done."""
        plan = self.state.plans[goal.id]
        at = plan.steps.index(step)
        steps = (*plan.steps[:at], *new, *plan.steps[at:])
        self.append(ev.PlanRevised(plan=plan.id, goal=goal.id, change=change, steps=steps), "agent", cause)

    def _replan(self, goal: Goal, step: PlanStep, given: Sequence[PlanStep], cause: str) -> None:
        """Put the given steps in place of all that have not run; the abstract one stays behind them."""
        plan = self.state.plans[goal.id]
        over = {one.id: one for one in plan.steps if one.status.terminal}
        unmet = [
            f"step {one.id} needs {need}, which was {over[need].status}"
            for one in given
            for need in one.depends_on
            if need in over and over[need].status is StepStatus.ABANDONED
        ]
        if unmet:
            self._undecided(goal, step, FailureKind.DEPENDENCY_NOT_MET, "; ".join(unmet), cause)
            return
        # What is done already is settled; it needs no waiting for.
        taken = {one.id for one in given}
        steps = [
            replace(one, depends_on=tuple(n for n in one.depends_on if n in taken or n not in over))
            for one in given
        ]
        if problems := problems_of(steps, self.around.registry, settled_later=True):
            rejected = ev.PlanRejected(goal=goal.id, problems=problems)
            ref = self.append(rejected, "agent", cause).ref
            self._undecided(goal, step, FailureKind.PLANNING_ERROR, "; ".join(problems), ref)
            return
        new = (*over.values(), *renumber(self.state, steps), step)
        change = f"{len(steps)} steps planned"
        self.append(ev.PlanRevised(plan=plan.id, goal=goal.id, change=change, steps=new), "agent", cause)

    def _finish(self, goal: Goal, step: PlanStep, decision: Decision, cause: str) -> None:
        """Take the thinker's word that it is done, where what must be shown is shown."""
        if why := self._not_shown(goal, self.state.plans[goal.id], decision.evidence):
            self._undecided(goal, step, FailureKind.GOAL_MANAGEMENT_ERROR, why, cause)
            return
        done = ev.StepEnded(
            goal=goal.id, step=step.id, status=StepStatus.COMPLETED, summary=_first_line(decision.text)
        )
        self.append(done, "agent", cause)

    def _not_shown(self, goal: Goal, plan: Plan, evidence: Sequence[str]) -> str:
        """Why the goal cannot be finished yet; empty when it can (spec master-loop W31)."""
        if (child := self.state.open_child(goal.id)) is not None:
            return f"goal {child.id} is open and serves this one: finish or give it up first"
        if len(evidence) < len(goal.criteria):
            missing = goal.criteria[len(evidence)]
            return f"not shown to hold: {missing}: name the step that shows it, for each criterion in turn"
        for criterion, ident in zip(goal.criteria, evidence, strict=False):
            found = plan.step(ident)
            if found is None or found.status is not StepStatus.COMPLETED or found.op is Op.THINK:
                return f"{ident} is no step that was done, and cannot show: {criterion}"
        return ""

    # -------------------------------------------------------------- when there is none

    def _no_decision(self, goal: Goal, step: PlanStep, error: ThinkingError, cause: str) -> None:
        failed = self.append(
            ev.ThinkingFailed(
                goal=goal.id,
                step=step.id,
                failure=error.kind,
                message=error.message,
                retry_after_s=error.retry_after_s,
            ),
            "agent",
            cause,
        )
        self._undecided(goal, step, error.kind, error.message, failed.ref, wait_s=error.retry_after_s or None)

    def _undecided(
        self,
        goal: Goal,
        step: PlanStep,
        kind: FailureKind,
        message: str,
        cause: str,
        *,
        wait_s: float | None = None,
        final: bool = False,
    ) -> None:
        """Record once that a decision came to nothing, and recover."""
        failed = self.append(
            ev.FailureRecorded(
                failure=kind, message=message, subject=f"decision on {step.id}", goal=goal.id, step=step.id
            ),
            "agent",
            cause,
        )
        self._recover(kind, goal.id, step.id, message, failed.ref, wait_s=wait_s, final=final)
        if self.state.intervention is not None:
            over = ev.StepEnded(goal=goal.id, step=step.id, status=StepStatus.FAILED, summary=message)
            self.append(over, "agent", failed.ref)


def _line(step: PlanStep) -> str:
    what = step.description or f"{step.tool} {step.command}"
    return f"{step.id} {step.status}: {what}" + (f": {step.summary}" if step.summary else "")


def _first_line(text: str) -> str:
    return " ".join(text.split())[:150]
