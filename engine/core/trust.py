"""Trust of a workspace's folder: what in it may loosen, run or persuade counts once this user trusts it.

What counts is the content: a mark in the user's own directory, sealed with the user's key, has the hash of
each such file. Whoever uses a file has its bytes checked against the mark (`FolderTrust.admits`), so that it
cannot be another one than was trusted. The journal counts as the user's own where the mark has its first
event; what it grants counts under the user's seal alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from engine.core.journal import GENESIS, Event, JournalError, Payload, canonical
from engine.core.store.origin import UNREADABLE, first_hash
from engine.core.store.places import read_plain
from engine.core.store.port import DATA_DIRECTORY, DATABASE
from engine.core.user_key import UserKey, read_own, write_own
from engine.value import dataclass

P = TypeVar("P", bound=Payload)

SETTINGS = ("pilothouse.toml", "models.toml", "thresholds.toml", "mcp.json")
DIRECTORIES = {"recipes": ".toml", "prompts": ".md", "missions": ".toml"}
"""Directories whose files count, and how their names end."""
TREES = ("agents",)
"""Directories of which every file counts, however deep."""
JOURNAL = f"{DATA_DIRECTORY}/{DATABASE}"
MARKS = "trust"
"""The directory of the marks, in the user's own."""
FILES_LIMIT, BYTES_LIMIT = 5_000, 64 * 1024 * 1024
"""What a folder may have of such files; what is more can be neither looked at nor trusted."""
CHANGED = "it was changed outside of Pilothouse and does not count: trust shows how, and lets it count"


class TrustError(JournalError):
    """It cannot be trusted; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class FolderContent:
    """What a folder has that may loosen, run or persuade."""

    files: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each file by its path from the folder."""
    texts: Mapping[str, bytes] = field(default_factory=dict)
    """What stands in those of them that are settings of some kind, as it was hashed."""
    journal: str = GENESIS
    """The hash of the journal's first event; empty where there is no journal."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What this user trusts of a folder."""

    files: Mapping[str, str] = field(default_factory=dict)
    journal: str = GENESIS


def sha256(content: bytes) -> str:
    """The hash by which a file is known."""
    return hashlib.sha256(content).hexdigest()


def read_content(workspace: Path) -> FolderContent:
    """What a folder has now; blocking."""
    files: dict[str, str] = {}
    texts: dict[str, bytes] = {}
    left = BYTES_LIMIT
    with suppress(OSError):
        texts[DATA_DIRECTORY] = os.fsencode(os.readlink(workspace / DATA_DIRECTORY))  # noqa: PTH115 - bytes
        files[DATA_DIRECTORY] = sha256(texts[DATA_DIRECTORY])
    for path in sorted(islice(_paths(workspace), FILES_LIMIT + 1)):
        content = _read(workspace / path, left) if len(files) < FILES_LIMIT else None
        files[path] = UNREADABLE if content is None else sha256(content)
        if content is not None:
            left -= len(content)
            if path.partition("/")[0] not in TREES or path.count("/") == 2:
                texts[path] = content
    return FolderContent(files, texts, first_hash(workspace / JOURNAL))


def _paths(workspace: Path) -> Iterator[str]:
    for name in SETTINGS:
        if os.path.lexists(workspace / name):
            yield name
    for directory, ending in DIRECTORIES.items():
        with suppress(OSError):
            for entry in os.scandir(workspace / directory):
                if entry.name.endswith(ending):
                    yield f"{directory}/{entry.name}"
    for tree in TREES:
        top = workspace / tree
        if top.is_symlink():
            yield tree
        for place, directories, names in os.walk(top):
            # A link to a directory is not gone into, and cannot be trusted.
            for name in (*names, *(each for each in directories if Path(place, each).is_symlink())):
                yield Path(place, name).relative_to(workspace).as_posix()


def _read(path: Path, limit: int) -> bytes | None:
    with suppress(OSError):
        return read_plain(path, limit)
    return None


class FolderTrust:
    """What this user trusts of one folder, and what that leaves out of it.

    Args:
        workspace: the folder.
        home: the user's own directory, which holds the key and the marks.
    """

    def __init__(self, workspace: Path, home: Path | None) -> None:
        self.workspace, self.home = workspace, home
        self._key = UserKey(workspace, home)
        name = hashlib.sha256(self._key.place.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        self._path = home / MARKS / f"{name}.json" if home is not None else None
        self._stamp: tuple[int, ...] = ()
        self._mark = Mark()
        self._unkept: Mark | None = None
        """What counts until this program ends, as it could not be kept."""
        self.reopen()

    def reopen(self) -> None:
        """Look at the folder as it is opened. Blocking."""
        self.look()
        self.restricted = bool(self.untrusted)
        """Whether the folder was opened with its own settings, recipes and the like left out."""

    def look(self) -> None:
        """Look at the folder and the mark again; what was opened stays as it is. Blocking."""
        self.content = read_content(self.workspace)
        """As it was when the folder was looked at last."""
        self.mark = self._current()
        """What was trusted at that moment."""
        self.foreign = self.content.journal not in (GENESIS, self.mark.journal)
        """Whether the folder came with a journal that this user neither began nor trusted."""

    # -------------------------------------------------------------- what is trusted

    @property
    def untrusted(self) -> tuple[str, ...]:
        """The files that are not as they were trusted: new, changed, or gone."""
        return tuple(path for path, _ in changes(self.mark.files, self.content.files))

    @property
    def digest(self) -> str:
        """Of all that has to be trusted here; the user's own journal is no part of it."""
        facts = [sorted(self.content.files.items()), self.content.journal if self.foreign else GENESIS]
        return sha256(canonical(facts).encode("utf-8", "surrogatepass"))[:32]

    def admits(self, path: str, content: bytes) -> bool:
        """Whether a file counts as it was read just now; blocking."""
        return self._current().files.get(path) == sha256(content)

    def refuse_link(self) -> None:
        """See that the data are in the folder itself, or where a trusted link says. Blocking.

        Raises:
            TrustError: the folder came with a link in the place of its data directory.
        """
        place = self.workspace / DATA_DIRECTORY
        with suppress(OSError):
            target = os.readlink(place)  # noqa: PTH115 - as it is written
            if not self.admits(DATA_DIRECTORY, os.fsencode(target)):
                raise TrustError(
                    f"{place} is a link to {target[:200]!r}, which you did not trust, so nothing there is "
                    "opened: remove the link, or look at it with pilothouse trust and trust it"
                )

    def admits_tree(self, directory: str) -> bool:
        """Whether a directory counts with all that is in it now; blocking."""
        within = f"{directory}/"
        now, known = (
            {path: held for path, held in files.items() if path.startswith(within)}
            for files in (read_content(self.workspace).files, self._current().files)
        )
        return bool(now) and now == known and UNREADABLE not in now.values()

    @property
    def stamp(self) -> tuple[int, ...]:
        """Changes with the mark; blocking."""
        try:
            how = os.stat(self._path) if self._path is not None else None  # noqa: PTH116 - or none
        except OSError:
            how = None
        return (how.st_ino, how.st_mtime_ns, how.st_size) if how is not None else ()

    def _current(self) -> Mark:
        """The mark as it is now."""
        if self._unkept is not None:
            return self._unkept
        stamp = self.stamp
        if self._path is not None and stamp != self._stamp:
            self._mark, self._stamp = self._read_mark(self._path), stamp
        return self._mark

    def _read_mark(self, path: Path) -> Mark:
        try:
            fields = json.loads(read_own(path) or b"null")
            files = {str(name): str(known) for name, known in fields["files"].items()}
            journal, seal = str(fields["journal"]), str(fields["seal"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return Mark()
        return Mark(files, journal) if self._key.bears(seal, "trust", files, journal) else Mark()

    # -------------------------------------------------------------- the user's word

    def trust(self, digest: str) -> str:
        """Trust the folder as it was shown under this digest; all of it counts when next opened. Blocking.

        Returns:
            Why that ends with this program; empty where it lasts.

        Raises:
            TrustError: it is another content by now, or of a kind that cannot be trusted.
        """
        self.look()
        if digest != self.digest:
            raise TrustError(
                f"what is in the folder is not {digest[:40]} but {self.digest}: look at it once more with "
                "pilothouse trust, then trust what it shows"
            )
        if self.content.journal == UNREADABLE:
            raise TrustError(f"{JOURNAL} cannot be read, so it cannot be trusted: pilothouse sessions verify")
        if wrong := sorted(path for path, known in self.content.files.items() if known == UNREADABLE):
            raise TrustError(
                f"{wrong[0]} is no plain file that can be read, or more than {BYTES_LIMIT >> 20} MiB, so it "
                "cannot be trusted: move it out of the folder"
            )
        return self._write(Mark(dict(self.content.files), self.content.journal))

    def revoke(self) -> bool:
        """Trust nothing of the folder any more; says whether anything was trusted. Blocking.

        Raises:
            TrustError: the mark cannot be removed.
        """
        there, self._unkept = self._current() != Mark(), None
        try:
            if self._path is not None:
                self._path.unlink(missing_ok=True)
        except OSError as error:
            raise TrustError(f"{self._path} cannot be removed ({error.strerror}): remove it") from error
        return there

    # -------------------------------------------------------------- what Pilothouse does itself

    def began(self, journal: str) -> None:
        """Note that this user's Pilothouse begins the folder's journal, with its first event's hash."""
        self._write(Mark(self._current().files, journal))

    def seal_copy(self, head: str, journal: str) -> str:
        """A seal on a copy of the user's own journal, which counts in any directory; empty for another's.

        Args:
            head: over all its streams.
            journal: the hash of its first event.
        """
        own = self.home is not None and journal not in (GENESIS, UNREADABLE) and journal == self.mark.journal
        return UserKey(self.home, self.home).seal("copy", head, journal) if own and self.home else ""

    def take_copy(self, seal: str, head: str, journal: str) -> None:
        """Note as the user's own a journal that was put here, where its copy bears this user's seal."""
        if (
            seal
            and self.home is not None
            and UserKey(self.home, self.home).bears(seal, "copy", head, journal)
        ):
            self.began(journal)

    def wrote(self, written: Mapping[str, bytes | None]) -> None:
        """Note what Pilothouse put into files for the user; None for those that it removed. Blocking."""
        files = {**self._current().files}
        for path, content in written.items():
            files.pop(path, None)
            if content is not None and _counts(path):
                files[path] = sha256(content)
        self._note(files)

    def wrote_tree(self, directory: str) -> None:
        """Note that Pilothouse put a directory in place, or took it away. Blocking."""
        within = f"{directory}/"
        files = {path: known for path, known in self._current().files.items() if not path.startswith(within)}
        now = read_content(self.workspace).files.items()
        self._note({**files, **{path: known for path, known in now if path.startswith(within)}})

    def _note(self, files: Mapping[str, str]) -> None:
        mark = self._current()
        if files != mark.files:
            self._write(Mark(files, mark.journal))

    def _write(self, mark: Mark) -> str:
        """Keep a mark; why it counts only until this program ends, or empty."""
        files, why = dict(mark.files), "there is no directory of your own: set PILOTHOUSE_HOME"
        self._unkept = None
        if self._path is not None:
            seal = self._key.seal("trust", files, mark.journal)
            facts = {"place": self._key.place, "files": files, "journal": mark.journal, "seal": seal}
            try:
                write_own(self._path, canonical(facts).encode("utf-8", "surrogatepass"))
                why = f"the key in {self._path.parent.parent} cannot be read: make it a file of yours, 0600"
            except OSError as error:
                why = f"{self._path} cannot be written ({error.strerror})"
        if self._current() == mark:
            return ""
        self._unkept = mark
        return why

    # -------------------------------------------------------------- grants in the journal

    def seal(self, stream: str, payload: P) -> P:
        """What the user grants, with their seal; all else as it is. Blocking where there is no key yet."""
        if getattr(payload, "seal", None) != "":
            return payload
        return payload.model_copy(
            update={"seal": self._key.seal(*_grant(stream, payload.kind, payload.body()))}
        )

    def sealed(self, event: Event) -> bool:
        """Whether this user granted what an event says, in this directory. Blocking the first time."""
        seal = json.loads(event.body).get("seal")
        return isinstance(seal, str) and self._key.bears(seal, *_grant(event.stream, event.kind, event.body))


def _grant(stream: str, kind: str, body: str) -> tuple[Any, ...]:
    """What a grant says, without its seal."""
    return "grant", stream, kind, {**json.loads(body), "seal": ""}


def _counts(path: str) -> bool:
    """Whether a file of a folder can loosen, run or persuade."""
    top, _, rest = path.partition("/")
    return path in SETTINGS or top in TREES or ("/" not in rest and rest.endswith(DIRECTORIES.get(top, "\0")))


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """What differs: paths with `new`, `changed` or `gone`, by path."""
    for path in sorted({*before, *now}):
        if before.get(path) != now.get(path):
            yield path, "new" if path not in before else "changed" if path in now else "gone"
