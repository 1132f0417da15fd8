"""Generated plans in a plan library (spec BDI §2.5; §7 39, 42-45)."""

from __future__ import annotations

import json

from explorer_case import GOAL, listing

from engine.bdi.parser import parse_plan, parse_program, parse_trigger
from engine.bdi.printer import plan_text
from engine.bdi.syntax import Plan
from engine.planning.pgp.generated_plans import GeneratedPlans, Installation, Provenance, install
from engine.planning.pgp.procedure import meta_plan, missing_plan_belief
from engine.planning.pgp.validation import GenerationLimits

BY_HAND = parse_plan("@mine +!reach(X) : there_is(X, here).")
FROM = Provenance(goal="+!reach(home)", model="recorded", prompt_id="p-1", time="2026-01-01T00:00:00Z")


def put(
    *texts: str, after: Installation | None = None, approved: bool = False, **limits: int
) -> Installation:
    """Plans installed into a library that holds one plan by hand and what was installed before."""
    generated = after.generated if after else GeneratedPlans()
    library = (*(one.plan for one in generated.plans), BY_HAND)
    plans = [parse_plan(text) for text in texts]
    return install(plans, library, generated, FROM, GenerationLimits(**limits), approved=approved)


def refusals(found: Installation) -> list[str]:
    return list(found.refused)


def test_generated_plans_carry_where_they_come_from_and_can_be_exported() -> None:
    """§7 42."""
    done = install([one.plan for one in listing(9).plans], (), GeneratedPlans(), FROM)
    assert [plan.name for plan in done.added] == ["generated_1", "generated_2", "generated_3", "generated_4"]
    facts = json.loads(json.dumps(done.added[0].provenance))
    assert (facts["goal"], facts["model"], facts["prompt_id"], facts["time"]) == (
        "+!reach(home)",
        "recorded",
        "p-1",
        "2026-01-01T00:00:00Z",
    )
    exported = "\n".join(one.text() for one in done.generated.plans)
    assert parse_program(exported).plans == done.added
    assert "0 of 2 steps worked" in exported


def test_a_hostile_model_name_cannot_break_out_of_the_comment() -> None:
    done = install([parse_plan("+!a.")], (), GeneratedPlans(), Provenance("g", "x\n!evil.", "p", "t"))
    assert not parse_program(done.generated.plans[0].text()).goals


def test_a_removed_plan_is_no_longer_among_the_generated_ones() -> None:
    """§7 43."""
    done = put("+!a <- b; c.", "+!d <- e.")
    failed = done.added[0]
    assert [one.plan for one in done.generated.without(failed).plans] == [done.added[1]]
    assert done.generated.of(BY_HAND) is None


def test_a_plan_is_verified_after_one_whole_run_and_shows_its_steps_before() -> None:
    """§7 44; the plan itself, its body and its place stay as they are."""
    done = put("+!a <- b; c.")
    plan = done.added[0]
    once = done.generated.with_steps_succeeded(plan, [0])
    known = once.of(plan)
    assert known is not None
    assert (known.succeeded, known.verified) == ({0}, False)
    verified = once.with_run_finished(plan).of(plan)
    assert verified is not None
    assert (verified.succeeded, verified.verified, verified.plan) == ({0, 1}, True, plan)
    assert "verified" in verified.text()


def test_a_newer_plan_replaces_a_generated_one_with_its_event_and_conditions() -> None:
    """§7 45."""
    first = put("+!a(X) : p(X) & q <- b.", "+!a(Y) <- b.")
    second = put("+!a(Z) : q & p(Z) <- c.", after=first)
    assert second.removed == (first.added[0],)
    assert [plan_text(one.plan) for one in second.generated.plans] == [
        "@generated_3\n+!a(Z) : q & p(Z) <-\n    c.",
        "@generated_2\n+!a(Y) <-\n    b.",
    ]


def test_a_plan_by_hand_is_replaced_only_when_the_operator_approves() -> None:
    """§7 45."""
    text = "+!reach(O) : there_is(O, here) <- stop."
    assert refusals(put(text)) == ["a plan written by hand has its event and conditions: @mine"]
    approved = put(text, approved=True)
    assert (approved.removed, len(approved.added)) == ((BY_HAND,), 1)


def test_the_library_grows_to_its_limits_only() -> None:
    """Spec §2.1, thesis §4.1: nothing prevents unchecked growth there."""
    full = put("+!reach(a).", "+!reach(b).", "+!other.", plans_per_trigger=2)
    assert refusals(full) == ["there are 2 plans for +!reach(b) already"]
    many = put("+!a.", "+!b.", "+!c.", plans_per_agent=2)
    assert refusals(many) == ["the agent has 2 generated plans already"]
    assert not put("+!a <- b.", after=many, plans_per_agent=2).refused


def test_the_meta_plan_generates_and_pursues_the_goal_again() -> None:
    """Listing 3.1 of the thesis."""
    expected: list[Plan] = [
        parse_plan(
            "-!reach(home) : missing_plan_for(reach(home)) <- .generate_plan(reach(home)); !reach(home)."
        ),
        parse_plan("-?at(X) : missing_plan_for(at(X)) <- .generate_plan({ +?at(X) }); ?at(X)."),
    ]
    assert [meta_plan(GOAL), meta_plan(parse_trigger("+?at(X)"))] == expected
    assert (
        missing_plan_belief(GOAL)
        == parse_program("missing_plan_for(reach(home))[source(self)].").beliefs[0].literal
    )
