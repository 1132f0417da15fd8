"""Mechanical fixes of slow places, as edits of the text around them.

Each refuses where it cannot see every use of the variable; what it cannot see, such as values that have no
hash, the judge finds. A fix changes no more lines than it needs.
"""

from __future__ import annotations

import ast
import itertools

from engine.mastermind.code.slow import Slowness, SlowPlace
from engine.mastermind.code.source import LOOPS, Edit, Source, called, stores


def fix(source: Source, place: SlowPlace) -> str | None:
    """The module's text with one slow place mended; None where that cannot be done by rule."""
    fixer = {
        Slowness.MEMBERSHIP: _membership,
        Slowness.CONCATENATION: _concatenation,
        Slowness.FRONT: _front,
        Slowness.INVARIANT: _invariant,
    }[place.kind]
    edits = fixer(source, place)
    return source.edited(edits) if edits else None


def _membership(source: Source, place: SlowPlace) -> list[Edit]:
    """A set beside the list, which is asked instead of it."""
    beside = _free_name(place, f"{place.name}_set")
    outer = _outer_loop(source, place)
    asked = [node for node in ast.walk(outer) if _asks(node, place.name)]
    edits = [source.replace(node.comparators[-1], beside) for node in asked if isinstance(node, ast.Compare)]
    if place.name not in stores(outer):
        return [*edits, source.before(outer, f"{beside} = set({place.name})")]
    uses = [node for node in ast.walk(place.owner) if isinstance(node, ast.Name) and node.id == place.name]
    appends = [node for node in ast.walk(outer) if _appends(source, node, place.name)]
    begins = [source.parents[use] for use in uses if isinstance(use.ctx, ast.Store)]
    if len(begins) != 1 or not isinstance(begins[0], (ast.Assign, ast.AnnAssign)) or not appends:
        return []
    inside = set(ast.walk(outer))
    known = {id(node.comparators[-1]) for node in asked if isinstance(node, ast.Compare)}
    known |= {id(node.value.func.value) for node in appends}  # type: ignore[attr-defined]
    if any(use in inside and id(use) not in known and not _reads(source, use) for use in uses):
        return []
    start = begins[0]
    if start in inside:
        return []
    empty = isinstance(start.value, ast.List) and not start.value.elts
    edits.append(source.after(start, f"{beside} = set({'' if empty else place.name})"))
    changed = stores(place.owner) if not empty else set()
    if changed and any(_changes_between(source, use, start, outer) for use in uses):
        return []
    for node in appends:
        given = node.value.args[0]  # type: ignore[attr-defined]
        plain = all(
            isinstance(one, (ast.Name, ast.Attribute, ast.Constant, ast.expr_context))
            for one in ast.walk(given)
        )
        added = source.of(given) if plain else f"{place.name}[-1]"
        assert isinstance(node, ast.stmt)
        edits.append(source.after(node, f"{beside}.add({added})"))
    return edits


_PLAIN = (ast.Name, ast.Attribute, ast.Constant, ast.expr_context)


def _asks(node: ast.AST, name: str) -> bool:
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[-1], (ast.In, ast.NotIn)):
        return False
    where = node.comparators[-1]
    return len(node.ops) == 1 and isinstance(where, ast.Name) and where.id == name


def _appends(source: Source, node: ast.AST, name: str) -> bool:
    """Whether it is the statement `name.append(x)` on lines of its own."""
    if (
        not isinstance(node, ast.Expr)
        or called(node.value) != "append"
        or not isinstance(node.value, ast.Call)
    ):
        return False
    function = node.value.func
    mine = (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == name
    )
    start, _ = source.span(node)
    alone = source.line(node.lineno).startswith(source.text[start : start + 4])
    return (
        mine
        and alone
        and len(node.value.args) == 1
        and ";" not in source.line(node.end_lineno or node.lineno)
    )


def _reads(source: Source, use: ast.Name) -> bool:
    """Whether a use changes nothing: `name[i]`, `len(name)`, `for x in name`."""
    above = source.parents[use]
    if isinstance(above, ast.Subscript):
        return isinstance(above.ctx, ast.Load)
    return called(above) == "len" or (isinstance(above, (ast.For, ast.comprehension)) and above.iter is use)


def _changes_between(source: Source, use: ast.Name, start: ast.stmt, outer: ast.stmt) -> bool:
    """Whether a use between the list's beginning and the loop may change it."""
    between = (start.end_lineno or 0) < use.lineno < outer.lineno
    return between and not _reads(source, use)


def _concatenation(source: Source, place: SlowPlace) -> list[Edit]:
    """Pieces in a list, joined behind the loop."""
    outer = _outer_loop(source, place)
    if not isinstance(outer, LOOPS) or outer.orelse:
        return []
    grown = [
        node
        for node in ast.walk(outer)
        if isinstance(node, ast.AugAssign)
        and isinstance(node.op, ast.Add)
        and isinstance(node.target, ast.Name)
        and node.target.id == place.name
    ]
    uses = [node for node in ast.walk(outer) if isinstance(node, ast.Name) and node.id == place.name]
    if len(uses) != len(grown) or any(isinstance(node, (ast.Yield, ast.Await)) for node in ast.walk(outer)):
        return []
    pieces = _free_name(place, f"{place.name}_pieces")
    edits = [source.replace(node, f"{pieces}.append({source.of(node.value)})") for node in grown]
    return [
        *edits,
        source.before(outer, f"{pieces} = [{place.name}]"),
        source.after(outer, f'{place.name} = "".join({pieces})'),
    ]


_DEQUE_CAN = frozenset({"append", "extend", "appendleft", "popleft", "clear", "remove", "count"})


def _front(source: Source, place: SlowPlace) -> list[Edit]:
    """A deque in the list's place."""
    edits: list[Edit] = []
    for use in ast.walk(place.owner):
        if not isinstance(use, ast.Name) or use.id != place.name:
            continue
        above = source.parents[use]
        if isinstance(use.ctx, ast.Store):
            if not isinstance(above, ast.Assign) or len(above.targets) != 1:
                return []
            empty = isinstance(above.value, ast.List) and not above.value.elts
            edits.append(source.replace(above.value, f"deque({'' if empty else source.of(above.value)})"))
        elif isinstance(above, ast.Attribute):
            call = source.parents[above]
            if not isinstance(call, ast.Call) or call.func is not above:
                return []
            first = call.args[0] if call.args else None
            zero = isinstance(first, ast.Constant) and first.value == 0
            if above.attr == "pop" and (zero or not call.args):
                edits += [source.replace(call, f"{place.name}.popleft()")] if zero else []
            elif above.attr == "insert" and zero and len(call.args) == 2:
                edits.append(source.replace(call, f"{place.name}.appendleft({source.of(call.args[1])})"))
            elif above.attr not in _DEQUE_CAN:
                return []
        elif not _is_asked(above, use):
            return []
    if not any("deque(" in edit.text for edit in edits):
        return []
    return [*edits, *_import(source, "collections", "deque")]


def _is_asked(above: ast.AST, use: ast.Name) -> bool:
    """Whether a use only asks whether there is anything in it, or goes through it."""
    if isinstance(above, (ast.While, ast.If, ast.IfExp)):
        return above.test is use
    if isinstance(above, (ast.For, ast.comprehension)):
        return above.iter is use
    return called(above) in ("len", "sum", "max", "min", "any", "all", "sorted") or isinstance(
        above, (ast.BoolOp, ast.UnaryOp)
    )


def _invariant(source: Source, place: SlowPlace) -> list[Edit]:
    """The call in front of the loop."""
    outer = _outer_loop(source, place)
    name = _free_name(place, "pattern" if called(place.node) == "compile" else f"{called(place.node)}_once")
    same = [node for node in ast.walk(outer) if isinstance(node, ast.Call) and source.of(node) == place.name]
    if any(_is_changed(source, node) for node in same):
        return []
    edits = [source.replace(node, name) for node in same]
    return [*edits, source.before(outer, f"{name} = {place.name}")]


def _is_changed(source: Source, node: ast.Call) -> bool:
    """Whether a call's value is bound or a method is called on it, by which it might be changed."""
    above = source.parents[node]
    bound = isinstance(above, (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.Return, ast.Yield))
    immutable = called(node) in ("sum", "max", "min", "compile", "frozenset")
    return not immutable and (bound or isinstance(above, (ast.Attribute, ast.Call, ast.keyword)))


def _outer_loop(source: Source, place: SlowPlace) -> ast.stmt:
    """The statement of the outermost loop, before which something can be made ready once."""
    return source.statement(source.loops_around(place.node, place.owner)[0])


def _free_name(place: SlowPlace, wanted: str) -> str:
    """A name that the function does not use."""
    taken = {node.id for node in ast.walk(place.owner) if isinstance(node, ast.Name)}
    taken |= {node.arg for node in ast.walk(place.owner) if isinstance(node, ast.arg)}
    more = (f"{wanted}{number}" for number in itertools.count(2))
    return next(name for name in itertools.chain([wanted], more) if name not in taken)


def _import(source: Source, module: str, name: str) -> list[Edit]:
    """The import of a name, behind the others; nothing where it is there."""
    last: ast.stmt | None = None
    for number, node in enumerate(source.tree.body):
        same = isinstance(node, ast.ImportFrom) and node.module == module
        if same and any(alias.name == name and alias.asname is None for alias in node.names):  # type: ignore[attr-defined]
            return []
        documented = number == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if documented or isinstance(node, (ast.Import, ast.ImportFrom)):
            last = node
    words = f"from {module} import {name}"
    return [source.after(last, words)] if last is not None else [Edit(0, 0, words + "\n")]
