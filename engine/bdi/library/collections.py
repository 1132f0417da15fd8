"""Sets, maps and queues, which change: `.set.add(S, x)`, `.map.put(M, key, value)`, `.queue.add(Q, x)`.

All of an agent together may take as much as its beliefs. None can be in itself.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import cmp_to_key

from engine.bdi.beliefs import Answer
from engine.bdi.internal_actions import Call, failed
from engine.bdi.library.terms import internal
from engine.bdi.rewriting import canonical, instantiated
from engine.bdi.terms import Collection, Term, compare, deref, list_of, subterms

_IN_ORDER = cmp_to_key(compare)


def _put(held: Collection, key: Term, value: Term) -> bool:
    """Hold a value under a key, of a set the element itself; a queue's place is its own affair."""
    key, value = canonical(key), canonical(value)
    if any(_holds(part, held) for part in (key, value)):
        raise failed(f"a {held.kind} cannot be in itself")
    _take(held, key)
    held.charge(key, value)
    if held.kind in ("set", "map"):
        held.rows[key] = value
    elif held.kind == "queue":
        held.queued.append(value)
    else:
        held.queued.insert(bisect_right(held.queued, _IN_ORDER(value), key=_IN_ORDER), value)
    return True


def _take(held: Collection, key: Term) -> Term | None:
    """Take away what is under a key."""
    value = held.rows.pop(key, None)
    if value is not None:
        held.charge(key, value, sign=-1)
    return value


def _holds(term: Term, target: Collection) -> bool:
    """Whether a collection is in a term, or in a collection that is."""
    waiting, met = [term], {id(target)}
    for item in waiting:
        for part in subterms(item):
            if part is target:
                return True
            if isinstance(part, Collection) and id(part) not in met:
                met.add(id(part))
                waiting += [*part.rows, *part.elements]
    return False


def _clear(held: Collection) -> bool:
    held.rows.clear()
    held.queued.clear()
    held.room[0] += held.taken
    held.taken = 0
    return True


def _of(call: Call, *, copy: bool = False) -> Collection:
    """The collection that an action is about, which is the first argument; made where that has no value."""
    kind, held = call.name.split(".")[1], deref(call.args[0])
    if call.is_unbound(0) and kind != "queue":
        call.unify(0, held := Collection(kind, call.agent.room))
    if not isinstance(held, Collection) or held.kind.replace("priority", "queue") != kind:
        raise call.wrong(0, f"a {kind}")
    if not copy:
        return held
    made = Collection(held.kind, held.room)
    made.charge(*held.rows, *held.elements)
    made.rows.update(held.rows)
    made.queued += held.queued
    return made


def _create(call: Call) -> Answer:
    kind = call.name.split(".")[1]
    if len(call) == 2 and call.text(1) == "priority":
        kind = "priority"
    return call.is_unbound(0) and call.unify(0, Collection(kind, call.agent.room))


def _each(call: Call, change: Callable[[Collection, Term], object]) -> bool:
    """Change it with each element of a list or other collection."""
    held = _of(call)
    for item in call.items(1):
        change(held, item)
    return True


def _keep(call: Call) -> bool:
    """Keep only what the other list or set has, too."""
    held, others = _of(call), set(map(canonical, call.items(1)))
    for item in held.keys:
        if item not in others:
            _take(held, item)
    return True


def _found(call: Call, place: int, value: Term | None) -> bool:
    return value is not None and call.unify(place, instantiated(value))


def _get(call: Call) -> bool:
    value = _of(call).rows.get(canonical(call.value(1)))
    return call.unify(2, call.args[3]) if value is None and len(call) == 4 else _found(call, 2, value)


def _poll(call: Call) -> bool:
    held = _of(call)
    value = held.queued.pop(0) if held.queued else None
    if value is not None:
        held.charge(value, value, sign=-1)
    return _found(call, 1, value)


def _listed(terms: Iterable[Term]) -> Term:
    return list_of(map(instantiated, terms))


def _declare(
    kinds: str, name: str, least: int, run: Callable[[Call], Answer], most: int | None = None
) -> None:
    for kind in kinds.split():
        internal(f".{kind}.{name}", least, most)(run)


_declare("set map queue", "create", 1, _create, 2)
_declare("set map queue", "clear", 1, lambda call: _clear(_of(call)))
_declare("set map queue", "copy", 2, lambda call: call.unify(1, _of(call, copy=True)))
_declare("set queue", "add", 2, lambda call: _put(_of(call), call.value(1), call.value(1)))
_declare("set queue", "add_all", 2, lambda call: _each(call, lambda held, item: _put(held, item, item)))
_declare("set queue", "to_list", 2, lambda call: call.unify(1, _listed(_of(call).elements)))
_declare("set", "union", 2, lambda call: _each(call, lambda held, item: _put(held, item, item)))
_declare("set", "difference", 2, lambda call: _each(call, lambda held, item: _take(held, canonical(item))))
_declare("set", "intersection", 2, _keep)
_declare("set", "remove", 2, lambda call: _take(_of(call), canonical(call.value(1))) is not None or True)
_declare("map", "put", 3, lambda call: _put(_of(call), call.value(1), call.value(2)))
_declare("map", "get", 3, _get, 4)
_declare("map", "key", 2, lambda call: call.each((1, instantiated(key)) for key in _of(call).keys))
_declare("map", "value", 2, lambda call: call.each((1, instantiated(item)) for item in _of(call).elements))
_declare("map", "remove", 3, lambda call: _found(call, 2, _take(_of(call), canonical(call.value(1)))))
_declare("queue", "head", 2, lambda call: _found(call, 1, next(iter(_of(call).queued), None)))
_declare("queue", "remove", 2, _poll)
