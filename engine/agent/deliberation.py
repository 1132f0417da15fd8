"""What an agent does in a tick: the strategy of an agent that plans, and how its goals get their plans.

An agent's life, gate, pipeline and journal are the same whatever its strategy is.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Protocol

from engine.agent.decider import Decider
from engine.agent.decisions.outcome import fresh_id, renumber
from engine.agent.execution import AgentParts, Executor, is_best_goal
from engine.agent.recoverer import recovered, step_summary, trouble_of
from engine.agent.steering.gate import may_think
from engine.core import events as ev
from engine.core.agents import RETURNED, RUN_TYPES, RunState
from engine.core.goals import Goal, GoalStatus, end_of_run
from engine.core.plan import Op, Plan, StepStatus
from engine.core.reasoner import SentMessage
from engine.core.reasons import Reason
from engine.core.recovery import ActiveAction, FailureKind, Strategy
from engine.core.state import AgentState
from engine.core.thinking import PlanProposal, PlanRequest, ThinkingError, invalid
from engine.planning.plan_notation import problems_of
from engine.value import fields_of

OUTCOME_UNKNOWN = Reason("step.unknown.why")


class Deliberation(Protocol):
    """How an agent chooses what it does."""

    async def rests(self, seconds: float) -> None:
        """Wait so long at most until it is in the middle of nothing; by default it never is."""
        return

    def opened(self, *, new: bool) -> None:
        """The agent was opened in a session; `new` where it is its first. By default nothing follows."""
        return

    def settle_unknown(self, action: ActiveAction, cause: str) -> None:
        """An action of the last session ran when that ended, and its result is unknown."""

    def initial_world(self) -> dict[str, Any] | None:
        """The small world in which the agent begins; None where it has one already, or none (the default)."""
        return None

    def react(self, payload: ev.Payload) -> None:
        """Do at once what a command asks beyond the state; by default nothing."""
        return

    def hear(self, sender: str, message: SentMessage) -> None:
        """Take a message of another agent's reasoner; by default it is left alone."""
        return

    def saved(self) -> dict[str, Any] | None:
        """The mind as it is behind the newest event; None where there is none, or that cannot be said."""
        return None

    def has_work(self) -> bool:
        """Whether there is something to do that the agent may do now."""

    def finish_goal(self) -> bool:
        """End a goal that is done; False when none is, as where a program ends its goals."""
        return False

    async def tick(self) -> None:
        """Go once through the stages; at most one action runs."""

    async def idle(self) -> None:
        """Wait for something to do."""

    async def close(self) -> None:
        """End everything that was begun beside the cycle; by default there is nothing."""
        return


def is_planned(state: AgentState, goal: str) -> bool:
    """Whether the goal has a plan to follow, and is not to be planned anew."""
    if state.open_thought(goal) is not None:
        return True
    return goal in state.plans and not state.needs_replan and goal not in state.replans


class Planner:
    """Gives goals their plans, and ends goals whose plans are done."""

    def __init__(self, parts: AgentParts, decider: Decider) -> None:
        self._recorder, self._around, self._decider = parts.recorder, parts.around, decider
        self._approver, self._recoverer, self._reflector = parts.approver, parts.recoverer, parts.reflector
        self._append, self._state = parts.recorder.append, parts.recorder.state

    async def ensure_plan(self, goal: Goal) -> bool:
        """Make sure that the goal has a plan; False when there is none to be had."""
        message = self._state.meta.pressing("now", "after")
        if is_planned(self._state, goal.id) and message is not None and self._plans_whole(goal):
            self._append(ev.ReplanAsked(goal=goal.id), "agent", message.event)
        if is_planned(self._state, goal.id):
            return True
        if self._state.config.decides and goal.id not in self._state.plans:
            self._decider.adopt_open_plan(goal)
            return True
        if not await self._waited_to_ask(goal):
            return False
        request = self._request(goal)
        asks = ev.PlanAsked(goal=goal.id, thinker=self._state.config.thinker)
        asked = self._append(asks, "agent", goal.event, self._state.run_event)
        self._recorder.asked = asked.ref
        self._recorder.commit_soon()
        try:
            proposal = await self._recorder.run_while(lambda: self._is_wanted(goal), self._think(request))
        except ThinkingError as error:
            if self._is_wanted(goal) and not error.held:
                self._no_thought(goal, error, asked.ref)
            return False
        if proposal is None or not self._is_wanted(goal):
            return False
        thinker, steps, uncovered = proposal.thinker, proposal.steps, proposal.uncovered
        plan = ev.PlanGenerated(goal=goal.id, thinker=thinker, steps=steps, uncovered=uncovered)
        generated = self._append(plan, "agent", asked.ref)
        problems = tuple(
            Reason("plan.gap", nearest=" · ".join(gap.nearest), **fields_of(gap, "index", "clause", "why"))
            for gap in uncovered
        ) or problems_of(steps, self._around.registry, settled_later=True)
        if problems:
            self._reject_plan(goal, problems, bool(uncovered), generated.ref)
            return False
        self._end_asking(goal.id, success=True, cause=generated.ref)
        steps = renumber(self._state, steps)
        old = self._state.plans.get(goal.id)
        if old is not None and goal.id in self._state.replans:
            done = tuple(step for step in old.steps if step.status.terminal)
            change = Reason("plan.anew")
            revised = ev.PlanRevised(plan=old.id, goal=goal.id, change=change, steps=(*done, *steps))
            self._append(revised, "agent", generated.ref)
        else:
            adopted = ev.PlanAdopted(plan=fresh_id(self._state, "p"), goal=goal.id, steps=steps)
            self._append(adopted, "agent", generated.ref)
        return True

    def _reject_plan(self, goal: Goal, problems: tuple[Reason, ...], uncovered: bool, cause: str) -> None:
        self._end_asking(goal.id, success=True, cause=cause)
        kind = FailureKind.GOAL_PARSE_ERROR if uncovered else FailureKind.PLANNING_ERROR
        rejects = ev.PlanRejected(goal=goal.id, problems=problems, failure=kind)
        rejected = self._append(rejects, "agent", cause)
        self._recoverer.thought_failed(goal.id, invalid(kind, problems), rejected.ref)

    def finish_goal(self) -> bool:
        """End the goal whose plan is done, and the step of the parent that waited for it.

        It has a turn of its own: behind an action's last event, a replay would know more than the agent did.
        """
        goal, plan = self._state.goal, self._state.plan
        if goal is None or goal.status.terminal or plan is None or not plan.complete:
            return False
        if self._state.open_child(goal.id) is not None:
            return False
        if self._state.intervention is not None or self._state.needs_replan:
            return False
        if goal.criteria and not plan.shown:
            self._decider.ask_for_proof(plan)
            return True
        if why := self._approver.undone_step(goal, plan):
            self._approver.refuse_done(goal, plan, why)
            return True
        self._recoverer.end_replanning(goal.id, success=True, cause=plan.event)
        reason = plan.steps[-1].summary if plan.shown else self._state.last_summary
        if lacking := _lacking(self._state, goal, plan):
            reason = Reason("goal.partly", lacking=lacking, result=reason)
        returned = self._state.beliefs.get(RETURNED) if self._state.agent_type in RUN_TYPES else None
        end = end_of_run(returned.value) if returned is not None else None
        how, reason = end or (GoalStatus.ACHIEVED, reason)
        ends = ev.GoalEnded(goal=goal.id, status=how, reason=reason)
        ended = self._append(ends, "agent", *(step.event for step in plan.steps[-1:]), plan.event)
        if goal.parent is not None and goal.parent_step is not None:
            status = StepStatus.COMPLETED
            summary = Reason("step.goal", goal=goal.id, status=GoalStatus.ACHIEVED.value)
            done = ev.StepEnded(goal=goal.parent, step=goal.parent_step, status=status, summary=summary)
            self._append(done, "agent", ended.ref)
        return True

    async def _waited_to_ask(self, goal: Goal) -> bool:
        """Wait until the thinker may be asked again; False when something came meanwhile that goes first."""
        retry = self._state.retry
        if retry is None or (retry.step, retry.goal) != ("", goal.id) or self._state.run is RunState.PAUSED:
            return True
        await self._recorder.commit()

        def awaited() -> bool:
            state = self._state
            return (
                state.retry == retry
                and state.run is RunState.RUNNING
                and not (state.requests or state.reached or self._reflector.attends)
                and not (state.intervention or state.handover)
                and self._is_wanted(goal)
                and is_best_goal(state, goal)
            )

        await self._recorder.run_while(awaited, self._around.clock.sleep(retry.delay_s))
        return awaited()

    async def _think(self, request: PlanRequest) -> PlanProposal:
        if self._around.model_stream is not None:
            self._around.model_stream.about(request.goal.id, "plan")
        await self._around.learn()
        return await self._around.thinker.plan(request)

    def _is_wanted(self, goal: Goal) -> bool:
        """Whether a plan that is being made for a goal is still of use; a pause lets it be finished."""
        state = self._state
        stopped = self._recorder.stopped or state.deleted or state.meta.pressing("now") is not None
        return not stopped and state.goals.get(goal.id) == goal and not is_planned(state, goal.id)

    def _plans_whole(self, goal: Goal) -> bool:
        """Whether a goal is pursued by whole plans of a model, not by one decision after the other."""
        state = self._state
        return state.config.replans and not state.config.decides and state.open_thought(goal.id) is None

    def _request(self, goal: Goal) -> PlanRequest:
        """What the thinker is told: after a failure also what is done and what went wrong."""
        state = self._state
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
            guidance=state.meta.guidance(plans=True),
            findings=state.meta.findings,
            restored=state.restored,
        )

    def _no_thought(self, goal: Goal, error: ThinkingError, cause: str) -> None:
        """Record that a thinker gave no plan, and recover."""
        fields = {"failure": error.kind, "message": error.message, "retry_after_s": error.retry_after_s}
        failed = self._append(ev.ThinkingFailed(goal=goal.id, **fields), "agent", cause)
        self._end_asking(goal.id, success=False, cause=failed.ref)
        self._recoverer.thought_failed(goal.id, error, failed.ref)

    def _end_asking(self, goal: str, *, success: bool, cause: str) -> None:
        """Record the result of asking for the goal's plan again, where that is open."""
        tried = self._state.tried.get(goal, ())
        if tried and tried[-1] is Strategy.RETRY_WITH_DELAY:
            payloads = recovered(self._state, Strategy.RETRY_WITH_DELAY, goal=goal, success=success)
            self._recorder.append_all(payloads, cause)


def _lacking(state: AgentState, goal: Goal, plan: Plan) -> tuple[Reason, ...]:
    """What of a plan and of the goals below was skipped, or got its result by hand."""
    clauses: dict[int, list[bool]] = {}
    counts: Counter[str] = Counter()
    for step in plan.steps:
        skipped = step.summary.is_a("step.left-out")
        if step.provenance.clause_index:
            clauses.setdefault(step.provenance.clause_index, []).append(skipped)
        else:
            counts["goal.steps-skipped"] += skipped
        counts["goal.steps-forced"] += step.summary.is_a("step.by-hand")
    for each in clauses.values():
        if all(each):
            counts["goal.clauses-skipped"] += 1
        else:
            counts["goal.steps-skipped"] += sum(each)
    for child in state.children(goal.id):
        for part in child.reason.values["lacking"] if child.lacking else ():
            counts[part.code] += part.values["n"]
    lacking = (
        Reason("goal.clauses-skipped", n=counts["goal.clauses-skipped"]),
        Reason("goal.steps-forced", n=counts["goal.steps-forced"]),
        Reason("goal.steps-skipped", n=counts["goal.steps-skipped"]),
    )
    return tuple(each for each in lacking if each.values["n"])


class PlanDeliberation(Deliberation):
    """Pursues goals by plans of a thinker, one step a tick."""

    def __init__(self, parts: AgentParts) -> None:
        self._recorder, self._recoverer, self._limits = parts.recorder, parts.recoverer, parts.limits
        self._append, self._state = parts.recorder.append, parts.recorder.state
        self._thinker = parts.around.thinker
        self._executor = Executor(parts)
        self._decider = Decider(parts, self._executor)
        self._planner = Planner(parts, self._decider)

    def settle_unknown(self, action: ActiveAction, cause: str) -> None:
        """Fail the step, and leave it to the operator whether it is repeated."""
        goal, step, kind = action.goal, action.step, FailureKind.UNKNOWN_ERROR
        located = self._state.find_step(step)
        ended = ev.StepEnded(goal=goal, step=step, status=StepStatus.FAILED, summary=Reason("step.unknown"))
        self._append(ended, "system", cause)
        failure = ev.FailureRecorded(
            failure=kind,
            message=OUTCOME_UNKNOWN,
            subject=step_summary(located[1]) if located else step,
            goal=goal,
            step=step,
        )
        failed = self._append(failure, "system", cause)
        opened = ev.InterventionOpened(goal=goal, step=step, reason=OUTCOME_UNKNOWN, failure=kind)
        self._append(opened, "system", failed.ref)

    def has_work(self) -> bool:
        """Whether a goal is open and the agent may think about it."""
        return bool(self._state.open_goals) and may_think(self._state, free=self._thinker.free)

    def finish_goal(self) -> bool:
        """End the goal whose plan is done."""
        return self._planner.finish_goal()

    async def idle(self) -> None:
        """Wait for a change."""
        await self._recorder.wait_for_change()

    async def tick(self) -> None:
        """Choose a goal, have a plan for it, and take its next step."""
        self._recorder.begin_tick()
        if self._limits.loops_over():
            return
        goal = self._choose_goal()
        if goal is not None and await self._planner.ensure_plan(goal):
            step = self._state.step
            if step is not None and step.op is Op.THINK:
                await self._decider.decide(goal, step)
            elif step is not None:
                await self._executor.act(goal, step)
        await self._recorder.commit_meanwhile()

    def _choose_goal(self) -> Goal | None:
        """The most urgent, then oldest open root goal; of it the deepest open sub-goal."""
        roots = [goal for goal in self._state.root_goals() if not goal.status.terminal]
        if not roots:
            return None
        goal = roots[0]
        while (child := self._state.open_child(goal.id)) is not None:
            goal = child
        if goal.id != self._state.current_goal:
            self._append(ev.GoalSelected(goal=goal.id), "agent", goal.event)
        return self._state.goals[goal.id]
