"""`pilothouse demo` without a terminal: what it lists, what it plays, what it leaves."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from app.cli.main import main


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-never-asked")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")


def test_without_a_scene_it_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scenes"] == [
        *("debate", "review", "canvas", "model", "opencode", "campaign"),
        *("code-review", "incident", "product-decision", "research", "writing", "all"),
    ]


def test_a_scene_is_played_from_its_recording_whatever_model_is_set(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["demo", "review"]) == 0
    said = capsys.readouterr().out
    assert "Recorded" in said
    assert "3 of 3 succeeded" in said
    assert main(["demo", "canvas"]) == 0  # it waits for its operator
    assert "For whom is this?" in capsys.readouterr().out
    assert not [*tmp_path.glob("pilothouse-demo-*")]


@pytest.mark.parametrize(
    "words", [["nosuch"], ["--pace", "-1"], ["--pace", "9999999"], ["all", "--pace", "x"]]
)
def test_what_is_no_scene_or_no_pace_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(["demo", *words])
    except SystemExit as refused:
        code = int(refused.code or 0)
    assert code == 2
    assert capsys.readouterr().err


def test_run_says_how_work_of_a_crew_is_begun(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--mission", "demo-debate"]) == 2
    assert "pilothouse do 'mission demo-debate'" in capsys.readouterr().err


def test_a_scene_of_the_crew_needs_no_agent_and_its_session_verifies(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "pilothouse.toml").write_text("[model]\nrecorded_pace = 0\n")
    where = ["--workspace", str(tmp_path / "ws")]
    (tmp_path / "ws").mkdir()
    assert main(["do", "mission demo-review", *where]) == 0
    assert main(["sessions", "verify", *where]) == 0
    assert main(["sessions", "replay", *where]) == 0
    assert "3 of 3 succeeded" in capsys.readouterr().out
