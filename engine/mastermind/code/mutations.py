"""Small changes of a module, each of which mends a mistake that people make often.

A change is one expression or statement replaced. How plausible each sort is, is a number between 0 and 1 that
only orders them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from engine.mastermind.code.source import Edit, Function, Source, called, parameters


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change."""

    edit: Edit
    line: int
    plausible: float
    words: str
    """What is put in the place of what."""


_COMPARED: dict[type[ast.cmpop], tuple[tuple[str, float], ...]] = {
    ast.Lt: (("<=", 0.95), (">", 0.6), (">=", 0.5)),
    ast.LtE: (("<", 0.95), (">=", 0.6), (">", 0.5)),
    ast.Gt: ((">=", 0.95), ("<", 0.6), ("<=", 0.5)),
    ast.GtE: ((">", 0.95), ("<=", 0.6), ("<", 0.5)),
    ast.Eq: (("!=", 0.7),),
    ast.NotEq: (("==", 0.7),),
    ast.Is: (("is not", 0.7),),
    ast.IsNot: (("is", 0.7),),
    ast.In: (("not in", 0.7),),
    ast.NotIn: (("in", 0.7),),
}
_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
_COMPUTED: dict[type[ast.operator], tuple[tuple[str, float], ...]] = {
    ast.Add: (("-", 0.9), ("*", 0.4)),
    ast.Sub: (("+", 0.9), ("/", 0.2)),
    ast.Mult: (("/", 0.6), ("+", 0.5), ("**", 0.4)),
    ast.Div: (("//", 0.8), ("*", 0.6)),
    ast.FloorDiv: (("/", 0.8), ("%", 0.5)),
    ast.Mod: (("//", 0.6),),
    ast.BitAnd: (("|", 0.6),),
    ast.BitOr: (("&", 0.6),),
}
_WORDS = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "append": "extend",
    "extend": "append",
    "lower": "upper",
    "upper": "lower",
    "startswith": "endswith",
    "endswith": "startswith",
    "floor": "ceil",
    "ceil": "floor",
    "lstrip": "rstrip",
    "rstrip": "lstrip",
    "find": "rfind",
    "split": "rsplit",
    "union": "intersection",
    "intersection": "union",
    "index": "rindex",
}


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
        statement = source.statement(node)
        if not {node.lineno, statement.lineno} & lines or _is_description(source, node):
            continue
        for edit, plausible, words in _changes(source, node, owners.get(node)):
            yield Mutation(edit, node.lineno, plausible, words)


Change = tuple[Edit, float, str]


def _is_description(source: Source, node: ast.AST) -> bool:
    holder = node if isinstance(node, ast.Expr) else source.parents.get(node)
    return isinstance(holder, ast.Expr) and isinstance(holder.value, ast.Constant)


def _changes(source: Source, node: ast.expr | ast.stmt, owner: Function | None) -> Iterator[Change]:
    match node:
        case ast.Compare():
            yield from _operators(source, node)
        case ast.BinOp():
            for sign, plausible in _COMPUTED.get(type(node.op), ()):
                yield _said(
                    source, node, f"{_part(source, node.left)} {sign} {_part(source, node.right)}", plausible
                )
            if isinstance(node.op, (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod)):
                flipped = f"{_part(source, node.right)} {_sign(source, node)} {_part(source, node.left)}"
                yield _said(source, node, flipped, 0.5)
        case ast.AugAssign():
            yield from _grown(source, node)
        case ast.Constant():
            yield from _constants(source, node)
        case ast.BoolOp():
            word = " or " if isinstance(node.op, ast.And) else " and "
            yield _said(source, node, word.join(_part(source, value) for value in node.values), 0.8)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield _said(source, node, source.of(node.operand), 0.7)
        case ast.If() | ast.While():
            if not isinstance(node.test, (ast.Compare, ast.UnaryOp)):
                yield _said(source, node.test, f"not ({source.of(node.test)})", 0.6)
        case ast.Call():
            yield from _calls(source, node)
        case ast.Name() | ast.Attribute() if isinstance(node.ctx, ast.Load):
            yield from _used(source, node, owner)
        case ast.Expr() | ast.Assign():
            yield from _returns(source, node, owner)
        case _:
            return


def _said(source: Source, node: ast.expr | ast.stmt, text: str, plausible: float) -> Change:
    above = source.parents.get(node)
    if isinstance(node, ast.BinOp) and isinstance(above, (ast.BinOp, ast.UnaryOp, ast.Attribute)):
        start, end = source.span(node)
        if source.text[start - 1 : start] != "(" or source.text[end : end + 1] != ")":
            text = f"({text})"
    return source.replace(node, text), plausible, f"`{text}` in the place of `{source.of(node)}`"


def _part(source: Source, node: ast.expr) -> str:
    """An operand as it stands, with the brackets that the tree does not tell."""
    words = source.of(node)
    return (
        f"({words})"
        if isinstance(node, (ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda))
        else words
    )


def _sign(source: Source, node: ast.BinOp) -> str:
    between = source.text[source.span(node.left)[1] : source.span(node.right)[0]]
    return between.strip(" ()\n\\\t") or "-"


def _operators(source: Source, node: ast.Compare) -> Iterator[Change]:
    before = [node.left, *node.comparators]
    for place, operator in enumerate(node.ops):
        for sign, plausible in _COMPARED.get(type(operator), ()):
            signs = [_SIGNS[type(one)] for one in node.ops]
            signs[place] = sign
            words = _part(source, node.left)
            for one, part in zip(signs, before[1:], strict=True):
                words += f" {one} {_part(source, part)}"
            yield _said(source, node, words, plausible)


def _grown(source: Source, node: ast.AugAssign) -> Iterator[Change]:
    for sign, plausible in _COMPUTED.get(type(node.op), ()):
        words = f"{source.of(node.target)} {sign}= {source.of(node.value)}"
        yield source.replace(node, words), plausible, f"`{words}` in the place of `{source.of(node)}`"
    words = f"{source.of(node.target)} = {source.of(node.value)}"
    yield source.replace(node, words), 0.3, f"`{words}` in the place of `{source.of(node)}`"


def _constants(source: Source, node: ast.Constant) -> Iterator[Change]:
    if isinstance(source.parents.get(node), (ast.JoinedStr, ast.FormattedValue)):
        return
    if isinstance(node.value, bool):
        yield _said(source, node, str(not node.value), 0.7)
    elif isinstance(node.value, int):
        for other in dict.fromkeys((node.value + 1, node.value - 1, 0, 1)):
            if other != node.value:
                near = abs(other - node.value) == 1
                text = str(other) if other >= 0 else f"({other})"
                yield _said(source, node, text, 0.85 if near else 0.3)


def _calls(source: Source, node: ast.Call) -> Iterator[Change]:
    word = called(node)
    if word in _WORDS:
        function = source.of(node.func)
        other = function.removesuffix(word) + _WORDS[word]
        yield _said(source, node.func, other, 0.6)
    if len(node.args) == 2 and not any(isinstance(one, ast.Starred) for one in node.args):
        first, second = node.args
        start, end = source.span(first)[0], source.span(second)[1]
        words = f"{source.of(second)}, {source.of(first)}"
        yield Edit(start, end, words), 0.6, f"`{words}` in the place of `{source.text[start:end]}`"
    above = source.parents.get(node)
    if isinstance(above, ast.Slice) or (isinstance(above, ast.Subscript) and above.slice is node):
        yield from (_off(source, node, 0.75, by) for by in ("- 1", "+ 1"))
    if isinstance(node.func, ast.Name) and word == "range":
        yield from (_off(source, argument, 0.8, by) for argument in node.args[-1:] for by in ("+ 1", "- 1"))
    if (
        isinstance(node.func, ast.Name)
        and word in ("sorted", "reversed", "int", "abs", "round")
        and node.args
    ):
        yield _said(source, node, source.of(node.args[0]), 0.35)


def _off(source: Source, node: ast.expr, plausible: float, by: str) -> Change:
    words = f"{_part(source, node)} {by}"
    return source.replace(node, words), plausible, f"`{words}` in the place of `{source.of(node)}`"


def _used(source: Source, node: ast.Name | ast.Attribute, owner: Function | None) -> Iterator[Change]:
    above = source.parents.get(node)
    index = isinstance(above, ast.Subscript) and above.slice is node
    bound = isinstance(above, ast.Slice)
    if index or bound:
        yield from (_off(source, node, 0.75, by) for by in ("- 1", "+ 1"))
    if (
        owner is None
        or not isinstance(node, ast.Name)
        or (isinstance(above, ast.Call) and above.func is node)
    ):
        return
    local = {one.arg for one in parameters(owner)}
    local |= {
        one.id for one in ast.walk(owner) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }
    if node.id not in local:
        return
    for name in sorted(local - {node.id}):
        yield _said(source, node, name, 0.45)


def _returns(source: Source, node: ast.Expr | ast.Assign, owner: Function | None) -> Iterator[Change]:
    if owner is None or not owner.body or owner.body[-1] is not node:
        return
    if isinstance(node, ast.Expr):
        words = f"return {source.of(node.value)}"
        yield source.replace(node, words), 0.8, f"`{words}` in the place of `{source.of(node)}`"
    elif isinstance(node.targets[0], ast.Name):
        yield (
            source.after(node, f"return {node.targets[0].id}"),
            0.8,
            f"`return {node.targets[0].id}` at its end",
        )
