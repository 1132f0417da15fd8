"""A backup is taken while agents run, and a workspace made of it is sound and goes on."""

from __future__ import annotations

import gzip
import io
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from app.cli.archives import ExportError, write_backup
from app.cli.backup import back_up
from app.cli.sessions import query_sessions
from app.commands.headless import RunOptions, run_goal
from app.commands.settings import Settings
from engine.api.engine import Engine
from engine.core import commands as cmd


async def run(workspace: Path, goal: str) -> str:
    result = await run_goal(RunOptions(workspace, goal), out=io.StringIO(), err=io.StringIO())
    return str(result["status"])


async def test_a_backup_taken_while_an_engine_writes_is_restored_and_goes_on(tmp_path):
    work, back, file = tmp_path / "work", tmp_path / "back", tmp_path / "b.tar.gz"
    (work / "sandbox").mkdir(parents=True)
    (work / "sandbox" / "big.txt").write_text("line\n" * 40_000)
    for goal in ("read big.txt", "write hello to a.txt"):
        assert await run(work, goal) == "GOAL_ACHIEVED"
    engine = await Engine.open(work, config=Settings.load(work).engine_config())
    await engine.submit(cmd.AddNote(agent="pilot-1", text="before the backup"))

    code, answer, words = await back_up(work, file, restore=False)

    assert code == 0, words
    await engine.submit(cmd.AddNote(agent="pilot-1", text="behind it"))
    await engine.close()
    code, restored, words = await back_up(back, file, restore=True)
    assert code == 0, words
    assert restored["head"] == answer["head"]
    assert (await query_sessions(back, "verify", ""))[0] == 0
    assert (await query_sessions(back, "replay", ""))[0] == 0
    shown = (await query_sessions(back, "show", "pilot-1"))[2]
    assert "before the backup" in shown
    assert "behind it" not in shown
    names = {path.name for path in (back / ".pilothouse" / "snapshots" / "snapshots").iterdir()}
    assert names
    assert names <= {path.name for path in (work / ".pilothouse" / "snapshots" / "snapshots").iterdir()}
    assert await run(back, "list the files") == "GOAL_ACHIEVED"


async def test_nothing_is_restored_over_data_or_from_a_damaged_file(tmp_path):
    work, file = tmp_path / "work", tmp_path / "b.tar.gz"
    assert await run(work, "list the files") == "GOAL_ACHIEVED"
    write_backup(work, file)
    assert "is there already" in (await back_up(work, file, restore=True))[2]
    content = bytearray(gzip.decompress(file.read_bytes()))
    place = content.index(b"list the files")
    content[place] ^= 1
    (tmp_path / "bad.tar.gz").write_bytes(gzip.compress(bytes(content)))

    code, _, words = await back_up(tmp_path / "new", tmp_path / "bad.tar.gz", restore=True)

    assert code == 2
    assert "is damaged" in words
    assert list((tmp_path / "new").iterdir()) == []
    with pytest.raises(ExportError, match="exists already"):
        write_backup(work, file)


@pytest.mark.parametrize("whose", ["mine", "another user's", "another's journal in mine"])
async def test_a_restored_journal_is_the_users_own_only_from_the_users_own_backup(
    tmp_path, monkeypatch, whose
):
    work, file, back = tmp_path / "work", tmp_path / "b.tar.gz", tmp_path / "back"
    home = tmp_path / "home"
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "other" if whose != "mine" else home))
    assert await run(work, "list the files") == "GOAL_ACHIEVED"
    if whose == "another's journal in mine":
        monkeypatch.setenv("PILOTHOUSE_HOME", str(home))
    assert (await back_up(work, file, restore=False))[0] == 0
    monkeypatch.setenv("PILOTHOUSE_HOME", str(home))

    assert (await back_up(back, file, restore=True))[0] == 0

    trust = Settings.load(back).trust
    assert trust is not None
    assert trust.foreign is (whose != "mine")


async def test_what_was_put_beside_the_events_of_a_backup_is_not_restored(tmp_path):
    work, file, back = tmp_path / "work", tmp_path / "b.tar.gz", tmp_path / "back"
    assert await run(work, "list the files") == "GOAL_ACHIEVED"
    with closing(sqlite3.connect(work / ".pilothouse" / "journal.db", isolation_level=None)) as database:
        database.execute("create trigger planted after insert on events begin delete from meta; end")
    await back_up(work, file, restore=False)

    assert (await back_up(back, file, restore=True))[0] == 0

    with closing(sqlite3.connect(back / ".pilothouse" / "journal.db")) as database:
        assert database.execute("select count(*) from sqlite_schema where type = 'trigger'").fetchone() == (
            0,
        )
        assert database.execute("select count(*) from snapshots").fetchone() == (0,)
