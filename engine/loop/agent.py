"""One agent at work: its life and its cycle.

The seven stages of a tick are ARCHITECTURE.md, "One tick": perceive, reflect, deliberate, plan, think, act,
update. Nothing that matters lives outside the folded state: the cycle can be cut at any await and taken
up again by another process from the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from engine.domain.action import SandboxSession
from engine.domain.commands import Command, Receipt
from engine.domain.failure import FailureKind
from engine.domain.goal import Goal, GoalStatus
from engine.domain.plan import Op, StepStatus
from engine.domain.session import ReturnedShell
from engine.domain.state import LOOPS_OVER, ActiveAction, Rewinding, RunState
from engine.domain.stopping import StopGrade
from engine.domain.thinking import ThinkingError
from engine.generation.validation import problems_of
from engine.journal import events as ev
from engine.journal.errors import JournalError
from engine.loop.decide import decide, renumber
from engine.loop.deciding import DecidingAgent
from engine.loop.handover import offer_changes
from engine.loop.heuristics import subject_of
from engine.loop.outcome import RefusedError, fresh_id
from engine.steering.gate import may_think

OUTCOME_UNKNOWN = "the program ended while this ran; whether it took effect is unknown"
TAKEN_UP_AGAIN = "the program ended while this waited; it is asked for again"


class Agent(DecidingAgent):
    """An agent that runs when it may and waits when it must."""

    _task: asyncio.Task[None] | None = None

    # -------------------------------------------------------------- life

    def open(self, session: str, seed: int) -> None:
        """Take the agent up in a session, and settle what the last one left under way."""
        opened = self.append(ev.AgentOpened(session=session, seed=seed), "system")
        self._random = self.around.randomness(seed)
        action = self.state.action
        if action is not None and action.started and action.step and self._resumes(action):
            self._take_up_again(action, opened.ref)
        elif action is not None and action.started:
            unknown = self.append(
                ev.ActionOutcomeUnknown(action=action.id), "system", action.event, opened.ref
            )
            if action.step:
                self._leave_unknown(action, unknown.ref)
        elif action is not None:
            withdrawn = ev.ActionWithdrawn(action=action.id, reason="the session ended before it started")
            self.append(withdrawn, "system", action.event, opened.ref)
        for job in self.state.running_jobs:
            lost = ev.JobEnded(job=job.id, ended="unknown", message="ended with Pilothouse; nobody saw how")
            self.append(lost, "system", job.event, opened.ref)
        self._settle_background(opened.ref)
        if self.state.rewinding is not None:
            self._leave_half_rewound(self.state.rewinding, opened.ref)
        if self.state.run is RunState.RUNNING:
            self.append(ev.AgentPaused(reason="reopened; it was running"), "system", opened.ref)

    def _resumes(self, action: ActiveAction) -> bool:
        """Whether the action only waited, so that it can be asked for again."""
        registry = self.around.registry
        spec = registry.get(action.tool).commands.get(action.command) if action.tool in registry else None
        return spec is not None and spec.resumes

    def _take_up_again(self, action: ActiveAction, cause: str) -> None:
        cut = self.append(ev.ActionCancelled(action=action.id, reason=TAKEN_UP_AGAIN), "system", cause)
        again = ev.StepEnded(
            goal=action.goal, step=action.step, status=StepStatus.PLANNED, summary=TAKEN_UP_AGAIN
        )
        self.append(again, "system", cut.ref)

    def _leave_unknown(self, action: ActiveAction, cause: str) -> None:
        goal, step = action.goal, action.step
        message = OUTCOME_UNKNOWN
        self.append(
            ev.StepEnded(goal=goal, step=step, status=StepStatus.FAILED, summary="outcome unknown"),
            "system",
            cause,
        )
        failed = self.append(
            ev.FailureRecorded(
                failure=FailureKind.UNKNOWN_ERROR,
                message=message,
                subject=self._subject(step),
                goal=goal,
                step=step,
            ),
            "system",
            cause,
        )
        opened = ev.InterventionOpened(
            goal=goal, step=step, reason=message, failure=FailureKind.UNKNOWN_ERROR
        )
        self.append(opened, "system", failed.ref)

    def _leave_half_rewound(self, rewinding: Rewinding, cause: str) -> None:
        to = rewinding.to
        cut = self.append(ev.RewindCutOff(to=to), "system", rewinding.event, cause)
        before = int(rewinding.event.rpartition(":")[2]) - 1
        reason = (
            f"a rewind to event {to} was cut off while it changed files, and how far it came is unknown: "
            f"rewind {to} does it again, rewind files {before} brings back what was there before"
        )
        goal = self.state.current_goal
        self.append(ev.InterventionOpened(goal=goal, reason=reason), "system", cut.ref)

    def start(self, ended: Callable[[], object] = lambda: None) -> None:
        """Begin the cycle as a task of the running loop; `ended` is called once it is over."""
        pace, work = self.around.pace, self.cycle()
        paced = work if pace is None else pace.run(work)
        self._task = asyncio.create_task(paced, name=f"agent {self.state.agent_id}")
        self._task.add_done_callback(lambda _: ended())

    async def close(self) -> None:
        """End the cycle; a running action is cancelled and recorded."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        await self._end_background()
        await self.around.control.close(self.state.agent_id)
        with suppress(JournalError):
            await self.log.commit()
        await self.log.close()

    async def ended(self) -> None:
        """Return when the cycle has ended, however it did."""
        if self._task is not None:
            await asyncio.wait({self._task})

    @property
    def fault(self) -> str:
        """Why the cycle ended by itself, which it never should; empty when it did not."""
        if self._task is None or not self._task.done() or self._task.cancelled():
            return ""
        error = self._task.exception()
        return "" if error is None else f"{type(error).__name__}: {error}"

    def _subject(self, step_id: str) -> str:
        found = self.state.find_step(step_id)
        return subject_of(found[1]) if found else step_id

    def handle(self, command: Command, actor: str) -> Receipt:
        """Carry out an operator's command; the caller commits before it shows the receipt."""
        received = self.append(ev.CommandReceived(command=command.model_dump()), actor)
        try:
            outcome = decide(self.state, command, self.around.registry)
        except RefusedError as error:
            self.append(ev.CommandRefused(reason=str(error)), "system", received.ref)
            return Receipt(ok=False, message=str(error), event=received.ref)
        for payload in outcome.events:
            self.append(payload, actor, received.ref)
            self._reach_out(payload)
        self._changed.set()
        return Receipt(ok=True, message=outcome.message, event=received.ref)

    def _reach_out(self, payload: ev.Payload) -> None:
        """What a command does at once beyond the state: to what runs now."""
        agent = self.state.agent_id
        self._cut_background(payload)
        match payload:
            case ev.AgentStopped():
                self.pipeline.cut()
                self.around.control.stop_jobs(agent)
            case ev.AgentDeleted():
                self.around.control.stop_jobs(agent)
            case ev.CallDropped() if self.state.action is not None and self.state.action.dropped:
                self.pipeline.cut()
            case ev.AgentHeld(grade=StopGrade.CANCEL):
                self.pipeline.cut()
            case ev.AgentHeld(grade=StopGrade.FREEZE):
                self.around.control.freeze(agent)
            case ev.AgentThawed():
                self.around.control.thaw(agent)
            case ev.JobStopAsked():
                self.around.control.stop_job(agent, payload.job)
            case ev.ShellReturned():
                self.around.control.return_shell(agent, payload.note)

    # -------------------------------------------------------------- the cycle

    async def cycle(self) -> None:
        """Tick while there is something to do; wait otherwise."""
        while not self.state.deleted:
            self._changed.clear()
            if self.state.returned is not None:
                await self._perceive()
            elif self.state.requests:
                await self._serve_operator()
            elif self._notice_stuck() or self._at_breakpoint() or self._reflect():
                await self.commit()
            elif self._has_work() and not self.state.perceived:
                await self._perceive()
            elif self._finish_goal() or self._rest_after_goal():
                await self.commit()
            elif self._has_work():
                await self.tick()
            else:
                await self.commit()
                await self._idle()

    async def _idle(self) -> None:
        """Wait for something to do."""
        await self._wait_for_change()

    def _has_work(self) -> bool:
        return bool(self.state.open_goals) and may_think(self.state, free=self.around.thinker.free)

    async def tick(self) -> None:
        """Go once through the stages; at most one action runs."""
        self._tick, self._stop = self.state.tick + 1, self.state.stop_event
        if self._out_of_loops():
            return
        goal = self._deliberate()
        if goal is not None and await self._plan(goal):
            step = self.state.step
            if step is not None and step.op is Op.THINK:
                await self._decide(goal, step)
            elif step is not None:
                await self._act(goal, step)
        await self.commit()

    def _out_of_loops(self) -> bool:
        state = self.state
        if state.run is not RunState.RUNNING or state.max_loops is None or state.loops < state.max_loops:
            return False
        self.append(ev.AgentPaused(reason=f"{LOOPS_OVER}: {state.loops} loops"), "system", state.run_event)
        return True

    async def _perceive(self) -> None:
        if self.state.returned is not None:
            await self._offer_changes(self.state.returned)
        facts, session = await self._look()
        self.append(ev.WorldPerceived(facts=facts, session=session, world=self._first_world()), "world")
        await self.commit()

    async def _look(self) -> tuple[dict[str, Any], SandboxSession]:
        """What the workspace is like; looked at again where a rewind came between."""
        while True:
            before = self.state.stop_event
            seen = await self.around.perceiver.perceive(self.state.sandbox)
            if before == self.state.stop_event:
                return seen

    def _first_world(self) -> dict[str, Any] | None:
        """The small world in which the agent begins to live; None where it has one already, or none."""
        return None

    async def _offer_changes(self, shell: ReturnedShell) -> None:
        changes = await self.around.saver.changes(self.state.agent_id, shell)
        offered = offer_changes(shell, changes, self.state.sandbox)
        if offered is not None:
            self.append(offered, "system", shell.event)

    def _rest_after_goal(self) -> bool:
        """Pause when the goal that the agent was to run until has ended."""
        goal = self.state.goals.get(self.state.until or "")
        if goal is None or not goal.status.terminal or self.state.run is not RunState.RUNNING:
            return False
        reason = f"goal {goal.id} is {goal.status}"
        self.append(ev.AgentPaused(reason=reason), "system", goal.event, self.state.run_event)
        return True

    def _deliberate(self) -> Goal | None:
        """The most urgent, then oldest open root goal; of it the deepest open sub-goal."""
        roots = [goal for goal in self.state.root_goals() if not goal.status.terminal]
        if not roots:
            return None
        goal = roots[0]
        while (child := self.state.open_child(goal.id)) is not None:
            goal = child
        if goal.id != self.state.current_goal:
            self.append(ev.GoalSelected(goal=goal.id), "agent", goal.event)
        return self.state.goals[goal.id]

    async def _plan(self, goal: Goal) -> bool:
        """Make sure that the goal has a plan; False when there is none to be had."""
        if self._is_planned(goal.id):
            return True
        if self.state.config.decides and goal.id not in self.state.plans:
            self._adopt_open_plan(goal)
            return True
        if not await self._waited_to_ask(goal):
            return False
        request = self._request(goal)
        asked = self.append(
            ev.PlanAsked(goal=goal.id, thinker=self.state.config.thinker),
            "agent",
            goal.event,
            self.state.run_event,
        )
        self.asked = asked.ref
        self.commit_soon()
        try:
            proposal = await self._while(lambda: self._plan_wanted(goal), self._think(request))
        except ThinkingError as error:
            if self._plan_wanted(goal) and not error.held:
                self._no_thought(goal, error, asked.ref)
            return False
        if proposal is None or not self._plan_wanted(goal):
            return False
        generated = self.append(
            ev.PlanGenerated(
                goal=goal.id, thinker=proposal.thinker, steps=proposal.steps, uncovered=proposal.uncovered
            ),
            "agent",
            asked.ref,
        )
        problems = tuple(
            f"clause {gap.index} “{gap.clause}”: {gap.why}"
            + (f"; nearest: {' · '.join(gap.nearest)}" if gap.nearest else "")
            for gap in proposal.uncovered
        ) or problems_of(proposal.steps, self.around.registry, settled_later=True)
        if problems:
            self._reject_plan(goal, problems, bool(proposal.uncovered), generated.ref)
            return False
        self._end_asking(goal.id, success=True, cause=generated.ref)
        steps = renumber(self.state, proposal.steps)
        if self._planned_anew(goal, steps, generated.ref):
            return True
        self.append(
            ev.PlanAdopted(plan=fresh_id(self.state, "p"), goal=goal.id, steps=steps), "agent", generated.ref
        )
        return True

    def _reject_plan(self, goal: Goal, problems: tuple[str, ...], uncovered: bool, cause: str) -> None:
        self._end_asking(goal.id, success=True, cause=cause)
        kind = FailureKind.GOAL_PARSE_ERROR if uncovered else FailureKind.PLANNING_ERROR
        rejected = self.append(ev.PlanRejected(goal=goal.id, problems=problems, failure=kind), "agent", cause)
        failed = self.append(
            ev.FailureRecorded(
                failure=kind, message="; ".join(problems), subject=f"plan for {goal.id}", goal=goal.id
            ),
            "agent",
            rejected.ref,
        )
        self._recover(kind, goal.id, "", "; ".join(problems), failed.ref)

    def _finish_goal(self) -> bool:
        """End the goal whose plan is done, and the step of the parent that waited for it.

        It has a turn of its own: behind an action's last event, a replay would know more than the agent did.
        """
        goal, plan = self.state.goal, self.state.plan
        if goal is None or goal.status.terminal or plan is None or not plan.complete:
            return False
        if self.state.open_child(goal.id) is not None:
            return False
        if self.state.intervention is not None or self.state.needs_replan:
            return False
        if goal.criteria and not plan.shown:
            self._ask_for_proof(goal, plan)
            return True
        if why := self._not_shown_done(goal, plan):
            self._refuse_done(goal, plan, why)
            return True
        self._end_replanning(goal.id, success=True, cause=plan.event)
        reason = plan.steps[-1].summary if plan.shown else self.state.last_summary
        ended = self.append(
            ev.GoalEnded(goal=goal.id, status=GoalStatus.ACHIEVED, reason=reason),
            "agent",
            *(step.event for step in plan.steps[-1:]),
            plan.event,
        )
        if goal.parent is not None and goal.parent_step is not None:
            done = ev.StepEnded(
                goal=goal.parent,
                step=goal.parent_step,
                status=StepStatus.COMPLETED,
                summary=f"goal {goal.id} achieved",
            )
            self.append(done, "agent", ended.ref)
        return True
