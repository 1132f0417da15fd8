"""`math.random` in terms: drawn from the agent's own source of chance before the term is made (spec §1.3)."""

from __future__ import annotations

from engine.bdi.body_terms import is_body
from engine.bdi.patterns import Scope
from engine.bdi.terms import Cons, Struct, Term, Var, list_of


def drawn(term: Term, scope: Scope) -> tuple[Term, tuple[Struct, ...]]:
    """The term with a variable for each `math.random` in it, and the calls that give these their values.

    The variables are new in the scope. `math.random(N)` is a number from 0 up to N. A quoted body is left as
    it is: it draws when it is run.
    """
    if not _draws(term):
        return term, ()
    calls: list[Struct] = []
    return _replaced(term, calls, scope), tuple(calls)


def _draws(term: Term) -> bool:
    waiting = [term]
    while waiting:
        one = waiting.pop()
        if type(one) is Struct:
            if _is_random(one):
                return True
            waiting += one.args
            waiting += one.annotations
        elif type(one) is Cons:
            waiting += (one.head, one.tail)
    return False


def _is_random(term: Struct) -> bool:
    return term.functor == "math.random" and len(term.args) < 2


def _replaced(term: Term, calls: list[Struct], scope: Scope) -> Term:
    """Recurses on the nesting of a program's text, which is limited, and not on the length of lists."""
    if isinstance(term, Cons):
        items: list[Term] = []
        rest: Term = term
        while isinstance(rest, Cons):
            items.append(_replaced(rest.head, calls, scope))
            rest = rest.tail
        return list_of(items, rest)
    if not isinstance(term, Struct) or is_body(term):
        return term
    args = tuple([_replaced(one, calls, scope) for one in term.args])
    if _is_random(term):
        # No name of a program's own holds a space, and the size grows with each name that is used.
        value = Var(f"random {scope.size + len(calls)}")
        calls.append(Struct(".random", (value,)))
        return Struct("*", (value, *args)) if args else value
    notes = [_replaced(one, calls, scope) for one in term.annotations]
    return Struct(term.functor, args, notes, term.negated)
