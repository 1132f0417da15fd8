"""What holds of any tree: restoring undoes whatever happened, and a diff reads the same from both ends."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from snapshot_samples import picture

from engine.sandbox.snapshots.entry import escape, unescape
from engine.sandbox.snapshots.workspace import Snapshots
from tests.engine.sandbox.snapshots.snapshot_samples import is_whole

NAMES = st.sampled_from(
    [b"a", b"b", b"c.py", b"bad\xff", b"new\nline", b"back\\slash", "\u00e9".encode(), b"A"]
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(b"/".join)
CONTENT = st.sampled_from([b"", b"1", b"2", b"x" * 5000, bytes(5000)])
MODES = st.sampled_from([0o600, 0o644, 0o755, 0o700, 0o711])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("file"), PATHS, CONTENT),
        st.tuples(st.just("directory"), PATHS, st.none()),
        st.tuples(st.just("link"), PATHS, PATHS),
        st.tuples(st.just("fifo"), PATHS, st.none()),
        st.tuples(st.just("mode"), PATHS, MODES),
        st.tuples(st.just("remove"), PATHS, st.none()),
        st.tuples(st.just("move"), PATHS, PATHS),
        st.tuples(st.just("time"), PATHS, st.integers(0, 2**32)),
    ),
    max_size=12,
)


def do(root: bytes, step: str, path: bytes, more: object) -> None:
    """One step, if it is possible; what stands in the way stays."""
    at = root + b"/" + path
    with suppress(OSError):
        if step == "file":
            with open(at, "wb") as file:
                file.write(more)  # type: ignore[arg-type]
        elif step == "directory":
            os.mkdir(at)
        elif step == "link":
            os.symlink(more, at)  # type: ignore[type-var]
        elif step == "fifo":
            os.mkfifo(at)
        elif step == "mode" and not os.path.islink(at):
            os.chmod(at, more)  # type: ignore[arg-type]
        elif step == "move":
            os.rename(at, root + b"/" + more)  # type: ignore[operator]
        elif step == "time":
            os.utime(at, (more, more), follow_symlinks=False)  # type: ignore[arg-type]
        elif step == "remove" and os.path.isdir(at) and not os.path.islink(at):
            shutil.rmtree(at)
        elif step == "remove":
            os.unlink(at)


def opens_a_pipe(root: bytes, step: str, path: bytes) -> bool:
    """Whether the step would wait for the other end of a pipe."""
    with suppress(OSError):
        return step == "file" and stat.S_ISFIFO(os.stat(root + b"/" + path).st_mode)
    return False


def mutate(root: Path, steps: list[tuple[str, bytes, object]]) -> None:
    raw = os.fsencode(root)
    for step, path, more in steps:
        if not opens_a_pipe(raw, step, path):
            do(raw, step, path, more)


@contextmanager
def workspace() -> Iterator[tuple[Path, Snapshots]]:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory, "root")
        root.mkdir()
        yield root, Snapshots(root, Path(directory, "store"))


QUIET = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@QUIET
@given(STEPS, STEPS)
def test_restoring_the_first_snapshot_gives_back_the_same_tree(before: list, after: list) -> None:
    async def scenario() -> None:
        with workspace() as (root, snapshots):
            mutate(root, before)
            first, seen = await snapshots.take(), picture(root)
            mutate(root, after)
            plan = await snapshots.restore(first.id, dry_run=True)
            done = await snapshots.restore(first.id)
            assert (done.written, done.made, done.removed, done.mode_changed) == (
                *(plan.written, plan.made, plan.removed, plan.mode_changed),
            )
            assert done.verified
            assert picture(root) == seen
            assert (await snapshots.take()).id == first.id

    asyncio.run(scenario())


@QUIET
@given(STEPS, STEPS)
def test_a_diff_is_symmetric_and_empty_only_for_equal_trees(before: list, after: list) -> None:
    async def scenario() -> None:
        with workspace() as (root, snapshots):
            mutate(root, before)
            one, old = await snapshots.take(), picture(root)
            mutate(root, after)
            other, new = await snapshots.take(), picture(root)
            there, back = await snapshots.diff(one.id, other.id), await snapshots.diff(other.id, one.id)
            assert (there.added, there.removed) == (back.removed, back.added)
            assert (there.changed, there.mode_changed) == (back.changed, back.mode_changed)
            assert bool(there) == (old != new) == (one.id != other.id)
            named = {os.fsencode(unescape(path)) for path in there.added}
            assert named == new.keys() - old.keys()

    asyncio.run(scenario())


@QUIET
@given(STEPS)
def test_twice_without_a_change_is_one_snapshot_and_no_new_bytes(steps: list) -> None:
    async def scenario() -> None:
        with workspace() as (root, snapshots):
            mutate(root, steps)
            first = await snapshots.take()
            second = await snapshots.take()
            assert (second.id, second.new_bytes) == (first.id, 0)
            assert is_whole(snapshots, first.id)

    asyncio.run(scenario())


@given(st.binary(min_size=1, max_size=40).filter(lambda raw: b"/" not in raw and b"\0" not in raw))
def test_any_name_is_escaped_without_loss(raw: bytes) -> None:
    text = escape(os.fsdecode(raw))
    assert os.fsencode(unescape(text)) == raw
    assert text.encode().decode() == text
    assert not any(ord(letter) < 32 for letter in text)


@given(st.text(max_size=10), st.text(max_size=10))
def test_two_names_never_share_an_escaped_form(one: str, other: str) -> None:
    with suppress(UnicodeEncodeError):
        one.encode("utf-8", "surrogateescape")
        other.encode("utf-8", "surrogateescape")
        assert (escape(one) == escape(other)) == (os.fsencode(one) == os.fsencode(other))
