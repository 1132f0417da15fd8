"""What a command leads to: a pure function from a state and a command to events.

The handlers here are about an agent's run, plan, calls, beliefs and time; the modules imported for their
handlers have the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from engine.agent.decisions import approvals, goals, sandbox  # noqa: F401  their handlers
from engine.agent.decisions.goals import open_goal
from engine.agent.decisions.outcome import (
    HANDLERS,
    PROGRAM_HANDLERS,
    CommandOutcome,
    RefusedError,
    close_turn,
    fresh_id,
    handles,
    refuse,
    renumber,
)
from engine.agent.decisions.sandbox import can_resume, jobs_text, refuse_frozen
from engine.agent.steering.rules import RuleError
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import CORE_STAYS, Mode, RunState
from engine.core.beliefs import BeliefSource
from engine.core.breakpoints import BreakError
from engine.core.goals import Goal
from engine.core.plan import Op, Plan, PlanStep, Provenance, StepStatus
from engine.core.recovery import FailureKind
from engine.core.rewind import RewindScope
from engine.core.sandbox import SHELL_COMMAND, SHELL_TOOL
from engine.core.state import AgentState
from engine.planning.plan_notation import PLAN_LIMIT, PlanSyntaxError, parse_plan, problems_of, step_problems
from engine.tools.registry import ToolRegistry
from engine.value import fields_of


def check_rewind_allowed(state: AgentState, scope: RewindScope) -> None:
    """Refuse to rewind an agent that acts or may act at any moment.

    Raises:
        RefusedError: says what is in the way, and what to do about it.
    """
    if state.rewinding is not None:
        raise RefusedError("a rewind is under way already")
    if state.acting and state.action is not None:
        raise RefusedError(
            f"{state.action.id} {state.action.command} is running; wait for it or stop it first"
        )
    if state.shell_taken or state.returned is not None:
        raise RefusedError("you have the shell; hand it back first: ctrl+]")
    refuse(state.busy or state.requests, "a call of yours is on its way; wait for it or stop the agent first")
    held = state.intervention is not None or state.handover is not None
    if state.grants or (state.run is RunState.RUNNING and state.has_work and not held):
        raise RefusedError("the agent runs; pause it first, so that nothing changes while it is taken back")
    if state.reasons and scope is not RewindScope.FILES:
        raise RefusedError(
            "the mind of an agent with a program of its own cannot be taken back; its files can: rewind files"
        )


@handles(cmd.Rewind)
def _rewind(state: AgentState, command: cmd.Rewind, registry: ToolRegistry) -> CommandOutcome:
    check_rewind_allowed(state, RewindScope(command.scope))
    refuse(command.to > state.version, f"{state.agent_id}:{command.to} has not happened yet")
    return CommandOutcome("the rewind begins")


@handles(cmd.AdoptFork)
def _adopt(state: AgentState, command: cmd.AdoptFork, registry: ToolRegistry) -> CommandOutcome:
    check_rewind_allowed(state, RewindScope.FILES)
    return CommandOutcome("the files are taken over")


@handles(cmd.Undo)
def _undo(state: AgentState, said: cmd.Undo, registry: ToolRegistry) -> CommandOutcome:
    try:
        command = cmd.parse_command(said.command)
    except ValueError as error:
        raise RefusedError(f"what makes up for {said.of} is no command: {error}") from None
    if isinstance(command, NOT_WITHIN) or command.agent != state.agent_id:
        raise RefusedError(f"'{command.do}' cannot be part of an undo")
    outcome = decide(state, command, registry)
    return CommandOutcome(f"{'done again' if said.again else 'undone'}: {outcome.message}", outcome.events)


@handles(cmd.PutBack)
def _put_back(state: AgentState, command: cmd.PutBack, registry: ToolRegistry) -> CommandOutcome:
    events: list[ev.Payload] = []
    if command.steps is not None:
        goal, plan = open_goal(state, command.goal), state.plans.get(command.goal)
        if plan is None:
            raise RefusedError(f"goal {goal.id} has no plan any more; it is made anew")
        if state.acting and state.action is not None and state.action.goal == goal.id:
            raise RefusedError("an action of this plan is running; wait for it or stop the agent first")
        if problems := problems_of(command.steps, registry):
            raise RefusedError("; ".join(problems[:5]))
        change = "put back as it was"
        events.append(ev.PlanRevised(plan=plan.id, goal=goal.id, change=change, steps=command.steps))
        events += close_turn(state, goal=goal.id, resolution=change)
    kept = ("key", "value", "confidence", "source", "until")
    events += [ev.BeliefAdded(**fields_of(held, *kept)) for held in command.beliefs]
    events += [ev.BeliefRemoved(key=key, reason="undone") for key in command.forget if key in state.beliefs]
    if (turn := command.turn) is not None and state.intervention is None:
        kind = FailureKind(turn.kind) if turn.kind else None
        opened = ev.InterventionOpened(goal=turn.goal, step=turn.step, reason=turn.reason, failure=kind)
        events.append(opened.model_copy(update={"tried": turn.tried}))
    return CommandOutcome("put back as it was", tuple(events))


NOT_WITHIN = (cmd.Undo, cmd.Rewind, cmd.AdoptFork, cmd.CallTool, cmd.TakeShell, cmd.DeleteAgent)
"""Commands that no undo carries out."""


def decide(state: AgentState, command: cmd.Command, registry: ToolRegistry) -> CommandOutcome:
    """What the command leads to in this state; nothing is changed here.

    Raises:
        RefusedError: it cannot be done in this state.
    """
    refuse(state.deleted, f"agent {state.agent_id} was deleted")
    if state.rewinding is not None and not isinstance(command, cmd.Pause | cmd.Stop):
        raise RefusedError("a rewind changes files right now; try again when it is done")
    handler = HANDLERS.get(type(command))
    if state.reasons:
        from engine.agent.decisions import programs  # late: few agents have one  # noqa: F401

        handler = PROGRAM_HANDLERS.get(type(command), handler)
    if handler is None:
        raise RefusedError(f"'{command.do}' is no command for an agent")
    try:
        return handler(state, command, registry)
    except (RuleError, BreakError) as error:
        raise RefusedError(str(error)) from None


# ------------------------------------------------------------------ run control


@handles(cmd.Run)
def _run(state: AgentState, command: cmd.Run, registry: ToolRegistry) -> CommandOutcome:
    can_resume(state)
    if command.until is not None:
        open_goal(state, command.until)
    asked = (RunState.RUNNING, command.max_loops, command.until, command.ask)
    if asked == (state.run, state.max_loops, state.until, state.config.ask):
        return CommandOutcome("already running")
    what = "running" if state.has_work else "ready; give it a goal"
    resumed = ev.AgentResumed(max_loops=command.max_loops, until=command.until, ask=command.ask)
    thawed = (ev.AgentThawed(),) if state.frozen else ()
    return CommandOutcome(what, (*thawed, resumed))


@handles(cmd.Pause)
def _pause(state: AgentState, command: cmd.Pause, registry: ToolRegistry) -> CommandOutcome:
    refuse(state.run is RunState.STOPPED, "the agent is stopped already")
    if state.mode in (Mode.PAUSED, Mode.TIMED_OUT):
        return CommandOutcome("already paused")
    message = "paused; the running action ends by itself" if state.acting else "paused"
    return CommandOutcome(
        message + jobs_text(state, "go on"), (ev.AgentPaused(reason="paused by the operator"),)
    )


@handles(cmd.DeleteAgent)
def _delete(state: AgentState, command: cmd.DeleteAgent, registry: ToolRegistry) -> CommandOutcome:
    refuse(state.core, f"{state.agent_id} {CORE_STAYS}")
    refuse(state.acting, "an action is running; stop the agent first")
    message = f"agent {state.agent_id} deleted; its history stays{jobs_text(state, 'ended')}"
    return CommandOutcome(message, (ev.AgentDeleted(),))


# ------------------------------------------------------------------ plan


def _step_of(state: AgentState, step_id: str) -> tuple[Plan, PlanStep]:
    located = state.find_step(step_id)
    if located is None:
        raise RefusedError(f"there is no step '{step_id}'")
    return located


def _editable(state: AgentState, step_id: str) -> tuple[Plan, PlanStep]:
    plan, step = _step_of(state, step_id)
    refuse(step.status.terminal, f"step {step_id} is {step.status}; what is done cannot be changed")
    if state.acting and state.action is not None and state.action.step == step_id:
        raise RefusedError(f"step {step_id} is running; wait for it or stop the agent first")
    if step.status is StepStatus.RUNNING and step.op is Op.ACHIEVE:
        raise RefusedError(f"step {step_id} waits for its sub-goal; change the sub-goal's plan instead")
    return plan, step


def _revised(
    state: AgentState, plan: Plan, step: PlanStep, change: str, steps: Sequence[PlanStep]
) -> CommandOutcome:
    """A step was changed as said, which ends the operator's turn where that was about the step."""
    words = f"step {step.id} {change}"
    revised = ev.PlanRevised(plan=plan.id, goal=plan.goal, change=words, steps=tuple(steps))
    return CommandOutcome(words, (revised, *close_turn(state, step=step.id, resolution=f"step {change}")))


def _ended(plan: Plan, step: PlanStep, status: StepStatus, summary: str = "") -> ev.StepEnded:
    return ev.StepEnded(goal=plan.goal, step=step.id, status=status, summary=summary)


def _check(steps: Sequence[PlanStep], registry: ToolRegistry) -> None:
    problems = problems_of(steps, registry)
    refuse(problems, "; ".join(problems[:5]))


@handles(cmd.EditStep)
def _edit_step(state: AgentState, command: cmd.EditStep, registry: ToolRegistry) -> CommandOutcome:
    plan, step = _editable(state, command.step)
    changes: dict[str, Any] = {
        name: value
        for name in ("tool", "command", "args", "description")
        if (value := getattr(command, name)) is not None
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
    refuse(problems, "; ".join(problems))
    steps = [edited if old.id == step.id else old for old in plan.steps]
    return _revised(state, plan, step, "edited", steps)


@handles(cmd.InsertStep)
def _insert_step(state: AgentState, command: cmd.InsertStep, registry: ToolRegistry) -> CommandOutcome:
    plan = state.plan
    if command.before is not None:
        plan, _before = _editable(state, command.before)
    if plan is None or state.goals[plan.goal].status.terminal:
        raise RefusedError("there is no plan to insert into; give the agent a goal first")
    if len(plan.steps) >= PLAN_LIMIT:
        raise RefusedError(f"the plan has {len(plan.steps)} steps already; at most {PLAN_LIMIT} are allowed")
    step = PlanStep(
        id=fresh_id(state, "s"),
        description=command.description or command.command,
        tool=command.tool,
        command=command.command,
        args=command.args,
        provenance=Provenance(by="operator"),
    )
    problems = step_problems(step, registry)
    refuse(problems, "; ".join(problems))
    ids = [old.id for old in plan.steps]
    place = ids.index(command.before) if command.before is not None else len(ids)
    return _revised(state, plan, step, "inserted", [*plan.steps[:place], step, *plan.steps[place:]])


@handles(cmd.DeleteStep)
def _delete_step(state: AgentState, command: cmd.DeleteStep, registry: ToolRegistry) -> CommandOutcome:
    plan, step = _editable(state, command.step)
    waiting = [other.id for other in plan.steps if step.id in other.depends_on and not other.status.terminal]
    refuse(waiting, f"step {step.id} is needed by {', '.join(waiting)}; skip it, or delete those first")
    return _revised(state, plan, step, "deleted", [old for old in plan.steps if old.id != step.id])


@handles(cmd.MoveStep)
def _move_step(state: AgentState, command: cmd.MoveStep, registry: ToolRegistry) -> CommandOutcome:
    plan, step = _editable(state, command.step)
    steps = list(plan.steps)
    place = steps.index(step)
    target = place + command.by
    if not 0 <= target < len(steps):
        return CommandOutcome(f"step {step.id} is {'first' if command.by < 0 else 'last'} already")
    if steps[target].status.terminal or steps[target].status is StepStatus.RUNNING:
        raise RefusedError(f"step {step.id} cannot move before {steps[target].id}, which has run")
    steps[place], steps[target] = steps[target], steps[place]
    change = f"step {step.id} moved {'up' if command.by < 0 else 'down'}"
    revised = ev.PlanRevised(plan=plan.id, goal=plan.goal, change=change, steps=tuple(steps))
    return CommandOutcome(change, (revised,))


@handles(cmd.SkipStep)
def _skip_step(state: AgentState, command: cmd.SkipStep, registry: ToolRegistry) -> CommandOutcome:
    plan, step = _editable(state, command.step)
    closed = close_turn(state, step=step.id, resolution="step skipped")
    skipped = _ended(plan, step, StepStatus.SKIPPED, command.reason)
    return CommandOutcome(f"step {step.id} skipped", (skipped, *closed))


@handles(cmd.RetryStep)
def _retry_step(state: AgentState, command: cmd.RetryStep, registry: ToolRegistry) -> CommandOutcome:
    if not command.step:
        return _retry_goal(state, open_goal(state, command.goal))
    plan, step = _editable(state, command.step)
    refuse(step.status is not StepStatus.FAILED, f"step {step.id} has not failed; it is {step.status}")
    closed = close_turn(state, step=step.id, resolution="retry now")
    again = _ended(plan, step, StepStatus.PLANNED, step.summary)
    return CommandOutcome(f"step {step.id} will run again", (again, *closed))


def _retry_goal(state: AgentState, goal: Goal) -> CommandOutcome:
    retry, turn = state.retry, state.intervention
    if retry is not None and (retry.step, retry.goal) == ("", goal.id):
        hastened = ev.RecoveryHastened(goal=goal.id)
        return CommandOutcome(f"the plan for {goal.id} is asked for again", (hastened,))
    if turn is not None and (turn.step, turn.goal) == ("", goal.id):
        closed = ev.InterventionClosed(resolution="retry now")
        return CommandOutcome(f"goal {goal.id} is planned again", (closed,))
    raise RefusedError(f"nothing of {goal.id} waits to be tried again; for one of its steps: retry STEP")


@handles(cmd.GiveResult)
def _give_result(state: AgentState, command: cmd.GiveResult, registry: ToolRegistry) -> CommandOutcome:
    plan, step = _editable(state, command.step)
    believed = _belief(f"result.{step.id}", command.result)
    asked = step.op is Op.THINK and state.intervention is not None and not state.intervention.kind
    if asked:  # the thinker gets its answer, and decides on
        again = _ended(plan, step, StepStatus.PLANNED)
        closed = close_turn(state, step=step.id, resolution=f"answered: {command.result}")
        return CommandOutcome(f"answered {step.id}", (believed, again, *closed))
    done = _ended(plan, step, StepStatus.COMPLETED, command.result)
    closed = close_turn(state, step=step.id, resolution="result given by hand")
    return CommandOutcome(f"step {step.id} settled by hand", (believed, done, *closed))


@handles(cmd.ReplacePlan)
def _replace_plan(state: AgentState, command: cmd.ReplacePlan, registry: ToolRegistry) -> CommandOutcome:
    goal = open_goal(state, command.goal)
    if state.open_child(goal.id) is not None:
        raise RefusedError("a sub-goal of this goal is open; replace the sub-goal's plan, or abort it")
    if state.acting and state.action and state.action.goal == goal.id:
        raise RefusedError("an action of this plan is running; wait for it or stop the agent first")
    if command.plan.lstrip().startswith(("[", "{")):
        try:
            drafted = parse_plan(command.plan)
        except PlanSyntaxError as error:
            raise RefusedError(f"this is no plan: {error}") from None
    else:
        text = command.plan.strip()
        drafted = (
            PlanStep("1", text, op=Op.ACHIEVE, args={"goal": text}, provenance=Provenance(by="operator")),
        )
    _check(drafted, registry)
    old = state.plans.get(goal.id)
    done = tuple(step for step in old.steps if step.status.terminal) if old else ()
    steps = (*done, *renumber(state, drafted))
    plan_id = old.id if old else fresh_id(state, "p")
    revised = ev.PlanRevised(plan=plan_id, goal=goal.id, change="rest of the plan replaced", steps=steps)
    return CommandOutcome(
        f"plan of {goal.id} replaced: {len(drafted)} steps",
        (revised, *close_turn(state, goal=goal.id, resolution="plan replaced")),
    )


@handles(cmd.SetBreakpoint)
def _set_breakpoint(state: AgentState, command: cmd.SetBreakpoint, registry: ToolRegistry) -> CommandOutcome:
    if not command.on:
        if command.step not in state.breakpoints:
            return CommandOutcome(f"no breakpoint on {command.step}")
        cleared = ev.BreakpointCleared(step=command.step)
        return CommandOutcome(f"breakpoint on {command.step} cleared", (cleared,))
    _plan, step = _step_of(state, command.step)
    refuse(step.status.terminal, f"step {step.id} is {step.status}; it will not run again")
    if step.id in state.breakpoints:
        return CommandOutcome(f"there is a breakpoint on {step.id} already")
    return CommandOutcome(f"breakpoint on {step.id}", (ev.BreakpointSet(step=step.id),))


# ------------------------------------------------------------------ intervention, tools, beliefs


@handles(cmd.Intervene)
def _intervene(state: AgentState, command: cmd.Intervene, registry: ToolRegistry) -> CommandOutcome:
    if state.intervention is not None:
        return CommandOutcome("it is your turn already")
    step = state.step
    opened = ev.InterventionOpened(
        goal=state.current_goal, step=step.id if step else "", reason="the operator took over"
    )
    return CommandOutcome("your turn; the agent waits", (opened,))


@handles(cmd.HandBack)
def _hand_back(state: AgentState, command: cmd.HandBack, registry: ToolRegistry) -> CommandOutcome:
    if state.intervention is None:
        raise RefusedError("there is nothing to hand back: the agent has its turn")
    events: list[ev.Payload] = []
    located = state.find_step(state.intervention.step) if state.intervention.step else None
    if located is not None and located[1].status is StepStatus.FAILED:
        plan, step = located
        events.append(_ended(plan, step, StepStatus.PLANNED, step.summary))
    events.append(ev.InterventionClosed(resolution="handed back"))
    again = f"; {state.intervention.step} will be tried again" if len(events) > 1 else ""
    return CommandOutcome(f"handed back{again}", tuple(events))


@handles(cmd.CallTool)
def _call_tool(state: AgentState, command: cmd.CallTool, registry: ToolRegistry) -> CommandOutcome:
    if state.acting and state.action is not None and state.action.step:
        raise RefusedError("an action is running; wait for it or stop the agent first")
    refuse(state.shell_taken, "you have the shell; hand it back first: ctrl+]")
    if (command.tool, command.command) == (SHELL_TOOL, SHELL_COMMAND):
        raise RefusedError("the shell is taken with t, or take_shell")
    refuse_frozen(state)
    problems = registry.validate(command.tool, command.command, command.args)
    refuse(problems, "; ".join(problem.message for problem in problems))
    if command.client and registry.get(command.tool).commands[command.command].operator_only:
        raise RefusedError(f"{command.command} is the operator's alone")
    queued = ev.OperatorActionQueued(**fields_of(command, "tool", "command", "args", "client", "wait_s"))
    whose = f"for {command.client}" if command.client else "as you"
    return CommandOutcome(f"{command.command} {whose}", (queued,))


@handles(cmd.DropCall)
def _drop_call(state: AgentState, command: cmd.DropCall, registry: ToolRegistry) -> CommandOutcome:
    waiting = any(request.client and request.event == command.call for request in state.requests)
    action = state.action
    if action is not None and action.client and action.queued == command.call:
        waiting = True
    refuse(not waiting, f"no call of a client waits or runs that was asked for by {command.call}")
    return CommandOutcome("the call is dropped", (ev.CallDropped(queued=command.call),))


@handles(cmd.Believe)
def _believe(state: AgentState, command: cmd.Believe, registry: ToolRegistry) -> CommandOutcome:
    return CommandOutcome(f"{command.key} believed", (_belief(command.key, command.value),))


def _belief(key: str, value: Any) -> ev.BeliefAdded:
    return ev.BeliefAdded(key=key, value=value, confidence=1.0, source=BeliefSource.OPERATOR)


@handles(cmd.Forget)
def _forget(state: AgentState, command: cmd.Forget, registry: ToolRegistry) -> CommandOutcome:
    refuse(command.key not in state.beliefs, f"'{command.key}' is not believed")
    removed = ev.BeliefRemoved(key=command.key, reason="by the operator")
    return CommandOutcome(f"{command.key} forgotten", (removed,))
