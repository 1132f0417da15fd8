"""Archiving: old and bulky contents go into one file, and the journal keeps their digests.

An archive is a zip of `events.jsonl` (a line for each event: place, reference, hash and body as it was), of
`blobs/DIGEST`, and of `manifest.json` with the SHA-256 of each of these. No event goes: a fold, a mind and a
replay begin at the first one. Archived are long texts of the kinds of events whose texts no state needs, and
large answers that only old events name. What stands in their place names the file, and is sealed by an event
as redacted contents are, so the heads stay and the chain is verified before and after.

The file is complete on the disk before the journal changes; an event seals each change before it is made. So
a kill at any moment leaves a sound journal, and nothing goes before it is in the file. What is restored needs
no trust: a body counts only where it has the hash that the journal has kept.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import secrets
import sqlite3
import stat
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from engine.api.redaction import mapped
from engine.core.actions import ActionFinished, ActionOutput
from engine.core.journal import MEMORY, BlobError, JournalError, Payload, canonical, chain_hash
from engine.core.offload import in_thread
from engine.core.sandbox import JobOutput
from engine.core.soundness import ArchiveRestored, BreakAccepted, ContentsArchived
from engine.core.store.blobs import ARCHIVES, ZIP_ERRORS, BlobStore, blob_named
from engine.core.store.port import DATA_DIRECTORY, JournalStore
from engine.core.store.repair import connect_rows
from engine.core.store.schema import COLUMNS, sync_directory, to_event
from engine.core.store.verify import Seals, workspace_head
from engine.core.streams import StreamLog
from engine.core.thinking import ModelCalled, ModelSaid
from engine.value import dataclass, field

KINDS = (ActionOutput.kind, JobOutput.kind, ModelSaid.kind, ModelCalled.kind)
"""Events whose texts no state needs."""
LONG = 256
"""Characters from which on a text is archived."""
AT_ONCE = 500
"""Changed events that one event names."""
RESTORED_AT_ONCE = 50
"""Events that are brought back at a time."""
MOST_DAYS = 36_500
"""The longest time that is counted back."""
ROW_BYTES = 350
"""What an event takes besides its body, about, with its part of the indexes."""
LINE_LIMIT = 256 * 1024 * 1024
"""Bytes of a line of `events.jsonl`, and of a blob."""
PART = ".zip-part"
"""The end of the name of a file that is not complete."""
EVENTS, MANIFEST, BLOBS = "events.jsonl", "manifest.json", "blobs/"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\.zip")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_BLOB = re.compile(rf"{BLOBS}[0-9a-f]{{64}}")
MEMBERS = 200_000
UNPACKED = 16 * 1024**3
"""Bytes that an archive may have unpacked."""
SMALL, PACKED = 256 * 1024**2, 200
"""From so many bytes on, an archive may be so many times larger unpacked."""


class ArchiveError(JournalError):
    """It was not archived or restored, and nothing was changed; the message says why and what to do."""


@dataclass(slots=True)
class Archived:
    """What an archive has, or would have."""

    file: Path | None = None
    digest: str = ""
    """SHA-256 of the file."""
    bodies: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Reference and new body of each event that changes, by its place."""
    blobs: list[str] = field(default_factory=list)
    saved: int = 0
    """Bytes that go from the workspace's journal and blobs."""
    last: int = 0
    """The place of the last event that was looked at."""

    @property
    def words(self) -> str:
        """What is in the file, in a sentence."""
        name = self.file.name if self.file is not None else ""
        return f"{self.counts} are archived in {name}"

    @property
    def counts(self) -> str:
        """How much there is."""
        return f"{amounts(len(self.bodies), len(self.blobs))} ({self.saved:,} bytes)"


class Archiver:
    """Archives old contents of a workspace whose journal is open for writing, and restores them.

    Args:
        workspace: its directory.
        store: its journal.
        log: the workspace's stream.
        actor: whose word this is.
    """

    def __init__(self, workspace: Path, store: JournalStore, log: StreamLog, actor: str) -> None:
        self._store, self._log, self._actor = store, log, actor
        self._data = workspace / DATA_DIRECTORY
        self._blobs = BlobStore(self._data / "blobs")

    async def archive(
        self,
        before: str,
        now: str,
        *,
        excess: int | None = None,
        target: Path | None = None,
        dry: bool = False,
    ) -> Archived:
        """Archive contents of events before a time, the oldest first.

        Args:
            before: the time of the first event that is left alone.
            now: the time now; it names the file.
            excess: as many bytes as are to go; None for all.
            target: a new file; by default one in the data directory.
            dry: only count.

        Raises:
            JournalError: the file or the journal cannot be written.
        """
        stamp = re.sub(r"[^0-9TZ]", "", now.partition(".")[0])
        target = target or self._data / ARCHIVES / f"{stamp}-{secrets.token_hex(3)}.zip"
        if not _NAME.fullmatch(target.name):
            raise ArchiveError(f"{target.name}: give a name of letters, digits, '.', '_' and '-' with .zip")
        head = workspace_head(await self._store.streams())
        facts = {"format": 1, "made": now, "before": before, "head": head}
        try:
            made = await in_thread(self._write, target, facts, excess, dry)
        except (OSError, sqlite3.Error) as error:
            raise ArchiveError(
                f"{target} could not be written ({error}): make room, or give another place with --to"
            ) from error
        if made.file is None:
            return made
        places, blobs = iter(made.bodies), tuple(made.blobs)
        while (some := list(islice(places, AT_ONCE))) or blobs:
            bodies = {place: made.bodies[place] for place in some}
            seals = {ref: hashlib.sha256(body.encode()).hexdigest() for ref, body in bodies.values()}
            about = {"file": target.name, "digest": made.digest, "total": len(made.bodies)}
            await self._record(ContentsArchived(**about, events=seals, blobs=blobs))
            await self._store.replace_bodies({place: body for place, (_, body) in bodies.items()})
            blobs = ()
        await asyncio.to_thread(self._blobs.remove, made.blobs)
        return made

    def _write(self, target: Path, facts: dict[str, Any], excess: int | None, dry: bool) -> Archived:
        """Write the file, complete on the disk; what it has."""
        made = Archived()
        with closing(connect_rows(self._store.path)) as database:
            if dry:
                for _ in self._take(database, made, target.name, facts["before"], excess):
                    pass
                self._take_blobs(database, made)
                return made
            if target.parent == self._data / ARCHIVES:
                target.parent.mkdir(mode=0o700, exist_ok=True)
            if os.path.lexists(target):
                raise ArchiveError(f"{target} exists already: choose another name")
            for left in (self._data / ARCHIVES).glob(f"*{PART}"):
                left.unlink(missing_ok=True)
            part = target.with_name(f".{target.name}.{secrets.token_hex(3)}{PART}")
            try:
                self._fill(part, database, made, target.name, facts, excess)
                if made.bodies or made.blobs:
                    check_archive(part)
                    made.digest = file_digest(part)
                    part.replace(target)
                    sync_directory(target.parent)
                    made.file = target
            finally:
                part.unlink(missing_ok=True)
        return made

    def _fill(
        self,
        part: Path,
        database: sqlite3.Connection,
        made: Archived,
        name: str,
        facts: Mapping[str, Any],
        excess: int | None,
    ) -> None:
        """Write the members, and press them to the disk."""
        members = dict[str, str]()
        with part.open("xb") as file:
            part.chmod(0o600)
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                digest = hashlib.sha256()
                with archive.open(EVENTS, "w", force_zip64=True) as lines:
                    for line in self._take(database, made, name, facts["before"], excess):
                        digest.update(line)
                        lines.write(line)
                members[EVENTS] = digest.hexdigest()
                self._take_blobs(database, made)
                for blob in tuple(made.blobs):
                    try:
                        archive.writestr(f"{BLOBS}{blob}", self._blobs.read(blob))
                        members[f"{BLOBS}{blob}"] = blob
                    except BlobError:  # a damaged one stays where it is
                        made.blobs.remove(blob)
                manifest = {**facts, "events": len(made.bodies), "members": members}
                archive.writestr(MANIFEST, canonical(manifest))
            file.flush()
            os.fsync(file.fileno())

    def _take(
        self, database: sqlite3.Connection, made: Archived, name: str, before: str, excess: int | None
    ) -> Iterator[bytes]:
        """The lines of events that are archived; what they leave, and answers that may go, are noted."""
        seals = Seals.read(database)
        mark = f"[archived in {name}]"
        # What was accepted as it was is sealed as a whole.
        ((accepted,),) = database.execute(
            "select coalesce(max(seq), 0) from events where kind = ?", (BreakAccepted.kind,)
        )
        rows = database.execute(
            f"""select {COLUMNS} from events where seq > ? and at < ? and (
                kind in ({", ".join("?" * len(KINDS))}) and length(body) > ?
                or kind = ? and instr(body, '"blob":"')) order by seq""",
            (accepted, before, *KINDS, LONG, ActionFinished.kind),
        )
        blobs = dict[str, None]()
        for row in rows:
            if excess is not None and made.saved >= excess:
                break
            event = to_event(row)
            made.last = event.seq
            if event.kind == ActionFinished.kind:
                blob = blob_named(event.body)
                if blob not in blobs and (size := self._blobs.size(blob)):
                    blobs[blob] = None
                    made.saved += size
                continue
            body = canonical(mapped(json.loads(event.body), lambda text: mark if len(text) > LONG else text))
            if len(body) + len(mark) >= len(event.body) or seals.has(event):
                continue
            made.bodies[event.seq] = (event.ref, body)
            made.saved += len(event.body) - len(body)
            line = {"seq": event.seq, "event": event.ref, "hash": event.hash, "body": event.body}
            yield canonical(line).encode("utf-8", "surrogatepass") + b"\n"
        made.blobs = list(blobs)

    def _take_blobs(self, database: sqlite3.Connection, made: Archived) -> None:
        """Leave out the answers that something else names; memory keeps what it needs of them itself."""
        if not (left := set(made.blobs)):
            return
        beside = (*KINDS, ContentsArchived.kind)
        for (body,) in database.execute(
            f"""select body from events where not (kind = ? and seq <= ?) and stream <> ?
                and kind not in ({", ".join("?" * len(beside))})""",
            (ActionFinished.kind, made.last, MEMORY, *beside),
        ):
            left -= set(_DIGEST.findall(body))
        made.saved -= sum(self._blobs.size(blob) for blob in made.blobs if blob not in left)
        made.blobs = [blob for blob in made.blobs if blob in left]

    async def _record(self, payload: Payload) -> None:
        self._log.append(payload, actor=self._actor, causes=(), tick=0)
        await self._log.commit()

    # -------------------------------------------------------------- restoring

    async def restore(self, source: Path) -> tuple[int, int, int]:
        """Bring the contents of an archive back, once all of it is verified.

        Returns:
            Events and blobs that are as they were again, and events that were redacted since and are left.

        Raises:
            JournalError: it is no archive of this journal, or the disk refused; nothing was changed.
        """
        try:
            await in_thread(check_archive, source)
            blobs = 0
            with zipfile.ZipFile(source) as archive, closing(connect_rows(self._store.path)) as database:
                # Once through all of it before anything is changed.
                fitting, left = await in_thread(self._count, archive, database)
                names = [info.filename for info in archive.infolist() if info.filename.startswith(BLOBS)]
                for name in names:
                    await asyncio.to_thread(self._blobs.write, archive.read(name))
                    blobs += 1
                seals = await in_thread(Seals.read, database)
                bodies = self._bodies(archive, database, seals)
                while some := await asyncio.to_thread(lambda: dict(islice(bodies, RESTORED_AT_ONCE))):
                    await self._store.replace_bodies({seq: body for seq, body in some.items() if body})
        except (sqlite3.Error, *ZIP_ERRORS) as error:
            raise ArchiveError(f"{source} could not be restored: {error}") from error
        await self._record(ArchiveRestored(file=source.name, events=fitting, blobs=blobs))
        return fitting, blobs, left

    def _count(self, archive: zipfile.ZipFile, database: sqlite3.Connection) -> tuple[int, int]:
        counts = [bool(body) for _, body in self._bodies(archive, database, Seals.read(database))]
        return sum(counts), len(counts) - sum(counts)

    def _bodies(
        self, archive: zipfile.ZipFile, database: sqlite3.Connection, seals: Seals
    ) -> Iterator[tuple[int, str]]:
        """Place and body of each event; no body where it was redacted since."""
        with archive.open(EVENTS) as lines:
            while line := lines.readline(LINE_LIMIT):
                try:
                    fields = json.loads(line)
                    seq, body = int(fields["seq"]), str(fields["body"])
                    row = database.execute(f"select {COLUMNS} from events where seq = ?", (seq,)).fetchone()
                    event = to_event(row)
                except (ValueError, KeyError, TypeError, RecursionError):
                    raise ArchiveError(f"the archive is not of this journal: it has {line[:60]!r}") from None
                before = database.execute(
                    "select hash from events where stream = ? and version = ?",
                    (event.stream, event.version - 1),
                ).fetchone()
                fresh = event._replace(body=body)
                if chain_hash(before[0] if before else "", *fresh[:-2]) != event.hash:
                    raise ArchiveError(
                        f"the archive is not of this journal: {event.ref} has another hash in it"
                    )
                yield seq, body if event.body == body or seals.archived(event.ref) else ""


def amounts(events: int, blobs: int) -> str:
    """Counts in words."""
    return f"contents of {events:,} event{'s' * (events != 1)}, {blobs:,} blob{'s' * (blobs != 1)}"


def check_archive(path: Path) -> None:
    """See that an archive is complete, all of it as its manifest says, and nothing else in it; blocking.

    Raises:
        ArchiveError: it is not.
    """
    if not path.is_file():
        raise ArchiveError(f"{path} is no file")
    try:
        with zipfile.ZipFile(path) as archive:
            _check_members(path, archive.infolist())
            if archive.getinfo(MANIFEST).file_size > LINE_LIMIT:
                raise ArchiveError(f"{path.name} is no archive: its manifest is too large")
            members: Mapping[str, str] = json.loads(archive.read(MANIFEST))["members"]
            names = [info.filename for info in archive.infolist()]
            if sorted(names) != sorted({*members, MANIFEST}) or EVENTS not in members:
                raise ArchiveError(f"{path.name} is damaged: it has not the members that its manifest names")
            for info in archive.infolist():
                known = members.get(info.filename, "")
                if info.filename.startswith(BLOBS) and (
                    info.filename != f"{BLOBS}{known}" or info.file_size > LINE_LIMIT
                ):
                    raise ArchiveError(f"{path.name} is no archive: it has {info.filename[:80]}")
                with archive.open(info) as member:
                    digest = hashlib.file_digest(member, "sha256").hexdigest()  # type: ignore[arg-type]
                if info.filename != MANIFEST and digest != known:
                    raise ArchiveError(f"{path.name} is damaged: {info.filename} is not as it was written")
    except (TypeError, AttributeError, *ZIP_ERRORS) as error:
        raise ArchiveError(f"{path} is no archive, or is damaged ({error})") from None


def _check_members(path: Path, infos: Sequence[zipfile.ZipInfo]) -> None:
    """See that the members can be read without harm, by what the archive says of them."""
    if len(infos) > MEMBERS:
        raise ArchiveError(
            f"{path.name} is no archive: it has {len(infos):,} members, {MEMBERS:,} are the most"
        )
    total = sum(info.file_size for info in infos)
    if total > UNPACKED or (total > SMALL and total > PACKED * path.stat().st_size):
        raise ArchiveError(f"{path.name} is refused: it would be {total:,} bytes unpacked")
    for info in infos:
        kind = info.external_attr >> 16
        plain = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) and not info.flag_bits & 1
        if info.filename not in (EVENTS, MANIFEST) and not _BLOB.fullmatch(info.filename):
            raise ArchiveError(f"{path.name} is no archive: it has {info.filename[:80]!r}")
        if not plain or (kind and not stat.S_ISREG(kind) and stat.S_IFMT(kind)):
            raise ArchiveError(f"{path.name} is no archive: {info.filename[:80]} is no plain file")


def file_digest(path: Path) -> str:
    """SHA-256 of a file; blocking."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def live_bytes(path: Path, blobs: BlobStore | None = None) -> int:
    """About how many bytes the events of a journal take, and its blobs; blocking.

    The file is larger where contents were archived: their room is used again.
    """
    with closing(connect_rows(path)) as database:
        ((size,),) = database.execute(f"select coalesce(sum(length(body) + {ROW_BYTES}), 0) from events")
    return int(size) + sum(place.stat().st_size for place in (blobs.files() if blobs is not None else ()))


def days_before(now: str, days: int) -> str:
    """The time so many days before one, as events have it."""
    moment = datetime.fromisoformat(now) - timedelta(days=min(days, MOST_DAYS))
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
