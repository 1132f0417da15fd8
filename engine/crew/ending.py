"""Ending handoffs before their work is done: cancelled, out of time, dismissed (ontology spec §1.8).

What is below ends first, then what is asked of the operator, then the run; what it said last is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from engine.agents.kinds import ErrorCode, HandoffState
from engine.agents.result import Usage
from engine.crew.contexts import Setting, failure
from engine.crew.moves import Live, Moves
from engine.crew.spine import Spine
from engine.domain.ports import Clock
from engine.domain.text import clean_line

CLEANUP_S = 5.0
"""Seconds that a run has to end in."""


class Endings(Moves):
    """Moves, and how they are cut short.

    Args:
        spine: where events go.
        clock: the engine's.
        setting: the session.
    """

    def __init__(self, spine: Spine, clock: Clock, setting: Setting) -> None:
        super().__init__(spine, clock, setting)
        self.close_requests: Callable[[str], None] = lambda _handoff: None
        """Cancels what is asked of the operator about a handoff, before it ends."""

    async def cancel(
        self, name: str, reason: str, *, actor: str = "system", keep_below: bool = False
    ) -> bool:
        """End a handoff with all that is below it; False where it is over already.

        It is carried out to the end even when the caller is cancelled.

        Args:
            name: its id.
            reason: why, in words.
            actor: who wants it.
            keep_below: whether what it handed over goes on.
        """
        if not self.state.handoffs[name].open:
            return False
        cut = self.cut(
            name, HandoffState.CANCELLED, ErrorCode.CANCELLED, reason, actor=actor, keep_below=keep_below
        )
        await asyncio.shield(cut)
        return True

    def cut(
        self,
        name: str,
        target: HandoffState,
        code: ErrorCode,
        reason: str,
        *,
        actor: str = "system",
        keep_below: bool = False,
    ) -> asyncio.Task[None]:
        """Begin to end a handoff: what is below first, then what it asks, then its run; gives the task."""
        live = self.live.setdefault(name, Live())
        if live.cutting is None:
            live.doomed = True
            self.line.drop(name)
            if not keep_below:
                for one in self.below(name):
                    self.live[one].doomed = True
            work = self._cut(name, target, code, reason, actor, keep_below=keep_below)
            live.cutting = self.own(work, f"end {name}")
        return live.cutting

    def below(self, name: str) -> list[str]:
        """All open handoffs below one."""
        found: list[str] = []
        for child in self.state.children(name):
            found += self.below(child.id)
            found += [child.id] if child.open else []
        return found

    async def _cut(
        self, name: str, target: HandoffState, code: ErrorCode, reason: str, actor: str, *, keep_below: bool
    ) -> None:
        if not keep_below:
            await self.cut_below(name, f"{name} ends: {reason}", actor)
        self.close_requests(name)
        run, text = self.state.handoffs[name].run, ""
        if run and self.worker is not None:
            text = self.worker.streamed(run)
        spent = self.deadlines.spent_s(name)
        usage = await self.stopped(name, reason)
        handoff = self.state.handoffs[name]
        if handoff.open:
            result = failure(
                handoff, code, clean_line(reason), target, output=text, usage=usage, duration_s=spent
            )
            self.finish(name, target, result, reason=clean_line(reason), actor=actor)

    async def cut_below(self, name: str, reason: str, actor: str = "system") -> None:
        """End all that is below a handoff, the deepest first."""
        cuts = [
            self.cut(child.id, HandoffState.CANCELLED, ErrorCode.CANCELLED, reason, actor=actor)
            for child in self.state.children(name)
            if child.open
        ]
        if cuts:
            await asyncio.wait(cuts)

    async def stopped(self, name: str, reason: str) -> Usage:
        """End the run of a handoff, within the time that it has for that; what it took of models."""
        work = self.own(self._stop(name, reason), f"stop {name}")
        limit = asyncio.ensure_future(self.clock.sleep(CLEANUP_S))
        await asyncio.wait({work, limit}, return_when=asyncio.FIRST_COMPLETED)
        limit.cancel()
        with suppress(Exception):
            if work.done():
                return work.result()
        handoff = self.state.handoffs[name]
        beginning = self.live[name].beginning
        if beginning is not None:
            beginning.cancel()
        return self.worker.usage(handoff.run) if self.worker is not None and handoff.run else Usage()

    async def _stop(self, name: str, reason: str) -> Usage:
        beginning = self.live[name].beginning
        if beginning is not None and not beginning.done():
            await asyncio.wait([beginning])
        run = self.state.handoffs[name].run
        if self.worker is None or not run:
            return Usage()
        return await self.worker.stop(run, reason)

    def time_is_over(self, name: str) -> None:
        """The deadline of a handoff has come."""
        handoff = self.state.handoffs[name]
        if handoff.state is HandoffState.RUNNING and not self.live[name].doomed:
            said = f"it took longer than {handoff.limit_s:.0f} s"
            self.cut(name, HandoffState.TIMED_OUT, ErrorCode.TIMEOUT, said)
