"""Handoffs between this engine and others, of which it knows only that it is carried what it tells them.

The engine that hands work over and the one that takes it in have a handoff each, of the same id. That of the
first goes where that of the second does, as it hears of it (`ReportHandoff`). Where the first ends by itself,
as at its deadline, the second is cancelled. What is heard again changes nothing.
"""

from __future__ import annotations

from engine.core.crew_commands import ReportHandoff, TakeHandoff
from engine.crew.handoffs.contexts import HandoffDraft, failed_result
from engine.crew.handoffs.lifecycle import Handoffs
from engine.crew.ontology.context import HandoffContext
from engine.crew.ontology.kinds import ErrorCode, HandoffState
from engine.crew.ontology.results import HandoffResult
from engine.crew.ports import HandoffError

REMOTE = "remote"
"""Why a handoff waits that waits for the operator where its agent is."""
WAY_S = 10.0
"""How much longer than the other engine this one waits, whose word of the end is on its way."""


async def take(handoffs: Handoffs, given: TakeHandoff, actor: str) -> str:
    """Take work in from another engine; its id.

    Raises:
        InvalidError: its context is none.
    """
    context = HandoffContext.loaded(given.context)
    name = context.handoff_id
    known = handoffs.state.handoffs.get(name)
    if known is None:
        handoffs.written(HandoffDraft(context, actor=actor, origin=given.origin))
        handoffs.moves.start_task(handoffs.admit_written(name), f"admit {name}")
    elif known.remote:
        message = f"no agent {known.agent} is registered here, nor elsewhere"
        handoffs.moves.fail(name, ErrorCode.UNKNOWN_AGENT, message, HandoffState.REJECTED)
    return name


async def report(handoffs: Handoffs, given: ReportHandoff) -> str:
    """Let a handoff stand here as it does on the engine that took it in; what became of it, in words.

    Raises:
        HandoffError: no other engine has it.
        InvalidError: what it ended with is no result.
        IllegalTransition: it cannot stand so.
    """
    moves, name, state = handoffs.moves, given.handoff, HandoffState(given.state)
    handoff, live = handoffs.state.handoffs.get(name), moves.live.get(name)
    if handoff is None or not handoff.remote:
        raise HandoffError(ErrorCode.BAD_CONTEXT, f"{name} was handed to no other engine")
    if live is None or live.doomed or not handoff.open:
        return f"{name} is over already"
    if state.terminal:
        result = (
            HandoffResult.loaded(given.result)
            if given.result is not None
            else failed_result(handoff, ErrorCode.BAD_CONTEXT, given.why, state)
        )
        live.doomed = True
        await moves.cut_below(name, f"{name} has its result")
        reason = result.end if result.error else ""
        moves.finish(name, state, result, reason=reason, actor=handoff.agent, reported=True)
    elif state is not HandoffState.RUNNING:
        moves.add_wait(name, REMOTE)
    elif handoff.state is HandoffState.QUEUED:
        moves.move(name, state, limit_s=given.limit_s + WAY_S, actor=handoff.agent)
        moves.deadlines.begin(name, given.limit_s + WAY_S)
    else:
        moves.remove_wait(name, REMOTE)
    return f"{name} is {state.words}"
