"""An agent of another program is an agent like any other: gate, files, journal, replay."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.core import commands as cmd
from engine.core.goals import GoalStatus
from engine.core.plan import Op, StepStatus
from tests.engine.agent.engine_flight import (
    Flight,
    QuickClock,
    journal_holds_together,
    live_state_is_the_fold,
)
from tests.engine.agent.other_programs.acp_flight import helped


@pytest.fixture
async def flight(tmp_path: Path) -> AsyncIterator[Flight]:
    """A flight whose journal is verified and replayed in the end, without the program."""
    made = Flight(tmp_path / "workspace", QuickClock())
    await made.open()
    (made.sandbox / "notes.txt").write_text("remember\n")
    yield made
    await live_state_is_the_fold(made, "dev")
    await made.engine.close()
    await journal_holds_together(made.workspace)


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
