"""What memory needs of a database: the port that `sqlite` and `postgres` beside this implement.

All that memory asks and folds is written once, in SQL that both understand; `?` is a parameter. What differs
is here: rows that get a number, transactions, the index of words, and the candidates among vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol


class TablesError(Exception):
    """The database refused, or cannot be reached."""


class ValueRefused(TablesError):  # noqa: N818 - named after what happened
    """The database keeps no such value."""


class MemoryRow(Protocol):
    """A row of an answer."""

    def __getitem__(self, column: Any, /) -> Any:
        """The value of a column, by its name or number."""

    def __iter__(self) -> Iterator[Any]:
        """The values."""

    def keys(self) -> Iterable[str]:
        """The names of the columns."""


class WordIndex(Protocol):
    """Finds rows by the words of their texts.

    An expression is one of FTS5: words and phrases in double quotes, a `*` behind a word that may go on,
    `AND`, `OR`, `NOT` and parentheses. How many texts hold a word is in the table `vocabulary(term, doc)`.
    """

    def add(self, row: int, texts: Sequence[str]) -> None:
        """Index the texts of a row; the last one can be asked for and counts for nothing."""

    def ranked(self, expression: str, limit: int) -> list[tuple[int, float]]:
        """The rows that fit best, best first, with their BM25."""

    def matching(self, expression: str) -> list[int]:
        """All rows that fit."""


class Connection(Protocol):
    """A connection to the tables, for one thread; each method raises `TablesError` where that refuses."""

    unindexed: str
    """Before a column: it is only compared, and no index of it is used."""

    known: dict[tuple[str, ...], Any]
    """Values that the one writing connection read or wrote last, by table and key; see `take_back`."""
    refused_late: bool
    """Whether a value of this transaction was refused when the part that it was of had ended."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""

    @property
    def words(self) -> WordIndex:
        """The index of memories' words."""

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> Sequence[MemoryRow]:
        """All rows that a query answers."""

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Do something; within a transaction at the latest when it counts for an answer, or at `settle`."""

    def run_many(self, sql: str, parameters: Sequence[Sequence[Any]]) -> None:
        """Do something for each of these, as `run` does."""

    def add(self, sql: str, parameters: Sequence[Any], key: str = "row") -> int:
        """Insert a row; the number that it gets in the column `key`, 0 where none was inserted."""

    def bits(self, content: bytes) -> Any:
        """Signs of a vector as they are kept."""

    def expect_signs(self, embedder: int, bits: int) -> None:
        """Prepare to compare the signs of an embedder's vectors."""

    def begin(self, *, careful: bool = False) -> None:
        """Begin a transaction: of the only one that writes, or of one state that is read.

        Args:
            careful: what is refused is refused before its part ends.
        """

    def settle(self) -> None:
        """Do all that waits to be done in the transaction."""

    def close(self) -> None:
        """End it; may be called again."""


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """All that is done within, or nothing."""
    connection.begin()
    try:
        yield
        connection.run("commit")
    except BaseException:
        roll_back(connection)
        raise


def roll_back(connection: Connection) -> None:
    """Roll back the transaction, if one is open; one that the database has lost is not."""
    connection.known.clear()
    if connection.in_transaction:
        connection.run("rollback")


def take_back(connection: Connection, sql: str) -> None:
    """Roll back, to a savepoint or the whole; what was known is no longer."""
    connection.known.clear()
    connection.run(sql)
