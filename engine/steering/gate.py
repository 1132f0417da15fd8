"""The one gate: every action of every actor passes here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass

from engine.domain.approval import Answer, Call
from engine.domain.state import AgentState, RunState
from engine.steering.approvals import Verdict, held_replan, verdict
from engine.steering.breakpoints import Stand, stands_at


@dataclass(frozen=True, slots=True)
class Hold:
    """Why an action may not start now."""

    reason: str
    """In words, for the status line and the journal."""
    breakpoint: Stand | None = None
    """The breakpoints that are newly reached; the agent is then to be paused there."""
    asks: bool = False
    """True when the operator is to say whether it may go on."""
    verdict: Verdict | None = None
    """What becomes of the call, where that is what holds it."""


def hold(
    state: AgentState, *, step: str = "", trouble: Exception | None = None, call: Call | None = None
) -> Hold | None:
    """Why an action may not start in this state, or None when it may.

    Args:
        state: the agent's state at this moment.
        step: the plan step that the action belongs to; empty for an action of the operator, whom
            only a deleted agent and a broken journal hold, and for one of a client (`Call.client`), which
            is asked about as an agent's is.
        trouble: why the journal cannot record, when it cannot; then nothing acts.
        call: the call that would be made, once its arguments are settled; None where none is made yet.
    """
    if trouble is not None:
        return Hold(f"the journal cannot record: {trouble}")
    if state.deleted:
        return Hold("the agent was deleted")
    if state.rewinding is not None:
        return Hold("a rewind changes files")
    if not step:
        return _asked(state, call) if call is not None and call.client else None
    if state.run is RunState.STOPPED:
        return Hold(state.run_reason or "stopped")
    if state.intervention is not None:
        return Hold("the operator decides")
    if state.handover is not None:
        return Hold("the operator has not said what the agent is to know of their changes")
    if (stand := stands_at(state, step)) is not None:
        return Hold(stand.reason, stand)
    if state.run is not RunState.RUNNING and not state.grants:
        return Hold(state.run_reason or "paused")
    if held_replan(state, state.current_goal) is not None:
        return Hold("a re-plan waits for your acceptance", asks=True)
    return _asked(state, call) if call is not None else None


def _asked(state: AgentState, call: Call) -> Hold | None:
    """Whether the policies, rules and envelopes hold a call."""
    decided = verdict(state, call)
    if decided.allows:
        return None
    return Hold(f"{decided.answer}: {decided.why}", asks=decided.answer is Answer.ASK, verdict=decided)


def may_think(state: AgentState, *, free: bool) -> bool:
    """Whether the agent may perceive, deliberate and plan now.

    A paused agent plans only when thinking is free, so that the operator sees what it would do.
    """
    if state.deleted or state.run is RunState.STOPPED or state.rewinding is not None:
        return False
    if state.intervention is not None or state.handover is not None:
        return False
    return free or state.run is RunState.RUNNING or state.grants > 0
