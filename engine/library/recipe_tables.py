"""The tables of a recipe file as they stand in TOML, with the shapes that are checked first."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

_KEBAB = r"^[a-z0-9][a-z0-9-]{0,59}$"

Kind = Literal["file", "directory", "project", "venv"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class StepTable(_Strict):
    """One `[[recipe.steps]]`."""

    op: Literal["act", "achieve", "test", "add", "remove", "update", "think"] = "act"
    tool: str = ""
    command: str = ""
    args: dict[str, Any] = Field(default_factory=dict)
    description: str = Field(default="", max_length=300)
    """In words; the recipe's summary when left out."""
    id: str = Field(default="", max_length=60)
    depends_on: list[str] = Field(default_factory=list)
    each: str = ""


class RecipeTable(_Strict):
    """One `[[recipe]]`."""

    name: str = Field(pattern=_KEBAB)
    summary: str = Field(min_length=1, max_length=300)
    example: str = Field(min_length=1, max_length=300)
    says: list[str] = Field(min_length=1, max_length=40)
    steps: list[StepTable] = Field(min_length=1, max_length=100)
    defaults: dict[str, str] = Field(default_factory=dict)
    missing: dict[str, str] = Field(default_factory=dict)
    names: dict[Kind, str] = Field(default_factory=dict)


class FileTable(_Strict):
    """A whole file."""

    recipe: list[RecipeTable] = Field(min_length=1, max_length=500)
