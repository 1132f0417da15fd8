"""Verification: is the journal what was written?

Every stream is a hash chain; the places in the workspace have no gap; an event follows the events that it
names as its causes; blobs hold what their names say; and the database's own indexes fit its rows. What cannot
be seen: someone who recomputes all hashes behind a change, and two events of different streams that changed
places though neither follows from the other (the order of streams that run side by side is not part of any
hash). Against the first, compare `head` with one noted elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field

from engine.core.actions import ActionFinished
from engine.core.journal import BlobError, JournalCorrupt, JournalReadError, canonical, chain_hash
from engine.core.store.blobs import BlobStore, blob_named
from engine.core.store.port import DATABASE, START, Head, JournalStore, Row, parse_ref
from engine.core.store.schema import to_event
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
    check = _Check()
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
                return check.bad(f"{row[1]}:{row[2]}", reason)
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
            try:
                await blobs.get(digest)
            except BlobError as error:
                return check.bad(ref, str(error))
    return Verification(True, check.seq, workspace_head(check.heads))


@dataclass(slots=True)
class _Check:
    """The chains so far."""

    seq: int = 0
    heads: dict[str, Head] = field(default_factory=dict)
    blobs: list[tuple[str, str]] = field(default_factory=list)
    """Events that name a blob, each with its digest."""

    def problem(self, row: Row) -> str:
        """What is wrong with the next row, or nothing; a sound row extends its chain."""
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
            return "Its hash does not follow from its content and the event before it."
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
