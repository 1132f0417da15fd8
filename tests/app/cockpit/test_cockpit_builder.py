"""The builder screen: phases as they pass, findings with places, the type chosen where it is not plain."""

from __future__ import annotations

from pathlib import Path

import pytest
from crew_flight import lay_skill, staffed

from widgets.dialogs.session import BuilderDialog


@pytest.mark.parametrize("size", [(80, 24)])
async def test_a_build_asks_whether_the_folder_is_trusted_and_goes_on(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    """Lines 50 and 59."""
    source = lay_skill(tmp_path / "ws" / "sandbox" / "pricing")
    async with staffed(tmp_path / "ws", size=size) as flight:
        await flight.type(f"build {source} --dry-run")
        await flight.dialog(BuilderDialog)
        dialog = flight.app.screen
        await flight.until(lambda: dialog.model.asked, "the question")
        await flight.shows("? 1 SKILL analysis", "asks you", "Trust this skill?", "? needs you")
        await flight.press("1")
        await flight.until(
            lambda: (
                flight.app.controllers.builds.result is not None
                and flight.app.controllers.builds.result.success
            ),
            "the build",
        )
        await flight.shows("dry run: nothing was registered", "pricing 1.0.0", "type: operator, by reading")
        assert "type: operator" in str(dialog.model.texts)
        await flight.press("home")
        await flight.shows("description: A workflow for prices.")
        assert not (tmp_path / "ws/agents").exists()
        await flight.press("escape")
        await flight.no_dialog()
        # The build says it and so does the job that it was, whichever comes last.
        said = ("pricing: dry run", "would be built of 2 files; nothing was written")
        await flight.until(lambda: any(words in flight.message for words in said), "what the build says")


async def test_a_build_that_fails_says_where(tmp_path: Path) -> None:
    source = lay_skill(tmp_path / "pricing")
    (source / "SKILL.md").write_text("---\nname: [x\n---\n", encoding="utf-8")
    async with staffed(tmp_path / "ws") as flight:
        await flight.type(f"build {source} --dry-run")
        await flight.dialog(BuilderDialog)
        await flight.shows(
            "✗ 1 SKILL analysis", "✗ required_fields", "✗ SKILL.md:1 NO_DESC", "✗ failed", "not begun"
        )
