"""Who speaks with the operator: a stack of holders, exactly one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from engine.core import crew as ce
from engine.crew.handoffs.contexts import HandoffDraft, child_context, operator_context
from engine.crew.handoffs.lifecycle import Handoffs
from engine.crew.ontology.kinds import ErrorCode, HandoffState, HandoffType
from engine.crew.ontology.results import HandoffResult
from engine.crew.operator_requests import CONVERSATION, OperatorRequests
from engine.crew.ports import HandoffError, HandoffRequest
from engine.crew.selection import CLARIFIER
from engine.crew.state import CrewState, Handoff, Holder


class SpeakerStack:
    """Moves the floor.

    Args:
        handoffs: each holder works on one.
        requests: how a holder listens, and the operator learns that it failed.
        attended: whether an operator is there to speak with.
    """

    def __init__(self, handoffs: Handoffs, requests: OperatorRequests, *, attended: bool) -> None:
        self._handoffs, self._requests = handoffs, requests
        self._attended = attended

    @property
    def state(self) -> CrewState:
        """The crew."""
        return self._handoffs.state

    async def transfer(
        self,
        to: str,
        reason: str,
        *,
        run: str = "",
        clarity: Mapping[str, Any] | None = None,
        actor: str = "system",
    ) -> str:
        """Give the floor to an agent; returns the result in words.

        Args:
            to: the agent.
            reason: what for; its task.
            run: the run that gives it; empty for the operator.
            clarity: what is known of the problem; None takes what is known.
            actor: who wants it.

        Raises:
            HandoffError: it may not, and the floor stays.
            JournalError: it could not be recorded.
        """
        floor = self.state.floor
        giver = await self._handoffs.handoff_of_run(run) if run else None
        if run and (giver is None or not floor or floor[-1].handoff != giver.id):
            message = f"only the holder of the floor gives it; that is {self.state.holder}"
            raise HandoffError(ErrorCode.NOT_CALLABLE, message)
        if floor and to == floor[-1].agent:
            raise HandoffError(ErrorCode.BAD_CONTEXT, f"{to} has the floor already")
        if len(floor) > 1 and to == floor[-2].agent:
            return await self.take_back(actor)
        if to in {holder.agent for holder in floor}:
            raise HandoffError(ErrorCode.CYCLE, f"{to} waits for the floor to come back to it already")
        ask = HandoffRequest(to, reason.strip() or "Take over the conversation.")
        kind = HandoffType.TRANSFER
        if giver is None:
            context = operator_context(self.state, self._handoffs.setting, ask, clarity=clarity, kind=kind)
        else:
            context = child_context(self.state, self._handoffs.setting, giver, ask, kind=kind)
        name = await self._handoffs.hand_over(HandoffDraft(context, caller=run, actor=actor))
        made = self.state.handoffs[name]
        if made.state is HandoffState.REJECTED and made.result is not None:
            code = made.result.error_code or ErrorCode.NOT_CALLABLE
            raise HandoffError(code, made.result.error or f"{to} does not take the floor")
        if made.open:
            self._change((*self.state.floor, Holder(to, name)), reason, actor)
            await self._handoffs.stream.commit()
        return f"{to} has the floor ({name})"

    async def take_back(self, actor: str) -> str:
        """Give the floor back to whoever had it before; what the holder handed over continues.

        Raises:
            HandoffError: no agent has it.
            JournalError: it could not be recorded.
        """
        if not self.state.floor:
            raise HandoffError(ErrorCode.BAD_CONTEXT, "nobody has the floor; you speak to no agent")
        *rest, last = self.state.floor
        self._change(tuple(rest), f"taken back from {last.agent}", actor)
        # Who gives the floor back from within its own run must not wait for that run's end.
        cut = self._handoffs.moves.cancel(
            last.handoff, "the floor was taken back", actor=actor, keep_below=True
        )
        self._handoffs.moves.start_task(cut, f"take back from {last.agent}")
        await self._handoffs.stream.commit()
        return f"{self.state.holder} has the floor again"

    async def say(self, text: str, actor: str) -> str:
        """Say something to the holder; who does not listen yet hears it when it does. Gives the holder.

        Raises:
            HandoffError: no agent has the floor.
            JournalError: it could not be recorded.
        """
        if not self.state.floor:
            raise HandoffError(ErrorCode.BAD_CONTEXT, "nobody has the floor; transfer it to a role first")
        holder = self.state.floor[-1]
        requests = self.state.open_requests(holder.handoff)
        if asked := [request for request in requests if request.reason_code == CONVERSATION]:
            await self._requests.answer(asked[0].id, "", text, actor)
        else:
            self._handoffs.stream.append(ce.OperatorSaid(handoff=holder.handoff, text=text), actor=actor)
        return holder.agent

    def clarify(self, handoff: Handoff, result: HandoffResult) -> bool:
        """Give the floor to the clarifier for what was refused as unclear; whether that is done.

        Once a session, and for what the operator handed over: a run has the refusal as its answer.
        """
        refused = self.state.refused_as_unclear(handoff.context.session_id)
        entry = self.state.agents.get(CLARIFIER)
        talks = entry is not None and entry.enabled and entry.spec.handoff.supports.transfer
        has_it = CLARIFIER in {holder.agent for holder in self.state.floor}
        mine = not handoff.caller and handoff.context.handoff_type is HandoffType.DELEGATE
        if refused > 1 or not talks or has_it or not mine or not self._attended:
            return False
        task = handoff.context.task_description
        reason = f"{result.error}. Find out what is missing for {handoff.agent}, which is to do this: {task}"
        self._handoffs.moves.start_task(self._to_clarifier(reason), f"clarify {handoff.id}")
        return True

    async def _to_clarifier(self, reason: str) -> None:
        with suppress(HandoffError):
            await self.transfer(CLARIFIER, reason)

    def ended(self, handoff: Handoff, result: HandoffResult) -> None:
        """A handoff has ended: where it had the floor, the one before has it again."""
        if result.error_code is ErrorCode.INSUFFICIENT_CLARITY:
            self.clarify(handoff, result)
        floor = self.state.floor
        if handoff.id not in {holder.handoff for holder in floor}:
            return
        left = tuple(holder for holder in floor if holder.handoff != handoff.id)
        why = result.error or "it is done"
        self._change(left, f"{handoff.agent} ended: {why}", "system")
        if not result.success and result.state is not HandoffState.CANCELLED:
            self._requests.floor_failed(handoff, self.state.holder, why)

    def _change(self, holders: tuple[Holder, ...], reason: str, actor: str) -> None:
        names = tuple((holder.agent, holder.handoff) for holder in holders)
        self._handoffs.stream.append(ce.FloorChanged(holders=names, reason=reason), actor=actor)
