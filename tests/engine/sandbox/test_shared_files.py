"""A root that shares files with another place is reported: sandbox spec §6 case 16."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.cli.doctor import check_installation
from engine.core.actions import ErrorCode
from engine.sandbox.file_search import shared_files
from engine.sandbox.files import SANDBOX_DIRECTORY, SandboxFiles
from engine.sandbox.paths import PathError
from engine.sandbox.policy import SandboxPolicy


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / SANDBOX_DIRECTORY
    (made / "a/b").mkdir(parents=True)
    (tmp_path / "outside").write_text("x")
    return made


def test_files_with_several_names_are_named(root: Path) -> None:
    (root / "alone").write_text("x")
    for name in ("a/b/one", "a/two", "esc\x1b[2J", "z"):
        (root / name).hardlink_to(root.parent / "outside")
        assert shared_files(SandboxFiles(root)).count == 1
    (root.parent / "other").write_text("x")
    (root / "a/other").hardlink_to(root.parent / "other")
    shared = shared_files(SandboxFiles(root))
    assert (shared.count, shared.examples, shared.whole) == (2, ["a/b/one", "a/other"], True)


def test_links_lead_nowhere_and_the_limits_hold(root: Path) -> None:
    (root / "up").symlink_to("..")
    (root / "f").symlink_to("../outside")
    os.link(root.parent / "outside", root.parent / "other")
    assert shared_files(SandboxFiles(root)).count == 0
    for number in range(20):
        (root / f"a/{number}").mkdir()
    assert not shared_files(SandboxFiles(root, SandboxPolicy(disk_entries=10))).whole


async def test_doctor_reports_what_a_program_could_change_outside(root: Path) -> None:
    _, answer, text = await check_installation(root.parent)
    assert answer["root"]["ok"]
    (root / "a/shared").hardlink_to(root.parent / "outside")
    _, answer, text = await check_installation(root.parent)
    assert not answer["root"]["ok"]
    assert "1 of its files have several names" in text
    assert "a/shared" in text


async def test_a_root_that_is_a_link_is_refused_and_reported(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / SANDBOX_DIRECTORY).symlink_to("elsewhere")
    with pytest.raises(PathError) as error:
        SandboxFiles(tmp_path / SANDBOX_DIRECTORY)
    assert error.value.code is ErrorCode.NOT_ALLOWED
    _, answer, _ = await check_installation(tmp_path)
    assert "symbolic link" in answer["root"]["reason"]
