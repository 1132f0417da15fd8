"""The operator's turn: it opens by itself, each offer works, and nothing is lost by looking away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from flight import Flight, cockpit
from textual import events
from textual.widgets import TextArea

from engine.core import events as ev
from engine.core.agents import Mode
from engine.core.goals import GoalStatus
from widgets.dialogs.step_editor import StepEditor
from widgets.dialogs.turn import InterventionDialog

MENDED = "return self.total() - self.total() * percent // 100"
BROKEN = "return self.total() - self.total() // 100 * 100 * percent // 100"


@pytest.fixture
async def turn(waiting: Path) -> AsyncIterator[Flight]:
    """A cockpit in which the agent of broken-build waits for the operator, with the dialog open."""
    async with cockpit(waiting) as flight:
        await flight.says("press i")
        await flight.press("i")
        await flight.dialog(InterventionDialog)
        yield flight


def mend(workspace: Path) -> None:
    cart = workspace / "sandbox" / "shop" / "cart.py"
    cart.write_text(cart.read_text().replace(BROKEN, MENDED))


async def test_it_opens_by_itself_after_two_retries(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", mission="broken-build") as flight:
        await flight.press("space")
        await flight.dialog(InterventionDialog)
        await flight.shows("TOOL_EXECUTION_ERROR", "run python -m unittest", "retry after a pause (1)", "(2)")
        assert flight.state.mode is Mode.INTERVENTION
        waits = [chosen.delay_s for chosen in await flight.journal(ev.RecoveryChosen) if chosen.delay_s]
        assert len(waits) == 2
        assert flight.message.startswith("the agent needs you")  # and no `running` any more
        await flight.press("escape")
        await flight.no_dialog()
        await flight.shows("INTERVENTION", "your turn (i)", "asks you", "✗ 1 error")
        await flight.press("4", "z")
        await flight.shows("? TOOL_EXECUTION_ERROR run python -m unittest", "waits for you (i)")


async def test_a_burst_of_keys_chooses_once(turn: Flight) -> None:
    for key in ("escape", "e", "s", "escape"):
        turn.app.post_message(events.Key(key, None if key == "escape" else key))
    await turn.until(lambda: len(turn.app.screen_stack) == 1, "the dialog is gone")
    await turn.pilot.pause()
    assert turn.app.is_running
    assert turn.state.intervention is not None


async def test_escape_leaves_it_open_and_i_or_n_bring_it_back(turn: Flight) -> None:
    for key in ("i", "n"):
        await turn.press("escape")
        await turn.no_dialog()
        await turn.says("still waits")
        assert turn.state.intervention is not None
        await turn.press(key)
        await turn.dialog(InterventionDialog)


async def test_retry_now_runs_the_step_again_after_the_operator_mended_the_file(
    turn: Flight, waiting: Path
) -> None:
    mend(waiting)
    await turn.press("r")
    await turn.no_dialog()
    await turn.press("space")
    await turn.until(lambda: turn.state.goals["g1"].status is GoalStatus.ACHIEVED, "the goal")
    assert "All tests pass." in (waiting / "sandbox" / "shop" / "report.txt").read_text()


async def test_edit_and_retry_runs_what_was_edited(turn: Flight) -> None:
    failed = turn.state.intervention.step
    await turn.press("e")
    await turn.dialog(StepEditor)
    turn.app.screen.query_one("#args", TextArea).text = '{"command": "python -m unittest -k total"}'
    await turn.pilot.pause()
    await turn.press("ctrl+s")
    await turn.no_dialog()
    await turn.press("space")
    await turn.until(lambda: turn.status_of(failed) == "completed", "the edited step")
    assert (await turn.journal(ev.InterventionClosed))[-1].resolution == "step edited"


async def test_giving_the_edit_up_keeps_the_turn_open(turn: Flight) -> None:
    await turn.press("e")
    await turn.dialog(StepEditor)
    await turn.press("escape")
    await turn.says("nothing was changed", "i opens")
    assert turn.state.intervention is not None


async def test_a_result_by_hand_settles_the_step(turn: Flight) -> None:
    failed = turn.state.intervention.step
    await turn.press("h")
    await turn.shows("The result, as the agent should see it")
    turn.app.screen.field.value = "I ran them elsewhere: all green"
    await turn.press("enter")
    await turn.until(lambda: turn.status_of(failed) == "completed")
    assert turn.state.beliefs[f"result.{failed}"].value == "I ran them elsewhere: all green"
    assert turn.state.intervention is None


async def test_an_empty_result_is_not_sent(turn: Flight) -> None:
    await turn.press("h", "enter")
    await turn.shows("Nothing is written yet")
    assert isinstance(turn.app.screen, InterventionDialog)


async def test_skip_goes_on_with_the_next_step(turn: Flight) -> None:
    failed = turn.state.intervention.step
    await turn.press("x")
    await turn.until(lambda: turn.status_of(failed) == "skipped" and turn.state.intervention is None)
    assert turn.next_step != failed


async def test_replacing_the_rest_runs_what_was_said_instead(turn: Flight) -> None:
    await turn.press("p")
    await turn.shows("What to do instead")
    turn.app.screen.field.value = "create a directory 'instead'"
    await turn.press("enter")
    await turn.no_dialog()
    await turn.says("replaced")
    await turn.press("space")
    await turn.until(lambda: turn.state.goals["g1"].status is GoalStatus.ACHIEVED, "the goal")
    assert [goal.text for goal in turn.state.goals.values()][-1] == "create a directory 'instead'"


async def test_abort_asks_once_more(turn: Flight) -> None:
    await turn.press("D", "D", "n")
    await turn.dialog(InterventionDialog)
    assert turn.state.goals["g1"].status is GoalStatus.ACTIVE
    await turn.press("D", "y")
    await turn.until(lambda: turn.state.goals["g1"].status is GoalStatus.FAILED)
    await turn.no_dialog()
    await turn.says("goal g1 failed")


async def test_the_shell_is_taken_and_the_turn_stays_open(turn: Flight) -> None:
    await turn.press("t")
    await turn.no_dialog()
    await turn.shows("YOU HOLD THE SHELL", "you hold the shell", "./shop $")
    assert turn.state.intervention is not None


async def test_running_while_it_waits_opens_the_choices(turn: Flight) -> None:
    await turn.press("escape")
    await turn.no_dialog()
    await turn.press("space")
    await turn.dialog(InterventionDialog)


async def test_escape_gives_a_turn_back_that_the_operator_took(flight: Flight) -> None:
    await flight.goal("run 'echo one', run 'echo two'")
    await flight.press("i", "escape")
    await flight.says("handed back")
    assert flight.state.intervention is None
    assert len(await flight.journal(ev.InterventionOpened)) == 1


async def test_without_an_open_goal_only_the_shell_is_offered(flight: Flight) -> None:
    await flight.press("i")
    await flight.dialog(InterventionDialog)
    await flight.shows("none is open", "t  take the shell", "esc gives the turn back")
    for words in ("error", "retry now", "–"):
        assert words not in flight.text.partition("Manual intervention")[2].partition("gives the turn")[0]
    await flight.press("r")
    assert isinstance(flight.app.screen, InterventionDialog)


async def test_i_takes_the_turn_at_any_time_and_retry_hands_it_back(flight: Flight) -> None:
    await flight.goal("run 'echo one', run 'echo two'")
    await flight.press("i")
    await flight.dialog(InterventionDialog)
    await flight.press("r")
    await flight.until(lambda: flight.state.intervention is None)
    await flight.says("handed back")
    assert flight.state.actions == 0


async def test_a_turn_does_not_open_over_a_line_that_is_being_typed(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws") as flight:
        await flight.goal("run 'python nowhere.py'")
        await flight.press("space")
        await flight.press("colon", "g", "o")
        await flight.until(lambda: flight.state.intervention is not None, "the turn")
        await flight.says("press i")
        assert len(flight.app.screen_stack) == 1


async def test_a_step_that_cannot_be_saved_for_is_run_without_a_snapshot(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    async with cockpit(workspace) as flight:
        (workspace / ".pilothouse" / "snapshots").write_text("in the way")
        await flight.goal("create a directory 'made'")
        await flight.press("space")
        await flight.dialog(InterventionDialog)
        await flight.shows(
            "DEPENDENCY_NOT_MET", "could not be saved", "cannot be opened", "run unsaved", "give the goal up"
        )
        await flight.press("n")
        await flight.no_dialog()
        await flight.until(lambda: flight.state.goals["g1"].status is GoalStatus.ACHIEVED, "the goal")
        assert (workspace / "sandbox" / "made").is_dir()
        assert (await flight.journal(ev.InterventionClosed))[-1].resolution == "run without a snapshot"
        assert "no snapshot: The snapshot store" in flight.session_text


async def test_running_unsaved_is_offered_only_where_saving_failed(turn: Flight) -> None:
    await turn.shows("retry now")
    assert "run unsaved" not in turn.text
    await turn.press("n")
    assert isinstance(turn.app.screen, InterventionDialog)
    assert not await turn.journal(ev.SnapshotWaived)
