"""The store of snapshots: crashes, full disks, damage, and clearing away."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from snapshot_samples import TOP, forget, is_back, is_whole, kept, limit_store, picture

from engine.sandbox.snapshots.entry import SnapshotDamaged, SnapshotError, SnapshotMissing
from engine.sandbox.snapshots.store import SnapshotStore
from engine.sandbox.snapshots.walk import SnapshotPolicy
from engine.sandbox.snapshots.workspace import Snapshots


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "root"
    directory.mkdir()
    return directory


@pytest.fixture
def snapshots(root: Path, tmp_path: Path) -> Snapshots:
    return Snapshots(root, tmp_path / "store", SnapshotPolicy(floor_bytes=0))


def objects(tmp_path: Path) -> dict[str, Path]:
    return {path.name: path for path in (tmp_path / "store/objects").glob("*/*")}


_TAKE = """
import asyncio, sys
from pathlib import Path
from engine.sandbox.snapshots.workspace import Snapshots
async def main():
    snapshots = Snapshots(Path(sys.argv[1]), Path(sys.argv[2]))
    print("ready", flush=True)
    await snapshots.take(label=sys.argv[3])
    print("taken", flush=True)
asyncio.run(main())
"""


@pytest.mark.parametrize("named", [0, 1, 500, 1100, 1500])
async def test_kill_9_at_any_point_leaves_a_valid_store(root: Path, tmp_path: Path, named: int) -> None:
    for number in range(1500):
        (root / str(number)).write_text(f"content {number}")
    (root / "one").write_text("first")
    snapshots = Snapshots(root, tmp_path / "store")
    small = tmp_path / "small"
    small.mkdir()
    first = await Snapshots(small, tmp_path / "store").take(label="first")
    taking = subprocess.Popen(
        [sys.executable, "-c", _TAKE, root, tmp_path / "store", "killed"],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(TOP)},
    )
    assert taking.stdout is not None
    taking.stdout.readline()
    before = len(objects(tmp_path))
    passing = tmp_path / "store/passing"
    while taking.poll() is None:
        if len(objects(tmp_path)) - before >= named and (named or os.listdir(passing)):
            break
    taking.send_signal(signal.SIGKILL)
    taking.wait()
    taking.stdout.close()

    for info in kept(snapshots):
        assert is_whole(snapshots, info.id)
    assert kept(snapshots)[0].id == first.id
    whole = await snapshots.take(label="whole")
    assert os.listdir(passing) == []
    assert is_whole(snapshots, whole.id)
    forget(snapshots, whole.id)
    cleared = await snapshots.collect()
    assert cleared.objects >= 1500
    assert is_whole(snapshots, first.id)
    assert {info.id for info in kept(snapshots)} == {first.id}


_FULL_DISK = """
import asyncio, os, subprocess, sys
from pathlib import Path
from engine.sandbox.snapshots.workspace import Snapshots
from engine.sandbox.snapshots.entry import SnapshotError
from engine.sandbox.snapshots.walk import SnapshotPolicy
from tests.engine.sandbox.snapshots.snapshot_samples import is_back, is_whole, kept
root, store = Path(sys.argv[1]), Path(sys.argv[2])
store.mkdir()
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "none", str(store)], check=True)
async def main():
    snapshots = Snapshots(root, store, SnapshotPolicy(floor_bytes=int(sys.argv[3])))
    first = await snapshots.take() if sys.argv[3] == "0" else None
    (root / "big").write_bytes(os.urandom(300_000))
    (root / "more").write_bytes(os.urandom(300_000))
    try:
        await snapshots.take()
    except SnapshotError as error:
        print(error)
    print(len(kept(snapshots)), os.listdir(store / "passing"))
    if first is not None:
        print(is_whole(snapshots, first.id), await is_back(snapshots, first.id))
asyncio.run(main())
"""


def full_disk(root: Path, tmp_path: Path, floor: int) -> list[str]:
    if (
        not shutil.which("unshare")
        or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode
    ):
        pytest.skip("needs a mount namespace")
    (root / "f").write_text("kept")
    done = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", _FULL_DISK, root, tmp_path / "full", str(floor)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TOP)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_full_disk_is_a_clear_error_and_nothing_half_written_counts(root: Path, tmp_path: Path) -> None:
    error, count, works = full_disk(root, tmp_path, 0)
    assert "No space left on device" in error
    assert "Nothing half-written counts" in error
    assert (count, works) == ("1 []", "True True")


def test_below_the_floor_of_free_space_nothing_is_taken(root: Path, tmp_path: Path) -> None:
    error, count = full_disk(root, tmp_path, 10_000_000)
    assert error.startswith("No snapshot was taken: 400.0 KiB are free")
    assert count == "0 []"


async def test_equal_content_is_stored_once(snapshots: Snapshots, root: Path, tmp_path: Path) -> None:
    for number in range(20):
        (root / f"f{number}").write_bytes(b"x" * 100_000)
    info = await snapshots.take()
    assert (info.files, info.bytes) == (20, 2_000_000)
    assert info.new_bytes < 110_000
    assert len(objects(tmp_path)) == 4  # the content, the directory, the manifest, the times


async def test_a_file_larger_than_a_piece_is_kept_whole(snapshots: Snapshots, root: Path) -> None:
    content = bytes(range(256)) * 4096 * 3 + bytes(2 * 1024 * 1024) + b"end"
    (root / "large").write_bytes(content)
    (root / "exact").write_bytes(bytes(1024 * 1024))
    before, info = picture(root), await snapshots.take()
    for name in ("large", "exact"):
        (root / name).unlink()
    assert await is_back(snapshots, info.id)
    assert picture(root) == before


async def test_a_damaged_object_is_not_restored_and_the_rest_is(
    snapshots: Snapshots, root: Path, tmp_path: Path
) -> None:
    (root / "damaged").write_text("one")
    (root / "fine").write_text("three")
    info = await snapshots.take()
    [path] = [path for path in objects(tmp_path).values() if path.read_bytes() == b"one"]
    path.write_bytes(b"eno")
    (root / "damaged").write_text("changed")
    (root / "fine").write_text("changed")
    done = await snapshots.restore(info.id)
    assert [failure.path for failure in done.failed] == ["damaged"]
    assert "does not hold what it held" in done.failed[0].why
    assert not done.verified
    assert (root / "damaged").read_text() == "changed"
    assert sorted(os.listdir(root)) == ["damaged", "fine"]
    assert (root / "fine").read_text() == "three"


async def test_a_damaged_directory_stops_a_restoration_before_it_begins(
    snapshots: Snapshots, root: Path, tmp_path: Path
) -> None:
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/f").write_text("x")
    (root / "first").write_text("x")
    info = await snapshots.take()
    [path] = [path for path in objects(tmp_path).values() if b'"name":"f"' in path.read_bytes()]
    path.write_bytes(path.read_bytes().replace(b'"name":"f"', b'"name":"g"'))
    (root / "first").unlink()
    now = picture(root)
    with pytest.raises(SnapshotDamaged):
        await snapshots.restore(info.id)
    assert picture(root) == now


async def test_a_lost_object_is_written_again_by_the_next_snapshot(
    snapshots: Snapshots, root: Path, tmp_path: Path
) -> None:
    (root / "f").write_text("precious")
    info = await snapshots.take()
    for path in objects(tmp_path).values():
        if path.read_bytes() == b"precious":
            path.unlink()
    assert not is_whole(snapshots, info.id)
    assert (await snapshots.take()).id == info.id
    assert is_whole(snapshots, info.id)


async def test_forgotten_snapshots_free_only_what_nobody_else_needs(
    snapshots: Snapshots, root: Path, tmp_path: Path
) -> None:
    (root / "shared").write_bytes(b"s" * 10_000)
    (root / "own").write_bytes(b"1" * 20_000)
    first = await snapshots.take()
    (root / "own").write_bytes(b"2" * 30_000)
    second = await snapshots.take()
    assert (await snapshots.collect()).objects == 0
    forget(snapshots, first.id)
    cleared = await snapshots.collect()
    assert cleared.objects == 4
    assert cleared.kept_bytes == sum(path.stat().st_size for path in objects(tmp_path).values())
    assert is_whole(snapshots, second.id)
    with pytest.raises(SnapshotMissing):
        await snapshots.restore(first.id)


async def test_over_the_budget_the_oldest_go_and_those_to_keep_stay(snapshots: Snapshots, root: Path) -> None:
    infos = []
    for number in range(5):
        (root / "f").write_bytes(str(number).encode() * 100_000)
        infos.append(await snapshots.take(label=str(number)))
    cleared = await limit_store(snapshots, 250_000).collect(keep=[infos[0].id])
    assert cleared.forgotten == (infos[1].id, infos[2].id, infos[3].id)
    assert [info.label for info in kept(snapshots)] == ["0", "4"]
    assert cleared.kept_bytes <= 250_000
    assert (await limit_store(snapshots, 1).collect()).forgotten == (infos[0].id,)
    assert await is_back(snapshots, infos[4].id)


async def test_no_more_snapshots_stay_than_the_policy_says(root: Path, tmp_path: Path) -> None:
    snapshots = Snapshots(root, tmp_path / "store", SnapshotPolicy(floor_bytes=0, snapshots=3))
    infos = []
    for number in range(6):
        (root / "f").write_text(str(number))
        infos.append(await snapshots.take())
    assert (await snapshots.collect(keep=[infos[1].id])).forgotten == (infos[0].id, infos[2].id, infos[3].id)
    assert [info.id for info in kept(snapshots)] == [infos[number].id for number in (1, 4, 5)]


async def test_snapshots_taken_while_old_ones_are_cleared_away_are_whole(
    snapshots: Snapshots, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.sandbox.snapshots.workspace.COLLECTING_S", 0)

    async def of_files(count: int) -> None:
        for number in range(20):
            path = root / str(number)
            path.write_text(str(number)) if number < count else path.unlink(missing_ok=True)
        await snapshots.take()

    for count in range(20):
        await of_files(count)
    clearing = asyncio.create_task(limit_store(snapshots, 1).collect())
    turns = 0
    while not clearing.done():
        # What is about to be cleared away is needed again, in part or as a whole.
        await of_files(turns * 7 % 20)
        turns += 1
    assert (await clearing).objects > 0
    assert turns > 20, "nothing came in between"
    await snapshots.collect()
    for info in kept(snapshots):
        assert is_whole(snapshots, info.id)


async def test_nothing_is_cleared_away_while_a_snapshot_cannot_be_read(
    snapshots: Snapshots, root: Path, tmp_path: Path
) -> None:
    (root / "f").write_text("1")
    first = await snapshots.take()
    (root / "f").write_text("2")
    await snapshots.take()
    objects(tmp_path)[first.id].unlink()
    count = len(objects(tmp_path))
    with pytest.raises(SnapshotDamaged, match="forget it first"):
        await snapshots.collect()
    assert len(objects(tmp_path)) == count
    forget(snapshots, first.id)
    assert (await snapshots.collect()).objects > 0


async def test_a_taken_again_snapshot_counts_as_new(snapshots: Snapshots, root: Path) -> None:
    (root / "f").write_bytes(b"1" * 100_000)
    first = await snapshots.take()
    (root / "f").write_bytes(b"2" * 100_000)
    second = await snapshots.take()
    (root / "f").write_bytes(b"1" * 100_000)
    assert (await snapshots.take(label="back")).id == first.id
    assert [info.id for info in kept(snapshots)] == [second.id, first.id]
    assert (await limit_store(snapshots, 150_000).collect()).forgotten == (second.id,)


async def test_a_second_process_is_refused_while_one_writes(root: Path, tmp_path: Path) -> None:
    os.mkdir(tmp_path / "store")
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import fcntl, sys, signal; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX);"
            "print('held', flush=True); signal.pause()",
            tmp_path / "store/lock",
        ],
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    with pytest.raises(SnapshotError, match="in use by another process"):
        await Snapshots(root, tmp_path / "store").take()
    holder.kill()
    holder.wait()
    holder.stdout.close()
    assert (await Snapshots(root, tmp_path / "store").take()).files == 0


def test_a_forked_child_does_not_keep_the_store(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path / "store")
    reading, writing = os.pipe()
    with store.writing():
        child = os.fork()
        if child == 0:
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
    os.close(reading)
    try:
        with store.writing():
            pass
    finally:
        os.close(writing)
        os.waitpid(child, 0)


async def test_a_damaged_record_is_named(snapshots: Snapshots, tmp_path: Path) -> None:
    info = await snapshots.take()
    [record] = (tmp_path / "store/snapshots").iterdir()
    record.write_text("{")
    with pytest.raises(SnapshotDamaged, match=info.id):
        kept(snapshots)


async def test_a_damaged_record_loses_the_times_and_no_file(
    snapshots: Snapshots, root: Path, tmp_path: Path
) -> None:
    (root / "f").write_text("x")
    info = await snapshots.take()
    [record] = (tmp_path / "store/snapshots").iterdir()
    record.write_text("{")
    (root / "f").write_text("y")

    done = await snapshots.restore(info.id)

    assert done.verified
    assert (root / "f").read_text() == "x"
    assert (root / "f").stat().st_mtime > 1_000_000_000


async def test_the_store_is_for_its_owner_only(snapshots: Snapshots, root: Path, tmp_path: Path) -> None:
    (root / "f").write_text("x")
    await snapshots.take()
    for path in (tmp_path / "store").rglob("*"):
        if path.is_dir() or path.parent.parent.name == "objects":
            assert path.stat().st_mode & 0o077 == 0, path


async def test_a_cancelled_restoration_leaves_whole_files_and_modes(
    snapshots: Snapshots, root: Path, tmp_path: Path
) -> None:
    (root / "d").mkdir()
    for number in range(1500):
        (root / f"d/{number}").write_text(f"content {number}")
    (root / "d").chmod(0o555)
    info = await snapshots.take()
    (root / "d").chmod(0o755)
    for number in range(1500):
        (root / f"d/{number}").write_text("other")
    restoring = asyncio.create_task(snapshots.restore(info.id))
    while (root / "d/0").read_text() == "other":
        await asyncio.sleep(0)
    restoring.cancel()
    with pytest.raises(asyncio.CancelledError):
        await restoring
    contents = {
        (root / f"d/{number}").read_text() in ("other", f"content {number}") for number in range(1500)
    }
    assert contents == {True}
    assert len(os.listdir(root / "d")) == 1500
    assert (root / "d").stat().st_mode & 0o777 == 0o555
    assert await is_back(snapshots, info.id)
