"""Whether a small change is shown to be right by the code around it, where few tests speak of it.

Two things show it. The project has the same statement, or the same default of a parameter, in another place
(the sibling function). Or the tests that it mends let nothing else stand there: each other small change of
its statement fails them, as in mutation testing. A change is small that brings no value, call or branch.
"""

from __future__ import annotations

import ast
import copy
import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.improve.code.findings import ExaminedProject
from engine.improve.code.mutations import mutations
from engine.improve.code.projects import project_box, run_tests
from engine.improve.code.source import Source, called_name, defaults_of, parse_source
from engine.improve.judge.box import BoxError, Boxes

_MOST, _FEWEST, _SPARED = 24, 5, 0.2
"""Other changes that are tried, how many have to fail, and the share that may pass."""
_RIVALS = 60
"""Other repairs of one place that are tried at most, the most plausible ones."""
_PLACES = 3
"""Places that a small change has at most."""
_PLAIN, _OFTEN, _CLEAR = 4, 2, 7
"""Nodes from which what stands elsewhere so often, or once, stands there by no chance."""
_TEST_S, _HELD = 3.0, 60
"""Processor seconds of one run, and passing tests that are run besides."""
_ORDINARY = (None, True, False, 0, 1, -1, 2, "")
_BRINGS = (
    *(ast.Call, ast.If, ast.IfExp, ast.Try, ast.For, ast.While, ast.With, ast.Match, ast.Lambda),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.comprehension, ast.JoinedStr),
    *(
        ast.Dict,
        ast.Set,
        ast.List,
        ast.Tuple,
        ast.Import,
        ast.ImportFrom,
        ast.Global,
        ast.Nonlocal,
        ast.Delete,
        ast.Starred,
    ),
)
Pair = tuple[ast.AST | None, ast.AST | None]


def differing(old: ast.AST | None, new: ast.AST | None) -> Iterator[Pair]:
    """The smallest parts in which two trees differ; None for what only one of them has."""
    if old is None or new is None or type(old) is not type(new):
        yield old, new
        return
    inner: list[Pair] = []
    for name in old._fields:
        mine, theirs = getattr(old, name, None), getattr(new, name, None)
        if name in ("op", "ops") and list(map(type, _listed(mine))) != list(map(type, _listed(theirs))):
            yield old, new  # operators are shared by all nodes and have no place
            return
        if isinstance(mine, list) and isinstance(theirs, list):
            inner += _of_lists(mine, theirs)
        elif isinstance(mine, ast.AST) or isinstance(theirs, ast.AST):
            inner += differing(mine, theirs)
        elif mine != theirs or type(mine) is not type(theirs):
            yield old, new
            return
    yield from inner


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _of_lists(old: list[ast.AST], new: list[ast.AST]) -> Iterator[Pair]:
    """The same for lists: what is alike at both ends is left out."""
    first = 0
    while first < min(len(old), len(new)) and ast.dump(old[first]) == ast.dump(new[first]):
        first += 1
    last = 0
    while last < min(len(old), len(new)) - first and ast.dump(old[-1 - last]) == ast.dump(new[-1 - last]):
        last += 1
    mine, theirs = old[first : len(old) - last], new[first : len(new) - last]
    if len(mine) == len(theirs):
        for one, other in zip(mine, theirs, strict=True):
            yield from differing(one, other)
    else:
        yield from ((one, None) for one in mine)
        yield from ((None, other) for other in theirs)


def is_small(old: Source, pairs: Sequence[Pair]) -> bool:
    """Whether a change brings no value, call or branch of its own, nor a name that was not there."""
    names = {node.id for node in ast.walk(old.tree) if isinstance(node, ast.Name)}
    names |= {node.arg for node in ast.walk(old.tree) if isinstance(node, ast.arg)}
    names |= {node.attr for node in ast.walk(old.tree) if isinstance(node, ast.Attribute)}
    for before, after in pairs:
        mine = list(ast.walk(before)) if before is not None else []
        values = [*_ORDINARY, *(node.value for node in mine if isinstance(node, ast.Constant))]
        known = {(type(node), called_name(node)) for node in mine}
        numbers = {node.value for node in mine if isinstance(node, ast.Constant) and type(node.value) is int}
        for node in ast.walk(after) if after is not None else ():
            match node:
                case ast.Constant(value):
                    near = type(value) is int and (numbers & {value - 1, value + 1, -value})
                    if not near and not any(type(value) is type(one) and value == one for one in values):
                        return False
                case ast.Name(name) | ast.Attribute(attr=name) if name not in names:
                    return False
                case _ if isinstance(node, _BRINGS) and (type(node), called_name(node)) not in known:
                    return False
    return 0 < len(pairs) <= _PLACES


def stands_elsewhere(
    sources: Mapping[str, Source], path: str, old: Source, new: Source, pairs: Sequence[Pair]
) -> bool:
    """Whether the project has in other places what a change brings, and no rarer than what goes."""
    everywhere = Counter(
        ast.dump(node)
        for source in sources.values()
        for node in ast.walk(source.tree)
        if isinstance(node, (ast.expr, ast.stmt))
    )
    return bool(pairs) and all(
        after is not None
        and (
            _default_elsewhere(sources, path, new, before, after)
            or _written(everywhere, old, new, before, after)
        )
        for before, after in pairs
    )


def _written(
    everywhere: Counter[str], old: Source, new: Source, before: ast.AST | None, after: ast.AST | None
) -> bool:
    """Whether a part that changed, or what stands around it in its statement, is written elsewhere, too."""
    around = itertools.chain(_outwards(old, before), itertools.repeat(None))
    for now, was in zip(_outwards(new, after), around, strict=False):
        size = sum(not isinstance(node, ast.expr_context) for node in ast.walk(now))
        times = everywhere[ast.dump(now)]
        rarer = was is None or isinstance(was, ast.Pass) or everywhere[ast.dump(was)] - 1 < times
        if rarer and times >= (1 if size >= _CLEAR else _OFTEN if size >= _PLAIN else math.inf):
            return True
    return False


def lets_through(old: Source, pairs: Sequence[Pair]) -> bool:
    """Whether a change only lets an exception through that a handler of all exceptions swallowed."""
    return all(
        isinstance(after, ast.Raise)
        and after.exc is None
        and isinstance(handler := old.parents.get(before) if before else None, ast.ExceptHandler)
        and (handler.type is None or getattr(handler.type, "id", "") in ("Exception", "BaseException"))
        for before, after in pairs
    )


def _outwards(source: Source, node: ast.AST | None) -> Iterator[ast.AST]:
    """A node and what stands around it, up to its statement where that has no body."""
    while isinstance(node, (ast.expr, ast.stmt)):
        yield node
        above = source.parents.get(node)
        node = None if isinstance(node, ast.stmt) or hasattr(above, "body") else above


def _default_elsewhere(
    sources: Mapping[str, Source], path: str, new: Source, before: ast.AST | None, after: ast.AST | None
) -> bool:
    """Whether another function has such a default for a parameter of this name, and none has the old one."""
    if after is None:
        return False
    owner = _owner(new, after)
    function = next((function for name, function in new.functions if name == owner), None)
    mine = defaults_of(function.args) if function is not None else []
    names: dict[ast.AST, str] = {node: name for name, node in mine}
    given = [
        ast.dump(node)
        for where, source in sources.items()
        for name, other in source.functions
        if (where, name) != (path, owner)
        for parameter, node in defaults_of(other.args)
        if parameter == names.get(after)
    ]
    old = ast.dump(before) if before is not None else ""
    return ast.dump(after) in given and old not in given


def _owner(source: Source, node: ast.AST) -> str:
    """The innermost function that a node stands in."""
    inside = [(name, function) for name, function in source.functions if node in set(ast.walk(function))]
    return min(inside, key=lambda entry: sum(1 for _ in ast.walk(entry[1])))[0] if inside else ""


class _Plain(ast.NodeTransformer):
    """Says `not a is b` as `a is not b`, and so on."""

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        inner = self.visit(node.operand)
        if not isinstance(node.op, ast.Not):
            return ast.UnaryOp(node.op, inner)
        if isinstance(inner, ast.UnaryOp) and isinstance(inner.op, ast.Not):
            return inner.operand
        if isinstance(inner, ast.Compare) and len(inner.ops) == 1 and type(inner.ops[0]) in _NEGATED:
            return ast.Compare(inner.left, [_NEGATED[type(inner.ops[0])]()], inner.comparators)
        return ast.UnaryOp(node.op, inner)


_ANTONYMS: tuple[tuple[type[ast.cmpop], type[ast.cmpop]], ...] = (
    *((ast.Is, ast.IsNot), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn)),
    *((ast.Lt, ast.GtE), (ast.Gt, ast.LtE)),
)
_NEGATED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    sign: other for pair in _ANTONYMS for sign, other in (pair, pair[::-1])
}


def _plain(tree: ast.AST) -> str:
    return ast.dump(_Plain().visit(copy.deepcopy(tree)))


async def is_pinned(
    boxes: Boxes,
    after: Path,
    seen: ExaminedProject,
    path: str,
    new: Source,
    pairs: Sequence[Pair],
    mended: Sequence[str],
    seed: str,
) -> bool:
    """Whether tests fail with nearly each other small change of the statements that a change concerns.

    Of the small changes of what stood there before, which would be other repairs, none may pass.

    Args:
        boxes: makes the box.
        after: the tree with the change.
        seen: the project as it was before.
        path: the file that changed, from the project's directory.
        new: the file now.
        pairs: what differs.
        mended: ids of the tests that fail without the change.
        seed: draws which other changes are tried.
    """
    old, project = seen.sources[path], seen.project
    lines = {new.statement(node).lineno for _, node in pairs if node is not None}
    usual = ast.dump(old.tree)
    texts = dict.fromkeys(new.with_edit(change.edit) for change in mutations(new, frozenset(lines)))
    others = [text for text in texts if (tree := parse_source(text)) and ast.dump(tree.tree) != usual]
    others = random.Random(seed).sample(others, min(_MOST, len(others)))
    if len(others) < _FEWEST:
        return False
    first = {old.statement(node).lineno for node, _ in pairs if node is not None}
    known = {_plain(old.tree), _plain(new.tree)}
    changes = sorted(mutations(old, frozenset(first)), key=lambda change: -change.plausible)
    repairs = dict.fromkeys(old.with_edit(change.edit) for change in changes)
    rivals = [text for text in repairs if (tree := parse_source(text)) and _plain(tree.tree) not in known]
    run = {
        line for node, _ in pairs if node for line in (old.statement(node).lineno, getattr(node, "lineno", 0))
    }
    held = [
        test for test, result in seen.tests.items()
        if result["outcome"] == "passed" and run.intersection(result.get("lines", {}).get(path, ()))
    ]  # fmt: skip
    passed = 0
    async with project_box(boxes, after, project) as box:
        for text in (*others, *rivals[:_RIVALS]):
            files, fails = {project.path(path): text}, False
            for tests in (mended, held[:_HELD]):
                if not fails and tests:
                    fails = True  # where nothing is said within the time, too
                    with suppress(BoxError):
                        said = await run_tests(
                            box, tests, files=files, limit_s=6 * _TEST_S, processor_s=_TEST_S
                        )
                        fails = any(said.get(test, {}).get("outcome") != "passed" for test in tests)
            passed += not fails
            rival = not fails and text in repairs
            if not box.alive or rival or passed > _SPARED * len(others):
                return False
    return True
