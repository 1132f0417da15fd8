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
    CommandResult,
    RefusedError,
    close_turn,
    fresh_id,
    handles,
    needed,
    refuse,
    refuse_overwriting,
    renumber,
    step_of,
)
from engine.agent.decisions.sandbox import can_resume, jobs_text, refuse_frozen
from engine.agent.settings import CONFIGURABLE, SettingsError, read_recovery, read_settings
from engine.agent.steering.rules import RuleError
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.beliefs import BeliefSource
from engine.core.breakpoints import BreakError
from engine.core.goals import Goal
from engine.core.plan import Op, Plan, PlanStep, Provenance, StepStatus, step_line
from engine.core.reasons import NONE, Reason
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
    refuse(state.rewinding is not None, Reason("refused.rewind-under-way"))
    if state.acting and state.action is not None:
        raise RefusedError(
            Reason("refused.call-still-running", action=state.action.id, command=state.action.command)
        )
    refuse(state.shell_taken or state.returned is not None, Reason("refused.shell-taken"))
    refuse(state.busy or state.requests, Reason("refused.call-under-way"))
    held = state.intervention is not None or state.handover is not None
    if state.grants or (state.run is RunState.RUNNING and state.has_work and not held):
        raise RefusedError(Reason("refused.agent-runs"))
    refuse(state.reasons and scope is not RewindScope.FILES, Reason("refused.mind-of-program"))


@handles(cmd.Rewind)
def _rewind(state: AgentState, command: cmd.Rewind, registry: ToolRegistry) -> CommandResult:
    check_rewind_allowed(state, RewindScope(command.scope))
    refuse(command.to > state.version, Reason("refused.rewind-ahead", agent=state.agent_id, to=command.to))
    return CommandResult("the rewind begins")


@handles(cmd.AdoptFork)
def _adopt(state: AgentState, command: cmd.AdoptFork, registry: ToolRegistry) -> CommandResult:
    check_rewind_allowed(state, RewindScope.FILES)
    return CommandResult("the files are taken over")


@handles(cmd.Undo)
def _undo(state: AgentState, event: cmd.Undo, registry: ToolRegistry) -> CommandResult:
    try:
        command = cmd.parse_command(event.command)
    except ValueError as error:
        raise RefusedError(Reason("refused.undo-not-a-command", of=event.of, error=str(error))) from None
    if isinstance(command, NOT_WITHIN) or command.agent != state.agent_id:
        raise RefusedError(Reason("refused.not-in-undo", do=command.do))
    result = decide(state, command, registry)
    return CommandResult(f"{'done again' if event.again else 'undone'}: {result.message}", result.events)


@handles(cmd.PutBack)
def _put_back(state: AgentState, command: cmd.PutBack, registry: ToolRegistry) -> CommandResult:
    events: list[ev.Payload] = []
    if command.steps is not None:
        goal = open_goal(state, command.goal)
        plan = needed(state.plans.get(goal.id), Reason("refused.goal-without-plan", goal=goal.id))
        if state.acting and state.action is not None and state.action.goal == goal.id:
            raise RefusedError(Reason("refused.plan-action-running"))
        if problems := problems_of(command.steps, registry):
            raise RefusedError("; ".join(problems[:5]))
        change = Reason("plan.put-back")
        events.append(ev.PlanRevised(plan=plan.id, goal=goal.id, change=change, steps=command.steps))
        events += close_turn(state, goal=goal.id, resolution=change)
    kept = ("key", "value", "confidence", "source", "until")
    events += [ev.BeliefAdded(**fields_of(held, *kept)) for held in command.beliefs]
    undone = Reason("belief.undone")
    events += [ev.BeliefRemoved(key=key, reason=undone) for key in command.forget if key in state.beliefs]
    if (turn := command.turn) is not None and state.intervention is None:
        kind = FailureKind(turn.kind) if turn.kind else None
        opened = ev.InterventionOpened(goal=turn.goal, step=turn.step, reason=turn.reason, failure=kind)
        events.append(opened.model_copy(update={"tried": turn.tried}))
    return CommandResult("put back as it was", tuple(events))


NOT_WITHIN = (cmd.Undo, cmd.Rewind, cmd.AdoptFork, cmd.CallTool, cmd.TakeShell, cmd.DeleteAgent)
"""Commands that no undo carries out."""


def decide(state: AgentState, command: cmd.Command, registry: ToolRegistry) -> CommandResult:
    """What the command leads to in this state; nothing is changed here.

    Raises:
        RefusedError: it cannot be done in this state.
    """
    refuse(state.deleted, Reason("refused.agent-deleted", agent=state.agent_id))
    if state.rewinding is not None and not isinstance(command, cmd.Pause | cmd.Stop):
        raise RefusedError(Reason("refused.rewind-changes-files"))
    handler = HANDLERS.get(type(command))
    if state.reasons:
        from engine.agent.decisions import programs  # late: few agents have one  # noqa: F401

        handler = PROGRAM_HANDLERS.get(type(command), handler)
    if handler is None:
        raise RefusedError(Reason("refused.not-an-agent-command", do=command.do))
    try:
        return handler(state, command, registry)
    except (RuleError, BreakError) as error:
        raise RefusedError(str(error)) from None


# ------------------------------------------------------------------ run control


@handles(cmd.Run)
def _run(state: AgentState, command: cmd.Run, registry: ToolRegistry) -> CommandResult:
    can_resume(state)
    if command.until is not None:
        open_goal(state, command.until)
    asked = (RunState.RUNNING, command.max_loops, command.until, command.ask)
    if asked == (state.run, state.max_loops, state.until, state.config.ask):
        return CommandResult("already running")
    what = "running" if state.has_work else "ready; give it a goal"
    resumed = ev.AgentResumed(max_loops=command.max_loops, until=command.until, ask=command.ask)
    thawed = (ev.AgentThawed(),) if state.frozen else ()
    return CommandResult(what, (*thawed, resumed))


@handles(cmd.Pause)
def _pause(state: AgentState, command: cmd.Pause, registry: ToolRegistry) -> CommandResult:
    refuse(state.run is RunState.STOPPED, Reason("refused.already-stopped"))
    if state.run is RunState.PAUSED and not state.grants:
        return CommandResult("already paused")
    message = "paused; the running action ends by itself" if state.acting else "paused"
    return CommandResult(message + jobs_text(state, "go on"), (ev.AgentPaused(reason=Reason("run.paused")),))


@handles(cmd.ConfigureAgent)
def _configure(state: AgentState, command: cmd.ConfigureAgent, registry: ToolRegistry) -> CommandResult:
    try:
        read_settings(command.settings)
        errors = read_recovery({**state.config.meta, **command.settings}).max_consecutive_errors
    except SettingsError as error:
        raise RefusedError(Reason("refused.settings", why=str(error))) from None
    unknown = next((name for name in command.settings if name not in CONFIGURABLE), "")
    refuse(unknown, Reason("refused.setting", name=unknown, known=CONFIGURABLE))
    configured = ev.AgentConfigured(settings=command.settings, max_consecutive_errors=errors)
    return CommandResult("it counts from the next decision on", (configured,))


@handles(cmd.DeleteAgent)
def _delete(state: AgentState, command: cmd.DeleteAgent, registry: ToolRegistry) -> CommandResult:
    refuse(state.core, Reason("refused.core-agent", agent=state.agent_id))
    refuse(state.acting, Reason("refused.stop-agent-first"))
    message = f"agent {state.agent_id} deleted; its history stays{jobs_text(state, 'ended')}"
    return CommandResult(message, (ev.AgentDeleted(),))


# ------------------------------------------------------------------ plan


def _editable(state: AgentState, step_id: str) -> tuple[Plan, PlanStep]:
    plan, step = step_of(state, step_id)
    refuse(step.status.terminal, Reason("refused.step-already-run", step=step_id, status=step.status))
    if state.acting and state.action is not None and state.action.step == step_id:
        raise RefusedError(Reason("refused.step-running", step=step_id))
    if step.status is StepStatus.RUNNING and step.op is Op.ACHIEVE:
        raise RefusedError(Reason("refused.step-waits-for-sub-goal", step=step_id))
    return plan, step


def _revised(
    state: AgentState, plan: Plan, step: PlanStep, change: str, steps: Sequence[PlanStep]
) -> CommandResult:
    """A step was changed as said, which ends the operator's turn where that was about the step."""
    words = Reason("plan.step", step=step.id, change=change)
    revised = ev.PlanRevised(plan=plan.id, goal=plan.goal, change=words, steps=tuple(steps))
    closed = close_turn(state, step=step.id, resolution=Reason("turn.step", change=change))
    return CommandResult(words, (revised, *closed))


def _ended(plan: Plan, step: PlanStep, status: StepStatus, summary: Reason = NONE) -> ev.StepEnded:
    return ev.StepEnded(goal=plan.goal, step=step.id, status=status, summary=summary)


def _check(steps: Sequence[PlanStep], registry: ToolRegistry) -> None:
    problems = problems_of(steps, registry)
    refuse(problems, "; ".join(problems[:5]))


@handles(cmd.EditStep)
def _edit_step(state: AgentState, command: cmd.EditStep, registry: ToolRegistry) -> CommandResult:
    located = state.find_step(command.step)
    now = [step_line(state.as_settled(located[1]))] if located is not None else []
    refuse_overwriting(command.was, now, f"step {command.step}", state.editors.get(command.step, ""))
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
        summary=NONE,
        provenance=replace(step.provenance, by="operator"),
    )
    problems = step_problems(edited, registry)
    refuse(problems, "; ".join(problems))
    steps = [edited if old.id == step.id else old for old in plan.steps]
    return _revised(state, plan, step, "edited", steps)


@handles(cmd.InsertStep)
def _insert_step(state: AgentState, command: cmd.InsertStep, registry: ToolRegistry) -> CommandResult:
    plan = state.plan
    if command.before is not None:
        plan, _before = _editable(state, command.before)
    if plan is None or state.goals[plan.goal].status.terminal:
        raise RefusedError(Reason("refused.no-plan-to-edit"))
    if len(plan.steps) >= PLAN_LIMIT:
        raise RefusedError(Reason("refused.plan-full", steps=len(plan.steps), limit=PLAN_LIMIT))
    call = fields_of(command, "tool", "command", "args")
    description, by = command.description or command.command, Provenance(by="operator")
    step = PlanStep(fresh_id(state, "s"), description, **call, provenance=by)
    problems = step_problems(step, registry)
    refuse(problems, "; ".join(problems))
    ids = [old.id for old in plan.steps]
    place = ids.index(command.before) if command.before is not None else len(ids)
    return _revised(state, plan, step, "inserted", [*plan.steps[:place], step, *plan.steps[place:]])


@handles(cmd.DeleteStep)
def _delete_step(state: AgentState, command: cmd.DeleteStep, registry: ToolRegistry) -> CommandResult:
    plan, step = _editable(state, command.step)
    waiting = [other.id for other in plan.steps if step.id in other.depends_on and not other.status.terminal]
    refuse(waiting, Reason("refused.step-needed", step=step.id, listed=", ".join(waiting)))
    return _revised(state, plan, step, "deleted", [old for old in plan.steps if old.id != step.id])


@handles(cmd.MoveStep)
def _move_step(state: AgentState, command: cmd.MoveStep, registry: ToolRegistry) -> CommandResult:
    plan, step = _editable(state, command.step)
    steps = list(plan.steps)
    place = steps.index(step)
    target = place + command.by
    if not 0 <= target < len(steps):
        return CommandResult(f"step {step.id} is {'first' if command.by < 0 else 'last'} already")
    if steps[target].status.terminal or steps[target].status is StepStatus.RUNNING:
        raise RefusedError(Reason("refused.step-behind-run", step=step.id, steps=steps[target].id))
    steps[place], steps[target] = steps[target], steps[place]
    change = Reason("plan.moved", step=step.id, direction="up" if command.by < 0 else "down")
    revised = ev.PlanRevised(plan=plan.id, goal=plan.goal, change=change, steps=tuple(steps))
    return CommandResult(change, (revised,))


@handles(cmd.SkipStep)
def _skip_step(state: AgentState, command: cmd.SkipStep, registry: ToolRegistry) -> CommandResult:
    plan, step = _editable(state, command.step)
    closed = close_turn(state, step=step.id, resolution=Reason("turn.step", change="skipped"))
    skipped = _ended(plan, step, StepStatus.SKIPPED, Reason("step.left-out", why=command.reason))
    return CommandResult(f"step {step.id} skipped", (skipped, *closed))


@handles(cmd.RetryStep)
def _retry_step(state: AgentState, command: cmd.RetryStep, registry: ToolRegistry) -> CommandResult:
    if not command.step:
        return _retry_goal(state, open_goal(state, command.goal))
    plan, step = _editable(state, command.step)
    why = Reason("refused.step-not-failed", step=step.id, status=step.status)
    refuse(step.status is not StepStatus.FAILED, why)
    closed = close_turn(state, step=step.id, resolution=Reason("turn.retry"))
    again = _ended(plan, step, StepStatus.PLANNED, step.summary)
    return CommandResult(f"step {step.id} will run again", (again, *closed))


def _retry_goal(state: AgentState, goal: Goal) -> CommandResult:
    retry, turn = state.retry, state.intervention
    if retry is not None and (retry.step, retry.goal) == ("", goal.id):
        hastened = ev.RecoveryHastened(goal=goal.id)
        return CommandResult(f"the plan for {goal.id} is asked for again", (hastened,))
    if turn is not None and (turn.step, turn.goal) == ("", goal.id):
        closed = ev.InterventionClosed(resolution=Reason("turn.retry"))
        return CommandResult(f"goal {goal.id} is planned again", (closed,))
    raise RefusedError(Reason("refused.nothing-to-retry", goal=goal.id))


@handles(cmd.GiveResult)
def _give_result(state: AgentState, command: cmd.GiveResult, registry: ToolRegistry) -> CommandResult:
    plan, step = _editable(state, command.step)
    believed = _belief(f"result.{step.id}", command.result)
    asked = step.op is Op.THINK and state.intervention is not None and not state.intervention.kind
    if asked:  # the thinker gets its answer, and decides on
        again = _ended(plan, step, StepStatus.PLANNED)
        closed = close_turn(state, step=step.id, resolution=Reason("turn.answered", result=command.result))
        return CommandResult(f"answered {step.id}", (believed, again, *closed))
    done = _ended(plan, step, StepStatus.COMPLETED, Reason("step.by-hand", result=command.result))
    closed = close_turn(state, step=step.id, resolution=Reason("turn.result"))
    return CommandResult(f"step {step.id} settled by hand", (believed, done, *closed))


@handles(cmd.ReplacePlan)
def _replace_plan(state: AgentState, command: cmd.ReplacePlan, registry: ToolRegistry) -> CommandResult:
    goal = open_goal(state, command.goal)
    refuse(state.open_child(goal.id) is not None, Reason("refused.sub-goal-open"))
    if state.acting and state.action and state.action.goal == goal.id:
        raise RefusedError(Reason("refused.plan-action-running"))
    if command.plan.lstrip().startswith(("[", "{")):
        try:
            drafted = parse_plan(command.plan)
        except PlanSyntaxError as error:
            raise RefusedError(Reason("refused.not-a-plan", error=str(error))) from None
    else:
        text = command.plan.strip()
        drafted = (
            PlanStep("1", text, op=Op.ACHIEVE, args={"goal": text}, provenance=Provenance(by="operator")),
        )
    _check(drafted, registry)
    old = state.plans.get(goal.id)
    now = [step_line(step) for step in old.steps] if old else []
    refuse_overwriting(command.was, now, f"the plan of {goal.id}", state.editors.get(goal.id, ""))
    done = tuple(step for step in old.steps if step.status.terminal) if old else ()
    steps = (*done, *renumber(state, drafted))
    plan_id = old.id if old else fresh_id(state, "p")
    revised = ev.PlanRevised(plan=plan_id, goal=goal.id, change=Reason("plan.replaced"), steps=steps)
    return CommandResult(
        f"plan of {goal.id} replaced: {len(drafted)} steps",
        (revised, *close_turn(state, goal=goal.id, resolution=Reason("turn.plan-replaced"))),
    )


@handles(cmd.SetBreakpoint)
def _set_breakpoint(state: AgentState, command: cmd.SetBreakpoint, registry: ToolRegistry) -> CommandResult:
    if not command.on:
        if command.step not in state.breakpoints:
            return CommandResult(f"no breakpoint on {command.step}")
        cleared = ev.BreakpointCleared(step=command.step)
        return CommandResult(f"breakpoint on {command.step} cleared", (cleared,))
    _plan, step = step_of(state, command.step)
    refuse(step.status.terminal, Reason("refused.step-ended", step=step.id, status=step.status))
    if step.id in state.breakpoints:
        return CommandResult(f"there is a breakpoint on {step.id} already")
    return CommandResult(f"breakpoint on {step.id}", (ev.BreakpointSet(step=step.id),))


# ------------------------------------------------------------------ intervention, tools, beliefs


@handles(cmd.Intervene)
def _intervene(state: AgentState, command: cmd.Intervene, registry: ToolRegistry) -> CommandResult:
    if state.intervention is not None:
        return CommandResult("it is your turn already")
    step = state.step
    opened = ev.InterventionOpened(
        goal=state.current_goal, step=step.id if step else "", reason=Reason("turn.taken")
    )
    return CommandResult("your turn; the agent waits", (opened,))


@handles(cmd.HandBack)
def _hand_back(state: AgentState, command: cmd.HandBack, registry: ToolRegistry) -> CommandResult:
    turn = needed(state.intervention, Reason("refused.nothing-to-hand-back"))
    events: list[ev.Payload] = []
    located = state.find_step(turn.step) if turn.step else None
    if located is not None and located[1].status is StepStatus.FAILED:
        plan, step = located
        events.append(_ended(plan, step, StepStatus.PLANNED, step.summary))
    events.append(ev.InterventionClosed(resolution=Reason("turn.handed-back")))
    again = f"; {turn.step} will be tried again" if len(events) > 1 else ""
    return CommandResult(f"handed back{again}", tuple(events))


@handles(cmd.CallTool)
def _call_tool(state: AgentState, command: cmd.CallTool, registry: ToolRegistry) -> CommandResult:
    refuse(state.acting and state.action is not None and state.action.step, Reason("refused.action-running"))
    refuse(state.shell_taken, Reason("refused.shell-taken"))
    refuse((command.tool, command.command) == (SHELL_TOOL, SHELL_COMMAND), Reason("refused.use-take-shell"))
    refuse_frozen(state)
    problems = registry.validate(command.tool, command.command, command.args)
    refuse(problems, "; ".join(problem.message for problem in problems))
    if command.client and registry.get(command.tool).commands[command.command].operator_only:
        raise RefusedError(Reason("refused.operator-only", command=command.command))
    queued = ev.OperatorActionQueued(**fields_of(command, "tool", "command", "args", "client", "wait_s"))
    whose = f"for {command.client}" if command.client else "as you"
    return CommandResult(f"{command.command} {whose}", (queued,))


@handles(cmd.DropCall)
def _drop_call(state: AgentState, command: cmd.DropCall, registry: ToolRegistry) -> CommandResult:
    waiting = any(request.client and request.event == command.call for request in state.requests)
    action = state.action
    if action is not None and action.client and action.queued == command.call:
        waiting = True
    refuse(not waiting, Reason("refused.no-client-call", call=command.call))
    return CommandResult("the call is dropped", (ev.CallDropped(queued=command.call),))


@handles(cmd.Believe)
def _believe(state: AgentState, command: cmd.Believe, registry: ToolRegistry) -> CommandResult:
    return CommandResult(f"{command.key} believed", (_belief(command.key, command.value),))


def _belief(key: str, value: Any) -> ev.BeliefAdded:
    return ev.BeliefAdded(key=key, value=value, confidence=1.0, source=BeliefSource.OPERATOR)


@handles(cmd.Forget)
def _forget(state: AgentState, command: cmd.Forget, registry: ToolRegistry) -> CommandResult:
    refuse(command.key not in state.beliefs, Reason("refused.not-believed", key=command.key))
    removed = ev.BeliefRemoved(key=command.key, reason=Reason("belief.operator"))
    return CommandResult(f"{command.key} forgotten", (removed,))
