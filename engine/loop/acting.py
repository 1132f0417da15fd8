"""The act stage: one step through the gate and the pipeline."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from engine.actions.saving import Saved
from engine.domain.action import ToolResult
from engine.domain.failure import FailureKind
from engine.domain.goal import Goal
from engine.domain.plan import Op, PlanStep
from engine.domain.state import RunState
from engine.domain.stopping import StopGrade
from engine.journal import events as ev
from engine.loop.clients import ClientAgent
from engine.loop.decide_goals import SUBGOAL_LIMIT
from engine.loop.outcome import fresh_id
from engine.steering.approvals import Verdict
from engine.steering.breakpoints import Stand, stands_at
from engine.steering.gate import Hold, hold


class ActingAgent(ClientAgent):
    """Takes plan steps and the operator's own calls through the gate and runs them."""

    async def _act(self, goal: Goal, step: PlanStep) -> None:
        """Take one step through the gate and run it."""
        if step.op is Op.ACHIEVE:
            if await self._admitted(goal, step):
                self._adopt_subgoal(goal, step)
            return
        tool, command = (step.tool, step.command) if step.op is Op.ACT else ("mind", step.op.value)
        args = self.state.as_settled(step).args
        checked = self.around.registry.check(tool, command, args)
        requested = self.append(
            ev.ActionRequested(
                action=fresh_id(self.state, "a"),
                step=step.id,
                goal=goal.id,
                tool=tool,
                command=command,
                args=args if checked.problems else checked.args,
            ),
            "agent",
            step.event,
            self.state.retry.event if self.state.retry else "",
        )
        overtaken = partial(self._overtaken, goal, step)
        # What an operator typed is run as it is, or refused.
        if step.provenance.by != "operator":
            gate = partial(self._pass_gate, step.id, overtaken, requested.ref, saves=False)
            checked = await self._settled(args, goal.text, overtaken, gate)
        if not checked.problems and not overtaken():
            await self._note_needs(overtaken)
        if not await self._admitted(goal, step, calls=not checked.problems):
            if self.state.action is not None:
                plan = self.state.plans.get(goal.id)
                withdrawn = ev.ActionWithdrawn(action=self.state.action.id, reason=self._why_withdrawn())
                self.append(withdrawn, "agent", requested.ref, plan.event if plan else "")
            return
        if checked.problems:
            answer: ToolResult | None = await self.pipeline.refuse(checked, requested.ref)
        else:
            answer = await self.pipeline.run(requested.ref, self.state.run_event)
        if answer is not None:
            self._settle(step, goal.id, answer)

    def _adopt_subgoal(self, goal: Goal, step: PlanStep) -> None:
        depth = len(self.state.lineage(goal.id))
        if depth >= SUBGOAL_LIMIT:
            message = f"{depth} goals lie inside one another: do recipes achieve one another in a circle?"
            self._step_failed(step, goal.id, FailureKind.GOAL_MANAGEMENT_ERROR, message, step.event)
            return
        child = ev.GoalAdopted(
            goal=fresh_id(self.state, "g"),
            text=str(step.args["goal"]),
            priority=goal.priority,
            parent=goal.id,
            parent_step=step.id,
            criteria=tuple(step.args.get("criteria", ())),
        )
        self.append(child, "agent", step.event)

    def _why_withdrawn(self) -> str:
        if self.state.deleted:
            return "the agent was deleted"
        if self.state.requests:
            return "the operator acts first"
        stopped = self.state.run is RunState.STOPPED or self.state.held not in ("", StopGrade.HOLD)
        return self.state.run_reason if stopped else "the plan changed before it started"

    async def _admitted(self, goal: Goal, step: PlanStep, *, calls: bool = False) -> bool:
        """Let a plan step pass the gate; False when it is not to run."""
        await self._wait_for_retry(goal, step)
        passed = await self._pass_gate(step.id, lambda: self._overtaken(goal, step), step.event, saves=calls)
        if isinstance(passed, ev.SnapshotFailed):
            self._not_saved(goal, step, passed)
        elif isinstance(passed, Verdict):
            await self._denied(goal, step, passed)
        return passed is True

    async def _pass_gate(
        self, step: str, overtaken: Callable[[], bool], cause: str, *, saves: bool
    ) -> bool | ev.SnapshotFailed | Verdict:
        """Wait at the gate, save the workspace where wanted, and look again; False when it is not to run.

        A call that would be saved for is asked about where it is to be; a verdict says that it is denied.

        There is no await between the last look and the answer.
        """
        announced = ""

        def held() -> Hold | None:
            return hold(self.state, step=step, trouble=self.log.trouble, call=self._call() if saves else None)

        while not overtaken():
            if (holding := held()) is not None:
                if holding.verdict is not None and not holding.asks:
                    return holding.verdict
                announced = self._announce(holding, step, cause, announced)
                await self.commit()
                if held() is not None:
                    await self._wait_for_change()
            elif self._overspends(cause):
                continue  # what holds it is announced
            elif not saves:
                return True
            else:
                saved = await self._saved(lambda: not overtaken() and held() is None)
                if isinstance(saved, ev.SnapshotFailed):
                    return saved
                if saved is not None and not self._overspends(cause):
                    self._record_saved(saved)
                    return True
        return False

    def _overtaken(self, goal: Goal, step: PlanStep) -> bool:
        """Whether the step is no longer the one to run, or the operator comes first."""
        state = self.state
        # Once an action is requested the reflect stage has its turn after it; before, it goes first.
        reflects = state.action is None and self._attends
        stopped = state.run is RunState.STOPPED or state.stop_event != self._stop
        # The operator rejected the re-plan that it belongs to; an open thought decides anew by itself.
        anew = goal.id in state.replans and state.open_thought(goal.id) is None
        return stopped or bool(state.requests) or reflects or anew or not self._still_current(goal, step)

    def _still_current(self, goal: Goal, step: PlanStep) -> bool:
        return (
            not self.state.deleted
            and self.state.goals.get(goal.id) == goal
            and self.state.current_goal == goal.id
            and (self.state.step == step and self._best_goal(goal))
        )

    def _best_goal(self, goal: Goal) -> bool:
        """Whether deliberation would still choose this goal: its root, and nothing that comes before it."""
        roots = [root for root in self.state.root_goals() if not root.status.terminal]
        root = self.state.lineage(goal.id)[-1]
        return bool(roots) and roots[0].id == root.id and self.state.open_child(goal.id) is None

    def _announce(self, held: Hold, step: str, cause: str, announced: str) -> str:
        """Record why the step waits, once; what was announced last."""
        if self.log.trouble is not None:
            return announced
        if held.breakpoint is not None:
            self._stand(held.breakpoint, cause)
        elif held.asks:
            self._ask(held, cause)
        elif held.reason != announced and self.state.action is not None:
            held_event = ev.ActionHeld(action=self.state.action.id, reason=held.reason)
            self.append(held_event, "agent", self.state.action.event, self.state.run_event)
        return held.reason

    def _at_breakpoint(self) -> bool:
        """Hold the agent for the breakpoints that have come since it looked last; False when none have."""
        stand = stands_at(self.state)
        if stand is not None:
            self._stand(stand, self.state.run_event)
        return stand is not None

    def _stand(self, stand: Stand, cause: str) -> None:
        """Record which breakpoints were reached, and pause there."""
        hit = cause
        if stand.step:
            said = ev.BreakpointHit(step=stand.step)
            hit = self.append(said, "agent", self.state.breakpoints[stand.step], cause).ref
        for one in stand.came:
            known = self.state.points.get(one.breakpoint)
            said = ev.BreakpointHit(breakpoint=one.breakpoint, what=one.what, came=one.event, at=stand.at)
            hit = self.append(said, "agent", one.event, known.event if known is not None else "", cause).ref
        if self.state.run is not RunState.STOPPED:
            self.append(ev.AgentPaused(reason=stand.reason), "agent", hit)

    async def _wait_for_retry(self, goal: Goal, step: PlanStep) -> None:
        """Wait out the delay of a retry, unless the operator settles or holds it, or acts meanwhile."""
        retry = self.state.retry
        if retry is None or retry.step != step.id:
            return
        await self.commit()

        def awaited() -> bool:
            return (
                self.state.retry == retry
                and self.state.run is RunState.RUNNING
                and not self._overtaken(goal, step)
            )

        await self._while(awaited, self.around.clock.sleep(retry.delay_s))

    async def _serve_operator(self) -> None:
        """Run a tool call that the operator asked for, through the same pipeline."""
        request = self.state.requests[0]
        self._tick = self.state.tick
        if request.client:
            await self._serve_client(request, self._cut_off())
            await self.commit()
            return
        action = fresh_id(self.state, "a")
        cut_off = self._cut_off()
        requested = self.append(
            ev.ActionRequested(
                action=action,
                tool=request.tool,
                command=request.command,
                args=request.args,
            ),
            request.actor,
            request.event,
        )

        def held() -> bool:
            return hold(self.state, trouble=self.log.trouble) is not None

        saved: Saved | None = None
        while saved is None and not cut_off():
            if held():
                await self.commit()
            else:
                saved = await self._saved(lambda: not held() and not cut_off())
        if saved is None:
            reason = self.state.run_reason or "stopped"
            withdrawn = ev.ActionWithdrawn(action=action, reason=reason)
            self.append(withdrawn, "system", requested.ref, self.state.run_event)
        else:
            # That it could not be saved does not keep the operator from what they want.
            self._record_saved(saved)
            await self.pipeline.run(requested.ref)
        await self.commit()

    def _cut_off(self) -> Callable[[], str]:
        """Tells why what was asked for from now on may not run, in words; empty while it may."""
        before = self.state.run_event

        def why() -> str:
            state = self.state
            stopped = state.run is RunState.STOPPED or state.held != ""
            cut = (stopped and state.run_event != before) or state.deleted
            return (state.run_reason or "stopped") if cut else ""

        return why
