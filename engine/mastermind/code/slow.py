"""Slow places that can be seen in a module's text: work that grows faster than what it is for.

Each comes with the kind that a fixer of the same name mends (`engine.mastermind.code.speed_fixes`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
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
    lists, texts = _lists(owner), _texts(owner)
    for node in ast.walk(owner):
        if not isinstance(node, (ast.Compare, ast.AugAssign, ast.Call)) or _owner(source, node) is not owner:
            continue
        around = source.loops_around(node, owner)
        if not around:
            continue
        for kind, name in _kinds(node, around, lists, texts, source):
            yield SlowPlace(kind, function, name, node.lineno, len(around), node, owner)


def _owner(source: Source, node: ast.AST) -> ast.AST | None:
    above = source.parents.get(node)
    while above is not None and not isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        above = source.parents.get(above)
    return above


def _kinds(
    node: ast.expr | ast.stmt, around: list[ast.AST], lists: set[str], texts: set[str], source: Source
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
        elif _can_be_hoisted(node) and not names(node) & _bound(around[0]):
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


def _bound(loop: ast.AST) -> set[str]:
    return stores(loop)


def _lists(owner: Function) -> set[str]:
    """Names that hold lists wherever they are bound in a function."""
    found: dict[str, bool] = {
        one.arg: True
        for one in parameters(owner)
        if one.annotation is not None and ast.unparse(one.annotation).startswith(("list[", "List[", "list"))
    }
    for name, value in _bindings(owner):
        found[name] = found.get(name, True) and _is_list(value)
    return {name for name, holds in found.items() if holds}


def _is_list(value: ast.expr | None) -> bool:
    return isinstance(value, (ast.List, ast.ListComp)) or (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Name)
        and value.func.id in ("list", "sorted")
    )


def _texts(owner: Function) -> set[str]:
    """Names that begin as a text."""
    return {
        name
        for name, value in _bindings(owner)
        if isinstance(value, ast.JoinedStr) or (isinstance(value, ast.Constant) and type(value.value) is str)
    }


def _bindings(owner: Function) -> Iterator[tuple[str, ast.expr | None]]:
    """Names with what is assigned to them; None for what a loop or another construct binds."""
    plain: set[ast.AST] = set()
    for node in ast.walk(owner):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            plain.add(node.targets[0])
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            plain.add(node.target)
            yield node.target.id, node.value
        elif isinstance(node, ast.AugAssign):
            plain.add(node.target)
    for node in ast.walk(owner):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in plain:
            yield node.id, None
