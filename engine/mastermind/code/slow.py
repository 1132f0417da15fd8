"""Slow places that can be seen in a module's text: work that grows faster than what it is for.

Each comes with the kind that a fixer of the same name mends (`engine.mastermind.code.speed_fixes`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.mastermind.code.source import Function, Source, called, names, parameters, stores


class Slowness(StrEnum):
    """What makes a place slow."""

    MEMBERSHIP = "membership"
    CONCATENATION = "concatenation"
    FRONT = "front"
    INVARIANT = "invariant"


SAID = {
    Slowness.MEMBERSHIP: "looks through the list {name} again in each round of a loop; a set answers at once",
    Slowness.CONCATENATION: "makes the text {name} anew in each round of a loop; joining once copies it once",
    Slowness.FRONT: "takes from the front of the list {name} in a loop, which moves all the others each time",
    Slowness.INVARIANT: "computes {name} in each round of a loop, though nothing in it changes there",
}
_HOISTED = frozenset({"sorted", "set", "frozenset", "sum", "max", "min", "dict"})


@dataclass(frozen=True, slots=True)
class SlowPlace:
    """One place."""

    kind: Slowness
    function: str
    name: str
    """The variable, or the text of the call."""
    line: int
    depth: int
    """Loops around it, within the function."""
    node: ast.expr | ast.stmt
    owner: Function

    @property
    def text(self) -> str:
        """One sentence, without its subject."""
        return SAID[self.kind].format(name=f"`{self.name}`")


def slow_places(source: Source) -> list[SlowPlace]:
    """The slow places of a module, in the order of its lines; each variable of a function once."""
    found: dict[tuple[str, Slowness, str], SlowPlace] = {}
    for name, function in source.functions:
        for place in _places(source, name, function):
            found.setdefault((place.function, place.kind, place.name), place)
    return sorted(found.values(), key=lambda place: (place.line, place.kind))


def _places(source: Source, function: str, owner: Function) -> Iterator[SlowPlace]:
    nodes = list(_own(owner))
    suspects = [node for node in nodes if _may_be_slow(node)]
    if not suspects:
        return
    bindings = list(_bindings(nodes))
    lists, texts = _lists(owner, bindings), _texts(bindings)
    for node in suspects:
        around = source.loops_around(node, owner)
        for kind, name in _kinds(node, around, lists, texts, source) if around else ():
            assert isinstance(node, (ast.expr, ast.stmt))
            yield SlowPlace(kind, function, name, node.lineno, len(around), node, owner)


def _own(owner: Function) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions within it."""
    waiting: list[ast.AST] = list(owner.body)
    for node in waiting:
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))


def _may_be_slow(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        return isinstance(node.ops[-1], (ast.In, ast.NotIn)) and isinstance(node.comparators[-1], ast.Name)
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Add) and isinstance(node.target, ast.Name)
    return isinstance(node, ast.Call) and (_takes_front(node) or _can_be_hoisted(node))


def _kinds(
    node: ast.AST, around: list[ast.AST], lists: set[str], texts: set[str], source: Source
) -> Iterator[tuple[Slowness, str]]:
    if isinstance(node, ast.Compare) and isinstance(node.ops[-1], (ast.In, ast.NotIn)):
        where = node.comparators[-1]
        if isinstance(where, ast.Name) and where.id in lists:
            yield Slowness.MEMBERSHIP, where.id
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        if isinstance(node.target, ast.Name) and node.target.id in texts:
            yield Slowness.CONCATENATION, node.target.id
    elif isinstance(node, ast.Call):
        if _takes_front(node) and isinstance(node.func, ast.Attribute):
            where = node.func.value
            if isinstance(where, ast.Name) and where.id in lists:
                yield Slowness.FRONT, where.id
        elif _can_be_hoisted(node) and not names(node) & stores(around[0]):
            yield Slowness.INVARIANT, source.of(node)


def _takes_front(node: ast.Call) -> bool:
    first = node.args[0] if node.args else None
    zero = isinstance(first, ast.Constant) and first.value == 0
    return zero and ((called(node) == "pop" and len(node.args) == 1) or called(node) == "insert")


def _can_be_hoisted(node: ast.Call) -> bool:
    """Whether it is a call without effects that costs something, of names and constants only."""
    plain = isinstance(node.func, ast.Name) and node.func.id in _HOISTED
    compiled = (
        isinstance(node.func, ast.Attribute)
        and node.func.attr == "compile"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
    )
    simple = all(isinstance(one, (ast.Name, ast.Constant)) for one in node.args)
    return (plain or compiled) and simple and bool(node.args) and not node.keywords


Binding = tuple[str, ast.expr | None]
"""A name with what is assigned to it; None for what a loop or another construct binds."""


def _lists(owner: Function, bindings: Sequence[Binding]) -> set[str]:
    """Names that hold lists wherever they are bound in a function."""
    found: dict[str, bool] = {
        one.arg: True
        for one in parameters(owner)
        if one.annotation is not None and ast.unparse(one.annotation).startswith(("list[", "List[", "list"))
    }
    for name, value in bindings:
        found[name] = found.get(name, True) and _is_list(value)
    return {name for name, holds in found.items() if holds}


def _is_list(value: ast.expr | None) -> bool:
    return isinstance(value, (ast.List, ast.ListComp)) or (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Name)
        and value.func.id in ("list", "sorted")
    )


def _texts(bindings: Sequence[Binding]) -> set[str]:
    """Names that begin as a text."""
    return {
        name
        for name, value in bindings
        if isinstance(value, ast.JoinedStr) or (isinstance(value, ast.Constant) and type(value.value) is str)
    }


def _bindings(nodes: Sequence[ast.AST]) -> Iterator[Binding]:
    plain: set[ast.AST] = set()
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            plain.add(node.targets[0])
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            plain.add(node.target)
            yield node.target.id, node.value
        elif isinstance(node, ast.AugAssign):
            plain.add(node.target)
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in plain:
            yield node.id, None
