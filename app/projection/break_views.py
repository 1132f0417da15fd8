"""Breakpoints as the dialog shows them."""

from __future__ import annotations

from app.break_verbs import ON_MIND
from app.breaking import break_rows
from engine.domain.break_lines import USAGE
from engine.domain.breakpoints import BreakKind
from engine.domain.state import AgentState
from widgets.dialogs.breakpoints import MIND_KINDS, BreakpointLine, BreakpointsModel, KindLine

_KEYS = {
    BreakKind.STEP: "s",
    BreakKind.TOOL: "t",
    BreakKind.GOAL: "g",
    BreakKind.PLAN: "p",
    BreakKind.BELIEF: "b",
    BreakKind.ERROR: "e",
    BreakKind.RESULT: "r",
    BreakKind.SPEND: "m",
    BreakKind.EVERY: "n",
    BreakKind.INTENTION: "i",
}


def breakpoints(state: AgentState) -> BreakpointsModel:
    """All breakpoints of an agent, and the kinds that it can have."""
    lines = tuple(
        BreakpointLine(row.id, row.kind, row.text, row.enabled, row.stopped, row.matched or 0, row.last)
        for row in break_rows(state)
    )
    return BreakpointsModel(lines, state.agent_id, _kinds(state.reasons))


def _kinds(reasons: bool) -> tuple[KindLine, ...]:
    general = tuple(
        KindLine(kind, _KEYS[kind], what, f"{usage}, such as {example}")
        for kind, (usage, what, example) in USAGE.items()
        if reasons or kind is not BreakKind.INTENTION
    )
    if not reasons:
        return general
    return (*MIND_KINDS, *(one for one in general if one.kind not in ON_MIND))
