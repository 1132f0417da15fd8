"""Lists and sets."""

from __future__ import annotations

from collections.abc import Iterator

from engine.bdi.actions import Call, failed
from engine.bdi.library.registry import internal
from engine.bdi.nodes import as_set
from engine.bdi.ordering import compare, in_order
from engine.bdi.terms import Cons, Term, deref, items_of, list_of, same
from engine.bdi.unification import Trail, undo, unify


@internal(".length", 2)
def length(call: Call) -> bool:
    """Elements of a list, or characters of a text."""
    found = deref(call.args[0])
    return call.unify(1, len(found) if isinstance(found, str) else len(call.items(0)))


@internal(".member", 2)
def member(call: Call) -> Iterator[None]:
    """Each element that fits."""
    rest = deref(call.args[1])
    call.items(1)
    while isinstance(rest, Cons):
        mark = len(call.trail)
        if call.unify(0, rest.head):
            yield
        undo(call.trail, mark)
        rest = deref(rest.tail)


@internal(".nth", 3)
def nth(call: Call) -> Iterator[None]:
    """`.nth(place, list, element)`, places from 0; without a place, each that fits."""
    items = call.items(1)
    places = range(len(items)) if call.is_unbound(0) else range(call.integer(0), call.integer(0) + 1)
    if places and not 0 <= places[0] < len(items):
        raise failed(f".nth: there is no place {places[0]} in a list of {len(items)}")
    for place in places:
        mark = len(call.trail)
        if call.unify(0, place) and call.unify(2, items[place]):
            yield
        undo(call.trail, mark)


@internal(".sort", 2)
def sort(call: Call) -> bool:
    """In the total order of terms; equal ones stay."""
    return call.unify(1, list_of(in_order(call.items(0))))


def _extreme(call: Call, sign: int) -> bool:
    items = call.items(0)
    if not items:
        return False
    best = items[0]
    for one in items[1:]:
        if compare(one, best) * sign > 0:
            best = one
    return call.unify(1, best)


@internal(".min", 2)
def least(call: Call) -> bool:
    """The first in the order of terms."""
    return _extreme(call, -1)


@internal(".max", 2)
def greatest(call: Call) -> bool:
    """The last in the order of terms."""
    return _extreme(call, 1)


@internal(".reverse", 2)
def reverse(call: Call) -> bool:
    """A list or a text backwards."""
    found = deref(call.args[0])
    if isinstance(found, str):
        return call.unify(1, found[::-1])
    return call.unify(1, list_of(call.items(0)[::-1]))


@internal(".concat", 2, 100)
def concat(call: Call) -> bool:
    """Lists one after the other, or the texts of anything else."""
    *parts, _ = (deref(one) for one in call.args)
    lists = [items_of(one) for one in parts]
    last = len(call) - 1
    if all(one is not None for one in lists):
        return call.unify(last, call.made(item for one in lists if one is not None for item in one))
    return call.unify(last, call.sized("".join(call.text(place) for place in range(last))))


@internal(".sublist", 2)
def sublist(call: Call) -> Iterator[None]:
    """Each stretch of a list that fits."""
    items = call.items(1)
    stretches = ((start, stop) for start in range(len(items)) for stop in range(start + 1, len(items) + 1))
    for start, stop in (*stretches, (0, 0)):
        mark = len(call.trail)
        if call.unify(0, list_of(items[start:stop])):
            yield
        undo(call.trail, mark)


@internal(".delete", 3, 4)
def delete(call: Call) -> bool:
    """`.delete(element, list, rest)`; a number is a place, two numbers are a stretch; texts too."""
    *what, whole, _ = call.args
    found = deref(whole)
    items: list[Term] = list(found) if isinstance(found, str) else call.items(len(call) - 2)
    if isinstance(deref(what[0]), int | float):
        start = call.integer(0)
        stop = call.integer(1) if len(what) == 2 else start + 1
        kept = items[: max(start, 0)] + items[max(stop, 0) :]
    else:
        kept = [one for one in items if not _fits(what[0], one)]
    result = "".join(map(str, kept)) if isinstance(found, str) else list_of(kept)
    return call.unify(len(call) - 1, result)


def _fits(pattern: Term, item: Term) -> bool:
    trail: Trail = []
    fits = unify(pattern, item, trail)
    undo(trail, 0)
    return fits


@internal(".union", 3)
def union(call: Call) -> bool:
    """All elements, each once and in order."""
    return call.unify(2, as_set(call.items(0) + call.items(1)))


@internal(".intersection", 3)
def intersection(call: Call) -> bool:
    """Elements in both."""
    return call.unify(2, as_set([one for one in call.items(0) if _among(one, call.items(1))]))


@internal(".difference", 3)
def difference(call: Call) -> bool:
    """Elements of the first that are not in the second."""
    return call.unify(2, as_set([one for one in call.items(0) if not _among(one, call.items(1))]))


def _among(term: Term, items: list[Term]) -> bool:
    return any(same(term, one) for one in items)


@internal(".range", 3, 4)
def between(call: Call) -> Iterator[None]:
    """`.range(X, first, last)`, and with a fourth argument in steps of that."""
    first, last = call.integer(1), call.integer(2)
    pace = call.integer(3) if len(call) == 4 else 1
    if pace == 0:
        raise failed(".range: a step of 0 leads nowhere")
    for value in range(first, last + (1 if pace > 0 else -1), pace):
        mark = len(call.trail)
        if call.unify(0, value):
            yield
        undo(call.trail, mark)


@internal(".shuffle", 2)
def shuffle(call: Call) -> bool:
    """The elements in an order of chance."""
    items = call.items(0)
    call.agent.random.shuffle(items)
    return call.unify(1, list_of(items))
