"""What becomes of generated plans while they run: tracked, proved, removed, replaced (spec BDI §2.5)."""

from __future__ import annotations

import pytest
from reactive_flight import Flight, fact, say

from engine.bdi.body_compiler import compile_body
from engine.bdi.parser import parse_plan
from engine.bdi.term_compiler import Scope
from engine.bdi.trace import StepFailed, TraceEvent
from engine.planning.pgp.generated_plans import place_of
from engine.planning.pgp.validation import GenerationLimits


def answered(program: str, *plans: str, limits: GenerationLimits | None = None) -> Flight:
    """A flight whose first question got these plans, and that is idle again."""
    flight = Flight(program, limits or GenerationLimits())
    flight.until_idle()
    flight.answer(*plans)
    flight.until_idle()
    return flight


def again(flight: Flight, goal: str) -> None:
    flight.agent.achieve(fact(goal))
    flight.until_idle()


def states(flight: Flight) -> dict[str, tuple[set[int], bool]]:
    return {one.label: (set(one.succeeded), one.verified) for one in flight.procedure.generated.plans}


def in_library(flight: Flight) -> list[str]:
    return [plan.name for plan in flight.agent.plans]


def test_a_failing_step_removes_its_generated_plan_only() -> None:
    """§7 43: the caller's plan, the other generated one and those by hand stay."""
    flight = answered("!go. @mine +!go <- !sub; !after.", "sub: achieve deep", "deep: execute fail()")
    assert in_library(flight) == ["generated_1", "mine"]
    assert flight.procedure.failed is not None
    assert (flight.procedure.failed.plan, flight.procedure.failed.place) == ("generated_2", 0)
    assert flight.procedure.failed.error == "ia_failed"
    assert states(flight) == {"generated_1": (set(), False)}


def test_a_failing_step_of_a_plan_by_hand_removes_nothing() -> None:
    """§7 43."""
    flight = answered("!go. @mine +!go <- !sub; .fail.", f"sub: {say('x')}")
    assert in_library(flight) == ["generated_1", "mine"]
    assert flight.procedure.failed is None


def test_a_plan_goes_even_when_the_failure_of_its_goal_is_handled() -> None:
    """§7 43."""
    flight = answered(
        '!go. @mine +!go <- !sub; .print("on"). @mend -!sub.', f"sub: {say('a')}; execute fail()"
    )
    assert flight.said == ["a", "on"]
    assert in_library(flight) == ["mine", "mend"]


def test_a_goal_that_gets_its_plan_later_is_no_failure_of_the_plan_that_wanted_it() -> None:
    """§7 41, 43."""
    flight = answered("!go.", f"go: achieve sub; {say('done')}")
    assert states(flight) == {"generated_1": (set(), False)}
    flight.answer(f"sub: {say('sub')}")
    flight.until_idle()
    assert flight.said == ["sub", "done"]
    assert states(flight) == {"generated_1": ({0, 1}, True), "generated_2": ({0}, True)}


def test_the_steps_of_a_plan_show_before_it_is_verified() -> None:
    """§7 44."""
    flight = answered("!go.", f"go: {say('a')}; execute wait(5); {say('b')}")
    assert states(flight) == {"generated_1": ({0}, False)}
    assert "1 of 3 steps worked" in flight.procedure.generated.plans[0].text()
    flight.agent.cycle(now=10.0)
    flight.until_idle()
    assert states(flight) == {"generated_1": ({0, 1, 2}, True)}
    assert "verified" in flight.procedure.generated.plans[0].text()


def test_the_whole_body_runs_again_after_a_plan_is_verified_and_in_its_place() -> None:
    """§7 44: tracking changes neither the body nor the order (spec §2.5)."""
    flight = answered("!go.", f"go: {say('a')}; {say('b')}", f"rest: {say('c')}")
    again(flight, "go")
    assert flight.said == ["a", "b", "a", "b"]
    assert in_library(flight) == ["generated_1", "generated_2"]


def test_plans_whose_place_a_tail_call_took_are_verified_with_the_last() -> None:
    """§7 44: the goal that was asked for is proved too."""
    flight = answered("!count(3).", f"count(0): {say('end')}", "count(N): achieve count(N - 1)")
    assert flight.said == ["end"]
    assert states(flight) == {"generated_1": ({0}, True), "generated_2": ({0}, True)}
    assert not flight.procedure.attempts


def test_plans_whose_place_a_tail_call_took_are_not_verified_when_the_last_fails() -> None:
    """§7 43, 44."""
    flight = answered("!count(2).", "count(0): execute fail()", "count(N): achieve count(N - 1)")
    assert states(flight) == {"generated_2": (set(), False)}


def test_a_plan_without_steps_is_verified_when_it_is_used_and_one_cut_short_is_not() -> None:
    """§7 44."""
    assert states(answered("!go.", "go: <none>")) == {"generated_1": (set(), True)}
    flight = answered("!go.", f"go: execute wait(5); {say('b')}")
    flight.agent.plans.add(parse_plan("@end +!end <- .succeed_goal(go)."))
    again(flight, "end")
    assert not flight.agent.intentions
    assert states(flight) == {"generated_1": (set(), False)}


def test_attempts_are_counted_anew_after_the_goal_was_reached() -> None:
    """§7 39."""
    flight = answered("!reach(home).", f"reach(X): {say('there')}")
    assert not flight.procedure.attempts
    assert flight.agent.plans.remove("generated_1").name == "generated_1"
    assert not flight.procedure.generated.plans
    again(flight, "reach(home)")
    assert flight.procedure.questions[0].attempt == 1


def test_a_goal_whose_plans_keep_failing_is_asked_for_up_to_the_cap_which_is_told() -> None:
    """§7 39, 43."""
    flight = Flight("!go.", GenerationLimits(attempts_per_goal=2))
    flight.until_idle()
    for attempt in (1, 2):
        question = flight.procedure.questions[0]
        assert (question.attempt, question.attempts) == (attempt, 2)
        flight.answer("go: execute fail()")
        flight.until_idle()
        again(flight, "go")
    assert flight.procedure.questions == ()
    assert "no plans are generated for +!go: 2 of 2 generations gave none that reached it" in flight.warned
    assert not [one for one in flight.agent.beliefs if one.literal.functor == "missing_plan_for"]


def test_reaching_one_instance_of_a_goal_says_nothing_of_another() -> None:
    """§7 39."""
    flight = answered("!reach(home).", f"reach(rock): {say('rock')}", "reach(home): execute fail()")
    again(flight, "reach(rock)")
    assert flight.said == ["rock"]
    assert list(flight.procedure.attempts) == ["+!reach(home)"]


def test_a_newer_plan_replaces_the_generated_one_and_begins_unverified() -> None:
    """§7 45: a plan by hand with the same event and conditions stays, and the answer is refused."""
    flight = answered("!go. @mine +!kept.", f"go: {say('old')}")
    flight.agent.plans.add(parse_plan("@again +!again <- .generate_plan(go); !go."))
    again(flight, "again")
    flight.answer(f"go: {say('new')}", f"kept: {say('never')}")
    flight.until_idle()
    assert flight.said == ["old", "new"]
    assert in_library(flight) == ["generated_2", "mine", "again"]
    assert states(flight) == {"generated_2": ({0}, True)}


def test_a_label_that_a_program_uses_already_is_not_given_to_a_generated_plan() -> None:
    flight = answered("!go. @generated_1 +!rest.", f"go: {say('x')}")
    assert in_library(flight) == ["generated_2", "generated_1"]


def test_who_traced_the_agent_before_gets_every_record() -> None:
    seen: list[TraceEvent] = []
    flight = Flight("!go. +!go <- .fail.")
    flight.agent.tracer = seen.append
    flight.procedure = type(flight.procedure)(flight.agent)
    flight.until_idle()
    assert [one.step for one in seen if isinstance(one, StepFailed)] == [".fail"]


@pytest.mark.parametrize(
    "body",
    [
        "a; b; c",
        "a; if (x) { b; c } elif (y) { d } else { e }; f",
        "while (x) { a; if (y) { b } }; for (p(X)) { c(X) }; d",
    ],
)
def test_each_place_in_the_code_belongs_to_the_item_of_the_body_that_it_came_from(body: str) -> None:
    plan = parse_plan(f"+!g <- {body}.")
    code = compile_body(plan.body, Scope())
    places = [place_of(plan.body, at) for at in range(len(code))]
    assert places == sorted(places)
    for place, item in enumerate(plan.body):
        mine = [step for at, step in enumerate(code) if places[at] == place]
        assert mine[0].item is item
    assert place_of(plan.body, len(code)) == len(plan.body) - 1
