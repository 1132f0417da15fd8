"""A cache may never stop anybody: it is built again whatever was done to it, and that is told."""

from __future__ import annotations

import io
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from app.commands.command_runner import run_command
from app.commands.headless import RunOptions, run_goal
from app.commands.settings import Settings
from engine.api.engine import Engine


@pytest.fixture
async def workspace(tmp_path: Path) -> Path:
    options = RunOptions(tmp_path / "w", "list the files")
    assert (await run_goal(options, out=io.StringIO(), err=io.StringIO()))["status"] == "GOAL_ACHIEVED"
    return tmp_path / "w"


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(statement).rowcount
        connection.commit()


async def test_one_bad_byte_in_a_kept_state_ends_neither_do_nor_run(workspace):
    journal = workspace / ".pilothouse" / "journal.db"
    change(journal, "update snapshots set state = cast(x'ff' || cast(state as blob) as text)")
    code, _, words = await run_command(workspace, "status", agent="", quiet=True)
    assert (code, "pilot-1" in words) == (0, True)
    change(journal, "update snapshots set state = cast(x'ff' || cast(state as blob) as text)")
    options = RunOptions(workspace, "list the files")
    assert (await run_goal(options, out=io.StringIO(), err=io.StringIO()))["status"] == "GOAL_ACHIEVED"


def linked(path: Path) -> None:
    (path.parent.parent / "mine").write_text("precious")
    path.unlink()
    path.symlink_to(path.parent.parent / "mine")


DAMAGE: dict[str, Callable[[Path], object]] = {
    "changed and still a sound database": lambda path: change(path, "update operations set seq = seq + 1000"),
    "another schema": lambda path: change(path, "update meta set value = '0' where key = 'format'"),
    "no database": lambda path: path.write_bytes(b"\xff" * 9_000),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:5_000]),
    "another file": lambda path: shutil.copy(path.with_name("journal.db"), path),
    "a directory": lambda path: (path.unlink(), path.mkdir()),
    "a link": linked,
}


@pytest.mark.parametrize("how", DAMAGE)
async def test_memory_is_built_again_whatever_was_done_to_its_tables(workspace, how):
    path = workspace / ".pilothouse" / "memory.db"
    with closing(sqlite3.connect(path)) as connection:
        before = connection.execute("select number, seq from operations order by number").fetchall()
    assert before
    DAMAGE[how](path)

    engine = await Engine.open(workspace, config=Settings.load(workspace).engine_config())
    await engine.memory.ready()
    told = [words for words in engine.health.states if "memory.db could not be used" in words]
    await engine.close()

    assert len(told) == 1
    with closing(sqlite3.connect(path)) as connection:
        after = connection.execute("select number, seq from operations order by number").fetchall()
    assert after[: len(before)] == before
    if how == "a link":
        assert (workspace / "mine").read_text() == "precious"
