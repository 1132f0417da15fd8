"""What sort of term something is, and terms taken apart."""

from __future__ import annotations

from engine.bdi.actions import Call, is_list
from engine.bdi.formulas import is_literal
from engine.bdi.library.registry import internal
from engine.bdi.terms import (
    Cell,
    Struct,
    canonical,
    deref,
    instantiated,
    is_ground,
    items_of,
    list_of,
    resolved,
)


@internal(".ground", 1)
def ground(call: Call) -> bool:
    """Nothing in it is without a value."""
    return is_ground(call.value(0))


@internal(".atom", 1)
def atom(call: Call) -> bool:
    """A name without arguments or annotations."""
    found = deref(call.args[0])
    return isinstance(found, Struct) and not (found.args or found.annotations or found.negated)


@internal(".number", 1)
def number(call: Call) -> bool:
    """A number."""
    return isinstance(deref(call.args[0]), int | float)


@internal(".string", 1)
def string(call: Call) -> bool:
    """A text in quotes."""
    return isinstance(deref(call.args[0]), str)


@internal(".list", 1)
def a_list(call: Call) -> bool:
    """A list, empty or not."""
    return is_list(call.args[0])


@internal(".literal", 1)
def literal(call: Call) -> bool:
    """An atom or structure, positive or negative."""
    return is_literal(deref(call.args[0]))


@internal(".structure", 1)
def structure(call: Call) -> bool:
    """An atom, structure or list."""
    found = deref(call.args[0])
    return isinstance(found, Struct) or is_list(found)


@internal(".copy_term", 2)
def copy_term(call: Call) -> bool:
    """The same term with variables of its own."""
    return call.unify(1, instantiated(canonical(call.value(0))))


@internal("=..", 2)
def univ(call: Call) -> bool:
    """`p(1, 2)[a] =.. [p, [1, 2], [a]]`, in both directions."""
    left = deref(call.args[0])
    if isinstance(left, Struct):
        parts = [Struct(left.functor), list_of(left.args), list_of(left.annotations)]
        return call.unify(1, list_of(parts))
    if not isinstance(left, Cell):
        return False
    parts = call.items(1)
    functor = deref(parts[0]) if len(parts) == 3 else None
    args = items_of(parts[1]) if len(parts) == 3 else None
    notes = items_of(parts[2]) if len(parts) == 3 else None
    if not isinstance(functor, Struct) or args is None or notes is None:
        raise call.wrong(1, "a list of functor, arguments and annotations")
    made = Struct(functor.functor, tuple(args), map(resolved, notes), functor.negated)
    return call.unify(0, made)
