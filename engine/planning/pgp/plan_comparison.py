"""When two plans are the same up to the names of their variables."""

from __future__ import annotations

from collections.abc import Iterator

from engine.bdi.printer import text_of
from engine.bdi.rewriting import rewrite
from engine.bdi.syntax import Plan, Trigger, conjuncts
from engine.bdi.terms import TRUE, Cons, Struct, Term, Var, children

SEARCH_LIMIT = 300
"""Comparisons of conditions before two plans count as different; models write far fewer."""


def conditions_of(context: Term) -> tuple[Term, ...]:
    """The parts of a context that must all hold; none for `true`."""
    return () if context == TRUE else conjuncts(context)


def leaves_of(context: Term) -> Iterator[Term]:
    """The conditions of a context with conjunctions and disjunctions flattened."""
    waiting = [context] if context != TRUE else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, Struct) and node.functor in ("&", "|"):
            waiting.extend(reversed(node.args))
        else:
            yield node


def same_guard(left: Plan, right: Plan) -> bool:
    """Whether two plans have the same trigger and the same conditions, in any order."""
    return subsumes(left, right) and subsumes(right, left)


def subsumes(general: Plan, special: Plan) -> bool:
    """Whether the triggers are the same and each condition of the one is a condition of the other."""
    left, right = general.trigger, special.trigger
    if (left.operation, left.kind) != (right.operation, right.kind):
        return False
    names = _Names({}, {}).with_pair(left.literal, right.literal)
    if names is None:
        return False
    return _matched(conditions_of(general.context), conditions_of(special.context), names)


def event_key(event: Trigger) -> str:
    """The event with its variables numbered, alike for events that differ in their names only."""
    return f"{event.operation}{event.kind}{numbered_variables(event.literal)}"


def numbered_variables(term: Term) -> str:
    """The text of a term with its variables numbered in order of occurrence."""
    names: dict[str, Term] = {}
    return text_of(rewrite(term, lambda name: names.setdefault(text_of(name), Var(f"V{len(names)}"))))


def event_name(event: Trigger) -> str:
    """The event without its arguments, `+!reach/1`."""
    name = event.literal.indicator if isinstance(event.literal, Struct) else "_"
    return f"{event.operation}{event.kind}{name}"


class _Names:
    """Which variable of the one plan is which of the other; each has one partner only."""

    def __init__(self, forward: dict[str, str], backward: dict[str, str]) -> None:
        self._forward, self._backward = forward, backward

    def with_pair(self, left: Term, right: Term) -> _Names | None:
        """These names and those that make two terms alike, None when nothing does."""
        forward, backward = dict(self._forward), dict(self._backward)
        waiting = [(left, right)]
        while waiting:
            node, other = waiting.pop()
            if type(node) is not type(other):
                return None
            if isinstance(node, Var) and isinstance(other, Var):
                if forward.setdefault(node.name, other.name) != other.name:
                    return None
                if backward.setdefault(other.name, node.name) != node.name:
                    return None
            elif isinstance(node, Struct | Cons):
                parts, others = children(node), children(other)
                names = (getattr(node, "indicator", ""), getattr(other, "indicator", ""))
                if len(parts) != len(others) or names[0] != names[1]:
                    return None
                waiting.extend(zip(parts, others, strict=True))
            elif node != other:
                return None
        return _Names(forward, backward)


def _matched(terms: tuple[Term, ...], among: tuple[Term, ...], names: _Names) -> bool:
    """Whether the wanted conditions are among others under one renaming; not so, when that takes too long."""
    left = SEARCH_LIMIT
    levels = [(names, _candidates(among, 0))]
    while len(levels) <= len(terms):
        if not levels:
            return False
        so_far, candidates = levels[-1]
        condition = terms[len(levels) - 1]
        for candidate in candidates:
            left -= 1
            if left < 0:
                return False
            more = so_far.with_pair(condition, candidate)
            if more is not None:
                levels.append((more, _candidates(among, len(levels))))
                break
        else:
            levels.pop()
    return True


def _candidates(among: tuple[Term, ...], place: int) -> Iterator[Term]:
    """The condition at the same place first: plans that differ in their names only match at once."""
    yield from among[place : place + 1]
    yield from among[:place]
    yield from among[place + 1 :]
