"""Ports of a replayed agent: they answer from one recorded stream, and know how far its replay has come."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from engine.agent.actions.snapshots import NothingSaved, Saved
from engine.agent.plan_maker import PlanMaker
from engine.agent.reasoner.reasoner import Reasoner
from engine.agent.recorder import AgentRecorder
from engine.agent.shared import commands_of
from engine.core import events as ev
from engine.core.actions import Extraction, SandboxSession, Survey, ToolResult
from engine.core.beliefs import BeliefSource, BeliefTerms
from engine.core.journal import Event
from engine.core.ports import CallContext, CommandSpec, Tool
from engine.core.reasoner import Generation
from engine.core.recovery import ActiveAction, FailureKind
from engine.core.sandbox import ReturnedShell
from engine.core.thinking import Decision, DecisionRequest, PlanProposal, PlanRequest, ThinkingError
from engine.models.errors import ModelError, ModelErrorKind
from engine.planning.pgp.requests import Answerer, GenerationConfig, Prompt, Reply
from engine.sandbox.snapshots.entry import Changes
from engine.tools.parameters.paths import LookupRequest
from engine.tools.parameters.processing import Question
from engine.tools.registry import ToolRegistry
from engine.value import dataclass, fields_of

P = TypeVar("P", bound=ev.Payload)


class DivergedError(Exception):
    """The replay did something that the record does not have."""


class SessionEnded(BaseException):
    """The recorded session ended here, in whatever the agent was doing."""


class RecordedStream:
    """The recorded events, and how far the replay has come."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.payloads = [ev.payload_of(event) for event in events]
        self.place = 0

    @property
    def next(self) -> Event | None:
        """The event that must come next."""
        return self.events[self.place] if self.place < len(self.events) else None

    @property
    def next_payload(self) -> ev.Payload | None:
        """What that event says."""
        return self.payloads[self.place] if self.place < len(self.payloads) else None

    def ahead(self, kind: type[P]) -> Iterator[P]:
        """Payloads of a kind from here on, nearest first."""
        return (payload for payload in self.payloads[self.place :] if isinstance(payload, kind))

    def was_held(self, asked: type[ev.Payload]) -> bool:
        """Whether a budget kept the call from being made for which was asked last."""
        for payload in reversed(self.payloads[: self.place]):
            if isinstance(payload, asked):
                return False
            if isinstance(payload, ev.BudgetReached) and payload.before == "call":
                return True
        return False

    def beliefs_after(self, finished: ev.ActionFinished) -> tuple[dict[str, Any], dict[str, BeliefTerms]]:
        """The beliefs that were recorded right after an action's end, and the terms of some."""
        beliefs: dict[str, Any] = {}
        terms: dict[str, BeliefTerms] = {}
        start = next(n for n, payload in enumerate(self.payloads) if payload is finished) + 1
        for payload in self.payloads[start:]:
            if isinstance(payload, ev.BeliefAdded | ev.BeliefOutweighed):
                beliefs[payload.key] = payload.value
                guessed = payload.source is BeliefSource.INFERENCE
                if guessed or payload.ttl_s is not None:
                    sure = payload.confidence if guessed else None
                    terms[payload.key] = BeliefTerms(sure, payload.ttl_s)
            elif isinstance(payload, ev.BeliefRemoved):
                beliefs[payload.key] = None
            else:
                break
        return beliefs, terms

    def now(self) -> str:
        """The recorded time of the event that is about to be appended."""
        return self.next.at if self.next is not None else ""

    def monotonic(self) -> float:
        """Durations are recorded, so none is measured."""
        return 0.0

    async def sleep(self, seconds: float) -> None:
        """Nothing is waited for."""
        await asyncio.sleep(0)


_MEANWHILE = (
    *(ev.ReasonerAdvanced, ev.GenerationAsked, ev.GenerationSettled, ev.PlansHeld),
    *(ev.GenerationBegun, ev.AgentPaused, ev.ReasonerBusy, ev.ReasonerCut),
)
"""What an agent with a reasoner does while an action runs."""
TURNS = 100_000
"""Turns of the event loop that a reasoner has to continue during one action."""


class RecordedThinker:
    """Answers with the plans on record."""

    free = True
    name = "recorded"

    def __init__(self, record: RecordedStream) -> None:
        self._record = record

    async def plan(self, request: PlanRequest) -> PlanProposal:
        """The plan that the record has next."""
        self._fail_unless(ev.PlanGenerated)
        generated = next(self._record.ahead(ev.PlanGenerated))
        return PlanProposal(generated.steps, generated.uncovered, generated.thinker)

    async def decide(self, request: DecisionRequest) -> Decision:
        """The decision that the record has next."""
        self._fail_unless(ev.DecisionMade)
        return next(self._record.ahead(ev.DecisionMade)).decision

    def _fail_unless(self, answer: type[ev.Payload]) -> None:
        """Fail as the thinker did; where its answer did not count when it came, as one that was held.

        What came meanwhile was fed in at once, so a run after a stop would hide that the stop cut it off.
        """
        payload = self._record.next_payload
        if isinstance(payload, ev.ThinkingFailed):
            raise ThinkingError(payload.failure, payload.message, payload.retry_after_s)
        if not isinstance(payload, answer):
            raise ThinkingError(FailureKind.CANCELLED, "the answer did not count", held=True)


@dataclass(frozen=True, slots=True)
class _OnRecord:
    """Stands for the model that was asked; its answers are fed in."""

    model: str

    async def answer(self, prompt: Prompt, config: GenerationConfig) -> Reply:
        """Never asked."""
        raise DivergedError("a model is asked, and the record does not have it")


class RecordedPlanMaker(PlanMaker):
    """Goes on with a generation when the record does; asks and checks nothing."""

    def __init__(self, record: RecordedStream, recorder: AgentRecorder, reasoner: Reasoner) -> None:
        super().__init__(recorder, reasoner, None)
        self._record = record

    @property
    def due(self) -> Generation | None:
        """The generation that the record continues with."""
        payload = self._record.next_payload
        if not isinstance(payload, ev.GenerationAsked | ev.GenerationSettled | ev.PlansHeld):
            return None
        return self._recorder.state.generations.get(payload.generation)

    @property
    def _answerer(self) -> Answerer | None:
        payload = self._record.next_payload
        match payload:
            case ev.GenerationAsked():
                return _OnRecord(payload.model)
            case ev.GenerationBegun(trigger="proactive"):
                return _OnRecord("")
        return None

    def _begin(self, ident: str, work: Coroutine[Any, Any, None]) -> None:
        work.close()


class RecordedWorld:
    """Answers tool calls, snapshots and glances at the workspace from the record."""

    def __init__(self, record: RecordedStream, blob: Callable[[str], Awaitable[bytes | None]]) -> None:
        self._record = record
        self._blob = blob

    async def call(
        self, action: str, tool: str, command: str, args: Mapping[str, Any], context: CallContext
    ) -> ToolResult:
        """The recorded answer; a call that was cut off waits until it is cut off again."""
        finished = next((end for end in self._record.ahead(ev.ActionFinished) if end.action == action), None)
        if finished is None:
            await self._what_was_done_meanwhile()
            cancelled = (end.action for end in self._record.ahead(ev.ActionCancelled))
            killed = isinstance(self._record.next_payload, ev.AgentOpened | None)
            if not killed and action not in cancelled:
                raise DivergedError(f"the record has no end of action {action}")
            raise asyncio.CancelledError
        await self._what_was_done_meanwhile()
        data = finished.result
        if finished.blob is not None:
            whole = await self._blob(finished.blob)
            if whole is None:
                raise DivergedError(f"the answer of action {action} is missing: blob {finished.blob}")
            data = json.loads(whole)
        beliefs, terms = self._record.beliefs_after(finished)
        answer = fields_of(finished, "status", "code", "session", "world", "duration_ms")
        return ToolResult(data=data, beliefs=beliefs, terms=terms, **answer)

    async def _what_was_done_meanwhile(self) -> None:
        """Let a reasoner do what it did while the action ran."""
        for _ in range(TURNS):
            if not isinstance(self._record.next_payload, _MEANWHILE):
                return
            await asyncio.sleep(0)
        raise DivergedError("the reasoner does not go on as it did on record while an action ran")

    async def save(self, agent: str, action: ActiveAction) -> Saved:
        """The recorded outcome; none was saved where the action starts without."""
        for payload in self._record.ahead(ev.Payload):
            match payload:
                case ev.SnapshotTaken() | ev.SnapshotFailed() if payload.action == action.id:
                    return payload
                case ev.ActionStarted() if payload.action == action.id:
                    return NothingSaved()
        raise DivergedError(f"the record does not say whether the workspace was saved before {action.id}")

    async def perceive(self, session: SandboxSession) -> tuple[dict[str, Any], SandboxSession]:
        """Never asked: what was perceived is fed in before the agent would look."""
        raise DivergedError("the agent looks at its workspace, and the record does not have it")

    async def survey(self, agent: str, action: ActiveAction, cwd: str, enquiry: LookupRequest) -> Survey:
        """What the record has next of this action; where it has nothing, nothing was found amiss."""
        ahead = (
            processed
            for processed in self._record.ahead(ev.ParametersProcessed)
            if processed.action == action.id
        )
        nearest = next(ahead, None)
        return nearest.survey if nearest is not None else Survey()

    async def bytes_overwritten(self, agent: str, action: ActiveAction, cwd: str, own: str) -> int:
        """Nothing: why an action needs the operator is fed in."""
        return 0

    async def changes(self, agent: str, shell: ReturnedShell) -> Changes | str:
        """Never asked: what was offered is fed in before the agent would compare."""
        raise DivergedError("the agent looks for the operator's changes, and the record does not have them")


class RecordedParameterExtractor:
    """Finds in a goal what a model found in it."""

    def __init__(self, record: RecordedStream, asked: ev.ParametersAsked) -> None:
        self.model = asked.model
        self._action = asked.action
        self._record = record

    async def extract(self, question: Question) -> Extraction:
        """What the record has; nothing where the answer was not used, as it will not be again now."""
        if self._record.was_held(ev.ParametersAsked):
            raise ModelError(ModelErrorKind.BUDGET, "held by a budget")
        for processed in self._record.ahead(ev.ParametersProcessed):
            if processed.action == self._action and processed.extraction is not None:
                return processed.extraction
        return Extraction(self.model)


class DescribedTool:
    """A tool's commands without the tool."""

    description = "described only"

    def __init__(self, tool_id: str, commands: Mapping[str, CommandSpec]) -> None:
        self.id = tool_id
        self.commands = commands

    async def call(self, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Never called: a replay takes answers from the record."""
        raise DivergedError(f"{self.id}.{command} was called outside the record")


class RecordedRegistry(ToolRegistry):
    """The built-in tools, and those from outside as far as they had come on record."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        super().__init__(tools)
        self._built_in = tuple(self._tools)

    def offer(self, event: ev.ToolOffered) -> None:
        """A tool from outside offers this from now on."""
        self._tools[event.tool] = DescribedTool(event.tool, commands_of(event))

    def forget(self) -> None:
        """A session ended, and the tools from outside with it."""
        self._tools = {name: self._tools[name] for name in self._built_in}
