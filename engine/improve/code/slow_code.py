"""Finds slow places in a module's text, work that grows faster than its purpose, and mends some by rule.

Fixes are edits of the text around a place. Each refuses where it cannot see every use of the variable. Where
it cannot see that items have a hash, what takes the list's place answers for those without one, too. A fix
changes no more lines than it needs.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence

from engine.improve.code.rewrites import Slowness, rewrites
from engine.improve.code.source import LOOPS, Edit, Function, Source, called_name, parameters, stored_names
from engine.value import dataclass

SAID = {
    Slowness.MEMBERSHIP: "looks through the list {name} again in each round of a loop; a set answers at once",
    Slowness.CONCATENATION: "makes {name} anew in each round of a loop; growing it once copies it once",
    Slowness.COMPILE: "has {name} each time it is called; once for the module is enough",
    Slowness.SORT: "sorts more than it needs in {name}",
    Slowness.COPY: "copies only to look at the copy in {name}",
    Slowness.CACHE: "computes {name} anew for arguments that it had before; a cache answers at once",
    Slowness.SCAN: "looks through all of it in {name}; asking for the item answers at once",
    Slowness.PATTERN: "matches a pattern without signs in {name}; a method of texts is quicker",
}


@dataclass(frozen=True, slots=True)
class SlowPlace:
    """One place."""

    kind: Slowness
    function: str
    name: str
    """The variable."""
    line: int
    depth: int
    """Loops around it, within the function."""
    node: ast.expr | ast.stmt
    owner: Function
    edits: tuple[Edit, ...] = ()
    """What mends it, where that is known by its form alone."""

    @property
    def text(self) -> str:
        """One sentence, without its subject."""
        return SAID[self.kind].format(name=f"`{self.name}`")


def slow_places(source: Source) -> list[SlowPlace]:
    """The slow places of a module, in the order of its lines; each variable of a function once."""
    places: dict[tuple[str, Slowness, str], SlowPlace] = {}
    for name, function in source.functions:
        for place in _places(source, name, function):
            places.setdefault((place.function, place.kind, place.name), place)
        for kind, node, edits in rewrites(source, function):
            words = function.name if kind is Slowness.CACHE else source.of(node)[:60]
            depth = len(source.loops_around(node, function))
            place = SlowPlace(kind, name, words, node.lineno, depth, node, function, tuple(edits))
            places.setdefault((name, kind, words), place)
    return sorted(places.values(), key=lambda place: (place.line, place.kind))


def _places(source: Source, function: str, owner: Function) -> Iterator[SlowPlace]:
    nodes: list[ast.AST] = list(owner.body)  # without those of functions within it
    for node in nodes:
        if not isinstance(node, (Function, ast.Lambda)):
            nodes.extend(ast.iter_child_nodes(node))
    bindings = list(_bindings(nodes))
    lists = _lists(owner, bindings)
    texts = {
        name
        for name, value in bindings
        if isinstance(value, ast.JoinedStr) or isinstance(getattr(value, "value", None), str)
    }
    for node in nodes:
        match node:
            case ast.Compare(ops=[*_, ast.In() | ast.NotIn()], comparators=[*_, ast.Name(name)]):
                kind, holds = Slowness.MEMBERSHIP, name in lists
            case ast.AugAssign(target=ast.Name(name), op=ast.Add()):
                kind, holds = Slowness.CONCATENATION, name in texts
            case _:
                continue
        depth = len(source.loops_around(node, owner))
        if holds and depth:
            yield SlowPlace(kind, function, name, node.lineno, depth, node, owner)


Binding = tuple[str, ast.expr | None]
"""A name with what is assigned to it; None for what a loop or another construct binds."""


def _lists(owner: Function, bindings: Sequence[Binding]) -> set[str]:
    """Names that hold lists wherever they are bound in a function."""
    given = {parameter.arg for parameter in parameters(owner)}
    lists = {name for name in given if _kind_of(owner, name).lower().startswith("list")}
    lists |= {name for name, _ in bindings}
    for name, value in bindings:
        made = isinstance(value, ast.Call) and getattr(value.func, "id", "") in ("list", "sorted")
        if not made and not isinstance(value, ast.List | ast.ListComp):
            lists.discard(name)
    return lists


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


def fix_slow_place(source: Source, place: SlowPlace) -> str | None:
    """The module's text with one slow place mended; None where that cannot be done by rule."""
    fixer = _membership if place.kind is Slowness.MEMBERSHIP else _concatenation
    edits = place.edits or fixer(source, place)
    return source.edited(edits) if edits else None


def _membership(source: Source, place: SlowPlace) -> list[Edit]:
    """A set beside the list, which is asked instead of it."""
    beside = _free_name(place, f"{place.name}_set")
    outer = _outer_loop(source, place)
    compared = [node for node in ast.walk(outer) if isinstance(node, ast.Compare) and len(node.ops) == 1]
    asked = [node for node in compared if getattr(node.comparators[0], "id", "") == place.name]
    asked = [node for node in asked if isinstance(node.ops[0], ast.In | ast.NotIn)]
    edits = [source.replace(node.comparators[0], beside) for node in asked]
    statements = [node for node in ast.walk(outer) if isinstance(node, ast.stmt)]
    appends = [node for node in statements if _appends(source, node, place.name)]
    items = [node.left for node in asked]
    items += [node.value.args[0] for node in appends]  # type: ignore[attr-defined]
    kind = "set" if all(_has_hash(source, place.owner, item) for item in items) else _MEMBERS
    if place.name not in stored_names(outer):
        hashed = _item_type(place.owner, place.name) in _HASHED
        kind = kind if hashed else _MEMBERS
        edits.append(source.before(outer, f"{beside} = {kind}({place.name})"))
    elif not (growing := _growing_set(source, place, outer, appends, asked, beside, kind)):
        return []
    else:
        edits += growing
    defined = {node.name for node in source.tree.body if isinstance(node, ast.ClassDef)}
    if kind == _MEMBERS and _MEMBERS not in defined:  # before what uses it first
        edits.append(source.ahead(place.owner, _MEMBERS_CLASS))
    return edits


_HASHED = frozenset({"str", "int", "float", "bool", "bytes", "complex"})
_HASHED_CALLS = _HASHED | {"len", "repr", "ord", "chr", "hash", "id", "lower", "upper", "strip", "casefold"}
_MEMBERS = "_Members"
_MEMBERS_CLASS = '''class _Members:
    """Answers `in` as a list of these items does, at once for those that have a hash."""

    def __init__(self, items=()):
        self._hashed, self._others = set(), []
        for item in items:
            self.add(item)

    def add(self, item):
        try:
            self._hashed.add(item)
        except TypeError:
            self._others.append(item)

    def __contains__(self, item):
        try:
            return item in self._hashed or item in self._others
        except TypeError:
            return item in self._others or any(item == other for other in self._hashed)


'''


def _has_hash(source: Source, owner: Function, item: ast.expr) -> bool:
    """Whether every value of an expression is seen to have a hash."""
    if isinstance(item, ast.Tuple):
        return all(_has_hash(source, owner, part) for part in item.elts)
    if isinstance(item, ast.Call):
        return called_name(item) in _HASHED_CALLS
    if isinstance(item, ast.Attribute):
        known = [node for node in ast.walk(source.tree) if isinstance(node, ast.AnnAssign)]
        kinds = {ast.unparse(node.annotation) for node in known if ast.unparse(node.target) == item.attr}
        return bool(kinds) and kinds <= _HASHED
    if isinstance(item, ast.Name):
        over = [
            node.iter
            for node in ast.walk(owner)
            if isinstance(node, (ast.For, ast.comprehension)) and getattr(node.target, "id", "") == item.id
        ]
        stored = sum(isinstance(use.ctx, ast.Store) for use in _uses(owner, item.id))
        if stored != len(over):
            return False
        if not over:
            return _kind_of(owner, item.id) in _HASHED
        return all(isinstance(node, ast.Name) and _item_type(owner, node.id) in _HASHED for node in over)
    return isinstance(item, (ast.Constant, ast.JoinedStr))


def _kind_of(owner: Function, name: str) -> str:
    """A parameter's annotation as it stands; empty where there is none."""
    kinds = {node.arg: node.annotation for node in parameters(owner) if node.annotation is not None}
    return ast.unparse(kinds[name]) if name in kinds else ""


def _item_type(owner: Function, name: str) -> str:
    """What a parameter that is annotated as a list holds; empty where that is not said."""
    return _kind_of(owner, name).partition("[")[2].removesuffix("]")


def _growing_set(
    source: Source,
    place: SlowPlace,
    outer: ast.stmt,
    appends: list[ast.stmt],
    asked: list[ast.Compare],
    beside: str,
    kind: str,
) -> list[Edit]:
    """The set kept up with a list that grows in the loop; nothing where the list may change otherwise."""
    uses = _uses(place.owner, place.name)
    starts = [source.parents[use] for use in uses if isinstance(use.ctx, ast.Store)]
    start = starts[0] if len(starts) == 1 else None
    inside = set(ast.walk(outer))
    if not isinstance(start, (ast.Assign, ast.AnnAssign)) or start in inside or not appends:
        return []
    known = {node.comparators[0] for node in asked}
    known |= {node.value.func.value for node in appends}  # type: ignore[attr-defined]
    empty = isinstance(start.value, ast.List) and not start.value.elts

    def may_change(use: ast.Name) -> bool:
        between = not empty and (start.end_lineno or 0) < use.lineno < outer.lineno
        return (between or (use in inside and use not in known)) and not _reads(source, use)

    if any(may_change(use) for use in uses):
        return []
    edits = [source.after(start, f"{beside} = {kind}({'' if empty else place.name})")]
    for node in appends:
        given = node.value.args[0]  # type: ignore[attr-defined]
        plain = all(isinstance(part, _PLAIN) for part in ast.walk(given))
        added = source.of(given) if plain else f"{place.name}[-1]"
        edits.append(source.after(node, f"{beside}.add({added})"))
    return edits


_PLAIN = (ast.Name, ast.Attribute, ast.Constant, ast.expr_context)


def _uses(tree: ast.AST, name: str) -> list[ast.Name]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name]


def _appends(source: Source, node: ast.AST, name: str) -> bool:
    """Whether it is the statement `name.append(x)` on lines of its own."""
    match node:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(where), "append"), [_])) if where == name:
            start, _ = source.span(node)
            alone = source.line(node.lineno).startswith(source.text[start : start + 4])
            return alone and ";" not in source.line(node.end_lineno or node.lineno)
    return False


def _reads(source: Source, use: ast.Name) -> bool:
    """Whether a use changes nothing: `name[i]`, `len(name)`, `for x in name`."""
    above = source.parents[use]
    if isinstance(above, ast.Subscript):
        return isinstance(above.ctx, ast.Load)
    return called_name(above) == "len" or (
        isinstance(above, (ast.For, ast.comprehension)) and above.iter is use
    )


def _concatenation(source: Source, place: SlowPlace) -> list[Edit]:
    """Pieces in a list, joined behind the loop."""
    outer = _outer_loop(source, place)
    if not isinstance(outer, LOOPS) or outer.orelse:
        return []
    uses = _uses(outer, place.name)
    grown = [node for node in ast.walk(outer) if isinstance(node, ast.AugAssign) and node.target in uses]
    grown = [node for node in grown if isinstance(node.op, ast.Add)]
    if len(uses) != len(grown) or any(isinstance(node, (ast.Yield, ast.Await)) for node in ast.walk(outer)):
        return []
    pieces = _free_name(place, f"{place.name}_pieces")
    edits = [source.replace(node, f"{pieces}.append({source.of(node.value)})") for node in grown]
    return [
        *edits,
        source.before(outer, f"{pieces} = [{place.name}]"),
        source.after(outer, f'{place.name} = "".join({pieces})'),
    ]


def _outer_loop(source: Source, place: SlowPlace) -> ast.stmt:
    """The statement of the outermost loop, before which something can be made ready once."""
    return source.statement(source.loops_around(place.node, place.owner)[0])


def _free_name(place: SlowPlace, base: str) -> str:
    """A name that the function does not use."""
    taken = {node.id for node in ast.walk(place.owner) if isinstance(node, ast.Name)}
    taken |= {node.arg for node in ast.walk(place.owner) if isinstance(node, ast.arg)}
    more = (f"{base}{number}" for number in itertools.count(2))
    return next(name for name in itertools.chain([base], more) if name not in taken)
