"""A guided session in the cockpit: asked step by step, left and taken up again, never stored by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from flight import Flight, cockpit

from engine.agents.spec import read_spec
from engine.domain import crew_commands as cc
from widgets.dialogs.guided import GuidedDialog
from widgets.dialogs.handoffs import HandoffsDialog

STEPS = [
    {"id": "segments", "title": "Customer segments", "prompt": "For whom is this?", "required": True,
     "suggest": "name two", "validators": [{"check": "min_words", "args": {"n": 2}}]},
    {"id": "value", "title": "Value proposition", "input": "long_text", "depends_on": ["segments"]},
    {"id": "channel", "title": "Channel", "input": "choice", "options": ["shop", "letter"]},
    {"id": "days", "title": "Days", "input": "multi", "options": ["Monday", "Friday"]},
    {"id": "price", "title": "Price", "input": "number", "depends_on": ["value"]},
    {"id": "sure", "title": "Sure", "input": "confirm", "required": True},
]  # fmt: skip
WIZARD = {"id": "bmc-wizard", "name": "Business model", "type": "guided", "description": "x", "steps": STEPS}


async def register(flight: Flight, **spec: Any) -> None:
    given = read_spec(spec).model_dump(mode="json")
    receipt = await flight.engine.submit(cc.RegisterAgent(spec=given))
    assert receipt.ok, receipt.message


async def handed(flight: Flight, to: str, task: str = "Look at the shop.", **more: Any) -> str:
    """Hand a task over, and open its view."""
    receipt = await flight.engine.submit(cc.Delegate(to=to, task=task, **more))
    assert receipt.ok, receipt.message
    name = str(receipt.data["handoff"])
    await flight.until(lambda: flight.app._crew_state is not None, "the crew")
    await flight.until(lambda: flight.app._crew_state.handoffs[name].run, "its run")
    await flight.press("escape", "H")
    await flight.dialog(HandoffsDialog)
    await flight.press("enter")
    return name


def dialog(flight: Flight) -> GuidedDialog:
    assert isinstance(flight.app.screen, GuidedDialog)
    return flight.app.screen


async def asks(flight: Flight, step: str) -> None:
    """Wait until a step is asked and its input has the focus."""
    await flight.until(
        lambda: (
            (one := dialog(flight).model).step is not None
            and one.step.id == step
            and one.asked != dialog(flight)._sent
        ),
        f"{step} is asked",
    )


@pytest.mark.parametrize("size", [(160, 45), (80, 24)])
async def test_a_session_goes_forth_and_back_by_key(tmp_path: Path, size: tuple[int, int]) -> None:
    """Lines 39, 40 and 59."""
    async with cockpit(tmp_path / "ws", size=size) as flight:
        await register(flight, **WIZARD)
        name = await handed(flight, "bmc-wizard")
        await flight.dialog(GuidedDialog)
        await asks(flight, "segments")
        await flight.shows("Business model 1/6", "● Customer segments", "For whom is this?", "required")
        await flight.press("ctrl+b")
        await flight.shows("✗ this is the first step")
        await asks(flight, "segments")
        await flight.press("ctrl+k")
        await flight.shows("✗ 'Customer segments' is required and cannot")
        await asks(flight, "segments")
        await flight.press(*"shops")
        await flight.shows("✗", "shops")
        await flight.press("enter")
        assert dialog(flight).model.step.id == "segments"
        await flight.press(*" here", "enter")
        await asks(flight, "value")
        await flight.shows("✓ Customer segments", "2/6", "shops here")
        await flight.press(*"time", "ctrl+n")
        await asks(flight, "channel")
        await flight.press("2", "enter")
        await asks(flight, "days")
        await flight.press("ctrl+k")
        await asks(flight, "price")
        await flight.press(*"many")
        await flight.shows("needs a number")
        await flight.press("ctrl+j", "home", "enter")
        await asks(flight, "segments")
        await flight.press("end", *" too", "enter")
        await flight.shows("! Value proposition", "stale")
        await asks(flight, "price")
        await flight.press("f9")
        await flight.shows("'Value proposition' is stale")
        await asks(flight, "price")
        await flight.press(*"12", "ctrl+s")
        await flight.no_dialog()
        await flight.until(lambda: flight.app._crew_state.handoffs[name].state == "paused", "saved")
        await flight.press("H")
        await flight.dialog(HandoffsDialog)
        await flight.press("enter")
        await flight.dialog(GuidedDialog)
        await flight.shows("It was saved and waits", "saved 2", "‖ paused")
        await flight.press("enter")
        await asks(flight, "price")
        await flight.shows("taken up again", "5/6")
        await flight.press(*"12", "enter")
        await asks(flight, "sure")
        await flight.press("y", "1", "enter")
        await asks(flight, "value")
        await flight.shows("! stale", "time")
        await flight.press("ctrl+n")
        await flight.shows("Every step was gone through.", "finish and return the answers")
        await flight.press("enter")
        await flight.shows("It is over: ✓ done")
        result = flight.app._crew_state.handoffs[name].result
        assert result.data == {
            "segments": "shops here too", "value": "time", "channel": "letter", "price": 12.0, "sure": True,
        }  # fmt: skip
