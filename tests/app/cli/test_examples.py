"""`pilothouse examples`: what is shipped can be copied, runs as it says, and overwrites nothing unasked."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli.examples import copy_example, load_examples
from app.cli.main import main
from tests.patience import PATIENCE_S
from tests.trusting import home


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["fleet", "greeting", "mcp", "recipe"])
def test_an_example_runs_by_the_lines_that_it_names(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The campaign on `sample` runs in tests/engine/improve."""
    assert main(["examples", "copy", name, "ws", "--json"]) == 0
    lines = json.loads(capsys.readouterr().out)["next"]
    assert main(["do", "--workspace", "ws", "agent_create bdi_agent pilot-1"]) == 0
    for line in lines:
        bar = ["pilothouse", "do", "--workspace", "ws", line.removeprefix(": ")]
        assert main((bar if line.startswith(": ") else shlex.split(line))[1:]) == 0, line
    assert "restricted" not in capsys.readouterr().err
    told = {"fleet": "writer-5/hello.txt", "recipe": "CHANGELOG.md"}
    assert (Path("ws/sandbox") / told.get(name, "")).exists()


def test_the_plug_in_installs_and_its_command_is_there(tmp_path: Path) -> None:
    copy_example("plugin", tmp_path / "ws")
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--target", str(tmp_path / "site"))
    pip = [sys.executable, "-m", "pip", "install", *offline, str(tmp_path / "ws/shout")]
    subprocess.run(pip, check=True, capture_output=True)
    do = [sys.executable, "-m", "app.cli.main", "do", "--dry-run", "shout list the files"]
    path = os.pathsep.join((str(tmp_path / "site"), str(Path(__file__).parents[3])))
    done = subprocess.run(
        do,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        timeout=PATIENCE_S,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "LIST THE FILES" in done.stdout


def test_nothing_is_overwritten_unless_that_is_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bob.asl").write_text("mine")
    assert main(["examples", "copy", "greeting"]) == 2
    assert "bob.asl exists, so nothing was copied: --force" in capsys.readouterr().err
    assert not (tmp_path / "ann.asl").exists()
    assert main(["examples", "copy", "greeting", "--force"]) == 0
    assert (tmp_path / "bob.asl").read_text() == load_examples()["greeting"].files["bob.asl"]


def test_no_link_leads_out_of_the_workspace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What an agent may have put into its sandbox."""
    (tmp_path / "ws/sandbox").mkdir(parents=True)
    (tmp_path / "ws/sandbox/sample").symlink_to(home().parent)
    assert main(["examples", "copy", "sample", "ws", "--force"]) == 2
    assert "sample cannot be copied into" in capsys.readouterr().err
    assert not (tmp_path / "README.md").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["copy", "flet"], "did you mean fleet?"),
        (["copy", "zzz"], "examples: acp, code-review, fleet"),
        (["copy"], "copy takes a NAME"),
        (["list", "fleet"], "list takes no NAME"),
    ],
)
def test_what_cannot_be_copied_is_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["examples", *words]) == 2
    assert said in capsys.readouterr().err
    assert not [path for path in Path().iterdir() if path.name != "home"]


def test_a_crew_is_copied_built_and_begun_by_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["examples", "copy", "writing", "ws"]) == 0
    do = ["do", "--workspace", "ws", "--json"]
    assert main([*do, "mission writing"]) == 1
    assert "there is no model" in capsys.readouterr().out
    home().mkdir(exist_ok=True)
    (home() / "pilothouse.toml").write_text("[model]\nrecorded_pace = 0\n")
    assert main(["do", "--workspace", "ws", "mission demo-writing"]) == 0
    printed = capsys.readouterr()
    assert "2 of 2 succeeded" in printed.out
    Path("ws/skills/line-editor/SKILL.md").unlink()
    assert main([*do, "mission demo-writing"]) == 1
    assert "line-editor" in capsys.readouterr().out
