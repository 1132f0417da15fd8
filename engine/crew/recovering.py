"""What a session leaves, and what the next one finds (ontology spec §1.9, startup recovery)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from engine.agents.kinds import ErrorCode, HandoffState
from engine.crew.handoffs import Handoffs
from engine.crew.moves import Live
from engine.crew.parts import Worker
from engine.crew.requests import Requests
from engine.crew.state import Handoff

ENDED = "process ended"
ENGINE = "engine"
"""Why a handoff waits whose run the engine holds for the operator."""


async def recover(handoffs: Handoffs, requests: Requests) -> None:
    """Bring what the last session left to where it can go on.

    What ran has failed, save what keeps its progress, which rests at its last checkpoint; what waits for the
    operator waits on; what was queued is admitted again.

    Raises:
        JournalError: it could not be recorded.
    """
    found = list(handoffs.state.open())
    for handoff in found:
        handoffs.live[handoff.id] = Live()
    for handoff in found:
        match handoff.state:
            case HandoffState.RUNNING if _keeps(handoff):
                handoffs.move(handoff.id, HandoffState.PAUSED, reason=ENDED, spent_s=handoff.spent_s)
                handoffs.deadlines.hold(handoff.id, "paused")
            case HandoffState.RUNNING:
                handoffs.fail(handoff.id, ErrorCode.INTERNAL, ENDED)
            case HandoffState.PAUSED:
                handoffs.deadlines.hold(handoff.id, "paused")
            case HandoffState.WAITING_HUMAN:
                _waits(handoffs, requests, handoff)
    for request in requests.state.open_requests():
        requests.watch(request)
    for handoff in found:
        if handoff.state is HandoffState.QUEUED:
            await handoffs.admit(handoff.id)
    await handoffs.spine.commit()
    over = [one.run for one in handoffs.state.handoffs.values() if one.run and not one.open]
    if handoffs.worker is not None and over:
        handoffs.own(_stop(handoffs.worker, over), "stop runs of before")


async def _stop(worker: Worker, runs: Sequence[str]) -> None:
    """End runs whose handoffs are over: they had failed, or their program ended between result and end."""
    for run in runs:
        await worker.stop(run, ENDED)


def _waits(handoffs: Handoffs, requests: Requests, handoff: Handoff) -> None:
    limit = handoff.limit_s or float(handoff.context.timeout_seconds)
    handoffs.deadlines.begin(handoff.id, limit, handoff.spent_s)
    asked = [one.id for one in requests.state.open_requests(handoff.id) if one.blocking]
    for why in asked or [ENGINE]:
        handoffs.waits(handoff.id, why)


async def leave(handoffs: Handoffs) -> None:
    """End a session in good order: what runs is cancelled, or rests where it keeps its progress."""
    handoffs.closing = True
    cuts = []
    for handoff in list(handoffs.state.open()):
        if handoff.state is not HandoffState.RUNNING or handoffs.live[handoff.id].doomed:
            continue
        if _keeps(handoff):
            handoffs.move(handoff.id, HandoffState.PAUSED, reason="the session ended")
        else:
            said = "the session ended"
            cuts.append(handoffs.cut(handoff.id, HandoffState.CANCELLED, ErrorCode.CANCELLED, said))
    if cuts:
        await asyncio.wait(cuts)
    await handoffs.drop_tasks()


def _keeps(handoff: Handoff) -> bool:
    """Whether its type can go on from what it kept."""
    return handoff.spec is not None and handoff.spec.type.keeps_progress
