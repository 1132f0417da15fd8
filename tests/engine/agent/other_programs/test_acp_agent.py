"""An agent of another program is an agent like any other: gate, files, journal, replay."""

from __future__ import annotations

from pathlib import Path

from engine.core import commands as cmd
from engine.core.goals import GoalStatus
from engine.core.plan import Op, StepStatus
from tests.engine.agent.engine_flight import Flight
from tests.engine.agent.other_programs.acp_flight import helped


async def test_a_goal_is_a_turn_and_what_it_asks_for_are_actions(flight: Flight, tmp_path: Path) -> None:
    await helped(flight, tmp_path, "polite")
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.goals["g1"].status.terminal or s.intervention)
    assert state.goals["g1"].status is GoalStatus.ACHIEVED, state.intervention
    reason = str(state.goals["g1"].reason)
    assert "leave: yes; wrote: True; the test printed 'remember', exit 3" in reason
    plan = state.plans["g1"]
    commands = [(step.command, step.status) for step in plan.steps if step.op is Op.ACT]
    done = StepStatus.COMPLETED
    assert commands == [(name, done) for name in ("prompt", "read", "write", "write", "start")]
    outline = [(step.description, step.status) for step in plan.steps if step.op is Op.THINK]
    assert outline[:2] == [("look", done), ("change it", done)]
    assert (flight.sandbox / "settings.toml").read_text() == "debug = true\n"
    assert (flight.sandbox / "copy.txt").read_text() == "remember\n"
