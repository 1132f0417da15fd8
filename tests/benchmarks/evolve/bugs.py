"""Mistakes of named classes that are put into a module: the places for each, as edits of its text."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from engine.improve.code.source import Edit, Function, Source, parameters

Edits = Iterator[list[Edit]]
_OTHER = {ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is"}
_BOUNDARY = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
_SIGN = {ast.Add: "-", ast.Sub: "+"}


def inside(source: Source, kind: type[ast.AST]) -> Iterator[tuple[Function, ast.AST]]:
    """Nodes of a kind within functions."""
    for _, function in source.functions:
        for statement in function.body:
            yield from ((function, node) for node in ast.walk(statement) if isinstance(node, kind))


def off_by_one(source: Source) -> Edits:
    for _, node in inside(source, ast.Constant):
        assert isinstance(node, ast.Constant)
        above = source.parents[node]
        counts = isinstance(above, (ast.Subscript, ast.Slice, ast.BinOp)) or (
            isinstance(above, ast.Call) and getattr(above.func, "id", "") == "range"
        )
        if type(node.value) is int and counts:
            yield [source.replace(node, str(node.value + 1))]
            if node.value > 0:
                yield [source.replace(node, str(node.value - 1))]


def _compared(source: Source, signs: dict[type, str]) -> Edits:
    for _, node in inside(source, ast.Compare):
        assert isinstance(node, ast.Compare)
        if len(node.ops) == 1 and (sign := signs.get(type(node.ops[0]))):
            words = [f"({source.of(part)})" if isinstance(part, ast.BoolOp | ast.IfExp) else source.of(part)
                     for part in (node.left, node.comparators[0])]  # fmt: skip
            yield [source.replace(node, f"{words[0]} {sign} {words[1]}")]


def swapped_arguments(source: Source) -> Edits:
    for _, node in inside(source, ast.Call):
        assert isinstance(node, ast.Call)
        for first, second in zip(node.args, node.args[1:], strict=False):
            starred = isinstance(first, ast.Starred) or isinstance(second, ast.Starred)
            if not starred and source.of(first) != source.of(second):
                yield [source.replace(first, source.of(second)), source.replace(second, source.of(first))]


def missing_case(source: Source) -> Edits:
    """A guard is gone, or a part of a condition."""
    for _, node in inside(source, ast.If):
        assert isinstance(node, ast.If)
        ends = isinstance(node.body[-1], (ast.Return, ast.Raise, ast.Continue))
        block = getattr(source.parents[node], "body", [])
        if len(node.body) == 1 and ends and not node.orelse and node in block and len(block) > 1:
            start = source.offset(node.lineno, 0)
            yield [Edit(start, source.span(node)[1] + 1, "")]
    for _, node in inside(source, ast.BoolOp):
        assert isinstance(node, ast.BoolOp)
        if isinstance(node.op, ast.Or) and len(node.values) == 2:
            yield [source.replace(node, source.of(node.values[0]))]


def wrong_default(source: Source) -> Edits:
    for _, function in source.functions:
        for node in (*function.args.defaults, *filter(None, function.args.kw_defaults)):
            value = node.value if isinstance(node, ast.Constant) else ...
            if isinstance(value, bool):
                yield [source.replace(node, str(not value))]
            elif isinstance(value, int):
                yield [source.replace(node, str(value + 1))]
            elif isinstance(value, str):
                yield [source.replace(node, repr("" if value else " "))]


def wrong_sign(source: Source) -> Edits:
    for _, node in inside(source, ast.BinOp):
        assert isinstance(node, ast.BinOp)
        if type(node.op) in _SIGN and not isinstance(node.right, ast.BinOp):
            yield [
                source.replace(node, f"{source.of(node.left)} {_SIGN[type(node.op)]} {source.of(node.right)}")
            ]
    for _, node in inside(source, ast.AugAssign):
        assert isinstance(node, ast.AugAssign)
        if type(node.op) in _SIGN:
            sign = _SIGN[type(node.op)]
            yield [source.replace(node, f"{source.of(node.target)} {sign}= {source.of(node.value)}")]
    for _, node in inside(source, ast.UnaryOp):
        assert isinstance(node, ast.UnaryOp)
        if isinstance(node.op, ast.USub):
            yield [source.replace(node, source.of(node.operand))]


def wrong_variable(source: Source) -> Edits:
    for function, node in inside(source, ast.Name):
        assert isinstance(node, ast.Name)
        names = {parameter.arg for parameter in parameters(function)}
        names |= {
            name.id
            for name in ast.walk(function)
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
        }
        called = getattr(source.parents[node], "func", None) is node
        if isinstance(node.ctx, ast.Load) and node.id in names and not called:
            yield from ([source.replace(node, other)] for other in sorted(names - {node.id}))


def missing_return(source: Source) -> Edits:
    for function, node in inside(source, ast.Return):
        assert isinstance(node, ast.Return)
        if node.value is not None and function.body[-1] is node and len(function.body) > 1:
            yield [source.replace(node, source.of(node.value))]


def precedence(source: Source) -> Edits:
    """Brackets are gone."""
    for _, node in (*inside(source, ast.BinOp), *inside(source, ast.BoolOp), *inside(source, ast.UnaryOp)):
        above = source.parents[node]
        inner = isinstance(node, (ast.BinOp, ast.BoolOp)) and isinstance(
            above, (ast.BinOp, ast.BoolOp, ast.UnaryOp)
        )
        if inner:
            start, end = source.span(node)  # type: ignore[arg-type]
            if source.text[start - 1] == "(" and source.text[end : end + 1] == ")":
                yield [Edit(start - 1, start, ""), Edit(end, end + 1, "")]


def swallowed_exception(source: Source) -> Edits:
    for _, node in inside(source, ast.ExceptHandler):
        assert isinstance(node, ast.ExceptHandler)
        if isinstance(node.body[-1], ast.Raise):
            start, end = source.span(node.body[0])[0], source.span(node.body[-1])[1]
            yield [Edit(start, end, "pass")]
    for function, node in inside(source, ast.Return):
        assert isinstance(node, ast.Return)
        if node.value is not None and node in function.body and "\n" not in source.of(node):
            space = source.indent(node)
            words = f"try:\n{space}    {source.of(node)}\n{space}except Exception:\n{space}    return None"
            yield [source.replace(node, words)]


BUGS: dict[str, Callable[[Source], Edits]] = {
    "off by one": off_by_one,
    "comparison": lambda source: _compared(source, _OTHER),
    "swapped arguments": swapped_arguments,
    "missing case": missing_case,
    "wrong default": wrong_default,
    "wrong sign": wrong_sign,
    "wrong variable": wrong_variable,
    "missing return": missing_return,
    "boundary": lambda source: _compared(source, _BOUNDARY),
    "precedence": precedence,
    "swallowed exception": swallowed_exception,
}
