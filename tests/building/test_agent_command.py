"""`pilothouse agent`: what a person and a program are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.building import BuildOptions, build_agent, builder_of
from app.cli import main
from engine.building.findings import Status
from engine.sandbox import SandboxPolicy
from tests.building.corpus import laid, lay, plain, skill


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    try:
        code = main(["agent", *words])
    except SystemExit as error:
        code = int(str(error.code))
    out, err = capsys.readouterr()
    return code, out, err


def test_an_agent_is_built_listed_taken_away_and_brought_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    laid(tmp_path, "comma-tools")
    code, out, err = run(capsys, "build", "comma-tools")
    assert (code, out.splitlines()[0].startswith("built comma-tools 1.0.0 (operator) in ")) == (0, True)
    assert [line[:3] for line in err.splitlines()] == [f"✓ {number}" for number in range(1, 8)]
    code, out, _ = run(capsys, "build", "comma-tools", "--json")
    said = json.loads(out.splitlines()[-1])
    assert (code, said["status"], said["agent"], said["version"]) == (0, "up_to_date", "comma-tools", "1.0.0")
    assert json.loads(run(capsys, "list", "--json")[1])["agents"][0]["id"] == "comma-tools"
    assert run(capsys, "versions", "comma-tools")[1].startswith("▶ 1.0.0")
    assert run(capsys, "remove", "comma-tool")[::2] == (
        2,
        "pilothouse: there is no agent comma-tool; the nearest: comma-tools\n",
    )
    assert run(capsys, "remove", "comma-tools")[0] == 0
    assert "there are no agents" in run(capsys, "list")[1]
    assert run(capsys, "rollback", "comma-tools")[:2] == (0, "comma-tools 1.0.0 answers again\n")
    assert run(capsys, "rollback", "comma-tools", "9.9.9")[0] == 2


def test_what_fails_is_told_in_lines_with_phase_place_and_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lay(tmp_path / "bad", {"SKILL.md": b"---\nname: bad\nname: bad\ndescription: \x1b[31m\n---\n"})
    code, out, _ = run(capsys, "build", "bad", "--quiet")
    assert code == 1
    assert out.splitlines()[0] == "failed in phase 1, SKILL analysis"
    assert "\x1b" not in out
    code, out, _ = run(capsys, "build", "nowhere", "--quiet", "--json")
    assert (code, json.loads(out)["errors"][0]["code"]) == (1, "NO_SKILL_MD")
    lay(tmp_path / "new", {"SKILL.md": skill("name: new\ndescription: Replace with description")})
    assert run(capsys, "build", "new", "--quiet")[:2] == (
        3,
        "needs you\n  SKILL.md:3: warning PLACEHOLDER: the description is still the template's\n"
        "The description is still the template's; what does the skill do?\n",
    )
    assert run(capsys, "build")[0] == 2
    assert run(capsys, "build", "bad", "--type", "gizmo")[0] == 2
    assert run(capsys, "watch", "nowhere/at/all")[0] == 2


async def test_a_skill_where_agents_can_write_is_asked_about_first(tmp_path: Path) -> None:
    folder = lay(tmp_path / "sandbox" / "x", {"SKILL.md": skill(plain("x"))})
    builder = builder_of(tmp_path, SandboxPolicy())
    asked = await build_agent(builder, BuildOptions(folder, dry_run=True))
    assert (asked.status, asked.choice.key) == (Status.NEEDS_OPERATOR, "trusted")
    trusted = await build_agent(builder, BuildOptions(folder, dry_run=True, trust=True, kind="role"))
    assert (trusted.status, trusted.spec.type) == (Status.DRY_RUN, "role")
