"""Verification: is the journal what was written?

Every stream is a hash chain; the places in the workspace have no gap; an event follows the events that it
names as its causes; blobs hold what their names say; and the database's own indexes fit its rows. What cannot
be seen: someone who recomputes all hashes behind a change, and two events of different streams that changed
places though neither follows from the other (the order of streams that run side by side is not part of any
hash). Against the first, compare `head` with one noted elsewhere.

Two things differ from what was written and count as sound, because an event says so: contents that were
redacted or archived (their events keep their hashes, and the event seals what stands there now), and
everything before a break that the operator accepted (which is sealed as a whole).
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Self

from engine.core.actions import ActionFinished
from engine.core.journal import (
    WORKSPACE,
    BlobError,
    BlobMissing,
    Event,
    JournalCorrupt,
    JournalReadError,
    canonical,
    chain_hash,
)
from engine.core.reasons import read_reason
from engine.core.soundness import BreakAccepted, ContentsArchived, ContentsRedacted
from engine.core.store.blobs import BlobStore, blob_named
from engine.core.store.port import DATABASE, START, Head, JournalStore, Row, parse_ref
from engine.core.store.schema import COLUMNS, to_event
from engine.value import dataclass

_PAGE = 128
"""Rows between two turns of the loop; hashing them takes a millisecond or two."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What verification found."""

    ok: bool
    events: int
    """How many events are sound, up to the first that is not."""
    head: str
    """One hash over all stream heads; empty when the journal is not sound."""
    first_bad: str | None = None
    """The first event that is not as it was written, as `stream:version`, or `seq N` when it has no name.

    The database's name where every event is sound and something beside them is not.
    """
    reason: str = ""
    """What is wrong with it, in a sentence."""
    accepted: str = ""
    """The break up to which the operator answers for the journal, in a sentence."""
    redacted: int = 0
    """Events whose contents were redacted."""
    archived: tuple[tuple[str, str, int], ...] = ()
    """Files with contents of events: name, SHA-256, and of how many events."""


def workspace_head(heads: Mapping[str, Head]) -> str:
    """One SHA-256 over all stream heads, the same for the same heads in whatever order they came to be."""
    listing = canonical([[name, *heads[name]] for name in sorted(heads)])
    return hashlib.sha256(listing.encode()).hexdigest()


async def verify(store: JournalStore, blobs: BlobStore | None = None) -> Verification:
    """Recompute every chain from its beginning; stops at the first event that is not as it was written.

    Args:
        store: the journal.
        blobs: where what is too large for an event is kept; None where that does not count.

    Raises:
        JournalClosed: the store was closed meanwhile.
    """
    try:
        sealing = await store.of_kinds(SEALING, 0, _MANY)
        breaks = await store.last(1, WORKSPACE, kind=BreakAccepted.kind)
    except (JournalReadError, JournalCorrupt):
        sealing, breaks = [], []  # where these cannot be read, the page with them cannot either
    check = RowCheck(
        Seals(event.body for event in sealing), [(event.seq, event.actor, event.body) for event in breaks]
    )
    until = await store.head_seq()
    limit = _PAGE
    while check.seq < until:
        try:
            rows = await store.rows(check.seq, limit)
        except (JournalReadError, JournalCorrupt) as error:
            if limit == 1:
                return check.bad(f"seq {check.seq + 1}", f"It cannot be read: {error}")
            # The page holds a row that cannot be read: go on row by row to find it.
            limit = 1
            continue
        if not rows:
            return check.bad(f"seq {check.seq + 1}", "Events are missing from here on.")
        for row in rows:
            reason = check.problem(row)
            if reason:
                return check.bad(_name(row), reason)
    given = await store.last_given_seq()
    if given and await store.get(given) is None:
        return check.bad(f"seq {check.seq + 1}", f"Events up to place {given} were cut off the end.")
    if 0 < given < check.seq:
        return check.bad(DATABASE, f"It counts {given} events and has {check.seq}.")
    try:
        damage = await store.damage()
    except (JournalReadError, JournalCorrupt) as error:
        damage = str(error)
    if damage:
        return check.bad(DATABASE, f"Its events are sound, and it is damaged beside them: {damage}")
    if blobs is not None:
        for ref, digest in check.blobs:
            if digest in check.lost:
                continue
            try:
                await blobs.get(digest)
            except BlobMissing as error:
                if digest not in check.seals.blobs:
                    return check.bad(ref, str(error))
            except BlobError as error:
                return check.bad(ref, str(error))
    return check.sound()


_MANY = 1_000_000
SEALING = (ContentsRedacted.kind, ContentsArchived.kind)
"""Events that seal what stands in the place of contents."""


class Seals:
    """What stands in the place of contents that were redacted or archived.

    Args:
        bodies: of the events that say so, in order.
    """

    def __init__(self, bodies: Iterable[str] = ()) -> None:
        self.seals: dict[str, str] = {}
        """SHA-256 of present bodies by reference."""
        self.blobs: dict[str, str] = {}
        """The file of each blob that was archived, by its digest."""
        self._files: dict[str, str] = {}
        self._digests: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        for body in bodies:
            sealed = _parsed(body)
            events, file = sealed.get("events"), str(sealed.get("file") or "")
            if isinstance(events, dict):
                self.seals.update(events)
                self._files.update(dict.fromkeys(events, file))
            if file:
                self._digests[file] = str(sealed.get("digest"))
                self.blobs.update(dict.fromkeys(map(str, sealed.get("blobs") or ()), file))

    @classmethod
    def read(cls, connection: sqlite3.Connection) -> Self:
        """Those of a database; blocking."""
        rows = connection.execute(
            "select body from events where kind in (?, ?) and stream = ? order by seq", (*SEALING, WORKSPACE)
        )
        return cls(body for (body,) in rows)

    def has(self, event: Event) -> bool:
        """Whether an event's contents are not those that were written."""
        return self.seals.get(event.ref) == hashlib.sha256(event.body.encode()).hexdigest()

    def archived(self, ref: str) -> bool:
        """Whether what stands there was put there by archiving."""
        return bool(self._files.get(ref))

    def count(self, ref: str) -> bool:
        """Count an event that is not as it was written; whether it was archived."""
        if file := self._files.get(ref, ""):
            self._counts[file] = self._counts.get(file, 0) + 1
        return bool(file)

    def counted(self) -> tuple[tuple[str, str, int], ...]:
        """The files of the archived events that were counted."""
        return tuple((file, self._digests[file], count) for file, count in self._counts.items())


async def read_seals(store: JournalStore) -> Seals:
    """What was redacted and archived.

    Raises:
        JournalError: the journal cannot be read.
    """
    return Seals(event.body for event in await store.of_kinds(SEALING, 0, _MANY))


def verify_rows(connection: sqlite3.Connection) -> Verification:
    """As `verify` without blobs and without a look at the file itself, of a database; blocking."""
    statement = "select seq, actor, body from events where kind = ? and stream = ? order by seq"
    try:
        breaks = connection.execute(statement, (BreakAccepted.kind, WORKSPACE)).fetchall()
        check = RowCheck(Seals.read(connection), breaks[-1:])
    except sqlite3.Error:
        check = RowCheck()
    try:
        for row in connection.execute(f"select {COLUMNS} from events order by seq"):
            if reason := check.problem(row):
                return check.bad(_name(row), reason)
    except sqlite3.Error as error:
        return check.bad(f"seq {check.seq + 1}", f"It cannot be read: {error}")
    given = None
    with suppress(sqlite3.Error):  # a journal from before it was asked for has no such table
        given = connection.execute("select seq from sqlite_sequence where name = 'events'").fetchone()
    if given is not None and given[0] != check.seq:
        return check.bad(f"seq {check.seq + 1}", f"It counts {given[0]} events and has {check.seq}.")
    return check.sound()


def _name(row: Row) -> str:
    return f"{row[1]}:{row[2]}"


def row_digest(row: Row) -> bytes:
    """What of a row goes into the digest of all that was accepted."""
    return canonical(list(row)).encode() + b"\n"


class RowCheck:
    """The chains so far.

    Args:
        seals: what was redacted and archived.
        breaks: place, actor and body of the newest event by which a break was accepted.
    """

    def __init__(self, seals: Seals | None = None, breaks: Iterable[tuple[int, str, str]] = ()) -> None:
        self.seq = 0
        self.heads: dict[str, Head] = {}
        self.blobs: list[tuple[str, str]] = []
        """Events that name a blob, each with its digest."""
        self.lost: frozenset[str] = frozenset()
        """Blobs that were missing when the break was accepted."""
        self.seals = seals or Seals()
        self._accepted: dict[str, Any] = {}
        self._words = ""
        self._digest = hashlib.sha256()
        for seq, actor, body in breaks:
            accepted = _parsed(body)
            if accepted.get("upto") == seq - 1 and actor.startswith("operator:"):
                self._accepted = accepted if seq > 1 else {}
                self.lost = frozenset(map(str, accepted.get("lost") or ()))
                at, problem = (
                    accepted.get("event") or "its beginning",
                    read_reason(accepted.get("problem") or ""),
                )
                self._words = f"a break at {at} ({problem}), accepted by {actor} at seq {seq}"
        self.redacted = 0

    def sound(self) -> Verification:
        """The verdict on a journal that is sound to its end."""
        if self._accepted:
            return self.bad(f"seq {self.seq + 1}", "Events are missing from here on.")
        head = workspace_head(self.heads)
        archived = self.seals.counted()
        return Verification(
            True, self.seq, head, accepted=self._words, redacted=self.redacted, archived=archived
        )

    def problem(self, row: Row) -> str:
        """What is wrong with the next row, or nothing; a sound row extends its chain."""
        try:
            if self._accepted:
                return self._accept(row)
            return self._problem(row)
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            return f"It cannot be read: {error}"

    def _accept(self, row: Row) -> str:
        """Take in a row before the break; the last of them shows whether they are as they were accepted."""
        upto = self._accepted["upto"]
        if row[0] <= self.seq or row[0] > upto:
            return f"It has place {row[0]} before the break that was accepted at {upto}."
        self._digest.update(row_digest(row))
        self.seq = row[0]
        if row[7] == ActionFinished.kind and (blob := blob_named(row[8])):
            self.blobs.append((f"{row[1]}:{row[2]}", blob))
        if self.seq == upto:
            if self._digest.hexdigest() != self._accepted["digest"]:
                return "What was accepted up to here was changed since."
            self.heads = {stream: Head(*head) for stream, head in self._accepted["heads"].items()}
            self._accepted = {}
        return ""

    def _problem(self, row: Row) -> str:
        seq, stream, version, _, _, _, causes, _, _, _ = row
        if seq != self.seq + 1:
            return f"It has place {seq} where {self.seq + 1} is due: events are missing or were moved."
        head = self.heads.get(stream, START)
        if version != head.version + 1:
            return f"It has version {version} where {head.version + 1} is due in stream {stream}."
        try:
            event = to_event(row)
        except ValueError as error:
            return f"Its causes cannot be read: {error}"
        if causes != canonical(event.causes):
            return "Its causes are not written as they were."
        # All fields of an event but its own hash and its place, which comes after the hash.
        if chain_hash(head.hash, *event[:-2]) != event.hash:
            if not self.seals.has(event):
                return "Its hash does not follow from its content and the event before it."
            self.redacted += not self.seals.count(event.ref)
        for cause in event.causes:
            named = parse_ref(cause)
            if named is None or not 1 <= named[1] <= self.heads.get(named[0], START).version:
                return f"It names the cause {cause}, which is not among the events before it."
        if event.kind == ActionFinished.kind and (blob := blob_named(event.body)):
            self.blobs.append((event.ref, blob))
        self.heads[stream] = Head(version, event.hash)
        self.seq = seq
        return ""

    def bad(self, event: str, reason: str) -> Verification:
        """The verdict on a journal that is not sound."""
        return Verification(False, self.seq, "", event, reason)


def _parsed(body: str) -> dict[str, Any]:
    """What an event says; nothing where it cannot be read, which is found out at its place."""
    try:
        value = json.loads(body)
    except (TypeError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
