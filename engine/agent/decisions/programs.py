"""What commands lead to for an agent whose goals an AgentSpeak(L) program pursues, where that differs."""

from __future__ import annotations

from engine.agent.decisions.goals import change_break
from engine.agent.decisions.outcome import (
    CommandResult,
    RefusedError,
    fresh_id,
    handles_for_programs,
    needed,
    refuse,
)
from engine.agent.decisions.sandbox import paused_in_step
from engine.agent.reasoner.actions import read_goal
from engine.agent.reasoner.plan_generation import read_plans
from engine.agent.reasoner.run import check_pattern
from engine.bdi.errors import ProgramError
from engine.bdi.intentions import Performative
from engine.bdi.parser import parse_literal
from engine.bdi.printer import quoted
from engine.bdi.rewriting import is_ground
from engine.bdi.trace import IntentionView
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.goals import GoalStatus
from engine.core.reasoner import Generation, GenerationStage, Stride
from engine.core.reasons import Reason
from engine.core.state import AgentState
from engine.tools.registry import ToolRegistry
from engine.value import fields_of


@handles_for_programs(cmd.AdoptGoal)
def _adopt_goal(state: AgentState, command: cmd.AdoptGoal, registry: ToolRegistry) -> CommandResult:
    try:
        read_goal(command.text)
    except ProgramError as error:
        why = f"this agent takes goals such as: goal reach(home); {error}"
        raise RefusedError(why) from None
    goal = fresh_id(state, "g")
    adopted = ev.GoalAdopted(goal=goal, text=command.text.strip(), priority=command.priority)
    return CommandResult(f"goal {goal} adopted", (adopted,))


@handles_for_programs(cmd.DropGoal, cmd.AbortGoal)
def _end_goal(
    state: AgentState, command: cmd.DropGoal | cmd.AbortGoal, registry: ToolRegistry
) -> CommandResult:
    status = GoalStatus.DROPPED if isinstance(command, cmd.DropGoal) else GoalStatus.FAILED
    goal = state.goals.get(command.goal)
    if goal is None or goal.status.terminal:
        known = ", ".join(goal.id for goal in state.open_goals) or "none"
        raise RefusedError(Reason("refused.no-open-goal", goal=command.goal, known=known))
    ended = ev.GoalEnded(goal=goal.id, status=status, reason=command.reason)
    return CommandResult(f"goal {goal.id} {status}", (ended,))


@handles_for_programs(cmd.Step)
def _step(state: AgentState, command: cmd.Step, registry: ToolRegistry) -> CommandResult:
    if (paused := paused_in_step(state)) is not None:
        return paused
    refuse(not state.has_work, Reason("refused.no-intention-to-step"))
    stride = _stride(state, command)
    words = {"step": "one body step", "over": "over the pending step", "out": "until its plan is through"}
    return CommandResult(words[stride.scope], (ev.StepGranted(stride=stride),))


def _stride(state: AgentState, command: cmd.Step) -> Stride:
    pending = state.mind.pending if state.mind is not None else None
    stepped = state.intentions.get(pending.intention) if pending is not None else None
    asks = pending is not None and command.plans and pending.step.lstrip(".").startswith("generate_plan(")
    scope = "over" if asks and command.scope == "step" else command.scope
    if scope == "step" or stepped is None:
        return Stride()
    depth = len(stepped.frames) + stepped.left_out + sum(frame.collapsed for frame in stepped.frames)
    return Stride(scope, stepped.id, depth if scope == "over" else depth - 1)


@handles_for_programs(cmd.TellBelief)
def _tell_belief(state: AgentState, command: cmd.TellBelief, registry: ToolRegistry) -> CommandResult:
    try:
        literal = parse_literal(command.literal.strip().removesuffix("."), "the belief")
    except ProgramError as error:
        raise RefusedError(Reason("refused.not-a-belief", error=str(error))) from None
    refuse(not is_ground(literal), Reason("refused.belief-with-variables"))
    belief = ev.BeliefTold(literal=command.literal.strip().removesuffix("."), removed=command.removed)
    return CommandResult(f"{'forgotten' if command.removed else 'believed'}: {belief.literal}", (belief,))


@handles_for_programs(cmd.HearMessage)
def _hear(state: AgentState, command: cmd.HearMessage, registry: ToolRegistry) -> CommandResult:
    refuse(
        command.performative not in set(Performative),
        Reason("refused.not-a-message", performative=command.performative),
    )
    heard = ev.MessageHeard(**command.model_dump(include=set(ev.MessageHeard.model_fields)))
    return CommandResult(f"heard from {command.sender}", (heard,))


@handles_for_programs(cmd.Guide)
def _say(state: AgentState, command: cmd.Guide, registry: ToolRegistry) -> CommandResult:
    """Tell a program, which may have plans for the belief; said again, it is another event."""
    text = command.text.strip()
    refuse(not text, Reason("refused.guidance-without-text"))
    literal = f"operator_says({quoted(text)})"
    events = (ev.GuidanceGiven(text=text, when=command.when), ev.BeliefTold(literal=literal))
    again = (ev.BeliefTold(literal=literal, removed=True),) if literal in state.held_beliefs else ()
    return CommandResult(f"believed: {literal}[source(operator)]", (*again, *events))


def _intention(state: AgentState, number: int) -> IntentionView:
    known = ", ".join(str(ident) for ident in state.intentions) or "none"
    return needed(state.intentions.get(number), Reason("refused.no-intention", number=number, known=known))


@handles_for_programs(cmd.SteerIntention)
def _steer(state: AgentState, command: cmd.SteerIntention, registry: ToolRegistry) -> CommandResult:
    intention = _intention(state, command.intention)
    if command.how == "suspend" and intention.state == "suspended":
        raise RefusedError(Reason("refused.already-suspended", intention=intention.id))
    if command.how == "resume" and intention.state != "suspended":
        raise RefusedError(Reason("refused.not-suspended", intention=intention.id, state=intention.state))
    reason = command.reason or Reason("mind.steered", how=command.how)
    steered = ev.IntentionSteered(intention=intention.id, how=command.how, reason=reason)
    done = {"suspend": "suspended", "resume": "resumed", "drop": "dropped", "fail": "made to fail"}
    return CommandResult(f"intention {intention.id} {done[command.how]}", (steered,))


@handles_for_programs(cmd.BreakOn)
def _break_on(state: AgentState, command: cmd.BreakOn, registry: ToolRegistry) -> CommandResult:
    if problem := check_pattern(command.on, command.pattern):
        raise RefusedError(problem)
    ident = fresh_id(state, "b")
    changed = ev.MindBreakpointChanged(breakpoint=ident, on=command.on, pattern=command.pattern.strip())
    return CommandResult(f"breakpoint {ident} on {command.on} {command.pattern.strip()}", (changed,))


@handles_for_programs(cmd.ChangeBreak)
def _change_break(state: AgentState, command: cmd.ChangeBreak, registry: ToolRegistry) -> CommandResult:
    known = state.mind_breakpoints.get(command.breakpoint)
    if known is None:
        return change_break(state, command, registry)
    about = {**fields_of(known, "on", "pattern"), **fields_of(command, "enabled", "cleared")}
    changed = ev.MindBreakpointChanged(breakpoint=known.id, **about)
    what = "cleared" if command.cleared else ("on" if command.enabled else "off")
    return CommandResult(f"breakpoint {known.id} {what}", (changed,))


@handles_for_programs(cmd.SetTracing)
def _set_tracing(state: AgentState, command: cmd.SetTracing, registry: ToolRegistry) -> CommandResult:
    if state.tracing == command.on:
        return CommandResult(f"tracing is {'on' if command.on else 'off'} already")
    return CommandResult(f"tracing is {'on' if command.on else 'off'}", (ev.TracingSet(on=command.on),))


def _held(state: AgentState, ident: str) -> Generation:
    generation = state.generations.get(ident)
    if generation is None or generation.stage is not GenerationStage.HELD:
        held = [other.id for other in state.generations.values() if other.stage is GenerationStage.HELD]
        raise RefusedError(Reason("refused.no-plans-wait", ident=ident, listed=", ".join(held) or "none"))
    return generation


@handles_for_programs(cmd.DecidePlans)
def _decide_plans(state: AgentState, command: cmd.DecidePlans, registry: ToolRegistry) -> CommandResult:
    held = _held(state, command.generation)
    if command.decision == "approve":
        problems = read_plans(command.text, held.goal)[1] if command.text.strip() else ()
        refuse(problems, "; ".join(problems[:5]))
        if not command.text.strip() and not any(plan.accepted for plan in held.plans):
            raise RefusedError(Reason("refused.plans-not-installable"))
    decided = ev.PlansDecided(generation=held.id, decision=command.decision, text=command.text)
    words = {"approve": "installed", "reject": "rejected", "again": "asked for once more"}
    return CommandResult(f"plans for {held.goal} {words[command.decision]}", (decided,))


@handles_for_programs(
    *(cmd.ChangeGoal, cmd.EditStep, cmd.InsertStep, cmd.DeleteStep, cmd.MoveStep, cmd.SkipStep),
    *(cmd.RetryStep, cmd.GiveResult, cmd.ReplacePlan, cmd.AcceptPlan, cmd.RejectReplan),
)
def _no_plan_to_edit(state: AgentState, command: cmd.Command, registry: ToolRegistry) -> CommandResult:
    raise RefusedError(Reason("refused.plans-of-program"))
