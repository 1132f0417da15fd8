"""A session as one portable file: events and blobs in a plain zip, to be looked at and replayed elsewhere.

The file is a zip of `events.jsonl` (a line for each event, all its fields), `blobs/DIGEST` and
`manifest.json` with the SHA-256 of each of these, the head over all streams and what wrote the journal. It
has neither files of the sandbox nor a key; what was granted in it bears the seal of its user for its
directory, so it counts nowhere else. It comes from a stranger when it is read: all of it is checked before
anything is made of it, and the journal that is made of it has to have the head that the file names.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sqlite3
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from engine.api.archiving import BLOBS, EVENTS, LINE_LIMIT, MANIFEST, ArchiveError, check_archive
from engine.api.redaction import Pattern, RedactionError, redact
from engine.core.journal import WORKSPACE, BlobError, canonical
from engine.core.soundness import BreakAccepted
from engine.core.store.blobs import BlobStore
from engine.core.store.opening import journal_file
from engine.core.store.port import DATA_DIRECTORY, DATABASE, Head, Row, parse_ref
from engine.core.store.repair import check_rows, connect_rows, write_journal
from engine.core.store.schema import COLUMNS, to_event
from engine.core.store.verify import Verification, workspace_head
from engine.value import dataclass, replace

FORMAT = 1
TYPES = (int, str, int, str, int, str, str, str, str, str)
"""Of the fields of an event, as a row has them."""
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


@dataclass(frozen=True, slots=True)
class Portable:
    """What a portable file has."""

    events: int
    blobs: int
    head: str
    streams: tuple[str, ...]
    size: int = 0
    """Bytes of the file."""


def export_session(
    workspace: Path, target: Path, *, agent: str = "", patterns: Sequence[str] = (), operator: str, at: str
) -> Portable:
    """Write a session to a new file, also while an engine runs. Blocking.

    Args:
        workspace: its directory, which is not changed.
        target: a new file.
        agent: only this one, with the workspace's stream and all that its events depend on; empty for all.
        patterns: what is redacted in the file.
        operator: whose word the redaction is.
        at: the time now.

    Raises:
        ArchiveError: there is no journal or it is not sound, a pattern is none, or the file is there already.
    """
    source = workspace / DATA_DIRECTORY
    if not journal_file(workspace).is_file():
        raise ArchiveError(f"{workspace}: there is no journal here")
    if os.path.lexists(target):
        raise ArchiveError(f"{target} exists already: choose another name")
    try:
        with tempfile.TemporaryDirectory() as room:
            data, blobs = source, BlobStore(source / "blobs")
            copy = Path(room) / DATA_DIRECTORY / DATABASE
            copy.parent.mkdir(mode=0o700)
            with closing(connect_rows(source / DATABASE)) as old, closing(sqlite3.connect(copy)) as new:
                old.backup(new)
            if not (check := check_rows(copy)).ok:
                raise ArchiveError(f"the journal is not sound at {check.first_bad}: {check.reason}")
            if patterns:
                _copy_blobs(copy, blobs, BlobStore(copy.parent / "blobs"))
                data, blobs = copy.parent, BlobStore(copy.parent / "blobs")
                for pattern in patterns:
                    redact(Path(room), Pattern(pattern), operator=operator, at=at)
            part = Path(room) / "part"
            made = _write(part, data / DATABASE if patterns else copy, blobs, agent, at)
            check_archive(part)
            with part.open("rb") as file, target.open("xb") as kept:
                target.chmod(0o600)
                shutil.copyfileobj(file, kept)
                kept.flush()
                os.fsync(kept.fileno())
                return replace(made, size=kept.tell())
    except RedactionError as error:
        raise ArchiveError(str(error)) from None
    except (OSError, sqlite3.Error) as error:
        raise ArchiveError(f"{target} could not be written: {error}") from error


def _copy_blobs(journal: Path, source: BlobStore, target: BlobStore) -> None:
    with closing(connect_rows(journal)) as database:
        for digest in _named(body for (body,) in database.execute("select body from events")):
            if content := _content(source, digest):
                target.write(content)


def _named(bodies: Iterable[str]) -> dict[str, None]:
    """Every digest that events name; not each is a blob's."""
    return {digest: None for body in bodies for digest in _DIGEST.findall(body)}


def _content(blobs: BlobStore, digest: str) -> bytes:
    try:
        return blobs.read(digest)
    except BlobError:  # it is none, is archived or damaged; verification says which where it matters
        return b""


def _write(part: Path, journal: Path, blobs: BlobStore, agent: str, at: str) -> Portable:
    digest, members, named = hashlib.sha256(), dict[str, str](), dict[str, None]()
    heads: dict[str, Head] = {}
    with (
        closing(connect_rows(journal)) as database,
        zipfile.ZipFile(part, "x", zipfile.ZIP_DEFLATED) as archive,
    ):
        count = 0
        with archive.open(EVENTS, "w", force_zip64=True) as lines:
            for row in _rows_of(database, agent):
                count += 1
                line = canonical(list(row)).encode("utf-8", "surrogatepass") + b"\n"
                digest.update(line)
                lines.write(line)
                heads[row[1]] = Head(row[2], row[9])
                named |= _named([row[8]])
        members[EVENTS] = digest.hexdigest()
        for blob in named:
            if content := _content(blobs, blob):
                archive.writestr(f"{BLOBS}{blob}", content)
                members[f"{BLOBS}{blob}"] = blob
        head = workspace_head(heads)
        meta = dict(database.execute("select key, value from meta where key in ('created', 'written_by')"))
        facts = {"format": FORMAT, "made": at, "head": head, "events": count, "agent": agent, "meta": meta}
        archive.writestr(MANIFEST, canonical({**facts, "members": members}))
    return Portable(count, len(members) - 1, head, tuple(sorted(heads)))


def _rows_of(database: sqlite3.Connection, agent: str) -> Iterator[Row]:
    """The events, in their order; of one agent with all whose events its own name as causes."""
    if not agent:
        yield from database.execute(f"select {COLUMNS} from events order by seq")
        return
    ((broken,),) = database.execute("select count(*) from events where kind = ?", (BreakAccepted.kind,))
    if broken:
        raise ArchiveError(
            "a break was accepted in this journal, which is sealed as a whole: leave --agent out"
        )
    known = [name for (name,) in database.execute("select distinct stream from events order by stream")]
    if agent not in known:
        raise ArchiveError(f"there is no agent '{agent}'; there are: {', '.join(known)}")
    streams, looked = {agent, WORKSPACE}, set[str]()
    while left := streams - looked:
        stream = left.pop()
        looked.add(stream)
        for (causes,) in database.execute(
            "select distinct causes from events where stream = ? and causes <> '[]'", (stream,)
        ):
            streams |= {named[0] for cause in json.loads(causes) if (named := parse_ref(cause)) is not None}
    rows = database.execute(
        f"select {COLUMNS} from events where stream in ({', '.join('?' * len(streams))}) order by seq",
        (*streams,),
    )
    for seq, row in enumerate(rows, 1):  # the place in the workspace is no part of a hash
        yield (seq, *row[1:])


# ------------------------------------------------------------------ reading


def import_session(source: Path, room: Path, at: str) -> Verification:
    """Make the data of a workspace of a portable file, in a directory that has none. Blocking.

    Where it is refused nothing is left in the directory.

    Raises:
        ArchiveError: the file is none, is damaged, or was made to do harm; the message says what is wrong.
    """
    check_archive(source)
    data = room / DATA_DIRECTORY
    try:
        data.mkdir(mode=0o700, parents=True)
        with zipfile.ZipFile(source) as archive:
            return _make(archive, source, data, at)
    except BaseException as error:
        shutil.rmtree(data, ignore_errors=True)
        if isinstance(error, sqlite3.Error | OSError | zipfile.BadZipFile | OverflowError | ValueError):
            raise ArchiveError(f"{source.name} could not be opened: {error}") from error
        raise


def _make(archive: zipfile.ZipFile, source: Path, data: Path, at: str) -> Verification:
    facts = _facts(archive, source)
    with closing(_meta(facts)) as meta:
        fresh, tail = write_journal(data / DATABASE, at, meta, _rows(archive, source, facts["events"]))
    fresh.replace(data / DATABASE)
    blobs = BlobStore(data / "blobs")
    for info in archive.infolist():
        if info.filename.startswith(BLOBS):
            blobs.write(archive.read(info))
    check = check_rows(data / DATABASE)
    if not check.ok:
        raise ArchiveError(f"{source.name} is not what was written: {check.first_bad}: {check.reason}")
    if check.head != facts["head"] or tail.count != facts["events"]:
        raise ArchiveError(f"{source.name} is not what was written: it has other events than it says")
    return check


def _facts(archive: zipfile.ZipFile, source: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(archive.read(MANIFEST))
    form = facts.get("format")
    if form != FORMAT:
        newer = isinstance(form, int) and form > FORMAT
        how = (
            "a newer Pilothouse wrote it: update" if newer else "it is no file of pilothouse sessions export"
        )
        raise ArchiveError(f"{source.name} has the format {str(form)[:20]}: {how}")
    if not isinstance(facts.get("meta"), dict) or not isinstance(facts.get("events"), int):
        raise ArchiveError(f"{source.name} is no portable session: its manifest lacks what it has to say")
    return facts


def _meta(facts: dict[str, Any]) -> sqlite3.Connection:
    """When the journal was made and what wrote it, as a database has it."""
    beside = sqlite3.connect(":memory:")
    beside.execute("create table meta(key text, value text)")
    texts = [(key, str(facts["meta"].get(key, ""))[:1_000]) for key in ("created", "written_by")]
    beside.executemany("insert into meta values(?, ?)", [pair for pair in texts if pair[1]])
    return beside


def _rows(archive: zipfile.ZipFile, source: Path, most: int) -> Iterator[Row]:
    with archive.open(EVENTS) as lines:
        for number, line in enumerate(iter(partial(lines.readline, LINE_LIMIT), b""), 1):
            row = _row(line) if number <= most else None
            if row is None:
                raise ArchiveError(f"{source.name} is damaged: line {number} of its events is none")
            yield row


def _row(line: bytes) -> Row | None:
    """An event of a line; None where it is none."""
    try:
        row = json.loads(line)
        if isinstance(row, list) and [type(each) for each in row] == list(TYPES):
            to_event(tuple(row))
            return tuple(row)
    except (ValueError, TypeError, RecursionError):
        pass
    return None
