"""The tables of memory: the state that its events give, stored so that it is not folded each time.

They are a cache. What is missing in them is folded from the journal; tables that are damaged, of another
format or of another journal are built again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.core.events import payload_of
from engine.core.journal import GENESIS, Event
from engine.memory import fold
from engine.memory.connection import Connection, roll_back, transaction

NOTE_ABOUT = "insert into meta values(?, ?) on conflict(key) do update set value = excluded.value"


class Projection:
    """The tables with their one writing connection; used in one thread only.

    Args:
        connection: to sound tables of this format.
        note: why they were made anew, in a sentence; empty where they were used, or there were none.
        closed: called when the connection was closed in good order.
    """

    def __init__(
        self, connection: Connection, note: str = "", closed: Callable[[], object] = lambda: None
    ) -> None:
        self.connection = connection
        self.note = note
        self._closed = closed

    def close(self) -> None:
        """Close the connection, and note that this was in good order."""
        self.connection.close()
        self._closed()

    @property
    def head(self) -> tuple[int, str]:
        """Version and hash of the last event that is in the tables; 0 and the genesis hash for none."""
        return head_of(self.connection)

    def apply(self, events: Sequence[Event]) -> None:
        """Fold events that follow the head, all or none of them.

        Raises:
            JournalError: an event is of no known kind.
            MemoryUnavailable: an event does not fit.
            TablesError: the database refused.
        """
        with transaction(self.connection):
            for event in events:
                fold.apply(self.connection, event, payload_of(event))
            self.note_head(events[-1])

    def note_head(self, event: Event) -> None:
        """Write down which event is the last one in the tables, within the transaction."""
        self.connection.run(NOTE_ABOUT, ("head", f"{event.version} {event.hash}"))

    def roll_back(self) -> None:
        """Roll back the transaction, if one is open."""
        roll_back(self.connection)


def head_of(connection: Connection) -> tuple[int, str]:
    """Version and hash of the last event in the tables."""
    rows = connection.rows("select value from meta where key = 'head'")
    if not rows:
        return 0, GENESIS
    version, _, digest = str(rows[0][0]).partition(" ")
    return int(version), digest
