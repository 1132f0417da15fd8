"""Unification with a trail (spec §1.1): what it bound can be undone, and it never recurses on depth.

Annotations are sets and count on one side only: those of the left literal must be among those of the right.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

from engine.bdi.terms import ANNOTATION_TAIL, Cell, Cons, Struct, Term, deref, is_tail, list_of, spread

Trail: TypeAlias = list[Cell]
"""The variables bound so far, oldest first."""


def unify(left: Term, right: Term, trail: Trail) -> bool:
    """Make the two terms equal by binding variables; what was bound is on the trail, also on failure."""
    waiting = [(left, right)]
    while waiting:
        a, b = waiting.pop()
        a, b = deref(a), deref(b)
        if a is b:
            continue
        if type(a) is Cell:
            a.ref = b
            trail.append(a)
        elif type(b) is Cell:
            b.ref = a
            trail.append(b)
        elif type(a) is Struct and type(b) is Struct:
            if a.indicator != b.indicator:
                return False
            if a.annotations and not annotations_within(a.annotations, b.annotations, trail):
                return False
            waiting.extend(zip(a.args, b.args, strict=True))
        elif type(a) is Cons and type(b) is Cons:
            waiting.append((a.tail, b.tail))
            waiting.append((a.head, b.head))
        elif type(a) in _COMPOUND or type(b) in _COMPOUND or a != b:
            return False
    return True


_COMPOUND = (Struct, Cons)


def annotations_within(wanted: tuple[Term, ...], held: tuple[Term, ...], trail: Trail) -> bool:
    """Unify each wanted annotation with the first held one that fits, and a tail with those left over."""
    named, tail = divided(wanted)
    taken: list[int] = []
    for one in named:
        for place, other in enumerate(held):
            mark = len(trail)
            if unify(one, other, trail):
                taken.append(place)
                break
            undo(trail, mark)
        else:
            return False
    return tail is None or unify(tail, left_over(held, taken), trail)


def divided(wanted: tuple[Term, ...]) -> tuple[tuple[Term, ...], Term | None]:
    """The annotations that are named, and the variable that stands for all others where there is one."""
    for one in wanted:
        if type(one) is Struct and one.functor == ANNOTATION_TAIL:
            spread_out = spread(wanted)
            tail = next((one.args[0] for one in spread_out if is_tail(one)), None)
            return tuple(one for one in spread_out if not is_tail(one)), tail
    return wanted, None


def left_over(held: tuple[Term, ...], taken: Collection[int]) -> Term:
    """The list of those annotations that no named one was unified with."""
    return list_of(one for place, one in enumerate(held) if place not in taken and not is_tail(one))


def undo(trail: Trail, mark: int) -> None:
    """Free every variable bound since the trail was `mark` long."""
    while len(trail) > mark:
        trail.pop().ref = None
