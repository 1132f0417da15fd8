"""Inputs for a project's functions, and the exceptions that functions say they raise.

Inputs are drawn by chance around those of the project's tests and of the types that functions name. Odd
inputs show whether a function that names an exception raises another one in its place.
"""

from __future__ import annotations

import ast
import random
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from engine.improve.code.source import Function, Source, called_name, parameters

RAW = frozenset(
    {
        *("IndexError", "KeyError", "TypeError", "AttributeError", "ZeroDivisionError", "UnboundLocalError"),
        *("ValueError", "JSONDecodeError", "InvalidOperation", "UnicodeDecodeError", "RecursionError"),
    }
)
"""Exceptions that say nothing about the input, where the function does not name them."""


def broken_promises(function: Function) -> list[str]:
    """The exceptions that a function's description says it raises, and that nothing in it raises."""
    return [name for name in documented_exceptions(function) if name not in _raised(function)]


def documented_exceptions(function: Function) -> list[str]:
    """The exceptions that a function's description says it raises, after Google's or Sphinx's manner."""
    words = ast.get_docstring(function) or ""
    block = re.search(r"^Raises:\n((?:[ \t]+.*\n?)+)", words, re.MULTILINE)
    names = re.findall(r"^[ \t]+([A-Z]\w+):", block[1], re.MULTILINE) if block else []
    names += re.findall(r":raises?\s+([A-Z]\w+):", words)
    return list(dict.fromkeys(names))


def _raised(function: Function) -> set[str]:
    """The names of exceptions that a function raises itself; those of what it calls are not seen."""
    raised = [node.exc for node in ast.walk(function) if isinstance(node, ast.Raise) and node.exc is not None]
    return {called_name(what) or getattr(what, "id", "") for what in raised}


def deliberate_exceptions(function: Function) -> frozenset[str]:
    """The exceptions that a function raises by itself or says that it raises."""
    names = {*_raised(function), *documented_exceptions(function)} - {""}
    words = ast.get_docstring(function) or ""
    return frozenset(names | {name for name in RAW if re.search(rf"\b{name}\b", words)})


ODD: Mapping[str, tuple[str, ...]] = {
    "str": ("''", "'x'", "'a,b'", "'1,2,x'"),
    "bytes": ("b''", "b'\\xff'"),
    "int": ("0", "-1"),
    "float": ("0.0", "-1.0"),
    "dict": ("{}",),
    "list": ("[]",),
    "tuple": ("()",),
    "set": ("set()",),
}
"""Inputs of a type that are allowed by it and often forgotten, as Python writes them."""


def odd_arguments(function: Function) -> list[str]:
    """Tuples of arguments, as Python writes them, that ask a function about odd inputs of its types."""
    kinds = [_parts(parameter.annotation)[0].lower() for parameter in parameters(function)]
    if not kinds or any(kind not in ODD for kind in kinds) or function.args.kwonlyargs:
        return []
    ordinary = [ODD[kind][-1] for kind in kinds]
    calls = []
    for place, kind in enumerate(kinds):
        for odd in ODD[kind]:
            arguments = [*ordinary[:place], odd, *ordinary[place + 1 :]]
            calls.append(f"({', '.join(arguments)},)")
    return list(dict.fromkeys(calls))


Examples = dict[str, list[tuple[Any, ...]]]
"""Arguments that tests give to functions, by the functions' last names."""
_LETTERS = string.ascii_letters + string.digits + " ,.-_:;/"
_SIMPLE = frozenset(
    {"int", "float", "str", "bool", "bytes", "list", "tuple", "dict", "set", "Sequence", "Iterable"}
)
_DEEPEST = 4


def example_arguments(tests: Iterable[Source]) -> Examples:
    """The plain arguments of calls in tests, with those of `parametrize` put in their places."""
    examples: Examples = {}
    for source in tests:
        for _, function in source.functions:
            rows = list(_rows(function)) or [{}]
            for node in ast.walk(function):
                if not isinstance(node, ast.Call) or node.keywords or not node.args:
                    continue
                for row in rows:
                    arguments = _plain(node.args, row)
                    if arguments is not None and arguments not in examples.setdefault(called_name(node), []):
                        examples[called_name(node)].append(arguments)
    return examples


def _rows(function: Function) -> Iterator[dict[str, Any]]:
    """What `parametrize` gives to a test, a row at a time."""
    for decorator in function.decorator_list:
        if called_name(decorator) != "parametrize":
            continue
        try:
            names, rows = map(ast.literal_eval, decorator.args[:2])  # type: ignore[attr-defined]
        except (ValueError, TypeError, SyntaxError, MemoryError):
            continue
        names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
        for row in rows if isinstance(rows, (list, tuple)) else ():
            values = [row] if len(names) == 1 else row
            if isinstance(values, (list, tuple)) and len(values) == len(names):
                yield dict(zip(names, values, strict=True))


def _plain(arguments: list[ast.expr], row: dict[str, Any]) -> tuple[Any, ...] | None:
    values = []
    for argument in arguments:
        if isinstance(argument, ast.Name) and argument.id in row:
            values.append(row[argument.id])
            continue
        try:
            values.append(ast.literal_eval(argument))
        except (ValueError, TypeError, SyntaxError, MemoryError):
            return None
    return tuple(values)


def draw_arguments(
    function: Function, known: list[tuple[Any, ...]], rng: random.Random
) -> tuple[Any, ...] | None:
    """Arguments for a function; None where neither a test nor its annotations say what it takes."""
    accepted = parameters(function)
    most = len([*function.args.posonlyargs, *function.args.args])
    fitting = [given for given in known if most - len(function.args.defaults) <= len(given) <= most]
    if fitting and (rng.random() < 0.6 or not all(_known(parameter.annotation) for parameter in accepted)):
        return tuple(vary_value(value, rng) for value in rng.choice(fitting))
    required = accepted[: len(accepted) - len(function.args.defaults)] if not function.args.kwonlyargs else []
    if not required or not all(_known(parameter.annotation) for parameter in required):
        return None
    return tuple(draw_value(parameter.annotation, rng) for parameter in required)


def _known(annotation: ast.expr | None) -> bool:
    """Whether values of an annotation's type can be made."""
    name, inner = _parts(annotation)
    kinds = [kind for kind in inner if not (isinstance(kind, ast.Constant) and kind.value is Ellipsis)]
    return annotation is not None and name in _SIMPLE and all(_known(kind) for kind in kinds)


_NUMBERS: dict[str, Callable[[random.Random], Any]] = {
    "bool": lambda rng: rng.random() < 0.5,
    "int": lambda rng: rng.choice((0, 1, 2, rng.randint(-5, 20), rng.randint(-1000, 1000))),
    "float": lambda rng: rng.choice((0.0, 1.0, float(rng.randint(-9, 9)), round(rng.uniform(-100, 100), 2))),
}


def draw_value(annotation: ast.expr | None, rng: random.Random, depth: int = 0) -> Any:
    """A value of an annotation's type; lists and texts are mostly short."""
    name, inner = _parts(annotation)
    length = rng.choice((0, 1, 2, 3, 5, 8, 13)) if depth < _DEEPEST else 0
    item = inner[0] if inner else None
    match name:
        case "bool" | "int" | "float":
            return _NUMBERS[name](rng)
        case "bytes":
            return bytes(rng.randrange(256) for _ in range(length))
        case "list" | "Sequence" | "Iterable":
            return [draw_value(item, rng, depth + 1) for _ in range(length)]
        case "set":
            return {draw_value(item, rng, _DEEPEST) for _ in range(length)}
        case "dict":
            key, value = inner if len(inner) == 2 else (None, None)
            return {draw_value(key, rng, _DEEPEST): draw_value(value, rng, depth + 1) for _ in range(length)}
        case "tuple" if inner and not isinstance(inner[-1], ast.Constant):
            return tuple(draw_value(inner_kind, rng, depth + 1) for inner_kind in inner)
        case "tuple":
            return tuple(draw_value(item, rng, depth + 1) for _ in range(length))
        case _:
            return "".join(rng.choice(_LETTERS) for _ in range(length))


def _parts(annotation: ast.expr | None) -> tuple[str, list[ast.expr | None]]:
    if isinstance(annotation, ast.Subscript) and isinstance(annotation.value, ast.Name):
        inner = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        return annotation.value.id, list(inner)
    return (annotation.id if isinstance(annotation, ast.Name) else ""), []


def vary_value(value: Any, rng: random.Random) -> Any:
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
            items = [vary_value(item, rng) if rng.random() < 0.5 else item for item in value]
            if isinstance(value, list):
                items = rng.sample(items, len(items)) if rng.random() < 0.3 else items
                items += [vary_value(rng.choice(items), rng)] * (rng.random() < 0.4) if items else []
                items = items[: rng.randint(0, len(items))] if rng.random() < 0.2 else items
            return type(value)(items)
        case dict():
            return {key: vary_value(item, rng) for key, item in value.items()}
        case _:
            return value


_TEXTS = ("", "ÄßİΩ ŉ ǅ", "a\tb\nc\u00a0d\u2003e a", "ﬁ x-y_z 07", "'\"\\%{0}", "Zoë's  naïve-bayes #!run x")
_NUMBERS_ODD = (0, 1, -1, 3, 2**60 + 1, 0.1, 1e-7, 1 / 3)


def other_values(value: Any, sizes: Sequence[int], rng: random.Random) -> Iterator[Any]:
    """Values in the place of another one: of other sizes, of other contents and of other kinds."""
    match value:
        case bool():
            yield from (not value, None, 1)
        case int() | float():
            yield from (*_NUMBERS_ODD, value + 1, value - 1, -value)
            yield from (*(size for size in sizes if size < 2_500), None, str(value))
        case str():
            yield from (*_TEXTS, value.upper(), value[::-1], None, 0, [value])
            yield from (" ".join(_stretched(value.split() or [value], size)) for size in sizes)
        case list() | tuple():
            kind, items = type(value), list(value)
            yield from (kind(()), kind(items[:1]), kind(items[::-1]), tuple(items), [*items], None, 0, "ab a")
            yield from (kind([[item] for item in items] * 2), kind(map(str, items)))
            yield kind([*items, None, [1], {2}, 1.5])
            with suppress(TypeError):
                yield from ({*items}, dict.fromkeys(items))
            if all(type(item) in (int, float) for item in items):
                whole = [number for number in _NUMBERS_ODD if type(number) is int]
                yield from (kind(whole), kind([True, *items, False, True]))
                yield from (kind(_NUMBERS_ODD), kind(rng.sample(_NUMBERS_ODD, 4)))
                yield kind(number / 7 for number in range(8))
            for size in sizes:
                long, half = _stretched(items, size), size // 2
                varied = [vary_value(item, rng) for item in long[half:]]
                middle = [*long[:half], *[long[-1:]] * (not long), *varied]
                yield from (kind(long), kind(middle[::-1]), kind(middle))
                if items and type(items[0]) is int:
                    yield kind([*range(half), size * 3, *range(size // 3), size + 7])
                    yield kind(map(str, long))
        case dict():
            yield from ({}, None, dict(list(value.items())[::-1]), list(value))
        case None:
            yield from (0, "", [])
        case _:
            yield None


_CLASSES: dict[str, tuple[type, ...]] = {
    "int": (int,), "float": (int, float), "str": (str,), "bool": (bool,), "bytes": (bytes,),
    "None": (type(None),), "list": (list,), "tuple": (tuple,), "dict": (dict,), "set": (set,),
    "Sequence": (list, tuple, str),
    "Iterable": (list, tuple, set, dict, str), "Mapping": (dict,), "Iterator": (), "Callable": (),
}  # fmt: skip


def allows(annotation: ast.expr | None, value: Any) -> bool:
    """Whether a value is of the type that an annotation names, as far as that can be told from its words."""
    if isinstance(annotation, ast.BinOp):
        return allows(annotation.left, value) or allows(annotation.right, value)
    name, inner = _parts(annotation)
    name = name or (str(annotation.value) if isinstance(annotation, ast.Constant) else "")
    if name not in _CLASSES:
        return True
    if not isinstance(value, _CLASSES[name]):
        return False
    kinds = [kind for kind in inner if kind is not None]
    if isinstance(value, dict) and len(kinds) == 2:
        return all(allows(kinds[0], key) and allows(kinds[1], item) for key, item in value.items())
    if isinstance(value, (list, tuple, set)) and kinds:
        if name == "tuple" and not isinstance(kinds[-1], ast.Constant):
            return len(value) == len(kinds) and all(map(allows, kinds, value))
        return all(allows(kinds[0], item) for item in value)
    return True


def _stretched(items: list[Any], size: int) -> list[Any]:
    """A list of a size, of these items and such as are like them."""
    if not items:
        return []
    repeated = [items[number % len(items)] for number in range(size)]
    return [
        item + number // len(items) * (number % 3) if type(item) in (int, float) else
        f"{item}{number % 7}" if type(item) is str and number % 2 else item
        for number, item in enumerate(repeated)
    ]  # fmt: skip


def _varied_text(text: str, rng: random.Random) -> str:
    where = rng.randint(0, len(text))
    change = rng.random()
    if change < 0.3:
        return text
    if change < 0.6:
        return "".join(rng.choice(string.digits) if letter.isdigit() else letter for letter in text)
    letter = "" if 0.8 <= change < 0.9 else rng.choice(_LETTERS)
    return text[:where] + letter + text[where + (change < 0.9) :]
