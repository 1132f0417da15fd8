"""Unification with a trail (spec §1.1): what it bound can be undone, and it never recurses on depth.

Annotations are sets and count on one side only: those of the left literal must be among those of the right.
"""

from __future__ import annotations

from typing import TypeAlias

from engine.bdi.terms import Cell, Cons, Struct, Term, deref

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
    """Unify each wanted annotation with the first held one that fits."""
    for one in wanted:
        for other in held:
            mark = len(trail)
            if unify(one, other, trail):
                break
            undo(trail, mark)
        else:
            return False
    return True


def undo(trail: Trail, mark: int) -> None:
    """Free every variable bound since the trail was `mark` long."""
    while len(trail) > mark:
        trail.pop().ref = None
