"""Guided sessions, debates and pipelines in the cockpit: their parts, what is asked, and the answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from crew_flight import (
    MOTION,
    OPEN,
    SURVEY,
    debate_spec,
    debaters,
    handed,
    handoff,
    register,
    staffed,
    viewed,
)
from flight import Flight

from app.projection.session_views import session_of
from tests.messages_server import Reply, object_call
from tests.rounds import sizes
from widgets.base.dialog import ConfirmDialog, WriteDialog
from widgets.dialogs.session import SessionDialog

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
PHASES = [
    {"id": "analyze", "name": "Analyze", "outputs": ["driving_forces"], "checkpoint": {
        "criteria": [{"check": "min_items", "field": "driving_forces", "args": {"n": 3}}],
        "on_fail": "ask_user"}},
    {"id": "report", "name": "Report", "inputs": ["driving_forces"], "outputs": ["report"]},
]  # fmt: skip
RESEARCH = {"id": "research", "name": "Research", "type": "pipeline", "description": "x", "phases": PHASES,
            "handoff": OPEN}  # fmt: skip
FORCES = {"driving_forces": ["price", "law"]}
STEPPED = {"step_mode": True, "sources": {"survey": SURVEY}}


async def asks(flight: Flight, dialog: SessionDialog, title: str) -> None:
    """Wait until something is asked."""
    await flight.until(lambda: dialog.model.asked is not None and title in dialog.model.asked.title, title)


async def chooses(flight: Flight, dialog: SessionDialog, label: str) -> None:
    """Leave the line and choose an answer by its number."""
    assert dialog.model.asked is not None
    labels = [option.label for option in dialog.model.asked.options]
    number = next(at for at, option in enumerate(labels, 1) if label in option)
    if dialog.writing:
        await flight.press("escape")
    await flight.press(str(number))


@pytest.mark.parametrize("size", sizes((80, 24), (160, 45)))
async def test_a_guided_session_goes_forth_and_back(tmp_path: Path, size: tuple[int, int]) -> None:
    async with staffed(tmp_path / "ws", [Reply(text="dog [/b]owners\x1b[31m in towns")], size=size) as flight:
        await register(flight, **WIZARD)
        name = await handed(flight, "bmc-wizard")
        await flight.dialog(SessionDialog)
        dialog = flight.app.screen
        assert isinstance(dialog, SessionDialog)
        await asks(flight, dialog, "segments")
        await flight.shows("Business model", "1/6", "● Customer segments", "For whom is this?", "required")
        await flight.press(*"shops", "enter")
        await flight.until(
            lambda: dialog.model.asked and "min_words" in dialog.model.asked.context, "it is refused"
        )
        await flight.until(lambda: dialog.field.value == "shops", "what was written stands there again")
        await flight.press("ctrl+u", *"shops here", "enter")
        await asks(flight, dialog, "Value")
        await flight.shows("✓ Customer segments", "2/6")
        await flight.dialog(WriteDialog)
        await flight.press(*"time", "ctrl+s")
        await asks(flight, dialog, "Channel")
        await flight.shows("one of 1 shop · 2 letter")
        await flight.press("2", "enter")
        await asks(flight, dialog, "Days")
        await chooses(flight, dialog, "skip")
        await flight.press(*"closed then", "enter")
        await asks(flight, dialog, "Price")
        await flight.shows("» Days")
        await chooses(flight, dialog, "jump")
        await flight.press(*"segments", "enter")
        await asks(flight, dialog, "segments")
        await flight.until(lambda: dialog.field.value == "shops here", "the answer before")
        await chooses(flight, dialog, "draft")
        await flight.until(lambda: "dog [/b]owners in towns" in dialog.field.value, "the draft")
        assert session_of(handoff(flight, name)).of("segments").value == "shops here"
        await flight.press("ctrl+u", *"shops here too", "enter")
        await flight.shows("! Value proposition", "stale")
        await asks(flight, dialog, "Price")
        await chooses(flight, dialog, "save")
        await flight.until(lambda: handoff(flight, name).state == "paused", "saved")
        await flight.shows("‖ paused")
        await flight.press("escape")
        await flight.type(f"resume {name}")
        await flight.dialog(SessionDialog)
        dialog = flight.app.screen
        await asks(flight, dialog, "Price")
        await flight.shows("It was saved 2")
        await flight.press(*"12", "enter")
        await asks(flight, dialog, "Sure")
        await flight.press(*"yes", "enter")
        await asks(flight, dialog, "Value")
        await flight.dialog(WriteDialog)
        await flight.press("ctrl+s")
        await asks(flight, dialog, "every step")
        await chooses(flight, dialog, "finish")
        await flight.until(lambda: handoff(flight, name).state == "completed", "the end")
        result = handoff(flight, name).result
        assert result.data == {
            "segments": "shops here too", "value": "time", "channel": "letter", "price": 12.0, "sure": True,
        }  # fmt: skip
        assert "*skipped*: closed then" in result.output


async def test_a_checkpoint_shows_what_was_measured_and_is_mended_by_hand(tmp_path: Path) -> None:
    script = [
        object_call("checkpoint", output="two forces", outputs=FORCES),
        object_call("checkpoint", output="all is well", outputs={"report": "All is well."}),
    ]
    async with staffed(tmp_path / "ws", script, size=(100, 30)) as flight:
        await register(flight, **RESEARCH)
        name = await handed(flight, "research", "Look at the forces.")
        dialog = await viewed(flight, SessionDialog, name)
        await flight.until(lambda: dialog.model.asked, "the checkpoint")
        await flight.shows("not committed: its checkpoint is not passed", "- price", "- law")
        await flight.shows(
            "✗ Analyze", "✗ driving_forces min_items", "2 < 3", "write the outputs yourself", "· Report"
        )
        await flight.press("s")
        await flight.shows("· step mode")
        await chooses(flight, dialog, "write the outputs")
        await flight.dialog(WriteDialog)
        text = flight.app.screen._text
        assert '"price"' in text.text
        text.text = '{"driving_forces": ["price", "law", "age"]}'
        await flight.press("ctrl+s")
        await flight.until(
            lambda: dialog.model.asked and "Go on?" in dialog.model.asked.question, "the halt after it"
        )
        await flight.shows("✓ Analyze", "committed", "- price", "- age")
        await chooses(flight, dialog, "go on")
        await flight.until(lambda: handoff(flight, name).state == "completed", "the end")
        await flight.shows("✓ Report", "2 of 2 phases", "✓ done")
        await flight.press("1")
        await flight.shows("it is over (done)")


async def between(flight: Flight, dialog: SessionDialog, closed: int) -> None:
    await flight.until(
        lambda: dialog.model.asked and f"round {closed} of" in dialog.model.state, f"round {closed}"
    )


async def test_a_debate_is_followed_and_steered_between_its_rounds(tmp_path: Path) -> None:
    async with staffed(tmp_path / "ws", debaters(), size=(100, 30)) as flight:
        await register(flight, **debate_spec(rounds=2))
        name = await handed(flight, "decision-debate", MOTION, metadata=STEPPED)
        dialog = await viewed(flight, SessionDialog, name)
        await between(flight, dialog, 0)
        await flight.shows(MOTION, "A1 ✓ quoted · standing", "A2 ? unverified", "2 of 8 calls", "go on")
        await chooses(flight, dialog, "a question")
        await flight.press(*"who pays?", "enter")
        await between(flight, dialog, 1)
        assert "from the operator" in str(flight.server.requests[-1].body)
        await chooses(flight, dialog, "one round more")
        await between(flight, dialog, 2)
        await flight.shows("round 2 of 3", "6 of 10 calls")
        await flight.press("home", "down")
        await flight.shows("31 of 40 owners said they would pay.")
        await chooses(flight, dialog, "your verdict")
        await flight.press(*"we build it", "enter")
        await flight.until(lambda: handoff(flight, name).state == "completed", "the verdict")
        await flight.press("home")
        await flight.shows("B, confidence 0.75", "Yours", "we build it", "✓ done")
        verdict = handoff(flight, name).result.data["verdict"]
        assert (verdict["winner"], verdict["operator"]) == ("B", "we build it")


async def test_passes_that_differ_wait_for_the_operator_and_a_debate_is_ended(tmp_path: Path) -> None:
    answer = debaters(judge=(("A", 0.9), ("B", 0.8)))
    async with staffed(tmp_path / "ws", answer, size=(160, 45)) as flight:
        await register(flight, **debate_spec(rounds=1))
        name = await handed(flight, "decision-debate", MOTION)
        dialog = await viewed(flight, SessionDialog, name)
        await flight.until(lambda: dialog.model.asked, "the question")
        await flight.press("home")
        await flight.shows("contested: the passes differ", "order A, B: A 0.9", "order B, A: B 0.8")
        await flight.press("0", *"A, as it is cheap", "enter")
        await flight.shows("Yours", "A, as it is cheap")
        assert handoff(flight, name).result.data["verdict"]["winner"] == "undecided"
        other = await handed(flight, "decision-debate", MOTION, metadata=STEPPED)
        dialog = await viewed(flight, SessionDialog, other)
        await between(flight, dialog, 0)
        await flight.press("x")
        await flight.dialog(ConfirmDialog)
        await flight.press("y")
        await flight.until(lambda: handoff(flight, other).state == "cancelled", "the end")
        await flight.shows("⊘ cancelled")
