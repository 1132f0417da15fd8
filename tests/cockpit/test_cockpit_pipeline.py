"""A pipeline in the cockpit: checkpoints with what was measured, steps, and outputs written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from crew_flight import OPEN, handed, handoff, register, staffed, viewed

from tests.messages_server import object_call
from widgets.dialogs.pipeline import PipelineDialog

PHASES = [
    {"id": "analyze", "name": "Analyze", "outputs": ["driving_forces"], "checkpoint": {
        "criteria": [{"check": "min_items", "field": "driving_forces", "args": {"n": 3}}],
        "on_fail": "ask_user"}},
    {"id": "report", "name": "Report", "inputs": ["driving_forces"], "outputs": ["report"]},
]  # fmt: skip
RESEARCH = {"id": "research", "name": "Research", "type": "pipeline", "description": "x", "phases": PHASES,
            "handoff": OPEN}  # fmt: skip
FORCES = {"driving_forces": ["price", "law"]}


@pytest.mark.parametrize("size", [(160, 45), (80, 24)])
async def test_a_checkpoint_shows_what_was_measured_and_is_mended_by_hand(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    """Lines 38 and 59."""
    script = [
        object_call("checkpoint", output="two forces", outputs=FORCES),
        object_call("checkpoint", output="all is well", outputs={"report": "All is well."}),
    ]
    async with staffed(tmp_path / "ws", script, size=size) as flight:
        await register(flight, **RESEARCH)
        name = await handed(flight, "research", "Look at the forces.")
        dialog = await viewed(flight, PipelineDialog, name)
        await flight.until(lambda: dialog.model.asked, "the checkpoint")
        await flight.shows("not committed: its checkpoint is not passed", "price, law")
        await flight.shows("✗ Analyze", "✗ min_items", "2 < 3", "e edit output", "· Report")
        await flight.press("g")
        await flight.shows("go on: its question has no such answer")
        await flight.press("s")
        await flight.shows("step mode", "asks")
        await flight.press("e")
        assert '"price"' in dialog._edited.text
        dialog._edited.text = '{"driving_forces": ["price", "law", "age"]}'
        await flight.press("ctrl+s")
        await flight.until(lambda: "Go on?" in dialog.model.question, "the halt after the checkpoint")
        await flight.shows("✓ Analyze", "committed", "price, law, age")
        await flight.press("g")
        await flight.until(lambda: handoff(flight, name).state == "completed", "the end")
        await flight.shows("✓ Report", "2 of 2 phases", "✓ done")
