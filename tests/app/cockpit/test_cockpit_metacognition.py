"""Meta-cognition in the cockpit: gauges that follow the agent, and what the operator wants of it."""

from __future__ import annotations

import json
from pathlib import Path

from flight import Flight, cockpit
from test_cockpit_context import make, settings

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.metacognition import MetaTask
from tests.messages_server import MessagesServer, plan_call
from widgets.base.dialog import TextDialog
from widgets.base.line_pane import LinePane
from widgets.base.text_layout import Piece
from widgets.dialogs.lists import MetaDialog


def gauges(flight: Flight) -> str:
    """The list of the open gauges as text, blanks made one."""
    pane = flight.app.screen.query_one(LinePane)
    rows = [
        " ".join("".join(piece.text for piece in (*row.pieces, Piece(" "), *row.tail)).split())
        for row in pane.rows
    ]
    return "\n".join(rows)


async def test_the_gauges_show_what_is_due_and_follow_a_success(flight: Flight) -> None:
    await flight.goal("create a directory named 'x'")
    await flight.press("m")
    await flight.dialog(MetaDialog)
    await flight.shows("Meta-cognition of pilot-1", "reflection", "0/7", "in 7 successes")
    await flight.shows("in the background 0/10")
    await flight.press("m")
    await flight.no_dialog()
    await flight.type("meta")
    await flight.dialog(MetaDialog)
    await flight.engine.submit(cmd.Run(agent="pilot-1"))
    await flight.until(lambda: "1/7 successes in 6 successes" in gauges(flight), "one success")


async def test_a_task_is_forced_and_what_came_of_it_is_shown_and_waits_for_the_next_prompt(
    flight: Flight,
) -> None:
    await flight.goal("create a directory named 'x'")
    await flight.press("s")
    await flight.until(lambda: flight.state.actions == 1, "one action")
    await flight.press("m")
    await flight.dialog(MetaDialog)
    await flight.press("f")
    await flight.until(lambda: flight.state.meta.ended, "the reflection")
    await flight.until(lambda: "last: the operator wants it → done" in gauges(flight), "why it fired")
    started = await flight.journal(ev.BackgroundStarted)
    assert [one.task for one in started] == [MetaTask.REFLECT]


async def test_a_task_is_vetoed_and_allowed_and_a_new_threshold_shown(flight: Flight) -> None:
    await flight.press("m")
    await flight.dialog(MetaDialog)
    await flight.press("v")
    await flight.until(lambda: MetaTask.REFLECT in flight.state.meta.vetoed, "the veto")
    await flight.until(lambda: "vetoed by you" in gauges(flight), "the veto in view")
    await flight.press("v")
    await flight.until(lambda: not flight.state.meta.vetoed, "no veto")
    await flight.engine.submit(cmd.SetThresholds(agent="pilot-1", reflection=8))
    await flight.until(lambda: "0/8 successes" in gauges(flight), "the threshold in view")


async def test_guidance_waits_for_the_next_prompt_and_is_in_it_once(tmp_path: Path) -> None:
    async with (
        MessagesServer([plan_call(make("made")), plan_call(make("more"))]) as server,
        cockpit(tmp_path / "ws", settings=settings(server, tmp_path / "home")) as flight,
    ):
        await flight.press("m")
        await flight.dialog(MetaDialog)
        await flight.press("ctrl+g")
        await flight.no_dialog()
        await flight.press(*"look first", "enter")
        await flight.until(lambda: flight.state.meta.feedback, "the guidance")
        await flight.press("escape", "m")
        await flight.dialog(MetaDialog)
        await flight.until(lambda: "next prompt\noperator: look first" in gauges(flight), "in view")
        await flight.press("escape")
        await flight.no_dialog()
        await flight.type("goal make a directory 'made'")
        await flight.until(lambda: flight.state.goals, "the goal")
        await flight.type("run")
        await flight.until(lambda: flight.state.model_calls == 1, "the call")
        assert "look first" in json.dumps(server.requests[0].body)
        await flight.press("escape", "c")
        await flight.dialog(TextDialog)
        await flight.shows("guidance")


async def test_an_agent_that_reads_no_guidance_refuses_it(flight: Flight) -> None:
    await flight.press("ctrl+g")
    await flight.says("no thinker that reads guidance")
