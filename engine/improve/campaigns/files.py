"""Files of the workspace as campaigns see and change them: read, copied, hashed, put in place.

No symbolic link is followed on the way, and none is replaced: every directory is opened by its descriptor.
Paths count from the workspace's directory; `sandbox/` stands for the sandbox wherever it is. Candidates are
trees: a proposal laid over a copy, with the difference that it really makes. Answers that were paid for are
kept, so that a campaign that continues after any end does not pay again.
"""

from __future__ import annotations

import difflib
import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from pydantic import TypeAdapter

from engine.core.improvement import Candidate, Component, Proposal
from engine.core.journal import canonical
from engine.core.store.blobs import BlobStore
from engine.core.text import clean, clean_line
from engine.improve.code.source import read_bytes
from engine.improve.judge.box import LEFT_OUT, files_of
from engine.improve.ports import JobRefused, NothingProposed
from engine.value import dataclass, replace


def proposal_key(proposal: Proposal) -> tuple[object, ...]:
    """By what a proposal is known; a model may answer under the same title with something else."""
    files = frozenset(proposal.files.items()) if proposal.origin.startswith("model:") else ()
    return proposal.origin, proposal.title, files


def without_changes(name: str, component: Component, proposal: Proposal) -> Candidate:
    """A candidate without what it changes."""
    return Candidate(
        name,
        component.id,
        clean_line(proposal.title, limit=300),
        clean_line(proposal.origin, limit=200),
        clean(proposal.why, limit=4_000),
        answers=tuple(proposal.answers),
        cost_usd=proposal.cost_usd,
    )


FILE_BYTES = 16 * 1024 * 1024
"""Bytes of a file that is copied, read or written."""
TREE_BYTES = 256 * 1024 * 1024
TREE_FILES = 20_000
"""What a copy holds at most."""
MODE = 0o644
"""Permission bits of a file that is new."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class FileState:
    """A file as it is at a moment; no content where there is none."""

    content: bytes | None
    mode: int = 0

    @property
    def digest(self) -> str | None:
        """SHA-256 of the content; None where there is no file."""
        return None if self.content is None else hashlib.sha256(self.content).hexdigest()


def checked_path(path: str) -> PurePosixPath:
    """A path from the workspace's directory, by words alone.

    Raises:
        JobRefused: it is absolute, leaves the workspace or leads to its journal.
    """
    plain = PurePosixPath(path)
    if not path or "\0" in path or "\\" in path or plain.is_absolute() or ".." in plain.parts:
        raise JobRefused(f"{path[:80]!r} is no path below the workspace")
    if plain.parts[:1] in ((), (".pilothouse",)) or str(plain) != path:
        raise JobRefused(f"{path[:80]!r} is no file that may be changed")
    return plain


def is_declared(path: str, paths: Iterable[str]) -> bool:
    """Whether a path is one that a component declares, or below a directory that it declares."""
    return any(path == declared or path.startswith(f"{declared.rstrip('/')}/") for declared in paths)


class WorkspacePaths:
    """Where files of a workspace are.

    Args:
        workspace: its directory.
        sandbox: where agents work, wherever that is; None for `sandbox` in the workspace.
    """

    def __init__(self, workspace: Path, sandbox: Path | None = None) -> None:
        self.workspace = workspace
        self.sandbox = sandbox if sandbox is not None else workspace / "sandbox"

    def _top(self, path: PurePosixPath) -> tuple[Path, tuple[str, ...]]:
        if path.parts[0] == "sandbox":
            return self.sandbox, path.parts[1:]
        return self.workspace, path.parts

    def at(self, path: str) -> Path:
        """Where a path leads by words; links on the way are for the caller to mind."""
        top, parts = self._top(checked_path(path))
        return top.joinpath(*parts)

    def read(self, path: str) -> FileState:
        """What is at a path.

        Raises:
            JobRefused: it is no regular file, too large, or cannot be read.
        """
        try:
            with self._parent(path, make=False) as (parent, name):
                descriptor = os.open(name, _READ, dir_fd=parent)
        except FileNotFoundError:
            return FileState(None)
        except OSError as error:
            raise _refused(path, error) from error
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > FILE_BYTES:
                raise JobRefused(f"{path}: it is no regular file of at most {FILE_BYTES:,} bytes")
            return FileState(file.read(FILE_BYTES + 1), stat.S_IMODE(status.st_mode))

    def missing_directories(self, path: str) -> tuple[str, ...]:
        """The directories above a path that are not there, outermost first."""
        above = [str(parent) for parent in reversed(checked_path(path).parents) if parent.parts]
        return tuple(parent for parent in above if not os.path.lexists(self.at(parent)))

    def put(self, path: str, file: FileState, passing: str) -> None:
        """Put a file in place in one step, or remove it; what is there stands there until then.

        Args:
            path: where.
            file: its content and mode; without content it is removed.
            passing: what the name of the file on its way ends in; one that is left over is written anew.

        Raises:
            JobRefused: it cannot be written; the message says why.
        """
        try:
            with self._parent(path, make=file.content is not None) as (parent, name):
                if file.content is None:
                    with suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=parent)
                else:
                    _placed(parent, name, file.content, file.mode or MODE, passing)
                os.fsync(parent)
        except FileNotFoundError:
            if file.content is not None:
                raise
        except OSError as error:
            raise _refused(path, error) from error

    def clear(self, path: str, passing: str) -> None:
        """Remove what a write that was cut off left beside a path."""
        with suppress(OSError), self._parent(path, make=False) as (parent, name):
            os.unlink(_passing(name, passing), dir_fd=parent)

    def remove_directory(self, path: str) -> None:
        """Remove a directory where it is empty."""
        with suppress(OSError), self._parent(path, make=False) as (parent, name):
            os.rmdir(name, dir_fd=parent)

    @contextmanager
    def _parent(self, path: str, *, make: bool) -> Iterator[tuple[int, str]]:
        top, parts = self._top(checked_path(path))
        if not parts:
            raise JobRefused(f"{path!r} is no file")
        descriptor = os.open(top, _DIRECTORY & ~os.O_NOFOLLOW)
        try:
            for part in parts[:-1]:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o755, dir_fd=descriptor)
                deeper = os.open(part, _DIRECTORY, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = deeper
            yield descriptor, parts[-1]
        finally:
            os.close(descriptor)

    def copy(self, roots: Iterable[str], target: Path) -> tuple[str, ...]:
        """Copy files and directories to a tree that stands for the workspace, in place of another one.

        Args:
            roots: what is copied; what is not there is passed over.
            target: the tree's directory, which is made.

        Returns:
            What was left out: links, and what is too large or cannot be read.

        Raises:
            JobRefused: it is more than a copy may hold.
        """
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(mode=0o700, parents=True)
        left: list[str] = []
        files = size = 0
        for path, source in sorted(dict(self._files(roots, left)).items()):
            try:
                content, mode = read_bytes(source, FILE_BYTES), source.lstat().st_mode
            except OSError:
                left.append(path)
                continue
            files, size = files + 1, size + len(content)
            if files > TREE_FILES or size > TREE_BYTES:
                raise JobRefused(
                    f"there is too much to copy below {', '.join(sorted(roots))}: "
                    f"more than {TREE_FILES:,} files or {TREE_BYTES >> 20} MiB"
                )
            copied = target / path
            copied.parent.mkdir(parents=True, exist_ok=True)
            copied.write_bytes(content)
            copied.chmod(mode & 0o777 | 0o600)
        return tuple(left)

    def below(self, directory: str) -> tuple[str, ...]:
        """The files below a directory, but for links and what no copy has."""
        return tuple(sorted(path for path, _ in self._files([directory], [])))

    def _files(self, roots: Iterable[str], left: list[str]) -> Iterator[tuple[str, Path]]:
        for root in roots:
            start = self.at(root)
            if start.is_symlink():
                left.append(root)
            elif start.is_file():
                yield root, start
            for path, status in files_of(start):
                inside = str(PurePosixPath(root, path))
                if stat.S_ISLNK(status.st_mode):
                    left.append(inside)
                else:
                    yield inside, start / path


def tree_hash(states: Mapping[str, FileState]) -> str:
    """One hash over files: paths, contents and permission bits; files that are not there do not count."""
    listed = [
        [path, state.digest, state.mode]
        for path, state in sorted(states.items())
        if state.content is not None
    ]
    return hashlib.sha256(canonical(listed).encode("utf-8", "surrogatepass")).hexdigest()


def _passing(name: str, passing: str) -> str:
    return f".{name[:200]}.{passing}"


def _placed(parent: int, name: str, content: bytes, mode: int, passing: str) -> None:
    """Write beside the name, press to the disk, take the name."""
    try:
        if not stat.S_ISREG(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
    except FileNotFoundError:
        pass
    part = _passing(name, passing)
    with suppress(FileNotFoundError):
        os.unlink(part, dir_fd=parent)
    descriptor = os.open(part, _CREATE, 0o600, dir_fd=parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(part, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with suppress(OSError):
            os.unlink(part, dir_fd=parent)
        raise


def _refused(path: str, error: OSError) -> JobRefused:
    return JobRefused(f"{path}: {error.strerror or error}")


@dataclass(frozen=True, slots=True)
class _Answer:
    proposals: tuple[Proposal, ...] = ()
    nothing: str = ""


_ANSWER = TypeAdapter(_Answer)


def encode_answer(proposals: Sequence[Proposal], nothing: str) -> bytes:
    """An answer as bytes: what was proposed, or why nothing was."""
    return _ANSWER.dump_json(_Answer(tuple(proposals), nothing))


def decode_answer(content: bytes, prepaid: float) -> tuple[Proposal, ...]:
    """An answer again; it costs what was paid for it and is in no candidate yet.

    Raises:
        NothingProposed: that was the answer.
        ValueError: the content is no answer.
    """
    answer = _ANSWER.validate_json(content)
    if not answer.proposals:
        raise NothingProposed(f"{answer.nothing} (answered before this campaign was cut off)", prepaid)
    proposals = []
    for proposal in answer.proposals:
        proposals.append(replace(proposal, cost_usd=min(proposal.cost_usd, prepaid)))
        prepaid -= proposals[-1].cost_usd
    return tuple(proposals)


DIFF_LINES = 20_000
"""Lines of a difference that are kept."""


@dataclass(frozen=True, slots=True)
class TreeDifference:
    """What one tree has that another has not."""

    files: Mapping[str, bytes | None]
    """The new contents by path; None where it is gone."""
    before: Mapping[str, bytes | None]
    text: str
    """As a unified diff."""
    added: int
    removed: int


def copy_with_files(base: Path, target: Path, files: Mapping[str, str | None]) -> None:
    """Copy a tree and lay files over it; blocking.

    Raises:
        JobRefused: a path leads out of the tree, or a file is too large.
    """
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(base, target, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
    for path, text in files.items():
        there = target / checked_path(path)
        if text is None:
            there.unlink(missing_ok=True)
            continue
        data = text.encode("utf-8", "surrogateescape")
        if len(data) > FILE_BYTES:
            raise JobRefused(f"{path}: {len(data):,} bytes are more than a file may have")
        try:
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_bytes(data)
        except OSError as error:
            raise JobRefused(f"{path}: {error.strerror}") from error


def tree_digest(files: Mapping[str, bytes]) -> str:
    """One hash over the files of a tree."""
    listed = [[path, hashlib.sha256(files[path]).hexdigest()] for path in sorted(files)]
    return hashlib.sha256(canonical(listed).encode("utf-8", "surrogatepass")).hexdigest()


def tree_difference(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> TreeDifference:
    """The real difference of two trees."""
    paths = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    lines: list[str] = []
    for path in paths:
        lines += _unified(path, before.get(path), after.get(path))
    added = sum(line.startswith("+") and not line.startswith("+++ ") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("--- ") for line in lines)
    more = len(lines) - DIFF_LINES
    text = "".join(lines[:DIFF_LINES]) + (f"… {more:,} more lines\n" if more > 0 else "")
    old = {path: before.get(path) for path in paths}
    return TreeDifference({path: after.get(path) for path in paths}, old, text, added, removed)


def _unified(path: str, before: bytes | None, after: bytes | None) -> Iterable[str]:
    if any(b"\0" in content for content in (before, after) if content is not None):
        yield f"--- {path}\n+++ {path}\nbinary files differ\n"
        return
    old_lines, other = _lines(before), _lines(after)
    old = path if before is not None else "/dev/null"
    new = path if after is not None else "/dev/null"
    for line in difflib.unified_diff(old_lines, other, old, new):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(content: bytes | None) -> list[str]:
    return (content or b"").decode("utf-8", "replace").splitlines(keepends=True)


async def texts_of(files: Mapping[str, str | None], blobs: BlobStore) -> dict[str, str | None]:
    """The texts of files whose blobs are given by path; None where there is none.

    Raises:
        BlobError: a text is gone.
    """
    return {
        path: None if blob is None else (await blobs.get(blob)).decode("utf-8", "surrogateescape")
        for path, blob in files.items()
    }
