"""Recipes: what the agent can do without a model, clause by clause.

The tables of a recipe file as they stand in TOML, with the shapes that are checked first.

Checking a recipe: that its patterns, parameters, templates and steps fit together.

Recipe files: reading one strictly, so that a mistake is named with its line.

    [[recipe]]
    name = "create-directory"
    summary = "Create directories."
    example = "create a directory named 'docs'"
    says = ["(create|make) [a|the] [new] directory [named|called] {path:path}"]
    missing = { path = "the directory's name" }     # words for "… is missing"
    defaults = { }                                  # values of parameters a clause may leave out
    names = { directory = "{path}" }                # what "it" and "the directory" mean afterwards

    [[recipe.steps]]
    op = "act"                                      # act when left out
    tool = "simple_coder"                           # simple_coder when left out
    command = "mkdir"
    args = { path = "{path}" }
    description = "Create the directory {path}"   # the summary when left out

A step may also have `id` and `depends_on` (ids of earlier steps of the recipe), and `each`, a list
parameter for whose items it is repeated as `{item}`. `{project}` is the name of the project the
agent is in. In the command of a `run` or `start` step, a parameter needs the filter `shell` (or one that
leaves letters only: `slug`, `snake`, `camel`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from engine.model import LateModel
from engine.planning.library import parameters
from engine.planning.library.matcher import Matcher
from engine.planning.library.pattern import Pattern, PatternError, parse_pattern
from engine.value import dataclass, field


class _Strict(BaseModel, metaclass=LateModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class RecipeStep(_Strict):
    """One `[[recipe.steps]]`; its strings are templates (`engine.planning.library.parameters`)."""

    op: Literal["act", "achieve", "test", "add", "remove", "update", "think"] = "act"
    """The name of a plan operation."""
    tool: str = ""
    command: str = ""
    args: dict[str, Any] = Field(default_factory=dict)
    description: str = Field(default="", max_length=300)
    """In words; the recipe's summary when left out."""
    id: str = Field(default="", max_length=60)
    """Name for `depends_on`, local to the recipe."""
    depends_on: list[str] = Field(default_factory=list)
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
    defaults: Mapping[str, parameters.Value] = field(default_factory=dict)
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


_KEBAB = r"^[a-z0-9][a-z0-9-]{0,59}$"

Kind = Literal["file", "directory", "project", "venv"]


class RecipeTable(_Strict):
    """One `[[recipe]]`."""

    name: str = Field(pattern=_KEBAB)
    summary: str = Field(min_length=1, max_length=300)
    example: str = Field(min_length=1, max_length=300)
    says: list[str] = Field(min_length=1, max_length=40)
    steps: list[RecipeStep] = Field(min_length=1, max_length=100)
    defaults: dict[str, str] = Field(default_factory=dict)
    missing: dict[str, str] = Field(default_factory=dict)
    names: dict[Kind, str] = Field(default_factory=dict)


class FileTable(_Strict):
    """A whole file."""

    recipe: list[RecipeTable] = Field(min_length=1, max_length=500)


RESERVED = frozenset({"project", "item"})
"""Names that the thinker gives values itself."""
_PLAIN_TYPES = parameters.COMMANDS | {"number"}
"""Types whose values cannot break out of a command, or are a command."""
_SAFE_FILTERS = frozenset({"shell", "slug", "snake", "camel"})
"""Filters after which a value is one argument of a command."""

Problem = tuple[str, str, str]
"""What is wrong, what to do, and where it stands."""


def problems(table: RecipeTable, patterns: list[Pattern]) -> Iterator[Problem]:
    """What is wrong with a recipe apart from its steps."""
    types: dict[str, str] = {}
    for pattern in patterns:
        for name, kind in pattern.parameters.items():
            if name in RESERVED:
                yield f"'{name}' is a reserved name", "give the parameter another name", pattern.text
            if _sort(parameters.TYPES[types.setdefault(name, kind.name)]) != _sort(kind):
                what = f"parameter '{name}' is another sort of value (list, command, text) in another pattern"
                yield what, "use one type for it", pattern.text
    for name in sorted({*table.defaults, *table.missing} - types.keys()):
        yield f"'{name}' is no parameter of its patterns", "remove it or correct its spelling", name
    for template in table.names.values():
        yield from _of_template(template, _bound(table, patterns) | {"project"}, types)


def _sort(kind: parameters.ParameterType) -> tuple[bool, bool]:
    """What must be the same of a parameter in all patterns: whether it is a list, and safe in a command."""
    return kind.shape is parameters.Shape.LIST, kind.name in _PLAIN_TYPES


def _bound(table: RecipeTable, patterns: list[Pattern]) -> frozenset[str]:
    """The parameters that have a value whichever way the recipe matches."""
    return frozenset.intersection(*(pattern.bound for pattern in patterns)) | table.defaults.keys()


def step_problems(table: RecipeTable, patterns: list[Pattern]) -> Iterator[tuple[int, Problem]]:
    """What is wrong with the steps of a recipe, with the number of the step, from 1."""
    types = {name: kind.name for pattern in patterns for name, kind in pattern.parameters.items()}
    bound = _bound(table, patterns)
    seen: set[str] = set()
    for number, step in enumerate(table.steps, start=1):
        for problem in _of_step(step, types, bound, seen):
            yield number, problem
        seen |= {step.id} - {""}


def _of_step(
    step: RecipeStep, types: dict[str, str], bound: frozenset[str], seen: set[str]
) -> Iterator[Problem]:
    known = bound | {"project"}
    if step.each:
        kind = parameters.TYPES.get(types.get(step.each, ""))
        if step.each not in bound or kind is None or kind.shape is not parameters.Shape.LIST:
            yield f"each = '{step.each}' is no list parameter", "name a parameter of a list type", step.each
        known |= {"item"}
    if step.op == "act" and not step.command:
        yield "an act step has no command", 'add command = "…"', step.description
    if step.op != "act" and (step.command or step.tool):
        yield f"{step.op} is given a tool or a command", 'remove them, or use op = "act"', step.description
    if step.op == "achieve" and not isinstance(step.args.get("goal"), str):
        yield "achieve has no goal", 'add args = { goal = "…" }', step.description
    if step.id and step.id in seen:
        yield f"the id '{step.id}' is used twice", "give it another id", step.id
    for name in step.depends_on:
        if name not in seen:
            yield f"it depends on '{name}', no id of an earlier step", "correct depends_on", name
    running = step.op == "act" and step.command in ("run", "start")
    for template in (step.description, *_strings(step.args)):
        command = running and template == step.args.get("command")
        yield from _of_template(template, known, types, command=command)


def _of_template(
    template: str, known: frozenset[str], types: dict[str, str], *, command: bool = False
) -> Iterator[Problem]:
    try:
        slots = list(parameters.slots_of(template))
    except parameters.TemplateError as error:
        what, _, todo = str(error).partition(": ")
        yield what, todo, template[:40]
        return
    for slot in slots:
        name = slot.parameter
        where = next(line for line in template.splitlines() if f"{{{name}" in line)
        if name not in known:
            todo = f"bind it in every pattern or give it a default; for plain text write '{{{{{name}}}}}'"
            yield f"'{{{name}}}' has no value", todo, where
        elif command and not _SAFE_FILTERS & {*slot.filters[-1:]} and types.get(name) not in _PLAIN_TYPES:
            yield f"'{{{name}}}' stands unquoted in a command", f"write '{{{name}|shell}}'", where


def _strings(value: Any) -> Iterator[str]:
    """Every string in the arguments of a step."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


MAX_BYTES = 256 * 1024
"""Largest file of recipes."""
_MAX_ERRORS = 20

FILES_KEPT = 256
"""Files whose recipes are kept, those read last."""
Parsed = tuple[tuple[Recipe, ...], tuple[RecipeError, ...]]


@lru_cache(maxsize=FILES_KEPT)
def parse_recipes(data: bytes, source: str, *, by_operator: bool = False) -> Parsed:
    """Read the contents of a recipe file: its recipes, or what is wrong with it.

    Results are kept: one changed file has no other parsed anew, nor has a second workspace those shipped.

    Args:
        data: the file's bytes.
        source: what to call the file in provenance and messages.
        by_operator: whether it is from the workspace.
    """
    try:
        text = _text(data)
        tables = FileTable.model_validate(tomllib.loads(text)).recipe
    except _RefusedError as refused:
        return (), (RecipeError(source, *refused.args),)
    except tomllib.TOMLDecodeError as error:
        return (), (_toml_error(source, error),)
    except RecursionError:
        return (), (RecipeError(source, "the values are nested too deep", "write flatter tables"),)
    except ValidationError as error:
        return (), tuple(_table_error(source, text, details) for details in error.errors()[:_MAX_ERRORS])
    builder = _Builder(text, source, by_operator)
    recipes = tuple(builder.recipe(index, table) for index, table in enumerate(tables))
    return ((), tuple(builder.errors[:_MAX_ERRORS])) if builder.errors else (recipes, ())


class _RefusedError(ValueError):
    """The bytes are no text that can be read; its arguments are what and what to do."""


def _text(data: bytes) -> str:
    if len(data) > MAX_BYTES:
        raise _RefusedError(f"the file is larger than {MAX_BYTES // 1024} KiB", "split it into several files")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _RefusedError(f"byte {error.start} is not UTF-8", "save the file as UTF-8", line) from error


def _toml_error(source: str, error: tomllib.TOMLDecodeError) -> RecipeError:
    where = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
    what = re.sub(r"\s*\(at .*\)$", "", str(error))
    line = int(where[1]) if where else None
    return RecipeError(source, f"not valid TOML: {what}", "correct the line, or quote the text", line)


def _line(text: str, recipe: int, needle: str = "", step: int = 0) -> int | None:
    """The line in a file of the n-th recipe (from 0), or of the first place in it that holds the needle.

    With a step (from 1) the place is looked for from that step on; None when the tables are written in
    another way than as `[[recipe]]`.
    """
    starts = [match.start(1) for match in re.finditer(r"^\s*(\[\[\s*recipe\s*\]\])", text, re.MULTILINE)]
    if recipe >= len(starts):
        return None
    start, end = starts[recipe], [*starts[recipe + 1 :], len(text)][0]
    steps = list(re.finditer(r"^\s*(\[\[\s*recipe\s*\.\s*steps\s*\]\])", text[start:end], re.MULTILINE))
    if 0 < step <= len(steps):
        start += steps[step - 1].start(1)
    place = text.find(needle, start, end) if needle else start
    return text.count("\n", 0, place if place != -1 else start) + 1


def _table_error(source: str, text: str, details: ErrorDetails) -> RecipeError:
    path = [str(part) for part in details["loc"]]
    key, kind = (path[-1] if path else "the file"), details["type"]
    if kind == "extra_forbidden":
        what, todo = f"unknown key '{key}'", "remove it or correct its spelling"
    elif kind == "missing":
        what, todo = f"the key '{key}' is missing", "add it"
    else:
        what, todo = f"'{'.'.join(path[2:] or path)}': {details['msg']}", "correct the value"
    index = details["loc"][1] if len(details["loc"]) > 1 else None
    line = _line(text, index, key) if isinstance(index, int) else None
    return RecipeError(source, what, todo, line)


class _Builder:
    """Makes recipes from the tables of one file and collects what is wrong with them."""

    def __init__(self, text: str, source: str, by_operator: bool) -> None:
        self.text = text
        self.source = source
        self.by_operator = by_operator
        self.errors: list[RecipeError] = []
        self._names: set[str] = set()

    def recipe(self, index: int, table: RecipeTable) -> Recipe:
        def wrong(what: str, todo: str, needle: str = "", step: int = 0) -> None:
            line = _line(self.text, index, needle, step)
            self.errors.append(RecipeError(self.source, f"recipe '{table.name}': {what}", todo, line))

        if table.name in self._names:
            wrong("its name is used twice in this file", "give it another name")
        self._names.add(table.name)
        patterns: list[Pattern] = []
        for says in table.says:
            try:
                patterns.append(parse_pattern(says))
            except PatternError as error:
                what, _, todo = str(error).partition(": ")
                wrong(f"in the pattern “{says[:120]}”, {what}", todo, says)
        if len(patterns) == len(table.says):
            for problem in problems(table, patterns):
                wrong(*problem)
            for number, problem in step_problems(table, patterns):
                wrong(f"step {number}: {problem[0]}", *problem[1:], step=number)
        return Recipe(
            table.name,
            self.source,
            table.summary,
            table.example,
            tuple(map(Matcher, patterns)),
            tuple(_step(step, table.summary) for step in table.steps),
            table.defaults,
            table.missing,
            {str(kind): template for kind, template in table.names.items()},
            self.by_operator,
        )


def _step(step: RecipeStep, summary: str) -> RecipeStep:
    """The step with what its table leaves to others."""
    tool = step.tool or ("simple_coder" if step.op == "act" else "")
    return step.model_copy(update={"tool": tool, "description": step.description or summary.rstrip(".")})
