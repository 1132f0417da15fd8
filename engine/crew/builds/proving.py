"""The first handoff to a new agent: a real one through the manager, answered by a script or by the model.

It is marked as a proof: it counts as no use of the agent, asks the operator nothing, and what is said in it
is known to nobody else. Source: ontology spec §2.8.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from engine.agents.human import HumanRequest
from engine.agents.kinds import AgentType, Effect, ErrorCode, HandoffState, HandoffType, InputKind
from engine.agents.result import HandoffResult
from engine.agents.spec import AgentSpec
from engine.building.folders import CLEAR
from engine.building.registering import Proof
from engine.crew.builds.scripted import WORDS, ScriptedModel
from engine.crew.contexts import Wanted, from_user
from engine.crew.parts import Ask, HandoffError
from engine.crew.requests import CONVERSATION, GUIDED
from engine.crew.state import LIVE, SCRIPTED
from engine.domain.running import HANDOFF, PROOF
from engine.domain.state import AgentState
from engine.domain.text import clean_line
from engine.models.port import ModelClient

if TYPE_CHECKING:
    from engine.crew.crew import Crew

ACTOR = "builder"
TASK = "Prove that you answer"
LIMIT_S = 60
TURNS = 2
"""Of the session that a role or a guided agent is proved by."""
BY_ITS_RULES = (ErrorCode.QUALITY_GATE, ErrorCode.CHECKPOINT, ErrorCode.QUORUM, ErrorCode.DEBATE_INCOMPLETE)
"""Ends by which an agent's own rules refuse a script, as they have to: it ran, and it answered."""


class Prover:
    """Proves agents by handoffs.

    Args:
        crew: hands them over.
        thinks: whether there is a model for live proofs.
    """

    def __init__(self, crew: Crew, *, thinks: bool) -> None:
        self._crew, self._thinks = crew, thinks
        self._model = ScriptedModel()
        self._scripted: set[str] = set()
        """Handoffs at the root of what is answered by the script."""

    def scripted(self, state: AgentState) -> ModelClient | None:
        """Who answers a run instead of the model; None for all that is no scripted proof."""
        given = state.config.meta.get(HANDOFF, {})
        root = given.get("root_id") or given.get("handoff_id")
        return self._model if root in self._scripted else None

    async def prove(self, spec: AgentSpec, *, live: bool) -> Proof:
        """Hand something over to an agent and see what comes back."""
        if live and not self._thinks:
            return Proof(False, "a live proof needs a model, and none is configured")
        kind = HandoffType.DELEGATE
        if spec.type is AgentType.ROLE and spec.handoff.supports.transfer:
            kind = HandoffType.TRANSFER
        ask = Ask(spec.id, TASK, timeout_s=LIMIT_S, metadata={PROOF: LIVE if live else SCRIPTED})
        context = from_user(self._crew.state, self._crew.handoffs.setting, ask, clarity=CLEAR, kind=kind)
        name = context.handoff_id
        if not live:
            self._scripted.add(name)
        try:
            async with asyncio.timeout(LIMIT_S):
                return await self._followed(await self._crew.handoffs.hand_over(Wanted(context, actor=ACTOR)))
        except TimeoutError:
            return Proof(False, f"no answer came within {LIMIT_S} s")
        except HandoffError as error:
            return Proof(False, error.message)
        finally:
            await self._crew.handoffs.cancel(name, "the proof is over", actor=ACTOR)
            self._scripted.discard(name)

    async def _followed(self, name: str) -> Proof:
        """Answer what is asked in it until it has ended, or has had its turns."""
        turns = 0
        while self._crew.state.handoffs[name].open:
            request = self._asked(name)
            if request is not None:
                talk = request.handoff_id == name and request.reason_code.startswith((CONVERSATION, GUIDED))
                turns += talk
                if turns > TURNS:
                    return Proof(True, f"{TURNS} turns of a session came back")
                await self._answer(request, turns if talk else 0)
            elif self._held(name):
                return Proof(False, "its run waits for the operator, and a proof asks nobody")
            else:
                await self._crew.spine.changed()
        result = self._crew.state.handoffs[name].result
        assert result is not None
        return _judged(result)

    def _asked(self, name: str) -> HumanRequest | None:
        """What is asked in a proof and waited for."""
        below = {name, *self._crew.handoffs.below(name)}
        asked = (one for one in self._crew.state.open_requests() if one.handoff_id in below and one.blocking)
        return next(asked, None)

    def _held(self, name: str) -> bool:
        waits = HandoffState.WAITING_HUMAN
        return any(
            self._crew.state.handoffs[one].state is waits for one in (name, *self._crew.handoffs.below(name))
        )

    async def _answer(self, request: HumanRequest, turn: int) -> None:
        option, text = "", WORDS
        if request.reason_code.startswith(GUIDED):
            move: dict[str, Any] = {"move": "back"}
            if turn == 1:
                move = {"move": "answer", "value": self._sample(request.agent_id)}
            text = json.dumps(move)
        elif request.options:
            ends = [one for one in request.options if one.effect is Effect.ABORT]
            option = (ends or list(request.options))[0].id
        await self._crew.requests.answer(request.id, option, text, ACTOR)

    def _sample(self, agent: str) -> Any:
        """An answer of the right kind to a guided agent's first step."""
        step = self._crew.state.agents[agent].spec.steps[0]
        said = step.options[0] if step.options else WORDS
        kinds = {InputKind.MULTI: [said], InputKind.NUMBER: 1, InputKind.CONFIRM: True}
        return kinds.get(step.input, said)


def _judged(result: HandoffResult) -> Proof:
    if result.success:
        return Proof(True, f"a handoff came back after {result.duration_seconds:.1f} s")
    why = clean_line(f"{result.error_code}: {result.error}", limit=300)
    if result.error_code in BY_ITS_RULES:
        return Proof(True, f"it answered, and its own rules refuse a script: {why}")
    return Proof(False, why)
