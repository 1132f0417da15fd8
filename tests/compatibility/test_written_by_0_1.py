"""What version 0.1 wrote is opened, verified and replayed by this one, and comes out as it was.

The fixtures were made by `make_fixtures.py` with version 0.1; nothing is made anew here. Where this version
words a recorded sentence otherwise, replay may come to another head, but then it has to say so, and the
states have to be the same all the same.
"""

from __future__ import annotations

import asyncio
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from app.commands.settings import Settings
from engine.api.engine import Engine
from tests.compatibility.reading import ENVIRONMENT, cli, expected_of, settings_expected
from tests.compatibility.summaries import agent_summary, crew_summary, digest, mastermind_summary

FIXTURES = Path(__file__).parent / "v0_1"
WORKSPACES = ("first-flight", "steered", "crew")
EXPORTS = ("mended-plan", "reasoner-with-a-model", "two-by-hand")
SETTINGS = ("small", "usual", "every-key")
COMPARED_BY_STATE = "written by 0.1: compared by state"


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of the person who runs the tests, and a model that is named but never asked."""
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def unpacked(name: str, to: Path) -> Path:
    """A workspace as it was when its last session was closed."""
    workspace = to / name
    with tarfile.open(FIXTURES / "workspaces" / f"{name}.tar.gz") as archive:
        archive.extractall(workspace, filter="tar")
    return workspace


def expected(folder: str, name: str) -> dict[str, Any]:
    """What the version before made of it."""
    read: dict[str, Any] = json.loads((FIXTURES / folder / f"{name}.json").read_text(encoding="utf-8"))
    return read


def same_replay(code: int, answer: dict[str, Any], text: str, head: str) -> None:
    """Replay came out the same, or said that recorded sentences are worded otherwise now."""
    assert (code, answer["matches"], answer["model_calls"]) == (0, True, 0), answer
    assert answer["head"] == head or COMPARED_BY_STATE in text, answer


@pytest.mark.parametrize("name", WORKSPACES)
def test_a_workspace_is_read_as_it_was(name: str, tmp_path: Path) -> None:
    """Sessions, heads, states at the end and on the way, memory, the crew, and the replay of all agents."""
    workspace, known = str(unpacked(name, tmp_path)), expected("workspaces", name)
    code, verified, _ = cli("--workspace", workspace, "sessions", "verify")
    assert (code, verified["ok"], verified["head"]) == (0, True, known["head"])
    now = expected_of(Path(workspace))
    assert set(now) == set(known)
    for part in known:
        assert now[part] == known[part], part
    same_replay(*cli("--workspace", workspace, "sessions", "replay"), known["head"])


@pytest.mark.parametrize("name", WORKSPACES)
def test_a_workspace_is_opened_and_goes_on(name: str, tmp_path: Path) -> None:
    """Its agents are taken up as they were; what is written from now on verifies and replays, too."""
    workspace, known = unpacked(name, tmp_path), expected("workspaces", name)
    asyncio.run(_opened(workspace, known))
    place = str(workspace)
    agent = next(iter(known["agents"]))
    code, answer, _ = cli("--workspace", place, "do", "--agent", agent, "believe written_by 0.1 and later")
    assert code == 0, answer
    code, verified, _ = cli("--workspace", place, "sessions", "verify")
    assert (code, verified["ok"]) == (0, True), verified
    assert verified["events"] > known["events"]
    same_replay(*cli("--workspace", place, "sessions", "replay"), verified["head"])
    code, listed, _ = cli("--workspace", place, "sessions", "list")
    sessions = [[row["session"], row["events"], row["closed"] is not None] for row in listed["sessions"]]
    assert sessions[: len(known["sessions"])] == known["sessions"]
    assert len(sessions) > len(known["sessions"])


async def _opened(workspace: Path, known: dict[str, Any]) -> None:
    engine = await Engine.open(workspace, config=Settings.load(workspace).engine_config())
    try:
        living = {name for name, was in known["agents"].items() if not was["deleted"]}
        # A run of a handoff that has ended is history and need not be taken up.
        assert set(engine.agents) <= living
        for name, was in known["agents"].items():
            assert agent_summary(await engine.view(name, was["version"])) == was, name
            for version, before in known["places"][name].items():
                assert digest(agent_summary(await engine.view(name, int(version)))) == before, (name, version)
        for name in engine.agents:
            state, was = agent_summary(await engine.view(name)), known["agents"][name]
            for part in ("goals", "plans", "failures", "breakpoints", "waits_for"):
                assert state[part] == was[part], (name, part)
            approvals = (await engine.view(name)).approvals
            # They have no seal, so that they are given again.
            assert (approvals.grants, len(approvals.not_counted.grants)) == ((), len(was["grants"])), name
            assert state["run"] != "running", name
        health = engine.health
        assert (health.journal, health.agents, health.states, health.memory) == ("", (), (), "")
        if "crew" in known:
            now = crew_summary((await engine.crew()).state)
            ended = {name for name, was in known["crew"]["handoffs"].items() if was["success"] is not None}
            assert ended
            for name in ended:
                assert now["handoffs"][name] == known["crew"]["handoffs"][name]
            assert set(now["handoffs"]) == set(known["crew"]["handoffs"])
            assert now["clarity"] == known["crew"]["clarity"]
        if "mastermind" in known:
            assert mastermind_summary((await engine.mastermind()).state) == known["mastermind"]
            for campaign in known["mastermind"]["campaigns"].values():
                contents = [blob for _, files in campaign["candidates"] for blob in files.values()]
                assert contents
                assert all([await engine.blob(blob) for blob in contents])
    finally:
        await engine.close()


def test_what_was_open_is_still_open_and_can_be_answered(tmp_path: Path) -> None:
    """A question, a failed step and files from before: answered, settled, and brought back."""
    workspace = str(unpacked("steered", tmp_path))

    def do(line: str, agent: str = "pilot-1") -> dict[str, Any]:
        code, answer, _ = cli("--workspace", workspace, "do", "--agent", agent, line)
        assert code == 0, answer
        return answer

    asked = json.dumps(do("inbox"))
    assert all(f'"{agent}"' in asked for agent in ("asks", "failed"))
    do("deny as it is no longer needed", "asks")
    step = expected("workspaces", "steered")["agents"]["failed"]["intervention"]
    do(f"skip {step} there is no such file", "failed")
    assert (tmp_path / "steered/sandbox/CHANGELOG.md").is_file()
    do("rewind g2 --yes")
    assert not (tmp_path / "steered/sandbox/CHANGELOG.md").exists()
    code, verified, _ = cli("--workspace", workspace, "sessions", "verify")
    assert (code, verified["ok"]) == (0, True), verified
    same_replay(*cli("--workspace", workspace, "sessions", "replay"), verified["head"])


@pytest.mark.parametrize("name", EXPORTS)
def test_an_exported_session_opens_verifies_and_replays(name: str, tmp_path: Path) -> None:
    file, known = FIXTURES / "exports" / f"{name}.tar.gz", expected("exports", name)
    assert cli("open", str(file), "--into", str(tmp_path / "ws"))[0] == 0
    here = ("--workspace", str(tmp_path / "ws"))
    code, verified, _ = cli(*here, "sessions", "verify")
    assert (code, verified["head"], verified["events"]) == (0, known["head"], known["events"])
    code, listed, _ = cli(*here, "sessions", "list")
    assert [row["session"] for row in listed["sessions"]] == [row[0] for row in known["sessions"]]
    same_replay(*cli(*here, "sessions", "replay"), known["head"])
    for agent, was in known["agents"].items():
        _, again, _ = cli("run", "--quiet", "--thinker", f"recorded:{file}", "--agent", agent)
        assert (again["matches"], again["model_calls"], again["actions"]) == (True, 0, was["actions"][0])
    assert expected_of(tmp_path / "ws") == known


@pytest.mark.parametrize("name", WORKSPACES)
def test_a_workspace_of_before_is_exported_as_it_was(name: str, tmp_path: Path) -> None:
    workspace, known = str(unpacked(name, tmp_path)), expected("workspaces", name)
    file = str(tmp_path / "now.pilot")
    code, exported, _ = cli("--workspace", workspace, "sessions", "export", file)
    assert (code, exported["head"], exported["events"]) == (0, known["head"], known["events"])


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_say_what_they_said(name: str) -> None:
    assert settings_expected(FIXTURES / "settings" / f"{name}.toml") == expected("settings", name)
