"""The engine's own agents, kept to what is on record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, cast

from engine.actions.pipeline import Pipeline
from engine.domain.commands import parse_recorded
from engine.domain.state import AgentState
from engine.domain.thinking import Decision, DecisionRequest, PlanProposal, PlanRequest
from engine.journal import events as ev
from engine.journal.event import GENESIS, Event
from engine.journal.log import StreamLog
from engine.loop.agent import Agent
from engine.loop.generating import PlanMaker
from engine.loop.reasoning import ReasoningAgent
from engine.loop.recording import Surroundings
from engine.parameters import Asker
from engine.reasoner.reasoner import Reasoner
from engine.replay.answers import RecordedAsker, RecordedPlanMaker, RecordedRegistry
from engine.replay.record import DivergedError, Record, SessionEnded


class _ReplayedPipeline(Pipeline):
    """A pipeline whose actions are cut off exactly where they were on record.

    The operator may have stopped the agent in the moment in which a tool had just answered.
    """

    def __init__(self, record: Record, agent: Agent, around: Surroundings) -> None:
        super().__init__(agent, around.toolbox, around.registry, around.put_blob)
        self._record = record

    def was_cut(self, action: str) -> bool:
        finished = (end.action for end in self._record.said(ev.ActionFinished))
        return super().was_cut(action) and action not in finished


class ReplayedLog(StreamLog):
    """A log that writes again what an older version wrote, where both say the same."""

    def __init__(self, stream: str, record: Record) -> None:
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


class ReplayedAgent(Agent):
    """An agent that takes from the record what came from outside."""

    def __init__(self, record: Record, log: StreamLog, around: Surroundings, state: AgentState) -> None:
        super().__init__(state, log, around)
        self.pipeline = _ReplayedPipeline(record, self, around)
        self._record = record
        self._feeding = False
        self._over = False
        """Whether the session has ended; what is cut off by that records nothing."""

    def again(self) -> ReplayedAgent:
        """The agent as the next session takes it up."""
        return ReplayedAgent(self._record, self.log, self.around, self.state)

    async def _idle(self) -> None:
        await self._wait_for_change()

    def _asker(self) -> Asker | None:
        asked = self._record.next_payload
        return RecordedAsker(self._record, asked) if isinstance(asked, ev.ParametersAsked) else None

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
        if not self._feeding:
            self._feed()
        return event

    def open(self, session: str, seed: int) -> None:
        """Take the agent up; what comes from outside comes after that is settled."""
        self._feeding = True
        cast(RecordedRegistry, self.around.registry).forget()
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
                    cast(RecordedRegistry, self.around.registry).offer(payload)
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
        raise SessionEnded

    async def _wait_for_change(self) -> None:
        if not self._changed.is_set():
            expected = self._record.next
            if expected is None:
                self._end_session()
            raise DivergedError(
                f"the agent waits, and the record goes on with {expected.kind} ({expected.ref})"
            )
        await super()._wait_for_change()


class ReplayedReasoningAgent(ReplayedAgent, ReasoningAgent):
    """An agent with a reasoner, which goes on as far as it went on record."""

    def __init__(
        self,
        record: Record,
        log: StreamLog,
        around: Surroundings,
        state: AgentState,
        reasoner: Reasoner | None = None,
    ) -> None:
        super().__init__(record, log, around, state)
        self._reasoner = reasoner

    def again(self) -> ReplayedAgent:
        """The agent as the next session takes it up, with the mind that it had."""
        return ReplayedReasoningAgent(self._record, self.log, self.around, self.state, self._reasoner)

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
        return RecordedPlanMaker(self._record, self, self.reasoner)

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
