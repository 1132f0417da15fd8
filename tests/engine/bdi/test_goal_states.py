"""Meta-events about goals, and labels that say priority or breakpoint (spec §1.4)."""

from __future__ import annotations

import pytest

from engine.bdi.errors import ProgramError
from engine.bdi.parser import parse_literal, parse_plan, parse_program
from engine.bdi.semantics import Limits
from engine.bdi.trace import EventDropped, EventQueued, PlanSelected
from tests.engine.bdi.corpus import CORPUS
from tests.engine.bdi.running import Run, program_text, said

WATCH = "^!g(X)[state(S)] <- .print(g(X), S). "
WHY = "^!g(X)[state(S)[reason(R)]] <- .print(g(X), S, R). "


def test_plans_are_told_what_becomes_of_a_goal() -> None:
    program = WATCH + "!s. +!s <- !g(Y). +!g(Y) <- .wait(5); Y = 3."
    assert said(program) == ["g(_)started", "g(_)executing", "g(3)finished"]


def test_a_failure_is_told_with_its_error_whether_it_is_handled_or_not() -> None:
    assert said(WHY + "!g(1). +!g(_) <- .fail. -!g(_) <- .print(handled).") == [
        "handled",
        "g(1)failedia_failed",
    ]
    assert said(WHY + "!g(1).") == ["g(1)failedno_relevant"]


def test_holding_an_intention_back_is_told_of_each_of_its_goals() -> None:
    run = Run(WHY + "^!h[state(S)] <- .print(h, S). !g(1). +!g(_) <- !h. +!h <- .wait(go).").end()
    run.agent.suspend(1, "breakfast")
    run.end()
    run.agent.resume(1)
    run.agent.perceive([parse_literal("go")])
    run.end()
    assert run.said == [
        "hstarted",
        "hexecuting",
        "g(1)suspendedbreakfast",
        "hsuspended",
        "hresumed",
        "hfinished",
    ]


def test_a_goal_whose_plan_is_being_made_is_suspended_until_it_is_there() -> None:
    run = Run(WATCH + "!g(1).")
    run.agent.on_missing_plan = lambda event: True
    run.end()
    run.agent.plans.add(parse_plan("+!g(_)"))
    run.agent.resume(1)
    assert run.end().said == [
        f"g(1){one}" for one in ("started", "suspended", "resumed", "executing", "finished")
    ]


def test_test_goals_have_states_too_and_a_variable_asks_about_all() -> None:
    program = "^?q(X)[state(S)] <- .print(q(X), S). ^!G[state(finished)] <- .print(G). "
    program += "!s. +!s <- ?q(Y); !t(Y). +?q(2). +!t(_)."
    assert said(program) == [
        "q(_)started",
        "q(2)executing",
        "q(2)finished",
        "t(2)[state(finished)]",
        "s[state(finished)]",
    ]


def test_each_round_of_a_goal_that_calls_itself_is_told() -> None:
    program = "^!g(N)[state(finished)] <- .print(N). !g(3). +!g(0). +!g(N) <- !g(N - 1)."
    assert said(program) == ["0", "1", "2", "3"]


def test_a_meta_plan_is_no_goal_itself() -> None:
    program = WATCH + "!g(1). +!g(_) <- .findall(G, .intend(G), L); .print(L)."
    assert said(program)[0] == "[g(1)]"
    assert said("^!g[state(started)] : false. !g. +!g <- .print(done).") == ["done"]


def test_without_a_plan_for_them_no_meta_event_is_raised() -> None:
    for text in (one for one in CORPUS.values() if "^!" not in one):
        run = Run(text + "^!elsewhere[state(S)] <- .print(S).", traced=True).end()
        assert not [
            one for one in run.of(EventQueued) if isinstance(one, EventQueued) and one.event[0] == "^"
        ]
        assert run.said == Run(text).end().said


def test_a_full_queue_drops_meta_events_and_goals_go_on() -> None:
    run = Run(WATCH + "!g(1). +!g(_) <- .print(done).", limits=Limits(events=1), traced=True).end()
    assert "done" in run.said
    assert run.of(EventDropped)


def test_a_meta_event_is_about_a_goal() -> None:
    program = parse_program("^!g[state(failed)]. ^?q : a <- b.")
    assert parse_program(program_text(program)) == program
    with pytest.raises(ProgramError, match=r"1:2: expected '!' or '\?' and a goal, found 'b'"):
        parse_program("^b <- a.")


# ------------------------------------------------------------------ labels

RACE = """!slow. !quick. !plain.
    @a[priority(-1)] +!slow <- .print(slow1); .print(slow2).
    @b[priority(2.5)] +!quick <- .print(quick1); !part; .print(quick3).
    +!part <- .print(quick2).
    +!plain <- .print(plain1); .print(plain2).
"""


def test_priorities_do_nothing() -> None:
    assert said(RACE) == said(RACE.replace("priority", "importance"))


def test_a_priority_that_is_no_number_is_a_syntax_error() -> None:
    with pytest.raises(
        ProgramError, match=r"1:2: expected a number in 'priority\(…\)', found 'priority\(high\)'"
    ):
        parse_program("@a[priority(high)] +!a.")


def test_a_plan_with_a_breakpoint_is_reported_when_it_is_selected() -> None:
    """Checklist 60: the record of the selection says so."""
    run = Run("!a. !b. @here[breakpoint] +!a <- .print(x). +!b.", traced=True).end()
    held = {one.plan: one.breakpoint for one in run.of(PlanSelected) if isinstance(one, PlanSelected)}
    assert held == {"here": True, "p__1": False}
