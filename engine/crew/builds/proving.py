"""The first handoff to a new agent: a real one through the manager, answered by a script or by the model.

It is marked as a proof: it counts as no use of the agent, asks the operator nothing, and what is said in it
is known to nobody else. Source: ontology spec §2.8.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from engine.agents.human import HumanRequest
from engine.agents.kinds import AgentType, Check, Effect, HandoffState, HandoffType, InputKind
from engine.agents.methods.debate import Debate
from engine.agents.methods.guided import GuidedSession, StepStatus
from engine.agents.spec import AgentSpec, GuidedStep
from engine.building.folders import CLEAR
from engine.building.registering import Proof
from engine.crew.builds.proofs import judged
from engine.crew.builds.sampling import sample
from engine.crew.builds.scripted import ScriptedModel
from engine.crew.builds.scripted_form import WORDS
from engine.crew.contexts import Wanted, from_user
from engine.crew.parts import Ask, HandoffError
from engine.crew.requests import CONVERSATION, GUIDED
from engine.crew.runs.worker import LIVE_CALLS
from engine.crew.state import LIVE, SCRIPTED
from engine.domain.running import DEBATE, HANDOFF, PROOF
from engine.domain.running import GUIDED as SESSION
from engine.domain.state import AgentState
from engine.models.port import ModelClient

if TYPE_CHECKING:
    from engine.crew.crew import Crew

ACTOR = "builder"
TASK = "Prove that you answer"
LIMIT_S = 60
TURNS = 2
"""Of the session that a role or a guided agent is proved by."""
CHECKPOINT = "checkpoint"
"""Reason code of what a pipeline asks where a checkpoint is not passed."""


class Prover:
    """Proves agents by handoffs.

    Args:
        crew: hands them over.
        thinks: whether there is a model for live proofs.
    """

    def __init__(self, crew: Crew, *, thinks: bool) -> None:
        self._crew, self._thinks = crew, thinks
        self._scripted: set[str] = set()
        """Handoffs at the root of what is answered by the script."""

    def scripted(self, state: AgentState) -> ModelClient | None:
        """Who answers a run instead of the model; None for all that is no scripted proof."""
        given = state.config.meta.get(HANDOFF, {})
        root = given.get("root_id") or given.get("handoff_id")
        if root not in self._scripted:
            return None
        return ScriptedModel(state, lambda: self._debate(str(given.get("parent_id") or "")))

    def _debate(self, name: str) -> Debate | None:
        """The debate of a handoff, as it was kept last."""
        found = self._crew.state.handoffs.get(name)
        held = found.progress.get(DEBATE) if found is not None else None
        return Debate.loaded(held)[0] if isinstance(held, dict) and "motion" in held else None

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
                await self._crew.handoffs.hand_over(Wanted(context, actor=ACTOR))
                return await self._followed(name, spec, live=live)
        except TimeoutError:
            return Proof(False, f"no answer came within {LIMIT_S} s")
        except HandoffError as error:
            return Proof(False, error.message)
        finally:
            await self._crew.handoffs.cancel(name, "the proof is over", actor=ACTOR)
            self._scripted.discard(name)

    async def _followed(self, name: str, spec: AgentSpec, *, live: bool) -> Proof:
        """Answer what is asked in it until it has ended, or has had its turns."""
        turns = 0
        while self._crew.state.handoffs[name].open:
            request = self._asked(name)
            if request is not None:
                talk = request.handoff_id == name and request.reason_code.startswith((CONVERSATION, GUIDED))
                turns += talk
                if turns > TURNS:
                    return self._steps_taken(name, spec)
                await self._answer(request, turns if talk else 0)
                if turns == TURNS and request.reason_code == CONVERSATION:
                    return Proof(True, f"{TURNS} turns of a session: it asked twice, and took both answers")
            elif self._held(name):
                return Proof(False, self._why_held(name, live=live))
            else:
                await self._crew.spine.changed()
        done = self._crew.state.handoffs[name]
        return judged(spec, done, live=live)

    def _steps_taken(self, name: str, spec: AgentSpec) -> Proof:
        """What a guided session showed, without a model: an answer that was stored, and the way back."""
        session = GuidedSession.loaded(self._crew.state.handoffs[name].progress[SESSION])[0]
        first = spec.steps[0]
        if session.active != first.id:
            return Proof(False, f"after an answer and a step back it stands at {session.active or 'its end'}")
        if session.of(first.id).status is StepStatus.ANSWERED:
            return Proof(True, f"{TURNS} turns of a session: {first.title!r} was answered and gone back to")
        return Proof(
            True,
            f"{TURNS} turns of a session: it asked, and refused an answer and a step back as its rules say; "
            f"no script fits {first.title!r}, so that an answer is taken was not shown",
        )

    def _why_held(self, name: str, *, live: bool) -> str:
        """Why nothing of it goes on by itself."""
        worker, all_of_them = self._crew.handoffs.worker, self._crew.state.handoffs.values()
        runs = [one.run for one in all_of_them if one.run and name in (one.id, one.context.root_id)]
        calls = sum(worker.usage(run).calls for run in runs) if worker is not None else 0
        if worker is not None and live and calls >= LIVE_CALLS:
            said = f"it wants another call of its model, and a live proof has {LIVE_CALLS}"
            trouble = next(filter(None, map(worker.trouble, runs)), "")
            return f"{said}; before that: {trouble}" if trouble else said
        return "its run waits for the operator, and a proof asks nobody"

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
        elif request.reason_code == CHECKPOINT:
            option, text = "accept", "a scripted proof goes on to the next phase"
        elif request.options:
            ends = [one for one in request.options if one.effect is Effect.ABORT]
            option = (ends or list(request.options))[0].id
        await self._crew.requests.answer(request.id, option, text, ACTOR)

    def _sample(self, agent: str) -> Any:
        """An answer of the right kind to a guided agent's first step."""
        step = self._crew.state.agents[agent].spec.steps[0]
        said = step.options[0] if step.options else " ".join(sample(step.validators).text.split())
        kinds = {InputKind.MULTI: [said], InputKind.NUMBER: _number(step), InputKind.CONFIRM: True}
        return kinds.get(step.input, said)


def _number(step: GuidedStep) -> float:
    """A number that a step's validators take, where they say from where on."""
    lows = [one.args.get("low") for one in step.validators if one.check is Check.NUMBER_RANGE]
    return next((float(low) for low in lows if isinstance(low, int | float)), 1)
