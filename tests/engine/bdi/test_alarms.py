"""Deadlines of goals, and events raised at a time, as Jason has them (spec §1.6, §1.8)."""

from __future__ import annotations

import json

import pytest

from engine.bdi.agent import BdiAgent
from engine.bdi.errors import EvaluationError
from engine.bdi.parser import parse_literal, parse_program
from engine.bdi.semantics import Limits
from engine.bdi.trace import EventDropped, GoalFailed
from tests.engine.bdi.running import Run, said

SLOW = "+!slow <- .wait(1000); .print(never)."


def test_a_goal_fails_at_its_deadline_with_everything_it_has_begun() -> None:
    """Checklist 27: `deadline_reached`, with the step that was being run."""
    program = f"""!s.
        +!s <- !outer[hard_deadline(50)]; .print(not_reached).
        +!outer <- !slow; .print(not_reached).
        {SLOW}
        -!s[error(E), error_msg(M), code(C), code_line(L)] <- .print(E, "; ", M, "; ", C, "; ", L).
    """
    assert said(program) == ["deadline_reached; outer was not achieved within 50 ms; .wait(1000); 4"]


def test_the_failure_plan_of_the_goal_itself_comes_first() -> None:
    program = f"!s. +!s <- !slow[hard_deadline(9)]; .print(on). {SLOW} -!slow[error(E)] <- .print(E)."
    assert said(program) == ["deadline_reached", "on"]


def test_a_goal_in_time_leaves_no_timer_behind() -> None:
    run = Run("!s. +!s <- !t(X)[hard_deadline(500)]; .print(X); .wait(5). +!t(3) <- .wait(5).").end()
    assert run.said == ["3"]
    assert run.system.now < 100
    assert run.agent.next_timer is None


@pytest.mark.parametrize(
    "end", [".drop_intention(t)", ".fail_goal(t)", ".succeed_goal(t)", ".drop_all_desires"]
)
def test_the_deadline_of_a_goal_that_ends_otherwise_is_over(end: str) -> None:
    run = Run(f"!t[hard_deadline(500)]. !e. +!t <- .wait(never). -!t. +!e <- .wait(5); {end}.").end()
    assert run.agent.next_timer is None
    assert run.system.now < 100


def test_the_plan_that_handles_the_failure_has_all_the_time_it_wants() -> None:
    program = f"!slow[hard_deadline(9)]. {SLOW} -!slow <- .wait(200); .print(done)."
    assert said(program) == ["done"]


def test_only_the_goal_of_the_inner_deadline_fails() -> None:
    program = f"""!s.
        +!s <- !outer[hard_deadline(100)]; .print(end).
        +!outer <- !slow[hard_deadline(10)]; .print(not_reached).
        -!outer <- .print(outer).
        {SLOW}
    """
    assert said(program) == ["outer", "end"]


def test_a_goal_that_calls_itself_last_keeps_its_deadline() -> None:
    run = Run("!s. +!s <- !turn[hard_deadline(50)]. +!turn <- .wait(1); !turn. -!s[error(E)] <- .print(E).")
    assert run.end().said == ["deadline_reached"]
    assert 50 <= run.system.now < 70


def test_a_goal_that_no_plan_has_taken_up_yet_fails_too() -> None:
    run = Run("!wait_for_me[hard_deadline(5)]. -!wait_for_me[error(E)] <- .print(E).", traced=True)
    run.agent.on_missing_plan = lambda event: True
    assert run.end().said == ["deadline_reached"]
    assert [one.handled for one in run.of(GoalFailed) if isinstance(one, GoalFailed)] == [True]
    busy = "for (.range(I, 1, 9)) { .print(busy) }"
    held = Run(f"!a. @a[atomic] +!a <- !!b[hard_deadline(3)]; {busy}. +!b <- .print(no).")
    assert held.end().said == ["busy"] * 9


def test_a_deadline_is_kept_by_messages_and_test_goals() -> None:
    run = Run(
        "!s. +!s <- .send(bob, achieve, g[hard_deadline(9)]).",
        bob="+!g <- ?q[hard_deadline(5)]. +?q <- .wait(never). -!g[error(E)] <- .print(E).",
    )
    assert run.end().said == ["deadline_reached"]


def test_a_deadline_that_is_no_number_fails_the_step() -> None:
    program = "!s. +!s <- !t[hard_deadline(soon)]. +!t. -!s[error(E), error_msg(M)] <- .print(E, M)."
    assert said(program) == ["evaluation_failedsoon is not a number"]
    with pytest.raises(EvaluationError, match="soon is not a number"):
        BdiAgent("ag", parse_program("")).achieve(parse_literal("t[hard_deadline(soon)]"))


def test_a_saved_agent_keeps_its_deadlines_and_appointments() -> None:
    program = f"""!a. !b. !c[hard_deadline(70)]. !missing[hard_deadline(80)].
        +!a <- !slow[hard_deadline(60)]. {SLOW}
        +!b <- .at("now + 50", {{ +!later(X, X) }}).
        +!c <- .wait(never).
        +!later(1, Y) <- .print(later(Y)).
        -!a[error(E)] <- .print(a, E). -!c[error(E)] <- .print(c, E). -!missing[error(E)] <- .print(m, E).
    """
    told = ["later(1)", "adeadline_reached", "cdeadline_reached", "mdeadline_reached"]
    for cycles in range(12):
        first, second = Run(program), Run(program)
        for run in (first, second):
            run.agent.on_missing_plan = lambda event: True
        first.system.run(cycles)
        second.agent.restore(json.loads(json.dumps(first.agent.save())))
        second.system.now = first.system.now
        assert second.agent.save() == first.agent.save()
        assert first.end().said == told
        assert second.end().said == told[len(told) - len(second.said) :]
        assert first.agent.save() == second.agent.save()


# ------------------------------------------------------------------ .at


@pytest.mark.parametrize(
    ("when", "milliseconds"),
    [
        ('"now"', 0),
        ('"now + 40"', 40),
        ('"now +40 ms"', 40),
        ('"now + 3 seconds"', 3_000),
        ('"now +1.5 s"', 1_500),
        ('"now + 2 m"', 120_000),
        ('"now +1 hour"', 3_600_000),
        ('"now + 2 days"', 172_800_000),
        ("25", 25),
    ],
)
def test_an_event_is_raised_at_its_time(when: str, milliseconds: float) -> None:
    run = Run(f"!s. +!s <- .at({when}, {{ +!g(1) }}); .print(at_once). +!g(X) <- .print(g(X)).").end()
    assert run.said == ["at_once", "g(1)"]
    assert milliseconds <= run.system.now <= milliseconds + 10


@pytest.mark.parametrize(
    "call",
    [
        '.at("tomorrow", { +!g })',
        '.at("now + 3 moons", { +!g })',
        f'.at("now + {"9" * 400}", {{ +!g }})',
        '.at("now", { -!g })',
        '.at("now", 3)',
        ".at(when, { +!g })",
    ],
)
def test_a_time_or_event_that_is_none_fails_the_step(call: str) -> None:
    assert said(f"!s. +!s <- {call}. -!s[error(E)] <- .print(E).") == ["ia_failed"]


def test_an_appointment_with_a_belief_raises_the_event_only() -> None:
    run = Run("!s. +!s <- .at(5, { +b(1) }). +b(X) <- .print(b(X)).").end()
    assert run.said == ["b(1)"]
    assert len(run.agent.beliefs) == 0


def test_appointments_are_dropped_with_the_desire() -> None:
    run = Run("!s. +!s <- .at(5, { +!g(1) }); .at(5, { +!g(2) }); .drop_desire(g(1)). +!g(X) <- .print(X).")
    assert run.end().said == ["2"]


def test_too_many_appointments_meet_the_limit_and_a_full_queue_drops_one() -> None:
    limits = Limits(events=40)
    endless = "!s. +!s <- while (true) { .at(9000, { +!g }) }. -!s[error(E)] <- .print(E)."
    assert Run(endless, limits=limits).end().said == ["limit_exceeded"]
    busy = "for (.range(I, 1, 9)) { X = I }"
    full = f"!s. @s[atomic] +!s <- .at(5, {{ +!g }}); !!h; !!h; !!h; {busy}. +!h. +!g <- .print(no)."
    run = Run(full, limits=Limits(events=3), traced=True).end()
    assert run.said == []
    assert [one.event for one in run.of(EventDropped) if isinstance(one, EventDropped)] == ["+!g"]


def test_many_short_deadlines_do_not_pile_up() -> None:
    program = "!s. +!s <- for (.range(I, 1, 3000)) { !t[hard_deadline(90000)] }; .print(end). +!t."
    run = Run(program).end()
    assert run.said == ["end"]
    assert len(run.agent.alarms) <= 64


def test_a_goal_that_the_host_took_away_has_no_deadline_left() -> None:
    agent = BdiAgent("ag", parse_program("-!g <- act."))
    agent.achieve(parse_literal("g[hard_deadline(5)]"), tag="t")
    agent.events.clear()
    assert not agent.cycle(50).requests
    assert agent.next_timer is None
