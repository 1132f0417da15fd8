"""The operator's themes are live while their files change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from app.cockpit.app import Cockpit
from app.commands.settings import Settings
from tests.patience import PATIENCE_S

THEME = 'name = "harbour"\nprimary = "{primary}"\nbackground = "#101418"\nforeground = "#d0d8e0"\n'


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.02)


async def test_a_new_theme_can_be_chosen_and_its_changes_show(tmp_path: Path) -> None:
    home = tmp_path / "home"
    file = home / "themes" / "harbour.toml"
    app = Cockpit(tmp_path / "flight", settings=Settings(home=home))
    async with app.run_test(size=(120, 35)):
        await until(lambda: bool(app.context.projector.states))
        file.parent.mkdir(parents=True)
        file.write_text(THEME.format(primary="#3070a0"))
        await until(lambda: "harbour" in app.available_themes)
        app.theme = "harbour"
        file.write_text(THEME.format(primary="#a03070"))
        await until(lambda: app.theme_variables["primary"].lower() == "#a03070")
        assert app.theme == "harbour"


async def test_a_broken_theme_is_said_and_the_present_one_stays(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "themes").mkdir(parents=True)
    app = Cockpit(tmp_path / "flight", settings=Settings(home=home))
    async with app.run_test(size=(120, 35)):
        await until(lambda: bool(app.context.projector.states))
        before = app.theme
        (home / "themes" / "bad.toml").write_text("name = 7\n")
        said = app.query_one("#command #message")
        await until(lambda: "bad.toml" in str(said.render()))
        assert app.theme == before


async def test_the_chosen_theme_is_there_with_the_first_screen(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "themes").mkdir(parents=True)
    (home / "themes" / "harbour.toml").write_text(THEME.format(primary="#3070a0"))
    app = Cockpit(tmp_path / "flight", settings=Settings(home=home, theme="harbour"))
    async with app.run_test(size=(120, 35)) as pilot:
        await pilot.pause()
        assert app.has_class("-theme-harbour")
        assert app.theme_variables["primary"].lower() == "#3070a0"
        assert app.screen.styles.background.hex.lower() == "#101418"
