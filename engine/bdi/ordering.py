"""The total order of terms: numbers, strings, lists, then structures (spec §1.3, settled with Jason)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cmp_to_key

from engine.bdi.terms import Cell, Cons, Nil, Struct, Term, Var, deref


def compare(left: Term, right: Term) -> int:
    """Negative, zero or positive as `left` stands before, with or after `right`.

    Structures go by functor, then arguments, then their number, positive before `~`, then annotations;
    variables come last.
    """
    waiting = [(left, right)]
    while waiting:
        a, b = waiting.pop()
        a, b = deref(a), deref(b)
        if a is b:
            continue
        rank, other = _RANK[type(a)], _RANK[type(b)]
        if rank != other:
            return -1 if rank < other else 1
        if isinstance(a, Struct) and isinstance(b, Struct):
            if a.functor != b.functor:
                return -1 if a.functor < b.functor else 1
            waiting.append((len(a.annotations), len(b.annotations)))
            waiting.extend(_backwards(a.annotations, b.annotations))
            waiting.append((a.negated, b.negated))
            waiting.append((len(a.args), len(b.args)))
            waiting.extend(_backwards(a.args, b.args))
        elif isinstance(a, Cons) and isinstance(b, Cons):
            waiting.append((a.tail, b.tail))
            waiting.append((a.head, b.head))
        elif isinstance(a, Cons | Nil):
            return 1 if isinstance(a, Cons) else -1
        elif (key := _leaf(a)) != (with_ := _leaf(b)):
            return -1 if key < with_ else 1  # type: ignore[operator]  # of one rank, so of one type
    return 0


_RANK: dict[type, int] = {bool: 0, int: 0, float: 0, str: 1, Nil: 2, Cons: 2, Struct: 3, Var: 4, Cell: 5}


def _backwards(left: tuple[Term, ...], right: tuple[Term, ...]) -> list[tuple[Term, Term]]:
    """Pairs, the first of them last, as a stack wants them."""
    return list(zip(left, right, strict=False))[::-1]


def _leaf(term: Term) -> int | float | str:
    if isinstance(term, Var):
        return term.name
    return id(term) if isinstance(term, Cell) else term  # type: ignore[return-value]


def in_order(terms: Iterable[Term]) -> list[Term]:
    """The terms sorted; equal ones keep their places."""
    return sorted(terms, key=cmp_to_key(compare))
