"""What follows from commands about breakpoints and steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.domain import commands as cmd
from engine.domain.break_lines import BreakError, read_break, write_break
from engine.domain.breakpoints import BREAKPOINTS_KEPT, BreakKind
from engine.domain.goal import Goal
from engine.domain.plan import Op, PlanStep
from engine.domain.reasoning import Stride
from engine.domain.state import AgentState, RunState
from engine.journal import events as ev
from engine.loop.decide_session import may_go_on
from engine.loop.decide_stop import refuse_frozen
from engine.loop.outcome import Outcome, RefusedError, fresh_id
from engine.tools.registry import ToolRegistry


def _set_break(state: AgentState, said: cmd.SetBreak, registry: ToolRegistry) -> Outcome:
    try:
        spec = read_break(said.line)
    except BreakError as error:
        raise RefusedError(str(error)) from None
    if spec.kind is BreakKind.INTENTION and not state.reasons:
        raise RefusedError(
            "only an agent with a program has intentions; for this one: break goal, break plan"
        )
    known = next((one for one in state.points.values() if one.spec == spec), None)
    if known is not None and known.enabled:
        return Outcome(f"there is a breakpoint {known.id} like this already")
    if known is not None:
        return Outcome(f"breakpoint {known.id} on", (ev.BreakpointChanged(breakpoint=known.id),))
    if len(state.points) >= BREAKPOINTS_KEPT:
        raise RefusedError(f"there are {BREAKPOINTS_KEPT} breakpoints already: clear one, breaks ID clear")
    ident = fresh_id(state, "b")
    return Outcome(
        f"breakpoint {ident}: {write_break(spec)}", (ev.BreakpointAdded(breakpoint=ident, spec=spec),)
    )


def change_break(state: AgentState, said: cmd.ChangeBreak, registry: ToolRegistry) -> Outcome:
    """Switch a breakpoint on or off, or clear it; those of a mind are not looked for."""
    ident = said.breakpoint
    if ident in state.breakpoints:
        if not said.cleared:
            raise RefusedError(f"a breakpoint on a step is there or not; clear it: breaks {ident} clear")
        return Outcome(f"breakpoint on {ident} cleared", (ev.BreakpointCleared(step=ident),))
    known = state.points.get(ident)
    if known is None:
        listed = ", ".join((*state.points, *state.mind_breakpoints, *state.breakpoints)) or "none"
        raise RefusedError(f"there is no breakpoint '{ident[:40]}'; breakpoints: {listed}")
    what = "cleared" if said.cleared else ("on" if said.enabled else "off")
    if not said.cleared and known.enabled == said.enabled:
        return Outcome(f"breakpoint {ident} is {what} already")
    changed = ev.BreakpointChanged(breakpoint=ident, enabled=said.enabled, cleared=said.cleared)
    return Outcome(f"breakpoint {ident} {what}", (changed,))


def _step(state: AgentState, said: cmd.Step, registry: ToolRegistry) -> Outcome:
    may_go_on(state)
    refuse_frozen(state)
    if state.run is RunState.RUNNING and state.acting:
        return Outcome("paused; the running action is this step", (ev.AgentPaused(reason="stepping"),))
    if not state.open_goals:
        raise RefusedError("nothing to step: the agent has no open goal")
    if not said.strides:
        return Outcome("one action", (ev.StepGranted(),))
    goal = _pursued(state)
    stride = _stride(state, goal, said.scope)
    words = {
        "step": "one action",
        "over": f"over {stride.step} and all below it",
        "out": f"until {stride.goal} is through",
    }
    return Outcome(words[stride.scope], (ev.StepGranted(stride=stride),))


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


HANDLERS: dict[type[cmd.Command], Callable[[AgentState, Any, ToolRegistry], Outcome]] = {
    cmd.SetBreak: _set_break,
    cmd.ChangeBreak: change_break,
    cmd.Step: _step,
}
