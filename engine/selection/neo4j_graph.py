"""The selection graph in Neo4j, through its official driver, for teams that share one.

Cypher counts T, P and C; R, rounding, order and the bars are those of the definition. Tested over Bolt
against ArcadeDB, which is not Neo4j: its planner and its clusters were never met (data-stack spec §3).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from typing import Any, Self

from engine.domain.text import clean_line
from engine.selection import cypher
from engine.selection.errors import GraphUnavailable
from engine.selection.graph import FrameworkGraph, not_found
from engine.selection.selecting import (
    Candidate,
    Evidence,
    Selection,
    Standing,
    corrected_parts,
    selection_of,
    standing,
)
from engine.selection.turns import Turns
from engine.selection.values import (
    RELS,
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

Statement = tuple[str, Mapping[str, Any]]
Row = dict[str, Any]


class _CypherGraph:
    """The methods of a selection graph, as Cypher that `_run` runs together; see `FrameworkGraph`."""

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace

    async def _run(self, statements: Sequence[Statement], *, writes: bool) -> list[Row]:
        """Run statements in one transaction; the rows of the last one."""
        raise NotImplementedError

    async def upsert(self, node: Node) -> None:
        """See `FrameworkGraph.upsert`."""
        await self._run([(cypher.UPSERT, {"node": cypher.node_map(node)})], writes=True)

    async def link(self, src: str, rel: Rel, dst: str, **props: Any) -> None:
        """See `FrameworkGraph.link`."""
        edge = edge_of(src, rel, dst, props)
        value = bool(edge.value) if rel == "USED_BY" else edge.value
        given = {"src": edge.src, "dst": edge.dst, "value": value, "source": edge.source}
        statements: list[Statement] = []
        if rel == "CHAINS_TO" and not edge.source:
            statements.append((cypher.UNLINK[rel], {**given, "source": None}))
        statements.append((cypher.LINK_WITH_SOURCE if edge.source else cypher.LINK[edge.rel], given))
        await self._run(statements, writes=True)

    async def unlink(self, src: str, rel: Rel, dst: str, *, source: str | None = None) -> None:
        """See `FrameworkGraph.unlink`."""
        given = {"src": src, "dst": named(checked_rel(rel), dst), "source": source}
        if rel == "CHAINS_TO" or not source:
            await self._run([(cypher.UNLINK[rel], given)], writes=True)

    async def remove(self, id: str) -> None:  # noqa: A002
        """See `FrameworkGraph.remove`."""
        await self._run([(statement, {"id": id}) for statement in cypher.REMOVE], writes=True)

    async def record_use(self, id: str, session: str, success: bool) -> None:  # noqa: A002
        """See `FrameworkGraph.record_use`."""
        await self.link(id, "USED_BY", session, success=success)

    async def select(self, signal: Signal, *, policy: Policy = "corrected") -> Selection:
        """See `FrameworkGraph.select`."""
        return selection_of(await self._candidates(signal, policy, False), signal, policy)

    async def explain(self, id: str, signal: Signal, *, policy: Policy = "corrected") -> Standing:  # noqa: A002
        """See `FrameworkGraph.explain`."""
        candidates = await self._candidates(signal, policy, True)
        for one in candidates:
            if one.id == id:
                return standing(selection_of(candidates, signal, policy), one, signal)
        raise not_found(id, [one.id for one in candidates])

    async def _candidates(self, signal: Signal, policy: Policy, everyone: bool) -> list[Candidate]:
        query = {"corrected": cypher.SELECT_CORRECTED, "literal": cypher.SELECT_LITERAL}[
            checked_policy(policy)
        ]
        words, types = signal.compared(policy)
        given = {
            "words": sorted(words),
            "types": sorted(types),
            "previous": list(signal.previous),
            "all": everyone,
        }
        return [_candidate(row, policy) for row in await self._run([(query, given)], writes=False)]

    async def neighbours(self, id: str, rel: Rel = "CHAINS_TO", depth: int = 1) -> tuple[Edge, ...]:  # noqa: A002
        """See `FrameworkGraph.neighbours`."""
        query, hops = cypher.EDGES_FROM[checked_rel(rel)], checked_depth(depth)
        reached, frontier = {id}, {id}
        found: list[Edge] = []
        while frontier and hops:
            step = _edges(rel, await self._run([(query, {"ids": sorted(frontier)})], writes=False))
            found += step
            frontier = {edge.dst for edge in step} - reached if rel == "CHAINS_TO" else set()
            reached |= frontier
            hops -= 1
        return tuple(found)

    async def nodes(self) -> tuple[Node, ...]:
        """See `FrameworkGraph.nodes`."""
        rows = await self._run([(cypher.NODES, {})], writes=False)
        return tuple(sorted((_node(row["node"]) for row in rows), key=lambda node: node.id))

    async def edges(self, rel: Rel | None = None) -> tuple[Edge, ...]:
        """See `FrameworkGraph.edges`."""
        asked = RELS if rel is None else (checked_rel(rel),)
        found = [_edges(one, await self._run([(cypher.EDGES[one], {})], writes=False)) for one in asked]
        return tuple(sorted(edge for edges in found for edge in edges))

    async def vocabulary(self) -> frozenset[str]:
        """See `FrameworkGraph.vocabulary`."""
        rows = await self._run([(cypher.VOCABULARY, {})], writes=False)
        return frozenset(row["word"] for row in rows)

    async def position(self) -> Position:
        """See `FrameworkGraph.position`; each workspace has its own."""
        rows = await self._run([(cypher.POSITION, {"workspace": self._workspace})], writes=False)
        return Position(rows[0]["version"], rows[0]["hash"]) if rows else Position()

    async def note_position(self, position: Position) -> None:
        """See `FrameworkGraph.note_position`."""
        given = {"workspace": self._workspace, **position._asdict()}
        await self._run([(cypher.NOTE_POSITION, given)], writes=True)


class Neo4jGraph(_CypherGraph):
    """The selection graph in a Neo4j database; `open` makes one."""

    def __init__(self, driver: Any, uri: str, database: str | None, workspace: str) -> None:
        super().__init__(workspace)
        self._driver, self._uri, self._database = driver, uri, database
        self._turns = Turns()

    @classmethod
    async def open(
        cls, uri: str, *, user: str, password: str, database: str | None = None, workspace: str = "default"
    ) -> Self:
        """Connect, and see to the constraints.

        Args:
            uri: `bolt://HOST:PORT` or `neo4j://HOST:PORT`, without user and password.
            user: who logs in.
            password: their password; it is in no message.
            database: its name; the server's default one if not given.
            workspace: whose position is kept.

        Raises:
            GraphUnavailable: the driver is not installed, or the database cannot be reached.
        """
        try:
            neo4j = import_module("neo4j")
        except ImportError as error:
            raise GraphUnavailable(
                "The selection graph on Neo4j needs its driver: pip install 'pilothouse[neo4j]'."
            ) from error
        with _faults(uri):
            driver = neo4j.AsyncGraphDatabase.driver(uri, auth=(user, password))
        graph = cls(driver, uri, database, workspace)
        try:
            with _faults(uri):
                await driver.verify_connectivity()
            for constraint in cypher.CONSTRAINTS:
                await graph._run([(constraint, {})], writes=True)
        except BaseException:
            await graph.close()
            raise
        return graph

    async def close(self) -> None:
        """See `FrameworkGraph.close`."""
        await self._driver.close()

    async def _run(self, statements: Sequence[Statement], *, writes: bool) -> list[Row]:
        async def work(transaction: Any) -> list[Row]:
            return await _all(transaction, statements)

        if writes:
            async with self._turns.turn():
                return await self._within(lambda session: session.execute_write(work))
        return await self._within(lambda session: session.execute_read(work))

    async def _within(self, work: Callable[[Any], Any]) -> list[Row]:
        with _faults(self._uri):
            async with self._driver.session(database=self._database) as session:
                found: list[Row] = await work(session)
                return found

    @asynccontextmanager
    async def trial(self) -> AsyncIterator[FrameworkGraph]:
        """See `FrameworkGraph.trial`."""
        async with self._begun() as (unit, _):
            yield unit

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[FrameworkGraph]:
        """See `FrameworkGraph.transaction`."""
        async with self._begun() as (unit, transaction):
            yield unit
            with _faults(self._uri):
                await transaction.commit()

    @asynccontextmanager
    async def _begun(self) -> AsyncIterator[tuple[_Unit, Any]]:
        """A transaction that the driver takes back unless it was committed."""
        async with self._turns.turn(), self._driver.session(database=self._database) as session:
            with _faults(self._uri):
                transaction = await session.begin_transaction()
            async with transaction:
                unit = _Unit(transaction, self._uri, self._workspace)
                try:
                    yield unit, transaction
                finally:
                    unit.ended = True
                    if not transaction.closed():
                        with _faults(self._uri):
                            await transaction.rollback()


class _Unit(_CypherGraph):
    """The graph within an open transaction."""

    def __init__(self, transaction: Any, uri: str, workspace: str) -> None:
        super().__init__(workspace)
        self._transaction, self._uri = transaction, uri
        self.ended = False

    async def _run(self, statements: Sequence[Statement], *, writes: bool) -> list[Row]:
        if self.ended:
            raise GraphUnavailable("This transaction has ended; use the graph itself.")
        with _faults(self._uri):
            return await _all(self._transaction, statements)

    def trial(self) -> AbstractAsyncContextManager[FrameworkGraph]:
        """There is none within another."""
        raise GraphUnavailable("A transaction holds no other; end it first.")

    transaction = trial

    async def close(self) -> None:
        """Nothing to give up: it ends with its block."""


class _faults:  # noqa: N801
    """What the driver raises, in the graph's words."""

    def __init__(self, uri: str) -> None:
        self._uri = uri

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        exceptions = import_module("neo4j.exceptions")
        known = (exceptions.Neo4jError, exceptions.DriverError, exceptions.ConfigurationError, OSError)
        if isinstance(error, known):
            said = clean_line(str(error), limit=300)
            raise GraphUnavailable(
                f"Neo4j at {clean_line(self._uri, limit=200)} could not be used ({said}): "
                "check that it runs there, and user and password."
            ) from error


async def _all(transaction: Any, statements: Sequence[Statement]) -> list[Row]:
    rows: list[Row] = []
    for query, given in statements:
        rows = await (await transaction.run(query, dict(given))).data()
    return rows


def _candidate(row: Row, policy: Policy) -> Candidate:
    rated = tuple(sorted((name, float(sure)) for name, sure in row["rated"]))
    chains = sorted(((other, float(w)) for other, w in row["chains"]), key=lambda one: (-one[1], one[0]))
    uses, successes = int(row["uses"]), int(row["successes"])
    found = Evidence(tuple(row["matched"]), rated, tuple(row["listed"]), tuple(chains), uses, successes)
    *_, record = corrected_parts(0, 0.0, 0.0, successes, uses)
    parts = (float(row["tt"]), float(row["pp"]), float(row["cc"]), record)
    return Candidate(_node(row["node"]), *parts, found, policy)


def _node(held: Row) -> Node:
    """A node as the database has it; what others have put there may lack what ours have."""
    return Node(
        id=held["id"],
        name=held["name"],
        type=held.get("type") or "operator",
        triggers=tuple(held.get("triggers") or ()),
        problem_types=tuple(held.get("problem_types") or ()),
        version=held.get("version") or "1.0.0",
        updated_at=str(held.get("updated_at") or ""),
        description=held.get("description") or "",
        enabled=held.get("enabled", True),
        callers=tuple(held.get("callers", ("*",))),
    )


def _edges(rel: Rel, rows: Sequence[Row]) -> list[Edge]:
    return sorted(Edge(row["src"], rel, row["dst"], float(row["value"]), row["source"]) for row in rows)
