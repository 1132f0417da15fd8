"""Programs read from text (spec §1.1-§1.5, §2.8)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.bdi.errors import Position, ProgramError
from engine.bdi.parser import parse_plan, parse_program, parse_term, read_program
from engine.bdi.syntax import DocKind, Step, StepKind, Subject
from engine.bdi.terms import Struct
from tests.engine.bdi.running import parse_body, program_text

EVERYTHING = r"""
/* every construct of §1.1 to §1.5 */
{ include("more.asl") }
p(1). q("say \"hi\"\n", [1, 2 | T])[source(bob), b(1), a]. s[a, b(_)|T]. ~r(-1, X, _, _). a.b.  // a comment
h(X) :- p(X) & not (q(X) | r(X)) & X > 3 * 2 - 1 & -X <= 2 ** 3 ** 2 & X mod 2 \== 7 div (3 - 1) / X.
!start. ?h(X).
@l1[atomic, breakpoint, priority(3)] +!start : P[e] & ~q(_) <-
   .print("x", 1.50); !!go(X); ?p(Y); -+b(3); -c; +d[note]; move(a, [X | R]); stop();
   if (X > 1) { !a } elif (X < 2) { !b; !c } else if (X == 3) { } else { !d }
   for (p(X)) { .print(X) }; while (not q) { !G[scheme(S)] }
   X = [H | T]; X \== Y; X != Z; L =.. M; !!G; +B; true; X > 3 | p(X);
   .findall(X, p(X) & q(X), L); .add_plan({ @l +!g(_) : a <- b; c });
   .relevant_plans({ +!g(X) }, _); .x({ a; b }).
@[atomic] -!start[error(E), error_msg(M)].
+?g(X) <- ?f(X). -?g(X) : true. +b(X)[source(percept)]. -b(_) : not b(_). +!G : c.
+!'a b'('pilot-1', 1.5e10, -2, - (3), X - -2).
"""


def test_every_construct_parses_and_what_is_printed_parses_to_the_same() -> None:
    """Checklist 1."""
    program = parse_program(EVERYTHING)
    assert parse_program(program_text(program)) == program
    assert len(program.plans) == 8


def test_a_file_of_errors_names_each_with_line_column_and_what_was_expected() -> None:
    """Checklist 2."""
    program, problems = read_program(
        'p(1)\nq(2).\n+!a <- .b(;.\n+!c : x < y < z.\nok(1).\n+!d <- a b.\nr(((.\n//@ meaning x\n!g("open).',
        "f.asl",
    )
    assert [str(one) for one in problems] == [
        "f.asl:2:1: expected ':-' or '.', found 'q'",
        "f.asl:3:11: expected a term, found ';'",
        "f.asl:4:13: expected '&', '|' or the end of the formula, found '<'",
        "f.asl:6:10: expected ';' or '.', found 'b'",
        "f.asl:7:5: expected a term, found '.'",
        "f.asl:8:14: expected ':', found the end of the text",
        'f.asl:9:4: expected a term, found a text without its closing "',
    ]
    assert [one.literal for one in program.beliefs] == [Struct("q", (2,)), Struct("ok", (1,))]
    assert not program.plans


def test_steps_know_what_they_do_and_where_they_stand() -> None:
    body = parse_body("act(1);\n .print(2); !g; !!g;\n?t; +b; -b; -+b; X = 1; true; b & c")
    assert [step.kind for step in body if isinstance(step, Step)] == [
        StepKind.ACTION,
        StepKind.INTERNAL,
        StepKind.ACHIEVE,
        StepKind.SPAWN,
        StepKind.TEST,
        StepKind.ADD,
        StepKind.REMOVE,
        StepKind.UPDATE,
        *[StepKind.CONSTRAINT] * 3,
    ]
    assert [body[0].position, body[1].position, body[4].position] == [
        Position(1, 1),
        Position(2, 2),
        Position(3, 1),
    ]


def test_documentation_stays_with_the_program() -> None:
    program = parse_program(
        '//@ meaning reach(Object): "stand on it"\n'
        '//@ admissible belief free(D): "no obstacle"\n'
        '//@ remark "look first"\n'
    )
    assert [(doc.kind, doc.subject, doc.text, doc.position.line) for doc in program.docs] == [
        (DocKind.MEANING, None, "stand on it", 1),
        (DocKind.ADMISSIBLE, Subject.BELIEF, "no obstacle", 2),
        (DocKind.REMARK, None, "look first", 3),
    ]


def test_precedence_is_that_of_the_specification() -> None:
    assert parse_term("a | b & not c") == parse_term("a | (b & (not c))")
    assert parse_term("2 ** 3 ** 2") == parse_term("2 ** (3 ** 2)")
    assert parse_term("1 - 2 - 3") == parse_term("(1 - 2) - 3")
    assert parse_term("X = 1 + 2 * 3") == parse_term("X = (1 + (2 * 3))")
    assert parse_term("-2 ** 2") == parse_term("(-2) ** 2")


def test_anonymous_variables_are_distinct() -> None:
    term = parse_term("p(_, _)")
    assert isinstance(term, Struct)
    assert term.args[0] != term.args[1]


@pytest.mark.parametrize("opening", ["(", "[", "p(", "not ", "- ", "{ a; ", "2 ** "])
def test_deep_nesting_is_refused_in_words(opening: str) -> None:
    with pytest.raises(ProgramError, match="at most 100 levels"):
        parse_term(opening * 5_000)


def test_a_hundred_thousand_elements_are_read_without_recursion() -> None:
    assert parse_term(f"[{','.join(map(str, range(100_000)))}]")
    assert parse_term(" & ".join(["p"] * 100_000))


def test_a_number_that_no_machine_holds_is_a_problem_of_its_line() -> None:
    with pytest.raises(ProgramError, match="1:3: expected a number below 1e308"):
        parse_term(f"p({'9' * 5000})")


def test_the_end_of_a_single_plan_is_checked() -> None:
    assert parse_plan("+!g <- a; b.") == parse_plan("+!g <- a; b")
    with pytest.raises(ProgramError, match="the end of the text"):
        parse_plan("+!g <- a. b.")


@given(
    st.text(alphabet='ab(X)[]{}.,;:-+!?@"<>=&|~*/ \n\\', max_size=60)
    | st.binary(max_size=40).map(lambda b: b.decode("latin-1"))
)
def test_rubbish_is_reported_and_never_raises(text: str) -> None:
    program, problems = read_program(text)
    if not problems:
        assert parse_program(program_text(program)) == program


def test_a_megabyte_of_rubbish_is_read_in_linear_time() -> None:
    for rubbish in ("/*", '"', "((((", "p(", "a.b", "' ", "\\", "+!g <- {", " \n"):
        _, problems = read_program(rubbish * (300_000 // len(rubbish)))
        assert len(problems) <= 200


def test_a_mend_and_an_excerpt_of_a_long_line_stay_short() -> None:
    text = "+!s <- " + "a; " * 50_000 + "b, c.\n"
    (problem,) = read_program(text, "wide.asl")[1]
    assert problem.advice.endswith("expected ';' or '.', found ','; steps are separated by ';'")
    written, mark = problem.excerpt
    assert len(written) <= 120
    assert written[mark.index("^")] == ","
    assert str(problem) == f"wide.asl:1:{len(text) - 4}: expected ';' or '.', found ','"
