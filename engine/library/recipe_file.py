"""Recipe files: reading one strictly, so that a mistake is named with its line.

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

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from engine.library.matching import Matcher
from engine.library.pattern import Pattern, PatternError, parse_pattern
from engine.library.recipe import Recipe, RecipeError, RecipeStep
from engine.library.recipe_check import problems, step_problems
from engine.library.recipe_tables import FileTable, RecipeTable, StepTable

MAX_BYTES = 256 * 1024
"""Largest file of recipes."""
_MAX_ERRORS = 20

Parsed = tuple[tuple[Recipe, ...], tuple[RecipeError, ...]]


def parse_recipes(data: bytes, source: str, *, by_operator: bool = False) -> Parsed:
    """Read the contents of a recipe file: its recipes, or what is wrong with it.

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
    return RecipeError(
        source,
        f"not valid TOML: {what}",
        "correct the line, or quote the text",
        int(where[1]) if where else None,
    )


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


def _step(table: StepTable, summary: str) -> RecipeStep:
    tool = table.tool or ("simple_coder" if table.op == "act" else "")
    return RecipeStep(
        table.op,
        tool,
        table.command,
        table.args,
        table.description or summary.rstrip("."),
        table.id,
        tuple(table.depends_on),
        table.each,
    )
