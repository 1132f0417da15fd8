"""Handing work over: recorded, admitted, begun when its turn comes, and waited for."""

from __future__ import annotations

import asyncio

from engine.core import crew as ce
from engine.core.crew_commands import TakeHandoff
from engine.core.ports import Clock
from engine.core.reasons import Reason
from engine.core.text import clean_line
from engine.crew.event_stream import EventStream
from engine.crew.handoffs.admission import AdmissionChecks
from engine.crew.handoffs.contexts import HandoffDraft, SessionContext, retry_context
from engine.crew.handoffs.schedule import LEAST_S, MARGIN_S, Permits
from engine.crew.handoffs.transitions import HandoffTransitions, OpenHandoff
from engine.crew.ontology.kinds import AgentType, ErrorCode, HandoffState, check_move
from engine.crew.ontology.results import HandoffResult
from engine.crew.ports import HandoffError, Worker
from engine.crew.state import CrewState, Handoff

BACKOFF_S = 1.0
"""Seconds before the first automatic retry; each further one waits twice as long."""


class Handoffs:
    """The handoffs of a workspace.

    Args:
        stream: the stream of their events.
        clock: the engine's.
        setting: the session.
        checks: what is asked before one may run.
        permits: limits the calls of models.
    """

    def __init__(
        self,
        stream: EventStream,
        clock: Clock,
        setting: SessionContext,
        checks: AdmissionChecks,
        permits: Permits,
    ) -> None:
        self.stream, self.clock, self.setting = stream, clock, setting
        self._checks, self.permits = checks, permits
        self.moves = HandoffTransitions(stream, clock)
        """Takes handoffs from state to state, and knows those that are open."""
        permits.freed = self.dispatch

    @property
    def state(self) -> CrewState:
        """The crew."""
        return self.stream.state

    async def run_to_end(
        self, draft: HandoffDraft, *, handed: str = "", retries: bool = True
    ) -> tuple[str, HandoffResult]:
        """Hand work over and wait for what comes back, with the retries that its failures allow.

        Cancelling this cancels the handoff.

        Args:
            draft: the handoff.
            handed: its id, where it was handed over already.
            retries: whether failures that pass are tried again.

        Returns:
            the last handoff's id and its result.
        """
        name = handed or await self.hand_over(draft)
        first = self.state.handoffs[name].context.attempt
        while True:
            result = await self.outcome(name, own=True)
            code, tried = result.error_code, self.state.handoffs[name].context.attempt - first
            over = self.moves.closing or self._above_doomed(name)
            if code is None or not retries or over or tried >= code.retries:
                return name, result
            await self.clock.sleep(_delay(result, tried))
            if self.moves.closing or self._above_doomed(name):
                return name, result
            name = await self.hand_over(retry_context(self.state, self.setting, self.state.handoffs[name],
                                              actor="system", caller=draft.caller))  # fmt: skip

    async def hand_over(self, draft: HandoffDraft) -> str:
        """Write a handoff down, and ask whether it may run; gives its id. It may be rejected by then.

        Raises:
            JournalError: it cannot be written down; it does not run.
        """
        name = self.written(draft).id
        await self.admit_written(name)
        return name

    async def admit_written(self, name: str) -> None:
        """Ask whether a handoff may run that was just written down; where that cannot be asked, it ends."""
        try:
            await self.admit(name)
            await self.stream.commit()
        except BaseException:
            if self.state.handoffs[name].open and not self.moves.closing:
                self.moves.cut(name, HandoffState.CANCELLED, ErrorCode.CANCELLED, "it was withdrawn")
            raise

    def written(self, draft: HandoffDraft) -> Handoff:
        """Write a handoff down as queued; it is not admitted yet."""
        name = draft.context.handoff_id
        entry = self.state.agents.get(draft.context.to_agent) if draft.spec is None else None
        self.moves.live[name] = OpenHandoff()
        self.stream.append(
            ce.HandoffQueued(
                handoff=name,
                context=draft.context.model_dump(mode="json"),
                spec_event=entry.event if entry is not None else "",
                spec=draft.spec.model_dump(mode="json") if draft.spec is not None else None,
                caller=draft.caller,
                group=draft.group,
                origin=draft.origin,
            ),
            actor=draft.actor,
        )
        return self.state.handoffs[name]

    async def admit(self, name: str) -> None:
        """Ask whether a queued handoff may run; it is queued for its turn, or rejected."""
        handoff = self.state.handoffs[name]
        refused = await self._checks.refusal(self.state, handoff, self._left(handoff))
        if not self.state.handoffs[name].open or self.moves.live[name].doomed:
            return
        if refused is not None:
            self.moves.fail(name, refused.code, clean_line(refused.message), HandoffState.REJECTED)
            return
        if handoff.spec is None:
            self._send(handoff)
            return
        self.moves.line.join(name)
        self.dispatch()

    def _send(self, handoff: Handoff) -> None:
        """Hand work to an agent of another engine, which says when it begins and how it ends."""
        context = handoff.context.model_dump(mode="json")
        left = min(float(handoff.context.timeout_seconds), self._left(handoff) - MARGIN_S)
        context["timeout_seconds"] = max(int(left), 1)
        self.moves.tell(handoff, TakeHandoff(context=context))

    def dispatch(self) -> None:
        """Begin what may begin: while a model may be called, or for who needs none at first."""
        for turn in self.moves.line.turns:
            handoff = self.state.handoffs[turn.name]
            if handoff.spec is None or self.moves.closing or turn not in self.moves.line.turns:
                continue
            asks_first = handoff.spec.type is AgentType.GUIDED
            if not asks_first and not self.permits.admits(self.moves.line.urgency(turn)):
                continue
            self.moves.line.leave(turn)
            self._begin(handoff)

    def _begin(self, handoff: Handoff) -> None:
        limit = min(float(handoff.context.timeout_seconds), self._left(handoff) - MARGIN_S)
        if limit < LEAST_S:
            message = f"{handoff.context.from_agent} has no time left for it"
            self.moves.fail(handoff.id, ErrorCode.TIMEOUT, message, HandoffState.REJECTED)
            return
        self.moves.move(handoff.id, HandoffState.RUNNING, limit_s=limit)
        self.moves.deadlines.begin(handoff.id, limit)
        self.moves.live[handoff.id].beginning = self.moves.start_task(
            self._made(handoff.id), f"begin {handoff.id}"
        )

    async def _made(self, name: str) -> None:
        """Have a run made for a handoff; one that cannot be made fails it."""
        handoff = self.state.handoffs[name]
        try:
            await self.stream.commit()
            run = await self._worker().begin(handoff.as_running, handoff.caller)
        except HandoffError as error:
            self.moves.fail(name, error.code, clean_line(error.message))
            return
        except Exception as error:  # noqa: BLE001 - it ends this handoff, and nothing else
            self.moves.fail(name, ErrorCode.INTERNAL, clean_line(f"{type(error).__name__}: {error}"))
            return
        self.stream.append(ce.RunBegun(handoff=name, run=run))

    def _worker(self) -> Worker:
        if self.moves.worker is None:
            raise HandoffError(ErrorCode.INTERNAL, "nobody makes runs here")
        return self.moves.worker

    async def handoff_of_run(self, run: str) -> Handoff | None:
        """The handoff of a run, waiting for runs that are being made."""
        while (handoff := self.state.handoff_of(run)) is None:
            making = [live.beginning for live in self.moves.live.values() if live.beginning is not None]
            making = [live for live in making if not live.done()]
            if not making:
                return None
            await asyncio.wait(making, return_when=asyncio.FIRST_COMPLETED)
        return handoff

    async def outcome(self, name: str, *, own: bool = False) -> HandoffResult:
        """Wait for the end of a handoff.

        Args:
            name: its id.
            own: whether it ends when this is cancelled.
        """
        live = self.moves.live.get(name)
        try:
            if live is not None:
                await live.done.wait()
        except asyncio.CancelledError:
            if own and not self.moves.closing:
                await self.moves.cancel(name, "who waited for it was cancelled")
            raise
        result = self.state.handoffs[name].result
        assert result is not None
        return result

    async def pause(self, name: str, actor: str) -> None:
        """Let a handoff rest.

        Raises:
            IllegalTransition: it does not run.
            HandoffError: another engine has it.
        """
        if self.state.handoffs[name].remote:
            message = f"{name} is worked on by another engine, where {self.state.handoffs[name].agent} lives"
            raise HandoffError(ErrorCode.NOT_CALLABLE, f"{message}: pause it there")
        if self.state.handoffs[name].state is HandoffState.WAITING_HUMAN:
            self.moves.move(name, HandoffState.RUNNING, reason=Reason("handoff.to-pause"), actor=actor)
        self.moves.move(name, HandoffState.PAUSED, actor=actor)
        self.moves.deadlines.hold(name, "paused")
        if self.moves.worker is not None and (run := self.state.handoffs[name].run):
            await self.moves.worker.pause(run)

    async def resume(self, name: str, actor: str) -> None:
        """Let a paused handoff continue; one that still has a question waits again.

        Raises:
            IllegalTransition: it is not paused.
            HandoffError: its run cannot continue.
        """
        handoff = self.state.handoffs[name]
        check_move(handoff.state, HandoffState.RUNNING)
        if name not in self.moves.deadlines.known:
            limit = handoff.limit_s or float(handoff.context.timeout_seconds)
            self.moves.deadlines.begin(name, limit, handoff.spent_s)
        self.moves.move(name, HandoffState.RUNNING, reason=Reason("handoff.resumed"), actor=actor)
        self.moves.deadlines.go(name, "paused")
        if self.moves.live[name].waits:
            self.moves.move(name, HandoffState.WAITING_HUMAN, reason=min(self.moves.live[name].waits))
        await self.resume_run(name)

    async def resume_run(self, name: str) -> None:
        """Let the run of a handoff continue; where it cannot, the handoff has failed.

        Raises:
            HandoffError: it cannot.
        """
        handoff = self.state.handoffs[name]
        if handoff.run:
            try:
                await self._worker().resume(handoff.as_running)
            except HandoffError as error:
                self.moves.fail(name, error.code, clean_line(error.message))
                raise
        else:
            self.moves.live[name].beginning = self.moves.start_task(self._made(name), f"begin {name}")

    def _left(self, handoff: Handoff) -> float:
        return self.moves.deadlines.left_s(handoff.context.parent_id)

    def _above_doomed(self, name: str) -> bool:
        parent = self.state.handoffs[name].context.parent_id
        live = self.moves.live.get(parent)
        return live is not None and (live.doomed or not self.state.handoffs[parent].open)


def _delay(result: HandoffResult, tried: int) -> float:
    """Seconds before the next try: what the other side asked for, or twice as long each time."""
    seconds = result.metadata.get("retry_after")
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 <= seconds <= 600:
        return float(seconds)
    return float(BACKOFF_S * 2**tried)
