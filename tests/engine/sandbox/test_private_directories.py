"""HOME and TMPDIR of programs, whatever a program has put in their places."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from engine.sandbox.files import SandboxFiles


def wrong(place: Path, outside: Path, how: str) -> None:
    """Put something in the place of the directory."""
    if how == "link":
        place.symlink_to(outside)
    elif how == "dangling":
        place.symlink_to(outside / "none")
    elif how == "loop":
        place.symlink_to(place.name)
    elif how == "file":
        place.write_text("kept")
    elif how == "fifo":
        os.mkfifo(place)
    else:
        place.mkdir()
        place.chmod(int(how, 8))


@pytest.mark.parametrize("how", ["link", "dangling", "loop", "file", "fifo", "000", "777", "4755"])
def test_a_wrong_home_is_replaced(tmp_path, how):
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir(mode=0o755)
    wrong(root / ".home", outside, how)
    files = SandboxFiles(root)

    files.private_directory(".home")

    status = (root / ".home").lstat()
    assert stat.S_ISDIR(status.st_mode)
    assert stat.S_IMODE(status.st_mode) == 0o700
    assert stat.S_IMODE(outside.stat().st_mode) == 0o755
    assert list(outside.iterdir()) == []
    asides = [path.read_text() for path in root.iterdir() if ".aside-" in path.name]
    assert asides == (["kept"] if how == "file" else [])
