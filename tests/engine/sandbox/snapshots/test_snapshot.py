"""Snapshots of a workspace: issue 3, item 6."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest
from snapshot_samples import age, bytes_read, picture

from engine.sandbox.policy import SandboxPolicy
from engine.sandbox.snapshots.entry import Skipped, SnapshotError, SnapshotMissing, escape, unescape
from engine.sandbox.snapshots.file_reader import StatCache
from engine.sandbox.snapshots.walk import SnapshotPolicy
from engine.sandbox.snapshots.workspace import Snapshots
from tests.engine.sandbox.snapshots.snapshot_samples import is_back, is_whole, kept


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "root"
    (directory / "src/empty").mkdir(parents=True)
    (directory / "src/a.py").write_text("print('a')\n")
    (directory / "run.sh").write_text("#!/bin/sh\n")
    (directory / "run.sh").chmod(0o750)
    os.symlink("src/a.py", directory / "link")
    os.symlink("/nowhere/at all", directory / "dangling")
    os.mkfifo(directory / "pipe", 0o640)
    return directory


@pytest.fixture
def snapshots(root: Path, tmp_path: Path) -> Snapshots:
    return Snapshots(root, tmp_path / "store")


async def test_a_snapshot_counts_what_it_holds(snapshots: Snapshots, root: Path) -> None:
    info = await snapshots.take(label="before a-1")
    assert (info.files, info.directories, info.bytes, info.label) == (2, 3, 21, "before a-1")
    assert info.skipped == ()
    assert kept(snapshots) == [info]


async def test_an_unchanged_tree_has_the_same_id_and_adds_nothing(snapshots: Snapshots, root: Path) -> None:
    first = await snapshots.take()
    age(root)
    second = await snapshots.take(label="again")
    third = await snapshots.take(label="and again")
    assert first.id == second.id == third.id
    assert (second.new_bytes, third.new_bytes) == (0, 0)
    assert [(info.label, info.number) for info in kept(snapshots)] == [("and again", 3)]


async def test_equal_trees_in_other_places_at_other_times_have_equal_ids(tmp_path: Path) -> None:
    ids = []
    for name, when in (("one", 1_000_000_000), ("two", 2_000_000_000)):
        (tmp_path / name / "d").mkdir(parents=True)
        (tmp_path / name / "d/f").write_text("same")
        os.utime(tmp_path / name / "d/f", (when, when))
        ids.append((await Snapshots(tmp_path / name, tmp_path / f"store-{name}").take()).id)
    assert ids[0] == ids[1]


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "src/a.py").write_text("print('b')\n"),
        lambda root: (root / "run.sh").chmod(0o755),
        lambda root: (root / "src/empty").rmdir(),
        lambda root: (root / "src/empty").chmod(0o700),
        lambda root: root.chmod(0o700),
        lambda root: (root / "pipe").unlink(),
        lambda root: ((root / "link").unlink(), os.symlink("run.sh", root / "link")),
    ],
)
async def test_any_change_gives_another_id_and_is_undone(snapshots: Snapshots, root: Path, change) -> None:
    before, first = picture(root), await snapshots.take()
    change(root)
    second = await snapshots.take()
    assert second.id != first.id
    assert await snapshots.diff(first.id, second.id)
    done = await snapshots.restore(first.id)
    assert (done.verified, done.failed) == (True, ())
    assert picture(root) == before


async def test_a_change_that_keeps_size_and_mtime_is_seen(snapshots: Snapshots, root: Path) -> None:
    path = root / "src/a.py"
    age(root)
    first = await snapshots.take()
    times = path.stat()
    path.write_text("print('b')\n")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert path.stat().st_mtime_ns == times.st_mtime_ns
    assert (await snapshots.take()).id != first.id


async def test_changes_right_after_a_snapshot_are_seen_every_time(snapshots: Snapshots, root: Path) -> None:
    ids = set()
    for number in range(100):
        (root / "f").write_text(f"{number:03}")  # same size, and often the same tick of the clock
        ids.add((await snapshots.take()).id)
    assert len(ids) == 100


async def test_an_unchanged_file_is_not_read_again(root: Path, tmp_path: Path) -> None:
    (root / "large").write_bytes(bytes(range(256)) * 40_000)
    age(root)
    known = await Snapshots(root, tmp_path / "store").take()
    before = bytes_read()
    later = await Snapshots(root, tmp_path / "store").take()  # the cache outlives the process
    assert later.id == known.id
    assert bytes_read() - before < 1_000_000


@pytest.mark.parametrize(
    ("ctime_ns", "later_ns", "certain"),
    [
        (1_000_000_123_456_789, 50_000_000, False),
        (1_000_000_123_456_789, 150_000_000, True),
        (1_000_000_000_000_000, 2_000_000_000, False),
        (1_000_000_000_000_000, 4_000_000_000, True),
    ],
)
def test_a_file_that_changed_just_before_it_was_read_is_read_again(
    tmp_path: Path, ctime_ns: int, later_ns: int, certain: bool
) -> None:
    cache = StatCache(tmp_path / "cache", tmp_path)
    status = SimpleNamespace(st_dev=1, st_ino=2, st_size=3, st_mtime_ns=4, st_ctime_ns=ctime_ns)
    cache.put(status, "ab" * 32, ctime_ns + later_ns)
    assert (cache.get(status) == "ab" * 32) is certain


async def test_a_damaged_stat_cache_is_no_cache(root: Path, tmp_path: Path) -> None:
    age(root)
    known = await Snapshots(root, tmp_path / "store").take()
    cache = tmp_path / "store/stat-cache"
    cache.write_bytes(cache.read_bytes()[:-1] + b"?")
    assert (await Snapshots(root, tmp_path / "store").take()).id == known.id


async def test_the_manifest_is_canonical_json_named_by_its_digest(
    snapshots: Snapshots, tmp_path: Path
) -> None:
    info = await snapshots.take()
    stored = (tmp_path / "store/objects" / info.id[:2] / info.id).read_bytes()
    assert hashlib.sha256(stored).hexdigest() == info.id
    body = json.loads(stored)
    assert stored == json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    tree = json.loads((tmp_path / "store/objects" / body["tree"][:2] / body["tree"]).read_bytes())
    assert [(entry["name"], entry["kind"]) for entry in tree["entries"]] == [
        *(("dangling", "link"), ("link", "link"), ("pipe", "fifo"), ("run.sh", "file"), ("src", "dir"))
    ]


async def test_a_diff_names_every_path_and_is_symmetric(snapshots: Snapshots, root: Path) -> None:
    a = await snapshots.take()
    (root / "src/a.py").write_text("other")
    (root / "run.sh").chmod(0o700)
    (root / "pipe").unlink()
    (root / "new/below").mkdir(parents=True)
    (root / "link").unlink()
    (root / "link").mkdir()
    b = await snapshots.take()
    there, back = await snapshots.diff(a.id, b.id), await snapshots.diff(b.id, a.id)
    assert there.added == ("new", "new/below")
    assert there.removed == ("pipe",)
    assert there.changed == ("link", "src/a.py")
    assert there.mode_changed == ("run.sh",)
    assert (back.added, back.removed) == (there.removed, there.added)
    assert (back.changed, back.mode_changed) == (there.changed, there.mode_changed)
    assert not await snapshots.diff(a.id, a.id)


async def test_a_preview_says_what_a_restoration_then_does(snapshots: Snapshots, root: Path) -> None:
    first = await snapshots.take()
    (root / "src/a.py").write_text("changed")
    (root / "run.sh").chmod(0o700)
    (root / "src/empty").rmdir()
    (root / "new/below").mkdir(parents=True)
    (root / "link").unlink()
    now = picture(root)
    plan = await snapshots.restore(first.id, dry_run=True)
    assert picture(root) == now
    assert not plan.applied
    assert plan.written == ("link", "src/a.py")
    assert (plan.made, plan.removed, plan.mode_changed) == (("src/empty",), ("new",), ("run.sh",))
    done = await snapshots.restore(first.id)
    assert (done.written, done.made, done.removed, done.mode_changed) == (
        *(plan.written, plan.made, plan.removed, plan.mode_changed),
    )
    assert done.applied
    assert done.verified
    assert (await snapshots.restore(first.id, dry_run=True)).steps == 0


async def test_a_preview_of_a_directory_that_is_gone_names_what_was_in_it(
    snapshots: Snapshots, root: Path
) -> None:
    first = await snapshots.take()
    (root / "src/a.py").unlink()
    (root / "src/empty").rmdir()
    (root / "src").rmdir()
    (root / "src").write_text("a file now")
    plan = await snapshots.restore(first.id, dry_run=True)
    assert (plan.made, plan.written) == (("src", "src/empty"), ("src/a.py",))
    assert await is_back(snapshots, first.id)


async def test_times_come_back_with_the_files(snapshots: Snapshots, root: Path) -> None:
    os.utime(root / "src/a.py", ns=(5, 1_234_567_890_123_456_789))
    os.utime(root / "link", ns=(5, 1_111_111_111_000_000_001), follow_symlinks=False)
    (root / "aa/bb").mkdir(parents=True)
    (root / "aa/bb/f").write_text("")
    os.utime(root / "aa/bb/f", ns=(5, 1_000_000_000_000_000_007))
    first = await snapshots.take()
    for name in ("src/a.py", "link", "aa/bb/f"):
        (root / name).unlink()
    await snapshots.restore(first.id)
    assert (root / "src/a.py").stat().st_mtime_ns == 1_234_567_890_123_456_789
    assert (root / "link").lstat().st_mtime_ns == 1_111_111_111_000_000_001
    assert (root / "aa/bb/f").stat().st_mtime_ns == 1_000_000_000_000_000_007


async def test_only_the_paths_asked_for_are_restored(snapshots: Snapshots, root: Path) -> None:
    first = await snapshots.take()
    (root / "src/a.py").write_text("changed")
    (root / "src/extra").write_text("new")
    (root / "run.sh").write_text("changed as well")
    (root / "other/deep").mkdir(parents=True)
    (root / "other/deep/f").write_text("new")
    (root / "other/stays").write_text("new")
    done = await snapshots.restore(first.id, paths=["src/a.py", "other/deep", "no/such", "nothing"])
    assert (done.written, done.removed) == (("src/a.py",), ("other/deep",))
    assert done.unmatched == ("no/such", "nothing")
    assert done.verified
    assert (root / "src/a.py").read_text() == "print('a')\n"
    assert (root / "run.sh").read_text() == "changed as well"
    assert (root / "src/extra").exists()
    assert sorted(os.listdir(root / "other")) == ["stays"]


async def test_a_path_below_a_lost_directory_brings_the_directory_back(
    snapshots: Snapshots, root: Path
) -> None:
    first = await snapshots.take()
    (root / "src/a.py").unlink()
    (root / "src/empty").rmdir()
    (root / "src").rmdir()
    await snapshots.restore(first.id, paths=["src/a.py"])
    assert os.listdir(root / "src") == ["a.py"]


@pytest.mark.parametrize("path", ["", "/etc", "../x", "a/../b", "a//b", "a\\x1", "a\nb", "."])
async def test_paths_are_relative_plain_and_escaped(snapshots: Snapshots, path: str) -> None:
    first = await snapshots.take()
    if path == ".":
        assert (await snapshots.restore(first.id, paths=[path])).verified
        return
    with pytest.raises(SnapshotError, match="not a path"):
        await snapshots.restore(first.id, paths=[path])


@pytest.mark.parametrize(
    "raw", [b"plain.py", b"bad\xff", b"\x1b[2J", b"new\nline", b"back\\x41", "é\x85".encode()]
)
def test_names_are_escaped_without_loss(raw: bytes) -> None:
    text = escape(os.fsdecode(raw))
    assert text.isprintable()
    text.encode()
    assert os.fsencode(unescape(text)) == raw


async def test_a_virtual_environment_is_listed_and_said_to_be(snapshots: Snapshots, root: Path) -> None:
    packages = root / ".venv/lib/python3.11/site-packages"
    (packages / "six-1.17.0.dist-info").mkdir(parents=True)
    (packages / "six.py").write_text("x" * 5000)
    (root / ".venv/bin").mkdir()
    (root / ".venv/pyvenv.cfg").write_text("home = /usr/bin\n")
    first = await snapshots.take()
    assert first.bytes < 5000
    assert first.skipped == (
        Skipped(".venv", "a virtual environment: its 1 distributions are listed, its files are not kept"),
    )
    assert (await snapshots.restore(first.id)).left == ()
    (packages / "toml-0.10.dist-info").mkdir()
    second = await snapshots.take()
    assert (await snapshots.diff(first.id, second.id)).changed == (".venv",)
    done = await snapshots.restore(first.id)
    assert done.left == (Skipped(".venv", f"{first.skipped[0].why}; it is not what it was"),)
    assert done.verified
    assert (packages / "six.py").exists()


async def test_a_virtual_environment_made_since_is_removed(snapshots: Snapshots, root: Path) -> None:
    first = await snapshots.take()
    (root / ".venv/bin").mkdir(parents=True)
    (root / ".venv/pyvenv.cfg").write_text("")
    done = await snapshots.restore(first.id)
    assert (done.removed, done.verified) == ((".venv",), True)


async def test_caches_are_left_out_by_name_and_left_alone(snapshots: Snapshots, root: Path) -> None:
    (root / "src/__pycache__").mkdir()
    (root / "src/__pycache__/a.pyc").write_bytes(b"1")
    (root / ".home/tmp").mkdir(parents=True)
    (root / "tmp").mkdir()
    first = await snapshots.take()
    assert [skip.path for skip in first.skipped] == [".home/tmp", "src/__pycache__"]
    (root / "src/__pycache__/a.pyc").write_bytes(b"22")
    assert (await snapshots.take()).id == first.id
    assert await is_back(snapshots, first.id)
    assert (root / "src/__pycache__/a.pyc").read_bytes() == b"22"


async def test_a_cache_of_the_policy_outlives_the_way_back_to_before_it_was_made(
    root: Path, tmp_path: Path
) -> None:
    snapshots = Snapshots(root, tmp_path / "store", SnapshotPolicy.for_sandbox(SandboxPolicy()))
    first = await snapshots.take()
    for name in (".home", ".tmp", "src/.home"):
        (root / name).mkdir()
    back = await snapshots.restore(first.id)
    assert (back.verified, back.removed) == (True, ("src/.home",))
    assert sorted(left.path for left in back.left) == [".home", ".tmp"]
    assert (root / ".home").is_dir()


async def test_set_id_bits_do_not_come_back(snapshots: Snapshots, root: Path) -> None:
    (root / "run.sh").chmod(0o4755)
    first = await snapshots.take()
    (root / "run.sh").unlink()
    await snapshots.restore(first.id)
    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o755


async def test_unknown_and_malformed_ids_are_missing(snapshots: Snapshots) -> None:
    for snapshot in ("0" * 64, "../../etc/passwd", "*", ""):
        for attempt in (snapshots.restore, lambda one: snapshots.diff(one, one)):
            with pytest.raises(SnapshotMissing):
                await attempt(snapshot)


@pytest.mark.parametrize("kind", ["missing", "file", "link"])
async def test_a_root_that_is_no_directory_is_refused(tmp_path: Path, kind: str) -> None:
    (tmp_path / "target").mkdir()
    if kind == "file":
        (tmp_path / "root").write_text("")
    elif kind == "link":
        os.symlink("target", tmp_path / "root")
    with pytest.raises(SnapshotError, match="cannot be opened"):
        await Snapshots(tmp_path / "root", tmp_path / "store").take()


async def test_the_store_may_lie_in_the_workspace_only_where_it_is_protected(root: Path) -> None:
    with pytest.raises(SnapshotError, match="lies in the workspace"):
        Snapshots(root, root / "store")
    with pytest.raises(SnapshotError, match="lies in the workspace"):
        Snapshots(root, root)
    snapshots = Snapshots(root, root / ".pilothouse/snapshots")
    first = await snapshots.take()
    (root / "run.sh").unlink()
    assert await is_back(snapshots, first.id)
    assert is_whole(snapshots, first.id)
    assert all(".pilothouse" not in skip.path for skip in first.skipped)


async def test_operations_of_one_workspace_wait_for_each_other(snapshots: Snapshots) -> None:
    infos = await asyncio.gather(*(snapshots.take(label=str(n)) for n in range(5)))
    assert {info.id for info in infos} == {infos[0].id}
    assert sorted(info.number for info in infos) == [1, 2, 3, 4, 5]


async def test_a_policy_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="entries must be at least 1"):
        SnapshotPolicy(entries=0)
