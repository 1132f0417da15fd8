"""A selection graph in memory: the pure definition over dictionaries, for tests and for trying things out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

from engine.selection.graph import FrameworkGraph
from engine.selection.row_graph import RowGraph, Rows
from engine.selection.selecting import Facts, Selection, choose, facts_of
from engine.selection.turns import Turns
from engine.selection.values import Edge, Node, Policy, Position, Rel, Signal

R = TypeVar("R")
Ends = tuple[str, Rel, str, str]


class MemoryRows:
    """Nodes and edges in dictionaries."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._edges: dict[Ends, Edge] = {}
        self._position = Position()

    def copy(self) -> MemoryRows:
        """The same rows, to be changed apart."""
        other = MemoryRows()
        other._nodes, other._edges = dict(self._nodes), dict(self._edges)
        other._position = self._position
        return other

    def put_node(self, node: Node) -> None:
        """See `Rows.put_node`."""
        self._nodes[node.id] = node

    def put_edge(self, edge: Edge) -> None:
        """See `Rows.put_edge`."""
        self._edges[edge.src, edge.rel, edge.dst, edge.source] = edge

    def drop_edges(self, src: str, rel: Rel, dst: str, source: str | None) -> None:
        """See `Rows.drop_edges`."""
        for ends in [ends for ends in self._edges if ends[:3] == (src, rel, dst)]:
            if source is None or ends[3] == source:
                del self._edges[ends]

    def drop_node(self, node: str) -> None:
        """See `Rows.drop_node`."""
        self._nodes.pop(node, None)
        for ends, edge in list(self._edges.items()):
            if edge.rel != "USED_BY" and (edge.src == node or (edge.rel, edge.dst) == ("CHAINS_TO", node)):
                del self._edges[ends]

    def select(self, signal: Signal, policy: Policy) -> Selection:
        """See `Rows.select`."""
        return choose(facts_of(self._nodes.values(), self._edges.values()), signal, policy)

    def facts(self, ids: Iterable[str], signal: Signal) -> list[Facts]:
        """See `Rows.facts`."""
        return facts_of((self._nodes[one] for one in ids if one in self._nodes), self._edges.values())

    def nodes(self) -> tuple[Node, ...]:
        """See `Rows.nodes`."""
        return tuple(sorted(self._nodes.values(), key=lambda node: node.id))

    def edges(self, rel: Rel | None) -> tuple[Edge, ...]:
        """See `Rows.edges`."""
        return tuple(sorted(edge for edge in self._edges.values() if rel in (None, edge.rel)))

    def neighbours(self, node: str, rel: Rel, depth: int) -> tuple[Edge, ...]:
        """See `Rows.neighbours`."""
        reached, frontier, found = {node}, {node}, []
        for _ in range(depth):
            step = [edge for edge in self.edges(rel) if edge.src in frontier]
            found += step
            frontier = {edge.dst for edge in step} - reached
            reached |= frontier
        return tuple(found)

    def vocabulary(self) -> frozenset[str]:
        """See `Rows.vocabulary`."""
        return frozenset(word for node in self._nodes.values() for word in node.triggers)

    def position(self) -> Position:
        """See `Rows.position`."""
        return self._position

    def note_position(self, position: Position) -> None:
        """See `Rows.note_position`."""
        self._position = position

    def clear(self) -> None:
        """See `Rows.clear`."""
        self._nodes.clear()
        self._edges.clear()
        self._position = Position()


class MemoryGraph(RowGraph):
    """A selection graph that is gone with its object."""

    def __init__(self, rows: MemoryRows | None = None) -> None:
        self._rows = MemoryRows() if rows is None else rows
        self._turns = Turns()

    async def _read(self, work: Callable[[Rows], R]) -> R:
        return work(self._rows)

    async def _write(self, work: Callable[[Rows], None]) -> None:
        async with self._turns.turn():
            work(self._rows)

    @asynccontextmanager
    async def trial(self) -> AsyncIterator[FrameworkGraph]:
        """See `FrameworkGraph.trial`."""
        async with self._turns.turn():
            yield MemoryGraph(self._rows.copy())

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[FrameworkGraph]:
        """See `FrameworkGraph.transaction`."""
        async with self._turns.turn():
            rows = self._rows.copy()
            yield MemoryGraph(rows)
            self._rows = rows

    async def close(self) -> None:
        """See `FrameworkGraph.close`."""
