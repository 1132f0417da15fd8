"""`build`, `agents` and `agent_remove` at the command line: what a person and a program are told."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from app.cli.main import main
from app.commands.headless import open_engine
from engine.agent.shared import EngineConfig
from engine.crew.builder.findings import Status
from engine.crew.builds import PendingBuild
from tests.engine.crew.builder.corpus import laid, lay, plain, skill


def run(capsys: pytest.CaptureFixture[str], line: str, *options: str) -> tuple[int, str, str]:
    try:
        code = main(["do", line, *options])
    except SystemExit as error:
        code = int(str(error.code))
    out, err = capsys.readouterr()
    return code, out, err


def test_an_agent_is_built_listed_and_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    laid(tmp_path, "comma-tools")
    code, out, _ = run(capsys, "build comma-tools")
    assert (code, "built comma-tools 1.0.0 (operator) in " in out.splitlines()[0]) == (0, True)
    code, out, _ = run(capsys, "build comma-tools", "--json")
    said = json.loads(out.splitlines()[-1])
    assert (code, said["agent"], said["version"]) == (0, "comma-tools", "1.0.0")
    assert [phase["number"] for phase in said["phases"]] == [1]
    assert "comma-tools 1.0.0 (operator) is up to date" in said["message"]
    agents = json.loads(run(capsys, "agents", "--json")[1])["agents"]
    assert "comma-tools" in [one["id"] for one in agents]
    code, _, err = run(capsys, "agent_remove comma-tool")
    assert (code, "the nearest: comma-tools" in err) == (2, True)
    assert run(capsys, "agent_remove comma-tools")[0] == 0
    listed = json.loads(run(capsys, "agents", "--json")[1])["agents"]
    assert [one["id"] for one in listed][:2] == ["bmc-wizard", "decision-debate"]


def test_the_deprecated_subcommand_does_the_same_and_says_what_replaces_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    laid(tmp_path, "comma-tools")
    assert main(["agent", "build", "comma-tools", "--type", "role", "--dry-run"]) == 0
    out, err = capsys.readouterr()
    assert "comma-tools 1.0.0 (role) would be built" in out
    assert "pilothouse do 'build comma-tools --type role --dry-run'" in err
    assert main(["agent", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["agents"]
    assert main(["agent", "remove", "comma-tools"]) == 2


def test_what_fails_is_told_in_lines_with_phase_place_and_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lay(tmp_path / "bad", {"SKILL.md": b"---\nname: bad\nname: bad\ndescription: \x1b[31m\n---\n"})
    code, out, _ = run(capsys, "build bad")
    assert code == 1
    assert out.splitlines()[0].endswith("failed in phase 1, SKILL analysis")
    assert "\x1b" not in out
    code, out, _ = run(capsys, "build nowhere")
    assert (code, "nowhere is no folder with a SKILL.md" in out) == (1, True)
    lay(tmp_path / "new", {"SKILL.md": skill("name: new\ndescription: Replace with description")})
    code, out, _ = run(capsys, "build new")
    assert (code, out.splitlines()[1]) == (
        1,
        "  SKILL.md:3: error PLACEHOLDER: the description is still the template's "
        "(say what it does and when to use it)",
    )
    assert run(capsys, "build")[0] == 2
    assert run(capsys, "build bad --type gizmo")[0] == 1


def test_a_workspace_that_cannot_be_used_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lay(tmp_path / "x", {"SKILL.md": skill(plain("x"))})
    lay(tmp_path / "ws", {"agents": b"a file"})
    code, out, _ = run(capsys, "build x", "--workspace", "ws", "--json")
    [error] = json.loads(out.splitlines()[-1])["errors"]
    assert (code, error["code"], error["where"].endswith("ws/agents")) == (1, "IO", True)
    assert list((tmp_path / "ws" / ".builds").glob("*.json")) == []
    assert run(capsys, "agents", "--workspace", "ws")[0] == 0
    lay(tmp_path / "other", {".builds": b"a file"})
    code, _, err = run(capsys, "agent_remove x", "--workspace", "other")
    assert (code, err.count("\n")) == (2, 1)
    assert run(capsys, "build x", "--workspace", "other")[0] == 1


async def test_a_skill_where_agents_can_write_is_asked_about_first(tmp_path: Path) -> None:
    folder = lay(tmp_path / "sandbox" / "x", {"SKILL.md": skill(plain("x"))})
    async with open_engine(tmp_path, EngineConfig()) as engine:
        builds = (await engine.crew()).builds
        assert builds is not None
        asked = await builds.build(PendingBuild(folder, dry_run=True))
        assert (asked.status, asked.choice.key) == (Status.NEEDS_OPERATOR, "trust")
        trusted = await builds.build(
            PendingBuild(folder, dry_run=True, trust=True, overrides={"type": "role"})
        )
        assert (trusted.status, trusted.spec.type) == (Status.DRY_RUN, "role")


def test_a_workspace_that_is_open_elsewhere_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    laid(tmp_path, "comma-tools")

    async def held() -> tuple[int, str, str]:
        async with open_engine(tmp_path, EngineConfig()):
            return await asyncio.to_thread(run, capsys, "build comma-tools")

    code, _, err = asyncio.run(held())
    assert code == 2
    assert "has had this workspace open" in err
