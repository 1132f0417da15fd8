"""Reading memory as it is, or as it was at an event."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, TypeVar

from engine.domain.memory import CognitiveState, MemoryItem, Operation, ThoughtChain, Workflow
from engine.memory.errors import MemoryNotFound
from engine.memory.tables import CHAINS, MEMORIES, STATES, WORKFLOWS, Table

V = TypeVar("V")


class Reading:
    """A view of memory at one event and one moment; used in one thread only."""

    def __init__(self, connection: sqlite3.Connection, now: float, as_of: int | None = None) -> None:
        """Look at memory.

        Args:
            connection: a connection whose rows have names.
            now: seconds since 1970; memories whose time is over then are passed over.
            as_of: version in the memory's stream of the last event that counts; None for all.
        """
        self.connection = connection
        self.now = now
        self.as_of = as_of

    def live(self, alias: str) -> str:
        """The condition that a row was true at the event."""
        if self.as_of is None:
            return f"{alias}.died is null"
        return f"{alias}.born <= {self.as_of} and ({alias}.died is null or {alias}.died > {self.as_of})"

    def rows(self, sql: str, *parameters: Any) -> list[sqlite3.Row]:
        """All rows that a query answers."""
        return self.connection.execute(sql, parameters).fetchall()

    def find(self, table: Table[V], *key: str) -> V | None:
        """The value with this key, or None."""
        found = self.many(table, " and ".join(f"t.{name} = ?" for name in table.key), key, limit=1)
        return found[0] if found else None

    def many(
        self,
        table: Table[V],
        condition: str = "1",
        parameters: Sequence[Any] = (),
        *,
        order: str = "t.row",
        limit: int = -1,
        offset: int = 0,
    ) -> list[V]:
        """Values that fit a condition on `t`, in an order; a limit of -1 is none."""
        sql = f"select t.* from {table.name} t where {self.live('t')} and {condition}"
        rows = self.connection.execute(
            f"{sql} order by {order} limit ? offset ?", (*parameters, limit, offset)
        )
        return [table.decode(row) for row in rows]

    # -------------------------------------------------------------- memories

    @property
    def alive(self) -> str:
        """The condition that the time of the memory `m` is not over; takes `now`."""
        return "(m.expires_at is null or m.expires_at > ?)"

    def memories(
        self,
        condition: str = "1",
        parameters: Sequence[Any] = (),
        *,
        order: str = "m.row",
        limit: int = -1,
        offset: int = 0,
        expired: bool = False,
    ) -> list[MemoryItem]:
        """Memories that fit a condition on `m`, with how often they were used.

        Args:
            condition: of memories `m` and usages `u`.
            parameters: what its question marks stand for.
            order: by which the result is sorted.
            limit: how many at most; -1 for all.
            offset: how many are passed over.
            expired: whether those whose time is over count as well.
        """
        alive, now = ("1", ()) if expired else (self.alive, (self.now,))
        rows = self.connection.execute(
            f"""select m.*, coalesce(u.count, 0) as access_count, u.at as accessed_at
            from memories m left join usages u on u.memory = m.id and {self.live("u")}
            where {self.live("m")} and {alive} and {condition} order by {order} limit ? offset ?""",
            (*now, *parameters, limit, offset),
        )
        return [MEMORIES.decode(row) for row in rows]

    def find_memory(self, ident: str) -> MemoryItem | None:
        """The memory with this id whose time is not over, or None."""
        found = self.memories("m.id = ?", (ident,))
        return found[0] if found else None

    def all_memories(self, idents: Sequence[str]) -> list[MemoryItem]:
        """The memories with these ids that are there, in the order of the ids."""
        if not idents:
            return []
        marks = ", ".join("?" * len(idents))
        found = {one.id: one for one in self.memories(f"m.id in ({marks})", idents)}
        return [found[ident] for ident in idents if ident in found]

    # -------------------------------------------------------------- what must be there

    def need(self, table: Table[V], ident: str, parameter: str, workflow: str = "") -> V:
        """The value with this id, of the workflow if one is named.

        Raises:
            MemoryNotFound: there is none, or it belongs to another workflow.
        """
        found = self.find(table, ident)
        if found is None:
            raise MemoryNotFound(parameter, f"{parameter}: there is no {_noun(table)} {ident!r}.")
        _same_workflow(found, ident, parameter, workflow)
        return found

    def need_memory(self, ident: str, parameter: str = "memory_id", workflow: str = "") -> MemoryItem:
        """The memory with this id, of the workflow if one is named.

        Raises:
            MemoryNotFound: there is none, its time is over, or it belongs to another workflow.
        """
        found = self.find_memory(ident)
        if found is None:
            raise MemoryNotFound(
                parameter, f"{parameter}: there is no memory {ident!r}, or its time is over: search for it."
            )
        _same_workflow(found, ident, parameter, workflow)
        return found

    def require_workflow(self, ident: str) -> str:
        """The id, where there is such a workflow; cheaper than having it.

        Raises:
            MemoryNotFound: there is none.
        """
        if not self.rows(f"select 1 from workflows t where t.id = ? and {self.live('t')}", ident):
            self.need_workflow(ident)
        return ident

    def need_workflow(self, ident: str) -> Workflow:
        """The workflow with this id.

        Raises:
            MemoryNotFound: there is none.
        """
        return self.need(WORKFLOWS, ident, "workflow_id")

    def state(self, workflow: str) -> CognitiveState:
        """What a workflow has in mind; empty when nothing was ever in it."""
        return self.find(STATES, workflow) or CognitiveState(workflow)

    def first_chain(self, workflow: str) -> ThoughtChain:
        """The workflow's main line of thought; every workflow has one from its beginning."""
        return self.many(CHAINS, "t.workflow = ?", (workflow,), limit=1)[0]

    def operations(self, workflow: str = "", limit: int = 30) -> list[Operation]:
        """The newest writes, newest first; of one workflow or of all."""
        mine = "workflow = ?" if workflow else "? = ''"
        until = "" if self.as_of is None else f"and number <= {self.as_of}"
        rows = self.rows(
            f"select * from operations where {mine} {until} order by number desc limit ?", workflow, limit
        )
        return [Operation(*tuple(row)[:7]) for row in rows]


def _noun(table: Table[Any]) -> str:
    return {"chains": "thought chain", "states": "cognitive state"}.get(table.name, table.name[:-1])


def _same_workflow(found: Any, ident: str, parameter: str, workflow: str) -> None:
    if workflow and found.workflow != workflow:
        raise MemoryNotFound(
            parameter, f"{parameter}: {ident} belongs to workflow {found.workflow}, not to {workflow}."
        )
