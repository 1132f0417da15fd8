"""Records a session of OpenCode as npm has it: `ACP_PROGRAMS=DIRECTORY python -m tests.recordings.programs`.

The program works on the files of the mission `demo-opencode`. What it asks its model for is answered from
here; what it sends to Pilothouse is kept as it is, but for the place of the workspace.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from app.commands.missions import install_mission, wait_until
from engine.agent.acp.settings import own_files
from engine.core import commands as cmd
from engine.core.goals import GoalStatus
from engine.planning.library.missions import Mission, load_missions
from tests.engine.agent.other_programs.real_programs import PLACES, PROGRAMS, talks
from tests.messages_server import Reply, call
from tests.patience import PATIENCE_S
from tests.recordings import RECORDINGS, opened

NAME = "demo-opencode"
TAP = Path(__file__).with_name("tap.py")
ROOT = "{root}"
"""Stands for the workspace in a recording."""


def _todo(*done: str) -> tuple[str, dict[str, Any]]:
    plan = ("Read the prices and their tests", "Correct the mistakes", "Run the tests")
    todos = [
        {"id": str(n), "content": text, "status": status, "priority": "high"}
        for n, (text, status) in enumerate(zip(plan, done, strict=True))
    ]
    return "todowrite", {"todos": todos}


def replies(root: Path) -> tuple[Reply, ...]:
    """What the program's model says, one answer after the other."""
    prices, changes = f"{root}/bakery/prices.py", f"{root}/bakery/CHANGES.md"
    wrong, right = "net * percent // 100", "(net * percent + 50) // 100"
    log = "- Tax is rounded, not cut off.\n- A dozen costs twelve rolls.\n"
    tests = {"command": "python3 -m unittest discover -s bakery", "description": "Run the bakery's tests"}
    uses: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("I begin with a plan.", *_todo("in_progress", "pending", "pending")),
        ("First the prices, ", "read", {"filePath": prices}),
        ("then what the tests expect.", "read", {"filePath": f"{root}/bakery/test_prices.py"}),
        ("", *_todo("completed", "in_progress", "pending")),
        (
            "The tax is cut off where it should be rounded; half a cent counts as one.",
            "edit",
            {"filePath": prices, "oldString": wrong, "newString": right},
        ),
        (
            "A dozen is thirteen rolls for the price of twelve.",
            "edit",
            {"filePath": prices, "oldString": "price * 13", "newString": "price * 12"},
        ),
        ("What was changed belongs into a file.", "write", {"filePath": changes, "content": log}),
        ("", *_todo("completed", "completed", "in_progress")),
        ("Now the tests.", "bash", tests),
        ("", *_todo("completed", "completed", "completed")),
    )
    calls = (call(tool, given, text=text, call_id=f"call_{n}") for n, (text, tool, given) in enumerate(uses))
    end = "Two functions of the price list were wrong and are corrected; all three tests pass."
    return *calls, Reply(text=end)


async def record(place: Path) -> dict[str, Any]:
    """Fly the mission with the program itself; what it sent."""
    program = next(each for each in PROGRAMS if each.preset == "opencode")
    path = shutil.which(program.executable, path=PLACES)
    assert path, "npm install opencode-ai, and name the directory in ACP_PROGRAMS"
    mission: Mission = load_missions()[NAME]
    assert mission.agent is not None
    kept = ".home/session.jsonl"
    async with opened(place) as engine, program.server([], repeat=True) as server:
        server.replies = [talks(*replies(engine.root))]
        config = {**program.config(server.url), "read": [str(TAP), *own_files(Path(path))]}
        config["env"] = {**config["env"], "OPENCODE_PERMISSION": '{"edit":"ask","bash":"ask"}'}
        config["command"] = shlex.join(["python3", str(TAP), kept, path, "acp"])
        agent = mission.agent.id
        for command in (
            cmd.CreateAgent(agent=agent, agent_type="acp_agent", config=config),
            cmd.AdoptGoal(agent=agent, text=mission.goal),
        ):
            receipt = await engine.submit(command)
            assert receipt.ok, receipt.message
            if isinstance(command, cmd.CreateAgent):
                await install_mission(engine, agent, mission)
                await wait_until(engine, agent, lambda state: not state.requests and not state.busy)
        await engine.submit(cmd.CallTool(agent=agent, command="toggle_autonomous_mode", args={}))
        await engine.submit(cmd.Run(agent=agent))
        async with asyncio.timeout(10 * PATIENCE_S):
            state = await wait_until(engine, agent, lambda s: not s.open_goals or s.intervention is not None)
        assert [goal.status for goal in state.goals.values()] == [GoalStatus.ACHIEVED], state.intervention
        lines = (engine.root / kept).read_text().replace(str(engine.root), ROOT)
        lines = lines.replace(
            str(engine.root)[1:], ROOT
        )  # the program shows paths from the disk's root as well
    sent = (line.removeprefix("out ") for line in lines.splitlines() if line.startswith("out "))
    return {"about": mission.goal, "answers": [], "session": [json.loads(line) for line in sent]}


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="recording-") as directory:
        recording = asyncio.run(record(Path(directory) / "workspace"))
    text = json.dumps(recording, ensure_ascii=False, indent=1) + "\n"
    (RECORDINGS / f"{NAME}.json").write_text(text, encoding="utf-8")
    print(f"{NAME}: {len(recording['session'])} messages, {len(text):,} characters")
    return 0


if __name__ == "__main__":
    sys.exit(main())
