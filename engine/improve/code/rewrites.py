"""Slow expressions and statements that have a quicker form of the same meaning, as edits of the text.

They are told by their form alone. Where the quick form is not quite the same, as for items without a hash,
the judge's drawn calls show it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from enum import StrEnum

from engine.improve.code.source import (
    Edit,
    Function,
    Source,
    called_name,
    parameters,
    stored_names,
    used_names,
)


class Slowness(StrEnum):
    """What makes a place slow."""

    MEMBERSHIP = "membership"
    CONCATENATION = "concatenation"
    COMPILE = "compile"
    SORT = "sort"
    COPY = "copy"
    CACHE = "cache"
    SCAN = "scan"
    PATTERN = "pattern"


Rewrite = tuple[Slowness, ast.expr | ast.stmt, list[Edit]]


def rewrites(source: Source, owner: Function) -> Iterator[Rewrite]:
    """The places of a function that have a quicker form."""
    for node in (node for statement in owner.body for node in ast.walk(statement)):
        match node:
            case ast.Call():
                yield from _call(source, owner, node)
            case ast.Subscript(value=ast.Call(func=ast.Name("sorted"), args=[_])):
                if (end := ast.unparse(node.slice)) in ("0", "-1"):
                    quick = "min" if end == "0" else "max"
                    text = source.of(node.value).replace("sorted", quick, 1)
                    yield Slowness.SORT, node, [source.replace(node, text)]
            case ast.Assign(targets=[ast.Name(name)], value=ast.BinOp(ast.Name(same), ast.Add(), right)):
                if name == same and isinstance(right, ast.List) and len(right.elts) == 1:
                    text = f"{name}.append({source.of(right.elts[0])})"
                    yield Slowness.CONCATENATION, node, [source.replace(node, text)]
            case _:
                pass
    yield from _cached(source, owner)


def _call(source: Source, owner: Function, node: ast.Call) -> Iterator[Rewrite]:
    name, above, around = called_name(node), source.parents[node], source.loops_around(node, owner)
    function = ast.unparse(node.func)
    if function in ("list", "tuple") and len(node.args) == 1 and _only_looks(source, node, above):
        yield Slowness.COPY, node, [source.replace(node, source.of(node.args[0]))]
    elif function in ("sorted", "list", "set", "tuple") and node.args and around:
        yield from _ahead(source, owner, node, around)
    elif function == "re.compile" and used_names(node) <= _bound_before(source, owner):
        name = f"_{owner.name.strip('_').upper()}_PATTERN"
        name += str(source.text.count(name) or "")
        made = source.ahead(owner, f"{name} = {source.of(node)}\n\n\n")
        yield Slowness.COMPILE, node, [made, source.replace(node, name)]
    elif isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "re":
        if text := _without_pattern(source, name, node, above):
            outer = above if called_name(above) == "bool" else node
            yield Slowness.PATTERN, node, [source.replace(outer, text)]  # type: ignore[arg-type]
    elif text := _looked_up(source, function, node):
        yield Slowness.SCAN, node, [source.replace(node, text)]


def _bound_before(source: Source, owner: Function) -> set[str]:
    """The names that the module binds before a function of its own begins, and the function does not."""
    bound: set[str] = set()
    for place in source.tree.body:
        if place.lineno < owner.lineno:
            if isinstance(place, (ast.Import, ast.ImportFrom)):
                bound |= {(name.asname or name.name).partition(".")[0] for name in place.names}
            elif isinstance(place, (Function, ast.ClassDef)):
                bound.add(place.name)
            else:
                bound |= stored_names(place)
    return bound - stored_names(owner) - {parameter.arg for parameter in parameters(owner)}


def _only_looks(source: Source, node: ast.Call, above: ast.AST) -> bool:
    """Whether nothing is done with a copy but looking at it."""
    if isinstance(above, ast.Subscript) and above.value is node:
        return isinstance(above.ctx, ast.Load) and not isinstance(above.slice, ast.Slice)
    if isinstance(above, ast.Compare):
        return isinstance(above.ops[-1], (ast.In, ast.NotIn)) and above.comparators[-1] is node
    if isinstance(above, ast.For):
        return above.iter is node and not used_names(node.args[0]) & stored_names(above)
    return called_name(above) in ("len", "sorted", "sum", "min", "max", "any", "all", "set", "join") or (
        isinstance(above, ast.comprehension) and above.iter is node
    )


def _ahead(source: Source, owner: Function, node: ast.Call, around: list[ast.AST]) -> Iterator[Rewrite]:
    """What comes out the same in each round, made once before the outermost loop in which it does."""
    used = used_names(node)
    steady = [loop for loop in around if not used & stored_names(loop)]
    if not steady or not isinstance(node.args[0], ast.Name):
        return
    outer = source.statement(steady[0])
    name = f"{node.args[0].id}_{called_name(node)}"
    if name not in used_names(owner) and source.line(outer.lineno).startswith(source.of(outer)[:4]):
        ahead = source.before(outer, f"{name} = {source.of(node)}")
        yield Slowness.SORT if "sorted" in name else Slowness.COPY, node, [ahead, source.replace(node, name)]


_FIXED = re.compile(r"[^.^$*+?{}\[\]\\|()]+")


def _without_pattern(source: Source, name: str, node: ast.Call, above: ast.AST) -> str:
    """A method of texts in the place of a pattern without signs; empty where there is none."""
    first = node.args[0] if node.args else None
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str) or node.keywords:
        return ""
    words = [source.of(arg) for arg in node.args]
    asked = called_name(above) == "bool" or (
        isinstance(above, (ast.If, ast.IfExp, ast.While)) and above.test is node
    )
    match name, words:
        case _ if not _FIXED.fullmatch(first.value):
            return ""
        case "sub", [old, new, text] if isinstance(node.args[1], ast.Constant) and "\\" not in new:
            return f"{text}.replace({old}, {new})"
        case "split", [old, text]:
            return f"{text}.split({old})"
        case "match", [old, text] if asked:
            return f"{text}.startswith({old})"
        case "search", [old, text] if asked:
            return f"({old} in {text})"
        case _:
            return ""


def _looked_up(source: Source, function: str, node: ast.Call) -> str:
    """Asking a table or list in the place of looking through it; empty where there is no such form."""
    items = node.args[0] if node.args else None
    if not isinstance(items, ast.GeneratorExp) or len(items.generators) != 1:
        return ""
    (loop,) = items.generators
    where, names = loop.iter, ast.unparse(loop.target)
    match [items.elt, *loop.ifs] if function == "any" else loop.ifs:
        case [ast.Compare(left, [ast.Eq()], [right])]:
            name = names.strip("()").partition(",")[0]
            other = right if isinstance(left, ast.Name) and left.id == name else left
        case _:
            return ""
    if name in used_names(other):
        return ""
    match function, items.elt, where:
        case "next", ast.Name(value), ast.Call(ast.Attribute(table, "items")) if len(node.args) == 2:
            default = source.of(node.args[1])
            rest = "" if default == "None" else f", {default}"
            mine = names == f"({name}, {value})"
            return f"{source.of(table)}.get({source.of(other)}{rest})" if mine else ""
        case "any", _, _:
            return f"({source.of(other)} in {source.of(where)})"
        case "sum", ast.Constant(1), ast.Name():
            return f"{source.of(where)}.count({source.of(other)})"
        case _:
            return ""


def _cached(source: Source, owner: Function) -> Iterator[Rewrite]:
    """A cache for a function that calls itself more than once with what it may have had before."""
    calls = [node for node in ast.walk(owner) if isinstance(node, ast.Call)]
    again = [node for node in calls if ast.unparse(node.func) == owner.name]
    changes = any(isinstance(node, (ast.Yield, ast.YieldFrom, ast.Global)) for node in ast.walk(owner))
    if len(again) > 1 and not changes and not owner.decorator_list and owner in source.tree.body:
        imports = [node for node in source.tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
        edits = [source.before(owner, "@functools.lru_cache(maxsize=1024, typed=True)")]
        if "import functools" not in map(ast.unparse, imports):
            edits.append(source.after([source.tree.body[0], *imports][-1], "import functools"))
        yield Slowness.CACHE, owner, edits
