"""An agent's record: its folded state and its log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol, TypeVar

from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.fold import apply
from engine.core.journal import Event, JournalError
from engine.core.state import AgentState
from engine.core.streams import StreamLog

T = TypeVar("T")


class AppendObserver(Protocol):
    """Is shown everything that an agent records, such as its reasoner."""

    def before(self, payload: ev.Payload) -> None:
        """Something is about to be recorded; what must come before it is recorded now."""

    def after(self, event: Event, payload: ev.Payload) -> None:
        """It is recorded, and the state follows it."""


class AgentRecorder:
    """Appends to an agent's stream, folds what it appends, and lets its collaborators wait for changes.

    Args:
        state: the agent's state; only what is appended here changes it.
        log: the agent's stream.
    """

    def __init__(self, state: AgentState, log: StreamLog) -> None:
        self.state = state
        self.log = log
        self.observer: AppendObserver | None = None
        self.changed = asyncio.Event()
        """Set when what the agent waits with may have to be looked at again."""
        self.asked = ""
        """The event by which a model was asked last."""
        self._tick = 0
        self._stop = ""
        """The newest stop when the tick began; what a later one ends stays ended if the agent runs again."""

    def begin_tick(self) -> None:
        """Begin a tick: what the agent records from now on belongs to it."""
        self._tick, self._stop = self.state.tick + 1, self.state.stop_event

    def leave_tick(self) -> None:
        """What the agent records from now on belongs to no tick that has not begun."""
        self._tick = self.state.tick

    @property
    def stopped(self) -> bool:
        """Whether the agent is stopped, or was since the tick began."""
        return self.state.run is RunState.STOPPED or self.state.stop_event != self._stop

    @property
    def newest(self) -> str:
        """The newest event of the stream."""
        return f"{self.log.stream}:{self.log.version}"

    def append(self, payload: ev.Payload, actor: str, *causes: str) -> Event:
        """Record what happened and bring the state forward."""
        if self.observer is not None:
            self.observer.before(payload)
        tick = self._tick if actor == "agent" else self.state.tick
        known = tuple(dict.fromkeys(cause for cause in causes if cause))
        event = self.log.append(payload, actor=actor, causes=known, tick=max(tick, self.state.tick))
        # As stored, not the payload at hand: the order of its keys may differ, and must not matter.
        apply(self.state, event)
        # A rewind is noticed here, as a replay is fed it: what the agent waits with is no longer needed.
        if self.state.reached or isinstance(payload, ev.Rewound):
            self.changed.set()
        if self.observer is not None:
            self.observer.after(event, payload)
        return event

    def append_all(self, payloads: Iterable[ev.Payload], *causes: str) -> None:
        """Record what the agent did, one after the other with the same causes."""
        for payload in payloads:
            self.append(payload, "agent", *causes)

    def observe(self, payload: ev.Payload, actor: str, *causes: str) -> None:
        """Record what came from outside, and make it durable in the background."""
        self.append(payload, actor, *causes)
        self.commit_soon()

    def _job_event(self, job: str) -> str:
        """The event that a job's next one follows from."""
        return self.state.jobs[job].event if job in self.state.jobs else ""

    def job_started(self, job: str, command: str, action: str) -> None:
        """See `engine.core.ports.SessionObserver`."""
        cause = self.state.action.event if self.state.action is not None else ""
        self.observe(ev.JobStarted(job=job, command=command, action=action), "system", cause)

    def job_output(self, job: str, stream: str, text: str, skipped: int) -> None:
        """See `engine.core.ports.SessionObserver`."""
        output = ev.JobOutput(job=job, stream=stream, text=text, skipped=skipped)
        self.observe(output, "system", self._job_event(job))

    def job_ended(self, job: str, ended: str, code: int | None, message: str) -> None:
        """See `engine.core.ports.SessionObserver`."""
        end = ev.JobEnded(job=job, ended=ended, code=code, message=message)
        self.observe(end, "system", self._job_event(job))

    def record_model_event(self, payload: ev.ModelSaid | ev.ModelCalled | ev.BudgetReached) -> None:
        """Record what came from a model, or that a call of it was not made."""
        self.observe(payload, "thinker", self.asked)
        if isinstance(payload, ev.BudgetReached):
            self.wake()  # what waits at the gate says so, in a replay at the same place

    def typed(self, action: str, text: str | None) -> None:
        """See `engine.core.ports.SessionObserver`."""
        self._observe_shell(ev.ShellTyped(action=action, text=text or "", hidden=text is None))

    def resized(self, action: str, rows: int, columns: int) -> None:
        """See `engine.core.ports.SessionObserver`."""
        self._observe_shell(ev.ShellResized(action=action, rows=rows, columns=columns))

    def _observe_shell(self, payload: ev.ShellTyped | ev.ShellResized) -> None:
        shell = self.state.action
        if shell is not None and shell.id == payload.action:
            self.observe(payload, shell.actor, shell.event)

    def wake(self) -> None:
        """Let a waiting agent look again whether it may continue."""
        self.changed.set()

    def commit_soon(self) -> None:
        """Make what is pending durable in the background."""
        self.log.commit_soon()

    async def commit_meanwhile(self) -> None:
        """Make events durable beside what follows; waits where the journal refuses."""
        self.commit_soon()
        await asyncio.sleep(0)
        if self.log.trouble is not None:
            await self.commit()

    async def commit(self) -> None:
        """Make events durable, however long the journal is in trouble."""
        while True:
            try:
                await self.log.commit()
            except JournalError:
                await self.wait_for_change()
            else:
                return

    async def run_while(self, holds: Callable[[], bool], work: Coroutine[Any, Any, T]) -> T | None:
        """What the work gives; None when something came meanwhile that cut it off: then it has ended."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done() and holds():
                self.changed.clear()
                waiter = asyncio.ensure_future(self.changed.wait())
                try:
                    await asyncio.wait({task, waiter}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    waiter.cancel()
            return task.result() if task.done() else None
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def wait_for_change(self) -> None:
        """Wait until something may have changed."""
        await self.changed.wait()
        self.changed.clear()
