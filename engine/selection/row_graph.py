"""A selection graph over rows: checks and order of work, whatever holds the rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar

from engine.selection.graph import FrameworkGraph, not_found
from engine.selection.selecting import Facts, Selection, Standing, measured, standing
from engine.selection.values import (
    Edge,
    Node,
    Policy,
    Position,
    Rel,
    Signal,
    checked_depth,
    checked_policy,
    checked_rel,
    edge_of,
    named,
)

R = TypeVar("R")


class Rows(Protocol):
    """What holds nodes and edges; everything that reaches it has been checked."""

    def put_node(self, node: Node) -> None:
        """Put or change a node."""

    def put_edge(self, edge: Edge) -> None:
        """Put or change an edge, merged by its ends and its source."""

    def drop_edges(self, src: str, rel: Rel, dst: str, source: str | None) -> None:
        """Take edges between two ends away: all, or the one of a source."""

    def drop_node(self, node: str) -> None:
        """Take a node away with its chains and its GOOD_FOR edges."""

    def select(self, signal: Signal, policy: Policy) -> Selection:
        """Select."""

    def facts(self, ids: Iterable[str], signal: Signal) -> list[Facts]:
        """What is known of some agents, with chains to and from finished ones; unknown ids are left out."""

    def nodes(self) -> tuple[Node, ...]:
        """All nodes, by id."""

    def edges(self, rel: Rel | None) -> tuple[Edge, ...]:
        """All edges, or those of one relation, by their ends."""

    def neighbours(self, node: str, rel: Rel, depth: int) -> tuple[Edge, ...]:
        """The edges within so many hops, nearest first, then by their ends."""

    def vocabulary(self) -> frozenset[str]:
        """All triggers."""

    def position(self) -> Position:
        """The last event taken in."""

    def note_position(self, position: Position) -> None:
        """Note the last event taken in."""

    def clear(self) -> None:
        """Take everything away."""


class RowGraph(ABC):
    """The methods of a selection graph, as work on rows; see `FrameworkGraph` for what each does."""

    @abstractmethod
    async def _read(self, work: Callable[[Rows], R]) -> R:
        """Do work that only reads, on rows as of one moment."""

    @abstractmethod
    async def _write(self, work: Callable[[Rows], None]) -> None:
        """Do work that writes, all of it or none."""

    @abstractmethod
    def trial(self) -> AbstractAsyncContextManager[FrameworkGraph]:
        """See `FrameworkGraph.trial`."""

    @abstractmethod
    def transaction(self) -> AbstractAsyncContextManager[FrameworkGraph]:
        """See `FrameworkGraph.transaction`."""

    @abstractmethod
    async def close(self) -> None:
        """See `FrameworkGraph.close`."""

    async def upsert(self, node: Node) -> None:
        """See `FrameworkGraph.upsert`."""
        await self._write(lambda rows: rows.put_node(node))

    async def link(self, src: str, rel: Rel, dst: str, **props: Any) -> None:
        """See `FrameworkGraph.link`."""
        edge = edge_of(src, rel, dst, props)

        def put(rows: Rows) -> None:
            if rel == "CHAINS_TO" and not edge.source:
                rows.drop_edges(edge.src, edge.rel, edge.dst, None)
            rows.put_edge(edge)

        await self._write(put)

    async def unlink(self, src: str, rel: Rel, dst: str, *, source: str | None = None) -> None:
        """See `FrameworkGraph.unlink`."""
        known = checked_rel(rel)
        await self._write(lambda rows: rows.drop_edges(src, known, named(known, dst), source))

    async def remove(self, id: str) -> None:  # noqa: A002
        """See `FrameworkGraph.remove`."""
        await self._write(lambda rows: rows.drop_node(id))

    async def record_use(self, id: str, session: str, success: bool) -> None:  # noqa: A002
        """See `FrameworkGraph.record_use`."""
        await self.link(id, "USED_BY", session, success=success)

    async def select(self, signal: Signal, *, policy: Policy = "corrected") -> Selection:
        """See `FrameworkGraph.select`."""
        checked_policy(policy)
        return await self._read(lambda rows: rows.select(signal, policy))

    async def explain(self, id: str, signal: Signal, *, policy: Policy = "corrected") -> Standing:  # noqa: A002
        """See `FrameworkGraph.explain`."""
        checked_policy(policy)

        def told(rows: Rows) -> Standing:
            found = rows.facts([id], signal)
            if not found:
                raise not_found(id, [node.id for node in rows.nodes()])
            return standing(rows.select(signal, policy), measured(found[0], signal, policy), signal)

        return await self._read(told)

    async def neighbours(self, id: str, rel: Rel = "CHAINS_TO", depth: int = 1) -> tuple[Edge, ...]:  # noqa: A002
        """See `FrameworkGraph.neighbours`."""
        known, hops = checked_rel(rel), checked_depth(depth)
        return await self._read(lambda rows: rows.neighbours(id, known, hops))

    async def nodes(self) -> tuple[Node, ...]:
        """See `FrameworkGraph.nodes`."""
        return await self._read(lambda rows: rows.nodes())

    async def edges(self, rel: Rel | None = None) -> tuple[Edge, ...]:
        """See `FrameworkGraph.edges`."""
        known = None if rel is None else checked_rel(rel)
        return await self._read(lambda rows: rows.edges(known))

    async def vocabulary(self) -> frozenset[str]:
        """See `FrameworkGraph.vocabulary`."""
        return await self._read(lambda rows: rows.vocabulary())

    async def position(self) -> Position:
        """See `FrameworkGraph.position`."""
        return await self._read(lambda rows: rows.position())

    async def note_position(self, position: Position) -> None:
        """See `FrameworkGraph.note_position`."""
        await self._write(lambda rows: rows.note_position(position))

    async def clear(self) -> None:
        """Take everything away, the position too: the graph is of another journal, and is built again."""
        await self._write(lambda rows: rows.clear())
