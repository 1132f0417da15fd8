"""What Jason's programs do with internal actions in formulas, and with functions in terms."""

from __future__ import annotations

import pytest

from tests.engine.bdi.running import said


@pytest.mark.parametrize(
    ("body", "prints"),
    [
        ('if (.fail) { .print("then") } else { .print("else") }', "else"),
        ('if (.nth(9, [a], X)) { .print(X) } else { .print("none") }', "none"),
        ('if (not .member(X, nolist)) { .print("none") }', "none"),
        ('if (.length(7, L) | true) { .print("either") }', "either"),
        (".findall(X, b(X) & .nth(X, [a, c], c), L); .print(L);", "[1]"),
        ('if (.count(b(_)) < 3) { .print("few") }', "few"),
        (".print(.count(b(_)))", "2"),
        (".print(.count(b(_)) + .count(b(1)));", "3"),
        (".print(math.sum([1, 2, 3]), math.mean([1, 2]), math.median([1, 3]), math.average([4]))", "61.524"),
        (".print(math.std_dev([5]), math.sin(0), math.floor(math.pi))", "003"),
        (".findall(T, .type(a, T), L); .print(L)", "[atom,literal,ground]"),
        (".findall(T, .type(X, T), L); .print(L)", "[free]"),
        (".findall(P, .prefix(P, [a, b]), L); .print(L)", "[[a,b],[a],[]]"),
        ('.findall(S, .suffix(S, "ab"), L); .print(L)', '["ab","b",""]'),
        ('if (.empty([]) & .empty("") & not .empty([a])) { .print("yes") }', "yes"),
        ('.upper_case("ab", U); .lower_case(U, L); .print(U, L)', "ABab"),
    ],
)
def test_a_body_prints_what_jason_prints(body: str, prints: str) -> None:
    assert said(f"b(1). b(2). !go. +!go <- {body}.") == [prints]


def test_an_unknown_internal_action_in_a_formula_fails_the_step() -> None:
    program = (
        '!go. +!go <- if (.nonsense(1)) { .print("then") } else { .print("else") }. -!go <- .print("failed").'
    )
    assert said(program) == ["failed"]
