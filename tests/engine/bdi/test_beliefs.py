"""Beliefs, their sources and the events they raise (spec §1.2)."""

from __future__ import annotations

import pytest

from engine.bdi.agent import BdiAgent
from engine.bdi.parser import parse_literal, parse_program
from engine.bdi.semantics import Semantics
from tests.engine.bdi.running import Run, beliefs, said


def perceiving(program: str, semantics: Semantics | None = None) -> tuple[BdiAgent, list[str]]:
    heard: list[str] = []
    return BdiAgent("ag", parse_program(program), semantics=semantics, say=heard.append), heard


def settle(agent: BdiAgent, *percepts: str) -> None:
    agent.perceive(map(parse_literal, percepts))
    while not agent.idle:
        agent.cycle()


def test_two_sources_are_one_belief_and_removing_one_keeps_the_other() -> None:
    """Checklist 9."""
    run = Run("!s. +!s <- +b(1)[source(bob)]; +b(1); .count(b(_), N); .print(N); -b(1).").end()
    assert run.said == ["1"]
    assert beliefs(run.agent) == ["b(1)[source(bob)]"]


def test_only_what_changes_something_raises_an_event() -> None:
    """Checklist 10."""
    program = "b(1). !s. +!s <- +b(1); +b(1)[note]; +b(1)[source(bob)]; +b(1)[note]."
    assert said(f"{program} +b(X)[source(S)] <- .print(X, S).") == ["1self", "1self", "1bob"]


def test_initial_beliefs_raise_events_before_initial_goals() -> None:
    """Checklist 10."""
    assert said("b(1). b(2). !s. +!s <- .print(goal). +b(X) <- .print(X).") == ["2", "1", "goal"]


def test_a_plain_removal_leaves_the_copies_of_others() -> None:
    """Checklist 10."""
    run = Run(
        "b(1)[source(bob)]. b(2)[source(bob), source(self)]. !s. +!s <- -b(1); -b(2). -b(X) <- .print(X)."
    ).end()
    assert run.said == ["2"]
    assert sorted(beliefs(run.agent)) == ["b(1)[source(bob)]", "b(2)[source(bob)]"]


def test_a_removal_that_names_any_source_takes_whatever_fits() -> None:
    run = Run("b(1)[source(bob)]. !s. +!s <- -b(_)[source(_)]; -b(_)[source(_)]; .print(ok).").end()
    assert (run.said, beliefs(run.agent)) == (["ok"], [])


def test_an_update_removes_exactly_one() -> None:
    """Checklist 11."""
    run = Run("b(1). b(2). b(3). !s. +!s <- -+b(7). -b(X) <- .print(gone(X)).").end()
    assert run.said == ["gone(1)"]
    assert sorted(beliefs(run.agent)) == [f"b({n})[source(self)]" for n in (2, 3, 7)]


def test_percepts_that_end_take_only_their_own_beliefs_with_an_event_for_each() -> None:
    """Checklist 12."""
    agent, heard = perceiving("b(1). -b(X) <- .print(X).")
    settle(agent, "b(1)", "b(2)", "b(3)")
    assert beliefs(agent) == [
        "b(1)[source(percept),source(self)]",
        "b(2)[source(percept)]",
        "b(3)[source(percept)]",
    ]
    settle(agent)
    assert beliefs(agent) == ["b(1)[source(self)]"]
    assert heard == ["1", "2", "3"]


def test_compat_raises_an_event_for_the_last_removal_only() -> None:
    agent, heard = perceiving("-b(X) <- .print(X).", Semantics(last_removal_only=True))
    settle(agent, "b(2)", "b(3)")
    settle(agent)
    assert (heard, beliefs(agent)) == (["3"], [])


def test_removing_binds_and_removing_what_is_absent_succeeds() -> None:
    """Checklist 13."""
    assert said("b(5). !s. +!s <- -b(X); .print(X); -b(Y); .print(ok).") == ["5", "ok"]


def test_newer_beliefs_answer_first_unless_insertion_order_is_set() -> None:
    program = "b(1). b(2). b(3). !s. +!s <- +b(4); .findall(X, b(X), L); .print(L)."
    assert said(program) == ["[4,1,2,3]"]
    assert said(program, semantics=Semantics(newest_first=False)) == ["[1,2,3,4]"]


def test_rules_answer_where_they_stand_since_edition_2() -> None:
    program = """
        b(1). b(2) :- true. b(3).
        !s. +!s <- +b(4); .findall(X, b(X)[a], M); .findall(X, b(X), L); .print(L, M).
    """
    assert said(program) == ["[4,1,2,3][]"]
    assert said(program, semantics=Semantics(edition=1)) == ["[4,1,3,2][2]"]
    assert said(program, semantics=Semantics(newest_first=False)) == ["[1,3,4,2][2]"]


def test_strong_negation_is_another_belief() -> None:
    assert said("p(1). ~p(1). !s. +!s : p(1) & ~p(1) & not ~p(2) <- .print(both).") == ["both"]


def test_a_loop_sees_neither_what_comes_nor_what_goes_while_it_runs() -> None:
    program = "b(1). b(2). b(3). !s. +!s <- for (b(X)) { .print(X); -b(3); +b(X + 10) }."
    assert said(program) == ["1", "2"]
    assert said(program, semantics=Semantics(newest_first=False)) == ["1", "2"]


def test_many_beliefs_come_and_go_in_linear_time() -> None:
    program = "!s(10000). +!s(0) : not b(_) <- .print(empty). +!s(N) <- +b(N); -b(_); !s(N - 1)."
    assert said(program) == ["empty"]


def test_abolish_takes_all_that_fit() -> None:
    run = Run("b(1). b(2)[source(bob)]. c(1). !s. +!s <- .abolish(b(_)). -b(X) <- .print(X).").end()
    assert beliefs(run.agent) == ["c(1)[source(self)]"]
    assert sorted(run.said) == ["1", "2"]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("p(1)[a|T]", "[b,source(self)]"),
        ("p(1)[b,a|T]", "[source(self)]"),
        ("p(1)[source(S)|T]", "[a,b]"),
        ("p(X)[c|T]", "none"),
        ("p(1)[a|[b]] & T = yes", "yes"),
        ("p(1)[a|[c]] & T = yes", "none"),
        ("x[a,b] = x[b,a,c] & x[a|T] = x[b,a,c]", "[b,c]"),
        ("R = [b] & x[a|R] = x[b,a,c] & T = yes", "yes"),
        ("x[a|T] = x[a]", "[]"),
        ("L = [c,a] & x[b|L] = Y & Y == x[a,b,c] & T = yes", "yes"),
    ],
)
def test_a_tail_stands_for_the_annotations_that_are_not_named(question: str, answer: str) -> None:
    program = f"p(1)[a,b]. !s. +!s : {question} <- .print(T). +!s <- .print(none)."
    assert said(program) == [answer]


def test_a_query_tries_each_annotation_and_gives_what_is_left() -> None:
    program = "p(1)[a(1),a(2)]. !s. +!s <- .findall(X-T, p(1)[a(X),source(self)|T], L); .print(L)."
    assert said(program.replace("X-T", "f(X,T)")) == ["[f(1,[a(2)]),f(2,[a(1)])]"]


def test_the_tail_of_a_trigger_can_be_passed_on() -> None:
    program = "!g(1)[urgent,from(bob)]. +!g(X)[urgent|T] <- !h(X)[T2|T]. +!h(X)[from(W)] <- .print(W)."
    assert said(program.replace("[T2|T]", "[late|T]")) == ["bob"]


def test_a_tail_without_a_value_adds_nothing_and_one_removes_what_it_finds() -> None:
    run = Run("p[a|T]. !s. +!s <- +q[b|U]; +r[c,d]; -r[c|V]; .print(V).").end()
    assert run.said == ["[d]"]
    assert beliefs(run.agent) == ["p[a,source(self)]", "q[b,source(self)]"]
