from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engine.core.goals import Goal
from engine.core.plan import PlanStep
from engine.core.thinking import PlanRequest
from engine.core.trust import FolderTrust
from engine.planning.library.missions import Mission, MissionError, find_mission, load_missions, mission_names
from engine.planning.library.plan_library import PlanLibrary
from engine.planning.thinkers.procedural import ProceduralThinker
from tests.patience import PATIENCE_S

MISSIONS = load_missions()

GOOD = (
    'name = "m"\ntitle = "M"\ngoal = "list files"\nsummary = "S"\nnetwork = false\nexpect = "GOAL_ACHIEVED"\n'
)


async def steps_of(mission: Mission) -> tuple[PlanStep, ...]:
    proposal = await ProceduralThinker(PlanLibrary.load()).plan(PlanRequest(Goal("g", mission.goal)))
    assert proposal.uncovered == ()
    return proposal.steps


def test_the_shipped_missions_are_those_promised() -> None:
    assert [(m.name, m.network, m.expect) for m in MISSIONS.values()] == [
        ("first-flight", False, "GOAL_ACHIEVED"),
        ("api-client", True, "GOAL_ACHIEVED"),
        ("broken-build", False, "NEEDS_OPERATOR"),
        ("explorer", False, "GOAL_ACHIEVED"),
        ("explorer-generated", False, "NEEDS_OPERATOR"),
        ("demo-debate", False, "GOAL_ACHIEVED"),
        ("demo-review", False, "GOAL_ACHIEVED"),
        ("demo-canvas", False, "NEEDS_OPERATOR"),
        ("demo-model", False, "GOAL_ACHIEVED"),
        ("demo-opencode", False, "NEEDS_OPERATOR"),
        ("demo-campaign", False, "NEEDS_OPERATOR"),
    ]


@pytest.mark.parametrize(
    "mission",
    [one for one in MISSIONS.values() if one.agent is one.command is None],
    ids=lambda mission: mission.name,
)
async def test_every_clause_of_a_mission_is_covered(mission: Mission) -> None:
    steps = await steps_of(mission)
    assert 6 <= len(steps) <= 12


async def test_the_first_flight_builds_tests_and_flies(tmp_path: Path) -> None:
    here, printed = tmp_path, []
    for step in await steps_of(MISSIONS["first-flight"]):
        if step.command == "mkdir":
            (here / step.args["path"]).mkdir()
        elif step.command == "cd":
            here = here / step.args["path"]
        elif step.command == "write":
            (here / step.args["path"]).write_text(step.args["content"], encoding="utf-8")
        elif step.args["command"].startswith("python -m unittest") or step.args["command"].endswith(".py"):
            argv = [sys.executable, *step.args["command"].split()[1:]]
            ran = subprocess.run(
                argv, cwd=here, capture_output=True, text=True, timeout=PATIENCE_S, check=True
            )
            printed.append(ran.stdout + ran.stderr)
    tests, flight = printed
    assert tests.count("... ok") == 11
    assert flight.count("\n") == 7
    assert (tmp_path / "first_flight" / "README.md").read_text().startswith("# First Flight\n")


def run_cart_tests(root: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "unittest", "-v"]
    return subprocess.run(
        argv, cwd=root / "shop", capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


async def test_the_broken_build_fails_until_its_mistake_is_corrected(tmp_path: Path) -> None:
    mission = MISSIONS["broken-build"]
    for path, content in mission.files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(content, encoding="utf-8")
    commands = [(step.command, step.args) for step in await steps_of(mission)]
    assert commands[0] == ("cd", {"path": "shop"})
    assert ("run", {"command": "python -m unittest -v"}) in commands
    broken = run_cart_tests(tmp_path)
    assert broken.returncode == 1
    assert "FAILED (failures=1)" in broken.stderr
    cart = tmp_path / "shop" / "cart.py"
    mistake = "self.total() - self.total() // 100 * 100 * percent // 100"
    assert mistake in cart.read_text()
    cart.write_text(cart.read_text().replace(mistake, "self.total() - self.total() * percent // 100"))
    assert run_cart_tests(tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("title", "titel", "title"),
        ("false", '"no"', "network"),
        ("GOAL_ACHIEVED", "HOPE", "expect"),
        ('"m"', '"M!"', "name"),
        ('"m"', "m", "cannot be read"),
        ("expect", 'files = { "../x" = "" }\nexpect', "below its directory"),
        ("expect", 'files = { "/x" = "" }\nexpect', "below its directory"),
    ],
)
def test_a_mission_with_a_mistake_is_refused(old: str, new: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(MissionError, match=r"m\.toml: .*" + complaint):
        load_missions(tmp_path)


def test_two_missions_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "1.toml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "2.toml").write_text(GOOD, encoding="utf-8")
    with pytest.raises(MissionError, match="exists already"):
        load_missions(tmp_path)


# ------------------------------------------------------------------ of a workspace

OWN = """
name = "tea"
title = "Tea"
summary = "Makes tea."
network = false
expect = "GOAL_ACHIEVED"
goal = "make tea"
skills = ["skills/cook"]
command = {do = "crew_delegate", to = "cook", task = "make tea"}
"""


def put(workspace: Path, text: str, name: str = "tea") -> Path:
    (workspace / "missions").mkdir(exist_ok=True)
    (workspace / f"missions/{name}.toml").write_text(text)
    return workspace


def test_a_workspace_has_missions_of_its_own_which_a_recording_may_answer(tmp_path: Path) -> None:
    put(tmp_path, OWN)
    assert mission_names(tmp_path)[-1] == "tea"
    live, demo = (find_mission(tmp_path, name, None) for name in ("tea", "demo-tea"))
    assert live is not None
    assert demo is not None
    assert (live.skills, live.name, demo.name) == (["skills/cook"], "tea", "demo-tea")
    assert "metadata" not in (live.command or {})
    assert (demo.command or {})["metadata"] == {"recording": "tea"}
    for name in ("coffee", "demo-coffee", "demo-first-flight"):
        assert find_mission(tmp_path, name, None) is None
    shipped = find_mission(put(tmp_path, OWN, "first-flight"), "first-flight", None)
    assert shipped == load_missions()["first-flight"]


def test_a_mission_of_a_folder_counts_once_it_is_trusted(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    trust = FolderTrust(put(tmp_path / "ws", OWN), tmp_path / "home")
    with pytest.raises(MissionError, match=r"missions/tea\.toml: it was changed outside"):
        find_mission(tmp_path / "ws", "tea", trust)
    trust.trust(trust.digest)
    assert find_mission(tmp_path / "ws", "tea", trust) is not None


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("skills/cook", "../cook", "not a path below"),
        ("skills/cook", "/etc", "not a path below"),
        (
            'do = "crew_delegate", to = "cook", task',
            'do = "create_agent", agent = "x", agent_type',
            "hands work to a crew",
        ),
        ('task = "make tea"', "task = 7", "command"),
        ("command = {", "commands = {", "commands"),
        ("command = {", 'files = {"a.txt" = "a"}\ncommand = {', "hands work to a crew"),
        ("tea", "\0", "cannot be read"),
        ("tea", "tea" * 100_000, "cannot be read"),
    ],
)
def test_a_mission_of_a_folder_hands_work_to_its_crew_and_nothing_else(
    tmp_path: Path, old: str, new: str, complaint: str
) -> None:
    with pytest.raises(MissionError, match=rf"missions/tea\.toml: .*{complaint}"):
        find_mission(put(tmp_path, OWN.replace(old, new)), "tea", None)


def test_no_mission_is_read_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "tea.toml").write_text(OWN)
    assert find_mission(put(tmp_path, OWN), "../tea", None) is None
    (tmp_path / "missions/pipe.toml").symlink_to("/dev/zero")
    with pytest.raises(MissionError, match="no plain file"):
        find_mission(tmp_path, "pipe", None)
