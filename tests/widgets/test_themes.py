from __future__ import annotations

from pathlib import Path

import pytest
from cockpit_samples import Cockpit
from rich.color import Color as RichColor
from textual.color import Color
from textual.theme import Theme

from themes.loading import DEFAULT_THEME, load_themes
from widgets.base.line_pane import STYLE_NAMES

THEMES, ERRORS = load_themes()
COLOURED = [name for name, theme in THEMES.items() if not theme.ansi]


def luminance(color: RichColor) -> float:
    """Relative luminance as WCAG 2 defines it."""
    assert color.triplet is not None
    parts = [value / 255 for value in color.triplet]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: RichColor, other: RichColor) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_shipped_themes_are_sound_and_of_all_kinds() -> None:
    assert ERRORS == []
    assert DEFAULT_THEME in THEMES
    assert len(THEMES) >= 5
    assert any(theme.ansi for theme in THEMES.values())
    assert any(not theme.dark for theme in THEMES.values())


@pytest.mark.parametrize("name", COLOURED)
async def test_every_text_is_readable_on_every_ground_it_appears_on(name: str) -> None:
    least = 7.0 if name == "pilothouse-contrast" else 4.5
    app = Cockpit(name)
    async with app.run_test(size=(160, 45)) as pilot:
        app.fill()
        app.plan.focus()
        await pilot.pause()
        for style in STYLE_NAMES:
            resolved = app.goals.painter.named(style)
            assert resolved.color is not None
            assert resolved.bgcolor is not None
            assert contrast(resolved.color, resolved.bgcolor) >= least, style
        for pane in (
            app.goals,
            app.plan.steps,
            app.plan.detail,
            app.memory,
            app.errors,
            app.mind,
            app.status,
        ):
            for y in range(pane.content_size.height):
                for segment in pane.render_line(y):
                    if segment.text.strip(" │┃▌░▓"):
                        style = segment.style
                        assert style is not None
                        assert style.color is not None
                        assert style.bgcolor is not None
                        assert contrast(style.color, style.bgcolor) >= least, (pane, segment)


@pytest.mark.parametrize("name", COLOURED)
def test_the_focused_border_stands_out_from_the_others(name: str) -> None:
    variables = THEMES[name].to_color_system().generate()
    focused, blurred = Color.parse(variables["border"]), Color.parse(variables["border-blurred"])

    assert contrast(focused.rich_color, blurred.rich_color) >= 1.5


@pytest.mark.parametrize("name", list(THEMES))
async def test_every_theme_can_be_switched_to(name: str) -> None:
    app = Cockpit()
    async with app.run_test(size=(120, 40)) as pilot:
        app.fill()
        app.theme = name
        await pilot.pause()
        assert app.goals.painter.named("text").color is not None


async def test_a_theme_switch_recolours_what_was_drawn() -> None:
    app = Cockpit()
    async with app.run_test(size=(120, 40)) as pilot:
        app.fill()
        await pilot.pause()
        before = [pane.render_line(0) for pane in (app.goals, app.session, app.status)]
        app.theme = "pilothouse-day"
        await pilot.pause()
        after = [pane.render_line(0) for pane in (app.goals, app.session, app.status)]

        for old, new in zip(before, after, strict=True):
            assert old.text == new.text
            assert [segment.style for segment in old] != [segment.style for segment in new]


def written(folder: Path, name: str, text: str) -> tuple[dict[str, Theme], list[str]]:
    (folder / name).write_text(text, encoding="utf-8")
    return load_themes(folder)


def test_a_users_theme_joins_the_others(tmp_path: Path) -> None:
    themes, errors = written(
        tmp_path, "mine.toml", 'name = "mine"\nprimary = "#ff8800"\n[variables]\nborder = "red 50%"\n'
    )

    assert errors == []
    assert themes["mine"].primary == "#ff8800"
    assert len(themes) == len(THEMES) + 1


def test_a_users_theme_may_take_the_place_of_a_shipped_one(tmp_path: Path) -> None:
    themes, errors = written(tmp_path, "night.toml", 'name = "pilothouse-night"\nprimary = "#123456"\n')

    assert errors == []
    assert themes["pilothouse-night"].primary == "#123456"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name = ", "Invalid value"),
        ('name = "x"', "primary: Field required"),
        ('name = "x"\nprimary = "reddish"', "primary: 'reddish' is not a colour"),
        ('name = "X Y"\nprimary = "red"', "name: "),
        ('name = "x"\nprimary = "red"\ncolour = "blue"', "colour: Extra inputs"),
        ('name = "x"\nprimary = "red"\n[variables]\nborder = "loud"', "border: 'loud' is not a colour"),
        ('name = "x"\nprimary = "red"\n[variables]\nborder = "red 500%"', "per cent"),
        ('name = "x"\nprimary = "red"\n[variables]\nlink-style = "shouting"', "not a text style"),
        ("#" * 70_000, "larger than"),
        ("\x00", ""),
    ],
)
def test_a_broken_theme_is_reported_and_left_out(tmp_path: Path, text: str, says: str) -> None:
    themes, errors = written(tmp_path, "broken.toml", text)

    assert themes.keys() == THEMES.keys()
    assert len(errors) == 1
    assert errors[0].startswith("broken.toml: ")
    assert says in errors[0]


def test_a_theme_that_is_not_text_is_reported(tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00name")

    assert "bytes.toml" in load_themes(tmp_path)[1][0]


def test_a_missing_folder_holds_no_themes(tmp_path: Path) -> None:
    themes, errors = load_themes(tmp_path / "none")

    assert themes.keys() == THEMES.keys()
    assert errors == []


@pytest.mark.parametrize(
    "value", ["red; } * { display: none", "$primary", "auto", "auto 60%", "none", "red  50%"]
)
async def test_no_accepted_variable_breaks_the_style_sheet(tmp_path: Path, value: str) -> None:
    themes, _ = written(
        tmp_path, "x.toml", f'name = "x"\nprimary = "red"\n[variables]\nforeground-muted = "{value}"\n'
    )
    app = Cockpit()
    async with app.run_test(size=(100, 30)) as pilot:
        app.fill()
        if "x" in themes:
            app.register_theme(themes["x"])
            app.theme = "x"
            await pilot.pause()
        assert app.is_running
