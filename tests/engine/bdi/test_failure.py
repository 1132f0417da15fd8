"""Failure: who handles it, what it says, and what goes on (spec §1.7)."""

from __future__ import annotations

import re

import pytest

from engine.bdi.trace import Change, GoalFailed, IntentionChanged
from tests.engine.bdi.corpus import FAIL_FAIL, FAILURES, TESTS
from tests.engine.bdi.running import Run, said


def test_a_failure_plan_ends_the_goals_above_it_and_its_bindings_reach_the_caller() -> None:
    """Checklist 25: endg3 and endg4 are passed over."""
    assert said(FAILURES) == ["in_failure_plan", "endg2", "endg1", "End, X=failure"]


def test_a_failing_failure_plan_goes_to_the_next_level_down() -> None:
    """Checklist 26."""
    assert said(FAIL_FAIL) == ["try", "solved", "goodend"]


_UNMARKED = str.maketrans("", "", " ()")
"""Spaces and brackets, which the printed term has around each operator."""


@pytest.mark.parametrize(
    ("step", "error", "message"),
    [
        ("break(tired)", "action_failed", "tired"),
        ("brake(tired)", "action_failed", "there is no action brake; did you mean break?"),
        ("act(1, 2, 3)", "action_failed", "act takes 0 or 1 or 2 arguments, not 3"),
        (".fail", "ia_failed", ".fail was called"),
        (".member(z, [a, b])", "ia_failed", ".member failed"),
        (".prinT(x)", "ia_failed", "there is no internal action .prinT; did you mean .print or .println?"),
        (".nth(a, [b])", "ia_failed", ".nth takes 3 arguments, not 2"),
        (".length(7, X)", "ia_failed", ".length: argument 1 is not a list: 7"),
        ("?absent(1)", "test_goal_failed", "?absent(1) has no answer"),
        ("1 > 2", "constraint_failed", "the condition does not hold"),
        ("!nowhere", "no_relevant", "there is no plan for +!nowhere"),
        ("!never", "no_applicable", "no plan for +!never applies now"),
        ("X + 1 > 2", "body_var_without_value", "a variable in arithmetic has no value here"),
        ("X < 2", "body_var_without_value", "a variable of X < 2 has no value here"),
        ("!G", "body_var_without_value", "a variable that stands for a literal has no value here"),
        ("X = 1 / 0", "evaluation_failed", "division by zero"),
        ("X = a * 2", "evaluation_failed", "a is not a number"),
        (".wait({+never}, 10)", "wait_timeout", "what it waited for did not happen in time"),
        ("generate_plan(g)", "pgp_failed", "nothing here generates plans"),
    ],
)
def test_each_cause_names_itself_with_message_step_and_line(step: str, error: str, message: str) -> None:
    """Checklist 27."""
    program = f"""!s.
        +!s <- .print(begin);
               {step}; .print(not_reached).
        +!never : false.
        -!s[error(E), error_msg(M), code(C), code_line(L), code_src(F)] <-
            .print(E, "|", M, "|", C, "|", F, L).
    """
    run = Run(program).end()
    heading, found, text, code, place = run.said[0], *run.said[1].split("|")
    assert (heading, found, text, place) == ("begin", error, message, "ag.asl3")
    as_term = re.sub(r"\b[A-Z]\b", "_", step).lstrip("!?")
    assert code.translate(_UNMARKED) == as_term.translate(_UNMARKED)


def test_fail_gives_the_failure_event_its_annotations() -> None:
    assert said("!s. +!s <- .fail(reason(tired), at(3)). -!s[reason(R), at(N)] <- .print(R, N).") == [
        "tired3"
    ]


def test_without_a_handler_the_intention_goes_the_trace_says_why_and_others_live_on() -> None:
    """Checklist 28."""
    run = Run("!s. !t. +!s <- !u. +!u <- .fail. +!t <- .print(1); .print(2); .print(3).", traced=True).end()
    assert run.said == ["1", "2", "3"]
    failed = [one for one in run.of(GoalFailed) if isinstance(one, GoalFailed)]
    assert [(one.goal, one.handled) for one in failed] == [("u", False), ("s", False)]
    (dropped,) = [one for one in run.of(IntentionChanged) if getattr(one, "change", "") is Change.DROPPED]
    assert "ia_failed: .fail was called" in str(dropped)
    assert not run.agent.intentions


def test_a_test_goal_asks_beliefs_then_plans() -> None:
    """Checklist 29."""
    assert said(TESTS) == ["1", "8", "test_goal_failed unknown(_) 4"]
    assert said("!s. +!s <- ?t(X); .print(X). +?t(_) <- .fail. -?t(9).") == ["9"]


def test_an_external_goal_without_a_plan_reaches_its_failure_plan() -> None:
    assert said("!s. -!s[error(E)] <- .print(E).") == ["no_relevant"]
    assert said("!s. +!s <- !!t; .print(on). -!t[error(E)] <- .print(E).") == ["on", "no_relevant"]


def test_a_failing_belief_plan_fails_the_goal_that_changed_the_belief() -> None:
    assert said("!s. +!s <- +b; .print(no). +b <- .fail. -!s <- .print(caught).") == ["caught"]


def test_a_failed_goal_frees_what_its_plan_had_bound() -> None:
    program = "!s. +!s <- !g(X); .print(X). +!g(X) <- X = wrong; .fail. -!g(Y) <- Y = right."
    assert said(program) == ["right"]


def test_goals_are_dropped_suspended_and_ended_from_outside() -> None:
    """Checklist 30."""
    other = "!g(1). +!g(X) <- !h(Y); .print(back(X, Y)). +!h(Y) <- .wait(never); .print(no). "
    assert said(other + "!s. +!s <- .wait(5); .succeed_goal(h(7)).") == ["back(1,7)"]
    assert said(other + "!s. +!s <- .wait(5); .fail_goal(h(_)). -!h(8).") == ["back(1,8)"]
    assert said(other + "!s. +!s <- .wait(5); .drop_intention(g(_)); .wait(5); +never.") == []
    assert said(other + "!s. +!s <- .wait(5); .drop_desire(h(_)); .wait(5); +never.") == []
    asking = (
        "!s. +!s <- .wait(5); if (.intend(g(X)) & .desire(h(_)) & not .intend(z)) { .print(intends(X)) }."
    )
    assert said(other + asking) == ["intends(1)"]


def test_a_suspended_intention_waits_until_it_is_resumed() -> None:
    """Checklist 30."""
    program = "!g. +!g <- .print(1); .print(2); .print(3). "
    told = said(program + "!s. +!s <- .suspend(g); .wait(50); .print(now); .resume(g).")
    assert told.index("now") < told.index("3")
    assert said("!g. +!g <- .suspend; .print(on). !s. +!s <- .wait(9); .print(first); .resume(g).") == [
        "first",
        "on",
    ]


def test_an_intention_may_end_itself() -> None:
    assert said("!s. +!s <- .print(1); .drop_intention; .print(2).") == ["1"]
    assert said("!s. +!s <- !t; .print(after). +!t <- .succeed_goal(t); .print(no).") == ["after"]
    assert said("!s. +!s <- !t; .print(no). +!t <- .fail_goal(s). -!s <- .print(failed).") == ["failed"]
    assert said("!s. !t. +!s <- .wait(1); .drop_all_desires; .print(on). +!t <- .wait(9); .print(no).") == [
        "on"
    ]
