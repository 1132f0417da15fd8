"""The reactive procedure on the reasoner (spec BDI §2.3, §2.4; §7 33-39, 41)."""

from __future__ import annotations

from reactive_flight import Flight, fact, say

from engine.planning.pgp.validation import GenerationLimits


def test_a_goal_without_a_plan_asks_once_and_goes_on_as_if_the_plan_had_been_there() -> None:
    """§7 34."""
    flight = Flight('!go. +!go <- .print("before"); !greet(bob); .print("after").')
    flight.until_idle()
    assert (flight.asked_for(), flight.said) == (["+!greet(bob)"], ["before"])
    flight.answer(f"greet(X): {say('hello')}")
    flight.until_idle()
    assert flight.said == ["before", "hello", "after"]
    assert flight.procedure.asked == 1
    flight.agent.achieve(fact("greet(ann)"))
    flight.until_idle()
    assert (flight.said[3:], flight.procedure.asked) == (["hello"], 1)


def test_a_goal_with_plans_that_do_not_apply_asks_nothing() -> None:
    """§7 35."""
    flight = Flight('!greet. +!greet : friendly. -!greet <- .print("failed").')
    flight.until_idle()
    assert (flight.asked_for(), flight.said) == ([], ["failed"])


def test_a_step_can_ask_for_plans_and_does_not_run_them() -> None:
    """§7 33."""
    flight = Flight('!go. +!go <- .generate_plan(greet(X)); .print("done").')
    flight.until_idle()
    assert flight.asked_for() == ["+!greet(V0)"]
    flight.answer(f"greet(X): {say('hello')}")
    flight.until_idle()
    assert flight.said == ["done"]
    assert flight.procedure.generated.plans[0].plan.trigger.literal


def test_a_test_goal_of_the_agent_can_be_generated_too() -> None:
    """As the thesis' program does; a test in a body fails at once unless a plan is for it (spec §1.5)."""
    flight = Flight("?nearest(X).")
    flight.until_idle()
    assert flight.asked_for() == ["+?nearest(V0)"]


def test_what_is_no_goal_cannot_be_generated() -> None:
    flight = Flight("!go. +!go <- .generate_plan({ +b }). -!go[error(E), error_msg(M)] <- .print(E, M).")
    flight.until_idle()
    assert flight.said[0].startswith("pgp_failedplans are generated for goals: ")


def test_other_intentions_and_percepts_go_on_while_an_answer_is_awaited() -> None:
    """§7 36."""
    flight = Flight(
        '!wait. !count(0). +!wait <- !unknown. +!count(N) <- !count(N + 1). +seen <- .print("seen").'
    )
    for _ in range(3_000):
        flight.agent.cycle()
    flight.agent.perceive((fact("seen"),))
    for _ in range(10):
        flight.agent.cycle()
    assert flight.asked_for() == ["+!unknown"]
    assert flight.said == ["seen"]


def test_two_goals_wait_at_the_same_time_and_two_askers_of_one_goal_share_the_answer() -> None:
    """§7 37."""
    flight = Flight('!one(a). !one(b). !two. +!one(X) <- !sub; .print(X). +!two <- !other; .print("two").')
    flight.until_idle()
    assert sorted(flight.asked_for()) == ["+!other", "+!sub"]
    assert flight.procedure.asked == 2
    for _ in range(2):
        goal = flight.asked_for()[0].removeprefix("+!")
        flight.answer(f"{goal}: {say(goal)}")
        flight.until_idle()
    assert sorted(flight.said) == ["a", "b", "other", "sub", "sub", "two"]


def test_an_answer_of_no_use_fails_the_step_with_pgp_failed_and_a_reason() -> None:
    """§7 38; a failure plan can catch it."""
    flight = Flight("!go. +!go <- !unknown. -!go[error(E), error_msg(M)] <- .print(E, M).")
    flight.until_idle()
    flight.answer("something_else: achieve rest")
    flight.until_idle()
    assert flight.said == ["pgp_failedno usable plan for +!unknown in the answer: 1 read, 1 accepted"]
    assert not flight.procedure.generated.plans


def test_what_was_missing_is_taken_back_after_success_and_after_failure() -> None:
    """§7 39."""
    for answer in (f"unknown: {say('x')}", "other: achieve rest"):
        flight = Flight("!unknown.")
        flight.until_idle()
        assert any(fact.literal.functor == "missing_plan_for" for fact in flight.agent.beliefs)
        flight.answer(answer)
        flight.until_idle()
        assert not list(flight.agent.beliefs)
        assert not [one for one in flight.agent.plans if one.sign == "-!"]


def test_a_goal_that_keeps_failing_is_asked_for_so_often_only() -> None:
    """§7 39."""
    flight = Flight(
        "!go(3). +!go(0). +!go(N) <- !unknown. -!go(N) <- !go(N - 1).", GenerationLimits(attempts_per_goal=2)
    )
    flight.until_idle()
    for _ in range(2):
        flight.answer("other: achieve rest")
        flight.until_idle()
    assert flight.procedure.questions == ()
    assert flight.procedure.asked == 2


def test_plans_that_the_library_has_no_room_for_fail_the_step_and_are_not_asked_for_for_ever() -> None:
    flight = Flight(
        "!go. +!go <- !unknown. -!go[error_msg(M)] <- .print(M).", GenerationLimits(plans_per_agent=0)
    )
    flight.until_idle()
    flight.answer(f"unknown: {say('x')}")
    flight.until_idle()
    assert flight.said == ["the agent has 0 generated plans already"]
    assert not flight.asked_for()


def test_goals_of_generated_plans_are_generated_in_turn_to_a_limited_depth() -> None:
    """§7 41."""
    flight = Flight("!deeper(0).", GenerationLimits(depth=2))
    for depth in range(3):
        flight.until_idle()
        assert [one.depth for one in flight.procedure.questions] == [depth]
        flight.answer(f"deeper({depth}): achieve deeper({depth + 1})")
    flight.until_idle()
    assert flight.procedure.questions == ()
    assert flight.procedure.asked == 3


def test_an_answer_for_an_intention_that_was_dropped_meanwhile_still_installs_its_plans() -> None:
    flight = Flight("!go. !end. +!go <- !unknown. +!end <- .wait(1); .drop_desire(go).")
    flight.until_idle()
    flight.agent.cycle(now=2.0)
    flight.until_idle()
    flight.answer(f"unknown: {say('late')}")
    flight.until_idle()
    assert flight.said == []
    assert len(flight.procedure.generated.plans) == 1
