"""What follows from stopping an agent in grades, and from thawing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.domain import commands as cmd
from engine.domain.state import AgentState, RunState
from engine.domain.stopping import StopGrade
from engine.journal import events as ev
from engine.loop.outcome import Outcome, RefusedError
from engine.tools.registry import ToolRegistry

_SAID = {
    StopGrade.HOLD: "held",
    StopGrade.CUT: "held, its model cut off",
    StopGrade.CANCEL: "held, its action cancelled",
    StopGrade.FREEZE: "frozen",
}
_JOBS = {StopGrade.FREEZE: "frozen", StopGrade.KILL: "ended"}


def _stop(state: AgentState, said: cmd.Stop, registry: ToolRegistry) -> Outcome:
    grade = StopGrade(said.grade)
    if _stands(state, grade):
        return Outcome(_already(state))
    if grade is StopGrade.AFTER:
        return _after_this_step(state)
    if grade is StopGrade.KILL:
        running = f"; {state.action.command} is cut off" if state.acting and state.action else ""
        return Outcome(
            f"stopped{running}{jobs_text(state, _JOBS[grade])}", (ev.AgentStopped(reason=said.reason),)
        )
    reason = f"{_SAID[grade]} by the operator"
    message = f"{_SAID[grade]}{jobs_text(state, _JOBS.get(grade, 'go on'))}"
    return Outcome(message, (ev.AgentHeld(grade=grade, reason=reason),))


def _stands(state: AgentState, grade: StopGrade) -> bool:
    """Whether all that the grade stops was stopped before, as far as the state can tell."""
    if grade is StopGrade.KILL:
        idle = state.action is None and not state.requests and not state.running_jobs
        return state.run is RunState.STOPPED and idle
    if state.run is RunState.STOPPED and grade.rank <= StopGrade.CUT.rank:
        return True
    if state.run is RunState.STOPPED:  # what the operator started then may run all the same
        jobs = state.running_jobs if grade is StopGrade.FREEZE else ()
        return not (state.acting or state.requests or jobs) or (state.frozen and grade is StopGrade.FREEZE)
    if state.run is RunState.RUNNING or state.grants or (state.requests and grade is not StopGrade.AFTER):
        return False
    if grade.rank <= StopGrade.HOLD.rank:
        return True
    if grade is StopGrade.FREEZE:
        return state.frozen
    cut = state.held != "" and StopGrade(state.held).rank >= StopGrade.CUT.rank and not state.meta.running
    return cut and not (grade is StopGrade.CANCEL and state.acting)


def _already(state: AgentState) -> str:
    if state.run is RunState.STOPPED:
        return "already stopped"
    return "already frozen" if state.frozen else f"held already: {state.run_reason or 'by you'}"


def _after_this_step(state: AgentState) -> Outcome:
    """Let what is under way be finished; a step that failed is not tried again before the agent goes on."""
    if state.grants and state.run is RunState.PAUSED:
        return Outcome("already held after this step")
    waits = state.intervention or state.handover or state.retry or state.returned or state.shell_taken
    begun = state.has_work and not state.acting and not waits
    if begun:
        return Outcome("held after this step", (ev.StepGranted(),))
    message = f"held when {state.action.command} has ended" if state.acting and state.action else "held"
    return Outcome(f"{message}{jobs_text(state, 'go on')}", (ev.AgentPaused(reason="held by the operator"),))


def _thaw(state: AgentState, said: cmd.Thaw, registry: ToolRegistry) -> Outcome:
    if not state.frozen:
        return Outcome("nothing is frozen")
    return Outcome("thawed; the agent is held until you let it run", (ev.AgentThawed(),))


def refuse_frozen(state: AgentState) -> None:
    """Refuse while the agent's processes are frozen."""
    if state.frozen:
        raise RefusedError("its processes are frozen: thaw lets them go on, run the agent too")


def jobs_text(state: AgentState, what: str) -> str:
    """What becomes of the background jobs, for the end of a receipt; empty when none runs."""
    count = len(state.running_jobs)
    return f"; {count} background job{'s' * (count > 1)}: {what}" if count else ""


HANDLERS: dict[type[cmd.Command], Callable[[AgentState, Any, ToolRegistry], Outcome]] = {
    cmd.Stop: _stop,
    cmd.Thaw: _thaw,
}
