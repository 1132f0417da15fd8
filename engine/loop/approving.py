"""Waiting for the operator's word at the gate: asking, and refusing what is denied.

An action is asked about once its arguments are settled, before anything is saved or started for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.domain.action import ErrorCode, ToolResult
from engine.domain.approval import Call, Policy, Source
from engine.domain.goal import Goal
from engine.domain.plan import Plan, PlanStep, StepStatus
from engine.inquiry.plan_difference import difference
from engine.journal import events as ev
from engine.loop.settling import SettlingAgent
from engine.steering.approvals import Verdict, held_replan
from engine.steering.calls import call_of, key_of
from engine.steering.gate import Hold
from engine.steering.rules import offered
from engine.tools.arguments import Checked, Problem


class ApprovingAgent(SettlingAgent):
    """Asks before what is to be asked about."""

    def begin_approvals(self, policies: Mapping[Source, Policy]) -> None:
        """Record the policies that hold from now on, where they are others than before."""
        for source, policy in policies.items():
            if self.state.approvals.policies.get(source.value, Policy()) != policy:
                taken_up = ev.ApprovalsSet(source=source, policy=policy)
                self.append(taken_up, "system", self.state.run_event)

    async def _note_needs(self, overtaken: Callable[[], bool]) -> None:
        """Record why the requested action needs the operator's word, where it does.

        That is so where it would destroy something while autonomous mode is off, and where it would switch
        that. A replay is fed what was seen.
        """
        action, session = self.state.action, self.state.sandbox
        if action is None or action.tool not in self.around.registry:
            return
        spec = self.around.registry.get(action.tool).commands.get(action.command)
        if spec is None:
            return
        if spec.request:
            turned = "off" if session.autonomous else "on"
            why = f"the agent requests that autonomous mode is switched {turned}"
            self.append(ev.OperatorNeeded(action=action.id, why=why, request=True), "system", action.event)
        elif spec.overwrites and not session.autonomous:
            own = self.state.own_content
            look = self.around.perceiver.lost_by(self.state.agent_id, action, session.cwd, own)
            lost = await self._while(lambda: not overtaken(), look)
            if lost and not overtaken():
                why = f"it replaces {lost:,} bytes of {action.args['path']}, and autonomous mode is off"
                self.append(ev.OperatorNeeded(action=action.id, why=why), "system", action.event)

    def _call(self) -> Call | None:
        """The action that stands at the gate, as rules see it; None where it is no call of a known tool."""
        action = self.state.action
        if action is None or action.tool not in self.around.registry:
            return None
        spec = self.around.registry.get(action.tool).commands.get(action.command)
        return call_of(self.state, spec) if spec is not None else None

    def _ask(self, held: Hold, cause: str) -> None:
        """Record what the action waits for, where that is not recorded yet."""
        state, action = self.state, self.state.action
        if held.verdict is None:
            self._tell_of_replan(cause)
            return
        question, call = state.approvals.question, self._call()
        if action is None or call is None or (question is not None and question.action == action.id):
            return
        asked = ev.ApprovalAsked(
            action=action.id,
            step=action.step,
            goal=action.goal,
            call=call,
            key=key_of(call),
            why=held.verdict.why,
            offered=offered(call),
        )
        self.append(asked, "agent", action.event, held.verdict.cause)

    def _tell_of_replan(self, cause: str) -> None:
        """Record that the agent came to a re-plan that was not accepted."""
        goal = self.state.goal_at_hand
        held = held_replan(self.state, goal)
        if held is None or held.told:
            return
        plan, accepted = self.state.plans.get(held.goal), self.state.approvals.accepted.get(held.goal)
        changed = difference(accepted.steps if accepted else (), plan.steps if plan else ())
        said = ev.ReplanHeld(
            goal=held.goal,
            change=held.change,
            added=len(changed.added),
            removed=len(changed.removed),
            changed=len(changed.changed),
        )
        self.append(said, "agent", held.event, cause)

    async def _refuse(self, denied: Verdict) -> ToolResult:
        """Record that the action may not run; it was never started."""
        action = self.state.action
        assert action is not None
        message = f"not allowed: {denied.why}"
        checked = Checked({}, (Problem(ErrorCode.NOT_ALLOWED, message),))
        return await self.pipeline.refuse(checked, action.event, denied.cause)

    async def _denied(self, goal: Goal, step: PlanStep, denied: Verdict) -> None:
        """Let the step fail with the operator's reason."""
        self._settle(step, goal.id, await self._refuse(denied))

    def _not_shown_done(self, goal: Goal, plan: Plan) -> str:
        """Which step of an accepted plan was not done; empty when all were (steering §3 idea 10)."""
        accepted = self.state.approvals.accepted.get(goal.id)
        if accepted is None:
            return ""
        for ident in accepted.required:
            step = plan.step(ident)
            if step is None or step.status is StepStatus.ABANDONED:
                return f"{ident} of the accepted plan was not done, so {goal.id} is not shown to be achieved"
        return ""

    def _refuse_done(self, goal: Goal, plan: Plan, why: str) -> None:
        """Leave the goal open and tell the operator why."""
        reason = f"{why}: accept the plan as it is, put a step in, or give the goal up"
        self.append(ev.InterventionOpened(goal=goal.id, reason=reason), "agent", plan.event)
