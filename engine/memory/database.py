"""`memory.db`: the state that the events of memory's stream give, stored so that it is not folded each time.

It is a cache. What is missing in it is folded from the journal; a database that is damaged, of another format
or of another journal is built again.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from engine.core.events import payload_of
from engine.core.journal import GENESIS, Event
from engine.core.store.places import is_plain, is_untouched, note_closed, note_open, remove_cache
from engine.memory import fold
from engine.memory.errors import MemoryUnavailable
from engine.memory.tables import FORMAT, create


def connect(path: Path, *, writing: bool) -> sqlite3.Connection:
    """A connection for one thread; only one at a time may be for writing."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5)
    connection.row_factory = sqlite3.Row
    # The journal holds what counts, so a power cut may take the last rows here: they are folded again.
    writes = ("journal_mode = wal", "synchronous = normal", "journal_size_limit = 67108864")
    kind = writes if writing else ("query_only = on",)
    for pragma in ("temp_store = memory", "cache_size = -32768", *kind):
        connection.execute(f"pragma {pragma}")
    return connection


class Projection:
    """The database with its one writing connection; used in one thread only."""

    def __init__(self, connection: sqlite3.Connection, path: Path | None = None, note: str = "") -> None:
        self.connection = connection
        self._path = path
        self.note = note
        """Why the database was made anew, in a sentence; empty where it was used, or there was none."""

    @classmethod
    def open(cls, path: Path, known: Callable[[int], str]) -> Projection:
        """Open the database, or make it anew where it cannot be used.

        Args:
            path: its file.
            known: the hash of the event with this version in the memory's stream; empty where there is none.

        Raises:
            MemoryUnavailable: there is no space, or the file may not be written.
        """
        there = os.path.lexists(path)
        try:
            # One that was changed since it was closed may say anything and still be a sound database.
            tables = usable(path, writing=True) if is_untouched(path) is not False else None
            if tables is not None:
                connection, (version, digest) = tables
                if known(version) == digest:
                    note_open(path)
                    return cls(connection, path)
                connection.close()
            remove_cache(path)
            note = f"{path.name} could not be used; it was built again from the journal" if there else ""
            return cls(_filled(connect(path, writing=True)), path, note)
        except (sqlite3.Error, OSError) as error:
            raise MemoryUnavailable(
                f"{path} cannot be used ({error}): check the space on the disk and who may write there."
            ) from error

    @classmethod
    def temporary(cls) -> Projection:
        """An empty database that lasts as long as its connection."""
        return cls(_filled(connect(Path(":memory:"), writing=True)))

    def close(self) -> None:
        """Close the connection, and note that this was in good order."""
        self.connection.close()
        if self._path is not None:
            note_closed(self._path)

    @property
    def head(self) -> tuple[int, str]:
        """Version and hash of the last event that is in the tables; 0 and the genesis hash for none."""
        return _head(self.connection)

    def apply(self, events: Sequence[Event]) -> None:
        """Fold events that follow the head, all or none of them.

        Raises:
            JournalError: an event is of no known kind.
            MemoryUnavailable: an event does not fit.
            sqlite3.Error: the database refused.
        """
        self.connection.execute("begin immediate")
        try:
            for event in events:
                fold.apply(self.connection, event, payload_of(event))
            self.note_head(events[-1])
            self.connection.execute("commit")
        except BaseException:
            self.roll_back()
            raise

    def note_head(self, event: Event) -> None:
        """Write down which event is the last one in the tables, within the transaction."""
        self.connection.execute(
            "insert or replace into meta values('head', ?)", (f"{event.version} {event.hash}",)
        )

    def roll_back(self) -> None:
        """Roll back the transaction, if one is open."""
        if self.connection.in_transaction:
            self.connection.execute("rollback")


def _filled(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.execute("begin immediate")
    create(connection)
    connection.execute("insert into meta values('format', ?)", (str(FORMAT),))
    connection.execute("commit")
    return connection


def _head(connection: sqlite3.Connection) -> tuple[int, str]:
    row = connection.execute("select value from meta where key = 'head'").fetchone()
    if row is None:
        return 0, GENESIS
    version, _, digest = str(row[0]).partition(" ")
    return int(version), digest


def usable(path: Path, *, writing: bool) -> tuple[sqlite3.Connection, tuple[int, str]] | None:
    """A connection to a sound database of this format, with its head; None where there is none such."""
    if not path.is_file() or not is_plain(path):
        return None
    connection: sqlite3.Connection | None = None
    try:
        connection = connect(path, writing=writing)
        sound = not writing or connection.execute("pragma quick_check(1)").fetchone()[0] == "ok"
        form = connection.execute("select value from meta where key = 'format'").fetchone()
        if sound and form is not None and form[0] == str(FORMAT):
            return connection, _head(connection)
    except (sqlite3.Error, ValueError) as error:
        if writing and isinstance(error, sqlite3.OperationalError) and "lock" in str(error):
            raise
    if connection is not None:
        connection.close()
    return None
