"""What is asked of the operator (ontology spec §1.7): answered once, and stored before anybody goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from engine.agents.context import ORCHESTRATOR
from engine.agents.human import PERMISSIONS, Answer, HumanRequest, Option
from engine.agents.kinds import Effect, ErrorCode, HandoffState, Priority, RequestKind, RequestState
from engine.crew.clocks import Alarms, moment
from engine.crew.handoffs import Handoffs
from engine.crew.parts import HandoffError, Question
from engine.crew.state import CrewState, Handoff
from engine.domain.text import clean_line
from engine.journal import crew_events as ce
from engine.journal.payload import Payload

CONVERSATION = "conversation"
"""Reason code by which the holder of the floor listens to the operator; `Say` answers it."""
GUIDED = "guided"
"""How the reason codes of guided steps begin; `GuidedMove` answers them."""
RULE = "rule"
EXPIRY = "expiry"

Followed = Callable[[HumanRequest, Option | None, Answer], Awaitable[bool]]
"""Does what an option says by the manager itself; whether it did."""


def permission(agent: str, tool: str, why: str) -> Question:
    """The question whether an agent may use a tool; "always" holds for these two.

    Args:
        agent: who wants to.
        tool: the tool, with its command.
        why: what for.
    """
    labels = ("Allow once", "Allow always", "Reject once", "Reject always")
    effects = (Effect.RESUME, Effect.RESUME, Effect.ABORT, Effect.ABORT)
    options = tuple(
        Option(id=one, label=label, effect=effect, args={"tool": tool})
        for one, label, effect in zip(PERMISSIONS, labels, effects, strict=True)
    )
    title = clean_line(f"{agent} wants to use {tool}", limit=80)
    return Question(RequestKind.PERMISSION, "PERMISSION", title, why, options=options, allow_free_text=False)


class Requests:
    """The questions that are open, and who waits for them.

    Args:
        handoffs: what waits meanwhile.
        alarms: tells when one expires.
        session: the session's id.
    """

    def __init__(self, handoffs: Handoffs, alarms: Alarms, session: str) -> None:
        self._handoffs, self._alarms, self._session = handoffs, alarms, session
        self._waiting: dict[str, list[asyncio.Future[Answer]]] = {}
        self.followed: Followed = _nobody
        handoffs.close_requests = self.cancel_of

    @property
    def state(self) -> CrewState:
        """The crew."""
        return self._handoffs.state

    async def ask(self, handoff: Handoff | None, question: Question, *, agent: str = ORCHESTRATOR) -> Answer:
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
            await self._handoffs.spine.commit()
            return request.answer
        if not question.blocking:
            return self._answer(by="")
        waiting: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(request.id, []).append(waiting)
        if handoff is not None:
            self._handoffs.waits(handoff.id, request.id)
        await self._handoffs.spine.commit()
        try:
            return await waiting
        finally:
            left = self._waiting.get(request.id, [])
            if waiting in left:
                left.remove(waiting)

    def open(self, handoff: Handoff | None, question: Question, *, agent: str = ORCHESTRATOR) -> HumanRequest:
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
        if (allowed := self._rule(request)) is not None:
            option = PERMISSIONS[1] if allowed else PERMISSIONS[3]
            self._close(request.id, RequestState.ANSWERED, self._answer(option=option, by=RULE))
            return self.state.requests[request.id]
        self.watch(request)
        return request

    def watch(self, request: HumanRequest) -> None:
        """Apply the default when the request expires; with none it stays open."""
        if request.expires_at is not None and request.default_option is not None:
            left = (request.expires_at - moment(self._handoffs.clock)).total_seconds()
            self._alarms.set(request.id, max(left, 0.0), lambda: self._expire(request.id))

    def _expire(self, name: str) -> None:
        self._handoffs.own(self._expired(name), f"expire {name}")

    async def answer(self, name: str, option: str, text: str, by: str) -> HumanRequest:
        """Take the operator's answer; it is stored before anybody goes on.

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
            known = ", ".join(one.id for one in request.options)
            raise HandoffError(ErrorCode.BAD_CONTEXT, f"{name} wants an answer: {known or 'a text'}")
        if text.strip() and not request.allow_free_text and chosen is None:
            known = ", ".join(one.id for one in request.options)
            raise HandoffError(ErrorCode.BAD_CONTEXT, f"{name} takes no text; choose one of {known}")
        if chosen is not None and chosen.needs_words and not text.strip():
            raise HandoffError(ErrorCode.BAD_CONTEXT, f"{chosen.id} needs words: {chosen.label}")
        said = self._answer(option=chosen.id if chosen is not None else None, text=text, by=by)
        await self._settle(request, chosen, said)
        return self.state.requests[name]

    async def dismiss(self, name: str, by: str, reason: str = "") -> None:
        """Give no answer; whoever waits for it fails.

        Raises:
            HandoffError: it is not open.
        """
        request = self._open(name)
        self._close(name, RequestState.DISMISSED, None, reason=reason, actor=by)
        said = clean_line(f"{request.title}: dismissed {reason}").strip()
        handoff = self.state.handoffs.get(request.handoff_id or "")
        waits = handoff is not None and request.id in self._handoffs.live[handoff.id].waits
        if handoff is not None and waits and handoff.state is HandoffState.WAITING_HUMAN:
            cut = self._handoffs.cut(handoff.id, HandoffState.FAILED, ErrorCode.DISMISSED, said, actor=by)
            await asyncio.shield(cut)
        self._tell(name, HandoffError(ErrorCode.DISMISSED, said))

    def cancel_of(self, handoff: str, *, blocking: bool = False) -> None:
        """Cancel what is asked about a handoff, which is about to end; notices may stay."""
        for request in self.state.open_requests(handoff):
            if blocking and not request.blocking:
                continue
            self._close(request.id, RequestState.CANCELLED, None, reason="its handoff ends")
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

    # -------------------------------------------------------------- inside

    async def _settle(self, request: HumanRequest, chosen: Option | None, said: Answer) -> None:
        if chosen is not None and request.kind is RequestKind.PERMISSION and chosen.id.endswith("_always"):
            kept = ce.PermissionKept(
                agent=request.agent_id, tool=_tool(request), allow=chosen.id.startswith("allow")
            )
            self._append(kept, said.by)
        handoff = self.state.handoffs.get(request.handoff_id or "")
        asked_by_run = handoff is not None and handoff.open and request.blocking
        nobody = asked_by_run and not self._waiting.get(request.id)
        taken_over = chosen is not None and chosen.effect is Effect.TAKEOVER
        self._close(request.id, RequestState.ANSWERED, said, taken=taken_over or not nobody, actor=said.by)
        await self._handoffs.spine.commit()
        if await self.followed(request, chosen, said):
            self._tell(request.id, HandoffError(ErrorCode.CANCELLED, "the operator decided otherwise"))
            return
        if handoff is not None:
            self._handoffs.goes_on(handoff.id, request.id)
        self._tell(request.id, said)
        if nobody and handoff is not None and self.state.handoffs[handoff.id].state is HandoffState.RUNNING:
            await self._handoffs.take_up(handoff.id)

    async def _expired(self, name: str) -> None:
        request = self.state.requests[name]
        if request.state is RequestState.OPEN and request.default_option is not None:
            chosen = _chosen(request, request.default_option)
            await self._settle(request, chosen, self._answer(option=request.default_option, by=EXPIRY))

    def _heard(self, handoff: Handoff) -> Answer | None:
        if not (waiting := self.state.said.get(handoff.id)):
            return None
        self._append(ce.OperatorHeard(handoff=handoff.id))
        return self._answer(text=waiting[0], by="operator")

    def _made(self, handoff: Handoff | None, question: Question, agent: str) -> HumanRequest:
        now = moment(self._handoffs.clock)
        expires = None
        if question.expires_s is not None:
            expires = moment(self._handoffs.clock, question.expires_s)
        return HumanRequest(
            id=f"hr-{len(self.state.requests) + 1}",
            session_id=self._session,
            handoff_id=handoff.id if handoff is not None else None,
            agent_id=agent,
            kind=question.kind,
            reason_code=question.reason_code,
            title=clean_line(question.title, limit=80) or "a question",
            question=question.question,
            context=question.context,
            options=question.options,
            default_option=question.default_option,
            allow_free_text=question.allow_free_text,
            severity=handoff.priority if handoff is not None else Priority.NORMAL,
            blocking=question.blocking,
            created_at=now,
            expires_at=expires,
        )

    def _rule(self, request: HumanRequest) -> bool | None:
        if request.kind is not RequestKind.PERMISSION:
            return None
        return self.state.permissions.get((request.agent_id, _tool(request)))

    def _answer(self, *, option: str | None = None, text: str = "", by: str) -> Answer:
        return Answer(option_id=option, text=text, by=by, at=moment(self._handoffs.clock))

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
        said = answer.model_dump(mode="json") if answer is not None else None
        self._append(
            ce.HumanClosed(request=name, state=state, answer=said, taken=taken, reason=reason), actor
        )
        self._alarms.drop(name)

    def _tell(self, name: str, said: Answer | HandoffError) -> None:
        for waiting in self._waiting.pop(name, []):
            if waiting.done():
                continue
            if isinstance(said, HandoffError):
                waiting.set_exception(said)
                waiting.exception()  # whoever waited may be cancelled before it looks
            else:
                waiting.set_result(said)

    def _append(self, payload: Payload, actor: str = "system") -> None:
        self._handoffs.spine.append(payload, actor=actor)


def _chosen(request: HumanRequest, option: str) -> Option | None:
    if not option:
        return None
    if option.isdecimal() and 1 <= int(option) <= len(request.options):
        return request.options[int(option) - 1]
    found = next((one for one in request.options if one.id == option), None)
    if found is None:
        known = ", ".join(one.id for one in request.options) or "none; it takes a text"
        raise HandoffError(
            ErrorCode.BAD_CONTEXT, f"{clean_line(option, limit=40)} is no option of {request.id}: {known}"
        )
    return found


def _tool(request: HumanRequest) -> str:
    args = request.options[0].args if request.options else {}
    return str(args.get("tool") or request.title)


async def _nobody(_request: HumanRequest, _option: Option | None, _answer: Answer) -> bool:
    return False
