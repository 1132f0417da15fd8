"""The operator's own themes."""

from __future__ import annotations

from pathlib import Path

from app.cockpit.app import Cockpit
from app.commands.settings import Settings

THEME = 'name = "harbour"\nprimary = "{primary}"\nbackground = "#101418"\nforeground = "#d0d8e0"\n'


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
