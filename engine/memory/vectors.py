"""`vectors.db`: the vectors of texts that memories ever had, by their digests and who made them.

It is a cache beside the journal and beside `memory.db`: a vector depends on its text alone, so that tables
which are built again find theirs. The signs of a vector's numbers choose candidates, 48 bytes each in memory
for MiniLM; the candidates' likeness is that of the whole vectors, which stay on the disk.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from engine.core.store.places import is_plain, is_untouched, note_closed, note_open, remove_cache
from engine.memory.database import connect
from engine.memory.embedding import Vector
from engine.memory.scoring import embedded_text

VECTORS = "vectors.db"
FORMAT = 1
PAGE = 64
"""Texts that are looked up at a time."""
CHUNK = 65_536
"""Vectors whose signs are compared at a time, so that what is between stays in the processor's cache."""
CANDIDATES, CANDIDATES_LEAST, CANDIDATES_MOST = 5, 500, 2_000
"""How many are compared as a whole: for each result, at least, and a hundredth of many, up to a limit.

Among a hundred of 4,000 sentences were 0.975 of the nearest ten.
"""

_TABLES = (
    "create table embedders(number integer primary key, id text not null unique, dim integer) strict",
    # A text without signs cannot be embedded.
    """create table signs(
        number integer primary key, embedder integer not null, digest text not null, signs blob,
        unique(embedder, digest)
    ) strict""",
    "create table vectors(number integer primary key, numbers blob not null) strict",
    f"pragma user_version = {FORMAT}",
)


class VectorWriter:
    """Keeps the vectors of one embedder; used in one thread only.

    Args:
        path: the database, which is made anew where it cannot be used.
        memories: that of the memories.
        embedder: whose vectors these are.

    Raises:
        sqlite3.Error, OSError: it cannot be made.
    """

    def __init__(self, path: Path, memories: Path, embedder: str) -> None:
        self._path = path
        if is_untouched(path) is False or not is_plain(path):
            remove_cache(path)
        try:
            self._connection = self._opened()
        except sqlite3.DatabaseError:
            remove_cache(path)
            self._connection = self._opened()
        # Attached to the connection that writes, memories would be locked by each of its transactions.
        self._memories = connect(path, writing=False)
        self._memories.execute("attach ? as memory", (str(memories),))
        self._embedder = embedder
        self._number = _number_of(self._connection, embedder)[0]
        self.row = 0
        """Memories up to this row have a vector, or cannot have one."""
        counted = "select count(signs) from signs where embedder = ?"
        self.count = int(self._connection.execute(counted, (self._number,)).fetchone()[0])
        """Texts that have a vector."""

    def _opened(self) -> sqlite3.Connection:
        note_open(self._path)
        connection = connect(self._path, writing=True)
        try:
            if _format(connection) == 0:
                connection.execute("begin immediate")
                for statement in _TABLES:
                    connection.execute(statement)
                connection.execute("commit")
            checked = connection.execute("pragma quick_check(1)").fetchone()[0]
            if _format(connection) != FORMAT or checked != "ok":
                raise sqlite3.DatabaseError("it is damaged, or of another format")  # noqa: TRY301 - closes below
        except BaseException:
            connection.close()  # which ends what it began, and what it has locked
            raise
        return connection

    def lacking(self) -> dict[str, str]:
        """Texts of memories that have no vector, by digest, the oldest first; none where all have one."""
        rows = self._memories.execute(
            """select m.row, m.digest, m.description, m.content from memory.memories m
            where m.row > ? and not exists(select 1 from signs s where s.embedder = ? and s.digest = m.digest)
            order by m.row limit ?""",
            (self.row, self._number, PAGE),
        ).fetchall()
        self.row = rows[0][0] - 1 if rows else self.rows
        return {row[1]: embedded_text(row[2], row[3]) for row in rows}

    @property
    def rows(self) -> int:
        """The last row of a memory."""
        return int(self._memories.execute("select coalesce(max(row), 0) from memory.memories").fetchone()[0])

    def keep(self, dim: int, vectors: dict[str, Vector | None]) -> None:
        """Keep vectors by the digests of their texts; None of a text that cannot be embedded."""
        import numpy as np  # late: it takes a while, and is there with an embedder only

        connection = self._connection
        connection.execute("begin immediate")
        try:
            if not self._number:
                row = connection.execute("insert into embedders(id, dim) values(?, ?)", (self._embedder, dim))
                self._number = int(row.lastrowid or 0)
            for digest, vector in vectors.items():
                signs = None if vector is None else _signs(np.frombuffer(vector, np.float32)).tobytes()
                row = connection.execute(
                    "insert or ignore into signs(embedder, digest, signs) values(?, ?, ?)",
                    (self._number, digest, signs),
                )
                if vector is not None and row.rowcount:
                    halves = np.frombuffer(vector, np.float32).astype(np.float16).tobytes()
                    connection.execute("insert into vectors values(?, ?)", (row.lastrowid, halves))
            connection.execute("commit")
            self.count += sum(vector is not None for vector in vectors.values())
        except BaseException:
            if connection.in_transaction:
                connection.execute("rollback")
            raise

    def drop_others(self) -> None:
        """Let go of the vectors of other embedders."""
        if self._connection.execute("select 1 from embedders where number <> ?", (self._number,)).fetchone():
            for statement in (
                "delete from vectors where number in (select number from signs where embedder <> ?)",
                "delete from signs where embedder <> ?",
                "delete from embedders where number <> ?",
            ):
                self._connection.execute(statement, (self._number,))

    @property
    def dim(self) -> int:
        """Numbers of the embedder's vectors; 0 where there is none yet."""
        return _number_of(self._connection, self._embedder)[1]

    def close(self) -> None:
        """Close the database, and note that this was in good order."""
        self._memories.close()
        self._connection.close()
        note_closed(self._path)


_BY_NUMBER = "s.number"


def _format(connection: sqlite3.Connection) -> int:
    return int(connection.execute("pragma user_version").fetchone()[0])


def _number_of(connection: sqlite3.Connection, embedder: str) -> tuple[int, int]:
    """Number and dimension of an embedder; zeros where it has no vectors."""
    row = connection.execute("select number, dim from embedders where id = ?", (embedder,)).fetchone()
    return (int(row[0]), int(row[1])) if row is not None else (0, 0)


def _signs(numbers: Any) -> Any:
    """The signs of a vector as bits, in whole words of 64."""
    import numpy as np

    bits: Any = np.zeros(-(-len(numbers) // 64) * 64, bool)
    bits[: len(numbers)] = numbers > 0
    return np.packbits(bits)


class StoredLikeness:
    """The vectors of one embedder, as searches use them; used in the reading thread only.

    A database that is missing, damaged or of another embedder brings up nothing.
    """

    def __init__(self, path: Path, embedder: str) -> None:
        self.embedder = embedder
        self.note = ""
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._place = 0
        """The inode of the file that is open; one that takes its place is opened instead."""
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
            place = self._path.lstat().st_ino
            if place != self._place:
                self.close()
                if not is_plain(self._path) or is_untouched(self._path) is False:
                    return False
                self._connection, self._place = connect(self._path, writing=False), place
                self._of = self._last = self._count = 0
            assert self._connection is not None
            if not self._of and _format(self._connection) == FORMAT:
                self._of, self.dim = _number_of(self._connection, self.embedder)
            if self._of:
                self._load(self._connection)
            self.note = ""
        except FileNotFoundError:
            self._count = 0
        except (sqlite3.Error, OSError, ImportError, ValueError) as error:
            self.note = f"{self._path.name} cannot be read ({error}); words alone count"
            self._count = 0
        return self._count > 0

    def _load(self, connection: sqlite3.Connection) -> None:
        import numpy as np

        width = -(-self.dim // 64)
        fresh = connection.execute(
            "select number, signs from signs where number > ? and +embedder = ? and length(signs) = ? "
            "order by number",
            (self._last, self._of, width * 8),
        )
        while rows := fresh.fetchmany(10_000):
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
        if wanted >= self._count:
            return _BY_NUMBER, [int(number) for number in self._numbers[: self._count]]
        signs = _signs(np.frombuffer(query, np.float32)).view(np.uint64)
        apart: Any = np.zeros(self._count, np.uint16)
        for at in range(0, self._count, CHUNK):
            part = slice(at, min(at + CHUNK, self._count))
            for column, sign in zip(self._signs, signs, strict=True):
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
        assert self._connection is not None
        rows: list[Any] = []
        # The planner would go through all of the embedder, where numbers are known already.
        of = "+s.embedder" if column == _BY_NUMBER else "s.embedder"
        try:
            for at in range(0, len(keys), 5_000):
                some = keys[at : at + 5_000]
                marks = ", ".join("?" * len(some))
                rows += self._connection.execute(
                    "select s.digest, v.numbers from signs s cross join vectors v on v.number = s.number "
                    f"where {of} = ? and {column} in ({marks}) and length(v.numbers) = ?",
                    (self._of, *some, 2 * self.dim),
                )
        except sqlite3.Error as error:
            self.note = f"{self._path.name} cannot be read ({error}); words alone count"
            return []
        return rows

    def close(self) -> None:
        """Close its connection."""
        self._place = 0
        if self._connection is not None:
            self._connection.close()
            self._connection = None
