"""Bodies and literals as values: what a variable stands for is run as a step (spec §1.1, §1.5)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.bdi.parser import parse_term
from engine.bdi.printer import body_text, text_of
from engine.bdi.semantics import Limits
from engine.bdi.trace import StepSucceeded
from tests.engine.bdi.running import Run, parse_body, said


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("B = { .print(1); .print(2) }; B; .print(3)", ["1", "2", "3"]),
        ("X = 5; B = { .print(X) }; X == 5; B", ["5"]),
        ("B = { Y = X + 1; .print(Y) }; X = 2; B; .print(Y)", ["3", "3"]),
        ("B = { if (X > 1) { .print(more) } else { .print(less) } }; X = 1; B", ["less"]),
        ("B = { for (.member(Z, [1, 2])) { .print(Z) } }; B", ["1", "2"]),
        ("B = { while (n(M) & M > 0) { -+n(M - 1) } }; B; ?n(N); .print(N)", ["0"]),
        ("B = { !g(Y); ?n(Z); +seen(Y) }; B; .print(Y, Z); ?seen(W); .print(W)", ["g", "71", "7"]),
        ("C = { .print(in) }; B = { C; .print(out) }; B; B", ["in", "out", "in", "out"]),
        ("{ .print(1); .print(2) }; .print(3)", ["1", "2", "3"]),
        ("S = .print(said); S", ["said"]),
        ("S = act(4); S; .print(done)", ["done"]),
        ("S = draw(X); S; .print(X)", ["7"]),
        ("G = g(Y); !G; .print(Y)", ["g", "7"]),
        ("F = (1 < 2 & not n(5)); F; .print(yes)", ["yes"]),
        ("B = seen(3); +B; ?B; .print(B); -B; if (not B) { .print(gone) }", ["seen(3)", "gone"]),
        (".member(B, [{ .print(a) }, { .print(b) }]); B", ["a"]),
        ("B = { }; B; .print(nothing)", ["nothing"]),
    ],
)  # fmt: skip
def test_what_a_variable_stands_for_is_done(body: str, told: list[str]) -> None:
    assert said(f"n(1). !s. +!s <- {body}. +!g(Y) <- .print(g); Y = 7.") == told


def test_an_annotated_variable_is_a_step_with_these_annotations() -> None:
    program = "!s. +!s <- G = h(1); !G[scheme(s1)]; A = act(2); A[by(me)]. +!h(X)[scheme(S)] <- .print(X, S)."
    run = Run(program).end()
    assert (run.said, run.done) == (["1s1"], ["act(2)[by(me)]"])


def test_a_variable_functor_asks_for_any_belief_with_these_annotations() -> None:
    program = "p(1)[e]. q(2)[d,e]. r(3)[d]. !s. +!s : P[e] & P[d] <- .print(P)."
    assert said(program) == ["q(2)[d,e,source(self)]"]


def test_bodies_go_with_goals_and_beliefs_and_keep_their_variables() -> None:
    program = "!s. +!s <- !twice({ .print(X); act(X) }, X). +!twice(B, X) <- X = 4; +todo(B); ?todo(C); C; B."
    run = Run(program).end()
    assert (run.said, run.done) == (["4", "4"], ["act(4)", "act(4)"])


def test_a_step_that_runs_a_body_is_through_when_the_body_is() -> None:
    run = Run("!s. @p +!s <- B = { X = 1; .print(X) }; B; .print(end).", traced=True).end()
    through = [(one.plan, one.step) for one in run.of(StepSucceeded) if isinstance(one, StepSucceeded)]
    inside = "body of p"
    assert through[1:] == [(inside, "V0 = 1"), (inside, ".print(V0)"), ("p", "B"), ("p", ".print(end)")]


def test_two_bodies_unify_as_terms() -> None:
    assert said("!s. +!s : { !g(1); a } = { !g(X); A } <- .print(X, A).") == ["1{ a }"]
    assert said("!s. +!s : { !g(1) ; a } \\= { ?g(1) ; a } <- .print(other).") == ["other"]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("B", "body_var_without_value"),
        ("B[note]", "body_var_without_value"),
        ("B = 3; B", "evaluation_failed"),
        ("B = { X = 1; .fail }; B", "ia_failed"),
        ("B = { 2 < 1 }; B", "constraint_failed"),
        ("B = absent(1); B", "action_failed"),
        ("B =.. ['{}', [x], []]; B", "evaluation_failed"),
        ("B =.. ['{}', ['{while}'], []]; B", "evaluation_failed"),
        ("B =.. ['{if}', [a, b], []]; C =.. ['{}', [B], []]; C", "evaluation_failed"),
        ("!G", "body_var_without_value"),
        ("G = { a; b }; !G", "no_relevant"),
    ],
)
def test_what_cannot_be_run_fails_the_step(body: str, error: str) -> None:
    program = f"!s. +!s <- {body}; .print(no). -!s[error(E), code_line(L)] <- .print(E, L)."
    assert said(program) == [f"{error}1"]


def test_a_body_that_runs_itself_meets_the_limit() -> None:
    program = "b({ !r }). !s. +!s <- !r. +!r <- ?b(B); B. -!s[error(E)] <- .print(E)."
    run = Run(program, limits=Limits(frames=60))
    run.system.run(2_000)
    assert run.said == ["limit_exceeded"]


def test_a_body_made_while_running_may_nest_only_so_deep_and_prints() -> None:
    program = (
        "!s. +!s <- !deep(N, { a }). +!deep(0, B) <- .print(B); B. +!deep(N, B) <- !deep(N - 1, { B; b }). "
    )
    program += "-!s[error(E)] <- .print(E)."
    assert said(program.replace("!deep(N, { a })", "!deep(5000, { a })"))[-1] == "limit_exceeded"


def test_a_body_being_run_is_saved() -> None:
    loop = "while (n(X) & X < 3) { Y = X + Z; .print(Y); -+n(X + 1) }"
    program = f"n(0). !s. +!s <- B = {{ {loop}; .print(Z) }}; Z = 5; B; .print(B)."
    whole = said(program)
    for cycles in range(1, 14):
        first, second = Run(program), Run(program)
        first.system.run(cycles)
        second.agent.restore(json.loads(json.dumps(first.agent.save())))
        assert second.agent.save() == first.agent.save()
        assert first.said + second.end().said == whole


def test_what_is_printed_of_a_body_reads_as_the_same() -> None:
    text = (
        "{ !g(X); !!g; ?p(Y); +b; -b; -+b(1); X = Y + 1; .print(X); if (a) { b } elif (c) { } else { d; e }; "
    )
    text += "while (x & y) { .z }; for (p(Q)) { { h; i } }; V; W[note|T]; 1 > 2 | q }"
    term = parse_term(text)
    assert parse_term(text_of(term)) == term
    lines = [line.strip() for line in body_text(parse_body(text[2:-2])).split("\n")]
    assert f"{{ {' '.join(lines)} }}".replace("{  }", "{ }") == text_of(term)


@given(st.recursive(st.sampled_from(["a", "!g(X)", "X = 1", "+b", "X"]), lambda inner: st.one_of(
    st.lists(inner, min_size=1, max_size=3).map(lambda items: f"{{ {'; '.join(items)} }}"),
    inner.map(lambda one: f"if (a & b) {{ {one} }}"),
    inner.map(lambda one: f"while (c) {{ {one} }}"),
), max_leaves=8))  # fmt: skip
def test_any_body_prints_as_it_reads(text: str) -> None:
    term = parse_term(f"{{ {text}; z }}")
    assert parse_term(text_of(term)) == term
