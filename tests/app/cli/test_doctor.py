"""What `pilothouse doctor` and the settings say about snapshots and the model."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.cli.doctor import check_installation
from app.commands.headless import RunOptions, run_goal
from app.commands.settings import Settings
from engine.agent.actions.snapshots import SnapshotRule
from tests.messages_server import MessagesServer, Reply, failure
from tests.trusting import trust_folder

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))


async def test_the_doctor_says_where_snapshots_lie_and_how_much_room_they_take(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    hostile = workspace / "sandbox" / "__pycache__" / "\x1b[31mred"
    hostile.parent.mkdir(parents=True)
    hostile.write_text("left out")
    _code, before, _text = await check_installation(workspace)
    assert (before["snapshots"]["kept"], before["snapshots"]["bytes"]) == (0, 0)
    options = RunOptions(workspace, goal="create a directory named 'made'", quiet=True)
    await run_goal(options, out=io.StringIO(), err=io.StringIO())
    code, after, text = await check_installation(workspace)
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
    trust_folder(tmp_path / "ws")
    settings = Settings.load(tmp_path / "ws")
    assert (settings.engine_config().snapshots, len(settings.problems)) == (rule, problems)


@pytest.mark.parametrize(
    ("user", "local", "repairs", "problem"),
    [
        ("", "", 2, ""),
        ("[model]\nrepairs = 5\n", "[model]\nrepairs = 0\n", 0, ""),
        ("[model]\nrepairs = 5\n", '[model]\nname = "qwen3:4b"\n', 5, ""),
        ("", "[model]\nrepairs = 11\n", 2, "pilothouse.toml: model.repairs: "),
        ("", "[model]\nrepairs = true\n", 2, "pilothouse.toml: model.repairs: "),
        ("", '[model]\nrepairs = "often"\n', 2, "pilothouse.toml: model.repairs: "),
    ],
)
async def test_how_often_a_model_may_repair_is_a_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: str, local: str, repairs: int, problem: str
) -> None:
    """Behaviour 30."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    for directory, text in ((tmp_path / "home", user), (tmp_path / "ws", local)):
        directory.mkdir()
        (directory / "pilothouse.toml").write_text(text)
    trust_folder(tmp_path / "ws")
    settings = Settings.load(tmp_path / "ws")
    assert settings.model is not None
    assert settings.model.repairs == repairs
    assert [said.startswith(problem) for said in settings.problems] == ([True] if problem else [])
    _code, answer, text = await check_installation(tmp_path / "ws")
    assert answer["model"]["repairs"] == repairs
    assert f"repairs {repairs}" in text


async def test_the_model_is_asked_for_a_word_only_when_that_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _code, answer, _text = await check_installation(tmp_path)
    assert "ANTHROPIC_API_KEY" in answer["model"]["reason"]
    assert (await check_installation(tmp_path, ask_model=True))[0] == 1
    async with MessagesServer([Reply(text="ready"), failure(401, "authentication_error")]) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        code, answer, _text = await check_installation(tmp_path)
        assert (code, answer["model"]["thinker"], server.requests) == (0, "claude", [])
        code, answer, _text = await check_installation(tmp_path, ask_model=True)
        assert (code, len(server.requests)) == (0, 1)
        assert "answered in" in answer["model"]["reason"]
        code, answer, _text = await check_installation(tmp_path, ask_model=True)
        assert (code, answer["model"]["ok"]) == (1, False)
        assert "ANTHROPIC_API_KEY" in answer["model"]["reason"]


async def test_the_doctor_at_the_command_line_makes_one_tiny_call(tmp_path: Path) -> None:
    async with MessagesServer([Reply(text="ready")]) as server:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PILOTHOUSE_MODEL": "qwen3:4b"}
        environment["ANTHROPIC_BASE_URL"] = server.url

        async def doctor(*words: str) -> tuple[int, dict[str, Any]]:
            argv = (
                sys.executable,
                "-m",
                "app.cli.main",
                "doctor",
                "--json",
                "--workspace",
                str(tmp_path),
                *words,
            )
            asked = await asyncio.create_subprocess_exec(*argv, env=environment, stdout=subprocess.PIPE)
            printed, _ = await asked.communicate()
            return asked.returncode or 0, json.loads(printed.splitlines()[-1])["model"]

        code, model = await doctor()
        assert (code, model["model"], model["endpoint"]) == (0, "qwen3:4b", server.url.partition("//")[2])
        assert server.requests == []
        code, model = await doctor("--model")
        assert (code, model["ok"]) == (0, True)
        assert "answered in" in model["reason"]
        (request,) = server.requests
        assert (request.body["model"], request.body["max_tokens"]) == ("qwen3:4b", 16)
        assert len(request.said()) < 400
