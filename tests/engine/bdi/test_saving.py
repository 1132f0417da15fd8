"""Saved state: an agent made from it goes on as the other would have (spec §7, replay)."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine.bdi.agent import BdiAgent
from engine.bdi.control import intentions
from engine.bdi.parser import parse_literal, parse_plan, parse_program
from engine.bdi.saved_state import SavedStateError
from engine.bdi.semantics import Limits
from engine.bdi.system import System
from engine.bdi.terms import Struct, list_of
from tests.engine.bdi.corpus import CORPUS
from tests.engine.bdi.running import Run, beliefs, said


def continued(name: str, cycles: int) -> tuple[Run, Run]:
    """A run, and another that took over from the first one's saved state after some cycles."""
    first = Run(CORPUS[name], traced=True)
    first.system.run(cycles)
    try:
        data = json.loads(json.dumps(first.agent.save()))
    except SavedStateError:
        assume(False)  # within a `for` nothing is saved
    second = Run(CORPUS[name], traced=True)
    second.agent.restore(data)
    second.trace.clear()
    second.said.clear()
    second.system.now, second.system.rounds = first.system.now, first.system.rounds
    first.trace.clear()
    first.said.clear()
    first.done.clear()
    return first, second


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(CORPUS)), st.integers(0, 60))
def test_a_restored_agent_goes_on_identically(name: str, cycles: int) -> None:
    first, second = continued(name, cycles)
    assert second.agent.save() == first.agent.save()
    first.end()
    second.end()
    assert second.trace == first.trace
    assert (second.said, second.done) == (first.said, first.done)
    assert beliefs(second.agent) == beliefs(first.agent)
    assert second.agent.save() == first.agent.save()


def test_within_a_for_nothing_is_saved() -> None:
    run = Run("!s. +!s <- for (.member(X, [1, 2])) { .wait(5) }; .wait(5).")
    run.system.run(3)
    with pytest.raises(SavedStateError, match="a `for` waits"):
        run.agent.save()


def test_plans_added_replaced_and_removed_while_running_are_kept() -> None:
    program = "@a +!s <- .wait(5); !t; .print(end). @b +!t <- .print(old). !s."
    run = Run(program)
    run.system.run(1)
    plans = run.agent.plans
    plans.replace("b", parse_plan("@b +!t <- .print(new); .fail", "model"))
    plans.add(parse_plan("-!t[code_line(L), code_src(S)] <- .print(L, S)"), before=True)
    plans.remove("a")
    other = Run(program)
    other.agent.restore(json.loads(json.dumps(run.agent.save())))
    assert [plan.name for plan in other.agent.plans] == ["p__1", "b"]
    assert other.end().said == run.end().said == ["new", "1model", "end"]


def test_deep_terms_and_provenance_survive() -> None:
    deep: Struct | int = 0
    for _ in range(20_000):
        deep = Struct("f", (deep,))
    agent = BdiAgent("ag", parse_program("!s. +!s <- .wait(never)."))
    agent.perceive([Struct("deep", (deep,)), Struct("long", (list_of(range(20_000)),))])
    agent.plans.add(parse_plan("+!g <- a"), before=False)
    agent.cycle()
    other = BdiAgent("ag", parse_program("!s. +!s <- .wait(never)."))
    other.restore(json.loads(json.dumps(agent.save())))
    assert beliefs(other) == beliefs(agent)
    assert intentions(other) == intentions(agent)


@pytest.mark.parametrize("damage", [{}, {"version": 7}, {"version": 1}, {"version": 1, "cells": 3}])
def test_data_that_are_no_state_are_refused_in_words(damage: dict[str, object]) -> None:
    agent = BdiAgent("ag", parse_program(""))
    with pytest.raises(SavedStateError):
        agent.restore(damage)


def test_a_state_with_foreign_contents_is_refused() -> None:
    run = Run("!s. +!s <- .wait(5).")
    run.system.run(1)
    data = run.agent.save()
    for key, value in {"beliefs": [[0, ["x"], []]], "intentions": [{}], "events": [7], "random": 3}.items():
        with pytest.raises(SavedStateError):
            System().add("ag", parse_program("!s. +!s <- .wait(5).")).restore({**data, key: value})
    assert parse_literal("x")


def test_sets_maps_queues_and_told_rules_are_kept_and_shared_ones_stay_one() -> None:
    program = """
        !go.
        +!go <- .set.add(S, a); .map.put(M, k, S); +held(S, M); .queue.create(Q); .queue.add(Q, f(X));
            R = { r(V) :- held(_, _) & V = 7 }; +R; .wait(10);
            .set.add(S, b); ?held(T, N); ?r(W); .queue.head(Q, f(1)); .print(T, N, W).
    """
    first = Run(program)
    while not first.agent.pending:
        first.system.round()
    state = json.loads(json.dumps(first.agent.save()))
    second = Run(program)
    second.agent.restore(state)
    second.system.now = second.agent.now
    assert second.end().said == first.end().said == ["{a,b}{k->{a,b}}7"]
    assert second.agent.room == first.agent.room


@pytest.mark.parametrize("told", ["", "R = { p(5) :- true }; +R; +p(6); "])
def test_rules_keep_their_places_among_facts(told: str) -> None:
    program = f"""
        p(1). p(2) :- true. p(3).
        !go.
        +!go <- +p(4); {told}.wait(10); .findall(X, p(X), L); .print(L).
    """
    first = Run(program)
    while not first.agent.pending:
        first.system.round()
    state = json.loads(json.dumps(first.agent.save()))
    second = Run(program)
    second.agent.restore(state)
    second.system.now = second.agent.now
    expected = ["[6,5,4,1,2,3]"] if told else ["[4,1,2,3]"]
    assert second.end().said == first.end().said == expected
    assert second.agent.save()["rules"] == state["rules"]


def test_what_findall_keeps_of_an_endless_rule_is_bounded() -> None:
    program = """
        nat(0). nat(s(N)) :- nat(N).
        !go.
        +!go <- .findall(X, nat(X), L).
        -!go[error(E), code_line(N)] <- .print(E, N).
    """
    assert said(program, limits=Limits(query_steps=20_000)) == ["limit_exceeded4"]
