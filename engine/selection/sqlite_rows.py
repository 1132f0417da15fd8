"""Nodes and edges of the selection graph in SQLite, and the selection as SQL.

A tag table finds who matches a trigger or lists a type, the primary key of the edges whom finished agents
chain to, and the reverse index who chains to them. The arithmetic is that of `selecting`, called by
SQLite, so that both come to the same bits. Source: ontology spec §3.2, data-stack spec §3.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable
from typing import Any

from engine.selection.selecting import (
    LOST_LIMIT,
    Facts,
    Selection,
    corrected_parts,
    facts_of,
    literal_parts,
    measured,
    selection_of,
    together,
)
from engine.selection.values import Edge, Node, Policy, Position, Rel, Signal

FORMAT = "1"
"""Raised whenever the tables change their shape; a database of another format is thrown away."""

_TABLES = (
    "create table about(key text primary key, value text not null) strict",
    """create table node(id text primary key, name text not null, type text not null, triggers text not null,
        problem_types text not null, version text not null, updated_at text not null,
        description text not null, enabled integer not null, callers text not null) strict""",
    """create table tag(kind text not null, tag text not null, node text not null,
        primary key(kind, tag, node)) strict, without rowid""",
    "create index tag_by_node on tag(node)",
    """create table edge(rel text not null, src text not null, dst text not null, source text not null,
        value real not null, primary key(rel, src, dst, source)) strict, without rowid""",
    "create index edge_by_target on edge(rel, dst, src, value)",
    """create table record(node text primary key, uses integer not null,
        successes integer not null) strict""",
)
_COLUMNS = "id, name, type, triggers, problem_types, version, updated_at, description, enabled, callers"

_GIVEN = "select value from json_each(:{})"
_TRIGGERED = f"""
    select node, 1 as matched, 0.0 as confidence, 0.0 as total, 0.0 as best from tag
    where kind = 'trigger' and tag in ({_GIVEN.format("words")})"""
_LISTED = f"select node, 0, 1.0, 0.0, 0.0 from tag where kind = 'type' and tag in ({_GIVEN.format('types')})"
_CORRECTED_HITS = f"""
    {_TRIGGERED}
    union all {_LISTED} and not exists (
        select 1 from edge where rel = 'GOOD_FOR' and src = tag.node and dst = tag.tag)
    union all select src, 0, value, 0.0, 0.0 from edge
        where rel = 'GOOD_FOR' and dst in ({_GIVEN.format("types")})
    union all select dst, 0, 0.0, exact_sum(weight), max(weight) from (
        select dst, max(min(1.0, max(0.0, value))) as weight from edge
        where rel = 'CHAINS_TO' and src in ({_GIVEN.format("previous")}) and src <> dst group by dst, src
    ) group by dst"""
_LITERAL_HITS = f"""
    {_TRIGGERED}
    union all {_LISTED}
    union all select src, 0, 0.0, exact_sum(value), max(value) from edge
        where rel = 'CHAINS_TO' and dst in ({_GIVEN.format("previous")}) group by src"""
_BARRED = f"""(not enabled or id in ({_GIVEN.format("exclude")})
    or (not :allow_repeat and id in ({_GIVEN.format("previous")}))
    or (:available is not null and id not in ({_GIVEN.format("available")}))
    or (:caller is not null and (id = :caller or not exists (
        select 1 from json_each(node.callers) where value in ('*', :caller)))))"""


def _query(hits: str, score: str, barred: str) -> str:
    order = "order by score desc, matched desc, best desc, id"
    return f"""
    with hit as (
        select node, sum(matched) as matched, max(confidence) as confidence, max(total) as total,
            max(best) as best from ({hits}) group by node),
    ranked as materialized (
        select id, matched, best, {barred} as barred, {score} as score
        from hit join node on id = hit.node left join record on record.node = hit.node)
    select id from (select id from ranked where score is not null and not barred {order} limit :open_to)
    union all
    select id from (select id from ranked where score is not null and barred {order} limit :barred)"""


_SELECT: dict[Policy, str] = {
    "corrected": _query(
        _CORRECTED_HITS,
        "corrected_score(matched, confidence, total, coalesce(successes, 0), coalesce(uses, 0))",
        _BARRED,
    ),
    "literal": _query(_LITERAL_HITS, "literal_score(matched, confidence, total)", "0"),
}
_WALK = """
with recursive walk(id, hop) as (
    select :node, 0
    union
    select dst, hop + 1 from walk join edge on rel = :rel and src = id where hop < :depth)
select src, rel, dst, value, source, min(hop) as hop from walk join edge on rel = :rel and src = id
where hop < :depth group by src, dst, source order by hop, src, dst, value, source
"""


class _ExactSum:
    """A sum of floats that is the same for any order of them."""

    def __init__(self) -> None:
        self._values: list[float] = []

    def step(self, value: float) -> None:
        """Take one in."""
        self._values.append(value)

    def finalize(self) -> float:
        """What all come to."""
        return math.fsum(self._values)


def _corrected_score(
    matched: int, confidence: float, chain: float, successes: int, uses: int
) -> float | None:
    """The score, or NULL where nothing of the signal fits."""
    parts = corrected_parts(matched, confidence, chain, successes, uses)
    return together(parts) if parts[0] + parts[1] + parts[2] > 0 else None


def _literal_score(matched: int, confidence: float, chain: float) -> float | None:
    parts = literal_parts(matched, confidence, chain)
    return together(parts) if parts[0] + parts[1] > 0 else None


def add_functions(connection: sqlite3.Connection) -> None:
    """Teach a connection the arithmetic of the definition."""
    connection.create_function("corrected_score", 5, _corrected_score, deterministic=True)
    connection.create_function("literal_score", 3, _literal_score, deterministic=True)
    # What the type stubs ask of an aggregate's class is more than SQLite does.
    connection.create_aggregate("exact_sum", 1, _ExactSum)  # type: ignore[arg-type]


def create(connection: sqlite3.Connection) -> None:
    """Make the tables, within the caller's transaction."""
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute("insert into about values('format', ?)", (FORMAT,))


class SqliteRows:
    """The rows behind one connection; the caller sees to threads and transactions."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def put_node(self, node: Node) -> None:
        """See `Rows.put_node`."""
        lists = [json.dumps(words) for words in (node.triggers, node.problem_types, node.callers)]
        self._connection.execute(
            f"insert or replace into node({_COLUMNS}) values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(node.id, node.name, node.type, lists[0], lists[1]),
                *(node.version, node.updated_at, node.description, int(node.enabled), lists[2]),
            ),
        )
        self._connection.execute("delete from tag where node = ?", (node.id,))
        tags = [("trigger", word, node.id) for word in node.triggers]
        tags += [("type", word, node.id) for word in node.problem_types]
        self._connection.executemany("insert into tag values(?, ?, ?)", tags)

    def put_edge(self, edge: Edge) -> None:
        """See `Rows.put_edge`."""
        if edge.rel == "USED_BY":
            self._forget_use(edge.src, edge.dst)
            self._count(edge.src, 1, int(edge.value))
        self._connection.execute(
            "insert or replace into edge(rel, src, dst, source, value) values(?, ?, ?, ?, ?)",
            (edge.rel, edge.src, edge.dst, edge.source, edge.value),
        )

    def drop_edges(self, src: str, rel: Rel, dst: str, source: str | None) -> None:
        """See `Rows.drop_edges`."""
        if rel == "USED_BY" and not source:
            self._forget_use(src, dst)
        self._connection.execute(
            "delete from edge where rel = ? and src = ? and dst = ? and (? is null or source = ?)",
            (rel, src, dst, source, source),
        )

    def _forget_use(self, node: str, session: str) -> None:
        """Uncount a use that is recorded, so that the sums never need all uses to be read."""
        row = self._connection.execute(
            "select value from edge where rel = 'USED_BY' and src = ? and dst = ?", (node, session)
        ).fetchone()
        if row is not None:
            self._count(node, -1, -int(row[0]))

    def _count(self, node: str, uses: int, successes: int) -> None:
        self._connection.execute(
            """insert into record values(:node, :uses, :successes) on conflict(node) do update
            set uses = uses + :uses, successes = successes + :successes""",
            {"node": node, "uses": uses, "successes": successes},
        )

    def drop_node(self, node: str) -> None:
        """See `Rows.drop_node`."""
        for statement in (
            "delete from node where id = ?",
            "delete from tag where node = ?",
            "delete from edge where rel in ('CHAINS_TO', 'GOOD_FOR') and src = ?",
            "delete from edge where rel = 'CHAINS_TO' and dst = ?",
        ):
            self._connection.execute(statement, (node,))

    def select(self, signal: Signal, policy: Policy) -> Selection:
        """See `Rows.select`: SQL says who and in what order, the definition says why."""
        words, types = signal.compared(policy)
        given: dict[str, Any] = {
            "words": json.dumps(sorted(words)),
            "types": json.dumps(sorted(types)),
            "previous": json.dumps(signal.previous),
            "exclude": json.dumps(signal.exclude),
            "available": None if signal.available is None else json.dumps(signal.available),
            "caller": signal.caller,
            "allow_repeat": signal.allow_repeat,
            "open_to": signal.limit + LOST_LIMIT,
            "barred": LOST_LIMIT,
        }
        ids = [one for (one,) in self._connection.execute(_SELECT[policy], given)]
        candidates = [measured(facts, signal, policy) for facts in self.facts(ids, signal)]
        return selection_of(candidates, signal, policy)

    def facts(self, ids: Iterable[str], signal: Signal) -> list[Facts]:
        """See `Rows.facts`."""
        given = {"ids": json.dumps(list(ids)), "previous": json.dumps(signal.previous)}
        theirs, finished = _GIVEN.format("ids"), _GIVEN.format("previous")
        nodes = [
            _node(row)
            for row in self._connection.execute(
                f"select {_COLUMNS} from node where id in ({theirs}) order by id", given
            )
        ]
        edges = self._connection.execute(
            f"""select src, rel, dst, value, source from edge where rel = 'GOOD_FOR' and src in ({theirs})
            union select src, rel, dst, value, source from edge
                where rel = 'CHAINS_TO' and src in ({finished}) and dst in ({theirs})
            union select src, rel, dst, value, source from edge
                where rel = 'CHAINS_TO' and src in ({theirs}) and dst in ({finished})""",
            given,
        )
        found = facts_of(nodes, [Edge(*row) for row in edges])
        records = {
            node: (uses, successes)
            for node, uses, successes in self._connection.execute(
                f"select node, uses, successes from record where node in ({theirs})", given
            )
        }
        return [
            Facts(one.node, one.good_for, one.before, one.after, *records.get(one.node.id, (0, 0)))
            for one in found
        ]

    def nodes(self) -> tuple[Node, ...]:
        """See `Rows.nodes`."""
        rows = self._connection.execute(f"select {_COLUMNS} from node order by id")
        return tuple(_node(row) for row in rows)

    def edges(self, rel: Rel | None) -> tuple[Edge, ...]:
        """See `Rows.edges`."""
        rows = self._connection.execute(
            "select src, rel, dst, value, source from edge where ? is null or rel = ?", (rel, rel)
        )
        return tuple(sorted(Edge(*row) for row in rows))

    def neighbours(self, node: str, rel: Rel, depth: int) -> tuple[Edge, ...]:
        """See `Rows.neighbours`."""
        rows = self._connection.execute(_WALK, {"node": node, "rel": rel, "depth": depth})
        return tuple(Edge(*row[:5]) for row in rows)

    def vocabulary(self) -> frozenset[str]:
        """See `Rows.vocabulary`."""
        rows = self._connection.execute("select distinct tag from tag where kind = 'trigger'")
        return frozenset(word for (word,) in rows)

    def position(self) -> Position:
        """See `Rows.position`."""
        row = self._connection.execute("select value from about where key = 'position'").fetchone()
        return Position(*json.loads(row[0])) if row else Position()

    def note_position(self, position: Position) -> None:
        """See `Rows.note_position`."""
        self._connection.execute(
            "insert or replace into about values('position', ?)", (json.dumps(list(position)),)
        )

    def clear(self) -> None:
        """See `Rows.clear`."""
        for table in ("node", "tag", "edge", "record", "about where key = 'position'"):
            self._connection.execute(f"delete from {table}")


def _node(row: tuple[Any, ...]) -> Node:
    texts, enabled, callers = row[:8], row[8], row[9]
    fields = dict(zip(_COLUMNS.split(", ")[:8], texts, strict=True))
    for name in ("triggers", "problem_types"):
        fields[name] = tuple(json.loads(fields[name]))
    return Node(**fields, enabled=bool(enabled), callers=tuple(json.loads(callers)))
