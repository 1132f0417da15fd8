"""Going back from the cockpit: a preview first, then the files and the plan as they were."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from flight import Flight, cockpit

from app.commands.command_runner import run_command
from engine.core import events as ev
from engine.core.goals import GoalStatus
from widgets.base.dialog import ConfirmDialog
from widgets.dialogs.preview import RewindDialog


@pytest.fixture
async def flown(tmp_path: Path) -> AsyncIterator[Flight]:
    """A cockpit whose agent has made two directories and reached its goal."""
    async with cockpit(tmp_path / "ws", size=(100, 30)) as flight:
        await flight.goal("create a directory named 'x' and create a directory named 'y'")
        await flight.press("space")
        await flight.until(lambda: flight.state.goals["g1"].status is GoalStatus.ACHIEVED, "the end")
        await flight.press("2")
        yield flight


async def test_r_in_the_past_shows_what_it_would_do_and_y_does_it(flown: Flight) -> None:
    await flown.type("past s2")
    place = await flown.engine.time_travel.place_of("pilot-1", "s2")
    await flown.type(f"past {place}")
    await flown.until(
        lambda: flown.app.context.past_at == place and not flown.app.controllers.time.moving, "the past"
    )
    flown.app.query_one("#plan").focus()
    await flown.press("R")
    await flown.dialog(RewindDialog)
    await flown.shows(
        "Rewind pilot-1 to event", "nothing has changed yet", "Cannot be undone", "y: goes", "Plan"
    )
    await flown.press("f")
    await flown.shows("files only,")
    await flown.dialog(RewindDialog)
    await flown.press("b")
    await flown.shows("state and files,")
    await flown.dialog(RewindDialog)
    assert (flown.engine.root / "y").is_dir()
    await flown.press("y")
    await flown.says("pilot-1 is back at event", "each file checked")
    assert sorted(path.name for path in flown.engine.root.iterdir() if path.name[0] != ".") == ["x"]
    await flown.until(lambda: flown.status_of("s2") == "planned", "the plan as it was")
    (rewound,) = await flown.journal(ev.Rewound)
    assert rewound.verified
    events = [event async for event in flown.engine.events(0, stream="pilot-1", follow=False)]
    assert {event.actor for event in events if event.kind == rewound.kind} == {
        f"operator:{flown.app.context.settings.operator}"
    }


async def test_escape_leaves_everything_and_a_slip_is_told(flown: Flight) -> None:
    await flown.type("rewind s2")
    await flown.dialog(RewindDialog)
    await flown.press("escape")
    await flown.no_dialog()
    await flown.type("rewind yesterday")
    await flown.says("'yesterday' is no point in time")
    await flown.type("rewind both 3 x")
    await flown.says("paths go with files only")
    assert (flown.engine.root / "y").is_dir()
    assert not await flown.journal(ev.Rewound)


async def test_u_shows_what_undoes_the_last_change_and_redo_brings_it_back(flown: Flight) -> None:
    await flown.type("believe door open")
    await flown.until(lambda: "door" in flown.state.beliefs, "the belief")
    await flown.press("escape", "2", "u")
    await flown.dialog(ConfirmDialog)
    await flown.shows("Undo: no longer believe door", "redo takes it back")
    await flown.press("y")
    await flown.until(lambda: "door" not in flown.state.beliefs, "no belief")
    await flown.type("redo")
    await flown.dialog(ConfirmDialog)
    await flown.press("y")
    await flown.until(lambda: "door" in flown.state.beliefs, "the belief again")


async def test_headless_shows_first_and_does_it_with_yes(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    await run_command(workspace, "agent_create bdi_agent pilot-1")
    await run_command(workspace, "goal create a directory named 'x'")
    await run_command(workspace, "run")
    code, answer, text = await run_command(workspace, "rewind s1")
    assert (code, answer["applied"], answer["parts"][1]["lines"]) == (0, False, (("-", "x: goes"),))
    assert "nothing was changed; add --yes" in text
    assert (workspace / "sandbox" / "x").is_dir()
    code, answer, _ = await run_command(workspace, "rewind s1 --yes")
    assert (code, answer["applied"]) == (0, True)
    assert not (workspace / "sandbox" / "x").exists()
    assert (await run_command(workspace, "rewind 99999"))[0] == 2


async def test_f_in_the_past_begins_a_fork_and_its_files_are_taken_over(flown: Flight) -> None:
    place = await flown.engine.time_travel.place_of("pilot-1", "s2")
    await flown.type(f"past {place}")
    await flown.until(
        lambda: flown.app.context.past_at == place and not flown.app.controllers.time.moving, "the past"
    )
    flown.app.query_one("#plan").focus()
    await flown.press("f")
    await flown.says("pilot-1-f1 begins where pilot-1:", "no model was asked")
    await flown.until(lambda: flown.app.context.agent == "pilot-1-f1", "the fork in view")
    root = flown.engine.root_of("pilot-1-f1")
    assert sorted(path.name for path in root.iterdir() if path.name[0] != ".") == ["x"]
    await flown.type("agent pilot-1")
    await flown.until(lambda: flown.app.context.agent == "pilot-1", "the original")
    await flown.type("compare pilot-1-f1")
    await flown.shows("Files", "- y")
    await flown.press("escape")
    await flown.type("outcomes")
    await flown.shows("forks from pilot-1:", "pilot-1-f1 ")
    await flown.press("escape")
    await flown.type("adopt pilot-1-f1")
    await flown.dialog(RewindDialog)
    await flown.press("y")
    await flown.says("the files of pilot-1-f1 are pilot-1's now")
    assert not (flown.engine.root / "y").exists()


async def test_headless_forks_run_and_are_counted_with_an_interval(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    await run_command(workspace, "agent_create bdi_agent pilot-1")
    await run_command(workspace, "goal create a directory named 'x' and create a directory named 'y'")
    await run_command(workspace, "run")
    code, answer, text = await run_command(workspace, "fork s2 x3 with belief door=shut", agent="pilot-1")
    assert (code, answer["agents"]) == (0, ["pilot-1-f1", "pilot-1-f2", "pilot-1-f3"])
    (group,) = answer["groups"]
    assert (group["n"], group["achieved"]["value"]) == (3, 1.0)
    assert group["achieved"]["low"] == pytest.approx(0.4385, abs=1e-4)
    assert "achieved 100% [44%, 100%] of n = 3" in text
    assert "door" in group["edits"]
    assert (workspace / "forks" / "pilot-1-f2" / "y").is_dir()
    assert (await run_command(workspace, "fork s2 x99", agent="pilot-1"))[0] == 2
