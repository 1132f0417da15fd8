"""Requests to the operator: each is answered once, and the answer is stored before anything resumes.

The manager asks by itself for fixed reasons with fixed options: the handoff has ended by then and stays as it
is, and an answer makes a new handoff. At least one option lets the operator write the result by hand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from engine.core import crew as ce
from engine.core.journal import Payload
from engine.core.reasons import Reason
from engine.core.text import clean_line
from engine.crew.handoffs.lifecycle import Handoffs
from engine.crew.handoffs.schedule import time_of
from engine.crew.ontology.context import ORCHESTRATOR, Answer, HumanRequest, Option
from engine.crew.ontology.kinds import Effect, ErrorCode, HandoffState, Priority, RequestKind, RequestState
from engine.crew.ontology.results import HandoffResult
from engine.crew.ports import HandoffError, OperatorQuestion
from engine.crew.state import CrewState, Handoff

CONVERSATION = "conversation"
"""Reason code by which the holder of the floor listens to the operator; `Say` answers it."""
GUIDED = "guided"
"""How the reason codes of guided steps begin; `GuidedMove` answers them."""
_ASKED = ("kind", "reason_code", "question", "context", "options", "blocking")
"""What a request has of its question as it is."""

Followed = Callable[[HumanRequest, Option | None, Answer], Awaitable[bool]]
"""Does what an option says by the manager itself; whether it did."""


class OperatorRequests:
    """The questions that are open, and who waits for them.

    Args:
        handoffs: what waits meanwhile.
        session: the session's id.
    """

    def __init__(self, handoffs: Handoffs, session: str) -> None:
        self._handoffs, self._session = handoffs, session
        self._waiting: dict[str, list[asyncio.Future[Answer]]] = {}
        self.followed: Followed = _nobody
        handoffs.moves.close_requests = self.cancel_of

    @property
    def state(self) -> CrewState:
        """The crew."""
        return self._handoffs.state

    async def ask(
        self, handoff: Handoff | None, question: OperatorQuestion, *, agent: str = ORCHESTRATOR
    ) -> Answer:
        """Ask, and wait for the answer; a notice is not waited for.

        Raises:
            HandoffError: it was dismissed or cancelled, or cannot be asked so.
            JournalError: it could not be recorded.
        """
        agent = handoff.agent if handoff is not None else agent
        if question.reason_code == CONVERSATION and handoff is not None and (heard := self._heard(handoff)):
            return heard
        request = self.open(handoff, question, agent=agent)
        if request.answer is not None:
            await self._handoffs.stream.commit()
            return request.answer
        if not question.blocking:
            return self._answer(by="")
        waiting: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(request.id, []).append(waiting)
        if handoff is not None:
            self._handoffs.moves.add_wait(handoff.id, request.id)
        await self._handoffs.stream.commit()
        try:
            return await waiting
        finally:
            left = self._waiting.get(request.id, [])
            if waiting in left:
                left.remove(waiting)

    def open(
        self, handoff: Handoff | None, question: OperatorQuestion, *, agent: str = ORCHESTRATOR
    ) -> HumanRequest:
        """Write a request down; the same that is open counts once more, one answered before is taken.

        Raises:
            HandoffError: it cannot be asked so.
        """
        try:
            request = self._made(handoff, question, agent)
        except ValueError as error:
            raise HandoffError(ErrorCode.BAD_CONTEXT, f"this cannot be asked: {error}") from error
        for old in self.state.requests.values():
            if old.same != request.same or old.agent_id != request.agent_id:
                continue
            if old.id in self.state.unclaimed:
                self._append(ce.HumanTaken(request=old.id))
                return old
            if old.state is RequestState.OPEN:
                self._append(ce.HumanAgain(request=old.id))
                return self.state.requests[old.id]
        self._append(ce.HumanOpened(request=request.model_dump(mode="json")))
        return request

    async def answer(self, name: str, option: str, text: str, by: str) -> HumanRequest:
        """Take the operator's answer; it is stored before anybody continues.

        Args:
            name: the request's id.
            option: an option's id or its number from 1; empty for text alone.
            text: what they say besides, or instead.
            by: who says it.

        Raises:
            HandoffError: it is no answer to this, or it was answered before.
            JournalError: it could not be stored.
        """
        request = self._open(name)
        chosen = _chosen(request, option)
        if chosen is None and not text.strip():
            known = ", ".join(option.id for option in request.options)
            raise HandoffError(ErrorCode.BAD_CONTEXT, f"{name} wants an answer: {known or 'a text'}")
        if chosen is not None and chosen.needs_words and not text.strip():
            raise HandoffError(ErrorCode.BAD_CONTEXT, f"{chosen.id} needs words: {chosen.label}")
        answer = self._answer(option=chosen.id if chosen is not None else None, text=text, by=by)
        await self._settle(request, chosen, answer)
        return self.state.requests[name]

    async def dismiss(self, name: str, by: str, reason: str = "") -> None:
        """Give no answer; whoever waits for it fails.

        Raises:
            HandoffError: it is not open.
        """
        request = self._open(name)
        self._close(name, RequestState.DISMISSED, None, reason=reason, actor=by)
        message = clean_line(f"{request.title}: dismissed {reason}").strip()
        handoff = self.state.handoffs.get(request.handoff_id or "")
        waits = handoff is not None and request.id in self._handoffs.moves.live[handoff.id].waits
        if handoff is not None and waits and handoff.state is HandoffState.WAITING_HUMAN:
            cut = self._handoffs.moves.cut(
                handoff.id, HandoffState.FAILED, ErrorCode.DISMISSED, message, actor=by
            )
            await asyncio.shield(cut)
        self._tell(name, HandoffError(ErrorCode.DISMISSED, message))

    def cancel_of(self, handoff: str, *, blocking: bool = False) -> None:
        """Cancel what is asked about a handoff, which is about to end; notices may stay."""
        for request in self.state.open_requests(handoff):
            if blocking and not request.blocking:
                continue
            self._close(request.id, RequestState.CANCELLED, None, reason=Reason("request.handoff-ends"))
            self._tell(request.id, HandoffError(ErrorCode.CANCELLED, f"{request.title}: its handoff ends"))

    def revoke(self, agent: str, tool: str, by: str) -> None:
        """Take an "always" back.

        Raises:
            HandoffError: there is none.
        """
        if (agent, tool) not in self.state.permissions:
            known = ", ".join(f"{who} {what}" for who, what in self.state.permissions) or "none"
            raise HandoffError(ErrorCode.BAD_CONTEXT, f"nothing is kept for {agent} {tool}; kept: {known}")
        self._append(ce.PermissionRevoked(agent=agent, tool=tool), by)

    # -------------------------------------------------------------- about ends

    def ended(self, handoff: Handoff, result: HandoffResult) -> None:
        """Ask the operator about an end, where it is one of those."""
        if code := reason_of(self.state, handoff, result):
            leave_out = () if result.output.strip() else (ACCEPT,)
            reason = result.error or result.human_input_reason
            title, text = f"{handoff.agent}: {reason}", "\n".join((reason, *result.failures))
            tried = f"attempt {handoff.context.attempt}; task: {handoff.context.task_description}"
            self.open(handoff, question_of(code, title, text, context=tried, leave_out=leave_out))

    def floor_failed(self, handoff: Handoff, back_to: str, why: str) -> None:
        """Tell that the floor went back."""
        title = f"{handoff.agent} ended; {back_to} has the floor again"
        self.open(handoff, question_of("FLOOR_FAILED", title, why))

    def text_for(self, request: HumanRequest, answer: Answer) -> str:
        """What an answer makes the result of the handoff that it is about.

        Raises:
            HandoffError: there is no such handoff, or no text.
        """
        handoff = self.state.handoffs.get(request.handoff_id or "")
        kept = handoff.result.output if handoff is not None and handoff.result is not None else ""
        text = answer.text.strip() or kept
        if handoff is None or not text.strip():
            raise HandoffError(ErrorCode.BAD_CONTEXT, f"{request.id} leaves nothing to take")
        return text

    # -------------------------------------------------------------- inside

    async def _settle(self, request: HumanRequest, chosen: Option | None, answer: Answer) -> None:
        handoff = self.state.handoffs.get(request.handoff_id or "")
        asked_by_run = handoff is not None and handoff.open and request.blocking
        nobody = asked_by_run and not self._waiting.get(request.id)
        taken_over = chosen is not None and chosen.effect is Effect.TAKEOVER
        self._close(
            request.id, RequestState.ANSWERED, answer, taken=taken_over or not nobody, actor=answer.by
        )
        await self._handoffs.stream.commit()
        if await self.followed(request, chosen, answer):
            self._tell(request.id, HandoffError(ErrorCode.CANCELLED, "the operator decided otherwise"))
            return
        if handoff is not None:
            self._handoffs.moves.remove_wait(handoff.id, request.id)
        self._tell(request.id, answer)
        if nobody and handoff is not None and self.state.handoffs[handoff.id].state is HandoffState.RUNNING:
            await self._handoffs.resume_run(handoff.id)

    def _heard(self, handoff: Handoff) -> Answer | None:
        if not (waiting := self.state.said.get(handoff.id)):
            return None
        self._append(ce.OperatorHeard(handoff=handoff.id))
        return self._answer(text=waiting[0], by="operator")

    def _made(self, handoff: Handoff | None, question: OperatorQuestion, agent: str) -> HumanRequest:
        fields = {name: getattr(question, name) for name in _ASKED}
        return HumanRequest(
            id=f"hr-{len(self.state.requests) + 1}",
            session_id=self._session,
            handoff_id=handoff.id if handoff is not None else None,
            agent_id=agent,
            title=clean_line(question.title, limit=80) or "a question",
            severity=handoff.priority if handoff is not None else Priority.NORMAL,
            created_at=time_of(self._handoffs.clock),
            **fields,
        )

    def _answer(self, *, option: str | None = None, text: str = "", by: str) -> Answer:
        return Answer(option_id=option, text=text, by=by, at=time_of(self._handoffs.clock))

    def _open(self, name: str) -> HumanRequest:
        request = self.state.requests.get(name)
        if request is None:
            raise HandoffError(ErrorCode.BAD_CONTEXT, f"there is no request {clean_line(name, limit=40)}")
        if request.state is not RequestState.OPEN:
            raise HandoffError(ErrorCode.BAD_CONTEXT, f"{name} is {request.state} already")
        return request

    def _close(
        self,
        name: str,
        state: RequestState,
        answer: Answer | None,
        *,
        taken: bool = True,
        reason: str = "",
        actor: str = "system",
    ) -> None:
        stored = answer.model_dump(mode="json") if answer is not None else None
        self._append(
            ce.HumanClosed(request=name, state=state, answer=stored, taken=taken, reason=reason), actor
        )

    def _tell(self, name: str, result: Answer | HandoffError) -> None:
        for waiting in self._waiting.pop(name, []):
            if waiting.done():
                continue
            if isinstance(result, HandoffError):
                waiting.set_exception(result)
                waiting.exception()  # whoever waited may be cancelled before it looks
            else:
                waiting.set_result(result)

    def _append(self, payload: Payload, actor: str = "system") -> None:
        self._handoffs.stream.append(payload, actor=actor)


def _chosen(request: HumanRequest, option: str) -> Option | None:
    if not option:
        return None
    if option.isdecimal() and 1 <= int(option) <= len(request.options):
        return request.options[int(option) - 1]
    chosen = next((candidate for candidate in request.options if candidate.id == option), None)
    if chosen is None:
        known = ", ".join(candidate.id for candidate in request.options) or "none; it takes a text"
        raise HandoffError(
            ErrorCode.BAD_CONTEXT, f"{clean_line(option, limit=40)} is no option of {request.id}: {known}"
        )
    return chosen


async def _nobody(_request: HumanRequest, _option: Option | None, _answer: Answer) -> bool:
    return False


RETRY = Option(id="retry", label="Try again", effect=Effect.RETRY)
ACCEPT = Option(id="accept", label="Take what there is", effect=Effect.ACCEPT)
TAKEOVER = Option(id="takeover", label="Write the result by hand", effect=Effect.TAKEOVER)
ABORT = Option(id="abort", label="Leave it", effect=Effect.ABORT)

OPTIONS: dict[str, tuple[Option, ...]] = {
    "QUALITY_GATE": (RETRY, ACCEPT, TAKEOVER, ABORT),
    "CHECKPOINT": (RETRY, ACCEPT, TAKEOVER, ABORT),
    "QUORUM": (RETRY, ACCEPT, TAKEOVER, ABORT),
    "DEBATE_CONTESTED": (ACCEPT, RETRY, TAKEOVER, ABORT),
    "DEBATE_INCOMPLETE": (RETRY, TAKEOVER, ABORT),
    "CLARITY_REFUSED": (RETRY, TAKEOVER, ABORT),
    "URGENT_TIMEOUT": (RETRY, ACCEPT, TAKEOVER, ABORT),
    "FLOOR_FAILED": (RETRY, TAKEOVER, ABORT),
}
"""The options of each reason."""
_FAILURES = {
    ErrorCode.QUALITY_GATE: "QUALITY_GATE",
    ErrorCode.CHECKPOINT: "CHECKPOINT",
    ErrorCode.QUORUM: "QUORUM",
    ErrorCode.DEBATE_INCOMPLETE: "DEBATE_INCOMPLETE",
    ErrorCode.DEBATE_VOID: "DEBATE_INCOMPLETE",
}
TEXT = 8_000
"""Characters of a question of the manager's own."""


def question_of(
    code: str, title: str, text: str, *, context: str = "", leave_out: tuple[Option, ...] = ()
) -> OperatorQuestion:
    """A question of the manager's own, with the options of its reason."""
    return OperatorQuestion(
        RequestKind.DECISION,
        code,
        clean_line(title, limit=80),
        text[:TEXT],
        context=context[:TEXT],
        options=tuple(usual for usual in OPTIONS[code] if usual not in leave_out),
        blocking=False,
    )


def reason_of(state: CrewState, handoff: Handoff, result: HandoffResult) -> str:
    """Why the end of a handoff goes to the operator; empty when it does not."""
    if result.state is HandoffState.REJECTED and result.error_code is ErrorCode.INSUFFICIENT_CLARITY:
        refused = state.refused_as_unclear(handoff.context.session_id)
        return "CLARITY_REFUSED" if refused >= 2 else ""
    if result.state is HandoffState.TIMED_OUT:
        return "URGENT_TIMEOUT" if handoff.priority is Priority.URGENT else ""
    if result.state is HandoffState.FAILED and result.error_code in _FAILURES:
        return _FAILURES[result.error_code]
    debates = handoff.spec is not None and handoff.spec.debate is not None
    return "DEBATE_CONTESTED" if debates and result.needs_human_input else ""
