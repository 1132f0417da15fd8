"""Where breakpoints hold an agent: before a step, or before whatever would come next.

The fold says which breakpoints have come (`engine.journal.break_fold`); what is said here follows from the
state alone, so a replay stands at the same places. Source: spec steering §3 idea 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.domain.breakpoints import Reached
from engine.domain.state import AgentState, RunState
from engine.journal.break_fold import due, place_of


@dataclass(frozen=True, slots=True)
class Stand:
    """The breakpoints for which an agent is to be held now."""

    reason: str
    """In words, for the status line and the journal."""
    step: str = ""
    """The step before which it stands, where a breakpoint on that step alone holds it."""
    came: tuple[Reached, ...] = ()
    """The others that have come."""
    at: str = ""
    """The action or step that may run when it goes on, where these hold right before it."""


def stands_at(state: AgentState, step: str = "") -> Stand | None:
    """The breakpoints that hold the agent now; None when none do.

    Args:
        state: the agent's state at this moment.
        step: the step that stands at the gate; empty between two steps.
    """
    if state.reached:
        return Stand(_reason(state.reached), came=state.reached)
    if not step or not _goes_on(state, step):
        return None
    if step in state.breakpoints and state.breakpoint_hit != step:
        return Stand(f"breakpoint on {step}", step=step)
    met = due(state, step)
    return Stand(_reason(met), came=met, at=place_of(state, step)) if met else None


def _goes_on(state: AgentState, step: str) -> bool:
    """Whether the agent runs, or steps beyond the one action that the operator has in view."""
    if state.run is RunState.RUNNING:
        return True
    stride = state.stride
    return bool(state.grants) and stride is not None and stride.scope != "step" and stride.step != step


def _reason(came: tuple[Reached, ...]) -> str:
    more = f" · and {len(came) - 1} more" if len(came) > 1 else ""
    return f"breakpoint {came[0].breakpoint}: {came[0].what}{more}"
