"""Random terms and programs for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from engine.bdi.syntax import ARITHMETIC, conjunction
from engine.bdi.terms import NIL, Cell, Cons, Struct, Term, Var, list_of

names = st.sampled_from(["a", "b", "p", "q", "there_is", "a.b", "pilot-1", "not", "été"])
numbers = st.integers(-(2**52), 2**52) | st.floats(allow_nan=False, allow_infinity=False, width=32)
strings = st.text(max_size=6)
variables = st.sampled_from(["X", "Y", "_Z"]).map(Var)


def _compound(inner: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    few = st.lists(inner, max_size=3)
    structs = st.builds(
        lambda name, args, notes, negated: Struct(name, tuple(args), notes, negated),
        names,
        few,
        st.lists(inner, max_size=2),
        st.booleans(),
    )
    lists = st.builds(list_of, few) | st.builds(lambda head, tail: Cons(head, tail), inner, variables)
    return structs | lists


ground_terms = st.recursive(
    numbers | strings | names.map(Struct) | st.just(NIL), _compound, max_leaves=12
).filter(lambda term: not _holds_variable(term))
terms = st.recursive(numbers | strings | variables | names.map(Struct), _compound, max_leaves=12)


def _holds_variable(term: Term) -> bool:
    from engine.bdi.terms import subterms

    return any(isinstance(one, Var | Cell) for one in subterms(term))


def _operators(inner: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    pairs = st.tuples(inner, inner)
    return (
        st.builds(lambda op, pair: Struct(op, pair), st.sampled_from(sorted(ARITHMETIC)), pairs)
        | st.builds(lambda op, pair: Struct(op, pair), st.sampled_from(["<", "==", "=", "\\=", "=.."]), pairs)
        | st.builds(lambda one: Struct("not", (one,)), inner)
        | st.builds(
            lambda one: Struct("-", (one,)), inner.filter(lambda one: not isinstance(one, int | float))
        )
        | st.builds(
            lambda op, parts: conjunction(parts, op),
            st.sampled_from(["&", "|"]),
            st.lists(inner, min_size=1, max_size=3),
        )
    )


formulas = st.recursive(terms, _operators, max_leaves=10)
