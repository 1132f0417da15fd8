"""A hostile workspace does not hurt the snapshotter: issue 3, item 6; sandbox spec §3.3, §6 cases 15-18."""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from snapshot_samples import (
    FREE_UID,
    age,
    deep_tree,
    ordinary_user_directory,
    picture,
    remove_deep_tree,
    run_as_user,
)

from engine.sandbox.snapshots.entry import FileChanged, SnapshotError
from engine.sandbox.snapshots.file_reader import HashingSink, StatCache, content_digest
from engine.sandbox.snapshots.walk import SnapshotPolicy
from engine.sandbox.snapshots.workspace import Snapshots
from tests.engine.sandbox.snapshots.snapshot_samples import is_back, is_whole, kept
from tests.rounds import rounds

SECRET = b"the operator's secret"
NAMES = rounds(20_000, full=190_000)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "root"
    directory.mkdir()
    yield directory
    remove_deep_tree(directory)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    directory = tmp_path / "outside"
    directory.mkdir()
    (directory / "f").write_bytes(SECRET)
    return directory


@pytest.fixture
def snapshots(root: Path, tmp_path: Path) -> Snapshots:
    return Snapshots(root, tmp_path / "store")


def stored(tmp_path: Path) -> set[str]:
    """Digests of all objects in the store."""
    return {path.name for path in (tmp_path / "store/objects").glob("*/*")}


@contextmanager
def attacker(script: str, *arguments: Path) -> Iterator[None]:
    """A program at work against the snapshotter, from the moment it says so."""
    process = subprocess.Popen([sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert process.stdout.readline()
        yield
        assert process.poll() is None, "the attacker died"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


async def test_special_files_are_recorded_by_kind_and_never_waited_for(
    snapshots: Snapshots, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(root / "fifo")
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    if os.getuid() == 0:
        os.mknod(root / "null", 0o20666, os.makedev(1, 3))
    info = await snapshots.take()
    assert [skip.path for skip in info.skipped] == ["null", "socket"][os.getuid() != 0 :]
    assert info.skipped[-1].why == "a socket: only its name is kept"
    (root / "fifo").unlink()
    (root / "socket").unlink()
    done = await snapshots.restore(info.id)
    assert done.written == ("fifo",)
    assert done.left[-1].why.endswith("it is gone")
    assert done.verified


@pytest.mark.slow
async def test_3000_levels_of_long_names_are_kept_and_restored(snapshots: Snapshots, root: Path) -> None:
    def leaf(directory: int) -> None:
        os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=directory))

    deep_tree(root, 3000, "d" * 200, visit=leaf)
    first = await snapshots.take()
    assert (first.files, first.directories, first.skipped) == (1, 3001, ())
    remove_deep_tree(root / ("d" * 200))
    empty = await snapshots.take()
    changes = await snapshots.diff(empty.id, first.id)
    assert len(changes.added) + changes.more == 3001
    assert sum(map(len, changes.added)) <= 4 * 1024 * 1024
    done = await snapshots.restore(first.id)
    assert done.verified
    assert await is_back(snapshots, empty.id)
    assert os.listdir(root) == []


async def test_levels_beyond_the_limit_are_named(root: Path, tmp_path: Path) -> None:
    deep_tree(root, 20, "d")
    snapshots = Snapshots(root, tmp_path / "store", SnapshotPolicy(depth=10))
    info = await snapshots.take()
    assert [skip.why for skip in info.skipped] == ["deeper than 10 levels"]
    assert info.skipped[0].path == "/".join("d" * 11)
    assert (await snapshots.restore(info.id)).verified
    assert (root / "/".join("d" * 20)).is_dir()


async def test_names_beyond_the_budget_are_said_and_left_alone(root: Path, tmp_path: Path) -> None:
    (root / "many").mkdir()
    for number in range(50):
        (root / f"many/{number}").write_text("x")
    snapshots = Snapshots(root, tmp_path / "store", SnapshotPolicy(entries=20))
    info = await snapshots.take()
    assert info.files == 19
    assert [skip.path for skip in info.skipped] == ["many"]
    assert "20 names" in info.skipped[0].why
    (root / "many/new").write_text("y")
    done = await snapshots.restore(info.id)
    assert done.removed == ()
    assert done.left[0].path == "many"
    assert (root / "many/new").exists()


@pytest.mark.slow
async def test_many_names_are_walked_while_the_loop_stays_free(snapshots: Snapshots, root: Path) -> None:
    subprocess.run([sys.executable, "-c", _MANY, str(root), str(NAMES)], check=True)
    beats, done = 0, asyncio.Event()

    async def heart() -> None:
        nonlocal beats
        while not done.is_set():
            beats += 1
            await asyncio.sleep(0.01)

    beating = asyncio.create_task(heart())
    info = await snapshots.take()
    done.set()
    await beating
    assert info.files == NAMES
    assert info.skipped == ()
    assert beats > rounds(2, full=20)
    assert len(kept(snapshots)) == 1


_MANY = """
import os, sys
os.chdir(sys.argv[1])
for number in range(int(sys.argv[2])):
    if number % 1000 == 0:
        here = f"d{number}"
        os.mkdir(here)
    if number % 30000 == 0:
        first = f"{here}/{number}"
        os.close(os.open(first, os.O_CREAT))
    else:
        os.link(first, f"{here}/{number}")  # far faster than as many inodes
"""


async def test_a_huge_sparse_file_is_named_and_not_read(snapshots: Snapshots, root: Path) -> None:
    with open(root / "huge", "wb") as file:
        file.truncate(1 << 40)
    info = await snapshots.take()
    assert [(skip.path, skip.why) for skip in info.skipped] == [
        ("huge", "larger than 64.0 MiB, the most that is kept of a file")
    ]
    (root / "huge").unlink()
    done = await snapshots.restore(info.id)
    assert done.left[0].why.endswith("it is gone")


async def test_holes_stay_holes_in_the_store_and_the_workspace(
    snapshots: Snapshots, root: Path, tmp_path: Path
) -> None:
    with open(root / "sparse", "wb") as file:
        file.write(b"begin")
        file.truncate(40 * 1024 * 1024)
    info = await snapshots.take()
    before = hashlib.sha256((root / "sparse").read_bytes()).digest()
    used = sum(path.stat().st_blocks for path in (tmp_path / "store/objects").glob("*/*"))
    assert used * 512 < 4 * 1024 * 1024
    (root / "sparse").unlink()
    await snapshots.restore(info.id)
    assert (root / "sparse").stat().st_blocks * 512 < 4 * 1024 * 1024
    assert hashlib.sha256((root / "sparse").read_bytes()).digest() == before


async def test_content_beyond_the_total_is_named(root: Path, tmp_path: Path) -> None:
    for name in "abc":
        (root / name).write_bytes(name.encode() * 600)
    info = await Snapshots(root, tmp_path / "store", SnapshotPolicy(total_bytes=1300)).take()
    assert (info.files, info.bytes) == (2, 1200)
    assert [skip.path for skip in info.skipped] == ["c"]


async def test_a_file_that_never_rests_is_named_not_torn(snapshots: Snapshots, root: Path) -> None:
    (root / "busy").write_bytes(bytes(30 * 1024 * 1024))
    with attacker(_WRITER, root / "busy"):
        # Where the writer has no processor of its own, the file may rest for as long as it is read.
        for _ in range(50):
            info = await snapshots.take()
            if info.skipped:
                break
    assert [(skip.path, skip.why) for skip in info.skipped] == [("busy", "kept changing while it was read")]


_WRITER = """
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY)
print("writing", flush=True)
number = 0
while True:
    number += 1
    os.pwrite(fd, str(number).encode(), number % 30_000_000)
"""


@pytest.mark.parametrize(
    "meddle", [lambda path: path.write_bytes(b"1" * 3_000_000), lambda path: os.truncate(path, 9)]
)
def test_a_file_written_to_while_it_is_read_is_noticed(
    root: Path, tmp_path: Path, meddle: Callable[[Path], object]
) -> None:
    class Meddling(HashingSink):
        def put_stream(self, chunks: Iterator[bytes]) -> str:
            next(chunks)
            meddle(root / "f")
            return super().put_stream(chunks)

    (root / "f").write_bytes(bytes(3_000_000))
    directory = os.open(root, os.O_RDONLY)
    cache = StatCache(tmp_path / "cache", tmp_path)
    try:
        with pytest.raises(FileChanged):
            content_digest(directory, "f", os.lstat(root / "f"), cache, Meddling())
    finally:
        os.close(directory)


async def test_names_that_come_and_go_harm_nothing(snapshots: Snapshots, root: Path) -> None:
    (root / "stays").write_text("x")
    with attacker(_FLICKER, root):
        infos = [await snapshots.take() for _ in range(rounds(20, full=50))]
        last = await snapshots.restore(infos[0].id)
    assert (root / "stays").read_text() == "x"
    assert last.applied
    for info in infos[::10]:
        assert is_whole(snapshots, info.id)


_FLICKER = """
import os, shutil, sys
os.chdir(sys.argv[1])
print("here", flush=True)
number = 0
while True:
    number += 1
    shutil.rmtree(f"d{(number + 3) % 7}", ignore_errors=True)
    try:
        os.makedirs(f"d{number % 7}/e/f", exist_ok=True)
        open(f"d{number % 7}/e/f/{number}", "w").close()
        open(f"g{number % 5}", "w").close()
        os.unlink(f"g{(number + 2) % 5}")
    except OSError:
        pass  # a restoration came between
"""


async def test_a_hard_link_is_never_written_through(snapshots: Snapshots, root: Path, outside: Path) -> None:
    (root / "f").write_bytes(SECRET)
    first = await snapshots.take()
    (root / "f").unlink()
    (outside / "f").chmod(0o600)
    os.link(outside / "f", root / "f")
    await snapshots.take()
    (outside / "f").write_bytes(b"the operator's change")
    await snapshots.restore(first.id)
    assert (root / "f").read_bytes() == SECRET
    assert (outside / "f").read_bytes() == b"the operator's change"
    assert (outside / "f").stat().st_mode & 0o777 == 0o600
    assert (outside / "f").stat().st_nlink == 1


async def test_a_mode_is_not_changed_through_a_hard_link(
    snapshots: Snapshots, root: Path, outside: Path
) -> None:
    (root / "f").write_bytes(SECRET)
    (root / "f").chmod(0o777)
    first = await snapshots.take()
    (root / "f").unlink()
    (outside / "f").chmod(0o600)
    os.link(outside / "f", root / "f")
    assert await is_back(snapshots, first.id)
    assert (outside / "f").stat().st_mode & 0o777 == 0o600


async def test_links_are_kept_as_links_and_lead_nowhere(
    snapshots: Snapshots, root: Path, outside: Path, tmp_path: Path
) -> None:
    os.symlink(outside, root / "dir")
    os.symlink(outside / "f", root / "file")
    info = await snapshots.take()
    assert info.files == 0
    assert hashlib.sha256(SECRET).hexdigest() not in stored(tmp_path)
    for name in ("dir", "file"):
        (root / name).unlink()
        (root / name).mkdir()
        (root / name / "x").write_text("")
    assert await is_back(snapshots, info.id)
    assert os.readlink(root / "dir") == str(outside)
    empty = Snapshots(outside.parent / "root", tmp_path / "store")
    for name in ("dir", "file"):
        (root / name).unlink()
    nothing = await empty.take()
    os.symlink(outside, root / "dir")
    assert (await empty.restore(nothing.id)).removed == ("dir",)
    assert (outside / "f").read_bytes() == SECRET


@pytest.mark.parametrize(
    "raw",
    [b"new\nline", b"\x1b[2J\x1b]52;c;x\x07", b"bad\xff\xfe", b"-rf", b"back\\slash", "\u202egnp".encode()],
)
async def test_any_name_comes_back(snapshots: Snapshots, root: Path, raw: bytes) -> None:
    path = os.fsencode(root) + b"/" + raw
    os.mkdir(path)
    os.symlink(raw, path + b"/link")
    os.close(os.open(path + b"/f", os.O_CREAT | os.O_WRONLY))
    before, first = picture(root), await snapshots.take()
    os.unlink(path + b"/f")
    os.unlink(path + b"/link")
    plan = await snapshots.restore(first.id, dry_run=True)
    assert not any(ord(letter) < 32 for path in plan.written for letter in path)
    assert (await snapshots.restore(first.id, paths=plan.written)).verified
    assert picture(root) == before


async def test_times_beyond_64_bits_are_no_trouble(snapshots: Snapshots, root: Path) -> None:
    (root / "f").write_text("x")
    os.utime(root / "f", (1 << 33, 1 << 33))
    stored_time = (root / "f").stat().st_mtime_ns
    first = await snapshots.take()
    (root / "f").unlink()
    await snapshots.restore(first.id)
    assert (root / "f").stat().st_mtime_ns == stored_time


async def test_a_directory_full_of_names_that_are_not_in_the_snapshot_is_emptied(
    snapshots: Snapshots, root: Path
) -> None:
    (root / "d").mkdir()
    first = await snapshots.take()
    for number in range(3000):
        (root / f"d/{number}").write_text("")
    deep_tree(root / "d", 300, "d" * 100)
    done = await snapshots.restore(first.id)
    assert (len(done.removed), done.verified) == (3001, True)


@pytest.mark.slow
@pytest.mark.parametrize("who", ["root", "an ordinary user"])
def test_a_concurrent_symlink_swapper_gains_nothing(who: str) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root, to shut the swapper in so that it cannot hurt what is outside itself")
    with ordinary_user_directory() as here:
        for name in ("root", "outside"):
            (here / name).mkdir()
        (here / "outside/f").write_bytes(SECRET)
        (here / "outside/planted").write_bytes(b"")
        subprocess.run(["chown", "-R", f"{here.stat().st_uid}:{here.stat().st_gid}", here], check=True)
        with attacker(_SWAPPER, here / "root", here / "outside"):
            seen = run_as_user(here, _ATTACK, drop=who != "root")
        takes, restores, unsettled = map(int, seen.split())
        assert min(takes, restores) > 20
        assert unsettled > 0, "the swapper never came between"
        objects = [path.read_bytes() for path in (here / "store/objects").glob("*/*")]
        assert SECRET not in objects
        assert b"planted" not in b"".join(objects)
        assert sorted(os.listdir(here / "outside")) == ["f", "planted"]
        assert (here / "outside/f").read_bytes() == SECRET


_ATTACK = """
import time
snapshots = Snapshots(here / "root", here / "store")
begun = time.monotonic()
takes = restores = unsettled = 0
ids = []
# A while at least, and as long as it takes to come between; on a crowded machine that is longer.
while (for_s := time.monotonic() - begun) < 2 or (restores <= 20 or not unsettled) and for_s < 60:
    info = await snapshots.take()
    ids.append(info.id)
    takes += 1
    done = await snapshots.restore(ids[takes % len(ids)])
    restores += 1
    unsettled += bool(info.skipped or not done.verified)
print(takes, restores, unsettled)
"""

_SWAPPER = """
import ctypes, os, sys
outside = sys.argv[2]
libc = ctypes.CDLL(None)
uid = os.stat(sys.argv[1]).st_uid
os.chroot(sys.argv[1])
os.chdir("/")
os.setresgid(uid, uid, uid)
os.setresuid(uid, uid, uid)
exchange = lambda a, b: libc.renameat2(-100, a, -100, b, 2)
def lay():
    for name, target in (("l1", "../outside"), ("l2", outside), ("l3", outside + "/f")):
        if not os.path.lexists(name): os.symlink(target, name)
    for name in ("d", "e/d"):
        os.makedirs(name, exist_ok=True)
        if not os.path.lexists(name + "/f"): open(name + "/f", "w").write("inside")
lay()
assert exchange(b"d", b"l1") == exchange(b"d", b"l1") == 0
print("swapping", flush=True)
number = 0
while True:
    number += 1
    for one, other in ((b"d", b"l1"), (b"d/f", b"l3"), (b"d", b"l2"), (b"e/d", b"l2"), (b"e", b"d")):
        exchange(one, other)
        exchange(one, other)
    if number % 50 == 0:
        try: lay()
        except OSError: pass
"""


async def test_directories_moved_during_a_deep_walk_lead_nowhere_else(
    snapshots: Snapshots, root: Path, outside: Path, tmp_path: Path
) -> None:
    """The way up from far below is only taken if it is the way down."""
    (root / "top").mkdir()
    level = root / "top"
    for _ in range(200):
        (level / "f").write_text("inside")
        level = level / "d"
        level.mkdir()
    (outside / "catch").mkdir()
    (outside / "catch/f").write_bytes(SECRET)
    changed = root / "top" / "/".join("d" * 99) / "f"
    first = await snapshots.take()
    restored = []
    with attacker(_MOVER, root, outside):
        while len(restored) < rounds(10, full=25) or (len(set(restored)) < 3 and len(restored) < 500):
            restored.append((await snapshots.take()).id)
            changed.write_text("changed")
            await snapshots.restore(first.id)
    assert len(set(restored)) > 1, "the mover never came between"
    assert hashlib.sha256(SECRET).hexdigest() not in stored(tmp_path)
    assert (outside / "catch/f").read_bytes() == SECRET
    for snapshot in set(restored):
        assert is_whole(snapshots, snapshot)


_MOVER = """
import os, shutil, sys
root, outside = sys.argv[1:]
middle = root + "/top/" + "/".join("d" * 100)
print("moving", flush=True)
while True:
    try:
        os.rename(middle, outside + "/catch/d")
        os.rename(outside + "/catch/d", middle)
    except OSError:  # a restoration came between
        shutil.rmtree(outside + "/catch/d", ignore_errors=True)
"""


async def test_a_leased_file_does_not_hold_the_walk_up(snapshots: Snapshots, root: Path) -> None:
    (root / "leased").write_text("x")
    with attacker(_LEASE, root):
        info = await asyncio.wait_for(snapshots.take(), 30)  # breaking the lease would take 45 s
    assert [skip.path for skip in info.skipped] == ["leased"]


_LEASE = """
import fcntl, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
held = open(sys.argv[1] + "/leased", "r+")
fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
while True: signal.pause()
"""


def test_an_ordinary_user_names_what_it_may_not_read() -> None:
    with ordinary_user_directory() as here:
        out = run_as_user(
            here,
            """
root = here / "root"
(root / "closed").mkdir(parents=True)
(root / "closed/f").write_text("x")
(root / "secret").write_text("x")
(root / "secret").chmod(0)
(root / "closed").chmod(0)
info = await Snapshots(root, here / "store").take()
print([(skip.path, skip.why) for skip in info.skipped], info.files)
""",
        )
        assert out == (
            "[('closed', 'unreadable: Permission denied'), ('secret', 'unreadable: Permission denied')] 0\n"
        )


def test_an_ordinary_user_gets_back_what_was_closed_meanwhile() -> None:
    with ordinary_user_directory() as here:
        out = run_as_user(
            here,
            """
root = here / "root"
(root / "d/e").mkdir(parents=True)
(root / "d/e/f").write_text("kept")
(root / "d/g").write_text("kept")
(root / "ro").mkdir()
(root / "ro/f").write_text("kept")
(root / "ro").chmod(0o555)
snapshots = Snapshots(root, here / "store")
info = await snapshots.take()
(root / "ro").chmod(0o755)
(root / "ro/f").unlink()
(root / "ro").chmod(0o500)
(root / "d/g").chmod(0)
(root / "extra/x/y").mkdir(parents=True)
(root / "extra/x/y/z").write_text("")
(root / "extra/x/y").chmod(0)
(root / "extra/x").chmod(0)
(root / "d/e").chmod(0)
(root / "d").chmod(0)
done = await snapshots.restore(info.id)
print(done.verified, done.failed, oct((root / "ro").stat().st_mode))
print((root / "d/g").read_text(), (root / "ro/f").read_text(), (root / "extra").exists())
""",
        )
        assert out == "True () 0o40555\nkept kept False\n"


def test_what_belongs_to_somebody_else_is_a_failure_with_a_name() -> None:
    if os.getuid() != 0:
        pytest.skip("needs root to make a file of somebody else")
    with ordinary_user_directory() as here:
        (here / "root").mkdir()
        os.chown(here / "root", FREE_UID, FREE_UID)
        run_as_user(here, 'await Snapshots(here / "root", here / "s").take()')
        (here / "root/theirs").mkdir()
        (here / "root/theirs/f").write_text("x")
        out = run_as_user(
            here,
            """
snapshots = Snapshots(here / "root", here / "s")
[info] = kept(snapshots)
done = await snapshots.restore(info.id)
print(done.verified, [(failure.path, failure.why) for failure in done.failed])
""",
        )
        assert out == "False [('theirs', 'could not be removed: Permission denied')]\n"


async def test_a_cancelled_snapshot_leaves_nothing_that_counts(
    snapshots: Snapshots, root: Path, tmp_path: Path
) -> None:
    for number in range(1000):
        (root / str(number)).write_text(str(number))
    taking = asyncio.create_task(snapshots.take())
    while not (tmp_path / "store/passing").is_dir() or not os.listdir(tmp_path / "store/passing"):
        await asyncio.sleep(0)
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taking
    assert kept(snapshots) == []
    assert os.listdir(tmp_path / "store/passing") == []
    # Six threads that press files to the disk stay for the next time; no other ones do.
    assert len([thread for thread in threading.enumerate() if not thread.name.startswith("sync_")]) < 10
    assert threading.active_count() < 16
    assert (await snapshots.take()).files == 1000


async def test_another_file_system_is_not_entered(root: Path, tmp_path: Path) -> None:
    script = f"""
import asyncio, os, subprocess, sys
from pathlib import Path
from engine.sandbox.snapshots.workspace import Snapshots
root = Path({str(root)!r})
(root / "mounted").mkdir()
subprocess.run(["mount", "-t", "tmpfs", "none", root / "mounted"], check=True)
(root / "mounted/f").write_text("x")
async def main():
    snapshots = Snapshots(root, Path({str(tmp_path)!r}) / "store")
    info = await snapshots.take()
    print([skip.why for skip in info.skipped])
asyncio.run(main())
"""
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("needs a mount namespace")
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    done = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", script], capture_output=True, text=True, env=env
    )
    assert done.stdout == "['another file system']\n", done.stderr


async def test_an_aged_tree_still_sees_a_swap_of_equal_files(snapshots: Snapshots, root: Path) -> None:
    for name in ("a", "b"):
        (root / name).write_text(name)
        os.utime(root / name, ns=(5, 5))
    age(root)
    first = await snapshots.take()
    os.rename(root / "a", root / "c")
    os.rename(root / "b", root / "a")
    os.rename(root / "c", root / "b")
    assert (await snapshots.diff(first.id, (await snapshots.take()).id)).changed == ("a", "b")


async def test_a_store_that_cannot_be_made_is_a_clear_error(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SnapshotError, match="cannot be opened"):
        await Snapshots(root, tmp_path / "file/store").take()
