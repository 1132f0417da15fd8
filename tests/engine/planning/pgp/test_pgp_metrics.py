"""The metrics on the thesis' own plans (spec BDI §3.3, §3.4; §7 53, 56)."""

from __future__ import annotations

import pytest
from explorer_case import KNOWN, answer, listing

from engine.bdi.parser import parse_plan
from engine.planning.pgp.answer_parser import Answer, ParsedPlan
from engine.planning.pgp.metrics import Metrics, alignment_surrogate, measure
from engine.tools.worlds.explorer import baseline_program

BASELINE = baseline_program().plans
TABLE = {
    8: dict(pc=3, cc=1.0, cc_ref=1.33, pbc=1.67, gc=0, rr=0, ngc=0, nbc=0, gsa=0, bsa=0),
    9: dict(pc=4, cc=1.25, cc_ref=1.5, pbc=2.25, gc=0, rr=0, ngc=1, nbc=1, gsa=1, bsa=2, bsa_ref=4),
    10: dict(pc=5, ngc=2, nbc=0, rr=0, gc=5, gsa=0),
    11: dict(pc=6, ngc=2, nbc=0, rr=0, gc=5, gsa=0),
}
"""Spec §3.4; what can be counted by hand for the last two."""


def measured(read: Answer) -> Metrics:
    return measure(read, KNOWN.admissible_goals, KNOWN.admissible_beliefs)


@pytest.mark.parametrize("number", TABLE)
def test_the_listings_give_the_values_of_the_table(number: int) -> None:
    """§7 53, as to the listings; the twenty answers of the earlier paper are not shipped."""
    found = measured(listing(number)).as_dict()
    assert {name: round(found[name], 2) for name in TABLE[number]} == TABLE[number]


def test_the_baseline_gives_its_values() -> None:
    """§7 56."""
    found = measured(Answer("", tuple(ParsedPlan(plan, 1) for plan in BASELINE)))
    assert (found.pc, found.cc, round(found.pbc, 2), found.gc) == (3, 1.0, 1.33, 3)
    assert (found.rr, found.ngc, found.nbc, found.gsa, found.bsa) == (0, 0, 0, 0, 0)


def test_a_plan_that_an_earlier_one_covers_is_redundant() -> None:
    """Up to renaming; the thesis' program sees it only where there are no variables."""
    general = "EVENT: achieve g(X)\nCONDITIONS:\n- p(X)\n---\nEVENT: achieve g(Y)\nCONDITIONS:\n- q\n- p(Y)"
    assert (measured(answer(general)).rr, measured(answer(general)).rr_ref) == (1, 0)
    ground = general.replace("X", "a").replace("Y", "a")
    assert (measured(answer(ground)).rr, measured(answer(ground)).rr_ref) == (1, 1)
    free = "EVENT: achieve g\n---\nEVENT: achieve g\nCONDITIONS:\n- p"
    assert (measured(answer(free)).rr, measured(answer(free)).rr_ref) == (1, 0)


def test_plans_by_hand_behind_the_generated_ones_are_counted_as_redundant() -> None:
    read = answer("EVENT: achieve reach(X)\nOPERATIONS:\n- execute stop()")
    assert measure(read, (), (), BASELINE).rr == 3


def test_goals_and_beliefs_that_do_not_fit_are_counted() -> None:
    read = answer(
        "EVENT: achieve reach(X)\nCONDITIONS:\n- near(X)\n- not seen(X)\n- X \\= here\n"
        "OPERATIONS:\n- achieve look()\n"
        "---\n- goal: reach(Object)\n- goal: sleep\n- goal: 12\n- belief: seen(X)\n- belief: object(X)\n"
    )
    found = measured(read)
    # `12` cannot be read, look is undeclared, sleep unused, reach invented though it was there.
    assert found.gsa == 4
    # near is undeclared, object unused and known.
    assert found.bsa == 2
    # The relation counts too, and the goal that cannot be read.
    assert found.bsa_ref == 4


def test_beliefs_inside_a_negated_conjunction_are_used() -> None:
    read = answer("EVENT: achieve reach(X)\nCONDITIONS:\n- not (object(X) & (near(X) | X = home))")
    assert (measured(read).cc, measured(read).cc_ref) == (2.0, 1.0)
    assert (measured(read).bsa, measured(read).bsa_ref) == (1, 2)


def test_an_answer_without_plans_measures_nothing() -> None:
    assert set(measured(answer("")).as_dict().values()) == {0}


def test_the_surrogate_of_alignment_is_one_for_the_baseline_and_falls_with_difference() -> None:
    renamed = [parse_plan("+!reach(A) : there_is(A, here)."), *BASELINE[1:]]
    assert alignment_surrogate(BASELINE, BASELINE) == alignment_surrogate(renamed, BASELINE) == 1.0
    values = [alignment_surrogate([one.plan for one in listing(n).plans], BASELINE) for n in (11, 8)]
    assert 1.0 > values[0] > values[1] > 0.0
    assert alignment_surrogate([], BASELINE) == alignment_surrogate([], []) == 0.0
