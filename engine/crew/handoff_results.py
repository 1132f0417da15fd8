"""Takes the results of handoffs, and follows the operator's answers about handoffs that ended.

A result is taken once, from the agent that the handoff was sent to, or written by the operator. An answer can
retry a handoff, replace its result, or accept what there is.
"""

from __future__ import annotations

import asyncio

from engine.core import crew as ce
from engine.core.reasons import Reason
from engine.core.text import clean_line
from engine.crew.handoffs.contexts import OUTPUT, HandoffDraft, retry_context
from engine.crew.handoffs.lifecycle import Handoffs
from engine.crew.members import result_fields
from engine.crew.ontology.context import Answer, HumanRequest, Option
from engine.crew.ontology.kinds import Effect, ErrorCode, HandoffState, HandoffType
from engine.crew.ontology.results import HandoffResult, failure_of, result_of
from engine.crew.operator_requests import OperatorRequests
from engine.crew.ports import HandoffError
from engine.crew.speaker import SpeakerStack
from engine.crew.state import Handoff


class HandoffResults:
    """Takes results, and follows options that are the manager's to follow; all others are the asker's.

    Args:
        handoffs: what they are of.
        requests: what is still asked when one comes, and where answers come from.
        floor: gives the floor once more.
    """

    def __init__(self, handoffs: Handoffs, requests: OperatorRequests, floor: SpeakerStack) -> None:
        self._handoffs, self._requests, self._floor = handoffs, requests, floor
        requests.followed = self.followed

    async def accept(self, handoff: Handoff, result: HandoffResult) -> None:
        """End a handoff with its result; what it handed over and still runs is cancelled first.

        Raises:
            HandoffError: it is another agent's, or comes too late: then it is logged and dropped.
            JournalError: it could not be recorded.
        """
        if result.handoff_id != handoff.id or result.from_agent != handoff.agent:
            message = (
                f"{handoff.id} was sent to {handoff.agent}; a result of {result.from_agent} for it is refused"
            )
            raise HandoffError(ErrorCode.BAD_CONTEXT, message)
        live = self._handoffs.moves.live.get(handoff.id)
        if live is None or live.doomed or not handoff.open:
            late = ce.LateResult(handoff=handoff.id, result=result.model_dump(mode="json"))
            self._handoffs.stream.append(late, actor=handoff.agent)
            await self._handoffs.stream.commit()
            raise HandoffError(ErrorCode.BAD_CONTEXT, f"{handoff.id} is over; its result came too late")
        live.doomed = True
        await self._handoffs.moves.cut_below(handoff.id, f"{handoff.id} has its result")
        self._requests.cancel_of(handoff.id, blocking=True)
        result = self._completed(handoff, result)
        self._handoffs.moves.finish(
            handoff.id, result.state, result, reason=result.end if result.error else "", actor=handoff.agent
        )
        await self._handoffs.stream.commit()

    async def ended(self, handoff: Handoff, *, ok: bool, text: str, code: ErrorCode | None) -> None:
        """End a handoff whose run ended without a result: what it said last is all there is."""
        live = self._handoffs.moves.live.get(handoff.id)
        if live is None or live.doomed or not handoff.open:
            return
        ok = ok and bool(text.strip())
        why = code or (ErrorCode.INTERNAL if not text.strip() else ErrorCode.OUTPUT_FORMAT)
        message = clean_line(text, limit=300) or "its run ended without a result"
        fields = {**result_fields(text, handoff.context), "output": text[:OUTPUT]}
        if ok:
            result = result_of(handoff.context, success=True, **fields)
        else:
            fields["partial"] = bool(text.strip())
            result = failure_of(handoff.context, why, message, **fields)
        await self.accept(handoff, result)

    async def take_over(self, handoff: Handoff, text: str, by: str) -> str:
        """Let the operator's text be the result; one that is over gets a new handoff for it. Gives its id.

        Raises:
            HandoffError: it is being ended.
            JournalError: it could not be recorded.
        """
        live = self._handoffs.moves.live.get(handoff.id)
        if not handoff.open:
            # What ended stays as it is: the operator's result is that of a handoff after it.
            after = retry_context(self._handoffs.state, self._handoffs.setting, handoff, actor=by, caller="")
            return await self.record_manual_result(after, text, by)
        if live is None or live.doomed:
            raise HandoffError(ErrorCode.CANCELLED, f"{handoff.id} is being ended")
        live.doomed = True
        self._handoffs.moves.line.drop(handoff.id)
        await self._handoffs.moves.cut_below(handoff.id, f"{handoff.id} was taken over", by)
        self._requests.cancel_of(handoff.id, blocking=True)
        stopping = self._handoffs.moves.stopped(handoff.id, "taken over")
        await asyncio.shield(self._handoffs.moves.start_task(stopping, f"take over {handoff.id}"))
        result = self._written(handoff, text, by)
        taken = Reason("handoff.taken-over")
        self._handoffs.moves.finish(handoff.id, HandoffState.COMPLETED, result, reason=taken, actor=by)
        await self._handoffs.stream.commit()
        return handoff.id

    async def record_manual_result(self, draft: HandoffDraft, text: str, by: str) -> str:
        """Write a handoff down whose result is the operator's text; nothing runs. Gives its id.

        Raises:
            JournalError: it could not be recorded.
        """
        made = self._handoffs.written(draft)
        self._handoffs.moves.live[made.id].doomed = True
        result = self._written(made, text, by)
        self._handoffs.moves.finish(
            made.id, HandoffState.COMPLETED, result, reason=Reason("handoff.by-hand"), actor=by
        )
        await self._handoffs.stream.commit()
        return made.id

    def _written(self, handoff: Handoff, text: str, by: str) -> HandoffResult:
        took = self._handoffs.moves.deadlines.spent_s(handoff.id)
        metadata = {"by": "operator", "operator": by.removeprefix("operator:")}
        fields = {"output": text, "duration_seconds": took, "metadata": metadata}
        return result_of(handoff.context, success=True, **fields)

    def _completed(self, handoff: Handoff, result: HandoffResult) -> HandoffResult:
        """The result with what the manager knows better: whom it is for, how long it took, who exists."""
        known = self._handoffs.state.agents
        suggested = tuple(agent for agent in result.suggested_next_agents if agent in known)
        strangers = (
            clean_line(agent, limit=80) for agent in result.suggested_next_agents if agent not in known
        )
        unknown = tuple(f"suggested {agent}, which is no agent here" for agent in strangers)
        return result.model_copy(
            update={
                "to_agent": handoff.context.return_to,
                "state": HandoffState.COMPLETED if result.success else HandoffState.FAILED,
                "suggested_next_agents": suggested,
                "warnings": (*result.warnings, *unknown),
                "duration_seconds": self._handoffs.moves.deadlines.spent_s(handoff.id),
                "attempt": handoff.context.attempt,
            }
        )

    async def followed(self, request: HumanRequest, option: Option | None, answer: Answer) -> bool:
        """Do what an option says; False where it is for who asked."""
        if option is None:
            return False
        handoff = self._handoffs.state.handoffs.get(request.handoff_id or "")
        if handoff is None:
            return False
        if option.effect is Effect.TAKEOVER:
            await self.take_over(handoff, answer.text, answer.by)
            return True
        if handoff.open:
            return False
        if option.effect is Effect.RETRY:
            await self.retry(handoff, answer.by)
            return True
        if option.effect is Effect.ACCEPT:
            text = self._requests.text_for(request, answer)
            await self.take_over(handoff, text, answer.by)
            return True
        return False

    async def retry(self, handoff: Handoff, by: str) -> str:
        """Hand the same over once more; gives the new handoff's id.

        Raises:
            HandoffError: it is not over, or the floor cannot be given again.
            JournalError: it could not be recorded.
        """
        if handoff.open:
            raise HandoffError(
                ErrorCode.BAD_CONTEXT, f"{handoff.id} is {handoff.state.words}; cancel it first"
            )
        if handoff.context.handoff_type is HandoffType.TRANSFER:
            await self._floor.transfer(handoff.agent, handoff.context.task_description, actor=by)
            return self._handoffs.state.floor[-1].handoff
        draft = retry_context(self._handoffs.state, self._handoffs.setting, handoff, actor=by, caller="")
        name = await self._handoffs.hand_over(draft)
        self._handoffs.moves.start_task(self._handoffs.run_to_end(draft, handed=name), f"retry {name}")
        return name
