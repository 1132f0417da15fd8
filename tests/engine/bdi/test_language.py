"""Formulas, arithmetic and rules as they evaluate (spec §1.2, §1.3)."""

from __future__ import annotations

import pytest

from engine.bdi.parser import parse_program
from tests.engine.bdi.corpus import CORPUS, FAMILY, NATURAL
from tests.engine.bdi.running import program_text, said


@pytest.mark.parametrize("name", CORPUS)
def test_every_program_prints_as_it_parses(name: str) -> None:
    """Checklist 1."""
    program = parse_program(CORPUS[name])
    assert parse_program(program_text(program)) == program


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2 * 3", "6"),
        ("-7 mod 3", "-1"),
        ("7 mod -3", "1"),
        ("7 div 2", "3"),
        ("-7 div 2", "-3"),
        ("4 / 2", "2"),
        ("7 / 2", "3.5"),
        ("2 ** 3 ** 2", "512"),
        ("-2 ** 2", "4"),
        ("math.max(3, math.abs(-9))", "9"),
        (".length([a, b])", "2"),
        ("math.round(2.5)", "3"),
        ("2 ** 60 - 2 ** 60", "0"),
    ],
)
def test_arithmetic_is_worked_out_before_unifying(expression: str, value: str) -> None:
    """Checklist 4."""
    assert said(f"!s. +!s <- X = {expression}; .print(X).") == [value]


@pytest.mark.parametrize(
    ("formula", "holds"),
    [
        ("1 == 1.0", True),
        ("1 < a", True),
        ('"z" < [a]', True),
        ("f(X) = f(a) & X == a", True),
        ("a \\== b", True),
        ("a != b", True),
        ("X != b", False),
        ("p(a) = p(a)[note]", True),
        ("p(a)[note] = p(a)", False),
        ("p(1, 2)[n] =.. [F, [1 | _], [n]] & F == p", True),
        ("X =.. [q, [7], []] & X == q(7)", True),
        ("(fail | b(2)) & not b(9)", True),
        ("not not b(1)", True),
        ("true & not false", True),
        ("F = b(2) & F", True),
        ("P[source(self)] & b(1) = P", True),
    ],
)
def test_a_relation_holds_as_the_specification_says(formula: str, holds: bool) -> None:
    assert said(f"b(1). b(2). !s. +!s : {formula} <- .print(true). +!s <- .print(false).") == [
        str(holds).lower()
    ]


def test_negation_leaves_its_variables_unbound() -> None:
    """Checklist 5."""
    assert said("q(1). !s. +!s : not p(X) & q(X) <- .print(X).") == ["1"]
    assert said("q(1). !s. +!s : not q(X) <- .print(no). +!s <- .print(none).") == ["none"]


def test_rules_give_all_solutions_in_the_oracles_order() -> None:
    """Checklist 7."""
    assert said(FAMILY) == ["[b,c,d,e]", "[pair([],[1,2]),pair([1],[2]),pair([1,2],[])]", "[c,e]", "2", "d"]


def test_an_infinite_rule_is_enumerated_lazily() -> None:
    """Checklist 8."""
    assert said(NATURAL) == ["0", "1", "2", "3", "4", "5", "stopped by ia_failed"]


def test_rules_recurse_as_deep_as_they_like() -> None:
    program = (
        "len([], 0). len([_ | T], N) :- len(T, M) & N = M + 1. even(0). even(N) :- N > 0 & not even(N - 1)."
    )
    program += (
        "!s. +!s <- .findall(X, .range(X, 1, 20000), L); ?len(L, N); .print(N); ?even(5000); .print(even)."
    )
    assert said(program) == ["20000", "even"]


def test_facts_with_variables_hold_for_every_value() -> None:
    program = (
        "same(X, X). likes(_, tea). !s. +!s <- ?same(f(A), f(3)); .print(A); ?likes(bob, W); .print(W); "
    )
    assert said(program + "if (not same(1, 2)) { .print(different) }.") == ["3", "tea", "different"]


def test_a_belief_asked_for_with_annotations_has_an_answer_for_each_that_fits() -> None:
    program = "b(1)[n(1), n(2), source(bob)]. !s. +!s <- .findall(X, b(1)[n(X)], L); .print(L)."
    assert said(program) == ["[1,2]"]


def test_shared_variables_of_alternatives_are_free_in_each() -> None:
    assert said("p(1). q(2). !s. +!s <- .findall(X, p(X) | q(X), L); .print(L).") == ["[1,2]"]


def test_what_cannot_be_evaluated_makes_a_context_false() -> None:
    assert said("!s. +!s : X + 1 > 2 <- .print(no). +!s : a > X <- .print(no). +!s <- .print(yes).") == [
        "yes"
    ]
