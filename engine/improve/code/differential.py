"""What a change could have broken: questions that are drawn once it is known, and asked of both trees.

Each function in or above the change is called with the inputs of the project's tests, and with inputs grown
from them: of other sizes, far above and around each constant of the change, of other kinds, empty, changed
between two calls. Where a description gives examples, these say what is right.
"""

from __future__ import annotations

import ast
import doctest
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.improve.code.findings import ExaminedProject
from engine.improve.code.inputs import allows, deliberate_exceptions, draw_arguments, other_values
from engine.improve.code.projects import BAD, module_name
from engine.improve.code.source import (
    Function,
    Source,
    called_name,
    parameters,
    parse_source,
    read_source,
    shapes_of,
)
from engine.improve.ports import Call, Check, ExpectedAnswer, Split

_CALLS, _TOGETHER = 72, 6
"""Calls of one function at most, and of one process."""
_FUNCTIONS = 16
"""Functions that are asked at most, those that changed first."""
_SIZES = (65, 257, 2_200)
_LARGEST = 5_000
_CRASHES = frozenset(
    {
        *("IndexError", "KeyError", "AttributeError", "TypeError", "NameError", "UnboundLocalError"),
        *("ZeroDivisionError", "RecursionError"),
    }
)
"""Exceptions that code raises without meaning to."""


def drawn_checks(
    before: Path,
    after: Path,
    seen: ExaminedProject,
    doubted: set[str],
    examples: Mapping[str, Sequence[Any]],
    seed: str,
) -> list[Check]:
    """Sealed checks of what a change could have broken; blocking.

    What raises now as failing tests do is to be mended, whatever comes in its place.

    Args:
        before: the tree before, in which the project was examined.
        after: the tree with the change.
        seen: the project as it was examined.
        doubted: last names of functions whose answers are not trusted; only what they do besides is compared.
        examples: arguments by the functions' last names.
        seed: draws what is asked.
    """
    new = {path: read_module(after / seen.project.path(path)) for path in seen.sources}
    changed, sizes = _changed(seen.sources, new)
    checks: list[Check] = []
    crashes = tuple(sorted({name for test in seen.tests.values() if (name := _crash(test))}))
    for path, name, function in _asked(seen, new, changed)[:_FUNCTIONS]:
        rng = random.Random(f"{seed} {path} {name}")
        target = f"{module_name(seen.project, before, path)[0]}:{name}"
        checks += _described(target, name, function)
        grown = _grown(function, examples.get(name, ()), [*_SIZES, *sorted(sizes)], rng)
        calls = [Call(target, given) for given in grown]
        calls += _otherwise_called(target, function, calls)
        meant = tuple(sorted(deliberate_exceptions(function)))
        for number, start in enumerate(range(0, len(calls), _TOGETHER)):
            some = [part for call in calls[start : start + _TOGETHER] for part in (call, _again(call))]
            check = Check(
                f"{target} drawn {number}", Split.SEALED, tuple(some), family=target, drawn=True,
                effects=name in doubted, raises=meant,
                crashes=tuple(crash for crash in crashes if crash not in meant),
            )  # fmt: skip
            checks.append(check)
    return checks


def read_module(path: Path) -> Source | None:
    """A module of a tree, empty where there is none; None where it is no Python."""
    try:
        return parse_source(read_source(path))
    except (OSError, ValueError):
        return parse_source("")


def _changed(old: Mapping[str, Source], new: Mapping[str, Source | None]) -> tuple[set[str], set[int]]:
    """Last names of functions that changed, and the whole numbers that stand in what changed."""
    names: set[str] = set()
    sizes: set[int] = set()
    for path, source in old.items():
        other = new[path]
        if other is None or source.text == other.text:
            continue
        mine, theirs = shapes_of(source), shapes_of(other)
        differ = {name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name)}
        if "" in differ:  # a module's own statements concern all that is in it
            differ |= mine.keys()
        names |= {name.rpartition(".")[2] for name in differ}
        numbers = {
            abs(node.value)
            for name, function in other.functions
            if name in differ
            for node in ast.walk(function)
            if isinstance(node, ast.Constant) and type(node.value) is int and 2 < abs(node.value) <= _LARGEST
        }
        sizes |= {size for number in numbers for size in (number - 1, number, number + 1, 2 * number + 1)}
    return names, sizes


def _asked(
    seen: ExaminedProject, new: Mapping[str, Source | None], changed: set[str]
) -> list[tuple[str, str, Function]]:
    """Functions in or above the change that both trees have and that can be called, as they were before."""
    sources = [source for source in new.values() if source is not None]
    calls = [
        (name.rpartition(".")[2], {called_name(node) for node in ast.walk(function)})
        for source in sources
        for name, function in source.functions
    ]
    above = set(changed)
    while more := {name for name, inner in calls if inner & above} - above:
        above |= more
    asked = []
    for path, source in sorted(seen.sources.items()):
        other = new[path]
        there = {name for name, _ in other.functions} if other is not None else set()
        for name, function in source.functions:
            plain = "." not in name and not name.startswith("_") and isinstance(function, ast.FunctionDef)
            if plain and name in there & above and name != "main":
                asked.append((path, name, function))
    return sorted(asked, key=lambda entry: entry[1] not in changed)


def _grown(
    function: Function, examples: Sequence[tuple[Any, ...]], sizes: Sequence[int], rng: random.Random
) -> list[tuple[Any, ...]]:
    """Arguments: those that are known, each with one in another size or kind, and drawn ones."""
    known = list(examples)
    drawn = [given for _ in range(_CALLS // 4) if (given := draw_arguments(function, known, rng)) is not None]
    bases = (known or drawn)[:4]
    grown = [
        (*given[:place], value, *given[place + 1 :])
        for given in bases
        for place, old in enumerate(given)
        for value in other_values(old, sizes, rng)
    ]
    rng.shuffle(grown)
    accepted = parameters(function)
    once = {
        repr(given): given
        for given in (*known[:12], *grown, *drawn)
        if all(allows(kind.annotation, value) for kind, value in zip(accepted, given, strict=False))
    }
    return list(once.values())[:_CALLS]


def _otherwise_called(target: str, function: Function, calls: Sequence[Call]) -> list[Call]:
    """The first call with its arguments by name, and without its last one."""
    names = [parameter.arg for parameter in function.args.args]
    if function.args.posonlyargs or not calls or not calls[0].args or len(calls[0].args) > len(names):
        return []
    given = calls[0].args
    return [Call(target, (), dict(zip(names, given, strict=False))), Call(target, given[:-1])]


def _crash(test: Mapping[str, Any]) -> str:
    """The exception by which the code under a failing test went down; empty where the test itself said no."""
    name = str(test.get("message", "")).partition(":")[0] if test["outcome"] in BAD else ""
    return name if name in _CRASHES else ""


def _again(call: Call) -> Call:
    """The same call once more, with lists among its arguments changed in place since."""
    short = any(isinstance(value, list) and 1 < len(value) < 100 for value in call.args)
    return Call(call.target, call.args, again=short)


_SAYS = r"\s*(?:is|are|gives|returns|->|=>|==|→)\s*"


def _described(target: str, name: str, function: Function) -> Iterator[Check]:
    """What a function's description says of single calls of it."""
    words = ast.get_docstring(function) or ""
    cases = [(example.source, example.want) for example in doctest.DocTestParser().get_examples(words)]
    plain = re.sub(r"^\s*>>>.*\n.*$", "", words, flags=re.MULTILINE).replace("`", "")
    for match in re.finditer(rf"\b{re.escape(name)}\([^()]*\){_SAYS}", plain):
        call = plain[match.start() : match.end()]
        cases.append((re.split(_SAYS, call)[0], _literal_at(plain[match.end() :])))
    for number, (source, want) in enumerate(cases):
        try:
            node = ast.parse(source.strip(), mode="eval").body
            if not isinstance(node, ast.Call) or called_name(node) != name:
                continue
            given = tuple(map(ast.literal_eval, node.args))
            named = {part.arg or "": ast.literal_eval(part.value) for part in node.keywords}
            right = ExpectedAnswer(ast.literal_eval(want.strip()))
        except (ValueError, SyntaxError, TypeError, MemoryError):
            continue
        yield Check(
            f"{target} as described {number}", Split.SEALED, (Call(target, given, named),),
            expected=(right,), family=target,
        )  # fmt: skip


def _literal_at(text: str) -> str:
    """The longest value that stands at the beginning of a text."""
    line = text.split("\n")[0]
    for end in range(len(line), 0, -1):
        try:
            ast.literal_eval(line[:end])
        except (ValueError, SyntaxError, TypeError):
            continue
        return line[:end]
    return ""
