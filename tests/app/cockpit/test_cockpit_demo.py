"""Scenes of the demonstration in the cockpit: marked as recorded, stepped by key, as alive as any."""

from __future__ import annotations

from pathlib import Path

from flight import cockpit
from tmux_terminal import NEEDS_TMUX, Terminal

from app.commands.settings import Settings
from widgets.dialogs.handoffs import HandoffsDialog
from widgets.dialogs.session import SessionDialog


def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", recorded_pace=0)


async def test_a_recorded_debate_and_review_are_shown_as_they_run(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", settings=settings(tmp_path), size=(160, 45)) as flight:
        await flight.type("mission demo-debate")
        await flight.dialog(SessionDialog)
        await flight.shows("verdict: A, confidence 0.63", "RECORDED", "done")
        assert "0–9" not in flight.text  # nothing is asked any more
        await flight.press("escape")
        await flight.no_dialog()
        await flight.type("mission demo-review")
        await flight.dialog(HandoffsDialog)
        await flight.shows("3 of 3 succeeded", "RECORDED", "synthesizer")
        await flight.press("escape")
        await flight.no_dialog()
        await flight.shows("RECORDED")


async def test_a_recorded_model_is_stepped_and_named(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", settings=settings(tmp_path), size=(160, 45)) as flight:
        await flight.type("mission demo-model")
        await flight.says("Recorded demonstration", "s takes one step")
        await flight.until(lambda: flight.state.agent_id == "baker", "its agent")
        await flight.press("escape", "s")
        await flight.until(lambda: len(flight.steps) == 3, "the plan")
        await flight.shows("RECORDED", "recorded")
        assert flight.state.model == "recorded"
        await flight.until(lambda: flight.state.actions == 1, "one step")
        await flight.press("s")
        await flight.until(lambda: flight.state.actions == 2, "another one")


class TestInATerminal:
    pytestmark = NEEDS_TMUX

    def test_a_scene_opens_by_its_name_and_leaves_nothing(self, terminal: Terminal, tmp_path: Path) -> None:
        terminal.environment = {"TMPDIR": str(tmp_path), "ANTHROPIC_API_KEY": "sk-never-asked"}
        terminal.fly("demo debate --pace 0")
        terminal.shows("RECORDED", "verdict: A")
        terminal.keys("Escape")
        terminal.shows("RECORDED", "H shows it")
        assert " tour " not in terminal.screen
        terminal.keys("C-q")
        assert terminal.ends() == 0
        terminal.shows("That was a demonstration")
        assert not [*tmp_path.glob("pilothouse-demo-*")]
