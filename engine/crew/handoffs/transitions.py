"""The states of handoffs: each move is one event; and the ways to end one before its work is done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from engine.core import crew as ce
from engine.core.crew_commands import CancelHandoff, ForCrew, ReportHandoff
from engine.core.ports import Clock
from engine.core.reasons import Reason, clean_reason
from engine.core.text import clean_line
from engine.crew.event_stream import EventStream
from engine.crew.handoffs.contexts import failed_result
from engine.crew.handoffs.schedule import Deadlines, WaitingQueue
from engine.crew.ontology.kinds import ErrorCode, HandoffState, check_move
from engine.crew.ontology.results import HandoffResult, Usage
from engine.crew.ports import Worker
from engine.crew.state import CrewState, Handoff

T = TypeVar("T")


CLEANUP_S = 5.0
"""Seconds that a run has to end in."""


@dataclass(slots=True)
class OpenHandoff:
    """What is known of an open handoff besides its events."""

    done: asyncio.Event = field(default_factory=asyncio.Event)
    waits: set[str] = field(default_factory=set)
    """Why it waits for the operator: requests, or the engine."""
    beginning: asyncio.Task[None] | None = None
    cutting: asyncio.Task[None] | None = None
    doomed: bool = False
    """Whether it is about to be ended: nothing more is taken from it."""


class HandoffTransitions:
    """Takes handoffs from state to state, and ends them early: cancelled, out of time or withdrawn.

    What is below one ends first, then what is asked of the operator, then the run, whose text so far is kept.

    Args:
        stream: the stream of their events.
        clock: the engine's.
    """

    def __init__(self, stream: EventStream, clock: Clock) -> None:
        self.stream, self.clock = stream, clock
        self.line = WaitingQueue(clock.monotonic, self.priority)
        self.live: dict[str, OpenHandoff] = {}
        self.worker: Worker | None = None
        self.deadlines: Deadlines
        self.ended: list[Callable[[Handoff, HandoffResult], None]] = []
        """Told of each handoff that has ended."""
        self.closing = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self.stopping: asyncio.Task[None] | None = None
        """Ends the runs that the last session left."""
        self.close_requests: Callable[[str], None] = lambda _handoff: None
        """Cancels what is asked of the operator about a handoff, before it ends."""

    @property
    def state(self) -> CrewState:
        """The crew."""
        return self.stream.state

    def priority(self, name: str) -> int:
        """How urgent a handoff, or the one of a run, is."""
        handoff = self.state.handoffs.get(name) or self.state.handoff_of(name)
        return int(handoff.priority) if handoff is not None else 1

    def start_task(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Let something continue by itself; closing waits for it."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def drop_tasks(self) -> None:
        """Cancel all tasks that it started."""
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
        step = self._step(name, target, reason)
        if spent_s is not None:
            step["spent_s"] = round(spent_s, 3)
        self.stream.append(ce.HandoffMoved(**step, limit_s=limit_s), actor=actor)
        self._report(self.state.handoffs[name])

    def _step(self, name: str, target: HandoffState, reason: str) -> dict[str, Any]:
        handoff = self.state.handoffs[name]
        check_move(handoff.state, target)
        return {
            "handoff": name,
            "seq": len(handoff.moves) + 1,
            "source": handoff.state,
            "target": target,
            "reason": reason,
            "spent_s": round(self.deadlines.spent_s(name), 3),
        }

    def finish(
        self,
        name: str,
        target: HandoffState,
        result: HandoffResult,
        *,
        reason: str = "",
        actor: str = "system",
        reported: bool = False,
    ) -> None:
        """Take the last step, with the result and what its run took of models, however it ends.

        Args:
            name: its id.
            target: where it ends.
            result: what it ends with.
            reason: why.
            actor: who ends it.
            reported: whether the engine that has it says so, and need not be told.

        Raises:
            IllegalTransition: it cannot end so from where it is; nothing changed.
        """
        self._by_running(name, target, actor)
        step = self._step(name, target, reason)
        handoff = self.state.handoffs[name]
        if result.usage == Usage() and self.worker is not None and handoff.run:
            result = result.model_copy(update={"usage": self.worker.usage(handoff.run)})
        used = bool(handoff.run) and result.metadata.get("by") != "operator"
        # A workspace without a model says nothing about an agent that needs one.
        used = used and result.error_code is not ErrorCode.NO_MODEL
        self.stream.append(ce.HandoffEnded(**step, result=result.model_dump(mode="json")), actor=actor)
        if not reported:
            self._report(self.state.handoffs[name])
        if used and target is not HandoffState.CANCELLED:
            usage = ce.UsageRecorded(
                agent=handoff.agent,
                handoff=name,
                session=handoff.context.session_id or "",
                success=result.success,
                usage=result.usage.model_dump(mode="json"),
            )
            self.stream.append(usage)
        self.line.drop(name)
        self.deadlines.end(name)
        self.live.setdefault(name, OpenHandoff()).done.set()
        for notify in self.ended:
            notify(self.state.handoffs[name], result)

    def tell(self, handoff: Handoff, command: ForCrew) -> None:
        """Have the engine that handed work over, or that of its agent, told of it.

        What is appended here is durable with what was appended just before, or neither is.
        """
        about = {"handoff": handoff.id, "agent": handoff.agent, "origin": handoff.origin}
        self.stream.append(ce.HandoffSent(**about, command=command.model_dump(mode="json")))

    def _report(self, handoff: Handoff) -> None:
        """Tell the other engine that has a part in a handoff how it stands now."""
        result = handoff.result
        if handoff.origin:
            given = result.model_dump(mode="json") if result is not None else None
            stands = {"handoff": handoff.id, "state": handoff.state, "limit_s": handoff.limit_s}
            self.tell(handoff, ReportHandoff(**stands, result=given))
        elif handoff.remote and result is not None:
            why = clean_line(result.error or "it has a result", limit=2_000)
            self.tell(handoff, CancelHandoff(handoff=handoff.id, reason=why))

    def _by_running(self, name: str, target: HandoffState, actor: str) -> None:
        """Some ends are reached from running only: what waits or rests continues for a moment."""
        here = self.state.handoffs[name].state
        direct = {HandoffState.CANCELLED, HandoffState.REJECTED}
        if here is HandoffState.WAITING_HUMAN:
            direct.add(HandoffState.FAILED)
        if here is not HandoffState.RUNNING and not here.terminal and target not in direct:
            self.move(name, HandoffState.RUNNING, actor=actor)

    def fail(
        self, name: str, code: ErrorCode, message: str, target: HandoffState = HandoffState.FAILED
    ) -> None:
        """End a handoff as failed, or otherwise; nothing where it is over or being ended."""
        live = self.live.get(name)
        handoff = self.state.handoffs[name]
        if not handoff.open or (live is not None and live.doomed):
            return
        spent = self.deadlines.spent_s(name)
        result = failed_result(handoff, code, message, target, duration_s=spent)
        why = Reason("handoff.failed", error_code=code, message=message)
        self.finish(name, target, result, reason=why)

    def add_wait(self, name: str, why: str) -> None:
        """A handoff waits for the operator, for one more reason; its clock and those above stand still."""
        handoff, live = self.state.handoffs.get(name), self.live.get(name)
        if handoff is None or live is None or live.doomed or not handoff.open:
            return
        if handoff.state is HandoffState.RUNNING:
            self.move(name, HandoffState.WAITING_HUMAN, reason=why)
        live.waits.add(why)
        self.deadlines.hold(name, why)

    def remove_wait(self, name: str, why: str) -> None:
        """One reason less; with the last it runs again."""
        handoff, live = self.state.handoffs.get(name), self.live.get(name)
        if handoff is None or live is None or why not in live.waits:
            return
        live.waits.discard(why)
        self.deadlines.go(name, why)
        if not live.waits and handoff.state is HandoffState.WAITING_HUMAN and not live.doomed:
            self.move(name, HandoffState.RUNNING, reason=Reason("handoff.settled", request=why))

    # -------------------------------------------------------------- ends before the work is done

    async def cancel(
        self, name: str, reason: str, *, actor: str = "system", keep_below: bool = False
    ) -> bool:
        """End a handoff with all that is below it; False where it is over already.

        It is carried out to the end even when the caller is cancelled.

        Args:
            name: its id.
            reason: why, in words.
            actor: who wants it.
            keep_below: whether what it handed over continues.
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
        live = self.live.setdefault(name, OpenHandoff())
        if live.cutting is None:
            live.doomed = True
            self.line.drop(name)
            if not keep_below:
                for child in self.below(name):
                    self.live[child].doomed = True
            work = self._cut(name, target, code, reason, actor, keep_below=keep_below)
            live.cutting = self.start_task(work, f"end {name}")
        return live.cutting

    def below(self, name: str) -> list[str]:
        """All open handoffs below one."""
        ids: list[str] = []
        for child in self.state.children(name):
            ids += self.below(child.id)
            ids += [child.id] if child.open else []
        return ids

    async def _cut(
        self, name: str, target: HandoffState, code: ErrorCode, reason: str, actor: str, *, keep_below: bool
    ) -> None:
        if not keep_below:
            await self.cut_below(name, Reason("handoff.above", handoff=name, why=reason), actor)
        self.close_requests(name)
        run, text = self.state.handoffs[name].run, ""
        if run and self.worker is not None:
            text = self.worker.streamed(run)
        spent = self.deadlines.spent_s(name)
        await self.stopped(name, reason)
        handoff = self.state.handoffs[name]
        if handoff.open:
            result = failed_result(handoff, code, clean_line(reason), target, output=text, duration_s=spent)
            self.finish(name, target, result, reason=clean_reason(reason), actor=actor)

    async def cut_below(self, name: str, reason: str, actor: str = "system") -> None:
        """End all that is below a handoff, the deepest first."""
        cuts = [
            self.cut(child.id, HandoffState.CANCELLED, ErrorCode.CANCELLED, reason, actor=actor)
            for child in self.state.children(name)
            if child.open
        ]
        if cuts:
            await asyncio.wait(cuts)

    async def stopped(self, name: str, reason: str) -> None:
        """End the run of a handoff, within the time that it has for that."""
        work = self.start_task(self._stop(name, reason), f"stop {name}")
        limit = asyncio.ensure_future(self.clock.sleep(CLEANUP_S))
        await asyncio.wait({work, limit}, return_when=asyncio.FIRST_COMPLETED)
        limit.cancel()
        beginning = self.live[name].beginning
        stopped = work.done() and not work.cancelled() and work.exception() is None
        if beginning is not None and not stopped:
            beginning.cancel()

    async def _stop(self, name: str, reason: str) -> None:
        beginning = self.live[name].beginning
        if beginning is not None and not beginning.done():
            await asyncio.wait([beginning])
        run = self.state.handoffs[name].run
        if self.worker is not None and run:
            await self.worker.stop(run, reason)

    def expire(self, name: str) -> None:
        """The deadline of a handoff has come."""
        handoff = self.state.handoffs[name]
        if handoff.state is HandoffState.RUNNING and not self.live[name].doomed:
            message = f"it took longer than {handoff.limit_s:.0f} s"
            self.cut(name, HandoffState.TIMED_OUT, ErrorCode.TIMEOUT, message)
