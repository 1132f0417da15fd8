"""Deterministic replay: a recorded stream run again through the real engine, without its surroundings.

What came from outside (commands, output, the opening of sessions) is fed in where it was recorded;
what tools and thinkers answered is taken from the record; everything else the agent must do again
by itself. The replay matches when every event, and so the head hash, comes out the same.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar, cast

from engine.actions.pipeline import Pipeline
from engine.actions.saving import Saved, Unsaved
from engine.crew.tool.commands import COMMANDS as CREW_COMMANDS
from engine.domain.action import SandboxSession, ToolResult
from engine.domain.belief import BeliefSource, BeliefTerms
from engine.domain.commands import parse_recorded
from engine.domain.parameters import Extraction, Survey
from engine.domain.ports import CallContext, CommandSpec, NoSessions, Ports, Tool
from engine.domain.reasoning import REASONER, Generation
from engine.domain.running import CREW
from engine.domain.session import ReturnedShell
from engine.domain.state import ActiveAction, AgentState
from engine.domain.thinking import (
    Decision,
    DecisionRequest,
    PlanProposal,
    PlanRequest,
    ThinkingError,
)
from engine.generation.pgp.asking import Answerer, Prompt, Reply
from engine.generation.pgp.config import EffectiveConfig
from engine.journal import events as ev
from engine.journal.event import GENESIS, Event
from engine.journal.fold import fold
from engine.journal.log import StreamLog
from engine.loop.agent import Agent
from engine.loop.generating import PlanMaker
from engine.loop.offering import commands_of
from engine.loop.reasoning import ReasoningAgent
from engine.loop.recording import RecordingAgent, Surroundings
from engine.memory.tool import MemoryTool
from engine.models import ModelError, ModelErrorKind
from engine.parameters import Asker, Enquiry, Question
from engine.reasoner.reasoner import Reasoner
from engine.snapshots import Changes
from engine.tools.mind import Mind
from engine.tools.registry import ToolRegistry
from engine.tools.simple_coder_commands import COMMANDS
from engine.worlds.explorer_world import WORLDS

P = TypeVar("P", bound=ev.Payload)

_MEANWHILE = (
    *(ev.ReasonerAdvanced, ev.GenerationAsked, ev.GenerationSettled, ev.PlansHeld),
    *(ev.GenerationBegun, ev.AgentPaused),
)
"""What an agent with a reasoner does while an action runs."""
_TURNS = 100_000
"""Turns of the event loop that a reasoner has to go on during one action."""


@dataclass(frozen=True, slots=True)
class Replay:
    """How a replay of one stream went."""

    stream: str
    matches: bool
    events: int
    """Events that came out the same."""
    head: str
    """Head hash that the replay reached."""
    difference: str = ""
    """The first event that came out otherwise, in words."""
    model_calls: int = 0


class _DivergedError(Exception):
    """The replay did something that the record does not have."""


class _SessionEnded(BaseException):
    """The recorded session ended here, in whatever the agent was doing."""


class _Record:
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

    def said(self, kind: type[P]) -> Iterator[P]:
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
        found: dict[str, Any] = {}
        terms: dict[str, BeliefTerms] = {}
        start = next(n for n, payload in enumerate(self.payloads) if payload is finished) + 1
        for payload in self.payloads[start:]:
            if isinstance(payload, ev.BeliefAdded | ev.BeliefOutweighed):
                found[payload.key] = payload.value
                guessed = payload.source is BeliefSource.INFERENCE
                if guessed or payload.ttl_s is not None:
                    sure = payload.confidence if guessed else None
                    terms[payload.key] = BeliefTerms(sure, payload.ttl_s)
            elif isinstance(payload, ev.BeliefRemoved):
                found[payload.key] = None
            else:
                break
        return found, terms

    def now(self) -> str:
        """The recorded time of the event that is about to be appended."""
        return self.next.at if self.next is not None else ""

    def monotonic(self) -> float:
        """Durations are recorded, so none is measured."""
        return 0.0

    async def sleep(self, seconds: float) -> None:
        """Nothing is waited for."""
        await asyncio.sleep(0)


class _RecordedThinker:
    """Answers with the plans on record."""

    free = True
    name = "recorded"

    def __init__(self, record: _Record) -> None:
        self._record = record

    async def plan(self, request: PlanRequest) -> PlanProposal:
        """The plan that the record has next."""
        self._fail()
        said = next(self._record.said(ev.PlanGenerated))
        return PlanProposal(said.steps, said.uncovered, said.thinker)

    async def decide(self, request: DecisionRequest) -> Decision:
        """The decision that the record has next."""
        self._fail()
        return next(self._record.said(ev.DecisionMade)).decision

    def _fail(self) -> None:
        """Fail as the thinker did, where it did."""
        failed = self._record.next_payload
        if isinstance(failed, ev.ThinkingFailed):
            raise ThinkingError(failed.failure, failed.message, failed.retry_after_s)


@dataclass(frozen=True, slots=True)
class _OnRecord:
    """Stands for the model that was asked; its answers are fed in."""

    model: str

    async def answer(self, prompt: Prompt, config: EffectiveConfig) -> Reply:
        """Never asked."""
        raise _DivergedError("a model is asked, and the record does not have it")


class _RecordedPlanMaker(PlanMaker):
    """Goes on with a generation when the record does; asks and checks nothing."""

    def __init__(self, record: _Record, agent: RecordingAgent, reasoner: Reasoner) -> None:
        super().__init__(agent, reasoner, None)
        self._record = record

    @property
    def due(self) -> Generation | None:
        payload = self._record.next_payload
        if not isinstance(payload, ev.GenerationAsked | ev.GenerationSettled | ev.PlansHeld):
            return None
        return self._agent.state.generations.get(payload.generation)

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


class _RecordedWorld:
    """Answers tool calls, snapshots and glances at the workspace from the record."""

    def __init__(self, record: _Record, blob: Callable[[str], Awaitable[bytes | None]]) -> None:
        self._record = record
        self._blob = blob

    async def call(
        self, action: str, tool: str, command: str, args: Mapping[str, Any], context: CallContext
    ) -> ToolResult:
        """The recorded answer; a call that was cut off waits until it is cut off again."""
        said = next((end for end in self._record.said(ev.ActionFinished) if end.action == action), None)
        if said is None:
            await self._what_was_done_meanwhile()
            cancelled = (end.action for end in self._record.said(ev.ActionCancelled))
            killed = isinstance(self._record.next_payload, ev.AgentOpened | None)
            if not killed and action not in cancelled:
                raise _DivergedError(f"the record has no end of action {action}")
            raise asyncio.CancelledError
        await self._what_was_done_meanwhile()
        data = said.result
        if said.blob is not None:
            whole = await self._blob(said.blob)
            if whole is None:
                raise _DivergedError(f"the answer of action {action} is missing: blob {said.blob}")
            data = json.loads(whole)
        beliefs, terms = self._record.beliefs_after(said)
        return ToolResult(
            said.status, data, said.code, said.session, beliefs, said.world, said.duration_ms, terms
        )

    async def _what_was_done_meanwhile(self) -> None:
        """Let a reasoner do what it did while the action ran."""
        for _ in range(_TURNS):
            if not isinstance(self._record.next_payload, _MEANWHILE):
                return
            await asyncio.sleep(0)
        raise _DivergedError("the reasoner does not go on as it did on record while an action ran")

    async def save(self, agent: str, action: ActiveAction) -> Saved:
        """The recorded outcome; none was saved where the action starts without."""
        for said in self._record.said(ev.Payload):
            match said:
                case ev.SnapshotTaken() | ev.SnapshotFailed() if said.action == action.id:
                    return said
                case ev.ActionStarted() if said.action == action.id:
                    return Unsaved()
        raise _DivergedError(f"the record does not say whether the workspace was saved before {action.id}")

    async def perceive(self, session: SandboxSession) -> tuple[dict[str, Any], SandboxSession]:
        """Never asked: what was perceived is fed in before the agent would look."""
        raise _DivergedError("the agent looks at its workspace, and the record does not have it")

    async def survey(self, agent: str, action: ActiveAction, cwd: str, enquiry: Enquiry) -> Survey:
        """What the record has next of this action; where it has nothing, nothing was found amiss."""
        told = (said for said in self._record.said(ev.ParametersProcessed) if said.action == action.id)
        said = next(told, None)
        return said.survey if said is not None else Survey()

    async def lost_by(self, agent: str, action: ActiveAction, cwd: str, own: str) -> int:
        """Nothing: why an action needs the operator is fed in."""
        return 0

    async def changes(self, agent: str, shell: ReturnedShell) -> Changes | str:
        """Never asked: what was offered is fed in before the agent would compare."""
        raise _DivergedError("the agent looks for the operator's changes, and the record does not have them")


class _RecordedAsker:
    """Finds in a goal what a model found in it."""

    def __init__(self, record: _Record, asked: ev.ParametersAsked) -> None:
        self.model = asked.model
        self._action = asked.action
        self._record = record

    async def extract(self, question: Question) -> Extraction:
        """What the record has; nothing where the answer was not used, as it will not be again now."""
        if self._record.was_held(ev.ParametersAsked):
            raise ModelError(ModelErrorKind.BUDGET, "held by a budget")
        for said in self._record.said(ev.ParametersProcessed):
            if said.action == self._action and said.extraction is not None:
                return said.extraction
        return Extraction(self.model)


class _ReplayedPipeline(Pipeline):
    """A pipeline whose actions are cut off exactly where they were on record.

    The operator may have stopped the agent in the moment in which a tool had just answered.
    """

    def __init__(self, record: _Record, agent: Agent, around: Surroundings) -> None:
        super().__init__(agent, around.toolbox, around.registry, around.put_blob)
        self._record = record

    def was_cut(self, action: str) -> bool:
        finished = (end.action for end in self._record.said(ev.ActionFinished))
        return super().was_cut(action) and action not in finished


class _ReplayedLog(StreamLog):
    """A log that writes again what an older version wrote, where both say the same."""

    def __init__(self, stream: str, record: _Record) -> None:
        super().__init__(stream, 0, GENESIS, record, _keep)
        self._record = record

    def _body(self, payload: ev.Payload) -> str:
        body, expected = super()._body(payload), self._record.next
        if expected is None or expected.body == body or expected.kind != payload.kind:
            return body
        # What has been added since has its default in what was written before.
        return expected.body if _as_now(self._record.payloads[self._record.place]).body() == body else body


def _as_now(said: ev.Payload) -> ev.Payload:
    """A recorded payload with everything that this version says."""
    if isinstance(said, ev.CommandReceived):
        return ev.CommandReceived(command=parse_recorded(said.command).model_dump())
    return said


async def _keep(batch: Sequence[Event]) -> Sequence[Event]:
    return batch


class _ReplayedAgent(Agent):
    """An agent that takes from the record what came from outside."""

    def __init__(self, record: _Record, log: StreamLog, around: Surroundings, state: AgentState) -> None:
        super().__init__(state, log, around)
        self.pipeline = _ReplayedPipeline(record, self, around)
        self._record = record
        self._feeding = False
        self._over = False
        """Whether the session has ended; what is cut off by that records nothing."""

    def again(self) -> _ReplayedAgent:
        """The agent as the next session takes it up."""
        return _ReplayedAgent(self._record, self.log, self.around, self.state)

    async def _idle(self) -> None:
        await self._wait_for_change()

    def _asker(self) -> Asker | None:
        asked = self._record.next_payload
        return _RecordedAsker(self._record, asked) if isinstance(asked, ev.ParametersAsked) else None

    async def _note_needs(self, overtaken: Callable[[], bool]) -> None:
        """Why an action needs the operator is fed in."""

    async def _think(self, request: PlanRequest) -> PlanProposal | None:
        return await super()._think(request) if self._used(ev.PlanGenerated) else None

    async def _decision(self, request: DecisionRequest) -> Decision | None:
        return await super()._decision(request) if self._used(ev.DecisionMade) else None

    def _used(self, answer: type[ev.Payload]) -> bool:
        """Whether a thinker's answer, or its failure, counted when it came.

        What came meanwhile was fed in at once, so a run after a stop would hide that the stop cut it off.
        """
        return isinstance(self._record.next_payload, answer | ev.ThinkingFailed)

    def append(self, payload: ev.Payload, actor: str, *causes: str) -> Event:
        if self._over:
            raise _SessionEnded
        expected = self._record.next
        event = super().append(payload, actor, *causes)
        if expected is None:
            raise _DivergedError(f"event {event.ref} ({event.kind}) is not in the record")
        if event.hash != expected.hash:
            raise _DivergedError(_difference(event, expected))
        self._record.place += 1
        if self._record.next is None:
            self._end_session()
        if not self._feeding:
            self._feed()
        return event

    def open(self, session: str, seed: int) -> None:
        """Take the agent up; what comes from outside comes after that is settled."""
        self._feeding = True
        cast(_RecordedRegistry, self.around.registry).forget()
        super().open(session, seed)
        self._feeding = False
        self._feed()

    def _feed(self) -> None:
        """Bring in what the record has from outside at this point."""
        self._feeding = True
        try:
            while (expected := self._record.next) is not None:
                payload = self._record.payloads[self._record.place]
                if not payload.external:
                    return
                if isinstance(payload, ev.AgentOpened):
                    self._end_session()
                if isinstance(payload, ev.ToolOffered):
                    cast(_RecordedRegistry, self.around.registry).offer(payload)
                if isinstance(payload, ev.CommandReceived):
                    self.handle(parse_recorded(payload.command), expected.actor)
                else:
                    self.append(payload, expected.actor, *expected.causes)
                if isinstance(payload, ev.BudgetReached | ev.BudgetEased):
                    self.poke()
        finally:
            self._feeding = False

    def _end_session(self) -> NoReturn:
        self._over = True
        raise _SessionEnded

    async def _wait_for_change(self) -> None:
        if not self._changed.is_set():
            expected = self._record.next
            if expected is None:
                self._end_session()
            raise _DivergedError(
                f"the agent waits, and the record goes on with {expected.kind} ({expected.ref})"
            )
        await super()._wait_for_change()


class _ReplayedReasoningAgent(_ReplayedAgent, ReasoningAgent):
    """An agent with a reasoner, which goes on as far as it went on record."""

    def __init__(
        self,
        record: _Record,
        log: StreamLog,
        around: Surroundings,
        state: AgentState,
        reasoner: Reasoner | None = None,
    ) -> None:
        super().__init__(record, log, around, state)
        self._reasoner = reasoner

    def again(self) -> _ReplayedAgent:
        """The agent as the next session takes it up, with the mind that it had."""
        return _ReplayedReasoningAgent(self._record, self.log, self.around, self.state, self._reasoner)

    def _pace(self) -> Callable[[int], bool]:
        said = self._advance_on_record()
        return lambda phases: said is not None and phases < said.phases

    async def _breathe(self, until: float) -> bool:
        return False

    async def _slow_down(self, until: float) -> None:
        return None

    def _pauses_meanwhile(self) -> bool:
        due = isinstance(self._record.next_payload, ev.AgentPaused)
        return due and (self._rest_after_goal() or self._out_of_loops())

    def _goes_on_meanwhile(self) -> bool:
        return self._advance_on_record() is not None

    async def _until(self, work: asyncio.Future[Any]) -> None:
        await asyncio.sleep(0)

    def _make_maker(self) -> PlanMaker:
        return _RecordedPlanMaker(self._record, self, self.reasoner)

    def _advance_on_record(self) -> ev.ReasonerAdvanced | None:
        """How far the reasoner went on at this point of the record; None when something else happened."""
        payload = self._record.next_payload
        return payload if isinstance(payload, ev.ReasonerAdvanced) else None


def _difference(event: Event, expected: Event) -> str:
    for name in ("kind", "body", "actor", "tick", "causes", "at"):
        ours, theirs = getattr(event, name), getattr(expected, name)
        if ours != theirs:
            return f"event {expected.ref}: {name} is {str(ours)[:300]!r}, recorded was {str(theirs)[:300]!r}"
    return f"event {expected.ref}: the hash differs, so something before it was changed"


class _DescribedTool:
    """A tool's commands without the tool."""

    description = "described only"

    def __init__(self, tool_id: str, commands: Mapping[str, CommandSpec]) -> None:
        self.id = tool_id
        self.commands = commands

    async def call(self, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Never called: a replay takes answers from the record."""
        raise _DivergedError(f"{self.id}.{command} was called outside the record")


class _RecordedRegistry(ToolRegistry):
    """The house's tools, and those from outside as far as they had come on record."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        super().__init__(tools)
        self._house = tuple(self._tools)

    def offer(self, said: ev.ToolOffered) -> None:
        """A tool from outside offers this from now on."""
        self._tools[said.tool] = _DescribedTool(said.tool, commands_of(said))

    def forget(self) -> None:
        """A session ended, and the tools from outside with it."""
        self._tools = {name: self._tools[name] for name in self._house}


async def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


async def replay_stream(events: Sequence[Event], blob: Callable[[str], Awaitable[bytes | None]]) -> Replay:
    """Run one agent's recorded stream again.

    Args:
        events: the whole stream from its first event.
        blob: gives large recorded answers.
    """
    stream = events[0].stream
    record = _Record(events)
    world = _RecordedWorld(record, blob)
    worlds = [_DescribedTool(world.name, world.commands) for world in WORLDS.values()]
    registry = _RecordedRegistry(
        [
            _DescribedTool("simple_coder", COMMANDS),
            Mind(),
            *worlds,
            _DescribedTool(MemoryTool.id, MemoryTool.commands),
            _DescribedTool(CREW, CREW_COMMANDS),
        ]
    )
    around = Surroundings(
        thinker=_RecordedThinker(record),
        toolbox=world,
        saver=world,
        perceiver=world,
        registry=registry,
        clock=record,
        put_blob=_digest,
        randomness=Ports().randomness,
        control=NoSessions(),
    )

    log = _ReplayedLog(stream, record)
    state = fold([])
    try:
        created = record.payloads[0]
        if not isinstance(created, ev.AgentCreated):
            return Replay(stream, False, 0, "", "the stream does not begin with the agent's creation")
        kind = _ReplayedReasoningAgent if created.agent_type == REASONER else _ReplayedAgent
        agent: _ReplayedAgent = kind(record, log, around, state)
        with _ending():
            agent.append(record.payloads[0], events[0].actor)
        while record.next is not None:
            await _replay_session(agent, record)
            agent = agent.again()
    except _DivergedError as error:
        return Replay(stream, False, record.place, log.head, str(error))
    finally:
        await log.close()
    return Replay(stream, log.head == events[-1].hash, record.place, log.head)


class _ending:  # noqa: N801  reads as a clause: with _ending(): …
    """Lets a session end where the record ends it."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        return isinstance(error, _SessionEnded)


async def _replay_session(agent: _ReplayedAgent, record: _Record) -> None:
    opened = record.payloads[record.place]
    if not isinstance(opened, ev.AgentOpened):
        raise _DivergedError(f"a session is to begin, and the record goes on with {opened.kind}")
    with _ending():
        agent.open(opened.session, opened.seed)
        cycle = asyncio.create_task(agent.cycle())
        try:
            await cycle
        except asyncio.CancelledError:
            if not cycle.cancelled():
                raise
