"""Terms, their order and unification (spec §1.1, §1.3)."""

from __future__ import annotations

from hypothesis import given

from engine.bdi.parser import parse_term
from engine.bdi.printer import text_of
from engine.bdi.rewriting import is_ground, rewrite
from engine.bdi.terms import NIL, Cell, Cons, Struct, Term, compare, in_order, items_of, list_of, same
from engine.bdi.unification import Trail, undo, unify
from tests.engine.bdi.strategies import formulas, ground_terms, terms


def with_cells(term: Term) -> Term:
    cells: dict[Term, Cell] = {}
    return rewrite(term, lambda variable: cells.setdefault(variable, Cell()))


@given(formulas)
def test_what_is_printed_parses_to_the_same(term: Term) -> None:
    assert parse_term(text_of(term)) == term


@given(terms, terms)
def test_unification_makes_terms_equal_but_for_annotations_and_undoing_frees_them(
    left: Term, right: Term
) -> None:
    first, second = with_cells(left), with_cells(right)
    before = text_of(first), text_of(second)
    trail: Trail = []
    if unify(first, second, trail) and "[" not in "".join(before):
        assert same(first, second)
    undo(trail, 0)
    assert (text_of(first), text_of(second)) == before


@given(ground_terms, ground_terms)
def test_equal_terms_have_equal_hashes_and_no_order(left: Term, right: Term) -> None:
    assert (compare(left, right) == 0) == same(left, right)
    assert compare(left, right) == -compare(right, left)
    if left == right:
        assert hash(left) == hash(right)


@given(ground_terms, ground_terms, ground_terms)
def test_the_order_is_total(a: Term, b: Term, c: Term) -> None:
    low, middle, high = in_order((a, b, c))
    assert compare(low, middle) <= 0
    assert compare(middle, high) <= 0
    assert compare(low, high) <= 0


def test_the_order_is_that_of_the_oracle() -> None:
    """Checklist 6."""
    mixed = parse_term('[f(2),g(1),b,"s",~a,3,f(1,2),[1],1.5,f(1),a]')
    assert text_of(list_of(in_order(items_of(mixed) or []))) == '[1.5,3,"s",[1],a,~a,b,f(1),f(1,2),f(2),g(1)]'


def test_annotations_of_the_left_side_must_be_among_those_of_the_right() -> None:
    """Checklist 3."""
    plain, noted = parse_term("p(t)"), parse_term("p(t)[a,b]")
    assert unify(plain, noted, [])
    assert not unify(noted, plain, [])
    assert parse_term("p[b,a,b]") == parse_term("p[a,b]")


def test_whole_numbers_are_equal_however_they_are_written() -> None:
    assert unify(parse_term("1"), parse_term("1.0"), [])
    assert text_of(parse_term("1.0")) == "1"
    assert not unify(parse_term("1"), parse_term('"1"'), [])


def nested(depth: int) -> Term:
    term: Term = 1
    for _ in range(depth):
        term = Struct("f", (term,))
    return term


def test_depth_costs_no_recursion() -> None:
    """Checklist 22, for terms: lists of 100,000 elements, terms nested 50,000 deep."""
    for left, right in ((nested(50_000), nested(50_000)), (list_of(range(100_000)), list_of(range(100_000)))):
        assert unify(left, right, [])
        assert same(left, right)
        assert left == right
        assert hash(left) == hash(right)
        assert compare(left, right) == 0
        assert text_of(left) == text_of(right)
        assert is_ground(left)
        assert rewrite(left, lambda cell: cell) is left
    hole = Cell()
    open_list: Term = hole
    for _ in range(100_000):
        open_list = Cons(hole, open_list)
    hole.ref = NIL
    assert len(items_of(rewrite(open_list, lambda cell: cell)) or []) == 100_000
