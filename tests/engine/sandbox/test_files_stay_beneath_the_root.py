"""File commands never leave the root: mastermind-and-simple-coder §7 item 50, sandbox spec §6 cases 1-19."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.core.actions import ErrorCode
from engine.sandbox.file_search import search
from engine.sandbox.files import SandboxFiles
from engine.sandbox.paths import KernelOpener, Opener, PathError, WalkOpener, best_opener, refusal
from engine.sandbox.policy import SandboxPolicy

SECRET = "the operator's secret"


@pytest.fixture(params=[KernelOpener, WalkOpener])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    chosen: Opener = request.param()
    if isinstance(chosen, KernelOpener):
        descriptor = os.open(tmp_path, os.O_RDONLY)
        available = isinstance(best_opener(descriptor), KernelOpener)
        os.close(descriptor)
        if not available:
            pytest.skip("this kernel has no openat2")
    return chosen


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    directory = tmp_path / "outside"
    directory.mkdir()
    (directory / "f").write_text(SECRET)
    return directory


@pytest.fixture
def files(tmp_path: Path, outside: Path, opener: Opener) -> Iterator[SandboxFiles]:
    root = tmp_path / "root"
    root.mkdir()
    opened = SandboxFiles(root, SandboxPolicy(read_bytes=1000, write_bytes=1000), opener)
    yield opened
    opened.close()


def refused(error: pytest.ExceptionInfo[PathError]) -> ErrorCode:
    return error.value.code


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/passwd", "//etc/passwd", "..", "a/b/../../../c"])
def test_a_path_that_leaves_the_root_is_outside_root(files: SandboxFiles, path: str) -> None:
    """Behaviour 50."""
    with pytest.raises(PathError, match="outside of the sandbox root") as error:
        files.relative(path)
    assert refused(error) is ErrorCode.OUTSIDE_ROOT


def test_an_absolute_path_below_the_root_becomes_relative(files: SandboxFiles) -> None:
    assert files.relative(f"{files.root}/a/./b", cwd="elsewhere") == "a/b"
    assert files.relative(str(files.root), cwd="elsewhere") == "."


def test_a_sibling_whose_name_begins_like_the_root_is_outside(files: SandboxFiles) -> None:
    with pytest.raises(PathError) as error:
        files.relative(f"{files.root}-other/f")
    assert refused(error) is ErrorCode.OUTSIDE_ROOT


@pytest.mark.parametrize("path", ["", "a\0b", "n" * 256, "d/" * 2500 + "f", "bad\ud800"])
def test_malformed_paths_are_bad_arguments(files: SandboxFiles, path: str) -> None:
    with pytest.raises(PathError) as error:
        files.relative(path)
    assert refused(error) is ErrorCode.BAD_ARGUMENTS


@pytest.mark.parametrize("target", ["../outside/f", "{outside}/f"])
def test_a_link_that_leads_outside_is_refused(files: SandboxFiles, outside: Path, target: str) -> None:
    """Behaviour 50."""
    os.symlink(target.format(outside=outside), files.root / "link")
    with pytest.raises(PathError) as error:
        files.read("link")
    assert refused(error) is ErrorCode.OUTSIDE_ROOT


def test_a_linked_directory_outside_serves_nothing(files: SandboxFiles, outside: Path) -> None:
    os.symlink("../outside", files.root / "d")
    (files.root / "mine").write_text("x")
    for attempt in (
        lambda: files.read("d/f"),
        lambda: files.list("d"),
        lambda: files.write("d/f", b"x"),
        lambda: files.write("d/new", b"x"),
        lambda: files.make_directory("d/new"),
        lambda: files.remove("d/f"),
        lambda: files.move("mine", "d/new"),
        lambda: files.copy("mine", "d/new"),
        lambda: search(files, "secret", "d"),
    ):
        with pytest.raises(PathError) as error:
            attempt()
        assert refused(error) in (ErrorCode.OUTSIDE_ROOT, ErrorCode.EXISTS)
    assert sorted(os.listdir(outside)) == ["f"]
    assert (outside / "f").read_text() == SECRET


def test_a_link_that_stays_beneath_the_root_is_followed(files: SandboxFiles) -> None:
    (files.root / "a/b").mkdir(parents=True)
    (files.root / "a/b/f").write_text("inside")
    os.symlink("a/b", files.root / "l1")
    os.symlink("../../l1/f", files.root / "a/b/l2")
    assert files.read("l1/l2") == "inside"
    assert files.list(".").items == ("a/", "l1/")


def test_an_absolute_link_back_into_the_root_is_refused(files: SandboxFiles) -> None:
    (files.root / "f").write_text("inside")
    os.symlink(files.root / "f", files.root / "link")
    with pytest.raises(PathError):
        files.read("link")


def test_a_loop_of_links_is_a_typed_error(files: SandboxFiles) -> None:
    os.symlink("b", files.root / "a")
    os.symlink("a", files.root / "b")
    with pytest.raises(PathError) as error:
        files.read("a")
    assert refused(error) is ErrorCode.WRONG_TYPE


def test_a_write_through_a_dangling_link_creates_nothing(files: SandboxFiles, outside: Path) -> None:
    os.symlink("../outside/new", files.root / "link")
    with pytest.raises(PathError) as error:
        files.write("link", b"x")
    assert refused(error) is ErrorCode.WRONG_TYPE
    assert not (outside / "new").exists()
    assert (files.root / "link").is_symlink()


def test_removing_a_link_leaves_its_target(files: SandboxFiles, outside: Path) -> None:
    os.symlink("../outside/f", files.root / "link")
    files.remove("link")
    assert not (files.root / "link").is_symlink()
    assert (outside / "f").read_text() == SECRET


def test_the_root_itself_cannot_be_removed_or_written(files: SandboxFiles) -> None:
    for attempt in (lambda: files.remove("."), lambda: files.write(".", b""), lambda: files.move(".", "x")):
        with pytest.raises(PathError) as error:
            attempt()
        assert refused(error) is ErrorCode.NOT_ALLOWED
    assert files.root.is_dir()


def test_a_file_with_a_second_hard_link_is_not_written(files: SandboxFiles, outside: Path) -> None:
    """Behaviour 50."""
    os.link(outside / "f", files.root / "shared")
    with pytest.raises(PathError, match="hard links") as error:
        files.write("shared", b"poison")
    assert refused(error) is ErrorCode.NOT_ALLOWED
    assert (outside / "f").read_text() == SECRET


def test_a_file_with_a_name_outside_is_not_read_searched_copied_or_moved(
    files: SandboxFiles, outside: Path
) -> None:
    """Behaviour 50."""
    (files.root / "d").mkdir()
    os.link(outside / "f", files.root / "d/shared")
    os.link(outside / "f", files.root / "again")
    files.write("own", SECRET.encode())
    for attempt in (
        lambda: files.read("d/shared"),
        lambda: files.read("again"),
        lambda: files.copy("again", "copied"),
        lambda: files.move("again", "moved"),
        lambda: search(files, "secret", "again"),
    ):
        with pytest.raises(PathError, match="3 names \\(hard links\\), so it may belong") as error:
            attempt()
        assert refused(error) is ErrorCode.NOT_ALLOWED
    found = search(files, "secret", ".")
    assert ([name for name, _, _ in found.lines], found.shared) == (["own"], 2)
    assert sorted(os.listdir(files.root)) == ["again", "d", "own"]


def test_special_files_are_refused_at_once(files: SandboxFiles) -> None:
    os.mkfifo(files.root / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(".", os.O_RDONLY)
        os.chdir(files.root)
        try:
            server.bind("socket")
        finally:
            os.fchdir(here)
            os.close(here)
        for name in ("fifo", "socket"):
            with pytest.raises(PathError, match=r"regular file") as error:
                files.read(name)
            assert refused(error) is ErrorCode.WRONG_TYPE
            with pytest.raises(PathError):
                files.write(name, b"x")


def test_directories_and_files_are_not_taken_for_each_other(files: SandboxFiles) -> None:
    (files.root / "d").mkdir()
    (files.root / "f").write_text("x")
    for attempt in (
        lambda: files.read("d"),
        lambda: files.write("d", b"x"),
        lambda: files.remove("d"),
        lambda: files.list("f"),
        lambda: files.make_directory("f"),
        lambda: files.write("f/x", b"x"),
    ):
        with pytest.raises(PathError) as error:
            attempt()
        assert refused(error) is ErrorCode.WRONG_TYPE


def test_a_file_over_the_limit_is_refused_with_its_size(files: SandboxFiles) -> None:
    with open(files.root / "big", "wb") as big:
        big.truncate(200 * 1024 * 1024)
    with pytest.raises(PathError, match=r"200\.0 MiB \(209,715,200 bytes\).*head") as error:
        files.read("big")
    assert refused(error) is ErrorCode.TOO_LARGE


def test_a_file_of_exactly_the_limit_is_read_and_written(files: SandboxFiles) -> None:
    files.write("f", b"x" * 1000)
    assert files.read("f") == "x" * 1000
    with pytest.raises(PathError) as error:
        files.write("f", b"y" * 1001)
    assert refused(error) is ErrorCode.TOO_LARGE
    assert files.read("f") == "x" * 1000


def test_bytes_that_are_no_utf8_are_reported_with_their_offset(files: SandboxFiles) -> None:
    (files.root / "f").write_bytes(b"good" + b"\xff")
    with pytest.raises(PathError, match="0xff at offset 4") as error:
        files.read("f")
    assert refused(error) is ErrorCode.NOT_TEXT


def test_a_write_keeps_the_mode_and_leaves_no_passing_file(files: SandboxFiles) -> None:
    (files.root / "tool.sh").write_text("old")
    (files.root / "tool.sh").chmod(0o750)
    files.write("tool.sh", b"new")
    assert (files.root / "tool.sh").stat().st_mode & 0o777 == 0o750
    assert os.listdir(files.root) == ["tool.sh"]


def test_a_write_makes_the_parents(files: SandboxFiles) -> None:
    files.write("a/b/c.txt", b"deep")
    assert (files.root / "a/b/c.txt").read_bytes() == b"deep"


def test_move_and_copy_overwrite_nothing(files: SandboxFiles) -> None:
    files.write("a", b"a")
    files.write("b", b"b")
    for attempt in (lambda: files.move("a", "b"), lambda: files.copy("a", "b")):
        with pytest.raises(PathError) as error:
            attempt()
        assert refused(error) is ErrorCode.EXISTS
    assert (files.read("a"), files.read("b")) == ("a", "b")


def test_move_into_a_directory_keeps_the_name(files: SandboxFiles) -> None:
    files.write("a", b"a")
    files.make_directory("d")
    assert files.move("a", "d") == "d/a"
    assert files.copy("d/a", "x/y") == "x/y"
    assert files.read("x/y") == "a"
    with pytest.raises(PathError):
        files.move("d", "d/inner")


def test_protected_names_are_nobody_elses(files: SandboxFiles) -> None:
    for path in (".pilothouse/journal.db", ".Pilothouse", "a/../.pilothouse/x"):
        with pytest.raises(PathError) as error:
            files.relative(path)
        assert refused(error) is ErrorCode.NOT_ALLOWED


def test_names_that_are_no_utf8_are_listed_escaped(files: SandboxFiles) -> None:
    os.close(os.open(os.fsencode(files.root) + b"/bad\xff", os.O_CREAT | os.O_WRONLY))
    (files.root / "esc\x1b[2J").write_text("")
    assert files.list(".").items == ("bad\\xff", "esc\\x1b[2J")


def test_find_skips_binaries_links_and_build_folders(files: SandboxFiles, outside: Path) -> None:
    files.write("src/a.py", b"one\nthe needle\n")
    files.write("b.bin", b"\0needle")
    for skipped in (".git/x", "node_modules/x", "__pycache__/x", "env/x", ".home/x"):
        files.write(skipped, b"needle")
    files.write("env/pyvenv.cfg", b"home = /usr/bin")
    os.symlink("../outside/f", files.root / "link")
    assert search(files, "needle", ".").lines == (("src/a.py", 2, "the needle"),)
    assert search(files, "secret", ".").lines == ()


def test_find_goes_down_a_deep_tree_without_recursion(files: SandboxFiles) -> None:
    here = os.open(files.root, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    files.write("f", b"needle")
    assert search(files, "needle", ".").lines == (("f", 1, "needle"),)
    subprocess.run(["rm", "-rf", str(files.root / "d")], check=True)


def test_a_tree_is_removed_however_deep(files: SandboxFiles, outside: Path) -> None:
    here = os.open(files.root, os.O_RDONLY)
    for _ in range(2100):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
        os.symlink(outside, "link", dir_fd=here)
        os.mkdir("other", dir_fd=here)
    os.close(here)
    files.remove_tree("d")
    assert os.listdir(files.root) == []
    assert (outside / "f").read_text() == SECRET


def test_the_slash_is_no_sandbox_root() -> None:
    with pytest.raises(PathError) as error:
        SandboxFiles(Path("/"))
    assert refused(error) is ErrorCode.NOT_ALLOWED


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, ErrorCode.NO_SPACE),
        (errno.EDQUOT, ErrorCode.NO_SPACE),
        (errno.EACCES, ErrorCode.PERMISSION),
        (errno.EROFS, ErrorCode.PERMISSION),
        (errno.EXDEV, ErrorCode.OUTSIDE_ROOT),
        (errno.EIO, ErrorCode.INTERNAL),
    ],
)
def test_system_errors_have_codes(number: int, code: ErrorCode) -> None:
    assert refusal(OSError(number, "x"), "f").code is code


_FULL_DISK = """
import os, subprocess, sys
from pathlib import Path
from engine.sandbox.files import SandboxFiles
from engine.sandbox.paths import PathError
root = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(root)], check=True)
files = SandboxFiles(root)
files.write("f", b"kept")
try:
    files.write("f", b"x" * 200_000)
except PathError as error:
    print(error.code.value, files.read("f"), os.listdir(root))
"""


def test_a_full_disk_is_no_space_and_leaves_the_old_file(tmp_path: Path) -> None:
    if (
        not shutil.which("unshare")
        or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode
    ):
        pytest.skip("needs a mount namespace")
    done = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", _FULL_DISK, str(tmp_path)], capture_output=True, text=True
    )
    assert done.stdout == "no_space kept ['f']\n", done.stderr


_SWAPPER = """
import ctypes, os, sys
os.chdir(sys.argv[1])
os.symlink("../outside", "l1")
os.symlink(sys.argv[2], "l2")
libc = ctypes.CDLL(None)
exchange = lambda a, b: libc.renameat2(-100, a, -100, b, 2)
assert exchange(b"d", b"l1") == exchange(b"d", b"l1") == 0
print("swapping", flush=True)
while True:
    for link in (b"l1", b"l2"):
        exchange(b"d", link)
        exchange(b"d", link)
"""


def test_a_concurrent_symlink_swapper_gains_nothing(files: SandboxFiles, outside: Path) -> None:
    """Behaviour 50."""
    (files.root / "d").mkdir()
    (files.root / "d/f").write_text("inside")
    swapper = subprocess.Popen(
        [sys.executable, "-c", _SWAPPER, str(files.root), str(outside)], stdout=subprocess.PIPE
    )
    seen: set[str] = set()
    outcomes: set[ErrorCode | None] = set()
    stop = threading.Event()

    def keep(attempt: object) -> None:
        while not stop.is_set():
            try:
                attempt()  # type: ignore[operator]
                outcomes.add(None)
            except PathError as error:
                outcomes.add(error.code)

    attempts = (
        lambda: seen.add(files.read("d/f")),
        lambda: files.write("d/f", b"inside"),
        lambda: files.write("d/g", b"inside"),
        lambda: seen.update(name for name in files.list("d").items if name == "planted"),
    )
    (outside / "planted").write_text("")
    threads = [threading.Thread(target=keep, args=(attempt,)) for attempt in attempts]
    assert swapper.stdout is not None
    assert swapper.stdout.readline()
    try:
        for thread in threads:
            thread.start()
        time.sleep(2)  # the length of the attack, not a wait for something
        stop.set()
        for thread in threads:
            thread.join()
    finally:
        swapper.kill()
        swapper.wait()
        swapper.stdout.close()

    assert seen == {"inside"}
    assert None in outcomes
    assert len(outcomes) > 1, "the swapper never came between"
    assert sorted(os.listdir(outside)) == ["f", "planted"]
    assert (outside / "f").read_text() == SECRET
