"""The tables of `memory.db`: one for each value, each row with the events at which it was born and died.

A row is never changed: its successor is born where it dies. So what was true at any event is a condition on
two columns, and the rows that are true now have an index of their own.
Source: design ARCHITECTURE §5 (memory as of event N); spec master-loop-and-memory §1.1.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import asdict, fields, is_dataclass
from enum import StrEnum
from operator import attrgetter
from types import UnionType
from typing import Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

from engine.domain import memory as values
from engine.journal.event import canonical

FORMAT = 1
"""Raised whenever a table changes; a database of another format is built again from the journal."""

V = TypeVar("V")


class Table(Generic[V]):
    """Where the values of one type are kept; columns are the value's fields."""

    def __init__(self, name: str, value: type[V], key: tuple[str, ...], *indexes: str) -> None:
        self.name = name
        self.value = value
        self.key = key
        self.indexes = indexes
        hints = get_type_hints(value)
        stored = [one for one in fields(value) if not one.metadata.get("joined")]  # type: ignore[arg-type]
        self.columns = tuple(one.name for one in stored)
        self._kinds = {one.name: _plain(hints[one.name]) for one in fields(value)}  # type: ignore[arg-type]
        self._readers = {name: _reader(kind) for name, kind in self._kinds.items()}
        self._values = attrgetter(*self.columns)
        self._as_json = [
            place for place, column in enumerate(self.columns) if not _is_plain(self._kinds[column])
        ]
        names, marks = ", ".join(self.columns), ", ?" * len(self.columns)
        self.birth = f"insert into {name}(born, {names}) values(?{marks})"
        """Takes the event at which a row is born, and then its columns."""
        same = " and ".join(f"{column} = ?" for column in key)
        self.death = f"update {name} set died = ? where {same} and died is null"
        """Takes the event at which a row dies, and then its key."""

    def ddl(self) -> Iterable[str]:
        """The statements that make the table."""
        columns = "".join(f", {name} {_affinity(self._kinds[name])}" for name in self.columns)
        key = ", ".join(self.key)
        yield (
            f"create table {self.name}"
            f"(row integer primary key, born integer not null, died integer{columns}) strict"
        )
        yield f"create unique index {self.name}_now on {self.name}({key}) where died is null"
        yield f"create index {self.name}_ever on {self.name}({key}, born)"
        for number, index in enumerate(self.indexes):
            yield f"create index {self.name}_{number} on {self.name}({index}) where died is null"

    def encode(self, value: Any) -> Any:
        """A field's value as SQLite keeps it."""
        if value is None or isinstance(value, (str, int, float)):
            return str(value) if isinstance(value, StrEnum) else value
        return canonical(asdict(value) if is_dataclass(value) and not isinstance(value, type) else value)

    def row_of(self, value: V) -> list[Any]:
        """A value's columns as SQLite keeps them; a word of an enumeration is a text to it."""
        row = list(self._values(value))
        for place in self._as_json:
            row[place] = self.encode(row[place])
        return row

    def decode(self, row: sqlite3.Row) -> V:
        """The value that a row keeps; columns that are no fields are passed over."""
        found = {
            name: self._readers[name](row[name])
            for name in row.keys()  # noqa: SIM118 - a row iterates over its values
            if name in self._readers
        }
        return self.value(**found)


def _plain(hint: Any) -> Any:
    """The type without `None`."""
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (one for one in get_args(hint) if one is not type(None))
    return hint


def _is_plain(kind: Any) -> bool:
    """Whether SQLite takes values of the type as they are."""
    return isinstance(kind, type) and issubclass(kind, (str, int, float))


def _affinity(kind: Any) -> str:
    return {int: "integer", bool: "integer", float: "real"}.get(kind, "text")


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
)
USAGES = Table("usages", values.Usage, ("memory",))
LINKS = Table("links", values.MemoryLink, ("source", "target", "type"), "target", "created_at")
STATES = Table("states", values.CognitiveState, ("workflow",))
REFLECTIONS = Table("reflections", values.Reflection, ("id",), "workflow")
TAGGINGS = Table("taggings", values.Tagging, ("owner", "tag"), "tag, owner")

TABLES: tuple[Table[Any], ...] = (
    WORKFLOWS,
    ACTIONS,
    DEPENDENCIES,
    ARTIFACTS,
    CHAINS,
    THOUGHTS,
    MEMORIES,
    USAGES,
    LINKS,
    STATES,
    REFLECTIONS,
    TAGGINGS,
)

TOKENIZER = "porter unicode61 remove_diacritics 2"

_OTHERS = (
    "create table meta(key text primary key, value text not null) strict",
    """create table operations(
        number integer primary key, seq integer, at real not null, actor text not null, kind text not null,
        workflow text not null, subject text not null, key text not null
    ) strict""",
    "create index operations_by_seq on operations(seq)",
    "create index operations_by_workflow on operations(workflow, number)",
    "create index operations_by_key on operations(kind, key, workflow) where key <> ''",
    # Old texts stay, so that a search as of an earlier event finds them; a dead row is passed over.
    f"""create virtual table words using fts5(
        content, description, reasoning, tags, scope, content = '', tokenize = '{TOKENIZER}'
    )""",
    "create virtual table vocabulary using fts5vocab(words, 'row')",
    # A cache: not part of what the events say, and kept when the rest is built again.
    """create table vectors(
        embedder text not null, digest text not null, signature blob not null, vector blob not null,
        primary key(embedder, digest)
    ) strict, without rowid""",
)


def create(connection: sqlite3.Connection) -> None:
    """Make all tables in an empty database."""
    for table in TABLES:
        for statement in table.ddl():
            connection.execute(statement)
    for statement in _OTHERS:
        connection.execute(statement)
