"""The gate on the way of an action: what holds it, asks about it, is saved before it, and what it may cost.

An action is asked about once its arguments are settled, before anything is saved or started for it. There is
no await between the last look at the gate and the start of an action.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from engine.agent.actions.pipeline import Pipeline
from engine.agent.actions.snapshots import NoSaver, NothingSaved, Saved, Saver
from engine.agent.perception import AgentEnvironment
from engine.agent.recorder import AgentRecorder
from engine.agent.steering.envelopes import call_of, key_of
from engine.agent.steering.gate import BreakpointHold, GateVerdict, Hold, breakpoint_hold, held_replan, hold
from engine.agent.steering.ledger import Ledger
from engine.agent.steering.reviews import request_of
from engine.agent.steering.rules import narrowest_rule
from engine.core import events as ev
from engine.core.actions import ErrorCode, ToolResult
from engine.core.agents import RunState
from engine.core.approvals import REFUSALS_HOLD, Call, Policy, Source
from engine.core.budgets import BudgetObjection, Spent
from engine.core.goals import Goal
from engine.core.plan import Plan, StepStatus, plan_difference
from engine.core.reasons import NONE, Reason
from engine.tools.registry import Checked, Problem, ToolRegistry

SHOWN_AFTER_S = 0.1
"""How long an action may be saved for before its request is shown to those who watch."""
_NO_SAVER = NoSaver()


class ActionSaver:
    """Has the workspace saved before each action that may change it.

    Args:
        recorder: the agent's record.
        saver: takes the snapshots.
        registry: says which commands change files.
    """

    def __init__(self, recorder: AgentRecorder, saver: Saver, registry: ToolRegistry) -> None:
        self._recorder, self._snapshots, self._registry = recorder, saver, registry
        self._state = recorder.state

    async def save(self, may_start: Callable[[], bool]) -> Saved | None:
        """The result of saving the workspace; None when the action may not start, or not as it was saved for.

        Whatever closes the gate, such as a pause, an edit or a stop, cuts the saving off at once.
        """
        action, saver = self._state.action, self._saver()
        assert action is not None

        def as_before() -> bool:
            return may_start() and self._saver() is saver

        shown = asyncio.get_running_loop().call_later(SHOWN_AFTER_S, self._recorder.commit_soon)
        try:
            saved = await self._recorder.run_while(as_before, saver.save(self._state.agent_id, action))
        finally:
            shown.cancel()
        return saved if as_before() else None

    def _saver(self) -> Saver:
        """The saver; one that takes no snapshot where nothing can change or the operator waives it."""
        action = self._state.action
        if action is None or (action.step and action.step == self._state.unsaved_step):
            return _NO_SAVER
        changes = self._registry.get(action.tool).commands[action.command].mutates
        return self._snapshots if changes else _NO_SAVER

    def record(self, saved: Saved) -> None:
        """Record what was saved before the action; nothing where nothing was to be."""
        action = self._state.action
        if action is not None and not isinstance(saved, NothingSaved):
            self._recorder.append(saved, "system", action.event)


class Approver:
    """Asks the operator about the action at the gate, and refuses what is denied.

    Args:
        recorder: the agent's record.
        around: what looks at the workspace, and the tools.
        pipeline: records that an action was refused.
    """

    def __init__(self, recorder: AgentRecorder, around: AgentEnvironment, pipeline: Pipeline) -> None:
        self._recorder, self._around, self._pipeline = recorder, around, pipeline
        self._append, self._state = recorder.append, recorder.state

    def begin(self, policies: Mapping[Source, Policy]) -> None:
        """Record the policies that hold from now on, where they are others than before."""
        for source, policy in policies.items():
            if self._state.approvals.policies.get(source.value, Policy()) != policy:
                adopted = ev.ApprovalsSet(source=source, policy=policy)
                self._append(adopted, "system", self._state.run_event)

    async def note_needs(self, overtaken: Callable[[], bool]) -> None:
        """Record why the requested action needs the operator's word, where it does.

        That is so where it would destroy something while autonomous mode is off, and where it would switch
        that. A replay is fed what was seen.
        """
        action, session = self._state.action, self._state.sandbox
        if not self._around.looks or action is None:
            return
        spec = self._around.registry.spec(action.tool, action.command)
        if spec is None:
            return
        if spec.request:
            turned = "off" if session.autonomous else "on"
            why = Reason("action.freedom", turned=turned)
            self._append(ev.OperatorNeeded(action=action.id, why=why, request=True), "system", action.event)
        elif spec.overwrites and not session.autonomous:
            own = self._state.own_content
            look = self._around.perceiver.bytes_overwritten(self._state.agent_id, action, session.cwd, own)
            lost = await self._recorder.run_while(lambda: not overtaken(), look)
            if lost and not overtaken():
                why = Reason("action.overwrites", lost=lost, path=str(action.args["path"]))
                self._append(ev.OperatorNeeded(action=action.id, why=why), "system", action.event)

    def call(self) -> Call | None:
        """The action that stands at the gate, as rules see it; None where it is no call of a known tool."""
        action = self._state.action
        spec = self._around.registry.spec(action.tool, action.command) if action is not None else None
        return call_of(self._state, spec) if spec is not None else None

    async def review(self, held: Hold, overtaken: Callable[[], bool]) -> bool:
        """Have an automatic reviewer look at a call before the operator is asked; False where none is to.

        A replay is fed what it said.
        """
        state, action, call = self._state, self._state.action, self.call()
        reviewer, known = self._around.reviewer, self._state.approvals.review
        if reviewer is None or held.verdict is None or action is None or call is None:
            return False
        asked = state.approvals.question is not None and state.approvals.question.action == action.id
        if asked or (known is not None and (known.action, known.key) == (action.id, key_of(call))):
            return False
        self._recorder.commit_soon()
        goal = state.goals.get(action.goal)
        request = request_of(
            call, state.agent_id, action.id, goal.text if goal is not None else "", str(held.verdict.why)
        )
        looking = reviewer.review(
            request, lambda called: self._recorder.observe(called, "thinker", action.event)
        )
        verdict = await self._recorder.run_while(lambda: not overtaken(), looking)
        if verdict is not None and not overtaken():
            about = {"action": action.id, "key": key_of(call), "by": reviewer.name}
            verdict_fields = {"answer": verdict.answer, "reason": verdict.reason, "trouble": verdict.trouble}
            self._append(ev.CallReviewed(**about, **verdict_fields), "reviewer", action.event)
        return True

    def ask(self, held: Hold, cause: str) -> None:
        """Record what the action waits for, where that is not recorded yet."""
        state, action = self._state, self._state.action
        if held.verdict is None:
            self._announce_replan(cause)
            return
        question, call = state.approvals.question, self.call()
        if action is None or call is None or (question is not None and question.action == action.id):
            return
        about = {"action": action.id, "step": action.step, "goal": action.goal, "why": held.verdict.why}
        asked = ev.ApprovalAsked(call=call, key=key_of(call), offered=narrowest_rule(call), **about)
        self._append(asked, "agent", action.event, held.verdict.cause)

    def _announce_replan(self, cause: str) -> None:
        """Record that the agent came to a re-plan that was not accepted."""
        goal = self._state.goal_at_hand
        held = held_replan(self._state, goal)
        if held is None or held.told:
            return
        plan, accepted = self._state.plans.get(held.goal), self._state.approvals.accepted.get(held.goal)
        changed = plan_difference(accepted.steps if accepted else (), plan.steps if plan else ())
        counts = {name: len(getattr(changed, name)) for name in ("added", "removed", "changed")}
        waits = ev.ReplanHeld(goal=held.goal, change=held.change, **counts)
        self._append(waits, "agent", held.event, cause)

    async def refuse(self, denied: GateVerdict) -> ToolResult:
        """Record that the action may not run; it was never started."""
        action = self._state.action
        assert action is not None
        message = f"not allowed: {denied.why}"
        checked = Checked({}, (Problem(ErrorCode.NOT_ALLOWED, message),))
        answer = await self._pipeline.refuse(checked, action.event, denied.cause)
        times = self._state.approvals.refusals
        if denied.why.is_a("gate.reviewed") and times >= REFUSALS_HOLD and not self._state.deleted:
            reason = Reason("run.reviewer", times=times, why=denied.why)
            self._append(ev.AgentPaused(reason=reason), "system", denied.cause)
        return answer

    def undone_step(self, goal: Goal, plan: Plan) -> Reason:
        """Which step of an accepted plan was not done; empty when all were."""
        accepted = self._state.approvals.accepted.get(goal.id)
        if accepted is None:
            return NONE
        for ident in accepted.required:
            step = plan.step(ident)
            if step is None or step.status is StepStatus.ABANDONED:
                return Reason("goal.not-shown", step=ident, goal=goal.id)
        return NONE

    def refuse_done(self, goal: Goal, plan: Plan, why: Reason) -> None:
        """Leave the goal open and tell the operator why."""
        reason = Reason("turn.not-shown", why=why)
        self._append(ev.InterventionOpened(goal=goal.id, reason=reason), "agent", plan.event)


class BudgetGuard:
    """Asks the workspace's ledger before an action, and holds the agent where a budget would break.

    Args:
        recorder: the agent's record.
        ledger: counts for all agents; None in a replay, which is fed what it decided.
    """

    def __init__(self, recorder: AgentRecorder, ledger: Ledger | None) -> None:
        self._recorder, self._ledger = recorder, ledger
        self._append, self._state = recorder.append, recorder.state

    def overspends(self, cause: str) -> bool:
        """Whether the requested action would break a budget; the agent is held then.

        There is no await between this and the start of the action.
        """
        action, ledger = self._state.action, self._ledger
        if ledger is None or action is None:
            return False
        entry = ledger.enter(self._state.agent_id, action.goal, Spent(actions=1), action=action.id)
        if not isinstance(entry, BudgetObjection):
            return False
        self._held_by(entry, "action", action.event, cause)
        return True

    def time_is_up(self, objection: BudgetObjection) -> None:
        """Be held by a budget of time: what runs ends by itself, and nothing follows it."""
        self._held_by(objection, "time", self._state.run_event)
        self._recorder.commit_soon()
        self._recorder.wake()

    def ease(self, actor: str) -> None:
        """Go on, as there is more of the budget that holds the agent."""
        held = self._state.held_by
        if held is not None:
            self._append(ev.BudgetEased(budget=held.budget), actor, held.event)
            self._recorder.wake()

    def _held_by(self, objection: BudgetObjection, before: str, *causes: str) -> None:
        reached = ev.BudgetReached(
            reason=objection.reason, before=before, budget=objection.budget, of=objection.kind
        )
        self._append(reached, "system", *causes)


class Gatekeeper:
    """Lets an agent's actions pass, one at a time, or records why they wait.

    Args:
        recorder: the agent's record.
        approver: asks the operator.
        budget: objects to what costs too much.
        saver: saves the workspace before an action.
    """

    def __init__(
        self, recorder: AgentRecorder, approver: Approver, budget: BudgetGuard, saver: ActionSaver
    ) -> None:
        self._recorder, self._approver, self._budget, self._saver = recorder, approver, budget, saver
        self._append, self._state = recorder.append, recorder.state

    def hold(self, *, step: str = "", call: bool = False) -> Hold | None:
        """What holds the action now; with `call` also what rules say of its call."""
        trouble = self._recorder.log.trouble
        return hold(self._state, step=step, trouble=trouble, call=self._approver.call() if call else None)

    async def admit(
        self, step: str, overtaken: Callable[[], bool], cause: str, *, saves: bool
    ) -> bool | ev.SnapshotFailed | GateVerdict:
        """Wait at the gate, save the workspace where asked, and look again; False when it is not to run.

        A call that the workspace is saved for is asked about where it has to be; a verdict says that it is
        denied. There is no await between the last look and the answer.

        Args:
            step: the plan step.
            overtaken: whether the action is no longer the one to run.
            cause: the event that the wait follows from.
            saves: whether a call is about to start, which the workspace is saved for.
        """
        announced = ""
        while not overtaken():
            if (holding := self.hold(step=step, call=saves)) is not None:
                if holding.verdict is not None and not holding.asks:
                    return holding.verdict
                if holding.asks and await self._approver.review(
                    holding, lambda: overtaken() or self.hold(step=step, call=saves) != holding
                ):
                    continue
                announced = self._announce(holding, step, cause, announced)
                await self._recorder.commit()
                if self.hold(step=step, call=saves) is not None:
                    await self._recorder.wait_for_change()
            elif self._budget.overspends(cause):
                continue  # what holds it is announced
            elif not saves:
                return True
            else:
                saved = await self._saver.save(
                    lambda: not overtaken() and self.hold(step=step, call=True) is None
                )
                if isinstance(saved, ev.SnapshotFailed):
                    return saved
                if saved is not None and not self._budget.overspends(cause):
                    self._saver.record(saved)
                    return True
        return False

    def _announce(self, holding: Hold, step: str, cause: str, announced: str) -> str:
        """Record why the step waits, once; returns the reason that was announced last."""
        action = self._state.action
        if self._recorder.log.trouble is not None:
            return announced
        if holding.breakpoint is not None:
            self._stand(holding.breakpoint, cause)
        elif holding.asks:
            self._approver.ask(holding, cause)
        elif holding.reason != announced and action is not None:
            held = ev.ActionHeld(action=action.id, reason=holding.reason)
            self._append(held, "agent", action.event, self._state.run_event)
        return holding.reason

    def at_breakpoint(self) -> bool:
        """Hold the agent for the breakpoints reached since the last look; False when there are none."""
        stand = breakpoint_hold(self._state)
        if stand is not None:
            self._stand(stand, self._state.run_event)
        return stand is not None

    def _stand(self, stand: BreakpointHold, cause: str) -> None:
        """Record which breakpoints were reached, and pause there."""
        hit = cause
        if stand.step:
            reached = ev.BreakpointHit(step=stand.step)
            hit = self._append(reached, "agent", self._state.breakpoints[stand.step], cause).ref
        for came in stand.came:
            known = self._state.points.get(came.breakpoint)
            reached = ev.BreakpointHit(
                breakpoint=came.breakpoint, what=came.what, came=came.event, at=stand.at
            )
            set_by = known.event if known is not None else ""
            hit = self._append(reached, "agent", came.event, set_by, cause).ref
        if self._state.run is not RunState.STOPPED:
            self._append(ev.AgentPaused(reason=stand.reason), "agent", hit)
