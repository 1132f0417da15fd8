"""Inputs for a project's functions, drawn by chance around those of its tests and of the types they name."""

from __future__ import annotations

import ast
import random
import string
from collections.abc import Iterable, Iterator
from typing import Any

from engine.mastermind.code.source import Function, Source, called, parameters

Examples = dict[str, list[tuple[Any, ...]]]
"""Arguments that tests give to functions, by the functions' last names."""
_LETTERS = string.ascii_letters + string.digits + " ,.-_:;/"
_SIMPLE = frozenset(
    {"int", "float", "str", "bool", "bytes", "list", "tuple", "dict", "set", "Sequence", "Iterable"}
)
_DEEPEST = 4


def examples(tests: Iterable[Source]) -> Examples:
    """The plain arguments of calls in tests, with those of `parametrize` put in their places."""
    found: Examples = {}
    for source in tests:
        for _, function in source.functions:
            rows = list(_rows(function)) or [{}]
            for node in ast.walk(function):
                if not isinstance(node, ast.Call) or node.keywords or not node.args:
                    continue
                for row in rows:
                    arguments = _plain(node.args, row)
                    if arguments is not None and arguments not in found.setdefault(called(node), []):
                        found[called(node)].append(arguments)
    return found


def _rows(function: Function) -> Iterator[dict[str, Any]]:
    """What `parametrize` gives to a test, a row at a time."""
    for decorator in function.decorator_list:
        if (
            called(decorator) != "parametrize"
            or not isinstance(decorator, ast.Call)
            or len(decorator.args) < 2
        ):
            continue
        try:
            names, rows = map(ast.literal_eval, decorator.args[:2])
        except (ValueError, TypeError, SyntaxError, MemoryError):
            continue
        names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
        for row in rows if isinstance(rows, (list, tuple)) else ():
            values = [row] if len(names) == 1 else row
            if isinstance(values, (list, tuple)) and len(values) == len(names):
                yield dict(zip(names, values, strict=True))


def _plain(arguments: list[ast.expr], row: dict[str, Any]) -> tuple[Any, ...] | None:
    found = []
    for one in arguments:
        if isinstance(one, ast.Name) and one.id in row:
            found.append(row[one.id])
            continue
        try:
            found.append(ast.literal_eval(one))
        except (ValueError, TypeError, SyntaxError, MemoryError):
            return None
    return tuple(found)


def draw(function: Function, known: list[tuple[Any, ...]], rng: random.Random) -> tuple[Any, ...] | None:
    """Arguments for a function; None where neither a test nor its annotations say what it takes."""
    wanted = parameters(function)
    fitting = [given for given in known if _fits(function, len(given))]
    if fitting and (rng.random() < 0.6 or not all(_known(one.annotation) for one in wanted)):
        return tuple(vary(value, rng) for value in rng.choice(fitting))
    required = wanted[: len(wanted) - len(function.args.defaults)] if not function.args.kwonlyargs else []
    if not required or not all(_known(one.annotation) for one in required):
        return None
    return tuple(made(one.annotation, rng) for one in required)


def _fits(function: Function, count: int) -> bool:
    positional = len([*function.args.posonlyargs, *function.args.args])
    return positional - len(function.args.defaults) <= count <= positional


def _known(annotation: ast.expr | None) -> bool:
    """Whether values of an annotation's type can be made."""
    if annotation is None:
        return False
    if isinstance(annotation, ast.Subscript):
        inner = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        kinds = [one for one in inner if not (isinstance(one, ast.Constant) and one.value is Ellipsis)]
        return _known(annotation.value) and all(_known(one) for one in kinds)
    return isinstance(annotation, ast.Name) and annotation.id in _SIMPLE


def made(annotation: ast.expr | None, rng: random.Random, depth: int = 0) -> Any:
    """A value of an annotation's type; lists and texts are mostly short."""
    name, inner = _parts(annotation)
    length = rng.choice((0, 1, 2, 3, 5, 8, 13)) if depth < _DEEPEST else 0
    match name:
        case "bool":
            return rng.random() < 0.5
        case "int":
            return rng.choice((0, 1, 2, rng.randint(-5, 20), rng.randint(-1000, 1000)))
        case "float":
            return rng.choice((0.0, 1.0, float(rng.randint(-9, 9)), round(rng.uniform(-100, 100), 2)))
        case "bytes":
            return bytes(rng.randrange(256) for _ in range(length))
        case "list" | "Sequence" | "Iterable":
            return [made(inner[0] if inner else None, rng, depth + 1) for _ in range(length)]
        case "set":
            return {made(inner[0] if inner else None, rng, _DEEPEST) for _ in range(length)}
        case "dict":
            kinds = inner if len(inner) == 2 else [None, None]
            return {made(kinds[0], rng, _DEEPEST): made(kinds[1], rng, depth + 1) for _ in range(length)}
        case "tuple" if inner and not isinstance(inner[-1], ast.Constant):
            return tuple(made(one, rng, depth + 1) for one in inner)
        case "tuple":
            return tuple(made(inner[0] if inner else None, rng, depth + 1) for _ in range(length))
        case _:
            return "".join(rng.choice(_LETTERS) for _ in range(length))


def _parts(annotation: ast.expr | None) -> tuple[str, list[ast.expr | None]]:
    if isinstance(annotation, ast.Subscript) and isinstance(annotation.value, ast.Name):
        inner = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        return annotation.value.id, list(inner)
    return (annotation.id if isinstance(annotation, ast.Name) else "str"), []


def vary(value: Any, rng: random.Random) -> Any:
    """A value near another one: of the same type, and of much the same shape."""
    match value:
        case bool():
            return value if rng.random() < 0.7 else not value
        case int():
            return value + rng.choice((0, 1, -1, 2, rng.randint(-10, 10)))
        case float():
            return rng.choice((value, value + 1, -value, round(value * rng.uniform(0, 3), 3)))
        case str():
            return _varied_text(value, rng)
        case list() | tuple():
            items = [vary(item, rng) if rng.random() < 0.5 else item for item in value]
            if isinstance(value, list):
                items = rng.sample(items, len(items)) if rng.random() < 0.3 else items
                items += [vary(rng.choice(items), rng)] * (rng.random() < 0.4) if items else []
                items = items[: rng.randint(0, len(items))] if rng.random() < 0.2 else items
            return type(value)(items)
        case dict():
            return {key: vary(item, rng) for key, item in value.items()}
        case _:
            return value


def _varied_text(text: str, rng: random.Random) -> str:
    where = rng.randint(0, len(text))
    change = rng.random()
    if change < 0.3:
        return text
    if change < 0.6:
        return "".join(rng.choice(string.digits) if letter.isdigit() else letter for letter in text)
    if change < 0.8:
        return text[:where] + rng.choice(_LETTERS) + text[where + 1 :]
    return (
        text[:where] + text[where + 1 :]
        if change < 0.9
        else text[:where] + rng.choice(_LETTERS) + text[where:]
    )
