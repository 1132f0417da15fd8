"""The selection graph as a projection of the crew's stream, and selection by it (ontology spec §3, §1.11).

The graph is a file that can be thrown away: it names the last event that it has taken in, and one that does
not fit the journal is emptied and filled again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from engine.agents.context import ORCHESTRATOR, USER
from engine.agents.spec import AgentSpec
from engine.crew.parts import Scored
from engine.journal import crew_events as ce
from engine.journal.event import CREW, Event
from engine.journal.events import payload_of
from engine.journal.store import JournalStore
from engine.selection import (
    DATABASE,
    Candidate,
    FrameworkGraph,
    GraphFault,
    Position,
    SqliteGraph,
    register,
    signal_in,
)


class GraphSelect:
    """Selects by the graph (`engine.crew.parts.Select`); always `close` it.

    Args:
        graph: kept as the stream says.
        store: has the stream.
    """

    def __init__(self, graph: FrameworkGraph, store: JournalStore) -> None:
        self.graph, self._store = graph, store
        self._turn = asyncio.Lock()
        self._checked = False

    @classmethod
    async def open(cls, data: Path, store: JournalStore) -> Self:
        """Open the graph of a workspace.

        Args:
            data: the workspace's data directory.
            store: its journal.

        Raises:
            GraphUnavailable: it cannot be opened.
        """
        return cls(await SqliteGraph.open(data / DATABASE), store)

    async def close(self) -> None:
        """Give the graph up."""
        await self.graph.close()

    async def candidates(
        self, text: str, *, caller: str, previous: Sequence[str], available: Sequence[str]
    ) -> Sequence[Scored]:
        """See `Select`; behind who can be selected come those that fit as well, each with why it lost.

        Raises:
            GraphFault: the graph cannot be asked.
        """
        await self.caught_up()
        signal = await signal_in(
            text,
            self.graph,
            caller=None if caller in (USER, ORCHESTRATOR) else caller,
            previous=tuple(previous),
            available=tuple(available),
        )
        found = await self.graph.select(signal)
        lost = [_scored(one.candidate, one.reason) for one in found.lost]
        return [*(_scored(one) for one in found.rows), *lost]

    async def caught_up(self) -> None:
        """Take in what the journal holds.

        Raises:
            GraphFault: the graph cannot be written.
            JournalError: the journal cannot be read.
        """
        async with self._turn:
            position = await self.graph.position()
            if not self._checked and position.version:
                there = await self._store.read(CREW, position.version, position.version)
                if [one.hash for one in there] != [position.hash]:
                    for node in await self.graph.nodes():
                        await self.graph.remove(node.id)
                    position = Position()
            self._checked = True
            events = await self._store.read(CREW, position.version + 1)
            if events:
                async with self.graph.transaction() as graph:
                    for event in events:
                        await _take_in(graph, event)
                    await graph.note_position(Position(events[-1].version, events[-1].hash))


async def _take_in(graph: FrameworkGraph, event: Event) -> None:
    """What the graph holds of an event; one that it does not take is left out."""
    match payload_of(event):
        case ce.AgentRegistered() as said:
            spec, _ = AgentSpec.loaded(said.spec)
            with suppress(GraphFault):
                await register(graph, spec, event.at)
        case ce.AgentRemoved() as said:
            with suppress(GraphFault):
                await graph.remove(said.agent)
        case ce.UsageRecorded() as said:
            with suppress(GraphFault):
                await graph.record_use(said.agent, said.session or said.handoff, said.success)


def _scored(one: Candidate, lost: str = "") -> Scored:
    return Scored(one.id, one.score, {"T": one.T, "P": one.P, "C": one.C, "R": one.R}, one.why, lost)
