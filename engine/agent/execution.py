"""The act stage: one action at a time through the gate and the pipeline.

Plan steps, the operator's own calls and those of clients that the workspace is served to take the same way;
they differ in what may overtake them and in what follows from their result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from engine.agent.actions.pipeline import DROPPED, Pipeline
from engine.agent.actions.snapshots import Saved
from engine.agent.decisions.goals import SUBGOAL_LIMIT
from engine.agent.decisions.outcome import fresh_id
from engine.agent.gatekeeper import ActionSaver, Approver, Gatekeeper
from engine.agent.parameter_settler import ParameterSettler
from engine.agent.perception import AgentEnvironment
from engine.agent.recorder import AgentRecorder
from engine.agent.recoverer import Recoverer
from engine.agent.reflector import Reflector
from engine.agent.steering.gate import GateVerdict, Hold
from engine.core import events as ev
from engine.core.actions import ErrorCode, ToolResult
from engine.core.agents import RunState
from engine.core.approvals import Answer
from engine.core.goals import Goal
from engine.core.journal import Event
from engine.core.plan import Op, PlanStep
from engine.core.ports import Clock
from engine.core.reasons import NONE, Reason
from engine.core.recovery import FailureKind, OperatorRequest
from engine.core.sandbox import StopGrade
from engine.core.state import AgentState
from engine.tools.registry import Checked, Problem
from engine.value import dataclass


def is_best_goal(state: AgentState, goal: Goal) -> bool:
    """Whether deliberation would still choose this goal: its root, and nothing that comes before it."""
    roots = [root for root in state.root_goals() if not root.status.terminal]
    root = state.lineage(goal.id)[-1]
    return bool(roots) and roots[0].id == root.id and state.open_child(goal.id) is None


def is_current_step(state: AgentState, goal: Goal, step: PlanStep) -> bool:
    """Whether the goal and its step are still as they were, and still the ones to pursue."""
    return (
        not state.deleted
        and state.goals.get(goal.id) == goal
        and state.current_goal == goal.id
        and state.step == step
        and is_best_goal(state, goal)
    )


def request_action(
    recorder: AgentRecorder, call: tuple[str, str, dict[str, Any]], step: str, goal: str, *causes: str
) -> Event:
    """Record that an action of the agent's is about to pass the gate."""
    tool, command, args = call
    ident = fresh_id(recorder.state, "a")
    request = ev.ActionRequested(action=ident, step=step, goal=goal, tool=tool, command=command, args=args)
    return recorder.append(request, "agent", *causes)


def withdraw(recorder: AgentRecorder, *causes: str) -> None:
    """Record that the requested action is not run, where that is not recorded yet, and why."""
    state = recorder.state
    if state.action is None:
        return
    stopped = state.run is RunState.STOPPED or state.held not in ("", StopGrade.HOLD)
    why = state.run_reason if stopped else Reason("action.plan-changed")
    if state.deleted:
        why = Reason("action.agent-deleted")
    elif state.requests:
        why = Reason("action.operator-first")
    recorder.append(ev.ActionWithdrawn(action=state.action.id, reason=why), "agent", *causes)


class ActionPreparer:
    """Settles the arguments of a requested action, and notes whether it needs the operator."""

    def __init__(self, parameters: ParameterSettler, approver: Approver, gate: Gatekeeper) -> None:
        self._parameters, self._approver, self._gate = parameters, approver, gate

    async def prepare(
        self, args: Mapping[str, Any], goal: str, step: str, overtaken: Callable[[], bool], cause: str
    ) -> Checked:
        """The arguments after all stages, and what is wrong with them.

        Args:
            args: as the step has them, without defaults.
            goal: the text of the goal that the action serves.
            step: the step that the action runs.
            overtaken: whether the action is no longer the one to run.
            cause: the event by which it was requested.
        """
        gate = partial(self._gate.admit, step, overtaken, cause, saves=False)
        checked = await self._parameters.settle(args, goal, overtaken, gate)
        await self.note_needs(checked, overtaken)
        return checked

    async def note_needs(self, checked: Checked, overtaken: Callable[[], bool]) -> None:
        """Record why an action that can be called needs the operator's word, where it does."""
        if not checked.problems and not overtaken():
            await self._approver.note_needs(overtaken)


class RunLimits:
    """Pauses an agent where the goal or the loops are over for which the operator let it run."""

    def __init__(self, recorder: AgentRecorder) -> None:
        self._append, self._state = recorder.append, recorder.state

    def loops_over(self) -> bool:
        """Pause when the agent has made its loops; False while it has not."""
        state = self._state
        if state.run is not RunState.RUNNING or state.max_loops is None or state.loops < state.max_loops:
            return False
        over = ev.AgentPaused(reason=Reason("run.loops-over", loops=state.loops))
        self._append(over, "system", state.run_event)
        return True

    def goal_over(self) -> bool:
        """Pause when the goal that the agent was to run until has ended; False while it has not."""
        goal = self._state.goals.get(self._state.until or "")
        if goal is None or not goal.status.terminal or self._state.run is not RunState.RUNNING:
            return False
        reason = Reason("run.goal-over", goal=goal.id, status=goal.status)
        self._append(ev.AgentPaused(reason=reason), "system", goal.event, self._state.run_event)
        return True


@dataclass(frozen=True, slots=True)
class AgentParts:
    """The collaborators of one agent, of which a strategy takes those that it needs."""

    recorder: AgentRecorder
    around: AgentEnvironment
    pipeline: Pipeline
    reflector: Reflector
    recoverer: Recoverer
    approver: Approver
    gate: Gatekeeper
    preparer: ActionPreparer
    limits: RunLimits


class Executor:
    """Takes plan steps through the gate and runs them."""

    def __init__(self, parts: AgentParts) -> None:
        self._recorder, self._around, self._pipeline = parts.recorder, parts.around, parts.pipeline
        self._preparer, self._gate, self._approver = parts.preparer, parts.gate, parts.approver
        self._recoverer, self._reflector = parts.recoverer, parts.reflector
        self._append, self._state = parts.recorder.append, parts.recorder.state

    async def act(self, goal: Goal, step: PlanStep) -> None:
        """Take one step through the gate and run it."""
        if step.op is Op.ACHIEVE:
            if await self.admit(goal, step):
                self._adopt_subgoal(goal, step)
            return
        tool, command = (step.tool, step.command) if step.op is Op.ACT else ("mind", step.op.value)
        args = self._state.as_settled(step).args
        checked = self._around.registry.check(tool, command, args)
        retry = self._state.retry.event if self._state.retry else ""
        call = (tool, command, args if checked.problems else checked.args)
        requested = request_action(self._recorder, call, step.id, goal.id, step.event, retry)
        overtaken = partial(self._overtaken, goal, step)
        if step.provenance.by == "operator":  # what an operator typed is run as it is, or refused
            await self._preparer.note_needs(checked, overtaken)
        else:
            checked = await self._preparer.prepare(args, goal.text, step.id, overtaken, requested.ref)
        if not await self.admit(goal, step, calls=not checked.problems):
            plan = self._state.plans.get(goal.id)
            withdraw(self._recorder, requested.ref, plan.event if plan else "")
            return
        if checked.problems:
            answer: ToolResult | None = await self._pipeline.refuse(checked, requested.ref)
        else:
            answer = await self._pipeline.run(requested.ref, self._state.run_event)
        if answer is not None:
            self._recoverer.settle(step, goal.id, answer)

    def _adopt_subgoal(self, goal: Goal, step: PlanStep) -> None:
        depth = len(self._state.lineage(goal.id))
        if depth >= SUBGOAL_LIMIT:
            message = Reason("step.too-deep", depth=depth)
            self._recoverer.step_failed(step, goal.id, FailureKind.GOAL_MANAGEMENT_ERROR, message, step.event)
            return
        child = ev.GoalAdopted(
            goal=fresh_id(self._state, "g"),
            text=str(step.args["goal"]),
            priority=goal.priority,
            parent=goal.id,
            parent_step=step.id,
            criteria=tuple(step.args.get("criteria", ())),
        )
        self._append(child, "agent", step.event)

    async def admit(self, goal: Goal, step: PlanStep, *, calls: bool = False) -> bool:
        """Let a plan step pass the gate; False when it is not to run."""
        await self._wait_for_retry(goal, step)
        overtaken = partial(self._overtaken, goal, step)
        passed = await self._gate.admit(step.id, overtaken, step.event, saves=calls)
        if isinstance(passed, ev.SnapshotFailed):
            self._not_saved(goal, step, passed)
        elif isinstance(passed, GateVerdict):
            self._recoverer.settle(step, goal.id, await self._approver.refuse(passed))
        return passed is True

    def _not_saved(self, goal: Goal, step: PlanStep, failed: ev.SnapshotFailed) -> None:
        """Withdraw the action and let the operator decide, or give up where there is none."""
        action = self._state.action
        assert action is not None
        refused = self._append(failed, "system", action.event)
        withdrawn = ev.ActionWithdrawn(action=action.id, reason=Reason("action.unsaved"))
        self._append(withdrawn, "agent", refused.ref)
        message = Reason("step.unsaved", why=failed.reason)
        self._recoverer.step_failed(step, goal.id, FailureKind.DEPENDENCY_NOT_MET, message, refused.ref)

    def _overtaken(self, goal: Goal, step: PlanStep) -> bool:
        """Whether the step is no longer the one to run, or the operator comes first."""
        state = self._state
        # Once an action is requested the reflect stage has its turn after it; before, it goes first.
        reflects = state.action is None and self._reflector.attends
        # The operator rejected the re-plan that it belongs to; an open thought decides anew by itself.
        anew = goal.id in state.replans or (
            state.meta.pressing("now") is not None and not state.config.decides
        )
        anew = anew and state.open_thought(goal.id) is None
        overtaken = self._recorder.stopped or bool(state.requests) or reflects or anew
        return overtaken or not is_current_step(state, goal, step)

    async def _wait_for_retry(self, goal: Goal, step: PlanStep) -> None:
        """Wait out the delay of a retry, unless the operator settles or holds it, or acts meanwhile."""
        retry = self._state.retry
        if retry is None or retry.step != step.id:
            return
        await self._recorder.commit()

        def awaited() -> bool:
            state = self._state
            waits = state.retry == retry and state.run is RunState.RUNNING
            return waits and not self._overtaken(goal, step)

        await self._recorder.run_while(awaited, self._around.clock.sleep(retry.delay_s))


class CallServer:
    """Runs the tool calls that the operator and clients ask for, through the same pipeline.

    Args:
        recorder: the agent's record.
        clock: counts how long a client's call waits for an answer.
        pipeline: runs calls.
        gate: lets them pass.
        approver: asks the operator about a client's call.
        saver: saves the workspace before a call.
    """

    def __init__(
        self,
        recorder: AgentRecorder,
        clock: Clock,
        pipeline: Pipeline,
        gate: Gatekeeper,
        approver: Approver,
        saver: ActionSaver,
    ) -> None:
        self._recorder, self._clock, self._pipeline = recorder, clock, pipeline
        self._gate, self._approver, self._saver = gate, approver, saver
        self._append, self._state = recorder.append, recorder.state

    async def serve(self) -> None:
        """Run the first call that waits, or withdraw or refuse it with the reason."""
        request = self._state.requests[0]
        self._recorder.leave_tick()
        action = fresh_id(self._state, "a")
        cut_off = self._cut_off()
        call = {"tool": request.tool, "command": request.command, "args": request.args}
        requested = self._append(ev.ActionRequested(action=action, **call), request.actor, request.event)
        if request.client:
            await self._serve_client(request, requested.ref, action, cut_off)
        else:
            await self._serve_operator(requested.ref, action, cut_off)
        await self._recorder.commit()

    async def _serve_operator(self, requested: str, action: str, cut_off: Callable[[], Reason]) -> None:
        saved: Saved | None = None
        while saved is None and not cut_off():
            if self._gate.hold() is not None:
                await self._recorder.commit()
            else:
                saved = await self._saver.save(lambda: self._gate.hold() is None and not cut_off())
        if saved is None:
            reason = self._state.run_reason or Reason("action.stopped")
            withdrawn = ev.ActionWithdrawn(action=action, reason=reason)
            self._append(withdrawn, "system", requested, self._state.run_event)
        else:
            # That it could not be saved does not keep the operator from what they want.
            self._saver.record(saved)
            await self._pipeline.run(requested)

    def _cut_off(self) -> Callable[[], Reason]:
        """Tells why a call that is asked for now may not run later, in words; empty while it may."""
        before = self._state.run_event

        def why() -> Reason:
            state = self._state
            stopped = state.run is RunState.STOPPED or state.held != ""
            cut = (stopped and state.run_event != before) or state.deleted
            return (state.run_reason or Reason("action.stopped")) if cut else NONE

        return why

    async def _serve_client(
        self, request: OperatorRequest, requested: str, action: str, cut_off: Callable[[], Reason]
    ) -> None:
        """Run a call of a client, or refuse it with the reason.

        Args:
            request: the call.
            requested: the event by which it is an action.
            action: the action's id.
            cut_off: why nothing more may run, in words; empty while it may.
        """

        def over() -> Reason:
            current = self._state.action
            return cut_off() or (DROPPED if current is None or current.dropped else NONE)

        await self._approver.note_needs(lambda: bool(over()))
        passed = await self._pass_for_client(over, request.wait_s)
        if passed is None:
            withdrawn = ev.ActionWithdrawn(action=action, reason=over() or Reason("action.stopped"))
            self._append(withdrawn, "agent", requested)
        elif isinstance(passed, GateVerdict):
            await self._approver.refuse(passed)
        elif isinstance(passed, ev.SnapshotFailed):
            refused = self._append(passed, "system", requested)
            message = f"the workspace could not be saved before it: {passed.reason}"
            checked = Checked({}, (Problem(ErrorCode.INTERNAL, message),))
            await self._pipeline.refuse(checked, requested, refused.ref)
        else:
            self._saver.record(passed)
            await self._pipeline.run(requested)

    async def _pass_for_client(self, over: Callable[[], Reason], wait_s: float) -> Saved | GateVerdict | None:
        """Wait at the gate as long as the call may; what was saved, why it is denied, or None for cut off."""

        def held() -> Hold | None:
            return self._gate.hold(call=True)

        def asks() -> bool:
            holding = held()
            return not over() and holding is not None and holding.asks

        def changed(since: Hold) -> bool:
            return bool(over()) or held() != since

        while not over():
            holding = held()
            if holding is None:
                saved = await self._saver.save(lambda: not over() and held() is None)
                if saved is not None:
                    return saved
            elif holding.verdict is None:
                await self._recorder.commit()
                if held() is not None and not over():
                    await self._recorder.wait_for_change()
            elif not holding.asks:
                return holding.verdict
            elif not await self._approver.review(holding, partial(changed, holding)):
                self._approver.ask(holding, "")
                await self._recorder.commit()
                await self._recorder.run_while(asks, self._clock.sleep(wait_s))
                if asks():
                    why = Reason("gate.unanswered", wait_s=wait_s, why=holding.verdict.why)
                    return GateVerdict(Answer.DENY, why, holding.verdict.cause)
        return None
