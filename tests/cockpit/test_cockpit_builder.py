"""The builder screen: phases as they pass, findings with places, the type chosen where it is not plain."""

from __future__ import annotations

from pathlib import Path

import pytest
from crew_flight import lay_skill, staffed

from engine.crew.builder.findings import PendingBuild
from widgets.dialogs.fleet import FleetDialog
from widgets.dialogs.pipeline import BuilderDialog


@pytest.mark.parametrize("size", [(160, 45), (80, 24)])
async def test_a_build_asks_for_the_type_and_goes_on_with_what_is_chosen(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    """Lines 50 and 59."""
    source = lay_skill(tmp_path / "pricing")
    async with staffed(tmp_path / "ws", size=size) as flight:
        await flight.type(f"build {source} --dry-run")
        await flight.dialog(BuilderDialog)
        dialog = flight.app.screen
        await flight.until(lambda: dialog.model.options, "the question")
        await flight.shows("✓ 1 SKILL analysis", "? 2 architecture", "asks you", "operator 1, pipeline 1")
        await flight.shows("The text does not tell its type", "4 pipeline", "? needs you")
        shown = [(one.where, one.code) for one in dialog.model.findings]
        assert ("SKILL.md:4", "UNKNOWN_FIELD") in shown
        await flight.until(lambda: dialog.focused is dialog.choices, "the focus on the choice")
        await flight.press("2", "enter")
        await flight.until(
            lambda: (
                flight.app.controllers.builds.result is not None
                and flight.app.controllers.builds.result.success
            ),
            "the build",
        )
        await flight.shows("✓ dry run", "pricing 1.0.0", "type: operator, 1, by override")
        assert "type: operator" in dialog.model.preview
        await flight.press("tab", "tab")
        assert dialog.focused is dialog._preview
        await flight.press("home")
        await flight.shows("description: A workflow for prices.")
        assert not (tmp_path / "ws/agents").exists()
        await flight.press("escape")
        await flight.no_dialog()
        await flight.says("pricing: dry run")


async def test_a_build_that_fails_says_where(tmp_path: Path) -> None:
    source = lay_skill(tmp_path / "pricing")
    (source / "SKILL.md").write_text("---\nname: [x\n---\n", encoding="utf-8")
    async with staffed(tmp_path / "ws") as flight:
        await flight.type(f"build {source} --dry-run")
        await flight.dialog(BuilderDialog)
        await flight.shows(
            "✗ 1 SKILL analysis", "✗ required_fields", "✗ SKILL.md:1 NO_DESC", "✗ failed", "not begun"
        )


async def test_the_board_builds_an_agent_again_on_this_screen(tmp_path: Path) -> None:
    source = lay_skill(tmp_path / "pricing")
    async with staffed(tmp_path / "ws") as flight:
        builds = (await flight.engine.crew()).builds
        assert builds is not None
        first = await builds.build(PendingBuild(source, overrides={"type": "operator"}))
        assert first.success, first.findings
        await flight.press("escape", "F")
        await flight.dialog(FleetDialog)
        await flight.press("slash", *"larry", "enter", "b")
        await flight.shows("larry comes with the program")
        await flight.press("escape", "slash", *"pricing", "enter", "b")
        await flight.dialog(BuilderDialog)
        await flight.shows("✓ 1 SKILL analysis", "✓ up to date: nothing was written")
        mastermind = await flight.engine.mastermind()
        assert [job.verb for job in mastermind.state.jobs.values()] == ["agent_build"]
        await flight.press("escape")
        source.rename(tmp_path / "elsewhere")
        await flight.press("F")
        await flight.dialog(FleetDialog)
        await flight.press("slash", *"pricing", "enter", "b")
        await flight.shows("the folder of pricing is gone")
