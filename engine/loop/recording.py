"""What an agent stands on: its folded state, its log, and what reaches it from outside."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from engine.actions.pipeline import Pipeline, Toolbox
from engine.actions.saving import Saver
from engine.domain.action import SandboxSession
from engine.domain.parameters import Survey
from engine.domain.ports import Clock, Randomness, SessionControl
from engine.domain.reasoning import SentMessage
from engine.domain.state import ActiveAction, AgentState
from engine.domain.thinking import Thinker
from engine.journal import events as ev
from engine.journal.errors import JournalError
from engine.journal.event import Event
from engine.journal.fold import apply
from engine.journal.log import StreamLog
from engine.library.prompt_parts import Parts, built_in
from engine.loop.voice import Voice
from engine.memory import Memory
from engine.metacognition import BackgroundRunner, WorkflowOf, workflow_of
from engine.models.repairs import REPAIRS
from engine.parameters import Enquiry
from engine.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from engine.generation.pgp import Answerer
    from engine.loop.pacing import Pace
    from engine.loop.purse import Purse
    from engine.steering.ledger import Ledger

T = TypeVar("T")


class Perceiver(Protocol):
    """Looks at an agent's surroundings."""

    async def perceive(self, session: SandboxSession) -> tuple[dict[str, Any], SandboxSession]:
        """Facts about the workspace, and the session corrected where the workspace changed under it."""

    async def lost_by(self, agent: str, action: ActiveAction, cwd: str, own: str) -> int:
        """Bytes that the action's `content` would take the place of (`engine.sandbox.overwriting`)."""

    async def survey(self, agent: str, action: ActiveAction, cwd: str, enquiry: Enquiry) -> Survey:
        """What the paths of an action's arguments lead to, and what is there under a like name."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Everything that reaches an agent from outside."""

    thinker: Thinker
    toolbox: Toolbox
    saver: Saver
    perceiver: Perceiver
    registry: ToolRegistry
    clock: Clock
    put_blob: Callable[[bytes], Awaitable[str]]
    randomness: Callable[[int], Randomness]
    control: SessionControl
    voice: Voice | None = None
    """What the agent's model says; None where there is none, as in a replay."""
    model: Purse | None = None
    """Who asks the agent's model, within its budget; None where there is none, as in a replay."""
    model_name: str = ""
    """The model's name, as its endpoint knows it; empty where none is to be asked."""
    parts: Callable[[], Awaitable[Parts]] = built_in
    """Reads the workspace's parts of prompts; what a prompt was made of is recorded with the call."""
    repairs: int = REPAIRS
    """How often the model may put right an answer that cannot be used."""
    answerer: Answerer | None = None
    """Who makes plans for a reasoner; None where nobody does."""
    post: Callable[[str, SentMessage], None] = lambda _sender, _message: None
    """Delivers what a reasoner sends."""
    memory: Memory | None = None
    """What the workspace's agents remember; None where there is none, as in a replay."""
    workflow_of: WorkflowOf = workflow_of
    """Finds the workflow that a goal has in memory."""
    ledger: Ledger | None = None
    """Counts what all agents take against their budgets; None in a replay, which is fed what it decided."""
    background: BackgroundRunner | None = None
    """Who runs background work; None in a replay, which is fed what came of it."""
    pace: Pace | None = None
    """Whose turn it is among many agents; None where there is one, as in a replay."""
    watches: bool = False
    """Whether somebody looks if the agent is stuck; not in a replay, which is fed what was seen."""


class RecordingAgent:
    """Appends to the agent's stream, folds what it appends, and waits for changes."""

    def __init__(self, state: AgentState, log: StreamLog, around: Surroundings) -> None:
        self.state = state
        self.log = log
        self.around = around
        self.pipeline = Pipeline(self, around.toolbox, around.registry, around.put_blob)
        self._changed = asyncio.Event()
        self._tick = 0
        self._stop = ""
        """The newest stop when the tick began; what a later one ends stays ended if the agent runs again."""
        self.asked = ""
        """The event by which a model was asked last."""
        self._random = around.randomness(0)
        if around.voice is not None:
            around.voice.listener = self
        if around.model is not None:
            around.model.spender = self

    def append(self, payload: ev.Payload, actor: str, *causes: str) -> Event:
        """Record what happened and bring the state forward."""
        tick = self._tick if actor == "agent" else self.state.tick
        known = tuple(dict.fromkeys(cause for cause in causes if cause))
        event = self.log.append(payload, actor=actor, causes=known, tick=max(tick, self.state.tick))
        # As stored, not the payload at hand: the order of its keys may differ, and must not matter.
        apply(self.state, event)
        if self.state.reached:
            self._changed.set()
        if isinstance(payload, ev.Rewound):
            self._changed.set()  # here, as a replay is fed it: what the agent waits with is no longer wanted
        return event

    def _observe(self, payload: ev.Payload, actor: str, *causes: str) -> None:
        self.append(payload, actor, *causes)
        self.commit_soon()

    def _job_event(self, job: str) -> str:
        """The event that a job's next one follows from."""
        return self.state.jobs[job].event if job in self.state.jobs else ""

    def job_started(self, job: str, command: str, action: str) -> None:
        """See `engine.domain.ports.SessionObserver`."""
        cause = self.state.action.event if self.state.action is not None else ""
        self._observe(ev.JobStarted(job=job, command=command, action=action), "system", cause)

    def job_output(self, job: str, stream: str, text: str, skipped: int) -> None:
        """See `engine.domain.ports.SessionObserver`."""
        said = ev.JobOutput(job=job, stream=stream, text=text, skipped=skipped)
        self._observe(said, "system", self._job_event(job))

    def job_ended(self, job: str, ended: str, code: int | None, message: str) -> None:
        """See `engine.domain.ports.SessionObserver`."""
        said = ev.JobEnded(job=job, ended=ended, code=code, message=message)
        self._observe(said, "system", self._job_event(job))

    def overheard(self, payload: ev.ModelSaid | ev.ModelCalled | ev.BudgetReached) -> None:
        """See `engine.loop.voice.Listener` and `engine.loop.purse.Spender`."""
        self._observe(payload, "thinker", self.asked)
        if isinstance(payload, ev.BudgetReached):
            self.poke()  # what waits at the gate says so, in a replay at the same place

    def offered(self, said: ev.ToolOffered) -> None:
        """A tool from outside offers something else from now on."""
        self._observe(said, "system")

    def typed(self, action: str, text: str | None) -> None:
        """See `engine.domain.ports.SessionObserver`."""
        self._observe_shell(ev.ShellTyped(action=action, text=text or "", hidden=text is None))

    def resized(self, action: str, rows: int, columns: int) -> None:
        """See `engine.domain.ports.SessionObserver`."""
        self._observe_shell(ev.ShellResized(action=action, rows=rows, columns=columns))

    def _observe_shell(self, payload: ev.ShellTyped | ev.ShellResized) -> None:
        shell = self.state.action
        if shell is not None and shell.id == payload.action:
            self._observe(payload, shell.actor, shell.event)

    def poke(self) -> None:
        """Let a waiting agent look again whether it may go on."""
        self._changed.set()

    def commit_soon(self) -> None:
        """Make what is pending durable in the background."""
        self.log.commit_soon()

    async def commit(self) -> None:
        """Make events durable, however long the journal is in trouble."""
        while True:
            try:
                await self.log.commit()
            except JournalError:
                await self._wait_for_change()
            else:
                return

    async def _while(self, holds: Callable[[], bool], work: Coroutine[Any, Any, T]) -> T | None:
        """What the work gives; None when something came meanwhile that cut it off: then it has ended."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done() and holds():
                self._changed.clear()
                waiter = asyncio.ensure_future(self._changed.wait())
                try:
                    await asyncio.wait({task, waiter}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    waiter.cancel()
            return task.result() if task.done() else None
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _wait_for_change(self) -> None:
        await self._changed.wait()
        self._changed.clear()
