"""Proves a new agent by a first handoff through the manager, answered by its model.

The handoff is marked as a proof: it counts as no use of the agent and asks the operator nothing. A result
proves the agent, and so does the first question of a role or a guided agent.
"""

from __future__ import annotations

import asyncio

from engine.core.agents import PROOF
from engine.core.text import clean_line
from engine.crew.builder.registration import Proof
from engine.crew.crew import Crew
from engine.crew.handoffs.contexts import HandoffDraft, operator_context
from engine.crew.ontology.kinds import AgentType, HandoffState, HandoffType
from engine.crew.ontology.spec import AgentSpec
from engine.crew.operator_requests import CONVERSATION, GUIDED
from engine.crew.ports import HandoffError, HandoffRequest
from engine.crew.state import LIVE
from engine.crew.worker import LIVE_CALLS

CLEAR_PROBLEM = {
    "what": "Support answers tickets four hours late",
    "who": "Shops with fewer than ten agents",
    "success": "Every ticket is answered within one hour",
    **dict.fromkeys(("what_clarity", "who_clarity", "success_clarity"), 1.0),
}
"""A problem that every agent admits."""
ACTOR = "builder"
TASK = "Prove that you answer"
LIMIT_S = 60


class Prover:
    """Proves agents by handoffs.

    Args:
        crew: hands them over.
        thinks: whether there is a model.
    """

    def __init__(self, crew: Crew, *, thinks: bool) -> None:
        self._crew, self._thinks = crew, thinks

    async def prove(self, spec: AgentSpec) -> Proof:
        """Hand something over to an agent and see what comes back."""
        if not self._thinks:
            return Proof(False, "a live proof needs a model, and none is configured")
        talks = spec.type is AgentType.ROLE and spec.handoff.supports.transfer
        ask = HandoffRequest(spec.id, TASK, timeout_s=LIMIT_S, metadata={PROOF: LIVE})
        kind = HandoffType.TRANSFER if talks else HandoffType.DELEGATE
        setting = self._crew.handoffs.setting
        context = operator_context(self._crew.state, setting, ask, clarity=CLEAR_PROBLEM, kind=kind)
        name = context.handoff_id
        try:
            async with asyncio.timeout(LIMIT_S):
                await self._crew.handoffs.hand_over(HandoffDraft(context, actor=ACTOR))
                return await self._followed(name)
        except TimeoutError:
            return Proof(False, f"no answer came within {LIMIT_S} s")
        except HandoffError as error:
            return Proof(False, error.message)
        finally:
            await self._crew.handoffs.endings.cancel(name, "the proof is over", actor=ACTOR)

    async def _followed(self, name: str) -> Proof:
        """Wait until it has ended, asks something, or waits for the operator."""
        state = self._crew.state
        while state.handoffs[name].open:
            below = (name, *self._crew.handoffs.endings.below(name))
            for request in state.open_requests():
                if request.handoff_id in below and request.blocking:
                    talks = request.reason_code.startswith((CONVERSATION, GUIDED))
                    return Proof(talks, clean_line(f"it asked: {request.title}", limit=300))
            if any(state.handoffs[handoff].state is HandoffState.WAITING_HUMAN for handoff in below):
                return Proof(False, self._why_held(name))
            await self._crew.stream.changed()
        result = state.handoffs[name].result
        assert result is not None
        if not result.success:
            return Proof(False, clean_line(f"{result.error_code}: {result.error}", limit=300))
        calls = f"{result.usage.calls} call{'s' * (result.usage.calls != 1)} of its model"
        return Proof(True, f"a handoff came back after {result.duration_seconds:.1f} s and {calls}")

    def _why_held(self, name: str) -> str:
        """Why nothing of it goes on by itself."""
        handoffs, worker = self._crew.state.handoffs.values(), self._crew.handoffs.moves.worker
        runs = [each.run for each in handoffs if each.run and name in (each.id, each.context.root_id)]
        if worker is not None and sum(worker.usage(run).calls for run in runs) >= LIVE_CALLS:
            trouble = next(filter(None, map(worker.trouble, runs)), "")
            message = f"it wants another call of its model, and a live proof has {LIVE_CALLS}"
            return f"{message}; before that: {trouble}" if trouble else message
        return "its run waits for the operator, and a proof asks nobody"
