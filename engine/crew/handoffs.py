"""Handing work over: written down, admitted, begun when its turn comes, waited for (ontology spec §1.8)."""

from __future__ import annotations

import asyncio

from engine.agents.kinds import ErrorCode, HandoffState, check_move
from engine.agents.result import HandoffResult
from engine.crew.checking import Checks
from engine.crew.clocks import LEAST_S, MARGIN_S
from engine.crew.contexts import Setting, Wanted, again, failure
from engine.crew.ending import Endings
from engine.crew.moves import Live
from engine.crew.parts import HandoffError, Worker
from engine.crew.queue import Permits, needs_model
from engine.crew.spine import Spine
from engine.crew.state import Handoff
from engine.domain.ports import Clock
from engine.domain.text import clean_line
from engine.journal import crew_events as ce

BACKOFF_S = 1.0
"""Seconds before the first automatic retry; each further one waits twice as long."""


class Handoffs(Endings):
    """The handoffs of a workspace.

    Args:
        spine: where their events go.
        clock: the engine's.
        setting: the session.
        checks: what is asked before one may run.
        permits: leave to call models.
    """

    def __init__(
        self, spine: Spine, clock: Clock, setting: Setting, checks: Checks, permits: Permits
    ) -> None:
        super().__init__(spine, clock, setting)
        self._checks, self.permits = checks, permits
        permits.freed = self.dispatch

    async def conduct(
        self, wanted: Wanted, *, handed: str = "", retries: bool = True
    ) -> tuple[str, HandoffResult]:
        """Hand work over and wait for what comes back, with the retries that its failures allow.

        Cancelling this cancels the handoff.

        Args:
            wanted: the handoff.
            handed: its id, where it was handed over already.
            retries: whether failures that pass are tried again.

        Returns:
            the last handoff's id and its result.
        """
        name = handed or await self.hand_over(wanted)
        first = self.state.handoffs[name].context.attempt
        while True:
            result = await self.outcome(name, own=True)
            code, tried = result.error_code, self.state.handoffs[name].context.attempt - first
            over = self.closing or self._above_doomed(name)
            if code is None or not retries or over or tried >= code.retries:
                return name, result
            await self.clock.sleep(_delay(result, tried))
            if self.closing or self._above_doomed(name):
                return name, result
            name = await self.hand_over(again(self.state, self.setting, self.state.handoffs[name],
                                              actor="system", caller=wanted.caller))  # fmt: skip

    async def hand_over(self, wanted: Wanted) -> str:
        """Write a handoff down, and ask whether it may run; gives its id. It may be rejected by then.

        Raises:
            JournalError: it cannot be written down; it does not run.
        """
        name = self.written(wanted).id
        try:
            await self.admit(name)
            await self.spine.commit()
        except BaseException:
            if self.state.handoffs[name].open and not self.closing:
                self.cut(name, HandoffState.CANCELLED, ErrorCode.CANCELLED, "it was withdrawn")
            raise
        return name

    def written(self, wanted: Wanted) -> Handoff:
        """Write a handoff down as queued; nobody has asked yet whether it may run."""
        name = wanted.context.handoff_id
        entry = self.state.agents.get(wanted.context.to_agent) if wanted.spec is None else None
        self.live[name] = Live()
        self.spine.append(
            ce.HandoffQueued(
                handoff=name,
                context=wanted.context.model_dump(mode="json"),
                spec_event=entry.event if entry is not None else "",
                spec=wanted.spec.model_dump(mode="json") if wanted.spec is not None else None,
                caller=wanted.caller,
                group=wanted.group,
            ),
            actor=wanted.actor,
        )
        return self.state.handoffs[name]

    async def admit(self, name: str) -> None:
        """Ask whether a queued handoff may run; it is queued for its turn, or rejected."""
        handoff = self.state.handoffs[name]
        refused = await self._checks.refusal(self.state, handoff, self._left(handoff))
        if not self.state.handoffs[name].open or self.live[name].doomed:
            return
        if refused is not None:
            said = clean_line(refused.message)
            result = failure(handoff, refused.code, said, HandoffState.REJECTED)
            self.finish(name, HandoffState.REJECTED, result, reason=f"{refused.code}: {said}")
            return
        self.line.join(name)
        self.dispatch()

    def dispatch(self) -> None:
        """Begin what may begin: while a model may be called, or for who needs none at first."""
        for name in self.line.order:
            handoff = self.state.handoffs[name]
            turn = next((one for one in self.line.turns if one.name == name), None)
            if turn is None or handoff.spec is None or self.closing:
                continue
            if needs_model(handoff.spec.type) and not self.permits.admits(self.line.urgency(turn)):
                continue
            self.line.leave(turn)
            self._begin(handoff)

    def _begin(self, handoff: Handoff) -> None:
        limit = min(float(handoff.context.timeout_seconds), self._left(handoff) - MARGIN_S)
        if limit < LEAST_S:
            said = f"{handoff.context.from_agent} has no time left for it"
            result = failure(handoff, ErrorCode.TIMEOUT, said, HandoffState.REJECTED)
            self.finish(handoff.id, HandoffState.REJECTED, result, reason=f"TIMEOUT: {said}")
            return
        self.move(handoff.id, HandoffState.RUNNING, limit_s=limit)
        self.deadlines.begin(handoff.id, limit)
        self.live[handoff.id].beginning = self.own(self._made(handoff.id), f"begin {handoff.id}")

    async def _made(self, name: str) -> None:
        """Have a run made for a handoff; one that cannot be made fails it."""
        handoff = self.state.handoffs[name]
        try:
            await self.spine.commit()
            run = await self._worker().begin(handoff.as_running, handoff.caller)
        except HandoffError as error:
            self.fail(name, error.code, clean_line(error.message))
            return
        except Exception as error:  # noqa: BLE001 - it ends this handoff, and nothing else
            self.fail(name, ErrorCode.INTERNAL, clean_line(f"{type(error).__name__}: {error}"))
            return
        self.spine.append(ce.RunBegun(handoff=name, run=run))

    def _worker(self) -> Worker:
        if self.worker is None:
            raise HandoffError(ErrorCode.INTERNAL, "nobody makes runs here")
        return self.worker

    async def found(self, run: str) -> Handoff | None:
        """The handoff of a run, waiting for runs that are being made."""
        while (found := self.state.handoff_of(run)) is None:
            making = [one.beginning for one in self.live.values() if one.beginning is not None]
            making = [one for one in making if not one.done()]
            if not making:
                return None
            await asyncio.wait(making, return_when=asyncio.FIRST_COMPLETED)
        return found

    async def outcome(self, name: str, *, own: bool = False) -> HandoffResult:
        """Wait for the end of a handoff.

        Args:
            name: its id.
            own: whether it ends when this is cancelled.
        """
        live = self.live.get(name)
        try:
            if live is not None:
                await live.done.wait()
        except asyncio.CancelledError:
            if own and not self.closing:
                await self.cancel(name, "who waited for it was cancelled")
            raise
        result = self.state.handoffs[name].result
        assert result is not None
        return result

    async def pause(self, name: str, actor: str) -> None:
        """Let a handoff rest.

        Raises:
            IllegalTransition: it does not run.
        """
        if self.state.handoffs[name].state is HandoffState.WAITING_HUMAN:
            self.move(name, HandoffState.RUNNING, reason="to be paused", actor=actor)
        self.move(name, HandoffState.PAUSED, actor=actor)
        self.deadlines.hold(name, "paused")
        if self.worker is not None and (run := self.state.handoffs[name].run):
            await self.worker.pause(run)

    async def resume(self, name: str, actor: str) -> None:
        """Let a paused handoff go on; one that still has a question waits again.

        Raises:
            IllegalTransition: it is not paused.
            HandoffError: its run cannot go on.
        """
        handoff = self.state.handoffs[name]
        check_move(handoff.state, HandoffState.RUNNING)
        if name not in self.deadlines.known:
            limit = handoff.limit_s or float(handoff.context.timeout_seconds)
            self.deadlines.begin(name, limit, handoff.spent_s)
        self.move(name, HandoffState.RUNNING, reason="resumed", actor=actor)
        self.deadlines.go(name, "paused")
        if self.live[name].waits:
            self.move(name, HandoffState.WAITING_HUMAN, reason=min(self.live[name].waits))
        await self.take_up(name)

    async def take_up(self, name: str) -> None:
        """Let the run of a handoff go on; where it cannot, the handoff has failed.

        Raises:
            HandoffError: it cannot.
        """
        handoff = self.state.handoffs[name]
        if handoff.run:
            try:
                await self._worker().resume(handoff.as_running)
            except HandoffError as error:
                self.fail(name, error.code, clean_line(error.message))
                raise
        else:
            self.live[name].beginning = self.own(self._made(name), f"begin {name}")

    def _left(self, handoff: Handoff) -> float:
        return self.deadlines.left_s(handoff.context.parent_id)

    def _above_doomed(self, name: str) -> bool:
        parent = self.state.handoffs[name].context.parent_id
        live = self.live.get(parent)
        return live is not None and (live.doomed or not self.state.handoffs[parent].open)


def _delay(result: HandoffResult, tried: int) -> float:
    """Seconds before the next try: what the other side asked for, or twice as long each time."""
    told = result.metadata.get("retry_after")
    if isinstance(told, (int, float)) and not isinstance(told, bool) and 0 <= told <= 600:
        return float(told)
    return float(BACKOFF_S * 2**tried)
