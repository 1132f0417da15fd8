"""The store of a journal, as the engine and its readers use it.

A store keeps events in the order of their commits, gives each its place (`seq`), and hands them out by place
or by stream and version. `engine.core.store.stored` implements it over a database:
`sqlite` and `postgres`. Blobs and what is derived from a journal (memory, indexes) are kept apart from it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from engine.core.journal import GENESIS, Event

DATA_DIRECTORY = ".pilothouse"
"""Where a workspace keeps its data, below its own directory."""
DATABASE = "journal.db"
"""The journal, in the data directory."""


class Head(NamedTuple):
    """The last event of a stream, as far as the next one needs to know it."""

    version: int
    hash: str


START = Head(0, GENESIS)
"""The head of a stream that has no event."""

Row = tuple[int, str, int, str, int, str, str, str, str, str]
"""An event as it is stored: seq, stream, version, at, tick, actor, causes, kind, body, hash."""


class StoredSnapshot(NamedTuple):
    """A snapshot, with the hash of the event that it is of."""

    stream: str
    version: int
    hash: str
    state: str


def parse_ref(ref: str) -> tuple[str, int] | None:
    """Stream and version that a reference `stream:version` names, or None when it is none."""
    stream, colon, version = ref.rpartition(":")
    if not colon or not stream or not version.isascii() or not version.isdecimal() or len(version) > 18:
        return None
    return stream, int(version)


class JournalStore(Protocol):
    """The one durable record of a workspace; reading works whether or not it is open for writing.

    Every method that reads raises `JournalClosed`, `JournalReadError` or `JournalCorrupt` where it cannot.
    """

    writers: tuple[str, ...]
    """The versions of Pilothouse that wrote to it, oldest first; `0.1` stands for those that did not say."""
    notes: tuple[str, ...]
    """What this opening put right, in sentences."""
    torn: int
    """Bytes of the journal's end that this opening found torn, and that are no part of it."""

    @property
    def path(self) -> Path:
        """The file it is kept in.

        Raises:
            JournalError: it is in none.
        """

    @property
    def read_only(self) -> bool:
        """True when this store cannot write."""

    @property
    def names(self) -> tuple[str, ...]:
        """The streams of a journal that is open for writing, sorted."""

    @property
    def last_seq(self) -> int:
        """The place of the last durable event of a journal that is open for writing."""

    async def close(self) -> None:
        """Commit what waits, let followers finish, and let others write.

        May be called again, and finishes even when its caller is cancelled.
        """

    async def commit(self, events: Sequence[Event]) -> list[Event]:
        """Make events durable, all or none, and answer them with their place in the workspace.

        They must follow the heads of their streams. Calls made at the same time share a transaction and do
        not affect one another. Once called the events are written even if the caller is cancelled. That each
        hash continues its chain is not checked here but by `engine.core.store.verify`.

        Raises:
            JournalConflict: a version does not follow its stream's head.
            JournalRefused: an event holds what cannot be stored, such as half a surrogate pair.
            JournalWriteError: the disk refused; the same events can be committed again.
            JournalClosed: the journal is closed or was opened for reading only.
        """

    async def save_snapshot(self, stream: str, version: int, format: int, state: str) -> None:  # noqa: A002
        """Keep the state of a stream after an event, and only the newest few of its snapshots.

        Args:
            stream: the stream.
            version: the last event that went into the state.
            format: what the state looks like, so that another format's snapshot is not taken for it.
            state: any text; it is a cache and never the only copy of anything.
        """

    async def replace_bodies(self, bodies: Mapping[int, str]) -> None:
        """Put others in the place of bodies that an event seals, or back, by their places; all or none."""

    async def load_snapshot(
        self,
        stream: str,
        at_or_before: int | None,
        format: int,  # noqa: A002
    ) -> tuple[int, str] | None:
        """Version and state of the newest snapshot of a format up to a version, or None."""

    async def load_snapshots(
        self,
        streams: Sequence[str],
        format: int,  # noqa: A002
        *,
        beside: str = "",
    ) -> list[StoredSnapshot]:
        """The newest snapshot of a format of each of these streams that has one.

        Args:
            streams: the streams.
            format: what the states look like.
            beside: the word of what is kept beside a stream, such as `@mind`; empty for its own states.
        """

    def events(
        self, since: int = 0, *, stream: str | None = None, follow: bool = False
    ) -> AsyncIterator[Event]:
        """Events behind a place, in order, each once.

        Args:
            since: the place (`seq`) of the last event already known.
            stream: only this stream's.
            follow: continue with new events as they become durable, until the store is closed. A slow
                follower costs no memory: what it has not taken it reads from the database later.

        Raises:
            JournalClosed: the store was closed before everything was handed on.
        """

    def pages(
        self, since: int = 0, *, stream: str | None = None, follow: bool = False
    ) -> AsyncIterator[list[Event]]:
        """The same, as many at a time as are at hand."""

    async def read(self, stream: str, from_version: int = 1, to_version: int | None = None) -> list[Event]:
        """Events of a stream, from one version to another, both included."""

    async def get(self, ref: str | int) -> Event | None:
        """The event with this reference (`stream:version`) or place, or None when there is none."""

    async def last(self, n: int, stream: str | None = None, *, kind: str | None = None) -> list[Event]:
        """The newest `n` events, of one stream or kind or of all, oldest of them first."""

    async def of_kinds(self, kinds: Sequence[str], after: int, limit: int) -> list[Event]:
        """Up to `limit` events of these kinds behind a place, in order."""

    async def places(self, stream: str, kinds: Sequence[str], first: int, last: int) -> list[tuple[int, str]]:
        """Version and kind of a stream's events of these kinds, in order, from one version to another."""

    async def version_at(self, stream: str, seq: int) -> int:
        """The newest version of a stream at a place of the journal; 0 where it had not begun."""

    async def since(self, places: Mapping[str, int]) -> list[Event]:
        """Events of several streams, each behind a version of its own, by stream and in order."""

    async def head(self, stream: str) -> Head:
        """Version and hash of a stream's last event; version 0 when it has none."""

    async def streams(self) -> dict[str, Head]:
        """The head of every stream, by name in order."""

    async def head_seq(self) -> int:
        """The place of the last durable event, 0 when there is none."""

    async def count(self) -> int:
        """How many events there are."""

    async def rows(self, after: int, limit: int) -> list[Row]:
        """Up to `limit` events behind a place exactly as they are stored, for verification."""

    async def last_given_seq(self) -> int:
        """The last place ever given out; no event has it when events were cut off the end."""

    async def damage(self) -> str:
        """What is wrong with the store's own files and indexes; empty when it is sound."""
