"""Reading and checking theme files; a broken one is reported and left out."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError, field_validator
from pydantic.functional_validators import AfterValidator
from rich.errors import StyleSyntaxError
from rich.style import Style
from textual.color import Color, ColorParseError
from textual.theme import Theme

from engine.core.text import clean_line

DEFAULT_THEME = "pilothouse-night"
DATA = Path(__file__).parent / "data"
SIZE_LIMIT = 64 * 1024
"""Bytes of a theme file; a larger one is not a theme."""


def _color(value: str) -> str:
    try:
        Color.parse(value)
    except ColorParseError as error:
        raise ValueError(f"{value!r} is not a colour; write #rrggbb, a colour name, or ansi_red") from error
    return value


ColorText = Annotated[str, AfterValidator(_color)]


class ThemeFile(BaseModel, extra="forbid", frozen=True):
    """A theme as written in a file; the names are those of `textual.theme.Theme`."""

    name: str = Field(pattern=r"^[a-z][a-z0-9-]{0,39}$")
    """Small letters, digits and dashes."""
    primary: ColorText
    secondary: ColorText | None = None
    accent: ColorText | None = None
    success: ColorText | None = None
    warning: ColorText | None = None
    error: ColorText | None = None
    foreground: ColorText | None = None
    background: ColorText | None = None
    surface: ColorText | None = None
    panel: ColorText | None = None
    boost: ColorText | None = None
    dark: bool = True
    ansi: bool = False
    """True for a theme of the terminal's own sixteen colours."""
    variables: dict[str, str] = Field(default_factory=dict)
    """Textual's theme variables; names that end in `-style` are text styles, all others colours."""

    @field_validator("variables")
    @classmethod
    def _check_variables(cls, variables: dict[str, str]) -> dict[str, str]:
        for name, value in variables.items():
            if name.endswith("-style"):
                _check_style(name, value)
            else:
                _check_color(name, value)
        return variables


def _check_style(name: str, value: str) -> None:
    try:
        Style.parse(value)
    except StyleSyntaxError as error:
        raise ValueError(f"{name}: {value!r} is not a text style; write none, bold, reverse, …") from error


def _check_color(name: str, value: str) -> None:
    """A colour, `auto`, either with an alpha in per cent after it."""
    color, _, alpha = value.strip().partition(" ")
    number = alpha.strip().removesuffix("%")
    if alpha and not (alpha.strip().endswith("%") and number.isdigit() and int(number) <= 100):
        raise ValueError(f"{name}: {alpha!r} after the colour is not a per cent value from 0% to 100%")
    if color != "auto":
        try:
            _color(color)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error


def load_themes(user_dir: Path | None = None) -> tuple[dict[str, Theme], list[str]]:
    """All themes by name, and what was wrong with those left out.

    Args:
        user_dir: the operator's own themes, `*.toml`; one with the name of a shipped theme
            takes its place. A folder that is not there holds none.

    Returns:
        The themes, and one sentence a broken file: which, what, and where in it. Reads files:
        call it off the event loop once the cockpit runs.
    """
    themes: dict[str, Theme] = {}
    errors: list[str] = []
    for folder in (DATA, user_dir):
        if folder is None:
            continue
        for path in sorted(folder.glob("*.toml")):
            try:
                theme = read_theme(path)
            except (OSError, ValueError) as error:
                errors.append(f"{path.name}: {clean_line(str(error))}; the theme was left out")
            else:
                themes[theme.name] = theme
    return themes, errors


def read_theme(path: Path) -> Theme:
    """The theme of one file.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a theme; says what is wrong and where.
    """
    with path.open("rb") as file:
        raw = file.read(SIZE_LIMIT + 1)
    if len(raw) > SIZE_LIMIT:
        raise ValueError(f"larger than {SIZE_LIMIT // 1024} KiB")
    try:
        data = ThemeFile.model_validate(tomllib.loads(raw.decode()))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ValueError(f"{where}: {first['msg'].removeprefix('Value error, ')}") from error
    theme = Theme(**data.model_dump())
    theme.to_color_system().generate()
    return theme
