"""Missing checks: operations on what a caller gave that fail in their own words where the input is odd.

Only functions that tests or a program reach count. What is found here is a place to look at, with its line;
`probes` are calls with odd inputs that show whether it is one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from engine.mastermind.code.source import Function, Source, called, names, parameters

_PARSES = {"int", "float", "Decimal", "loads", "fromisoformat", "strptime", "literal_eval"}
RAW = frozenset(
    {
        *("IndexError", "KeyError", "TypeError", "AttributeError", "ZeroDivisionError", "UnboundLocalError"),
        *("ValueError", "JSONDecodeError", "InvalidOperation", "UnicodeDecodeError", "RecursionError"),
    }
)
"""Exceptions that say nothing about the input, where the function does not name them."""


@dataclass(frozen=True, slots=True)
class MissingCheck:
    """A function that takes its input as it comes."""

    function: str
    line: int
    places: tuple[tuple[int, str], ...]
    """Lines with what may fail there, in words."""
    promised: tuple[str, ...] = ()
    """Exceptions that its description names and that nothing in it raises."""
    hides: bool = False
    """Whether it is a handler that hides every error."""


def missing_checks(source: Source, reached: frozenset[str]) -> list[MissingCheck]:
    """The functions of a module that lack a check, in the order of its lines.

    Args:
        source: the module.
        reached: last words of the names of functions that tests or a program call.
    """
    found = []
    for name, function in source.functions:
        if function.name not in reached:
            continue
        places = tuple(sorted(set(_places(source, function))))
        promised = tuple(one for one in described(function) if one not in _raised(function))
        handlers = [node for node in ast.walk(function) if isinstance(node, ast.ExceptHandler)]
        if promised and places:
            found.append(MissingCheck(name, function.lineno, places, promised))
        elif places:
            found.append(MissingCheck(name, function.lineno, places))
        for line in (node.lineno for node in handlers if _hides(node)):
            place = (line, "a handler that hides every error")
            found.append(MissingCheck(name, line, (place,), hides=True))
    return found


def reached_names(modules: Mapping[str, Source], tests: Iterable[Source]) -> frozenset[str]:
    """Last words of everything that tests and programs call, and what that calls in turn."""
    calls = {
        function.name: {called(node) for node in ast.walk(function)} - {""}
        for source in modules.values()
        for _, function in source.functions
    }
    found = {called(node) for source in tests for node in ast.walk(source.tree)}
    for source in modules.values():
        found |= {called(node) for body in _programs(source) for node in ast.walk(body)}
    waiting = list(found)
    while waiting:
        for name in calls.get(waiting.pop(), ()):
            if name not in found:
                found.add(name)
                waiting.append(name)
    return frozenset(found)


def _programs(source: Source) -> Iterator[ast.stmt]:
    """What a module does when it is run: its block under `__main__`."""
    for node in source.tree.body:
        if isinstance(node, ast.If) and "__name__" in names(node.test):
            yield node


def described(function: Function) -> list[str]:
    """The exceptions that a function's description says it raises, after Google's or Sphinx's manner."""
    words = ast.get_docstring(function) or ""
    block = re.search(r"^Raises:\n((?:[ \t]+.*\n?)+)", words, re.MULTILINE)
    found = re.findall(r"^[ \t]+([A-Z]\w+):", block[1], re.MULTILINE) if block else []
    found += re.findall(r":raises?\s+([A-Z]\w+):", words)
    return list(dict.fromkeys(found))


def _raised(function: Function) -> set[str]:
    """The names of exceptions that a function raises itself; those of what it calls are not seen."""
    found = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Raise) and node.exc is not None:
            found.add(called(node.exc) or (node.exc.id if isinstance(node.exc, ast.Name) else ""))
    return found


def deliberate(function: Function) -> frozenset[str]:
    """The exceptions that a function raises by itself or says that it raises."""
    found = {*_raised(function), *described(function)} - {""}
    words = ast.get_docstring(function) or ""
    return frozenset(found | {name for name in RAW if re.search(rf"\b{name}\b", words)})


def _hides(node: ast.ExceptHandler) -> bool:
    """Whether it is a bare or all-embracing handler with nothing in it."""
    wide = node.type is None or (
        isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException")
    )
    nothing = all(
        isinstance(one, (ast.Pass, ast.Continue)) or (isinstance(one, ast.Return) and _is_nothing(one.value))
        for one in node.body
    )
    return wide and nothing


def _is_nothing(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _places(source: Source, function: Function) -> Iterator[tuple[int, str]]:
    given = _given(function)
    for node in ast.walk(function):
        words = _risk(source, node, given)
        if words and not _guarded(source, function, node, given):
            assert isinstance(node, ast.expr)
            yield node.lineno, words


def _given(function: Function) -> set[str]:
    """Names whose values come from parameters."""
    found = {one.arg for one in parameters(function)}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and names(node.value) & found:
            found |= {name for target in node.targets for name in names(target)}
        elif isinstance(node, (ast.For, ast.comprehension)) and names(node.iter) & found:
            found |= names(node.target)
    return found


def _risk(source: Source, node: ast.AST, given: set[str]) -> str:
    """What may fail at a node, in words; empty when nothing of the caller's does."""
    if isinstance(node, ast.Call) and node.args and called(node) in _PARSES and names(node.args[0]) & given:
        return f"`{source.of(node)}` of what it was given"
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod)):
        text = isinstance(node.left, (ast.Constant, ast.JoinedStr)) and not isinstance(
            getattr(node.left, "value", None), (int, float)
        )
        if not text and names(node.right) & given:
            return f"division by `{source.of(node.right)}`"
    if (
        isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Load)
        and isinstance(node.value, ast.Name)
    ):
        place = node.slice
        fixed = isinstance(place, ast.Constant) and type(place.value) in (int, str)
        if fixed and node.value.id in given and _is_loose(source, node):
            return f"`{source.of(node)}` that may not be there"
    return ""


def _is_loose(source: Source, node: ast.Subscript) -> bool:
    """Whether the subscripted name is no annotated tuple, whose parts are certain."""
    function = source.parents.get(node)
    while function is not None and not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        function = source.parents.get(function)
    assert isinstance(node.value, ast.Name)
    for one in parameters(function) if function is not None else ():
        if one.arg == node.value.id and one.annotation is not None:
            return not ast.unparse(one.annotation).startswith(("tuple[", "Tuple["))
    return True


def _guarded(source: Source, function: Function, node: ast.AST, given: set[str]) -> bool:
    """Whether a handler or a condition before it looks at what it depends on."""
    wanted = names(node) & given
    here: ast.AST = node
    while here is not function:
        above = source.parents[here]
        if isinstance(above, ast.Try) and above.handlers and here in above.body:
            return True
        if (
            isinstance(above, (ast.If, ast.IfExp, ast.While))
            and here is not above.test
            and names(above.test) & wanted
        ):
            return True
        if isinstance(above, ast.comprehension) and any(names(one) & wanted for one in above.ifs):
            return True
        here = above
    line = getattr(node, "lineno", 0)
    return any(
        isinstance(one, (ast.If, ast.Assert, ast.Match))
        and one.lineno < line
        and names(one.subject if isinstance(one, ast.Match) else one.test) & wanted
        for one in ast.walk(function)
    )


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


def probes(function: Function) -> list[str]:
    """Tuples of arguments, as Python writes them, that ask a function about odd inputs of its types."""
    kinds = [_kind(one.annotation) for one in parameters(function)]
    if not kinds or any(kind is None for kind in kinds) or function.args.kwonlyargs:
        return []
    ordinary = [ODD[kind][-1] for kind in kinds if kind]
    found = []
    for place, kind in enumerate(kinds):
        for odd in ODD[kind or ""]:
            arguments = [*ordinary[:place], odd, *ordinary[place + 1 :]]
            found.append(f"({', '.join(arguments)},)")
    return list(dict.fromkeys(found))


def _kind(annotation: ast.expr | None) -> str | None:
    word = ast.unparse(annotation).partition("[")[0].lower() if annotation is not None else ""
    return word if word in ODD else None
