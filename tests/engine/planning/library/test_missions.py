from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engine.core.goals import Goal
from engine.core.plan import PlanStep
from engine.core.thinking import PlanRequest
from engine.planning.library.missions import Mission, MissionError, load_missions
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
        ("expect", 'files = { "../x" = "" }\nexpect', "below the sandbox root"),
        ("expect", 'files = { "/x" = "" }\nexpect', "below the sandbox root"),
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
