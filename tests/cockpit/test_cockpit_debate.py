"""A debate in the cockpit: its sides as columns, its ledger, its judge, and the bar between two rounds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from crew_flight import MOTION, SURVEY, debate_spec, debaters, handed, handoff, register, staffed, viewed
from flight import Flight

from tests.messages_server import Reply
from tests.messages_server.server import Seen
from widgets.base.dialog import ConfirmDialog, TextDialog
from widgets.dialogs.debate import DebateDialog

STEPPED = {"step_mode": True, "sources": {"survey": SURVEY}}


async def between(flight: Flight, dialog: DebateDialog, closed: int) -> None:
    await flight.until(
        lambda: dialog.model.asked and f"round {closed} of" in dialog.model.state, f"round {closed}"
    )


@pytest.mark.parametrize("size", [(160, 45), (80, 24)])
async def test_a_debate_is_followed_and_steered_between_its_rounds(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    """Lines 31 and 59: cards by side, an answer marked with its claim, one round more, time called."""
    async with staffed(tmp_path / "ws", debaters(), size=size) as flight:
        await register(flight, **debate_spec(rounds=1))
        name = await handed(flight, "decision-debate", MOTION, metadata=STEPPED)
        dialog = await viewed(flight, DebateDialog, name)
        await between(flight, dialog, 0)
        await flight.shows(MOTION, "A1 ✓ quoted · standing", "A2 ? unverified", "2 of 6 calls", "g go on")
        assert ("B1 ✓ quoted" in flight.text) == (size[0] > 100)
        await flight.press("plus")
        await between(flight, dialog, 1)
        await flight.shows("round 1 of 2", "4 of 8 calls")
        await flight.press("home", "down")
        assert dialog.board.marked[0] == "A2"
        await flight.press("right")
        assert dialog.board.side == "B"
        while dialog.board.card.head != "→ A1 undercuts it":
            await flight.press("down")
        assert dialog.board.marked == (dialog.board.card.key, "A1")
        await flight.press("left")
        assert dialog.board.card.key == "A1"
        await flight.shows("▶┃ A1 ✓ quoted · standing")
        assert ("◆┃ → A1 undercuts it" in flight.text) == (size[0] > 100)
        await flight.press("enter")
        await flight.dialog(TextDialog)
        await flight.shows("✓ quoted: “31 of 40 owners said they would pay.” (survey)")
        await flight.press("escape", "q", *"who pays?", "enter")
        await flight.until(lambda: handoff(flight, name).state == "completed", "the verdict")
        await flight.until(lambda: dialog.model.passes, "it is shown")
        assert "from the operator" in str(flight.server.requests[-4].body)
        await flight.press("tab", "home")
        await flight.shows("1 rebutted, 1 conceded", "verdict", "B, confidence 0.75", "✓ done")
        await flight.press("q")
        await flight.shows("question: the debate is over")
        outcome = "\n".join(line.text for fact in dialog.model.verdict for line in [fact])
        assert "A1: Owners would pay for it." in outcome


async def test_passes_that_differ_stand_side_by_side_and_wait_for_the_operator(tmp_path: Path) -> None:
    """Line 29."""
    answer = debaters(judge=(("A", 0.9), ("B", 0.8)))
    async with staffed(tmp_path / "ws", answer, size=(160, 45)) as flight:
        await register(flight, **debate_spec(rounds=1))
        name = await handed(flight, "decision-debate", MOTION)
        dialog = await viewed(flight, DebateDialog, name)
        await flight.until(lambda: dialog.model.passes, "the verdict")
        await flight.shows(
            "contested: the passes differ", "order A, B: A 0.9", "order B, A: B 0.8", "v your verdict"
        )
        await flight.press("v", *"A, as it is cheap", "enter")
        await flight.shows("yours", "A, as it is cheap")
        assert handoff(flight, name).result.data["verdict"]["winner"] == "undecided"


async def test_a_debate_that_runs_through_says_so_and_is_cancelled_after_a_question(tmp_path: Path) -> None:
    def held(seen: Seen) -> Reply:
        return replace(debaters()(seen), after=3, then="hold")

    async with staffed(tmp_path / "ws", held) as flight:
        await register(flight, **debate_spec())
        name = await handed(flight, "decision-debate", MOTION)
        await viewed(flight, DebateDialog, name)
        await flight.shows("The openings are under way", "c cancel")
        await flight.press("q")
        await flight.shows("question: this debate goes through without a halt")
        await flight.press("s")
        await flight.shows("halts after each part and asks", "step mode")
        await flight.press("c")
        await flight.dialog(ConfirmDialog)
        await flight.press("y")
        await flight.until(lambda: handoff(flight, name).state == "cancelled", "the end")
        await flight.shows("⊘ cancelled")


async def test_the_operators_verdict_stands_beside_the_judges(tmp_path: Path) -> None:
    """Line 32."""
    async with staffed(tmp_path / "ws", debaters(), size=(120, 35)) as flight:
        await register(flight, **debate_spec(rounds=3))
        name = await handed(flight, "decision-debate", MOTION, metadata=STEPPED)
        dialog = await viewed(flight, DebateDialog, name)
        await between(flight, dialog, 0)
        await flight.press("g")
        await between(flight, dialog, 1)
        await flight.press("v", *"we build it", "enter")
        await flight.until(lambda: handoff(flight, name).state == "completed", "the verdict")
        await flight.shows("B, confidence 0.75", "yours", "we build it", "called by the operator")
        verdict = handoff(flight, name).result.data["verdict"]
        assert (verdict["winner"], verdict["operator"]) == ("B", "we build it")
