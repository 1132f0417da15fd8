"""What follows from commands about goals, steps towards them, breakpoints, and how the agent thinks."""

from __future__ import annotations

from engine.agent.decisions.outcome import (
    CommandResult,
    RefusedError,
    close_turn,
    fresh_id,
    handles,
    needed,
    refuse,
    refuse_overwriting,
)
from engine.agent.decisions.sandbox import paused_in_step
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.beliefs import ResultDisputed
from engine.core.breakpoints import BREAKPOINTS_KEPT, BreakKind, read_break, write_break
from engine.core.goals import Goal, GoalStatus
from engine.core.metacognition import Bounds, MetaTask
from engine.core.plan import Op, PlanStep
from engine.core.reasoner import Stride
from engine.core.reasons import Reason
from engine.core.restored import RESTORED_KEPT
from engine.core.state import AgentState
from engine.tools.registry import ToolRegistry

SUBGOAL_LIMIT = 20
"""Goals inside one another; a recipe that achieves its own goal would otherwise never end."""


def open_goal(state: AgentState, goal_id: str) -> Goal:
    """The goal with this id.

    Raises:
        RefusedError: there is none, or it has ended.
    """
    known = ", ".join(goal.id for goal in state.open_goals) or "none"
    goal = needed(state.goals.get(goal_id), Reason("refused.goal-not-open", goal=goal_id, known=known))
    refuse(goal.status.terminal, Reason("refused.goal-ended", goal=goal_id, status=goal.status))
    return goal


@handles(cmd.AdoptGoal)
def _adopt_goal(state: AgentState, command: cmd.AdoptGoal, registry: ToolRegistry) -> CommandResult:
    text = command.text.strip()
    refuse(not text, Reason("refused.goal-without-text"))
    refuse(command.criteria and not state.config.replans, Reason("refused.criteria-need-model"))
    goal = fresh_id(state, "g")
    adopted = ev.GoalAdopted(goal=goal, text=text, priority=command.priority, criteria=command.criteria)
    return CommandResult(f"goal {goal} adopted", (adopted,))


@handles(cmd.HearMessage)
def _hear(state: AgentState, command: cmd.HearMessage, registry: ToolRegistry) -> CommandResult:
    refuse(
        command.performative != "achieve", Reason("refused.not-a-message", performative=command.performative)
    )
    text = command.content.removeprefix('"').removesuffix('"')
    return _adopt_goal(state, cmd.AdoptGoal(agent=command.agent, text=text), registry)


@handles(cmd.ChangeGoal)
def _change_goal(state: AgentState, command: cmd.ChangeGoal, registry: ToolRegistry) -> CommandResult:
    goal = open_goal(state, command.goal)
    text = (command.text or goal.text).strip()
    refuse_overwriting(
        command.was,
        goal.text.splitlines(),
        f"the text of {goal.id}",
        state.editors.get(f"text {goal.id}", ""),
    )
    refuse(not text, Reason("refused.goal-without-text"))
    priority = goal.priority if command.priority is None else command.priority
    if text != goal.text and state.acting and state.action and state.action.goal == goal.id:
        raise RefusedError(Reason("refused.goal-action-running"))
    change = ev.GoalChanged(goal=goal.id, text=text, priority=priority)
    reworded = Reason("turn.goal-reworded")
    closing = () if text == goal.text else close_turn(state, goal=goal.id, resolution=reworded)
    return CommandResult(f"goal {goal.id} changed", (change, *closing))


def end_goal(state: AgentState, goal: Goal, status: GoalStatus, reason: Reason) -> list[ev.Payload]:
    """The events that end a goal and every open sub-goal of it, deepest first."""
    events: list[ev.Payload] = []
    for child in state.children(goal.id):
        if not child.status.terminal:
            events += end_goal(state, child, status, reason)
    events.append(ev.GoalEnded(goal=goal.id, status=status, reason=reason))
    return events


def _serves(state: AgentState, goal: Goal) -> Goal:
    """The goal that is given up with this one: its root, or itself where no step of another waits for it."""
    while goal.parent is not None and goal.parent_step is not None:
        goal = state.goals[goal.parent]
    return goal


@handles(cmd.DropGoal, cmd.AbortGoal)
def _give_up(
    state: AgentState, command: cmd.DropGoal | cmd.AbortGoal, registry: ToolRegistry
) -> CommandResult:
    status = GoalStatus.DROPPED if isinstance(command, cmd.DropGoal) else GoalStatus.FAILED
    goal = _serves(state, open_goal(state, command.goal))
    refuse(state.acting and state.action and state.action.step, Reason("refused.action-running"))
    events = end_goal(state, goal, status, command.reason)
    ended = {event.goal for event in events if isinstance(event, ev.GoalEnded)}
    turn = state.intervention
    over = turn is not None and (
        not turn.goal or turn.goal in ended or _serves(state, state.goals[turn.goal]).id == goal.id
    )
    closing = (ev.InterventionClosed(resolution=Reason("turn.goal", status=status.value)),) if over else ()
    return CommandResult(f"goal {goal.id} {status}", (*events, *closing))


# ------------------------------------------------------------------ goals below goals


@handles(cmd.PushGoal)
def _push_goal(state: AgentState, command: cmd.PushGoal, registry: ToolRegistry) -> CommandResult:
    _check_planned(state)
    above = open_goal(state, command.goal)
    text = command.text.strip()
    refuse(not text, Reason("refused.goal-without-text"))
    _check_depth(state, above, 1)
    pushed = ev.GoalAdopted(goal=fresh_id(state, "g"), text=text, priority=above.priority, parent=above.id)
    return CommandResult(f"goal {pushed.goal} comes first, then {above.id} resumes", (pushed,))


@handles(cmd.MoveGoal)
def _move_goal(state: AgentState, command: cmd.MoveGoal, registry: ToolRegistry) -> CommandResult:
    _check_planned(state)
    goal = open_goal(state, command.goal)
    above = open_goal(state, command.parent) if command.parent else None
    refuse(
        goal.parent_step is not None,
        Reason("refused.step-waits", parent_step=goal.parent_step, parent=goal.parent, goal=goal.id),
    )
    refuse(goal.parent == (above.id if above else None), Reason("refused.goal-in-place", goal=goal.id))
    if above is not None and goal in state.lineage(above.id):
        raise RefusedError(Reason("refused.goal-circle", above=above.id, goal=goal.id))
    if state.acting and state.action and goal in state.lineage(state.action.goal):
        raise RefusedError(Reason("refused.goal-action-running"))
    if above is not None:
        _check_depth(state, above, _height(state, goal))
    where = f"below {above.id}" if above is not None else "to the roots"
    moved = ev.GoalMoved(goal=goal.id, parent=above.id if above is not None else None)
    return CommandResult(f"goal {goal.id} moved {where}", (moved,))


def _check_planned(state: AgentState) -> None:
    refuse(state.reasons, Reason("refused.goals-of-program"))


def _height(state: AgentState, goal: Goal) -> int:
    """How many goals lie one below the other from this one on."""
    below, height = [goal], 0
    while below:
        height += 1
        below = [child for goal_above in below for child in state.children(goal_above.id)]
    return height


def _check_depth(state: AgentState, above: Goal, height: int) -> None:
    if len(state.lineage(above.id)) + height > SUBGOAL_LIMIT:
        raise RefusedError(Reason("refused.goals-too-deep", limit=SUBGOAL_LIMIT))


# ------------------------------------------------------------------ breakpoints and steps


@handles(cmd.SetBreak)
def _set_break(state: AgentState, command: cmd.SetBreak, registry: ToolRegistry) -> CommandResult:
    spec = read_break(command.line)
    refuse(spec.kind is BreakKind.INTENTION and not state.reasons, Reason("refused.no-intentions-to-break"))
    known = next((point for point in state.points.values() if point.spec == spec), None)
    if known is not None and known.enabled:
        return CommandResult(f"there is a breakpoint {known.id} like this already")
    if known is not None:
        return CommandResult(f"breakpoint {known.id} on", (ev.BreakpointChanged(breakpoint=known.id),))
    if len(state.points) >= BREAKPOINTS_KEPT:
        raise RefusedError(Reason("refused.too-many-breakpoints", limit=BREAKPOINTS_KEPT))
    ident = fresh_id(state, "b")
    return CommandResult(
        f"breakpoint {ident}: {write_break(spec)}", (ev.BreakpointAdded(breakpoint=ident, spec=spec),)
    )


@handles(cmd.ChangeBreak)
def change_break(state: AgentState, command: cmd.ChangeBreak, registry: ToolRegistry) -> CommandResult:
    """Switch a breakpoint on or off, or clear it; those of a mind are not looked for."""
    ident = command.breakpoint
    if ident in state.breakpoints:
        refuse(not command.cleared, Reason("refused.step-breakpoint-not-switched", ident=ident))
        return CommandResult(f"breakpoint on {ident} cleared", (ev.BreakpointCleared(step=ident),))
    listed = ", ".join((*state.points, *state.mind_breakpoints, *state.breakpoints)) or "none"
    known = needed(state.points.get(ident), Reason("refused.no-breakpoint", ident=ident[:40], listed=listed))
    what = "cleared" if command.cleared else ("on" if command.enabled else "off")
    if not command.cleared and known.enabled == command.enabled:
        return CommandResult(f"breakpoint {ident} is {what} already")
    changed = ev.BreakpointChanged(breakpoint=ident, enabled=command.enabled, cleared=command.cleared)
    return CommandResult(f"breakpoint {ident} {what}", (changed,))


@handles(cmd.Step)
def _step(state: AgentState, command: cmd.Step, registry: ToolRegistry) -> CommandResult:
    if (paused := paused_in_step(state)) is not None:
        return paused
    refuse(not state.open_goals, Reason("refused.no-open-goal-to-step"))
    if not command.strides:
        return CommandResult("one action", (ev.StepGranted(),))
    goal = _pursued(state)
    stride = _stride(state, goal, command.scope)
    words = {
        "step": "one action",
        "over": f"over {stride.step} and all below it",
        "out": f"until {stride.goal} is through",
    }
    return CommandResult(words[stride.scope], (ev.StepGranted(stride=stride),))


def _pursued(state: AgentState) -> Goal:
    """The goal that deliberation chooses; one is open."""
    goal = next(goal for goal in state.root_goals() if not goal.status.terminal)
    while (child := state.open_child(goal.id)) is not None:
        goal = child
    return goal


def _stride(state: AgentState, goal: Goal, scope: str) -> Stride:
    plan = state.plans.get(goal.id)
    step: PlanStep | None = plan.current if plan is not None else None
    ident = step.id if step is not None else ""
    if scope == "out":
        return Stride("out", goal=goal.id, step=ident)
    if scope == "over" and step is not None and step.op is Op.ACHIEVE:
        return Stride("over", goal=goal.id, step=ident)
    return Stride(goal=goal.id, step=ident)


# ------------------------------------------------------------------ disputes, metacognition, guidance


@handles(cmd.Dispute)
def _dispute(state: AgentState, command: cmd.Dispute, registry: ToolRegistry) -> CommandResult:
    stream, _, version = command.event.rpartition(":")
    if stream != state.agent_id or not (version.isascii() and version.isdigit() and len(version) < 19):
        raise RefusedError(Reason("refused.no-event", event=command.event, agent=state.agent_id))
    ref = f"{stream}:{int(version)}"
    if not 0 < int(version) <= state.version:
        newest = {"agent": state.agent_id, "version": state.version}
        raise RefusedError(Reason("refused.not-happened", ref=ref, **newest))
    if command.lifted:
        if ref not in state.disputed:
            known = ", ".join(state.disputed) or "none"
            raise RefusedError(Reason("refused.not-marked", ref=ref, known=known))
        return CommandResult(f"{ref} is no longer marked as wrong", (ResultDisputed(event=ref, lifted=True),))
    if state.disputed.get(ref) == command.reason:
        return CommandResult(f"{ref} is marked as wrong already")
    return CommandResult(f"{ref} is marked as wrong", (ResultDisputed(event=ref, reason=command.reason),))


def _switched_on(state: AgentState) -> None:
    refuse(not state.meta.on, Reason("refused.metacognition-off"))


@handles(cmd.ForceMeta)
def _force(state: AgentState, command: cmd.ForceMeta, registry: ToolRegistry) -> CommandResult:
    _switched_on(state)
    task = MetaTask(command.task)
    refuse(state.run is RunState.STOPPED, Reason("refused.agent-stopped"))
    if (job := state.meta.doing(task)) is not None:
        return CommandResult(f"{task} runs already: {job.id}")
    refuse(task.needs_memory and not state.meta.memory, Reason("refused.job-needs-memory", task=task))
    refuse(task.needs_memory and not state.goals, Reason("refused.job-needs-goal", task=task))
    return CommandResult(f"{task} begins now", (ev.MetaForced(task=task),))


@handles(cmd.VetoMeta)
def _veto(state: AgentState, command: cmd.VetoMeta, registry: ToolRegistry) -> CommandResult:
    _switched_on(state)
    task = MetaTask(command.task)
    if command.lifted == (task not in state.meta.vetoed):
        return CommandResult(f"{task} is {'allowed' if command.lifted else 'vetoed'} already")
    vetoed = ev.MetaVetoed(task=task, lifted=command.lifted)
    if command.lifted:
        return CommandResult(f"{task} may be begun by itself again", (vetoed,))
    job = state.meta.doing(task)
    cut = (ev.BackgroundCancelAsked(job=job.id),) if job is not None else ()
    running = f"; {job.id} is cut off" if job is not None else ""
    return CommandResult(f"{task} is not begun by itself any more{running}", (vetoed, *cut))


@handles(cmd.CancelBackground)
def _cancel(state: AgentState, command: cmd.CancelBackground, registry: ToolRegistry) -> CommandResult:
    known = ", ".join(f"{other.id} {other.task}" for other in state.meta.running) or "none"
    why = Reason("refused.no-background-job", job=command.job, known=known)
    job = needed(state.meta.job(command.job), why)
    return CommandResult(f"{job.id} {job.task} is cut off", (ev.BackgroundCancelAsked(job=job.id),))


@handles(cmd.SetThresholds)
def _thresholds(state: AgentState, command: cmd.SetThresholds, registry: ToolRegistry) -> CommandResult:
    _switched_on(state)
    settings, notes = state.meta.settings, []

    def within(name: str, target: int | None, bounds: Bounds) -> int | None:
        if target is None:
            return None
        value = bounds.clamp(target)
        clamped = f" (not {target}: it goes from {bounds.low} to {bounds.high})" if value != target else ""
        notes.append(f"{name} after {value}{clamped}")
        return value

    reflection = within("reflection", command.reflection, settings.reflection)
    consolidation = within("consolidation", command.consolidation, settings.consolidation)
    refuse(not notes, Reason("refused.no-threshold-named"))
    changed = ev.ThresholdsSet(reflection=reflection, consolidation=consolidation)
    return CommandResult("; ".join(notes), (changed,))


_TAKEN = {
    "": "in the next prompt",
    "now": "in the next prompt; a thought that is under way is cut off, an action is not",
    "after": "in a prompt once the action or thought that is under way is over",
    "plan": "in the prompt for the next plan",
}


@handles(cmd.Guide)
def _guide(state: AgentState, command: cmd.Guide, registry: ToolRegistry) -> CommandResult:
    text = command.text.strip()
    refuse(not text, Reason("refused.guidance-without-text"))
    refuse(not state.config.replans or state.reasons, Reason("refused.no-thinker-for-guidance"))
    return CommandResult(_TAKEN[command.when], (ev.GuidanceGiven(text=text, when=command.when),))


@handles(cmd.RestoreContext)
def _restore(state: AgentState, command: cmd.RestoreContext, registry: ToolRegistry) -> CommandResult:
    refuse(not state.config.replans or state.reasons, Reason("refused.no-thinker-for-guidance"))
    others = [each.what for each in state.restored if each.what != command.what]
    refuse(not command.text, Reason("refused.nothing-to-restore", what=command.what))
    refuse(len(others) >= RESTORED_KEPT, Reason("refused.too-much-restored", what=", ".join(others)))
    fields = {"what": command.what, "about": command.about, "text": command.text, "tokens": command.tokens}
    size = f"about {command.tokens:,} tokens; unpin {command.what} lets it go"
    return CommandResult(f"{command.about} is in the next prompts: {size}", (ev.ContextRestored(**fields),))


@handles(cmd.ReleaseContext)
def _release(state: AgentState, command: cmd.ReleaseContext, registry: ToolRegistry) -> CommandResult:
    known = [each.what for each in state.restored]
    refuse(
        command.what not in known,
        Reason("refused.not-restored", what=command.what, known=", ".join(known) or "nothing"),
    )
    return CommandResult(f"{command.what} is in no prompt any more", (ev.ContextReleased(what=command.what),))


@handles(cmd.AddNote)
def _note(state: AgentState, command: cmd.AddNote, registry: ToolRegistry) -> CommandResult:
    text = command.text.strip()
    refuse(not text, Reason("refused.note-without-text"))
    return CommandResult("noted", (ev.NoteAdded(text=text),))
