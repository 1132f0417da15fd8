"""What follows from a command: a pure function from a state and a command to events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from engine.domain import commands as cmd
from engine.domain.belief import BeliefSource
from engine.domain.goal import Goal
from engine.domain.plan import Op, Plan, PlanStep, Provenance, StepStatus
from engine.domain.session import SHELL_COMMAND, SHELL_TOOL
from engine.domain.state import CORE_STAYS, AgentState, Mode, RunState
from engine.generation.notation import PLAN_LIMIT, PlanSyntaxError, parse_plan
from engine.generation.validation import problems_of, step_problems
from engine.journal import events as ev
from engine.loop import (
    decide_approvals,
    decide_breaks,
    decide_budget,
    decide_dispute,
    decide_goals,
    decide_meta,
    decide_session,
    decide_stop,
    decide_time,
)
from engine.loop.decide_goals import open_goal
from engine.loop.decide_session import may_go_on
from engine.loop.decide_stop import jobs_text, refuse_frozen
from engine.loop.outcome import Outcome, RefusedError, close_turn, fresh_id
from engine.tools.registry import ToolRegistry


def decide(state: AgentState, command: cmd.Command, registry: ToolRegistry) -> Outcome:
    """What the command leads to in this state; nothing is changed here.

    Raises:
        RefusedError: it cannot be done in this state.
    """
    if state.deleted:
        raise RefusedError(f"agent {state.agent_id} was deleted")
    if state.rewinding is not None and not isinstance(command, cmd.Pause | cmd.Stop):
        raise RefusedError("a rewind changes files right now; try again when it is done")
    own = _of_reasoners() if state.reasons else {}
    handler = own.get(type(command)) or _HANDLERS.get(type(command))
    if handler is None:
        raise RefusedError(f"'{command.do}' is no command for an agent")
    return handler(state, command, registry)


def _of_reasoners() -> Mapping[type[cmd.Command], _Handler]:
    """What an agent with a reasoner does otherwise; the reasoner's room opens with the first such agent."""
    from engine.loop.decide_reasoner import HANDLERS

    return HANDLERS


# ------------------------------------------------------------------ run control


def _run(state: AgentState, said: cmd.Run, registry: ToolRegistry) -> Outcome:
    may_go_on(state)
    if said.until is not None:
        open_goal(state, said.until)
    wanted = (RunState.RUNNING, said.max_loops, said.until, said.ask)
    if wanted == (state.run, state.max_loops, state.until, state.config.ask):
        return Outcome("already running")
    what = "running" if state.has_work else "ready; give it a goal"
    resumed = ev.AgentResumed(max_loops=said.max_loops, until=said.until, ask=said.ask)
    thawed = (ev.AgentThawed(),) if state.frozen else ()
    return Outcome(what, (*thawed, resumed))


def _pause(state: AgentState, said: cmd.Pause, registry: ToolRegistry) -> Outcome:
    if state.run is RunState.STOPPED:
        raise RefusedError("the agent is stopped already")
    if state.mode in (Mode.PAUSED, Mode.TIMED_OUT):
        return Outcome("already paused")
    message = "paused; the running action ends by itself" if state.acting else "paused"
    return Outcome(message + jobs_text(state, "go on"), (ev.AgentPaused(reason="paused by the operator"),))


def _delete(state: AgentState, said: cmd.DeleteAgent, registry: ToolRegistry) -> Outcome:
    if state.core:
        raise RefusedError(f"{state.agent_id} {CORE_STAYS}")
    if state.acting:
        raise RefusedError("an action is running; stop the agent first")
    message = f"agent {state.agent_id} deleted; its history stays{jobs_text(state, 'ended')}"
    return Outcome(message, (ev.AgentDeleted(),))


# ------------------------------------------------------------------ plan


def _step_of(state: AgentState, step_id: str) -> tuple[Plan, PlanStep]:
    found = state.find_step(step_id)
    if found is None:
        raise RefusedError(f"there is no step '{step_id}'")
    return found


def _editable(state: AgentState, step_id: str) -> tuple[Plan, PlanStep]:
    plan, step = _step_of(state, step_id)
    if step.status.terminal:
        raise RefusedError(f"step {step_id} is {step.status}; what is done cannot be changed")
    if state.acting and state.action is not None and state.action.step == step_id:
        raise RefusedError(f"step {step_id} is running; wait for it or stop the agent first")
    if step.status is StepStatus.RUNNING and step.op is Op.ACHIEVE:
        raise RefusedError(f"step {step_id} waits for its sub-goal; change the sub-goal's plan instead")
    return plan, step


def _revised(plan: Plan, change: str, steps: Sequence[PlanStep]) -> ev.PlanRevised:
    return ev.PlanRevised(plan=plan.id, goal=plan.goal, change=change, steps=tuple(steps))


def _check(steps: Sequence[PlanStep], registry: ToolRegistry) -> None:
    problems = problems_of(steps, registry)
    if problems:
        raise RefusedError("; ".join(problems[:5]))


def _edit_step(state: AgentState, said: cmd.EditStep, registry: ToolRegistry) -> Outcome:
    plan, step = _editable(state, said.step)
    changes: dict[str, Any] = {
        name: value
        for name in ("tool", "command", "args", "description")
        if (value := getattr(said, name)) is not None
    }
    if step.op is not Op.ACT and not {"tool", "command"}.isdisjoint(changes):
        # A step that called no tool is made to call one.
        changes = {"tool": "simple_coder", "op": Op.ACT, "args": {}, **changes}
    edited = replace(
        state.as_settled(step),
        **changes,
        status=StepStatus.PLANNED,
        summary="",
        provenance=replace(step.provenance, by="operator"),
    )
    problems = step_problems(edited, registry)
    if problems:
        raise RefusedError("; ".join(problems))
    steps = [edited if old.id == step.id else old for old in plan.steps]
    change = f"step {step.id} edited"
    return Outcome(
        change, (_revised(plan, change, steps), *close_turn(state, step=step.id, resolution="step edited"))
    )


def _insert_step(state: AgentState, said: cmd.InsertStep, registry: ToolRegistry) -> Outcome:
    plan = state.plan
    if said.before is not None:
        plan, _before = _editable(state, said.before)
    if plan is None or state.goals[plan.goal].status.terminal:
        raise RefusedError("there is no plan to insert into; give the agent a goal first")
    if len(plan.steps) >= PLAN_LIMIT:
        raise RefusedError(f"the plan has {len(plan.steps)} steps already; at most {PLAN_LIMIT} are allowed")
    step = PlanStep(
        id=fresh_id(state, "s"),
        description=said.description or said.command,
        tool=said.tool,
        command=said.command,
        args=said.args,
        provenance=Provenance(by="operator"),
    )
    problems = step_problems(step, registry)
    if problems:
        raise RefusedError("; ".join(problems))
    ids = [old.id for old in plan.steps]
    place = ids.index(said.before) if said.before is not None else len(ids)
    change = f"step {step.id} inserted"
    return Outcome(change, (_revised(plan, change, [*plan.steps[:place], step, *plan.steps[place:]]),))


def _delete_step(state: AgentState, said: cmd.DeleteStep, registry: ToolRegistry) -> Outcome:
    plan, step = _editable(state, said.step)
    waiting = [other.id for other in plan.steps if step.id in other.depends_on and not other.status.terminal]
    if waiting:
        raise RefusedError(
            f"step {step.id} is needed by {', '.join(waiting)}; skip it, or delete those first"
        )
    change = f"step {step.id} deleted"
    steps = [old for old in plan.steps if old.id != step.id]
    return Outcome(
        change, (_revised(plan, change, steps), *close_turn(state, step=step.id, resolution="step deleted"))
    )


def _move_step(state: AgentState, said: cmd.MoveStep, registry: ToolRegistry) -> Outcome:
    plan, step = _editable(state, said.step)
    steps = list(plan.steps)
    place = steps.index(step)
    target = place + said.by
    if not 0 <= target < len(steps):
        return Outcome(f"step {step.id} is {'first' if said.by < 0 else 'last'} already")
    if steps[target].status.terminal or steps[target].status is StepStatus.RUNNING:
        raise RefusedError(f"step {step.id} cannot move before {steps[target].id}, which has run")
    steps[place], steps[target] = steps[target], steps[place]
    change = f"step {step.id} moved {'up' if said.by < 0 else 'down'}"
    return Outcome(change, (_revised(plan, change, steps),))


def _skip_step(state: AgentState, said: cmd.SkipStep, registry: ToolRegistry) -> Outcome:
    plan, step = _editable(state, said.step)
    ended = ev.StepEnded(goal=plan.goal, step=step.id, status=StepStatus.SKIPPED, summary=said.reason)
    return Outcome(
        f"step {step.id} skipped", (ended, *close_turn(state, step=step.id, resolution="step skipped"))
    )


def _retry_step(state: AgentState, said: cmd.RetryStep, registry: ToolRegistry) -> Outcome:
    if not said.step:
        return _retry_goal(state, open_goal(state, said.goal))
    plan, step = _editable(state, said.step)
    if step.status is not StepStatus.FAILED:
        raise RefusedError(f"step {step.id} has not failed; it is {step.status}")
    again = ev.StepEnded(goal=plan.goal, step=step.id, status=StepStatus.PLANNED, summary=step.summary)
    return Outcome(
        f"step {step.id} will run again", (again, *close_turn(state, step=step.id, resolution="retry now"))
    )


def _retry_goal(state: AgentState, goal: Goal) -> Outcome:
    retry, turn = state.retry, state.intervention
    if retry is not None and (retry.step, retry.goal) == ("", goal.id):
        return Outcome(f"the plan for {goal.id} is asked for again", (ev.RecoveryHastened(goal=goal.id),))
    if turn is not None and (turn.step, turn.goal) == ("", goal.id):
        closed = ev.InterventionClosed(resolution="retry now")
        return Outcome(f"goal {goal.id} is planned again", (closed,))
    raise RefusedError(f"nothing of {goal.id} waits to be tried again; for one of its steps: retry STEP")


def _give_result(state: AgentState, said: cmd.GiveResult, registry: ToolRegistry) -> Outcome:
    plan, step = _editable(state, said.step)
    believed = ev.BeliefAdded(
        key=f"result.{step.id}", value=said.result, confidence=1.0, source=BeliefSource.OPERATOR
    )
    asked = step.op is Op.THINK and state.intervention is not None and not state.intervention.kind
    if asked:  # the thinker gets its answer, and decides on
        again = ev.StepEnded(goal=plan.goal, step=step.id, status=StepStatus.PLANNED)
        closed = close_turn(state, step=step.id, resolution=f"answered: {said.result}")
        return Outcome(f"answered {step.id}", (believed, again, *closed))
    done = ev.StepEnded(goal=plan.goal, step=step.id, status=StepStatus.COMPLETED, summary=said.result)
    closed = close_turn(state, step=step.id, resolution="result given by hand")
    return Outcome(f"step {step.id} settled by hand", (believed, done, *closed))


def _replace_plan(state: AgentState, said: cmd.ReplacePlan, registry: ToolRegistry) -> Outcome:
    goal = open_goal(state, said.goal)
    if state.open_child(goal.id) is not None:
        raise RefusedError("a sub-goal of this goal is open; replace the sub-goal's plan, or abort it")
    if state.acting and state.action and state.action.goal == goal.id:
        raise RefusedError("an action of this plan is running; wait for it or stop the agent first")
    if said.plan.lstrip().startswith(("[", "{")):
        try:
            drafted = parse_plan(said.plan)
        except PlanSyntaxError as error:
            raise RefusedError(f"this is no plan: {error}") from None
    else:
        text = said.plan.strip()
        drafted = (
            PlanStep("1", text, op=Op.ACHIEVE, args={"goal": text}, provenance=Provenance(by="operator")),
        )
    _check(drafted, registry)
    old = state.plans.get(goal.id)
    done = tuple(step for step in old.steps if step.status.terminal) if old else ()
    steps = (*done, *renumber(state, drafted))
    plan_id = old.id if old else fresh_id(state, "p")
    revised = ev.PlanRevised(plan=plan_id, goal=goal.id, change="rest of the plan replaced", steps=steps)
    return Outcome(
        f"plan of {goal.id} replaced: {len(drafted)} steps",
        (revised, *close_turn(state, goal=goal.id, resolution="plan replaced")),
    )


def renumber(state: AgentState, steps: Sequence[PlanStep]) -> tuple[PlanStep, ...]:
    """The steps with lasting ids in place of their local ones."""
    names = {step.id: fresh_id(state, "s", number) for number, step in enumerate(steps, 1)}
    return tuple(
        replace(step, id=names[step.id], depends_on=tuple(names[other] for other in step.depends_on))
        for step in steps
    )


def _set_breakpoint(state: AgentState, said: cmd.SetBreakpoint, registry: ToolRegistry) -> Outcome:
    if not said.on:
        if said.step not in state.breakpoints:
            return Outcome(f"no breakpoint on {said.step}")
        return Outcome(f"breakpoint on {said.step} cleared", (ev.BreakpointCleared(step=said.step),))
    _plan, step = _step_of(state, said.step)
    if step.status.terminal:
        raise RefusedError(f"step {step.id} is {step.status}; it will not run again")
    if step.id in state.breakpoints:
        return Outcome(f"there is a breakpoint on {step.id} already")
    return Outcome(f"breakpoint on {step.id}", (ev.BreakpointSet(step=step.id),))


# ------------------------------------------------------------------ intervention, tools, beliefs


def _intervene(state: AgentState, said: cmd.Intervene, registry: ToolRegistry) -> Outcome:
    if state.intervention is not None:
        return Outcome("it is your turn already")
    step = state.step
    opened = ev.InterventionOpened(
        goal=state.current_goal, step=step.id if step else "", reason="the operator took over"
    )
    return Outcome("your turn; the agent waits", (opened,))


def _hand_back(state: AgentState, said: cmd.HandBack, registry: ToolRegistry) -> Outcome:
    if state.intervention is None:
        raise RefusedError("there is nothing to hand back: the agent has its turn")
    events: list[ev.Payload] = []
    found = state.find_step(state.intervention.step) if state.intervention.step else None
    if found is not None and found[1].status is StepStatus.FAILED:
        plan, step = found
        events.append(
            ev.StepEnded(goal=plan.goal, step=step.id, status=StepStatus.PLANNED, summary=step.summary)
        )
    events.append(ev.InterventionClosed(resolution="handed back"))
    again = f"; {state.intervention.step} will be tried again" if len(events) > 1 else ""
    return Outcome(f"handed back{again}", tuple(events))


def _call_tool(state: AgentState, said: cmd.CallTool, registry: ToolRegistry) -> Outcome:
    if state.acting and state.action is not None and state.action.step:
        raise RefusedError("an action is running; wait for it or stop the agent first")
    if state.shell_taken:
        raise RefusedError("you have the shell; hand it back first: ctrl+]")
    if (said.tool, said.command) == (SHELL_TOOL, SHELL_COMMAND):
        raise RefusedError("the shell is taken with t, or take_shell")
    refuse_frozen(state)
    problems = registry.validate(said.tool, said.command, said.args)
    if problems:
        raise RefusedError("; ".join(problem.message for problem in problems))
    if said.client and registry.get(said.tool).commands[said.command].operator_only:
        raise RefusedError(f"{said.command} is the operator's alone")
    queued = ev.OperatorActionQueued(
        tool=said.tool, command=said.command, args=said.args, client=said.client, wait_s=said.wait_s
    )
    whose = f"for {said.client}" if said.client else "as you"
    return Outcome(f"{said.command} {whose}", (queued,))


def _drop_call(state: AgentState, said: cmd.DropCall, registry: ToolRegistry) -> Outcome:
    waiting = any(one.client and one.event == said.call for one in state.requests)
    action = state.action
    if action is not None and action.client and action.queued == said.call:
        waiting = True
    if not waiting:
        raise RefusedError(f"no call of a client waits or runs that was asked for by {said.call}")
    return Outcome("the call is dropped", (ev.CallDropped(queued=said.call),))


def _believe(state: AgentState, said: cmd.Believe, registry: ToolRegistry) -> Outcome:
    belief = ev.BeliefAdded(key=said.key, value=said.value, confidence=1.0, source=BeliefSource.OPERATOR)
    return Outcome(f"{said.key} believed", (belief,))


def _forget(state: AgentState, said: cmd.Forget, registry: ToolRegistry) -> Outcome:
    if said.key not in state.beliefs:
        raise RefusedError(f"'{said.key}' is not believed")
    return Outcome(f"{said.key} forgotten", (ev.BeliefRemoved(key=said.key, reason="by the operator"),))


_Handler = Callable[[AgentState, Any, ToolRegistry], Outcome]
_HANDLERS: dict[type[cmd.Command], _Handler] = {
    **decide_goals.HANDLERS,
    cmd.Run: _run,
    cmd.Pause: _pause,
    **decide_breaks.HANDLERS,
    **decide_budget.HANDLERS,
    **decide_time.HANDLERS,
    cmd.DeleteAgent: _delete,
    cmd.EditStep: _edit_step,
    cmd.InsertStep: _insert_step,
    cmd.DeleteStep: _delete_step,
    cmd.MoveStep: _move_step,
    cmd.SkipStep: _skip_step,
    cmd.RetryStep: _retry_step,
    cmd.GiveResult: _give_result,
    cmd.ReplacePlan: _replace_plan,
    cmd.SetBreakpoint: _set_breakpoint,
    **decide_approvals.HANDLERS,
    cmd.Intervene: _intervene,
    cmd.HandBack: _hand_back,
    cmd.CallTool: _call_tool,
    cmd.DropCall: _drop_call,
    cmd.Believe: _believe,
    cmd.Forget: _forget,
    **decide_dispute.HANDLERS,
    cmd.TakeShell: decide_session.take_shell,
    cmd.ReturnShell: decide_session.return_shell,
    cmd.SettleChanges: decide_session.settle_changes,
    cmd.StopJob: decide_session.stop_job,
    cmd.WaiveSnapshot: decide_session.waive_snapshot,
    **decide_meta.HANDLERS,
    **decide_stop.HANDLERS,
}
