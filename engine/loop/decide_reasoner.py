"""What follows from commands to an agent whose goals an AgentSpeak(L) program pursues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.bdi.parser import parse_literal
from engine.bdi.problems import ProgramError
from engine.bdi.terms import is_ground
from engine.bdi.views import IntentionView
from engine.domain import commands as cmd
from engine.domain.goal import GoalStatus
from engine.domain.reasoning import Generation, GenerationStage, Stride
from engine.domain.state import AgentState, RunState
from engine.journal import events as ev
from engine.loop.decide_breaks import change_break
from engine.loop.decide_session import may_go_on
from engine.loop.decide_stop import refuse_frozen
from engine.loop.outcome import Outcome, RefusedError, fresh_id
from engine.reasoner.breakpoints import check_pattern
from engine.reasoner.generation import read_plans
from engine.reasoner.inputs import read_goal
from engine.tools.registry import ToolRegistry


def _adopt_goal(state: AgentState, said: cmd.AdoptGoal, registry: ToolRegistry) -> Outcome:
    try:
        read_goal(said.text)
    except ProgramError as error:
        raise RefusedError(
            f"this is no goal of an AgentSpeak(L) agent, such as reach(home): {error}"
        ) from None
    goal = fresh_id(state, "g")
    adopted = ev.GoalAdopted(goal=goal, text=said.text.strip(), priority=said.priority)
    return Outcome(f"goal {goal} adopted", (adopted,))


def _give_up(status: GoalStatus) -> Callable[[AgentState, Any, ToolRegistry], Outcome]:
    def decide(state: AgentState, said: Any, registry: ToolRegistry) -> Outcome:
        goal = state.goals.get(said.goal)
        if goal is None or goal.status.terminal:
            known = ", ".join(goal.id for goal in state.open_goals) or "none"
            raise RefusedError(f"there is no open goal '{said.goal}'; open goals: {known}")
        ended = ev.GoalEnded(goal=goal.id, status=status, reason=said.reason)
        return Outcome(f"goal {goal.id} {status}", (ended,))

    return decide


def _step(state: AgentState, said: cmd.Step, registry: ToolRegistry) -> Outcome:
    may_go_on(state)
    refuse_frozen(state)
    if state.run is RunState.RUNNING and state.acting:
        return Outcome("paused; the running action is this step", (ev.AgentPaused(reason="stepping"),))
    if not state.has_work:
        raise RefusedError("nothing to step: no intention can run and no event waits")
    stride = _stride(state, said)
    words = {"step": "one body step", "over": "over the pending step", "out": "until its plan is through"}
    return Outcome(words[stride.scope], (ev.StepGranted(stride=stride),))


def _stride(state: AgentState, said: cmd.Step) -> Stride:
    pending = state.mind.pending if state.mind is not None else None
    stepped = state.intentions.get(pending.intention) if pending is not None else None
    if said.scope == "step" or stepped is None:
        return Stride()
    depth = len(stepped.frames) + stepped.left_out + sum(frame.collapsed for frame in stepped.frames)
    return Stride(said.scope, stepped.id, depth if said.scope == "over" else depth - 1)


def _tell_belief(state: AgentState, said: cmd.TellBelief, registry: ToolRegistry) -> Outcome:
    try:
        literal = parse_literal(said.literal.strip().removesuffix("."), "the belief")
    except ProgramError as error:
        raise RefusedError(f"this is no belief: {error}") from None
    if not is_ground(literal):
        raise RefusedError("a belief has no variables here; put values in their places")
    told = ev.BeliefTold(literal=said.literal.strip().removesuffix("."), removed=said.removed)
    return Outcome(f"{'forgotten' if said.removed else 'believed'}: {told.literal}", (told,))


def _intention(state: AgentState, number: int) -> IntentionView:
    found = state.intentions.get(number)
    if found is None:
        known = ", ".join(str(one) for one in state.intentions) or "none"
        raise RefusedError(f"there is no intention {number}; intentions: {known}")
    return found


def _steer(state: AgentState, said: cmd.SteerIntention, registry: ToolRegistry) -> Outcome:
    intention = _intention(state, said.intention)
    if said.how == "suspend" and intention.state == "suspended":
        raise RefusedError(f"intention {intention.id} is suspended already")
    if said.how == "resume" and intention.state != "suspended":
        raise RefusedError(f"intention {intention.id} is not suspended; it is {intention.state}")
    reason = said.reason or f"{said.how} by the operator"
    steered = ev.IntentionSteered(intention=intention.id, how=said.how, reason=reason)
    done = {"suspend": "suspended", "resume": "goes on", "drop": "dropped", "fail": "made to fail"}
    return Outcome(f"intention {intention.id} {done[said.how]}", (steered,))


def _break_on(state: AgentState, said: cmd.BreakOn, registry: ToolRegistry) -> Outcome:
    if problem := check_pattern(said.on, said.pattern):
        raise RefusedError(problem)
    ident = fresh_id(state, "b")
    changed = ev.MindBreakpointChanged(breakpoint=ident, on=said.on, pattern=said.pattern.strip())
    return Outcome(f"breakpoint {ident} on {said.on} {said.pattern.strip()}", (changed,))


def _change_break(state: AgentState, said: cmd.ChangeBreak, registry: ToolRegistry) -> Outcome:
    known = state.mind_breakpoints.get(said.breakpoint)
    if known is None:
        return change_break(state, said, registry)
    changed = ev.MindBreakpointChanged(
        breakpoint=known.id, on=known.on, pattern=known.pattern, enabled=said.enabled, cleared=said.cleared
    )
    what = "cleared" if said.cleared else ("on" if said.enabled else "off")
    return Outcome(f"breakpoint {known.id} {what}", (changed,))


def _set_tracing(state: AgentState, said: cmd.SetTracing, registry: ToolRegistry) -> Outcome:
    if state.tracing == said.on:
        return Outcome(f"tracing is {'on' if said.on else 'off'} already")
    return Outcome(f"tracing is {'on' if said.on else 'off'}", (ev.TracingSet(on=said.on),))


def _held(state: AgentState, ident: str) -> Generation:
    found = state.generations.get(ident)
    if found is None or found.stage is not GenerationStage.HELD:
        held = [one.id for one in state.generations.values() if one.stage is GenerationStage.HELD]
        raise RefusedError(
            f"no plans of '{ident}' wait for approval; those that do: {', '.join(held) or 'none'}"
        )
    return found


def _decide_plans(state: AgentState, said: cmd.DecidePlans, registry: ToolRegistry) -> Outcome:
    held = _held(state, said.generation)
    if said.decision == "approve":
        problems = read_plans(said.text, held.goal).problems if said.text.strip() else ()
        if problems:
            raise RefusedError("; ".join(problems[:5]))
        if not said.text.strip() and not any(plan.accepted for plan in held.plans):
            raise RefusedError("none of these plans can be installed as it is; edit them, or reject them")
    decided = ev.PlansDecided(generation=held.id, decision=said.decision, text=said.text)
    words = {"approve": "installed", "reject": "rejected", "again": "asked for once more"}
    return Outcome(f"plans for {held.goal} {words[said.decision]}", (decided,))


def _no_plan_to_edit(state: AgentState, said: cmd.Command, registry: ToolRegistry) -> Outcome:
    raise RefusedError(
        "the plans of this agent are those of its program: steer its intentions, beliefs and goals"
    )


HANDLERS: dict[type[cmd.Command], Callable[[AgentState, Any, ToolRegistry], Outcome]] = {
    cmd.AdoptGoal: _adopt_goal,
    cmd.DropGoal: _give_up(GoalStatus.DROPPED),
    cmd.AbortGoal: _give_up(GoalStatus.FAILED),
    cmd.Step: _step,
    cmd.TellBelief: _tell_belief,
    cmd.SteerIntention: _steer,
    cmd.BreakOn: _break_on,
    cmd.ChangeBreak: _change_break,
    cmd.SetTracing: _set_tracing,
    cmd.DecidePlans: _decide_plans,
    **dict.fromkeys(
        (
            *(cmd.ChangeGoal, cmd.EditStep, cmd.InsertStep, cmd.DeleteStep, cmd.MoveStep, cmd.SkipStep),
            *(cmd.RetryStep, cmd.GiveResult, cmd.ReplacePlan, cmd.AcceptPlan, cmd.RejectReplan),
        ),
        _no_plan_to_edit,
    ),
}
"""What an agent with a reasoner does otherwise than others, or alone."""
