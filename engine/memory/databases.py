"""Where the tables of memory are: in files of the workspace, or in PostgreSQL beside its journal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from engine.core.ports import Clock
from engine.core.store.opening import address_of
from engine.memory.connection import Connection
from engine.memory.database import Projection
from engine.memory.sqlite import FileMemory
from engine.memory.vectors import StoredLikeness, VectorWriter


class MemoryDatabase(Protocol):
    """Where the tables of a workspace's memory are, and the vectors beside them."""

    name: str
    """In words."""

    def open(self, known: Callable[[int], str]) -> Projection:
        """Open the tables to write to them, or make them anew where they cannot be used. Blocking.

        Args:
            known: the hash of the event with this version in the memory's stream; empty where there is none.

        Raises:
            MemoryUnavailable: there is no space, or they may not be written.
        """

    def reader(self) -> Connection:
        """A connection for reading. Blocking.

        Raises:
            TablesError: that cannot be had.
        """

    def readable(self) -> tuple[Connection, tuple[int, str]] | None:
        """A connection for reading, and the last event that the tables have; None where there are none."""

    def vectors(self, embedder: str) -> VectorWriter:
        """Keeps the vectors of an embedder. Blocking.

        Raises:
            TablesError, OSError: they cannot be kept.
        """

    def likeness(self, embedder: str) -> StoredLikeness:
        """The vectors of an embedder, as searches use them; it connects when it is first asked."""


def database_of(workspace: Path, clock: Clock) -> MemoryDatabase:
    """Where a workspace's memory is: beside its journal.

    Raises:
        JournalError: the URL of the journal is none.
    """
    if (address := address_of(workspace)) is not None:
        from engine.memory.postgres import PostgresMemory  # late: most journals are in a file

        return PostgresMemory(address, clock)
    return FileMemory(workspace)
