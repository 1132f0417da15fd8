"""Which generated plans may be installed (spec BDI §2.1; §7 40)."""

from __future__ import annotations

from explorer_case import GOAL, KNOWN, answer

from engine.bdi.parser import parse_plan, parse_trigger
from engine.planning.pgp.plan_comparison import same_guard, subsumes
from engine.planning.pgp.validation import GenerationLimits, Review, review


def reviewed(*plans: str, limits: GenerationLimits | None = None) -> Review:
    return review(answer("\n---\n".join(plans)), GOAL, KNOWN.actions, limits or GenerationLimits())


GOOD = "EVENT: achieve reach(Object)\nCONDITIONS:\n- there_is(Object, D)\nOPERATIONS:\n- execute move(D)"


def test_an_action_that_the_agent_lacks_rejects_its_plan_and_names_the_nearest() -> None:
    """§7 40; C4."""
    found = reviewed(GOOD, "EVENT: achieve g\nOPERATIONS:\n- execute stop()\n- execute getDirectionToGo(D)")
    assert [one.accepted for one in found.verdicts] == [True, False]
    assert found.verdicts[1].reasons == (
        "line 10: there is no action getDirectionToGo/1; did you mean getDirectionToMove?",
    )
    assert not found.failure


def test_an_action_with_the_wrong_number_of_arguments_rejects_its_plan() -> None:
    """§7 40; C4."""
    found = reviewed("EVENT: achieve reach(home)\nOPERATIONS:\n- execute move(north, fast)")
    assert found.verdicts[0].reasons == ("line 3: move takes 1 arguments, not 2",)
    assert "1 read, 0 accepted" in found.failure


def test_the_second_of_two_plans_with_the_same_event_and_conditions_is_rejected() -> None:
    """§7 40; C1, up to the names of variables and the order of conditions."""
    first = "EVENT: achieve reach(A)\nCONDITIONS:\n- p(A, B)\n- q(B)"
    found = reviewed(
        first, "EVENT: achieve reach(X)\nCONDITIONS:\n- q(Y)\n- p(X, Y)\nOPERATIONS:\n- execute stop()"
    )
    assert found.verdicts[1].reasons == ("has the event and the conditions of the plan in line 1",)
    assert reviewed(first, first.replace("q(B)", "q(A)")).verdicts[1].accepted


def test_an_answer_without_a_plan_for_the_goal_fails() -> None:
    """§7 40."""
    found = reviewed("EVENT: achieve reach(rock)\nOPERATIONS:\n- execute stop()", "EVENT: test reach(home)")
    assert len(found.accepted) == 2
    assert found.failure == "no usable plan for +!reach(home) in the answer: 2 read, 2 accepted"
    assert reviewed(GOOD.replace("Object", "home")).failure == ""


def test_plans_may_generate_and_may_pursue_goals_that_are_new() -> None:
    """C2 and C3."""
    assert not reviewed(GOOD + "\n- generate explore(X)\n- achieve explore(X)").complaints


def test_a_body_may_not_be_longer_than_the_limit() -> None:
    found = reviewed(GOOD + "\n- execute stop()", limits=GenerationLimits(body_steps=1))
    assert found.verdicts[0].reasons == ("has 2 operations; 1 are allowed",)


def test_a_model_is_told_everything_that_is_wrong_with_its_answer() -> None:
    told = reviewed(GOOD.replace("move", "fly"), "EVENT: achieve g\nCONDITIONS:\n- p(").repair_request
    assert told.splitlines() == [
        "Your plans cannot be used as they are:",
        "- no usable plan for +!reach(home) in the answer: 1 read, 0 accepted",
        "- line 1: +!reach(Object): line 5: there is no action fly/1",
        "- line 9: 'p(': expected a term, found the end of the text",
        "Give the whole set of plans again.",
    ]


def test_plans_are_compared_up_to_renaming_only() -> None:
    general, special = (parse_plan(text) for text in ("+!g(X) : p(X).", "+!g(Y) : q & p(Y)."))
    assert subsumes(general, special)
    assert not subsumes(special, general)
    assert not subsumes(general, parse_plan("+!g(a) : p(a)."))
    assert not same_guard(parse_plan("+!g(X, Y)."), parse_plan("+!g(X, X)."))


def test_comparing_plans_with_very_many_conditions_ends() -> None:
    many = " & ".join(f"p(X{n}, Y{n})" for n in range(200))
    left, right = parse_plan(f"+!g : {many} & q(A)."), parse_plan(f"+!g : {many} & q(1).")
    assert not same_guard(left, right)
    assert same_guard(left, parse_plan(f"+!g : {many.replace('X', 'V')} & q(B)."))
    assert parse_trigger("+!g") == left.trigger
