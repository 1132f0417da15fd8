"""Recipes: what the agent can do without a model, clause by clause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.library.matching import Matcher
from engine.library.parameters import Value


@dataclass(frozen=True, slots=True)
class RecipeStep:
    """One step that a recipe gives; its strings are templates (`engine.library.template`)."""

    op: str
    """The name of a plan operation: `act`, `achieve`, `add`, …"""
    tool: str
    command: str
    args: Mapping[str, Any]
    description: str
    id: str = ""
    """Name for `depends_on`, local to the recipe."""
    depends_on: tuple[str, ...] = ()
    each: str = ""
    """A list parameter: the step is given once for each item, which it calls `{item}`."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A way to serve one clause of a goal."""

    name: str
    source: str
    """The file it is from, as the operator knows it (`files.toml`, `recipes/mine.toml`)."""
    summary: str
    example: str
    says: tuple[Matcher, ...]
    steps: tuple[RecipeStep, ...]
    defaults: Mapping[str, Value] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    """What a parameter is, in words, for the message that it is missing."""
    names: Mapping[str, str] = field(default_factory=dict)
    """What later clauses may point back at, by kind (`file`, `directory`, `project`, `venv`): a template."""
    by_operator: bool = False
    """True for a recipe of the workspace; it beats a shipped one that matches as well."""

    @property
    def id(self) -> str:
        """`file:recipe`, as provenance shows it."""
        return f"{self.source}:{self.name}"


@dataclass(frozen=True, slots=True)
class RecipeError:
    """Something wrong in a file of recipes; the whole file is left out, or its last good version kept."""

    file: str
    what: str
    """What is wrong."""
    todo: str
    """What to do about it."""
    line: int | None = None
    """Line in the file, from 1, when it is known."""

    def __str__(self) -> str:
        """`file:line: what: todo`."""
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.what}: {self.todo}"
