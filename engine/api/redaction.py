"""Redaction: contents are replaced by their digest wherever a workspace keeps them.

Events keep their place, their hash and their causes, so heads that were noted elsewhere still hold; an event
of the operator's names each event that was changed with the digest of what stands there now, and
verification counts both. Blobs, files in snapshots and the directories above them get new names, and the
events name these. Caches are removed and built again. Blocking; nothing else may have the workspace open.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

from engine.core.actions import ActionOutput
from engine.core.events import payload_of
from engine.core.journal import JournalError, canonical
from engine.core.sandbox import JobOutput
from engine.core.soundness import ContentsRedacted
from engine.core.store.blobs import ARCHIVES, SIZE_LIMIT, ZIP_ERRORS, BlobStore
from engine.core.store.opening import journal_file
from engine.core.store.places import note_closed, remove_cache
from engine.core.store.port import DATA_DIRECTORY, DATABASE, Row
from engine.core.store.repair import CACHES, Appender, connect_rows, look, write_journal
from engine.core.store.schema import COLUMNS, sync_directory, to_event
from engine.core.store.verify import SEALING, verify_rows
from engine.core.store.writer import WriterLock
from engine.core.thinking import ModelSaid
from engine.sandbox.snapshots.entry import Entry, Kind, Manifest, SnapshotError
from engine.sandbox.snapshots.store import SnapshotStore
from engine.value import dataclass, replace

LEAST = 6
"""Characters that a pattern must have besides its asterisks."""
STARS = 2
"""Asterisks that it may have."""
AT_ONCE = 500
"""Changed events that one event names."""
LISTED = 50
"""Files that are listed which hold it still."""
MARKED = 24
"""Letters from which on it says that something was redacted."""
_RUN = r"""[^\s"'\\]*"""
_DIGEST = re.compile(r"[0-9a-f]{64}")
_PIECES = {ActionOutput.kind: "action", JobOutput.kind: "job", ModelSaid.kind: ""}
"""Events that hold a part of a longer text, and the field that names the whole."""


class RedactionError(ValueError):
    """It was not redacted, and nothing was changed; the message says why."""


class Pattern:
    """What is to be redacted: a text, in which `*` stands for letters up to a space or quotation mark.

    It is recognised as it is, and as it stands in JSON and in JSON within JSON.
    """

    def __init__(self, text: str) -> None:
        """Read a pattern.

        Raises:
            RedactionError: it is so short, or so open, that it would hit what is not meant.
        """
        parts = text.split("*")
        if sum(map(len, parts)) < LEAST or len(parts) > STARS + 1 or not parts[0]:
            raise RedactionError(
                f"PATTERN needs {LEAST} characters besides '*', at most {STARS} of these, and none at its "
                "beginning"
            )
        forms = {tuple(parts): None}
        for escaped in (_escaped, lambda part: _escaped(part, ascii_only=True)):
            once = [escaped(part) for part in parts]
            forms |= {tuple(once): None, tuple(map(escaped, once)): None}
        source = "|".join(_RUN.join(map(re.escape, form)) for form in forms)
        self.digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        self._text = re.compile(source)
        self._bytes = re.compile(source.encode("utf-8", "surrogatepass"))

    def is_in(self, content: bytes) -> bool:
        """Whether content holds it."""
        return self._bytes.search(content) is not None

    def replaced(self, text: str) -> str:
        """A text of the same length without it."""
        return self._text.sub(
            lambda match: _mark(match[0].encode("utf-8", "surrogatepass"), len(match[0])), text
        )

    def replaced_bytes(self, content: bytes) -> bytes:
        """Content of the same length without it."""
        return self._bytes.sub(lambda match: _mark(match[0], len(match[0])).encode(), content)


def _mark(content: bytes, length: int) -> str:
    """What stands for redacted content: its digest, cut to as many letters, as sizes are recorded as well."""
    digest = hashlib.sha256(content).hexdigest()
    head = "[redacted " if length >= MARKED else "["
    return f"{head}{digest[: length - len(head) - 1].ljust(length - len(head) - 1, '-')}]"


def _escaped(part: str, ascii_only: bool = False) -> str:
    return json.dumps(part, ensure_ascii=ascii_only)[1:-1]


@dataclass(frozen=True, slots=True)
class Redacted:
    """What was redacted, or would be."""

    events: int
    blobs: int
    objects: int
    """Files and directories in snapshots."""
    event: str = ""
    """The first event that tells of it; empty where nothing was done."""
    still: tuple[str, ...] = ()
    """Files that hold it and were left alone, relative to the workspace."""


def redact(workspace: Path, pattern: Pattern, *, operator: str, at: str, dry: bool = False) -> Redacted:
    """Replace what a pattern matches by its digest, wherever a workspace keeps it.

    Args:
        workspace: its directory.
        pattern: what is to be redacted.
        operator: whose word this is.
        at: the time now.
        dry: only count.

    Raises:
        RedactionError: events could not be read any more afterwards.
        JournalError: the journal is not sound, is open elsewhere, or the disk refused.
    """
    data = workspace / DATA_DIRECTORY
    path = journal_file(workspace)
    lock = WriterLock.acquire(data / "lock", at)
    try:
        check = look(path)
        if not check.ok:
            raise RedactionError(f"the journal is not sound ({check.reason}): repair it first")
        return _Redaction(workspace, pattern, operator, at).run(dry=dry)
    except (OSError, sqlite3.Error, SnapshotError) as error:
        raise JournalError(f"{path} could not be redacted ({error}): make room or mend the disk.") from error
    finally:
        lock.release()


class _Redaction:
    def __init__(self, workspace: Path, pattern: Pattern, operator: str, at: str) -> None:
        self._workspace, self._pattern, self._operator, self._at = workspace, pattern, operator, at
        self._data = workspace / DATA_DIRECTORY
        self._path, self._blobs = self._data / DATABASE, BlobStore(self._data / "blobs")
        self._moved: dict[str, str] = {}
        """Digests of what was changed, to those of what takes its place."""
        self._dead: list[Path] = []
        """Files to be removed once the journal no longer names them."""

    def run(self, *, dry: bool) -> Redacted:
        blobs = self._take_blobs(dry=dry)
        snapshots = _SnapshotRedaction(self._data / "snapshots", self._pattern)
        objects = snapshots.run(self._moved, dry=dry)
        changed: dict[str, str] = {}
        with closing(connect_rows(self._path)) as old:
            pieces = self._split_pieces(old)
            rows = self._rows(old, pieces, changed)
            if dry:
                for _ in rows:
                    pass
                return Redacted(len(changed), blobs, objects, still=self._still())
            fresh, tail = write_journal(self._path, self._at, old, rows)
        if not (changed or blobs or objects):
            remove_cache(fresh)
            return Redacted(0, 0, 0, still=self._still())
        with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
            writer = Appender(connection, tail, f"operator:{self._operator}", self._at)
            first = self._tell(writer, changed, blobs, objects)
            check = verify_rows(connection)
            connection.execute("pragma wal_checkpoint(truncate)")
        if not check.ok:
            remove_cache(fresh)
            raise RedactionError(f"the new journal would not be sound at {check.first_bad}: {check.reason}")
        self._replace(fresh)
        snapshots.finish()
        for path in self._dead:
            path.unlink(missing_ok=True)
        self._clean_lines()
        return Redacted(len(changed), blobs, objects, first, self._still())

    def _tell(self, writer: Appender, changed: dict[str, str], blobs: int, objects: int) -> str:
        """Record what was changed; the first of the events."""
        listed = list(changed.items())
        events = []
        for start in range(0, max(1, len(listed)), AT_ONCE):
            some = dict(listed[start : start + AT_ONCE])
            counts = {"blobs": blobs, "objects": objects} if not start else {}
            payload = ContentsRedacted(pattern=self._pattern.digest, events=some, **counts)
            events.append(writer.append(payload).ref)
        return events[0]

    # -------------------------------------------------------------- blobs

    def _take_blobs(self, *, dry: bool) -> int:
        """Write each blob that holds it anew; how many there are."""
        count = 0
        for place in self._blobs.files():
            content = place.read_bytes()
            if not self._pattern.is_in(content):
                continue
            count += 1
            self._dead.append(place)
            fresh = self._pattern.replaced_bytes(content)
            self._moved[place.name] = hashlib.sha256(fresh).hexdigest() if dry else self._blobs.write(fresh)
        return count

    # -------------------------------------------------------------- events

    def _split_pieces(self, old: sqlite3.Connection) -> dict[int, str]:
        """The new text of pieces of output that hold a part of it, by the places of their events."""
        marks = ", ".join("?" * len(_PIECES))
        rows = old.execute(
            f"select seq, stream, kind, body from events where kind in ({marks}) order by seq", tuple(_PIECES)
        )
        texts: defaultdict[tuple[str, ...], list[tuple[int, str]]] = defaultdict(list)
        for seq, stream, kind, body in rows:
            payload = json.loads(body)
            texts[stream, kind, str(payload.get(_PIECES[kind])), str(payload.get("stream"))].append(
                (seq, str(payload.get("text")))
            )
        changed: dict[int, str] = {}
        for parts in texts.values():
            changed.update(self._without(parts))
        return changed

    def _without(self, parts: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Of pieces of one text those that change, also where what they hold goes over several."""
        fresh, begin = self._pattern.replaced("".join(text for _, text in parts)), 0
        for seq, text in parts:
            end = begin + len(text)
            if fresh[begin:end] != text:
                yield seq, fresh[begin:end]
            begin = end

    def _rows(
        self, old: sqlite3.Connection, pieces: dict[int, str], changed: dict[str, str]
    ) -> Iterator[Row]:
        """All rows as they are to be, and in `changed` the digests of those that change."""
        for row in old.execute(f"select {COLUMNS} from events order by seq"):
            if row[7] in SEALING:
                yield row
                continue
            payload = json.loads(row[8])
            fresh = mapped(payload, self._leaf)
            if row[0] in pieces:
                fresh["text"] = pieces[row[0]]
            if fresh == payload:
                yield row
                continue
            body = canonical(fresh)
            new: Row = cast("Row", (*row[:8], body, row[9]))
            try:
                payload_of(to_event(new))
            except JournalError as error:
                raise RedactionError(
                    f"PATTERN matches what the journal needs to be read, in event {row[1]}:{row[2]} "
                    f"({row[7]}): choose a longer one"
                ) from error
            changed[f"{row[1]}:{row[2]}"] = hashlib.sha256(body.encode()).hexdigest()
            yield new

    def _leaf(self, text: str) -> str:
        if self._moved and len(text) >= 64:
            text = _DIGEST.sub(lambda match: self._moved.get(match[0], match[0]), text)
        return self._pattern.replaced(text)

    def _replace(self, fresh: Path) -> None:
        """Put the new journal in the place of the old one, which is removed, and remove all caches."""
        for ending in ("-wal", "-shm"):
            self._path.with_name(self._path.name + ending).unlink(missing_ok=True)
        fresh.replace(self._path)
        sync_directory(self._data)
        note_closed(self._path)
        for name in CACHES:
            remove_cache(self._data / name)

    # -------------------------------------------------------------- other files

    def _clean_lines(self) -> None:
        """Take it out of what was typed."""
        for name in ("desk", "history"):
            place = self._data / name
            with suppress(OSError):
                if not place.is_symlink() and self._pattern.is_in(content := place.read_bytes()):
                    place.write_bytes(self._pattern.replaced_bytes(content))

    def _still(self) -> tuple[str, ...]:
        """Files that hold it and are no part of the journal: older copies, and the files of the sandbox."""
        gone = {*self._dead, self._path, self._path.with_name(f"{DATABASE}-wal")}
        gone |= {self._data / name for name in CACHES}
        listed = []
        for folder, folders, names in os.walk(self._workspace):
            here = Path(folder)
            if here == self._data:
                folders[:] = [name for name in folders if name not in ("blobs", "snapshots")]
            for name in sorted(names):
                place = here / name
                if place in gone or place.is_symlink() or not place.is_file():
                    continue
                with suppress(OSError):
                    if self._holds(place):
                        listed.append(str(place.relative_to(self._workspace)))
                if len(listed) == LISTED:
                    return tuple(listed)
        return tuple(listed)

    def _holds(self, place: Path) -> bool:
        """Whether a file holds it, or something in an archive does."""
        if place.parent != self._data / ARCHIVES:
            return self._pattern.is_in(place.read_bytes())
        try:
            with zipfile.ZipFile(place) as archive:
                for name in archive.namelist():
                    with archive.open(name) as member:
                        if any(map(self._pattern.is_in, iter(partial(member.readline, SIZE_LIMIT), b""))):
                            return True
        except ZIP_ERRORS:
            return True  # it cannot be looked at, so the operator is to
        return False


def mapped(value: Any, leaf: Callable[[str], str]) -> Any:
    """A JSON value with each text in it replaced."""
    if isinstance(value, str):
        return leaf(value)
    if isinstance(value, list):
        return [mapped(item, leaf) for item in value]
    if isinstance(value, dict):
        return {leaf(name): mapped(item, leaf) for name, item in value.items()}
    return value


# ------------------------------------------------------------------ snapshots


class _SnapshotRedaction:
    """Writes the objects of snapshots anew: files, the directories above them, and the snapshots' own."""

    def __init__(self, directory: Path, pattern: Pattern) -> None:
        self._store = SnapshotStore(directory)
        self._there = directory.is_dir() and not directory.is_symlink()
        self._pattern = pattern
        self._contents: dict[str, str] = {}
        self._trees: dict[str, str] = {}
        self._dead: set[str] = set()
        self._records: dict[str, str] = {}
        """The new snapshot of each record's file that changes."""
        self._dry = False

    def run(self, moved: dict[str, str], *, dry: bool) -> int:
        """Write what changes, and say by which digests; how many objects these are."""
        if not self._there:
            return 0
        self._dry = dry
        with self._store.writing():
            for snapshot, name in self._store.names().items():
                with suppress(SnapshotError):  # what cannot be read holds nothing that could be brought back
                    self._snapshot(snapshot, name, moved)
            self._strays()
            if not dry:
                self._store.objects.commit()
        return len(self._dead)

    def finish(self) -> None:
        """Give the snapshots their new names, and remove what was changed."""
        if not self._there:
            return
        with self._store.writing():
            for name, fresh in self._records.items():
                try:
                    record = self._store.read(name)
                except SnapshotError:
                    self._store.forget([name[13:]])
                    continue
                if record is not None:
                    info = replace(record.info, id=fresh, label=self._pattern.replaced(record.info.label))
                    self._store.keep_as(name, replace(record, info=info))
            for digest in self._dead:
                self._store.objects.remove(digest)

    def _snapshot(self, snapshot: str, name: str, moved: dict[str, str]) -> None:
        manifest = Manifest.decoded(self._store.objects.read(snapshot))
        tree = self._tree(manifest.tree)
        if tree != manifest.tree:
            moved[snapshot] = self._put(replace(manifest, tree=tree).encoded())
            self._records[name] = moved[snapshot]
            self._dead.add(snapshot)

    def _tree(self, top: str) -> str:
        """The digest of a tree without it; without recursion, as trees may be of any depth."""
        waiting = [top]
        while waiting:
            digest = waiting[-1]
            if digest in self._trees:
                waiting.pop()
                continue
            directory = self._store.tree(digest)
            below = [entry.digest for entry in directory.entries if entry.kind is Kind.DIRECTORY]
            if missing := [each for each in below if each not in self._trees]:
                waiting += missing
                continue
            entries = tuple(map(self._entry, directory.entries))
            fresh = digest
            if entries != directory.entries:
                fresh = self._put(replace(directory, entries=entries).encoded())
                self._dead.add(digest)
            self._trees[digest] = fresh
        return self._trees[top]

    def _entry(self, entry: Entry) -> Entry:
        if not entry.digest:
            return entry
        if entry.kind is Kind.DIRECTORY:
            return replace(entry, digest=self._trees[entry.digest])
        return replace(entry, digest=self._content(entry.digest))

    def _content(self, digest: str) -> str:
        if digest not in self._contents:
            self._contents[digest] = digest
            with suppress(SnapshotError):
                content = self._store.objects.read(digest)
                if self._pattern.is_in(content):
                    self._contents[digest] = self._put(self._pattern.replaced_bytes(content))
                    self._dead.add(digest)
        return self._contents[digest]

    def _strays(self) -> None:
        """Objects that no snapshot names and that hold it: they are removed."""
        for digest, _ in self._store.objects.all():
            if digest in self._contents or digest in self._trees:
                continue
            with suppress(SnapshotError):
                if self._pattern.is_in(self._store.objects.read(digest)):
                    self._dead.add(digest)

    def _put(self, content: bytes) -> str:
        return hashlib.sha256(content).hexdigest() if self._dry else self._store.objects.put(content)
