"""The tables of memory, one for each value, and reading them as they are or as they were at an event.

Each row has the events at which it was born and died. A row is never changed: its successor is born where it
dies. So what was true at any event is a condition on two columns, and the rows that are true now have an
index of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, is_dataclass
from enum import StrEnum
from itertools import product
from operator import attrgetter
from types import UnionType
from typing import Any, Generic, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from engine.core import memory as values
from engine.core.journal import canonical
from engine.core.memory import CognitiveState, MemoryItem, ThoughtChain, Workflow
from engine.memory.connection import Connection, MemoryRow
from engine.memory.errors import MemoryNotFound

FORMAT = 3
"""Raised whenever a table changes; a database of another format is built again from the journal."""

V = TypeVar("V")


class Columns(NamedTuple):
    """What a database calls the types of columns."""

    number: str
    """The number that a row gets when it is inserted."""
    integer: str
    real: str
    text: str
    blob: str
    bits: str
    """The signs of a vector."""
    behind: str
    """Behind a table."""

    def written(self, statements: Iterable[str]) -> Iterable[str]:
        """Statements with these words for `{number}`, `{text}` and so on."""
        return (statement.format(**self._asdict()) for statement in statements)


class Table(Generic[V]):
    """Where the values of one type are kept; columns are the value's fields."""

    def __init__(self, name: str, value: type[V], key: tuple[str, ...], *indexes: str) -> None:
        self.name = name
        self.value = value
        self.key = key
        self.indexes = indexes
        numbered = (index.removesuffix(", sequence") for index in indexes if index.endswith(", sequence"))
        self.within = next(numbered, "")
        """The column of values with the same owner, which are numbered; empty where they are not."""
        hints = get_type_hints(value)
        stored = [field for field in fields(value) if not field.metadata.get("joined")]  # type: ignore[arg-type]
        self.columns = tuple(field.name for field in stored)
        self._kinds = {field.name: _plain(hints[field.name]) for field in fields(value)}  # type: ignore[arg-type]
        self._readers = {name: _reader(kind) for name, kind in self._kinds.items()}
        self._values = attrgetter(*self.columns)
        self.key_of: Callable[[V], tuple[str, ...]] = lambda value: tuple(
            getattr(value, name) for name in key
        )
        self._as_json = [
            place for place, column in enumerate(self.columns) if not _is_plain(self._kinds[column])
        ]
        # In quotes, as some are words of SQL.
        names, marks = ", ".join(f'"{name}"' for name in self.columns), ", ?" * len(self.columns)
        self.birth = f"insert into {name}(born, {names}) values(?{marks})"
        """Takes the event at which a row is born, and then its columns."""
        same = " and ".join(f"{column} = ?" for column in key)
        self.death = f"update {name} set died = ? where {same} and died is null"
        """Takes the event at which a row dies, and then its key."""

    def ddl(self) -> Iterable[str]:
        """The statements that make the table."""
        columns = "".join(f', "{name}" {_affinity(self._kinds[name])}' for name in self.columns)
        key = ", ".join(self.key)
        yield (
            f"create table {self.name}"
            f"(row {{number}}, born {{integer}} not null, died {{integer}}{columns}){{behind}}"
        )
        yield f"create unique index {self.name}_now on {self.name}({key}) where died is null"
        yield f"create index {self.name}_ever on {self.name}({key}, born)"
        for number, index in enumerate(self.indexes):
            yield f"create index {self.name}_{number} on {self.name}({index}) where died is null"

    def row_of(self, value: V) -> list[Any]:
        """A value's columns as a database keeps them; a word of an enumeration is a text to it."""
        row = list(self._values(value))
        for place in self._as_json:
            row[place] = encoded(row[place])
        return row

    def decode(self, row: MemoryRow | Mapping[str, Any]) -> V:
        """The value that a row keeps; columns that are no fields are passed over."""
        stored = {
            name: self._readers[name](row[name])
            for name in row.keys()  # noqa: SIM118 - a row iterates over its values
            if name in self._readers
        }
        return self.value(**stored)


def encoded(value: Any) -> Any:
    """A field's value as a database keeps it."""
    if value is None or isinstance(value, (str, int, float)):
        return str(value) if isinstance(value, StrEnum) else value
    if value == ():
        return "[]"  # most are
    return canonical(asdict(value) if is_dataclass(value) and not isinstance(value, type) else value)


def _plain(hint: Any) -> Any:
    """The type without `None`."""
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (kind for kind in get_args(hint) if kind is not type(None))
    return hint


def _is_plain(kind: Any) -> bool:
    """Whether a database takes values of the type as they are."""
    return isinstance(kind, type) and issubclass(kind, (str, int, float))


def _affinity(kind: Any) -> str:
    return {int: "{integer}", bool: "{integer}", float: "{real}"}.get(kind, "{text}")


def _reader(kind: Any) -> Callable[[Any], Any]:
    """How a column becomes a field again."""
    if kind in (str, int, float):
        return _same
    if kind is bool:
        return bool
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind
    if get_origin(kind) is tuple:
        return lambda text: tuple(json.loads(text))
    if is_dataclass(kind):
        return lambda text: None if text is None else kind(**json.loads(text))  # type: ignore[operator]
    return json.loads


def _same(value: Any) -> Any:
    return value


WORKFLOWS = Table("workflows", values.Workflow, ("id",), "status", "parent")
ACTIONS = Table("actions", values.RecordedAction, ("id",), "workflow, sequence", "parent")
DEPENDENCIES = Table("dependencies", values.Dependency, ("source", "target", "type"), "target")
ARTIFACTS = Table("artifacts", values.Artifact, ("id",), "workflow", "action")
CHAINS = Table("chains", values.ThoughtChain, ("id",), "workflow")
THOUGHTS = Table("thoughts", values.Thought, ("id",), "chain, sequence")
MEMORIES = Table(
    "memories",
    values.MemoryItem,
    ("id",),
    "workflow, level, created_at",
    "workflow, type, importance",
    "expires_at",
    "digest",
    "created_at",
)
USAGES = Table("usages", values.Usage, ("memory",))
LINKS = Table("links", values.MemoryLink, ("source", "target", "type"), "target", "created_at")
STATES = Table("states", values.CognitiveState, ("workflow",))
REFLECTIONS = Table("reflections", values.Reflection, ("id",), "workflow")
JUDGEMENTS = Table("judgements", values.Judgement, ("query", "memory", "workflow"))
TAGGINGS = Table("taggings", values.Tagging, ("owner", "tag"), "tag, owner")

TABLES: tuple[Table[Any], ...] = (
    *(WORKFLOWS, ACTIONS, DEPENDENCIES, ARTIFACTS, CHAINS, THOUGHTS, MEMORIES, USAGES, LINKS, STATES),
    *(REFLECTIONS, JUDGEMENTS, TAGGINGS),
)

MEMORY_BIRTH = MEMORIES.birth.replace("(born, ", "(row, born, ").replace("values(", "values(?, ")
"""Takes the number of the row, by which its words are found, and then as `birth` does."""
LAST_MEMORY = ("last row", MEMORIES.name)

_OTHERS = (
    "create table meta(key {text} primary key, value {text} not null){behind}",
    """create table operations(
        number {integer} primary key, seq {integer}, at {real} not null, actor {text} not null,
        kind {text} not null, workflow {text} not null, subject {text} not null, key {text} not null
    ){behind}""",
    "create index operations_by_seq on operations(seq)",
    "create index operations_by_workflow on operations(workflow, number)",
    "create index operations_by_key on operations(kind, key, workflow) where key <> ''",
)


def create(connection: Connection, columns: Columns, words: Iterable[str]) -> None:
    """Make all tables in an empty database.

    Args:
        connection: to it.
        columns: its words for types.
        words: the statements that make its index of words. Old texts stay there, so that a search as of an
            earlier event finds them; a dead row is passed over.
    """
    for table in TABLES:
        for statement in columns.written(table.ddl()):
            connection.run(statement)
    for statement in (*columns.written(_OTHERS), *words):
        connection.run(statement)


RowValue = TypeVar("RowValue")
Known = TypeVar("Known")


class Reading:
    """A view of memory at one event and one moment; used in one thread only."""

    def __init__(
        self, connection: Connection, now: float, as_of: int | None = None, *, writing: bool = False
    ) -> None:
        """Look at memory.

        Args:
            connection: to its tables.
            now: seconds since 1970; memories whose time is over then are passed over.
            as_of: version in the memory's stream of the last event that counts; None for all.
            writing: it is the connection that writes, and knows what it read or wrote last.
        """
        self.connection = connection
        self.now = now
        self.as_of = as_of
        self._known = connection.known if writing else None

    def live(self, alias: str) -> str:
        """The condition that a row was true at the event."""
        if self.as_of is None:
            return f"{alias}.died is null"
        return f"{alias}.born <= {self.as_of} and ({alias}.died is null or {alias}.died > {self.as_of})"

    def rows(self, sql: str, *parameters: Any) -> Sequence[MemoryRow]:
        """All rows that a query answers."""
        return self.connection.rows(sql, parameters)

    def where(self, tag: str = "", **columns: Any) -> tuple[str, list[Any]]:
        """A condition on `t` and its values: columns that are not None, and a tag if any."""
        given = {name: value for name, value in columns.items() if value is not None}
        parts = ["true", *(f"t.{name} = ?" for name in given)]
        if tag:
            parts.append(self.tagged("t"))
        return " and ".join(parts), [*map(encoded, given.values()), *([tag.strip().lower()] if tag else [])]

    def tagged(self, alias: str) -> str:
        """The condition that something has a tag; takes the tag."""
        live = self.live("g")
        return f"exists(select 1 from taggings g where g.owner = {alias}.id and g.tag = ? and {live})"

    def find(self, table: Table[RowValue], *key: str) -> RowValue | None:
        """The value with this key, or None."""

        def asked() -> RowValue | None:
            rows = self.many(table, " and ".join(f"t.{name} = ?" for name in table.key), key, limit=1)
            return rows[0] if rows else None

        return self._once((table.name, *key), asked)

    def _once(self, about: tuple[str, ...], ask: Callable[[], Known]) -> Known:
        """What is known already, or else is asked now."""
        if self._known is None:
            return ask()
        if about not in self._known:
            self._known[about] = ask()
        return cast("Known", self._known[about])

    def made(self, kind: str, key: str) -> list[tuple[str, str]]:
        """Workflow and subject of each event of a kind that has an idempotency key, oldest first."""
        until = "" if self.as_of is None else f"and number <= {self.as_of}"
        # The index holds keys only, and is taken only where that is said.
        sql = "select workflow, subject from operations where kind = ? and key = ? and key <> ''"
        return self._once(
            ("made", kind, key),
            lambda: [
                (str(row[0]), str(row[1])) for row in self.rows(f"{sql} {until} order by number", kind, key)
            ],
        )

    @contextmanager
    def expecting(self, kinds: Sequence[str], keys: Iterable[str]) -> Iterator[None]:
        """Ask at once what `made` is asked within of these kinds and keys; it is forgotten afterwards."""
        known = self.connection.known
        asked = list(dict.fromkeys(keys))
        known.update({("made", kind, key): [] for kind, key in product(kinds, asked)})
        if asked:
            # So many marks that few statements differ.
            more = [""] * ((1 << (len(asked) - 1).bit_length()) - len(asked))
            marks = [", ".join("?" * len(values)) for values in (kinds, [*asked, *more])]
            rows = self.rows(
                f"""select kind, key, workflow, subject from operations
                where kind in ({marks[0]}) and key in ({marks[1]}) and key <> '' order by number""",
                *(*kinds, *asked, *more),
            )
            for kind, key, workflow, subject in rows:
                known["made", kind, key].append((workflow, subject))
        yield
        for kind, key in product(kinds, asked):
            known.pop(("made", kind, key), None)

    def last_memory(self) -> int:
        """The number of the last row of a memory."""
        sql = f"select coalesce(max(row), 0) from {MEMORIES.name}"
        return self._once(LAST_MEMORY, lambda: int(self.rows(sql)[0][0]))

    def last_in(self, table: Table[Any], owner: str) -> int:
        """The last number (`sequence`) that a value of a table has below its owner; 0 for none."""
        sql = f"select coalesce(max(sequence), 0) from {table.name} where {table.within} = ? and died is null"
        return self._once(("last", table.name, owner), lambda: int(self.rows(sql, owner)[0][0]))

    def many(
        self,
        table: Table[RowValue],
        condition: str = "true",
        parameters: Sequence[Any] = (),
        *,
        order: str = "t.row",
        limit: int | None = None,
        offset: int = 0,
    ) -> list[RowValue]:
        """Values that fit a condition on `t`, in an order."""
        sql = f"select t.* from {table.name} t where {self.live('t')} and {condition}"
        rows = self.rows(f"{sql} order by {order} limit ? offset ?", *parameters, _limit(limit), offset)
        return [table.decode(row) for row in rows]

    # -------------------------------------------------------------- memories

    @property
    def alive(self) -> str:
        """The condition that the time of the memory `m` is not over; takes `now`."""
        return "(m.expires_at is null or m.expires_at > ?)"

    def memories(
        self,
        condition: str = "true",
        parameters: Sequence[Any] = (),
        *,
        order: str = "m.row",
        limit: int | None = None,
        offset: int = 0,
        expired: bool = False,
    ) -> list[MemoryItem]:
        """Memories that fit a condition on `m`, with how often they were used.

        Args:
            condition: of memories `m` and usages `u`.
            parameters: what its question marks stand for.
            order: by which the result is sorted.
            limit: how many at most; None for all.
            offset: how many are passed over.
            expired: whether those whose time is over count as well.
        """
        alive, now = ("true", ()) if expired else (self.alive, (self.now,))
        rows = self.rows(
            f"""select m.*, coalesce(u.count, 0) as access_count, u.at as accessed_at
            from memories m left join usages u on u.memory = m.id and {self.live("u")}
            where {self.live("m")} and {alive} and {condition} order by {order} limit ? offset ?""",
            *(*now, *parameters, _limit(limit), offset),
        )
        return [MEMORIES.decode(row) for row in rows]

    def find_memory(self, ident: str, *, expired: bool = False) -> MemoryItem | None:
        """The memory with this id, or None; one whose time is over only if that is asked for."""

        def asked() -> MemoryItem | None:
            return next(iter(self.memories("m.id = ?", (ident,), expired=True)), None)

        memory = self._once((MEMORIES.name, ident), asked)
        if memory is None or expired or memory.expires_at is None or memory.expires_at > self.now:
            return memory
        return None

    def all_memories(self, idents: Sequence[str]) -> list[MemoryItem]:
        """The memories with these ids that are there, in the order of the ids."""
        if not idents:
            return []
        marks = ", ".join("?" * len(idents))
        by_id = {memory.id: memory for memory in self.memories(f"m.id in ({marks})", idents)}
        return [by_id[ident] for ident in idents if ident in by_id]

    # -------------------------------------------------------------- what must be there

    def need(self, table: Table[RowValue], ident: str, parameter: str, workflow: str = "") -> RowValue:
        """The value with this id, of the workflow if one is named.

        Raises:
            MemoryNotFound: there is none, or it belongs to another workflow.
        """
        value = self.find(table, ident)
        if value is None:
            raise MemoryNotFound(parameter, f"{parameter}: there is no {_noun(table)} {ident!r}.")
        _same_workflow(value, ident, parameter, workflow)
        return value

    def check(self, table: Table[Any], ident: str, parameter: str, workflow: str) -> None:
        """Refuse an id that is given and names nothing of the workflow; see `need`."""
        if ident:
            self.need(table, ident, parameter, workflow)

    def need_memory(self, ident: str, parameter: str = "memory_id", workflow: str = "") -> MemoryItem:
        """The memory with this id, of the workflow if one is named.

        Raises:
            MemoryNotFound: there is none, its time is over, or it belongs to another workflow.
        """
        memory = self.find_memory(ident)
        if memory is None:
            raise MemoryNotFound(
                parameter, f"{parameter}: there is no memory {ident!r}, or its time is over: search for it."
            )
        _same_workflow(memory, ident, parameter, workflow)
        return memory

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
        return self._once(
            ("first chain", workflow), lambda: self.many(CHAINS, "t.workflow = ?", (workflow,), limit=1)[0]
        )

    def below(self, workflow: str) -> list[str]:
        """The ids of the workflows begun below one, oldest first."""
        sql = f"select id from workflows t where t.parent = ? and {self.live('t')} order by length(id), id"
        return self._once(("below", workflow), lambda: [str(row[0]) for row in self.rows(sql, workflow)])


def _limit(limit: int | None) -> int:
    """A number that is never reached for none."""
    return 2**63 - 1 if limit is None else limit


def _noun(table: Table[Any]) -> str:
    return {"chains": "thought chain", "states": "cognitive state"}.get(table.name, table.name[:-1])


def _same_workflow(value: Any, ident: str, parameter: str, workflow: str) -> None:
    if workflow and value.workflow != workflow:
        raise MemoryNotFound(
            parameter, f"{parameter}: {ident} belongs to workflow {value.workflow}, not to {workflow}."
        )
