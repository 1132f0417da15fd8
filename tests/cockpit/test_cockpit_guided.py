"""A guided session in the cockpit: asked step by step, left and resumed, never stored by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from crew_flight import handed, handoff, register, staffed, viewed
from flight import Flight

from tests.messages_server import Reply
from widgets.dialogs.guided import GuidedDialog

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


def dialog(flight: Flight) -> GuidedDialog:
    assert isinstance(flight.app.screen, GuidedDialog)
    return flight.app.screen


async def asks(flight: Flight, step: str) -> None:
    """Wait until a step is asked and its input has the focus."""
    await flight.until(
        lambda: (
            (one := dialog(flight).model).step is not None
            and one.step.id == step
            and one.asked not in ("", dialog(flight)._sent)
        ),
        f"{step} is asked",
    )


@pytest.mark.parametrize("size", [(160, 45), (80, 24)])
async def test_a_session_goes_forth_and_back_by_key(tmp_path: Path, size: tuple[int, int]) -> None:
    """Lines 39, 40 and 59."""
    async with staffed(tmp_path / "ws", size=size) as flight:
        await register(flight, **WIZARD)
        name = await handed(flight, "bmc-wizard")
        await viewed(flight, GuidedDialog, name)
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
        await flight.press("f5")
        await flight.shows("there is no draft: writing one needs a model")
        await asks(flight, "value")
        await flight.press(*"time", "ctrl+n")
        await asks(flight, "channel")
        await flight.press("2", "enter")
        await asks(flight, "days")
        await flight.press("ctrl+k", *"no ", "escape")
        assert dialog(flight).focused is dialog(flight)._choices
        await flight.press("ctrl+k", *"closed then")
        await flight.shows("skip it, because:", "enter skips it, with a reason")
        await flight.press("enter")
        await asks(flight, "price")
        await flight.shows("» Days")
        assert ("» Days: skipped", "closed then") in [(o.title, o.text) for o in dialog(flight).model.partial]
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
        await flight.shows("this answer was not given yet; ^s again")
        await flight.press("ctrl+s")
        await flight.no_dialog()
        await flight.until(lambda: handoff(flight, name).state == "paused", "saved")
        await viewed(flight, GuidedDialog, name)
        await flight.shows("It was saved and waits", "saved 2", "‖ paused")
        await flight.press("enter")
        await asks(flight, "price")
        await flight.shows("resumed, nothing", "5/6")
        await flight.press(*"12", "enter")
        await asks(flight, "sure")
        await flight.press("y", "1", "enter")
        await asks(flight, "value")
        await flight.shows("! stale", "time")
        await flight.press("ctrl+n")
        await flight.shows("Every step was gone through.", "finish and return the answers")
        await flight.press("enter")
        await flight.shows("It is over: ✓ done")
        result = handoff(flight, name).result
        assert result.data == {
            "segments": "shops here too", "value": "time", "channel": "letter", "price": 12.0, "sure": True,
        }  # fmt: skip
        assert "*skipped*: closed then" in result.output


async def test_a_draft_is_put_into_the_field_and_stored_only_by_the_operator(tmp_path: Path) -> None:
    async with staffed(tmp_path / "ws", [Reply(text="dog [/b]owners\x1b[31m in towns")]) as flight:
        await register(flight, **WIZARD)
        name = await handed(flight, "bmc-wizard")
        view = await viewed(flight, GuidedDialog, name)
        await asks(flight, "segments")
        await flight.press("ctrl+g")
        await flight.shows("draft, stored nowhere", "dog [/b]owners in towns")
        assert view._line.value == ""
        assert not view.model.partial
        await flight.press("ctrl+g", *"!", "escape")
        await flight.shows("this answer was not given yet")
        assert view._line.value == "dog [/b]owners in towns!"
        await flight.press("enter")
        await asks(flight, "value")
        assert view.model.partial[0].text == "dog [/b]owners in towns!"
