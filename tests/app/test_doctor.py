"""What `pilothouse doctor` and the settings say about snapshots."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from app.doctor import examine
from app.headless import RunOptions, run_goal
from app.settings import Settings
from engine.actions import SnapshotRule
from tests.messages_server import MessagesServer, Reply, failure


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))


async def test_the_doctor_says_where_snapshots_lie_and_how_much_room_they_take(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    hostile = workspace / "sandbox" / "__pycache__" / "\x1b[31mred"
    hostile.parent.mkdir(parents=True)
    hostile.write_text("left out")
    _code, before, _text = await examine(workspace)
    assert (before["snapshots"]["kept"], before["snapshots"]["bytes"]) == (0, 0)
    options = RunOptions(workspace, goal="create a directory named 'made'", quiet=True)
    await run_goal(options, out=io.StringIO(), err=io.StringIO())
    code, after, text = await examine(workspace)
    found = after["snapshots"]
    assert (code, found["rule"], found["kept"]) == (0, "required", 1)
    assert found["bytes"] == 512 * sum(
        path.lstat().st_blocks for path in (workspace / ".pilothouse" / "snapshots").rglob("*")
    )
    assert found["place"] == str(workspace / ".pilothouse" / "snapshots")
    assert "the newest leaves out __pycache__: a cache" in text


@pytest.mark.parametrize(
    ("user", "local", "rule", "problems"),
    [
        ("", "", SnapshotRule.REQUIRED, 0),
        ('[sandbox]\nsnapshots = "off"\n', "", SnapshotRule.OFF, 0),
        ('[sandbox]\nsnapshots = "off"\n', '[sandbox]\nsnapshots = "required"\n', SnapshotRule.REQUIRED, 0),
        ("", '[sandbox]\nsnapshots = "sometimes"\n', SnapshotRule.REQUIRED, 1),
    ],
)
def test_the_workspaces_setting_comes_before_the_users(
    tmp_path: Path, user: str, local: str, rule: SnapshotRule, problems: int
) -> None:
    for directory, text in ((tmp_path / "home", user), (tmp_path / "ws", local)):
        directory.mkdir()
        (directory / "pilothouse.toml").write_text(text)
    settings = Settings.load(tmp_path / "ws")
    assert (settings.engine_config().snapshots, len(settings.problems)) == (rule, problems)


async def test_the_model_is_asked_for_a_word_only_when_that_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _code, answer, _text = await examine(tmp_path)
    assert "ANTHROPIC_API_KEY" in answer["model"]["reason"]
    assert (await examine(tmp_path, ask_model=True))[0] == 1
    async with MessagesServer([Reply(text="ready"), failure(401)]) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        code, answer, _text = await examine(tmp_path)
        assert (code, answer["model"]["thinker"], server.requests) == (0, "claude", [])
        code, answer, _text = await examine(tmp_path, ask_model=True)
        assert (code, len(server.requests)) == (0, 1)
        assert "answered in" in answer["model"]["reason"]
        code, answer, _text = await examine(tmp_path, ask_model=True)
        assert (code, answer["model"]["ok"]) == (1, False)
