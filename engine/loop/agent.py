"""One agent at work: its state, its log, and its cycle.

The seven stages of a tick are ARCHITECTURE.md §3: perceive, reflect, deliberate, plan, think, act, update.
Nothing that matters lives outside the folded state: the cycle can be cut at any await and taken
up again by another process from the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from engine.actions.pipeline import Pipeline, Toolbox
from engine.domain.action import ErrorCode, ResultStatus, SandboxSession, ToolResult
from engine.domain.commands import Command, Receipt
from engine.domain.failure import FailureKind, Strategy
from engine.domain.goal import Goal, GoalStatus
from engine.domain.plan import Op, PlanStep, StepStatus
from engine.domain.ports import Clock, Randomness
from engine.domain.state import AgentState, RunState
from engine.domain.thinking import PlanRequest, Thinker
from engine.generation.validation import problems_of
from engine.journal import events as ev
from engine.journal.errors import JournalError
from engine.journal.event import Event
from engine.journal.fold import apply
from engine.journal.log import StreamLog
from engine.loop.decide import RefusedError, decide, end_goal, fresh_id, renumber
from engine.loop.heuristics import after_failure, after_success, subject_of
from engine.recovery.strategy import choose
from engine.steering.gate import Hold, hold, may_think
from engine.tools.registry import ToolRegistry

SUBGOAL_LIMIT = 20
"""Goals inside one another; a recipe that achieves its own goal would otherwise never end."""


class Perceiver(Protocol):
    """Looks at an agent's surroundings."""

    async def perceive(self, session: SandboxSession) -> tuple[dict[str, Any], SandboxSession]:
        """Facts about the workspace, and the session corrected where the workspace changed under it."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Everything that reaches an agent from outside."""

    thinker: Thinker
    toolbox: Toolbox
    perceiver: Perceiver
    registry: ToolRegistry
    clock: Clock
    put_blob: Callable[[bytes], Awaitable[str]]
    randomness: Callable[[int], Randomness]


class Agent:
    """An agent that runs when it may and waits when it must."""

    def __init__(self, state: AgentState, log: StreamLog, around: Surroundings) -> None:
        self.state = state
        self.log = log
        self.around = around
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.pipeline = Pipeline(self, around.toolbox, around.registry, around.put_blob)
        self._tick = 0
        self._random = around.randomness(0)

    # -------------------------------------------------------------- life

    def open(self, session: str, seed: int) -> None:
        """Take the agent up in a session, and settle what the last one left under way."""
        opened = self.append(ev.AgentOpened(session=session, seed=seed), "system")
        self._random = self.around.randomness(seed)
        action = self.state.action
        if action is not None and action.started:
            unknown = self.append(
                ev.ActionOutcomeUnknown(action=action.id), "system", action.event, opened.ref
            )
            if action.step:
                self._leave_unknown(action.goal, action.step, unknown.ref)
        elif action is not None:
            withdrawn = ev.ActionWithdrawn(action=action.id, reason="the session ended before it started")
            self.append(withdrawn, "system", action.event, opened.ref)
        if self.state.run is RunState.RUNNING:
            self.append(ev.AgentPaused(reason="reopened; it was running"), "system", opened.ref)

    def _leave_unknown(self, goal: str, step: str, cause: str) -> None:
        message = "the program ended while this ran; whether it took effect is unknown"
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

    def start(self) -> None:
        """Begin the cycle as a task of the running loop."""
        self._task = asyncio.create_task(self.cycle(), name=f"agent {self.state.agent_id}")

    async def close(self) -> None:
        """End the cycle; a running action is cancelled and recorded."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        with suppress(JournalError):
            await self.log.commit()
        await self.log.close()

    @property
    def fault(self) -> str:
        """Why the cycle ended by itself, which it never should; empty when it did not."""
        if self._task is None or not self._task.done() or self._task.cancelled():
            return ""
        error = self._task.exception()
        return "" if error is None else f"{type(error).__name__}: {error}"

    # -------------------------------------------------------------- events and commands

    def append(self, payload: ev.Payload, actor: str, *causes: str) -> Event:
        """Record what happened and bring the state forward."""
        tick = self._tick if actor == "agent" else self.state.tick
        known = tuple(dict.fromkeys(cause for cause in causes if cause))
        event = self.log.append(payload, actor=actor, causes=known, tick=max(tick, self.state.tick))
        # As stored, not the payload at hand: the order of its keys may differ, and must not matter.
        apply(self.state, event)
        return event

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
        if any(isinstance(payload, ev.AgentStopped) for payload in outcome.events):
            self.pipeline.cut()
        self._changed.set()
        return Receipt(ok=True, message=outcome.message, event=received.ref)

    def poke(self) -> None:
        """Let a waiting agent look again whether it may go on."""
        self._changed.set()

    def commit_soon(self) -> None:
        """Make what is pending durable in the background."""
        self.log.commit_soon()

    async def commit(self) -> None:
        """Make events durable, however long the journal is in trouble."""
        while True:
            try:
                await self.log.commit()
            except JournalError:
                await self._wait_for_change()
            else:
                return

    async def _wait_for_change(self) -> None:
        await self._changed.wait()
        self._changed.clear()

    # -------------------------------------------------------------- the cycle

    async def cycle(self) -> None:
        """Tick while there is something to do; wait otherwise."""
        while not self.state.deleted:
            self._changed.clear()
            if self.state.requests:
                await self._serve_operator()
            elif self._has_work() and not self.state.perceived:
                await self._perceive()
            elif self._has_work():
                await self.tick()
            else:
                await self.commit()
                await self._wait_for_change()

    def _has_work(self) -> bool:
        return bool(self.state.open_goals) and may_think(self.state, free=self.around.thinker.free)

    async def tick(self) -> None:
        """Go once through the stages; at most one action runs."""
        self._tick = self.state.tick + 1
        if self._out_of_loops():
            return
        goal = self._deliberate()
        if goal is not None and await self._plan(goal):
            step = self.state.step
            if step is not None:
                await self._act(goal, step)
            self._close_finished(goal)
        self._rest_after_goal()
        await self.commit()

    def _out_of_loops(self) -> bool:
        state = self.state
        if state.run is not RunState.RUNNING or state.max_loops is None or state.loops < state.max_loops:
            return False
        self.append(ev.AgentPaused(reason=f"MAX_LOOPS: {state.loops} loops"), "system", state.run_event)
        return True

    async def _perceive(self) -> None:
        facts, session = await self.around.perceiver.perceive(self.state.sandbox)
        self.append(ev.WorldPerceived(facts=facts, session=session), "world")
        await self.commit()

    def _rest_after_goal(self) -> None:
        """Pause when the goal that the agent was to run until has ended."""
        goal = self.state.goals.get(self.state.until or "")
        if goal is not None and goal.status.terminal and self.state.run is RunState.RUNNING:
            reason = f"goal {goal.id} is {goal.status}"
            self.append(ev.AgentPaused(reason=reason), "system", goal.event, self.state.run_event)

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
        if goal.id in self.state.plans and not self.state.needs_replan:
            return True
        asked = self.append(
            ev.PlanAsked(goal=goal.id, thinker=self.state.config.thinker),
            "agent",
            goal.event,
            self.state.run_event,
        )
        proposal = await self.around.thinker.plan(
            PlanRequest(goal, self.state.sandbox, self.state.belief_values())
        )
        planned_meanwhile = goal.id in self.state.plans and not self.state.needs_replan
        if self.state.goals.get(goal.id) != goal or planned_meanwhile:
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
        ) or problems_of(proposal.steps, self.around.registry)
        if problems:
            self._reject_plan(goal, problems, bool(proposal.uncovered), generated.ref)
            return False
        steps = renumber(self.state, proposal.steps)
        self.append(
            ev.PlanAdopted(plan=fresh_id(self.state, "p"), goal=goal.id, steps=steps), "agent", generated.ref
        )
        return True

    def _reject_plan(self, goal: Goal, problems: tuple[str, ...], uncovered: bool, cause: str) -> None:
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

    # -------------------------------------------------------------- acting

    async def _act(self, goal: Goal, step: PlanStep) -> None:
        """Take one step through the gate and run it."""
        if step.op is Op.ACHIEVE:
            if await self._admitted(goal, step):
                self._adopt_subgoal(goal, step)
            return
        if step.op is Op.THINK:
            self._step_failed(
                step,
                goal.id,
                FailureKind.PLANNING_ERROR,
                "this step needs a model to think about it",
                step.event,
            )
            return
        tool, command = (step.tool, step.command) if step.op is Op.ACT else ("mind", step.op.value)
        checked = self.around.registry.check(tool, command, step.args)
        requested = self.append(
            ev.ActionRequested(
                action=fresh_id(self.state, "a"),
                step=step.id,
                goal=goal.id,
                tool=tool,
                command=command,
                args=step.args if checked.problems else checked.args,
            ),
            "agent",
            step.event,
            self.state.retry.event if self.state.retry else "",
        )
        if not await self._admitted(goal, step):
            action = self.state.action
            if action is not None:
                self.append(
                    ev.ActionWithdrawn(action=action.id, reason=self._why_withdrawn()),
                    "agent",
                    requested.ref,
                    self.state.plans[goal.id].event if goal.id in self.state.plans else "",
                )
            return
        if checked.problems:
            answer: ToolResult | None = await self.pipeline.refuse(checked, requested.ref)
        else:
            answer = await self.pipeline.run(requested.ref, self.state.run_event)
        if answer is not None:
            self._settle(step, goal.id, answer)

    def _adopt_subgoal(self, goal: Goal, step: PlanStep) -> None:
        depth, above = 1, goal
        while above.parent is not None:
            depth, above = depth + 1, self.state.goals[above.parent]
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
        )
        self.append(child, "agent", step.event)

    def _why_withdrawn(self) -> str:
        if self.state.deleted:
            return "the agent was deleted"
        return "the operator acts first" if self.state.requests else "the plan changed before it started"

    async def _admitted(self, goal: Goal, step: PlanStep) -> bool:
        """Wait at the gate; False when the step is no longer the one to run."""
        await self._wait_for_retry(goal, step)
        announced = ""
        while True:
            if self.state.requests or not self._still_current(goal, step):
                return False
            held = hold(self.state, step=step.id, trouble=self.log.trouble)
            if held is None:
                return True
            self._announce(held, step, announced)
            announced = held.reason
            await self.commit()
            if hold(self.state, step=step.id, trouble=self.log.trouble) is not None:
                await self._wait_for_change()

    def _still_current(self, goal: Goal, step: PlanStep) -> bool:
        return (
            not self.state.deleted
            and self.state.goals.get(goal.id) == goal
            and self.state.current_goal == goal.id
            and (self.state.step == step and self._best_goal(goal))
        )

    def _best_goal(self, goal: Goal) -> bool:
        """Whether deliberation would still choose this goal's root."""
        roots = [root for root in self.state.root_goals() if not root.status.terminal]
        root = goal
        while root.parent is not None:
            root = self.state.goals[root.parent]
        return bool(roots) and roots[0].id == root.id

    def _announce(self, held: Hold, step: PlanStep, announced: str) -> None:
        if held.breakpoint:
            hit = self.append(
                ev.BreakpointHit(step=step.id), "agent", self.state.breakpoints[step.id], step.event
            )
            self.append(ev.AgentPaused(reason=held.reason), "agent", hit.ref)
        elif held.reason != announced and self.state.action is not None and self.log.trouble is None:
            held_event = ev.ActionHeld(action=self.state.action.id, reason=held.reason)
            self.append(held_event, "agent", self.state.action.event, self.state.run_event)

    async def _wait_for_retry(self, goal: Goal, step: PlanStep) -> None:
        """Wait out the delay of a retry, unless the operator settles or holds it, or acts meanwhile."""
        retry = self.state.retry
        if retry is None or retry.step != step.id:
            return
        await self.commit()
        sleeper = asyncio.ensure_future(self.around.clock.sleep(retry.delay_s))
        try:
            while (
                not sleeper.done()
                and self.state.retry == retry
                and self.state.run is RunState.RUNNING
                and not self.state.requests
                and self._still_current(goal, step)
            ):
                self._changed.clear()
                waiter = asyncio.ensure_future(self._changed.wait())
                await asyncio.wait({sleeper, waiter}, return_when=asyncio.FIRST_COMPLETED)
                waiter.cancel()
        finally:
            sleeper.cancel()

    async def _serve_operator(self) -> None:
        """Run a tool call that the operator asked for, through the same pipeline."""
        request = self.state.requests[0]
        self._tick = self.state.tick
        action = fresh_id(self.state, "a")
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
        before = self.state.run_event
        while hold(self.state, trouble=self.log.trouble) is not None and not self.state.deleted:
            await self.commit()
        stopped = self.state.run is RunState.STOPPED and self.state.run_event != before
        if self.state.deleted or stopped:
            reason = self.state.run_reason or "stopped"
            withdrawn = ev.ActionWithdrawn(action=action, reason=reason)
            self.append(withdrawn, "system", requested.ref, self.state.run_event)
        else:
            await self.pipeline.run(requested.ref)
        await self.commit()

    # -------------------------------------------------------------- update

    def _settle(self, step: PlanStep, goal: str, answer: ToolResult) -> None:
        cause = f"{self.log.stream}:{self.log.version}"
        if answer.ok:
            for payload in after_success(self.state, goal, step, answer):
                self.append(payload, "agent", cause)
            return
        code = answer.code or ErrorCode.INTERNAL
        for payload in after_failure(self.state, goal, step, answer, code):
            self.append(payload, "agent", cause)
        kind = self.state.failures[-1].kind
        self._recover(kind, goal, step.id, answer.message, self.state.failures[-1].event)

    def _step_failed(self, step: PlanStep, goal: str, kind: FailureKind, message: str, cause: str) -> None:
        answer = ToolResult(ResultStatus.ERROR, {"message": message}, ErrorCode.INTERNAL)
        for payload in after_failure(self.state, goal, step, answer, answer.code, kind):
            self.append(payload, "agent", cause)
        self._recover(kind, goal, step.id, message, self.state.failures[-1].event)

    def _recover(self, kind: FailureKind, goal: str, step: str, message: str, cause: str) -> None:
        """Choose a strategy and carry out what of it happens at once."""
        choice = choose(
            kind,
            self.state.tried.get(step, ()),
            consecutive_errors=self.state.consecutive_errors,
            max_consecutive_errors=self.state.config.max_consecutive_errors,
            ask=self.state.config.ask,
            randomness=self._random,
        )
        tried = tuple(
            f"{strategy} ({number})" for number, strategy in enumerate(self.state.tried.get(step, ()), 1)
        )
        chosen = self.append(
            ev.RecoveryChosen(
                failure=kind,
                strategy=choice.strategy,
                step=step,
                attempt=choice.attempt,
                of=choice.of,
                delay_s=choice.delay_s,
                why=choice.why,
            ),
            "agent",
            cause,
        )
        if choice.strategy is Strategy.FALLBACK_MANUAL:
            opened = ev.InterventionOpened(goal=goal, step=step, reason=message, failure=kind, tried=tried)
            self.append(opened, "agent", chosen.ref)
        elif choice.strategy is Strategy.ABORT_GRACEFULLY:
            root = self.state.goals[goal]
            while root.parent is not None:
                root = self.state.goals[root.parent]
            for payload in end_goal(self.state, root, GoalStatus.FAILED, f"{kind}: {message}"):
                self.append(payload, "agent", chosen.ref)

    def _close_finished(self, goal: Goal) -> None:
        """End the goal when its plan is done, and the step of the parent that waited for it."""
        current = self.state.goals[goal.id]
        plan = self.state.plans.get(goal.id)
        if current.status.terminal or plan is None or not plan.complete or self.state.intervention:
            return
        ended = self.append(
            ev.GoalEnded(goal=goal.id, status=GoalStatus.ACHIEVED, reason=self.state.last_summary),
            "agent",
            *(step.event for step in plan.steps[-1:]),
            plan.event,
        )
        if current.parent is not None and current.parent_step is not None:
            done = ev.StepEnded(
                goal=current.parent,
                step=current.parent_step,
                status=StepStatus.COMPLETED,
                summary=f"goal {goal.id} achieved",
            )
            self.append(done, "agent", ended.ref)

    def _subject(self, step_id: str) -> str:
        found = self.state.find_step(step_id)
        return subject_of(found[1]) if found else step_id
