"""A stream as it was: its marks, and the state after any of its events.

States are folded from the journal in small pieces, so that looking back over ten thousand events never holds
the loop. On the way some states are kept in memory, so that the next look begins near by.
Source: spec steering §1 (time), §4 T10.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.domain.state import AgentState
from engine.journal import events as ev
from engine.journal.event import Event
from engine.journal.fold import apply, copy_state
from engine.journal.restoring import nearest
from engine.journal.store import JournalStore

PAGE = 256
"""Events read at a time."""
SLICE = 32
"""Events folded between two turns of the loop."""
KEEP_EVERY = 512
"""Events between two states that are kept; twice as many whenever there are too many of them."""
REST_S = 0.002
"""Between two slices while states are kept beforehand: the loop is for others most of the time."""
KEPT = 128


class MarkKind(StrEnum):
    """What sort of moment a mark is."""

    GOAL = "goal"
    PLAN = "plan"
    DECISION = "decision"
    ACTION = "action"
    FAILURE = "failure"
    OPERATOR = "operator"
    """The operator was asked for a decision, or made a mark."""
    REWIND = "rewind"
    """It was brought back to what it had been, or began as a fork."""
    HELD = "held"
    """It was held: at a breakpoint, by a budget, or for being stuck."""


_KINDS: dict[str, MarkKind] = {
    ev.GoalAdopted.kind: MarkKind.GOAL,
    ev.GoalEnded.kind: MarkKind.GOAL,
    ev.PlanAdopted.kind: MarkKind.PLAN,
    ev.PlanRevised.kind: MarkKind.PLAN,
    ev.DecisionMade.kind: MarkKind.DECISION,
    ev.ActionFinished.kind: MarkKind.ACTION,
    ev.ActionCancelled.kind: MarkKind.ACTION,
    ev.ActionOutcomeUnknown.kind: MarkKind.ACTION,
    ev.FailureRecorded.kind: MarkKind.FAILURE,
    ev.InterventionOpened.kind: MarkKind.OPERATOR,
    ev.ApprovalAsked.kind: MarkKind.OPERATOR,
    ev.ReplanHeld.kind: MarkKind.OPERATOR,
    ev.ChangesOffered.kind: MarkKind.OPERATOR,
    ev.PlansHeld.kind: MarkKind.OPERATOR,
    ev.ResultDisputed.kind: MarkKind.OPERATOR,
    ev.BreakpointHit.kind: MarkKind.HELD,
    ev.MindBreakpointHit.kind: MarkKind.HELD,
    ev.BudgetReached.kind: MarkKind.HELD,
    ev.StuckNoticed.kind: MarkKind.HELD,
    ev.Rewound.kind: MarkKind.REWIND,
    ev.AgentForked.kind: MarkKind.REWIND,
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment that is worth going back to."""

    version: int
    """The event of the stream."""
    kind: MarkKind


def along(marks: Sequence[Mark], at: int | None, by: int) -> int | None:
    """Where so many marks lead from a place.

    Args:
        marks: oldest first.
        at: the version that is looked at; None for now.
        by: marks to go, back where negative.

    Returns:
        The version of a mark; behind the last one None, which is now. Before the first one is the first.
    """
    versions = [mark.version for mark in marks]
    if by < 0:
        place = len(versions) if at is None else bisect_left(versions, at)
        return versions[max(0, place + by)] if versions else at
    if at is None:
        return None
    place = bisect_right(versions, at) - 1 + by
    return versions[place] if place < len(versions) else None


class Past:
    """What one agent's stream was at each of its events.

    Args:
        store: the journal; reading it is all that is done to it.
        stream: the agent.
    """

    def __init__(self, store: JournalStore, stream: str) -> None:
        self.stream = stream
        self._store = store
        self._marks: list[Mark] = []
        self._looked_to = 0
        """The version up to which marks were looked for."""
        self._kept: dict[int, AgentState] = {}
        self._every = KEEP_EVERY
        self._prepared = 0
        """The version up to which states are kept beforehand."""

    async def head(self) -> int:
        """The newest durable version of the stream; 0 where there is no such stream."""
        return (await self._store.head(self.stream)).version

    async def marks(self) -> Sequence[Mark]:
        """The marks of the stream up to now, oldest first."""
        head = await self.head()
        if head > self._looked_to:
            found = await self._store.places(self.stream, tuple(_KINDS), self._looked_to + 1, head)
            # Whoever else asked meanwhile has them already.
            last = self._marks[-1].version if self._marks else 0
            self._marks += [Mark(version, _KINDS[kind]) for version, kind in found if version > last]
            self._looked_to = max(self._looked_to, head)
        return self._marks

    async def event(self, version: int) -> Event | None:
        """The event with this version, or None when there is none."""
        return await self._store.get(f"{self.stream}:{version}")

    async def events(self, first: int, last: int) -> list[Event]:
        """The events from one version to another, both included."""
        return await self._store.read(self.stream, first, last)

    async def version_at(self, seq: int) -> int:
        """The newest version of the stream at a place of the journal; 0 where it had not begun."""
        return await self._store.version_at(self.stream, seq)

    async def newest(self, kind: type[ev.Payload], at: int) -> Event | None:
        """The newest event of a kind up to a version, or None."""
        found = await self._store.places(self.stream, (kind.kind,), 1, at)
        return await self.event(found[-1][0]) if found else None

    async def saved(self, state: AgentState) -> Event | None:
        """The event of the workspace snapshot that comes nearest to the files as they were at a state.

        That is the next one, as the files were saved before they were changed again; while an action ran, and
        where there is no next one, the one before. None where none was taken.
        """
        found = await self._store.places(self.stream, (ev.SnapshotTaken.kind,), 1, await self.head())
        versions = [version for version, _ in found]
        place = bisect_right(versions, state.version)
        if (state.acting or place == len(versions)) and place:
            place -= 1
        return await self.event(versions[place]) if versions else None

    async def state(self, at: int) -> AgentState:
        """The state after an event; the caller may change it.

        Args:
            at: its version; beyond the newest one the newest counts, and 0 is before the first.

        Raises:
            JournalError: the events cannot be read.
        """
        state = await self._begin(at)
        while state.version < at:
            page = await self._store.read(self.stream, state.version + 1, min(state.version + PAGE, at))
            if not page:
                break
            for number, event in enumerate(page, 1):
                apply(state, event)
                if not event.version % self._every:
                    self._keep(state)
                if not number % SLICE:
                    await asyncio.sleep(0)
        return state

    async def prepare(self) -> None:
        """Keep states of the whole stream beforehand, at leisure, so that no look has far to go.

        Raises:
            JournalError: the events cannot be read.
        """
        last = max((version for version in self._kept if version <= self._prepared), default=0)
        state = copy_state(self._kept[last]) if last else AgentState()
        while page := await self._store.read(self.stream, state.version + 1, state.version + PAGE):
            for event in page:
                apply(state, event)
                if not event.version % self._every:
                    self._keep(state)
                if not event.version % SLICE:
                    await asyncio.sleep(REST_S)
            self._prepared = state.version

    async def _begin(self, at: int) -> AgentState:
        """The nearest state that is at hand."""
        mine = max((version for version in self._kept if version <= at), default=0)
        if at - mine > self._every:
            state, _ = await nearest(self._store, self.stream, at)
            if state.version > mine:
                self._keep(state)
                return state
        return copy_state(self._kept[mine]) if mine else AgentState()

    def _keep(self, state: AgentState) -> None:
        self._kept[state.version] = copy_state(state)
        if len(self._kept) > KEPT:
            self._every *= 2
            self._kept = {version: kept for version, kept in self._kept.items() if not version % self._every}
