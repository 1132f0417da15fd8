"""The vectors of texts that memories ever had, by their digests and who made them.

They are a cache beside the journal and beside the tables of memory. The signs of a vector's numbers choose
candidates; the candidates' likeness is that of the whole vectors, which stay in the database. Where that does
not compare signs itself they are in memory, 48 bytes each for MiniLM.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

from engine.memory.connection import Connection, TablesError, transaction
from engine.memory.embedding import Vector
from engine.memory.scoring import embedded_text

PAGE = 64
"""Texts that are looked up at a time."""
CHUNK = 65_536
"""Vectors whose signs are compared at a time, so that what is between stays in the processor's cache."""
CANDIDATES, CANDIDATES_LEAST, CANDIDATES_MOST = 5, 500, 2_000
"""How many are compared as a whole: for each result, at least, and a hundredth of many, up to a limit.

Among a hundred of 4,000 sentences were 0.975 of the nearest ten.
"""

VECTOR_TABLES = (
    "create table embedders(number {number}, id {text} not null unique, dim {integer}){behind}",
    # A text without signs cannot be embedded.
    """create table signs(
        number {number}, embedder {integer} not null, digest {text} not null, signs {bits},
        unique(embedder, digest)
    ){behind}""",
    "create table vectors(number {integer} primary key, numbers {blob} not null){behind}",
)


class VectorWriter:
    """Keeps the vectors of one embedder; used in one thread only.

    Args:
        connection: to the vectors.
        memories: a connection to the memories, which may be the same.
        table: what these are called there.
        embedder: whose vectors these are.
        closed: called when the connection was closed in good order.
    """

    def __init__(
        self,
        connection: Connection,
        memories: Connection,
        table: str,
        embedder: str,
        closed: Callable[[], object],
    ) -> None:
        self._connection, self._memories, self._table = connection, memories, table
        self._embedder, self._closed = embedder, closed
        self._number = _number_of(self._connection, embedder)[0]
        self.row = 0
        """Memories up to this row have a vector, or cannot have one."""
        counted = "select count(signs) from signs where embedder = ?"
        self.count = int(self._connection.rows(counted, (self._number,))[0][0])
        """Texts that have a vector."""

    def lacking(self) -> dict[str, str]:
        """Texts of memories that have no vector, by digest, the oldest first; none where all have one."""
        rows = self._memories.rows(
            f"""select m.row, m.digest, m.description, m.content from {self._table} m
            where m.row > ? and not exists(select 1 from signs s where s.embedder = ? and s.digest = m.digest)
            order by m.row limit ?""",
            (self.row, self._number, PAGE),
        )
        self.row = rows[0][0] - 1 if rows else self.rows
        return {row[1]: embedded_text(row[2], row[3]) for row in rows}

    @property
    def rows(self) -> int:
        """The last row of a memory."""
        ((last,),) = self._memories.rows(f"select coalesce(max(m.row), 0) from {self._table} m")
        return int(last)

    def keep(self, dim: int, vectors: dict[str, Vector | None]) -> None:
        """Keep vectors by the digests of their texts; None of a text that cannot be embedded."""
        import numpy as np  # late: it takes a while, and is there with an embedder only

        connection = self._connection
        with transaction(connection):
            if not self._number:
                self._number = connection.add(
                    "insert into embedders(id, dim) values(?, ?)", (self._embedder, dim), "number"
                )
                connection.expect_signs(self._number, -(-dim // 64) * 64)
            for digest, vector in vectors.items():
                signs = None if vector is None else _signs(np.frombuffer(vector, np.float32)).tobytes()
                number = connection.add(
                    "insert into signs(embedder, digest, signs) values(?, ?, ?) on conflict do nothing",
                    (self._number, digest, signs and connection.bits(signs)),
                    "number",
                )
                if vector is not None and number:
                    halves = np.frombuffer(vector, np.float32).astype(np.float16).tobytes()
                    connection.run("insert into vectors values(?, ?)", (number, halves))
        self.count += sum(vector is not None for vector in vectors.values())

    def drop_others(self) -> None:
        """Let go of the vectors of other embedders."""
        if self._connection.rows("select 1 from embedders where number <> ?", (self._number,)):
            for statement in (
                "delete from vectors where number in (select number from signs where embedder <> ?)",
                "delete from signs where embedder <> ?",
                "delete from embedders where number <> ?",
            ):
                self._connection.run(statement, (self._number,))

    @property
    def dim(self) -> int:
        """Numbers of the embedder's vectors; 0 where there is none yet."""
        return _number_of(self._connection, self._embedder)[1]

    def close(self) -> None:
        """Close the database, and note that this was in good order."""
        self._connection.close()
        self._closed()


_BY_NUMBER = "s.number"


def _number_of(connection: Connection, embedder: str) -> tuple[int, int]:
    """Number and dimension of an embedder; zeros where it has no vectors."""
    rows = connection.rows("select number, dim from embedders where id = ?", (embedder,))
    return (int(rows[0][0]), int(rows[0][1])) if rows else (0, 0)


def _signs(numbers: Any) -> Any:
    """The signs of a vector as bits, in whole words of 64."""
    import numpy as np

    bits: Any = np.zeros(-(-len(numbers) // 64) * 64, bool)
    bits[: len(numbers)] = numbers > 0
    return np.packbits(bits)


class VectorSource(Protocol):
    """Where the vectors are read."""

    name: str
    compares: bool
    """Whether signs are compared there."""

    def opened(self) -> tuple[Connection | None, bool]:
        """The connection, None where there is nothing to read, and whether it is another than before."""

    def candidates(self, embedder: int, signs: bytes, count: int) -> list[int]:
        """The vectors of an embedder whose signs are most like these, by their numbers, where it compares."""

    def close(self) -> None:
        """Close what it opened."""


class StoredLikeness:
    """The vectors of one embedder, as searches use them; used in the reading thread only.

    A database that is missing, damaged or of another embedder brings up nothing.
    """

    def __init__(self, source: VectorSource, embedder: str) -> None:
        self.embedder = embedder
        self.note = ""
        self._source = source
        self._connection: Connection | None = None
        self._of = self._last = self._count = 0
        self.dim = 0
        """Numbers of a vector; 0 where there is none yet."""
        self._numbers: Any = None
        # A row for each 64 signs and a column for each vector, as each row is gone through at once.
        self._signs: Any = None

    def __len__(self) -> int:
        """Texts that have a vector, as far as they were looked at."""
        return self._count

    def refresh(self) -> bool:
        """Take in vectors that were written since; whether there are any."""
        try:
            self._connection, other = self._source.opened()
            if other or self._connection is None:
                self._of = self._last = self._count = 0
            if self._connection is not None:
                if not self._of:
                    self._of, self.dim = _number_of(self._connection, self.embedder)
                if self._of:
                    (self._recount if self._source.compares else self._load)(self._connection)
            self.note = ""
        except (TablesError, OSError, ImportError, ValueError) as error:
            self._trouble(error)
        return self._count > 0

    def _trouble(self, error: Exception) -> None:
        self.note = f"{self._source.name} cannot be read ({error}); words alone count"
        self._count = 0

    def _recount(self, connection: Connection) -> None:
        ((count, last),) = connection.rows(
            "select count(signs), coalesce(max(number), 0) from signs where number > ? and embedder = ?",
            (self._last, self._of),
        )
        self._count, self._last = self._count + count, max(self._last, last)

    def _load(self, connection: Connection) -> None:
        import numpy as np

        width = -(-self.dim // 64)
        while rows := connection.rows(
            "select number, signs from signs where number > ? and +embedder = ? and length(signs) = ? "
            "order by number limit 10000",
            (self._last, self._of, width * 8),
        ):
            end = self._count + len(rows)
            if self._numbers is None or end > len(self._numbers):
                numbers: Any = np.zeros(end * 5 // 4, np.int64)
                signs: Any = np.zeros((width, end * 5 // 4), np.uint64)
                if self._count:
                    numbers[: self._count] = self._numbers[: self._count]
                    signs[:, : self._count] = self._signs[:, : self._count]
                self._numbers, self._signs = numbers, signs
            self._numbers[self._count : end] = [row[0] for row in rows]
            joined = np.frombuffer(b"".join([row[1] for row in rows]), np.uint64)
            self._signs[:, self._count : end] = joined.reshape(len(rows), width).T
            self._count, self._last = end, int(rows[-1][0])

    def nearest(
        self, query: Vector, count: int, among: Collection[str] | None = None
    ) -> list[tuple[str, float]]:
        """Digests of texts and their cosine, best first.

        Args:
            query: what they shall be near to.
            count: how many at most.
            among: only these; None for all.
        """
        if not self._fits(query):
            return []
        column, keys = ("s.digest", list(among)) if among is not None else self._candidates(query, count)
        cosines = self._compared(query, column, keys).items()
        return sorted(cosines, key=lambda each: -each[1])[:count]

    def cosines(self, query: Vector, digests: Sequence[str]) -> dict[str, float]:
        """The cosine of those of these texts that have a vector."""
        return self._compared(query, "s.digest", digests) if self._fits(query) else {}

    def vector(self, digest: str) -> Vector | None:
        """That of a text; None where it has none."""
        rows = self._rows("s.digest", [digest]) if self.refresh() else []
        if not rows:
            return None
        import numpy as np

        return array("f", np.frombuffer(rows[0][1], np.float16).astype(np.float32).tobytes())

    def _fits(self, query: Vector) -> bool:
        return self.refresh() and len(query) == self.dim

    def _candidates(self, query: Vector, count: int) -> tuple[str, list[int]]:
        """The vectors whose signs are most like those of the query, by their numbers."""
        import numpy as np

        wanted = max(CANDIDATES * count, CANDIDATES_LEAST, min(self._count // 100, CANDIDATES_MOST))
        signs = _signs(np.frombuffer(query, np.float32))
        if self._source.compares:
            return _BY_NUMBER, self._source.candidates(self._of, signs.tobytes(), wanted)
        if wanted >= self._count:
            return _BY_NUMBER, [int(number) for number in self._numbers[: self._count]]
        apart: Any = np.zeros(self._count, np.uint16)
        for at in range(0, self._count, CHUNK):
            part = slice(at, min(at + CHUNK, self._count))
            for column, sign in zip(self._signs, signs.view(np.uint64), strict=True):
                apart[part] += np.bitwise_count(column[part] ^ sign)
        near = np.flatnonzero(apart <= np.partition(apart, wanted)[wanted])[: 4 * wanted]
        return _BY_NUMBER, [int(number) for number in self._numbers[near]]

    def _compared(self, query: Vector, column: str, keys: Sequence[object]) -> dict[str, float]:
        import numpy as np

        rows = self._rows(column, keys)
        if not rows:
            return {}
        numbers = np.frombuffer(b"".join([row[1] for row in rows]), np.float16).reshape(len(rows), self.dim)
        cosines = numbers.astype(np.float32) @ np.frombuffer(query, np.float32)
        return dict(zip((row[0] for row in rows), cosines.tolist(), strict=True))

    def _rows(self, column: str, keys: Sequence[object]) -> list[Any]:
        connection, rows = self._connection, list[Any]()
        assert connection is not None
        # The planner would go through all of the embedder, where numbers are known already.
        free = connection.unindexed if column == _BY_NUMBER else ""
        try:
            for at in range(0, len(keys), 5_000):
                some = keys[at : at + 5_000]
                marks = ", ".join("?" * len(some))
                rows += connection.rows(
                    "select s.digest, v.numbers from signs s cross join vectors v where v.number = s.number "
                    f"and {free}s.embedder = ? and {column} in ({marks}) and length(v.numbers) = ?",
                    (self._of, *some, 2 * self.dim),
                )
        except TablesError as error:
            self._trouble(error)
            return []
        return rows

    def close(self) -> None:
        """Close its connection."""
        self._connection = None
        self._source.close()
