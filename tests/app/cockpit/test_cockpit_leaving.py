"""Leaving asks where something would be cut off; coming back finds everything as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from flight import Flight, cockpit

from app.cockpit.app import Cockpit
from app.commands.settings import Settings
from engine.core import events as ev
from engine.core.agents import Mode, RunState
from engine.core.ports import SystemClock
from engine.core.store.sqlite import SqliteJournal
from widgets.base.dialog import ConfirmDialog
from widgets.dialogs.help import HelpDialog
from widgets.dialogs.turn import InterventionDialog
from widgets.panes.command_bar import CommandBar


def gone(flight: Flight) -> bool:
    return not flight.app.is_running


async def test_ctrl_q_leaves_at_once_when_nothing_runs(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws") as flight:
        await flight.press("ctrl+q")
        await flight.until(lambda: gone(flight))
        assert flight.app.return_code == 0


async def test_leaving_while_an_action_runs_asks_first(flight: Flight) -> None:
    await flight.running()
    await flight.press("ctrl+q")
    await flight.dialog(ConfirmDialog)
    await flight.shows("Leave while pilot-1 runs an action?", "cut off")
    await flight.press("enter")
    assert isinstance(flight.app.screen, ConfirmDialog)
    await flight.press("n")
    await flight.no_dialog()
    assert flight.state.acting
    await flight.press("full_stop")
    await flight.until(lambda: not flight.state.acting)


async def test_leaving_anyway_cuts_the_action_off_and_records_it(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws") as flight:
        await flight.running()
        await flight.press("ctrl+q", "y")
        await flight.until(lambda: gone(flight))
    async with cockpit(tmp_path / "ws") as flight:
        assert len(await flight.journal(ev.ActionCancelled)) == 1
        await flight.shows("PAUSED", "python wait.py")


async def test_ctrl_c_pauses_and_a_second_one_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.cockpit.controllers.run.SECOND_PRESS_S", 600.0)  # a busy machine takes its time
    async with cockpit(tmp_path / "ws") as flight:
        flight.script("wait.py", "import time; time.sleep(0.3)")
        await flight.goal("run 'python wait.py', run 'echo two'")
        await flight.press("space")
        await flight.until(lambda: flight.state.acting)
        await flight.press("ctrl+c")
        await flight.until(lambda: flight.state.run is RunState.PAUSED, "the pause")
        await flight.says("ctrl+c again")
        await flight.at_rest()
        await flight.press("ctrl+c")
        await flight.until(lambda: gone(flight))


async def test_ctrl_c_works_while_a_line_is_typed(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws") as flight:
        await flight.press("colon", *"goal", "ctrl+c")
        await flight.says("ctrl+c again")
        await flight.press("ctrl+c")
        await flight.until(lambda: gone(flight))


async def test_ctrl_q_leaves_out_of_a_dialog_too(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws") as flight:
        await flight.press("question_mark")
        await flight.dialog(HelpDialog)
        await flight.press("ctrl+q")
        await flight.until(lambda: gone(flight))


async def test_a_running_agent_pauses_from_within_a_dialog(flight: Flight) -> None:
    flight.script("wait.py", "import time; time.sleep(0.3)")
    await flight.goal("run 'python wait.py', run 'echo two'")
    await flight.press("space", "question_mark")
    await flight.dialog(HelpDialog)
    await flight.press("ctrl+c")
    await flight.until(lambda: flight.state.run is RunState.PAUSED, "the pause")


async def test_a_half_typed_line_and_the_agent_looked_at_are_there_again(tmp_path: Path) -> None:
    desk = tmp_path / "ws" / ".pilothouse" / "desk"
    async with cockpit(tmp_path / "ws") as flight:
        await flight.type("agent_create bdi_agent second")
        await flight.until(lambda: "second" in [s.agent_id for s in flight.app.context.live.states])
        await flight.type("agent second")
        await flight.press("colon", *"goal cr")
        await flight.until(lambda: desk.exists() and "goal cr" in desk.read_text(), "what is kept")
    async with cockpit(tmp_path / "ws") as flight:
        await flight.until(lambda: flight.app.context.agent == "second")
        assert flight.app.query_one("#command", CommandBar).input.value == "goal cr"
        await flight.press(*"eate", "enter")
        await flight.until(lambda: "goal" not in desk.read_text(), "an empty desk")


@pytest.mark.parametrize("kept", ["", "[1]", '{"line": 3}', '{"line": "a\\u001b[2Jb", "agent": "nobody"}'])
async def test_a_desk_that_makes_no_sense_is_an_empty_one(tmp_path: Path, kept: str) -> None:
    async with cockpit(tmp_path / "ws"):
        pass
    (tmp_path / "ws" / ".pilothouse" / "desk").write_text(kept)
    async with cockpit(tmp_path / "ws") as flight:
        assert flight.app.query_one("#command", CommandBar).input.value in ("", "ab")
        assert flight.app.context.agent == "pilot-1"


async def test_reopening_shows_the_same_goals_plan_breakpoints_and_session(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", mission="first-flight") as flight:
        await flight.press("s", "s")
        await flight.until(lambda: flight.state.actions == 2)
        await flight.at_rest()
        await flight.select("s5")
        await flight.press("b")
        await flight.until(lambda: "break" in flight.row("s5"))
        steps, goals, session = flight.steps, list(flight.state.goals), flight.session_text
    async with cockpit(tmp_path / "ws") as flight:
        await flight.until(lambda: flight.steps == steps, "the plan")
        assert list(flight.state.goals) == goals
        assert flight.state.mode is Mode.PAUSED
        await flight.until(lambda: "● break" in flight.row("s5"), "the breakpoint")
        assert flight.session_text.startswith(session)
        assert "✓ s1  mkdir first_flight" in flight.row("s1")
        await flight.press("s")
        await flight.until(lambda: flight.state.actions == 3, "the next step")


async def test_reopening_while_it_waits_says_so(waiting: Path) -> None:
    async with cockpit(waiting) as flight:
        await flight.says("waits for your decision: press i")
        await flight.shows("INTERVENTION", "asks you")
        await flight.press("i")
        await flight.dialog(InterventionDialog)


async def test_a_workspace_that_is_open_elsewhere_is_refused_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = tmp_path / "[/ws] \u202e"
    store = await SqliteJournal.open(workspace, clock=SystemClock())
    try:
        app = Cockpit(workspace, settings=Settings(home=tmp_path / "home"))
        async with app.run_test() as pilot:
            await Flight(app, pilot).until(lambda: not app.is_running, "the refusal")
        assert app.return_code == 2
        said = "".join(capsys.readouterr())
        assert "has had this workspace open since" in " ".join(said.split())
        assert "\u202e" not in said
    finally:
        await store.close()
