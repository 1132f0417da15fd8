"""Where handoffs stand: each move is one event with its place in the course (ontology spec §1.9)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from engine.agents.kinds import ErrorCode, HandoffState, check_move
from engine.agents.result import HandoffResult, Usage
from engine.crew.clocks import Deadlines
from engine.crew.contexts import Setting, failure
from engine.crew.parts import Worker
from engine.crew.queue import Line
from engine.crew.spine import Spine
from engine.crew.state import CrewState, Handoff
from engine.domain.ports import Clock
from engine.journal import crew_events as ce

T = TypeVar("T")


@dataclass(slots=True)
class Live:
    """What is known of an open handoff besides its events."""

    done: asyncio.Event = field(default_factory=asyncio.Event)
    waits: set[str] = field(default_factory=set)
    """Why it waits for the operator: requests, or the engine."""
    beginning: asyncio.Task[None] | None = None
    cutting: asyncio.Task[None] | None = None
    doomed: bool = False
    """Whether it is about to be ended: nothing more is taken from it."""


class Moves:
    """Takes handoffs from state to state.

    Args:
        spine: where their events go.
        clock: the engine's.
        setting: the session.
    """

    def __init__(self, spine: Spine, clock: Clock, setting: Setting) -> None:
        self.spine, self.clock, self.setting = spine, clock, setting
        self.line = Line(clock.monotonic, self.priority)
        self.live: dict[str, Live] = {}
        self.worker: Worker | None = None
        self.deadlines: Deadlines
        self.ended: list[Callable[[Handoff, HandoffResult], None]] = []
        """Told of each handoff that has ended."""
        self.closing = False
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def state(self) -> CrewState:
        """The crew."""
        return self.spine.state

    def priority(self, name: str) -> int:
        """How urgent a handoff, or the one of a run, is."""
        found = self.state.handoffs.get(name) or self.state.handoff_of(name)
        return int(found.priority) if found is not None else 1

    def own(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Let something go on by itself; closing waits for it."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def settled(self) -> None:
        """Wait for all that goes on by itself."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def drop_tasks(self) -> None:
        """Cancel all that goes on by itself."""
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def move(
        self,
        name: str,
        target: HandoffState,
        *,
        reason: str = "",
        actor: str = "system",
        limit_s: float = 0.0,
        spent_s: float | None = None,
    ) -> None:
        """Take one step.

        Raises:
            IllegalTransition: it cannot go there; nothing changed.
        """
        handoff = self.state.handoffs[name]
        check_move(handoff.state, target)
        spent = self.deadlines.spent_s(name) if spent_s is None else spent_s
        moved = ce.HandoffMoved(
            handoff=name,
            seq=len(handoff.moves) + 1,
            source=handoff.state,
            target=target,
            reason=reason,
            spent_s=round(spent, 3),
            limit_s=limit_s,
        )
        self.spine.append(moved, actor=actor)

    def finish(
        self,
        name: str,
        target: HandoffState,
        result: HandoffResult,
        *,
        reason: str = "",
        actor: str = "system",
    ) -> None:
        """Take the last step, with what came of it.

        Raises:
            IllegalTransition: it cannot end so from where it is; nothing changed.
        """
        self._by_running(name, target, actor)
        handoff = self.state.handoffs[name]
        check_move(handoff.state, target)
        used = bool(handoff.run) and not handoff.proof and result.metadata.get("by") != "operator"
        # A workspace without a model says nothing about an agent that needs one.
        used = used and result.error_code is not ErrorCode.NO_MODEL
        self.spine.append(
            ce.HandoffEnded(
                handoff=name,
                seq=len(handoff.moves) + 1,
                source=handoff.state,
                target=target,
                reason=reason,
                spent_s=round(self.deadlines.spent_s(name), 3),
                result=result.model_dump(mode="json"),
            ),
            actor=actor,
        )
        if used and target is not HandoffState.CANCELLED:
            usage = ce.UsageRecorded(
                agent=handoff.agent,
                handoff=name,
                session=handoff.context.session_id or "",
                success=result.success,
                usage=result.usage.model_dump(mode="json"),
            )
            self.spine.append(usage)
        self.line.drop(name)
        self.deadlines.end(name)
        live = self.live.setdefault(name, Live())
        live.done.set()
        for told in self.ended:
            told(self.state.handoffs[name], result)

    def _by_running(self, name: str, target: HandoffState, actor: str) -> None:
        """Some ends are reached from running only: what waits or rests goes on for a moment."""
        here = self.state.handoffs[name].state
        direct = {HandoffState.CANCELLED, HandoffState.REJECTED}
        if here is HandoffState.WAITING_HUMAN:
            direct.add(HandoffState.FAILED)
        if here is not HandoffState.RUNNING and not here.terminal and target not in direct:
            self.move(name, HandoffState.RUNNING, actor=actor)

    def fail(
        self, name: str, code: ErrorCode, message: str, *, output: str = "", usage: Usage | None = None
    ) -> None:
        """End a running handoff as failed; nothing where it is over or being ended."""
        live = self.live.get(name)
        handoff = self.state.handoffs[name]
        if not handoff.open or (live is not None and live.doomed):
            return
        spent = self.deadlines.spent_s(name)
        result = failure(
            handoff, code, message, HandoffState.FAILED, output=output, usage=usage, duration_s=spent
        )
        self.finish(name, HandoffState.FAILED, result, reason=f"{code}: {message}")

    def waits(self, name: str, why: str) -> None:
        """A handoff waits for the operator, for one more reason; its clock and those above stand still."""
        handoff, live = self.state.handoffs.get(name), self.live.get(name)
        if handoff is None or live is None or live.doomed or not handoff.open:
            return
        if handoff.state is HandoffState.RUNNING:
            self.move(name, HandoffState.WAITING_HUMAN, reason=why)
        live.waits.add(why)
        self.deadlines.hold(name, why)

    def goes_on(self, name: str, why: str) -> None:
        """One reason less; with the last it runs again."""
        handoff, live = self.state.handoffs.get(name), self.live.get(name)
        if handoff is None or live is None or why not in live.waits:
            return
        live.waits.discard(why)
        self.deadlines.go(name, why)
        if not live.waits and handoff.state is HandoffState.WAITING_HUMAN and not live.doomed:
            self.move(name, HandoffState.RUNNING, reason=f"{why} is settled")
