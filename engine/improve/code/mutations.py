"""Changes of sorts that people get wrong often: one expression or statement in the place of another.

They are edits of the text by the positions of the syntax tree, so what is not changed stays byte for byte.
How plausible a sort of change is, is a number between 0 and 1 that only orders them.
"""

from __future__ import annotations

import ast
import copy
import itertools
import textwrap
from collections.abc import Iterator
from typing import TypeVar

from engine.improve.code.source import (
    Edit,
    Function,
    Source,
    called_name,
    defaults_of,
    parameters,
    used_names,
)
from engine.value import dataclass

N = TypeVar("N", bound=ast.AST)


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change."""

    edit: Edit
    line: int
    plausible: float
    words: str
    """What is put in the place of what."""


_COMPARED: dict[type[ast.cmpop], dict[type[ast.cmpop], float]] = {
    ast.Lt: {ast.LtE: 0.95, ast.Gt: 0.6, ast.GtE: 0.5},
    ast.LtE: {ast.Lt: 0.95, ast.GtE: 0.6, ast.Gt: 0.5},
    ast.Gt: {ast.GtE: 0.95, ast.Lt: 0.6, ast.LtE: 0.5},
    ast.GtE: {ast.Gt: 0.95, ast.LtE: 0.6, ast.Lt: 0.5},
    ast.Eq: {ast.NotEq: 0.7},
    ast.NotEq: {ast.Eq: 0.7},
    ast.Is: {ast.IsNot: 0.7},
    ast.IsNot: {ast.Is: 0.7},
    ast.In: {ast.NotIn: 0.7},
    ast.NotIn: {ast.In: 0.7},
}
"""What may be meant in the place of each comparison."""
_COMPUTED: dict[type[ast.operator], dict[type[ast.operator], float]] = {
    ast.Add: {ast.Sub: 0.9, ast.Mult: 0.4},
    ast.Sub: {ast.Add: 0.9, ast.Div: 0.2},
    ast.Mult: {ast.Div: 0.6, ast.Add: 0.5, ast.Pow: 0.4},
    ast.Div: {ast.FloorDiv: 0.8, ast.Mult: 0.6},
    ast.FloorDiv: {ast.Div: 0.8, ast.Mod: 0.5},
    ast.Mod: {ast.FloorDiv: 0.6},
    ast.BitAnd: {ast.BitOr: 0.6},
    ast.BitOr: {ast.BitAnd: 0.6},
}
_PAIRS = (
    *(("min", "max"), ("any", "all"), ("append", "extend"), ("lower", "upper"), ("floor", "ceil")),
    *(("startswith", "endswith"), ("lstrip", "rstrip"), ("union", "intersection")),
)
_WORDS = {
    **{word: other for pair in _PAIRS for word, other in (pair, pair[::-1])},
    "find": "rfind",
    "split": "rsplit",
    "index": "rindex",
}
_OPERATORS = (ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.Compare, ast.IfExp)
_DEFAULTS = ("", " ", ",", "-", "_", ".", "/", ":")
_SHORT, _MOST_RAISED = 9, 8
Other = tuple[ast.AST | str, float]
"""What may be meant instead, and how plausible that is."""


def mutations(source: Source, lines: frozenset[int]) -> Iterator[Mutation]:
    """The changes on some lines, in the order of the tree.

    Args:
        source: the module.
        lines: lines on which a node has to begin; all nodes of a statement count for its first line.
    """
    owners = {node: function for _, function in source.functions for node in ast.walk(function)}
    for node in ast.walk(source.tree):
        if not isinstance(node, (ast.expr, ast.stmt)):
            continue
        statement, above = source.statement(node), source.parents.get(node)
        inside = isinstance(above, (ast.JoinedStr, ast.FormattedValue))
        if inside or not {node.lineno, statement.lineno} & lines or _is_description(source, node):
            continue
        for other, plausible in _others(source, node, above, owners.get(node)):
            text = other if isinstance(other, str) else ast.unparse(other)
            if isinstance(other, _OPERATORS) and isinstance(above, (ast.expr, ast.keyword)):
                start, end = source.span(node)
                bare = source.text[start - 1 : start] != "(" or source.text[end : end + 1] != ")"
                text = f"({text})" if bare and not isinstance(above, (ast.Call, ast.Subscript)) else text
            words = f"`{text}` in the place of `{source.of(node)}`"
            yield Mutation(source.replace(node, text), node.lineno, plausible, words)


def _is_description(source: Source, node: ast.AST) -> bool:
    holder = node if isinstance(node, ast.Expr) else source.parents.get(node)
    return isinstance(holder, ast.Expr) and isinstance(holder.value, ast.Constant)


def _like(node: N, **parts: object) -> N:
    """A node with other parts."""
    other = copy.copy(node)
    for name, value in parts.items():
        setattr(other, name, value)
    return other


def _others(
    source: Source, node: ast.expr | ast.stmt, above: ast.AST | None, owner: Function | None
) -> Iterator[Other]:
    if getattr(above, "test", None) is node and not isinstance(node, (ast.Compare, ast.UnaryOp)):
        yield ast.UnaryOp(ast.Not(), node), 0.6
    match node:
        case ast.Compare():
            for place, sign in enumerate(node.ops):
                for other, plausible in _COMPARED[type(sign)].items():
                    yield _like(node, ops=[*node.ops[:place], other(), *node.ops[place + 1 :]]), plausible
        case ast.BinOp():
            yield from ((_like(node, op=sign()), by) for sign, by in _COMPUTED.get(type(node.op), {}).items())
            if isinstance(node.op, (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod)):
                yield _like(node, left=node.right, right=node.left), 0.5
            yield from ((other, 0.75) for other in _grouped(node))
        case ast.BoolOp():
            yield _like(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And()), 0.8
            for place, pair in enumerate(itertools.pairwise(node.values)):
                for grouped in _grouped(_like(node, values=[*pair])):
                    values = [*node.values[:place], grouped, *node.values[place + 2 :]]
                    yield grouped if len(values) == 1 else _like(node, values=values), 0.75
        case ast.AugAssign():
            yield from ((_like(node, op=sign()), by) for sign, by in _COMPUTED.get(type(node.op), {}).items())
            yield ast.Assign([node.target], node.value, lineno=0), 0.3
        case ast.Constant():
            yield from _constants(source, node, above)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand, 0.7
        case ast.Call():
            yield from _calls(node)
        case ast.Name(ctx=ast.Load()) if owner is not None and getattr(above, "func", None) is not node:
            local = _local(owner)
            yield from ((name, 0.45) for name in sorted(local - {node.id}) if node.id in local)
        case ast.Return() | ast.Pass() if isinstance(above, ast.ExceptHandler):
            raises = [other for other in ast.walk(source.tree) if isinstance(other, ast.Raise)]
            raises.sort(key=lambda other: _caught(source, other) != ast.unparse(above.type or node))
            raised = [source.of(other) for other in raises]
            yield from ((text, 0.7) for text in dict.fromkeys(["raise", *raised][: _MOST_RAISED + 1]))
        case ast.Expr() if owner is not None and owner.body[-1] is node:
            yield ast.Return(node.value), 0.8
        case ast.Assign(targets=[ast.Name(name)]) if owner is not None and owner.body[-1] is node:
            yield f"{source.of(node)}\n{source.indent(node)}return {name}", 0.8
        case ast.Try(handlers=[_], orelse=[], finalbody=[]):
            start, end = source.span(node.body[0])[0], source.span(node.body[-1])[1]
            body = textwrap.dedent(" " * node.body[0].col_offset + source.text[start:end])
            yield body.replace("\n", f"\n{source.indent(node)}"), 0.7
        case _:
            pass
    loads = isinstance(getattr(node, "ctx", None), ast.Load)
    if (loads and isinstance(node, (ast.Name, ast.Attribute))) or isinstance(node, ast.Call):
        counts = isinstance(above, ast.Slice) or (isinstance(above, ast.Subscript) and above.slice is node)
        if counts or (called_name(above) == "range" and node in above.args[-1:]):  # type: ignore[arg-type,union-attr]
            yield from ((ast.BinOp(node, sign(), ast.Constant(1)), 0.75) for sign in (ast.Sub, ast.Add))
        if isinstance(above, (ast.Return, ast.BinOp, ast.Slice, ast.Assign, ast.IfExp)):
            yield ast.UnaryOp(ast.USub(), node), 0.3


def _caught(source: Source, node: ast.Raise) -> str:
    """What the handler catches that raises another exception in its place; empty outside of one."""
    handler = source.parents[node]
    caught = handler.type if isinstance(handler, ast.ExceptHandler) else None
    return ast.unparse(caught) if caught is not None else ""


def _grouped(node: ast.BinOp | ast.BoolOp) -> Iterator[ast.expr]:
    """The same words with brackets elsewhere: `a * (b + c)` for `a * b + c`."""
    left, right = (node.left, node.right) if isinstance(node, ast.BinOp) else node.values

    def both(first: ast.expr, second: ast.expr) -> ast.expr:
        if isinstance(node, ast.BinOp):
            return _like(node, left=first, right=second)
        return _like(node, values=[first, second])

    match left:
        case ast.BinOp():
            yield _like(left, right=both(left.right, right))
        case ast.BoolOp():
            yield _like(left, values=[*left.values[:-1], both(left.values[-1], right)])
        case ast.UnaryOp():
            yield _like(left, operand=both(left.operand, right))
    match right:
        case ast.BinOp():
            yield _like(right, left=both(left, right.left))
        case ast.BoolOp():
            yield _like(right, values=[both(left, right.values[0]), *right.values[1:]])


def _constants(source: Source, node: ast.Constant, above: ast.AST | None) -> Iterator[Other]:
    if isinstance(above, ast.arguments):
        yield from ((text, 1.0) for text in _default_elsewhere(source, node, above))
    if isinstance(node.value, bool):
        yield str(not node.value), 0.7
    elif isinstance(node.value, int):
        others = dict.fromkeys((node.value + 1, node.value - 1, -node.value, 0, 1))
        signed = isinstance(above, ast.BinOp) and isinstance(above.op, (ast.Add, ast.Sub))
        for other in others:
            if other < 0 and signed and above.right is node:  # type: ignore[union-attr]
                continue  # the other sign between the two says the same
            near = 0.85 if abs(other - node.value) == 1 else 0.5 if other == -node.value else 0.3
            if other != node.value:
                yield str(other) if other >= 0 else f"({other})", near
    elif isinstance(node.value, str) and isinstance(above, ast.arguments):
        texts = [other.value for other in ast.walk(source.tree) if isinstance(other, ast.Constant)]
        short = [text for text in texts if isinstance(text, str) and len(text) < _SHORT]
        yield from ((repr(text), 0.5) for text in dict.fromkeys([*_DEFAULTS, *short]) if text != node.value)


def _default_elsewhere(source: Source, node: ast.Constant, given: ast.arguments) -> dict[str, None]:
    """Defaults that other functions have for the parameter of this one, which none of them shares."""
    names = {value: name for name, value in defaults_of(given)}
    others = [
        ast.unparse(value)
        for _, function in source.functions
        if function.args is not given
        for name, value in defaults_of(function.args)
        if name == names.get(node)
    ]
    return dict.fromkeys(others) if ast.unparse(node) not in others else {}


def _calls(node: ast.Call) -> Iterator[Other]:
    word = called_name(node)
    if word in _WORDS:
        name = {"attr" if isinstance(node.func, ast.Attribute) else "id": _WORDS[word]}
        yield _like(node, func=_like(node.func, **name)), 0.6
    for place, pair in enumerate(itertools.pairwise(node.args)):
        if not any(isinstance(part, ast.Starred) for part in pair):
            yield _like(node, args=[*node.args[:place], *pair[::-1], *node.args[place + 2 :]]), 0.6
    if ast.unparse(node.func) in ("sorted", "reversed", "int", "abs", "round") and node.args:
        yield node.args[0], 0.35


def _local(owner: Function) -> set[str]:
    """The names that a function binds, and its parameters."""
    return {parameter.arg for parameter in parameters(owner)} | {
        node.id for node in ast.walk(owner) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def guards(source: Source, lines: frozenset[int]) -> Iterator[Mutation]:
    """Cases that are missing before a statement: as elsewhere in the module, and plain ones."""
    ends = (ast.Return, ast.Raise, ast.Continue)
    elsewhere = {
        ast.unparse(node): used_names(node) & _local(owner)
        for _, owner in source.functions
        for node in ast.walk(owner)
        if isinstance(node, ast.If) and len(node.body) == 1 and isinstance(node.body[0], ends)
    }
    for _, function in source.functions:
        given = sorted(parameter.arg for parameter in parameters(function))
        plain = [f"if {test}:\n    return {value}" for name in given for test, value in
                 ((f"not {name}", name), (f"{name} is None", name), (f"not {name}", "None"))]  # fmt: skip
        alike = [text for text, names in elsewhere.items() if names <= _local(function)]
        blocks = [function.body, *(node.body for node in ast.walk(function) if isinstance(node, ast.For))]
        for number, block in enumerate(blocks):
            for place in [place for place in block if place.lineno in lines][:3]:
                for text in dict.fromkeys((*alike, *plain)):
                    if (number or "continue" not in text) and not _is_description(source, place):
                        edit = source.before(place, text.replace("\n", f"\n{source.indent(place)}"))
                        yield Mutation(edit, place.lineno, 0.3, f"`{text}` before it")
