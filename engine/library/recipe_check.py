"""Checking a recipe: that its patterns, parameters, templates and steps fit together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.library.parameters import COMMANDS, TYPES, ParameterType, Shape
from engine.library.pattern import Pattern
from engine.library.recipe_tables import RecipeTable, StepTable
from engine.library.template import TemplateError, slots_of

RESERVED = frozenset({"project", "item"})
"""Names that the thinker gives values itself."""
_PLAIN_TYPES = COMMANDS | {"number"}
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
            if _sort(TYPES[types.setdefault(name, kind.name)]) != _sort(kind):
                what = f"parameter '{name}' is another sort of value (list, command, text) in another pattern"
                yield what, "use one type for it", pattern.text
    for name in sorted({*table.defaults, *table.missing} - types.keys()):
        yield f"'{name}' is no parameter of its patterns", "remove it or correct its spelling", name
    for template in table.names.values():
        yield from _of_template(template, _bound(table, patterns) | {"project"}, types)


def _sort(kind: ParameterType) -> tuple[bool, bool]:
    """What must be the same of a parameter in all patterns: whether it is a list, and safe in a command."""
    return kind.shape is Shape.LIST, kind.name in _PLAIN_TYPES


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
    step: StepTable, types: dict[str, str], bound: frozenset[str], seen: set[str]
) -> Iterator[Problem]:
    known = bound | {"project"}
    if step.each:
        kind = TYPES.get(types.get(step.each, ""))
        if step.each not in bound or kind is None or kind.shape is not Shape.LIST:
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
        slots = list(slots_of(template))
    except TemplateError as error:
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
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
