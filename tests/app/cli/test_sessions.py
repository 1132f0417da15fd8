"""Looking at sessions: whole and cut-off ones, by name, while an engine runs, and replayed."""

from __future__ import annotations

import io
import re
import tarfile
from pathlib import Path

import pytest

from app.cli.open import keep
from app.cli.sessions import query_sessions
from app.commands.headless import open_engine
from engine.core import commands as cmd
from engine.core.journal import JournalMissing


async def _two_sessions(workspace: Path) -> list[str]:
    names = []
    for agent in ("first", "second"):
        async with open_engine(workspace) as engine:
            names.append(engine.session)
            await engine.submit(cmd.CreateAgent(agent=agent))
            await engine.submit(cmd.Believe(agent=agent, key="sky", value="blue"))
    return names


async def test_sessions_are_listed_with_their_events(tmp_path: Path) -> None:
    names = await _two_sessions(tmp_path)
    _code, answer, text = await query_sessions(tmp_path, "list", "")
    rows = answer["sessions"]
    assert [row["session"] for row in rows] == names
    assert all(row["closed"] for row in rows)
    _code, verified, _text = await query_sessions(tmp_path, "verify", "")
    assert sum(row["events"] for row in rows) == verified["events"]
    assert len(text.splitlines()) == 2


async def test_a_session_is_shown_by_the_beginning_of_its_name(tmp_path: Path) -> None:
    names = await _two_sessions(tmp_path)
    code, answer, _text = await query_sessions(tmp_path, "show", names[0])
    assert (code, answer["session"]) == (0, names[0])
    assert any("agent first created" in line for line in answer["lines"])
    assert not any("second" in line for line in answer["lines"])
    code, newest, _text = await query_sessions(tmp_path, "show", "")
    assert newest["session"] == names[1]


async def test_an_agent_is_shown_over_all_sessions(tmp_path: Path) -> None:
    await _two_sessions(tmp_path)
    _code, answer, _text = await query_sessions(tmp_path, "show", "first")
    assert answer["agent"] == "first"
    assert answer["events"] == 6


@pytest.mark.parametrize("what", ["show", "replay"])
async def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path: Path, what: str) -> None:
    await _two_sessions(tmp_path)
    code, _answer, text = await query_sessions(tmp_path, what, "third")
    assert code == 2
    assert "first, second" in text


async def test_a_session_that_runs_can_be_looked_at_and_replayed(tmp_path: Path) -> None:
    async with open_engine(tmp_path) as engine:
        await engine.submit(cmd.CreateAgent(agent="pilot"))
        await engine.submit(cmd.AdoptGoal(agent="pilot", text="list the files"))
        _code, listed, _text = await query_sessions(tmp_path, "list", "")
        assert listed["sessions"][0]["closed"] is None
        code, answer, _text = await query_sessions(tmp_path, "replay", "pilot")
        assert (code, answer["matches"], answer["differences"]) == (0, True, [])


async def test_a_workspace_without_agents_replays_to_nothing(tmp_path: Path) -> None:
    async with open_engine(tmp_path):
        pass
    code, answer, text = await query_sessions(tmp_path, "replay", "")
    assert (code, answer["matches"], text) == (0, True, "no agent has acted yet")


async def test_where_there_is_no_journal_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(JournalMissing, match="There is no journal"):
        await query_sessions(tmp_path, "list", "")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_export_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.tar.gz"
    wrong.write_bytes(b"no archive")
    assert keep(wrong, tmp_path / "there")[0] == 2
    for name in ("../out", "/etc/passwd", ".pilothouse/lock", ".pilothouse/blobs/../../out"):
        with tarfile.open(wrong, "w:gz") as archive:
            member = tarfile.TarInfo(name)
            member.size = 1
            archive.addfile(member, io.BytesIO(b"x"))
        code, _answer, text = keep(wrong, tmp_path / "there")
        assert code == 2
        assert "does not belong in an export" in text
    assert list(tmp_path.iterdir()) == [wrong]


async def test_memorys_stream_is_verified_with_the_rest_and_is_no_agents(tmp_path: Path) -> None:
    await _two_sessions(tmp_path)
    async with open_engine(tmp_path) as engine:
        await engine.submit(cmd.AdoptGoal(agent="first", text="list the files"))
    code, answer, text = await query_sessions(tmp_path, "replay", "")
    assert (code, answer["matches"], answer["skipped"]) == (0, True, ["workspace@memory"])
    # How far the agent came before the end, and so how much was remembered, is open.
    assert re.search(r"^workspace@memory: \d+ events, not replayed", text, re.M)
    code, answer, text = await query_sessions(tmp_path, "replay", "first")
    assert (code, answer["skipped"]) == (0, [])
    _code, _answer, text = await query_sessions(tmp_path, "replay", "workspace@memory")
    assert text.endswith("agents: first, second")
    _code, verified, _text = await query_sessions(tmp_path, "verify", "")
    assert verified["ok"]
