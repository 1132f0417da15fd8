"""Whether a handoff may run at all: the eight questions, in their order (ontology spec §1.8).

The first that says no counts. What is refused never runs, and no model is asked about it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from engine.agents.context import HandoffContext
from engine.agents.kinds import ErrorCode, HandoffType
from engine.agents.spec import ANYBODY, AgentSpec
from engine.agents.values import RESERVED
from engine.crew.clocks import LEAST_S, MARGIN_S
from engine.crew.state import CrewState

DEPTH = 6
"""Agents in a line of delegations."""
FANOUT = 8
"""Open handoffs below one."""
OPEN = 32
"""Open handoffs of a session."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a handoff does not run."""

    code: ErrorCode
    message: str


def refusal(
    state: CrewState,
    context: HandoffContext,
    spec: AgentSpec | None,
    caller: AgentSpec | None,
    *,
    registered: bool,
    left_s: float,
) -> Refusal | None:
    """What speaks against a handoff, of what is known without asking anybody (questions 1 to 6).

    Args:
        state: the crew as it is; the handoff itself may be in it.
        context: the handoff.
        spec: what it would run by; None where there is no such agent.
        caller: the spec of the agent that hands over; None for the operator.
        registered: whether it is a registered agent; sub-agents of a run are not, and their caller made them.
        left_s: seconds that its parent has left.
    """
    return (
        _agent(state, context, spec, registered=registered)
        or _routing(context, spec, caller, registered=registered)
        or _lineage(context)
        or _limits(state, context)
        or _clarity(context, spec)
        or _time(context, left_s)
    )


def _agent(
    state: CrewState, context: HandoffContext, spec: AgentSpec | None, *, registered: bool
) -> Refusal | None:
    to = context.to_agent
    entry = state.agents.get(to)
    if spec is None or (registered and entry is None):
        near = nearest(to, state.agents)
        known = f"; near it: {', '.join(near)}" if near else ""
        return Refusal(ErrorCode.UNKNOWN_AGENT, f"no agent {to} is registered{known}")
    if registered and entry is not None and not entry.enabled:
        return Refusal(ErrorCode.NOT_CALLABLE, f"{to} is disabled")
    if not spec.handoff.supports.takes(context.handoff_type):
        return Refusal(ErrorCode.NOT_CALLABLE, f"{to} takes no {context.handoff_type}")
    return None


def _routing(
    context: HandoffContext, spec: AgentSpec | None, caller: AgentSpec | None, *, registered: bool
) -> Refusal | None:
    who, to = context.from_agent, context.to_agent
    if who in RESERVED or not registered or spec is None:
        return None
    callers = spec.handoff.routing.can_be_called_by
    if callers != ANYBODY and who not in callers:
        return Refusal(ErrorCode.NOT_CALLABLE, f"{to} may not be called by {who}")
    if caller is not None and not reaches(caller, spec):
        return Refusal(ErrorCode.NOT_CALLABLE, f"{who} may not delegate to {to}")
    return None


def reaches(caller: AgentSpec, spec: AgentSpec) -> bool:
    """Whether an agent's own routing leads to another: by name, or to one of its parts."""
    parts = {caller.synthesizer, *((caller.debate.judge_agent,) if caller.debate is not None else ())}
    if caller.debate is not None:
        parts |= {side.agent_id for side in caller.debate.sides}
    allowed = caller.handoff.routing.can_delegate_to
    return spec.id in allowed or spec.id in parts


def _lineage(context: HandoffContext) -> Refusal | None:
    if context.to_agent in context.lineage:
        line = " → ".join((*context.lineage, context.to_agent))
        return Refusal(ErrorCode.CYCLE, f"{context.to_agent} is in the line already: {line}")
    if len(context.lineage) + 1 > DEPTH:
        return Refusal(
            ErrorCode.DEPTH_LIMIT, f"it would be agent {len(context.lineage) + 1} of {DEPTH} in a line"
        )
    return None


def _limits(state: CrewState, context: HandoffContext) -> Refusal | None:
    others = [one for one in state.open() if one.id != context.handoff_id]
    beside = sum(one.context.parent_id == context.parent_id for one in others) if context.parent_id else 0
    if beside >= FANOUT:
        return Refusal(
            ErrorCode.FANOUT_LIMIT, f"{beside} handoffs are open below its parent; {FANOUT} at most"
        )
    if len(others) >= OPEN:
        return Refusal(ErrorCode.FANOUT_LIMIT, f"{len(others)} handoffs are open; {OPEN} at most")
    return None


def _clarity(context: HandoffContext, spec: AgentSpec | None) -> Refusal | None:
    if spec is None or context.handoff_type is HandoffType.ESCALATE:
        return None
    if why := spec.handoff.receives.refusal(context.problem_clarity):
        return Refusal(ErrorCode.INSUFFICIENT_CLARITY, f"{context.to_agent} does not begin: {why}")
    return None


def _time(context: HandoffContext, left_s: float) -> Refusal | None:
    if min(context.timeout_seconds, left_s - MARGIN_S) < LEAST_S:
        said = f"{context.to_agent} would have less than {LEAST_S:.0f} s of the {left_s:.0f} s that are left"
        return Refusal(ErrorCode.TIMEOUT, said)
    return None


def nearest(wanted: str, among: Iterable[str]) -> tuple[str, ...]:
    """The three ids that are most like one."""
    return tuple(get_close_matches(wanted, list(among), n=3, cutoff=0.4))
