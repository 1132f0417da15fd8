"""Terms walked and copied: with other variables, or with what theirs stand for."""

from __future__ import annotations

from collections.abc import Callable

from engine.bdi.terms import (
    WALK,
    Cell,
    Cons,
    Struct,
    Term,
    Var,
    annotation_set,
    children,
    deref,
    subterms,
    too_large,
)


def variables(term: Term) -> list[Var]:
    """The variables of a source term, each once, in order of first occurrence."""
    return list(dict.fromkeys(var for var in subterms(term) if type(var) is Var))


def is_ground(term: Term) -> bool:
    """True when no unbound variable is left inside; remembered by the structures that are."""
    visited: dict[int, Struct | Cons] = {}
    waiting: list[Term] = [term]
    while waiting:
        item = waiting.pop()
        if type(item) is Struct:
            if not item.ground and id(item) not in visited:
                visited[id(item)] = item
                waiting.extend(item.args)
                waiting.extend(item.annotations)
        elif type(item) is Cons:
            if not item.ground and id(item) not in visited:
                visited[id(item)] = item
                waiting.append(item.head)
                waiting.append(item.tail)
        elif type(item) is Cell or type(item) is Var:
            return False
    for part in visited.values():
        part.ground = True
    return True


def occurs_in(cell: Cell, term: Term) -> bool:
    """True when an unbound variable stands anywhere in a term, so that to bind it would make a circle."""
    visited: set[int] = set()
    waiting: list[Term] = [term]
    while waiting:
        item = waiting.pop()
        if type(item) is Cell:
            item = deref(item)
            if item is cell:
                return True
        if (type(item) is Struct or type(item) is Cons) and not item.ground and id(item) not in visited:
            visited.add(id(item))
            waiting.extend(children(item))
    return False


def nests_within(term: Term, levels: int) -> bool:
    """True when nothing lies deeper than so many levels; the elements of a list lie equally deep."""
    waiting = [(term, levels)]
    walk = WALK
    while waiting:
        item, left = waiting.pop()
        item = deref(item)
        if left < 0:
            return False
        if isinstance(item, Cons):
            waiting += [(item.head, left - 1), (item.tail, left)]
        elif parts := children(item):
            waiting.extend((part, left - 1) for part in parts)
        else:
            continue
        walk -= 1
        if walk < 0:
            raise too_large()
    return True


def rewrite(
    term: Term, leaf: Callable[[Term], Term], count: Callable[[int], None] = lambda parts: None
) -> Term:
    """A copy with every variable replaced by what `leaf` gives for it; what stays the same is shared.

    `count` gets the number of parts that were looked into, and so at most copied.
    """
    done: list[Term] = []
    waiting: list[tuple[Term, bool]] = [(term, False)]
    left = WALK
    while waiting:
        item, ready = waiting.pop()
        if type(item) is Cell:
            item = deref(item)
        if ready:
            first = len(done) - len(children(item))
            done[first:] = [_rebuilt(item, done[first:])]
        elif type(item) is Cell or type(item) is Var:
            done.append(leaf(item))
        elif (type(item) is Struct or type(item) is Cons) and not item.ground:
            left -= 1
            if left < 0:
                raise too_large()
            waiting.append((item, True))
            waiting.extend((part, False) for part in reversed(children(item)))
        else:
            done.append(item)
    count(WALK - left)
    return done[0]


def canonical(term: Term) -> Term:
    """The term with its variables renamed in order of occurrence, which makes variants equal."""
    names: dict[Term, Var] = {}
    return rewrite(term, lambda variable: names.setdefault(variable, Var(f"V{len(names)}")))


def instantiated(term: Term) -> Term:
    """A copy with a fresh logic variable for each written one."""
    cells: dict[Term, Cell] = {}
    return rewrite(term, lambda variable: cells.setdefault(variable, Cell()))


def resolved(term: Term) -> Term:
    """The term with what its variables stand for put in their places."""
    return rewrite(term, lambda variable: variable)


def _rebuilt(term: Term, parts: list[Term]) -> Term:
    made = term
    if any(new is not old for new, old in zip(parts, children(term), strict=True)):
        if type(term) is Struct:
            count = len(term.args)
            made = term.with_args(tuple(parts[:count]))
            made.annotations = annotation_set(parts[count:])
        else:
            made = Cons(parts[0], parts[1])
    if type(made) is Struct or type(made) is Cons:
        made.ground = all(
            part.ground if type(part) is Struct or type(part) is Cons else type(part) not in (Cell, Var)
            for part in parts
        )
    return made
