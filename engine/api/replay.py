"""Replay: the engine's own agent runs on one recorded stream again, from session to session.

Its recorder checks every event against the record and brings in what came from outside; its ports answer from
the record. A replay reaches the recorded head, or says at which event it came out otherwise.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Container, Sequence
from contextlib import suppress
from itertools import repeat
from typing import Any, NoReturn

from engine import __version__
from engine.agent.agent import Agent
from engine.agent.deliberation import PlanDeliberation
from engine.agent.execution import AgentParts, RunLimits
from engine.agent.perception import AgentEnvironment
from engine.agent.plan_maker import PlanMaker
from engine.agent.reasoner.reasoner import Reasoner
from engine.agent.reasoner_deliberation import Busy, ReasonerDeliberation, ReasonerTiming
from engine.agent.recorder import AgentRecorder
from engine.api.replay_record import (
    TURNS,
    DescribedTool,
    DivergedError,
    RecordedParameterExtractor,
    RecordedPlanMaker,
    RecordedRegistry,
    RecordedStream,
    RecordedThinker,
    RecordedWorld,
    SessionEnded,
)
from engine.core import events as ev
from engine.core.agents import CREW
from engine.core.command import Command, Receipt
from engine.core.commands import parse_recorded
from engine.core.fold import dump_state, fold, without_checksum
from engine.core.journal import GENESIS, Event
from engine.core.ports import Ports
from engine.core.reasoner import REASONER
from engine.core.state import AgentState
from engine.core.streams import StreamLog
from engine.crew.tool.crew_tool import COMMANDS as CREW_COMMANDS
from engine.memory.tool import MemoryTool
from engine.planning.pgp.requests import Answerer
from engine.sandbox.jobs import Sessions
from engine.tools.parameters.processing import ParameterExtractor
from engine.tools.registry import built_in_tools
from engine.tools.simple_coder_commands import COMMANDS
from engine.value import dataclass

WORDED = frozenset({"reason", "message", "summary", "why", "note", "problems"})
"""Fields of events that hold sentences of the program, which a later version may word better."""


class ReplayedLog(StreamLog):
    """A log that writes again what an older version wrote, where both say the same."""

    def __init__(
        self, stream: str, record: RecordedStream, other_version: bool, redacted: Container[str]
    ) -> None:
        super().__init__(stream, 0, GENESIS, record, _keep)
        self._record = record
        self._redacted = redacted
        self._other_version = other_version
        self.reworded = False
        """Whether this version words a recorded sentence otherwise."""

    def append(self, payload: ev.Payload, *, actor: str, causes: tuple[str, ...], tick: int) -> Event:
        """As any log; an event whose contents were redacted has the hash that it had."""
        expected = self._record.next
        event = super().append(payload, actor=actor, causes=causes, tick=tick)
        if expected is not None and event.ref in self._redacted and event[:-2] == expected[:-2]:
            self.head = expected.hash
            event = self._pending[-1] = event._replace(hash=expected.hash)
        return event

    def _body(self, payload: ev.Payload) -> str:
        body, expected = super()._body(payload), self._record.next
        if expected is None or expected.body == body or expected.kind != payload.kind:
            return body
        if expected.ref in self._redacted:
            return expected.body
        # What has been added since has its default in what was written before.
        recorded = _as_now(self._record.payloads[self._record.place])
        if recorded.body() == body:
            return expected.body
        if self._other_version and _alike(json.loads(_cut(recorded, payload).body()), json.loads(body)):
            self.reworded = True
            return expected.body
        return body


def _alike(theirs: Any, ours: Any, worded: frozenset[str] = WORDED) -> bool:
    """Whether values say the same, where another version wrote a sentence in place of a code."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return theirs.keys() == ours.keys() and all(
            name in worded or _alike(held, ours[name], worded) for name, held in theirs.items()
        )
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(theirs) == len(ours) and all(map(_alike, theirs, ours, repeat(worded)))
    return theirs == ours or (isinstance(theirs, str) and isinstance(ours, dict) and "code" in ours)


def _same_state(theirs: AgentState, ours: AgentState) -> bool:
    stored = [json.loads(without_checksum(dump_state(state))) for state in (theirs, ours)]
    return _alike(stored[0], stored[1], frozenset())


def _as_now(payload: ev.Payload) -> ev.Payload:
    """A recorded payload with everything that this version says."""
    if isinstance(payload, ev.CommandReceived):
        return ev.CommandReceived(command=parse_recorded(payload.command).model_dump())
    return payload


def _cut(recorded: ev.Payload, payload: ev.Payload) -> ev.Payload:
    """A plan that was recorded as a whole, without what the payload says is kept of the one before."""
    if isinstance(recorded, ev.PlanRevised) and isinstance(payload, ev.PlanRevised) and not recorded.kept:
        changed = {"steps": recorded.steps[payload.kept :], "kept": payload.kept}
        return recorded.model_copy(update=changed)
    return recorded


async def _keep(batch: Sequence[Event]) -> Sequence[Event]:
    return batch


class ReplayRecorder(AgentRecorder):
    """A recorder that checks each event against the record, and brings in what came from outside."""

    def __init__(self, record: RecordedStream, log: StreamLog, state: AgentState) -> None:
        super().__init__(state, log)
        self._record = record
        self.feeding = False
        """Whether what comes from outside is not to be brought in now."""
        self._over = False
        """Whether the session has ended; what is cut off by that records nothing."""
        self.handle: Callable[[Command, str], Receipt]
        """Carries out a command; the agent's."""
        self.offer: Callable[[ev.ToolOffered], None]
        """Takes what a tool from outside offers."""

    def append(self, payload: ev.Payload, actor: str, *causes: str) -> Event:
        """Append what the record has here, and then what came from outside behind it."""
        if self._over:
            raise SessionEnded
        expected = self._record.next
        event = super().append(payload, actor, *causes)
        if expected is None:
            raise DivergedError(f"event {event.ref} ({event.kind}) is not in the record")
        if event.hash != expected.hash:
            raise DivergedError(_difference(event, expected))
        self._record.place += 1
        if self._record.next is None:
            self._end_session()
        if not self.feeding:
            self.feed()
        return event

    def feed(self) -> None:
        """Bring in what the record has from outside at this point."""
        self.feeding = True
        try:
            while (expected := self._record.next) is not None:
                payload = self._record.payloads[self._record.place]
                if not payload.external:
                    return
                if isinstance(payload, ev.AgentOpened):
                    self._end_session()
                if isinstance(payload, ev.ToolOffered):
                    self.offer(payload)
                if isinstance(payload, ev.CommandReceived):
                    self.handle(parse_recorded(payload.command), expected.actor)
                else:
                    self.append(payload, expected.actor, *expected.causes)
                if isinstance(payload, ev.BudgetReached | ev.BudgetEased):
                    self.wake()
        finally:
            self.feeding = False

    def _end_session(self) -> NoReturn:
        self._over = True
        raise SessionEnded

    async def wait_for_change(self) -> None:
        """Go on where something has changed; nothing can change but by the record."""
        if not self.changed.is_set():
            expected = self._record.next
            if expected is None:
                self._end_session()
            raise DivergedError(
                f"the agent waits, and the record goes on with {expected.kind} ({expected.ref})"
            )
        await super().wait_for_change()


class RecordedTiming(ReasonerTiming):
    """Lets a reasoner continue as far as it went on record."""

    in_thread = False

    def __init__(self, record: RecordedStream, recorder: AgentRecorder) -> None:
        super().__init__(recorder, record)
        self._record = record

    def phases(self) -> Callable[[int], bool]:
        """As many phases as on record."""
        advanced = self._record.next_payload
        return lambda phases: isinstance(advanced, ev.ReasonerAdvanced) and phases < advanced.phases

    def recorded_busy(self) -> Busy | None:
        """What the record says where the reasoner was in the middle of something."""
        if not isinstance(self._record.next_payload, ev.ReasonerBusy):
            return None
        for payload in self._record.payloads[self._record.place :]:
            match payload:
                case ev.ReasonerAdvanced():
                    return Busy(payload.phases)
                case ev.ReasonerCut():
                    return Busy(cut=payload)
                case ev.AgentOpened():
                    break
        return Busy()

    async def came_meanwhile(self) -> None:
        """Let what else is under way record what it did then."""
        for _ in range(TURNS):
            following = self._record.next_payload
            if isinstance(following, ev.ReasonerAdvanced | ev.ReasonerCut):
                return
            if isinstance(following, ev.AgentOpened | None):
                raise SessionEnded
            await asyncio.sleep(0)
        raise DivergedError("what came in the middle of a part of the reasoner's cycle does not come")

    async def yield_turn(self, until: float) -> bool:
        """What was done is recorded at once."""
        return False

    async def slow_down(self, until: float) -> None:
        """No time passes."""

    async def idle(self, due: Callable[[], float | None]) -> bool:
        """That time passed is brought in from the record."""
        await self._recorder.wait_for_change()
        return False

    async def wait_with(self, work: asyncio.Future[Any], due: Callable[[], float | None]) -> bool:
        """The work is over when the record says so."""
        await asyncio.sleep(0)
        return False

    def pauses(self, limits: RunLimits, can_reason: Callable[[], bool]) -> bool:
        """Pause where the record does."""
        due = isinstance(self._record.next_payload, ev.AgentPaused)
        return due and (limits.goal_over() or limits.loops_over())

    def reasons_meanwhile(self, can_reason: Callable[[], bool]) -> bool:
        """Go on where the record does."""
        return isinstance(self._record.next_payload, ev.ReasonerAdvanced | ev.ReasonerBusy)


def _difference(event: Event, expected: Event) -> str:
    for name in ("kind", "body", "actor", "tick", "causes", "at"):
        ours, theirs = getattr(event, name), getattr(expected, name)
        if ours != theirs:
            return f"event {expected.ref}: {name} is {str(ours)[:300]!r}, recorded was {str(theirs)[:300]!r}"
    return f"event {expected.ref}: the hash differs, so something before it was changed"


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
    reworded_since: str = ""
    """The version that wrote sentences which this one words otherwise; the states were compared then."""

    @property
    def words(self) -> str:
        """How it went, for a list of streams."""
        if not self.matches:
            return f"DIFFERS: {self.difference}"
        if self.reworded_since:
            return f"written by {self.reworded_since}: compared by state"
        return "same head"


class _StreamReplay:
    """Runs the engine's own agent on one recorded stream, session by session."""

    def __init__(
        self,
        record: RecordedStream,
        created: ev.AgentCreated,
        blob: Callable[[str], Awaitable[bytes | None]],
        *,
        other_version: bool,
        redacted: Container[str],
    ) -> None:
        self._record = record
        self.log = ReplayedLog(record.events[0].stream, record, other_version, redacted)
        self.state = AgentState()
        world = RecordedWorld(record, blob)
        self._registry = RecordedRegistry(
            [
                DescribedTool("simple_coder", COMMANDS),
                *built_in_tools(),
                DescribedTool(MemoryTool.id, MemoryTool.commands),
                DescribedTool(CREW, CREW_COMMANDS),
            ]
        )
        self._around = AgentEnvironment(
            thinker=RecordedThinker(record),
            toolbox=world,
            saver=world,
            perceiver=world,
            registry=self._registry,
            clock=record,
            put_blob=_digest,
            randomness=Ports().randomness,
            control=Sessions(),
            looks=False,
            asker=self._asker,
            answer_counted=self._answer_counted,
            seal=self._sealed,
        )
        self._reasons = created.agent_type == REASONER
        self._deliberation: ReasonerDeliberation | None = None
        """The strategy of an agent with a reasoner, whose mind lasts over the sessions."""

    async def run(self, created: ev.AgentCreated) -> None:
        """Replay the agent's creation, and then each session.

        Raises:
            DivergedError: the agent does something that the record does not have.
        """
        _, recorder = self._agent()
        with suppress(SessionEnded):
            recorder.append(created, self._record.events[0].actor)
        while self._record.next is not None:
            await self._session()

    def _agent(self) -> tuple[Agent, ReplayRecorder]:
        """The agent as a session takes it up, with the mind that it had."""
        recorder = ReplayRecorder(self._record, self.log, self.state)
        agent = Agent(recorder, self._around, self._reasoner if self._reasons else PlanDeliberation)
        recorder.handle, recorder.offer = agent.handle, self._registry.offer
        return agent, recorder

    def _reasoner(self, parts: AgentParts) -> ReasonerDeliberation:
        mind = self._deliberation.reasoner if self._deliberation is not None else None
        timing = RecordedTiming(self._record, parts.recorder)
        self._deliberation = ReasonerDeliberation(parts, mind, timing, self._maker)
        return self._deliberation

    def _maker(self, recorder: AgentRecorder, reasoner: Reasoner, answerer: Answerer | None) -> PlanMaker:
        return RecordedPlanMaker(self._record, recorder, reasoner)

    def _asker(self) -> ParameterExtractor | None:
        asked = self._record.next_payload
        return (
            RecordedParameterExtractor(self._record, asked) if isinstance(asked, ev.ParametersAsked) else None
        )

    def _sealed(self, stream: str, payload: ev.Payload) -> ev.Payload:
        """A grant with the seal that it has on record."""
        seal = getattr(self._record.next_payload, "seal", "")
        return payload.model_copy(update={"seal": seal}) if seal and hasattr(payload, "seal") else payload

    def _answer_counted(self, action: str) -> bool:
        """Whether the record has the answer of an action: it may have come in the moment of a stop."""
        return any(end.action == action for end in self._record.ahead(ev.ActionFinished))

    async def _session(self) -> None:
        opened = self._record.payloads[self._record.place]
        if not isinstance(opened, ev.AgentOpened):
            raise DivergedError(f"a session is to begin, and the record goes on with {opened.kind}")
        agent, recorder = self._agent()
        with suppress(SessionEnded):
            # What comes from outside comes after that is settled which the last session left under way.
            recorder.feeding = True
            self._registry.forget()
            agent.open(opened.session, opened.seed)
            recorder.feeding = False
            recorder.feed()
            cycle = asyncio.create_task(agent.cycle())
            try:
                await cycle
            except asyncio.CancelledError:
                if not cycle.cancelled():
                    raise


async def replay_stream(
    events: Sequence[Event],
    blob: Callable[[str], Awaitable[bytes | None]],
    writers: Sequence[str] = (),
    redacted: Container[str] = (),
) -> Replay:
    """Run one agent's recorded stream again.

    Args:
        events: the whole stream from its first event.
        blob: gives large recorded answers.
        writers: the versions that wrote the journal. What another version wrote may differ in its sentences;
            then the states at the end are compared besides.
        redacted: references of events whose contents were redacted: they are taken as they stand.
    """
    stream, record = events[0].stream, RecordedStream(events)
    other = next((version for version in writers if version != __version__), "")
    created = record.payloads[0]
    if not isinstance(created, ev.AgentCreated):
        return Replay(stream, False, 0, "", "the stream does not begin with the agent's creation")
    replay = _StreamReplay(record, created, blob, other_version=bool(other), redacted=redacted)
    log = replay.log
    try:
        await replay.run(created)
    except DivergedError as error:
        return Replay(stream, False, record.place, log.head, str(error))
    finally:
        await log.close()
    if log.reworded and not _same_state(fold(events), replay.state):
        return Replay(stream, False, record.place, log.head, "the state at the end differs")
    matches = log.head == events[-1].hash
    return Replay(stream, matches, record.place, log.head, reworded_since=other if log.reworded else "")


async def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
