"""What comes back of a handoff: taken once, from whom it was sent to, or written by the operator."""

from __future__ import annotations

import asyncio

from engine.agents.kinds import ErrorCode, HandoffState
from engine.agents.result import HandoffResult, Usage
from engine.crew.contexts import OUTPUT, Wanted, again
from engine.crew.handoffs import Handoffs
from engine.crew.parts import HandoffError
from engine.crew.requests import Requests
from engine.crew.state import Handoff
from engine.domain.text import clean_line
from engine.journal import crew_events as ce


class Returns:
    """Takes results.

    Args:
        handoffs: what they are of.
        requests: what is still asked when one comes.
    """

    def __init__(self, handoffs: Handoffs, requests: Requests) -> None:
        self._handoffs, self._requests = handoffs, requests

    async def accept(self, handoff: Handoff, result: HandoffResult) -> None:
        """End a handoff with its result; what it handed over and still runs is cancelled first.

        Raises:
            HandoffError: it is another agent's, or comes too late: then it is logged and dropped.
            JournalError: it could not be recorded.
        """
        if result.handoff_id != handoff.id or result.from_agent != handoff.agent:
            said = (
                f"{handoff.id} was sent to {handoff.agent}; a result of {result.from_agent} for it is refused"
            )
            raise HandoffError(ErrorCode.BAD_CONTEXT, said)
        live = self._handoffs.live.get(handoff.id)
        if live is None or live.doomed or not handoff.open:
            late = ce.LateResult(handoff=handoff.id, result=result.model_dump(mode="json"))
            self._handoffs.spine.append(late, actor=handoff.agent)
            await self._handoffs.spine.commit()
            raise HandoffError(ErrorCode.BAD_CONTEXT, f"{handoff.id} is over; its result came too late")
        live.doomed = True
        await self._handoffs.cut_below(handoff.id, f"{handoff.id} has its result")
        self._requests.cancel_of(handoff.id, blocking=True)
        result = self._completed(handoff, result)
        self._handoffs.finish(
            handoff.id, result.state, result, reason=result.error or "", actor=handoff.agent
        )
        await self._handoffs.spine.commit()

    async def ended(self, handoff: Handoff, *, ok: bool, text: str, code: ErrorCode | None) -> None:
        """End a handoff whose run ended without a result: what it said last is all there is."""
        live = self._handoffs.live.get(handoff.id)
        if live is None or live.doomed or not handoff.open:
            return
        ok = ok and bool(text.strip())
        why = code or (ErrorCode.INTERNAL if not text.strip() else ErrorCode.OUTPUT_FORMAT)
        said = clean_line(text, limit=300) or "its run ended without a result"
        result = HandoffResult(
            handoff_id=handoff.id,
            from_agent=handoff.agent,
            to_agent=handoff.context.return_to,
            success=ok,
            output=text[:OUTPUT],
            error=None if ok else said,
            error_code=None if ok else why,
            state=HandoffState.COMPLETED if ok else HandoffState.FAILED,
            partial=not ok and bool(text.strip()),
        )
        await self.accept(handoff, result)

    async def take_over(self, handoff: Handoff, text: str, by: str) -> str:
        """Let the operator's text be the result; one that is over gets a new handoff for it. Gives its id.

        Raises:
            HandoffError: it is being ended.
            JournalError: it could not be recorded.
        """
        live = self._handoffs.live.get(handoff.id)
        if not handoff.open:
            # What ended stays as it is: the operator's result is that of a handoff after it.
            after = again(self._handoffs.state, self._handoffs.setting, handoff, actor=by, caller="")
            return await self.by_hand(after, text, by)
        if live is None or live.doomed:
            raise HandoffError(ErrorCode.CANCELLED, f"{handoff.id} is being ended")
        live.doomed = True
        self._handoffs.line.drop(handoff.id)
        await self._handoffs.cut_below(handoff.id, f"{handoff.id} was taken over", by)
        self._requests.cancel_of(handoff.id, blocking=True)
        usage = await asyncio.shield(
            self._handoffs.own(self._handoffs.stopped(handoff.id, "taken over"), f"take over {handoff.id}")
        )
        result = self._written(handoff, text, by, usage)
        self._handoffs.finish(handoff.id, HandoffState.COMPLETED, result, reason="taken over", actor=by)
        await self._handoffs.spine.commit()
        return handoff.id

    async def by_hand(self, wanted: Wanted, text: str, by: str) -> str:
        """Write a handoff down whose result is the operator's text; nothing runs. Gives its id.

        Raises:
            JournalError: it could not be recorded.
        """
        made = self._handoffs.written(wanted)
        self._handoffs.live[made.id].doomed = True
        result = self._written(made, text, by, Usage())
        self._handoffs.finish(made.id, HandoffState.COMPLETED, result, reason="written by hand", actor=by)
        await self._handoffs.spine.commit()
        return made.id

    def _written(self, handoff: Handoff, text: str, by: str, usage: Usage) -> HandoffResult:
        return HandoffResult(
            handoff_id=handoff.id,
            from_agent=handoff.agent,
            to_agent=handoff.context.return_to,
            success=True,
            output=text,
            usage=usage,
            attempt=handoff.context.attempt,
            duration_seconds=self._handoffs.deadlines.spent_s(handoff.id),
            metadata={"by": "operator", "operator": by.removeprefix("operator:")},
        )

    def _completed(self, handoff: Handoff, result: HandoffResult) -> HandoffResult:
        """The result with what the manager knows better: whom it is for, how long it took, who exists."""
        known = self._handoffs.state.agents
        suggested = tuple(one for one in result.suggested_next_agents if one in known)
        strangers = [one for one in result.suggested_next_agents if one not in known]
        told = tuple(f"suggested {clean_line(one, limit=80)}, which is no agent here" for one in strangers)
        usage = result.usage
        if usage == Usage() and self._handoffs.worker is not None and handoff.run:
            usage = self._handoffs.worker.usage(handoff.run)
        return result.model_copy(
            update={
                "to_agent": handoff.context.return_to,
                "state": HandoffState.COMPLETED if result.success else HandoffState.FAILED,
                "suggested_next_agents": suggested,
                "warnings": (*result.warnings, *told),
                "duration_seconds": self._handoffs.deadlines.spent_s(handoff.id),
                "attempt": handoff.context.attempt,
                "usage": usage,
            }
        )
