"""Logical formulas and arithmetic as structures: the operators, and taking conjunctions apart (spec §1.3)."""

from __future__ import annotations

from collections.abc import Iterable

from engine.bdi.terms import TRUE, Struct, Term

RELATIONS = frozenset({"<", "<=", ">", ">=", "==", "\\==", "=", "\\=", "=.."})
"""Operators that compare or unify; `!=` is read as `\\=`."""

ARITHMETIC = frozenset({"+", "-", "*", "/", "div", "mod", "**"})
"""Operators whose value is a number."""

CONNECTIVES = frozenset({"&", "|", "not"})
"""Operators of logical formulas."""

NESTING_LIMIT = 100
"""How deep brackets, arguments and blocks of a program may lie in each other."""

OPERATORS = RELATIONS | ARITHMETIC | CONNECTIVES


def is_literal(term: Term) -> bool:
    """True for a structure that is no operator: a belief, goal or action."""
    return type(term) is Struct and term.functor not in OPERATORS


def conjuncts(formula: Term, operator: str = "&") -> tuple[Term, ...]:
    """The parts of a conjunction (or of another connective); a single formula is its own only part."""
    if type(formula) is Struct and formula.functor == operator and len(formula.args) > 1:
        return formula.args
    return (formula,)


def conjunction(parts: Iterable[Term], operator: str = "&") -> Term:
    """These formulas joined; nested ones of the same operator are laid flat, none at all is `true`."""
    flat = tuple(leaf for part in parts for leaf in conjuncts(part, operator))
    if not flat:
        return TRUE
    return flat[0] if len(flat) == 1 else Struct(operator, flat)
