"""Stopping in the cockpit: at once with a key, in grades from a panel, and the receipt in place."""

from __future__ import annotations

from flight import Flight

from engine.core import events as ev
from engine.core.agents import Mode, RunState
from widgets.dialogs.stop import StopDialog, StopReceiptPane

JOB = "! start python -c 'import os, time; os.fork(); time.sleep(600)'"


async def with_a_job(flight: Flight) -> None:
    await flight.type(JOB)
    await flight.until(lambda: flight.state.running_jobs and not flight.state.action, "a job")
    await flight.press("escape")
    flight.plan.focus()


def receipt(flight: Flight) -> str:
    pane = flight.app.query_one("#receipt", StopReceiptPane)
    return "\n".join(fact.text for fact in pane._facts) if pane.display else ""


async def test_stop_shows_its_receipt_in_place_and_a_second_one_is_safe(flight: Flight) -> None:
    await with_a_job(flight)
    await flight.press("full_stop")
    await flight.until(lambda: "dead: job j1" in receipt(flight), "the receipt")
    await flight.shows("STOPPED", "2 processes", "still runs: nothing")
    await flight.press("full_stop")
    await flight.until(lambda: "nothing changed" in receipt(flight), "the second receipt")
    await flight.press("escape")
    await flight.until(lambda: not receipt(flight), "it is put away")
    await flight.press("full_stop")
    await flight.until(lambda: receipt(flight), "again")
    await flight.pilot.click("#receipt")
    await flight.until(lambda: not receipt(flight), "it is put away by a click")


async def test_the_panel_freezes_thaws_and_kills_once_confirmed(flight: Flight) -> None:
    await with_a_job(flight)
    await flight.press("X")
    await flight.dialog(StopDialog)
    await flight.press("5")
    await flight.shows("frozen: job j1", "2 processes")
    assert flight.state.mode is Mode.FROZEN
    await flight.press("0")
    await flight.until(lambda: not flight.state.frozen, "thawed")
    for harmless in ("escape", "enter"):
        await flight.press("6", harmless, "escape")
        await flight.press("escape")
        await flight.no_dialog()
        await flight.press("X")
        await flight.dialog(StopDialog)
    await flight.press("6", "6", "n", "2")
    await flight.until(lambda: flight.state.run is RunState.PAUSED, "held")
    assert flight.state.run is RunState.PAUSED
    assert flight.state.running_jobs
    await flight.press("tab", "tab", "6", "y")
    await flight.until(lambda: flight.state.run is RunState.STOPPED, "killed")
    await flight.shows("dead: job j1")
    said = [ev.payload_of(event) for event in await flight.engine.store.read("pilot-1")]
    stops = [
        one.command for one in said if isinstance(one, ev.CommandReceived) and one.command["do"] == "stop"
    ]
    assert [(one["grade"], one["scope"]) for one in stops] == [
        ("freeze", "agent"), ("hold", "agent"), ("kill", "all")
    ]  # fmt: skip
