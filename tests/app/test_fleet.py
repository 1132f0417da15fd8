"""`pilothouse run --fleet FILE`: many agents in one process, each to the end of its goal."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from app.cli.fleet_run import FleetError, exit_code, fleet_table, load_fleet, run_fleet
from app.cli.main import main
from app.commands.headless import RunOptions
from engine.api.engine import Engine
from engine.core import events as ev

MANY = """
[[agents]]
id = "writer"
count = 12
goal = "write 'by {id}' to {id}/a.txt, write 'more' to {id}/b.txt"
"""


def _file(place: Path, text: str) -> Path:
    file = place / "fleet.toml"
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("agents = 3", "agents"),
        ("agents = []", "agents"),
        ('[[agents]]\nid = "a"', "agents.0.goal"),
        ('[[agents]]\nid = "A b"\ngoal = "x"', "agents.0.id"),
        ('[[agents]]\nid = "a"\ngoal = "x"\nspeed = 3', "agents.0.speed"),
        ('[[agents]]\nid = "a"\ngoal = "x"\ncount = 1001', "agents.0.count"),
        ('[[agents]]\nid = "a"\ngoal = "x"\n' * 2, "two agents 'a'"),
        (
            '[[agents]]\nid = "a"\ngoal = "x"\ncount = 600\n[[agents]]\nid = "b"\ngoal = "x"\ncount = 600',
            "1000",
        ),
        ("[[agents", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_in_one_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(FleetError) as error:
        load_fleet(_file(tmp_path, text))
    assert told in str(error.value)


async def test_a_fleet_runs_to_its_ends_and_shares_snapshots(tmp_path: Path) -> None:
    out, err = io.StringIO(), io.StringIO()
    workspace = tmp_path / "workspace"
    options = RunOptions(workspace=workspace, thinker="procedural", quiet=True)
    result = await run_fleet(_file(tmp_path, MANY), options, out=out, err=err)

    assert (result["status"], result["counts"], exit_code(result)) == (
        "GOAL_ACHIEVED",
        {"GOAL_ACHIEVED": 12},
        0,
    )
    assert [end["agent"] for end in result["agents"]] == [f"writer-{number}" for number in range(1, 13)]
    assert (workspace / "sandbox/writer-7/a.txt").read_text().strip() == "by writer-7"
    assert fleet_table(result).splitlines()[-1].startswith("12 of 12 goals achieved: 24 actions")
    assert out.getvalue() == ""

    engine = await Engine.open(workspace)
    try:
        said = [ev.payload_of(event) async for event in engine.events(follow=False)]
    finally:
        await engine.close()
    taken = [one for one in said if isinstance(one, ev.SnapshotTaken)]
    assert len(taken) == 24
    # Twelve that ask at once have one of the same: far fewer are taken than there are actions.
    assert len({one.snapshot for one in taken}) <= 12


def test_the_worst_end_is_the_exit_code_and_the_table_says_which(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = '[[agents]]\nid = "able"\ngoal = "write \'x\' to a.txt"\n[[agents]]\nid = "odd"\ngoal = "sing"\n'
    run = ["run", "--workspace", str(tmp_path / "w"), "--thinker", "procedural", "--quiet"]
    assert main([*run, "--fleet", str(_file(tmp_path, text)), "--json"]) == 3
    answer = json.loads(capsys.readouterr().out)
    assert answer["counts"] == {"GOAL_ACHIEVED": 1, "NEEDS_OPERATOR": 1}
    assert main([*run, "--fleet", str(tmp_path / "none.toml")]) == 2
    assert main([*run, "--fleet", str(_file(tmp_path, text)), "a goal too"]) == 2
