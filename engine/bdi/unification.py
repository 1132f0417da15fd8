"""Unification with a trail: what it bound can be undone, and it never recurses on depth.

Annotations are sets and count on one side only: those of the left literal must be among those of the right.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

from engine.bdi.rewriting import is_ground, occurs_in
from engine.bdi.syntax import SIGNED, is_body
from engine.bdi.terms import (
    ANNOTATION_TAIL,
    QUOTED_PLAN,
    WALK,
    Cell,
    Cons,
    Struct,
    Term,
    deref,
    expanded_annotations,
    is_tail,
    list_of,
    too_large,
)

Trail: TypeAlias = list[Cell]
"""The variables bound so far, oldest first."""


NOTES_DEEP = 50
"""Annotations that may lie in each other."""
NOTES = 100_000
"""Sets of annotations that are looked at for two terms."""


class NoteWalk:
    """How far the annotations of two terms were followed, those inside of others among them."""

    __slots__ = ("deep", "left")

    def __init__(self) -> None:
        self.deep, self.left = 0, NOTES


def unify(left: Term, right: Term, trail: Trail, notes: NoteWalk | None = None) -> bool:
    """Make the two terms equal by binding variables; what was bound is on the trail, also on failure.

    A variable is not bound to a term that it stands in, as in Jason.

    Args:
        left: the side whose annotations must be among those of the other.
        right: the other side.
        trail: gets the variables that are bound.
        notes: what it was called for, where the two lie in annotations.

    Raises:
        EvaluationError: the terms are too large, or annotations lie too deep in each other.
    """
    waiting = [(left, right)]
    walk = WALK
    while waiting:
        a, b = waiting.pop()
        a, b = deref(a), deref(b)
        if a is b:
            continue
        if type(a) is Cell:
            if (type(b) is Struct or type(b) is Cons) and not b.ground and _makes_circle(a, b):
                return False
            a.ref = b
            trail.append(a)
        elif type(b) is Cell:
            if (type(a) is Struct or type(a) is Cons) and not a.ground and _makes_circle(b, a):
                return False
            b.ref = a
            trail.append(b)
        elif type(a) is Struct and type(b) is Struct:
            if a.functor == QUOTED_PLAN == b.functor and (pairs := steps_and_rest(a, b)):
                waiting.extend(pairs)
                continue
            if a.indicator != b.indicator:
                if (alone := _step_and_body(a, b)) is None:
                    return False
                waiting.append(alone)
                continue
            if a.annotations and not annotations_within(a.annotations, b.annotations, trail, notes):
                return False
            if a.args:
                walk -= 1
                if walk < 0:
                    raise too_large()
                waiting.extend(zip(a.args, b.args, strict=True))
        elif type(a) is Cons and type(b) is Cons:
            walk -= 1
            if walk < 0:
                raise too_large()
            waiting.append((a.tail, b.tail))
            waiting.append((a.head, b.head))
        elif type(a) in _COMPOUND or type(b) in _COMPOUND or a != b:
            return False
    return True


_COMPOUND = (Struct, Cons)


def steps_and_rest(left: Struct, right: Struct) -> list[tuple[Term, Term]]:
    """What to unify of two bodies one of which ends in a variable, `{ H; R }`: steps, and R with the rest.

    A variable for a step is unified with the step alone. Nothing where neither ends so, or the other is
    shorter.
    """
    for pattern, other in ((left, right), (right, left)):
        steps, rest = pattern.args[:-1], _variable_step(pattern.args[-1] if pattern.args else None)
        if steps and rest is not None and is_body(other) and len(other.args) >= len(steps):
            pairs: list[tuple[Term, Term]] = [(rest, Struct(QUOTED_PLAN, other.args[len(steps) :]))]
            for step, found in zip(steps, other.args, strict=False):
                variable, sign = _variable_step(step), deref(found)
                whole = variable is not None and isinstance(sign, Struct) and sign.functor != "{do}"
                pairs.append((variable or step, found) if whole else (step, found))
            return pairs
    return []


def _step_and_body(left: Struct, right: Struct) -> tuple[Term, Term] | None:
    """A step that a variable stands for, `H` of `{ H; R }`, and the only step of a body."""
    if left.functor == QUOTED_PLAN and right.functor in SIGNED and is_body(left) and len(left.args) == 1:
        return left.args[0], right
    if right.functor == QUOTED_PLAN and left.functor in SIGNED and is_body(right) and len(right.args) == 1:
        return left, right.args[0]
    return None


def _variable_step(item: Term | None) -> Cell | None:
    """The variable that is all of a step, without a value; None for any other step."""
    step = deref(item) if item is not None else None
    if isinstance(step, Struct) and step.functor == "{do}":
        inside = deref(step.args[0])
        return inside if isinstance(inside, Cell) else None
    return None


def _makes_circle(cell: Cell, term: Struct | Cons) -> bool:
    """Whether a variable stands in what it is to be bound to; what has no variables is remembered."""
    return not is_ground(term) and occurs_in(cell, term)


def annotations_within(
    target: tuple[Term, ...], held: tuple[Term, ...], trail: Trail, notes: NoteWalk | None = None
) -> bool:
    """Unify each wanted annotation with the first held one that fits, and a tail with those left over."""
    notes = notes or NoteWalk()
    notes.left -= 1
    if notes.left < 0 or notes.deep == NOTES_DEEP:
        raise too_large()
    notes.deep += 1
    named, tail = split_annotations(target)
    taken: list[int] = []
    for term in named:
        for place, other in enumerate(held):
            mark = len(trail)
            if unify(term, other, trail, notes):
                taken.append(place)
                break
            undo(trail, mark)
        else:
            notes.deep -= 1
            return False
    notes.deep -= 1
    return tail is None or unify(tail, remaining_annotations(held, taken), trail, notes)


def split_annotations(target: tuple[Term, ...]) -> tuple[tuple[Term, ...], Term | None]:
    """The annotations that are named, and the variable that stands for all others where there is one."""
    for term in target:
        if type(term) is Struct and term.functor == ANNOTATION_TAIL:
            spread_out = expanded_annotations(target)
            tail = next((item.args[0] for item in spread_out if is_tail(item)), None)
            return tuple(item for item in spread_out if not is_tail(item)), tail
    return target, None


def remaining_annotations(held: tuple[Term, ...], taken: Collection[int]) -> Term:
    """The list of those annotations that no named one was unified with."""
    return list_of(term for place, term in enumerate(held) if place not in taken and not is_tail(term))


def undo(trail: Trail, mark: int) -> None:
    """Free every variable bound since the trail was `mark` long."""
    while len(trail) > mark:
        trail.pop().ref = None
