"""Packing: valid JSON within any budget, what matters least goes first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain.plan import PlanStep, StepStatus
from engine.memory.package import SHOW, ContextPackage, Part, PartError, Situation
from engine.memory.packing import MINIMUM_TOKENS, estimate_tokens, pack
from tests.memory.context_pieces import FULL, PACKAGES, STAMP, entry, package, read

DROPPED_FIRST = (
    Part.PROCEDURES,
    Part.PROACTIVE,
    Part.LINKS,
    Part.THOUGHTS,
    Part.IMPORTANT,
    Part.ACTIONS,
    Part.CORE,
    Part.WORKING,
    Part.GOALS,
)
"""As the specification lists them (§5 item 39)."""


@settings(max_examples=150, deadline=None)
@given(PACKAGES, st.integers(MINIMUM_TOKENS, 12_000))
def test_any_package_in_any_budget_is_valid_json_within_it_and_in_order(
    given_: ContextPackage, budget: int
) -> None:
    """Checklist 39: valid JSON within budget, whatever is in it; parts go from the end only."""
    blocks = pack(given_, budget)
    assert sum(block.tokens for block in blocks) <= budget
    assert [block.tokens for block in blocks] == [estimate_tokens(block.text) for block in blocks]
    told = read(blocks)
    parts = [block.part for block in blocks]
    there = [one.part for one in given_.sections if one.items or one.digest]
    assert parts == [Part.SITUATION, *there[: len(parts) - 1]]
    assert all("retrieved_at" in value for value in told.values())
    assert {"goal", "plan", "last_error"} <= set(told[Part.SITUATION])


def test_all_is_told_where_there_is_room() -> None:
    blocks = pack(package(FULL), 100_000)
    told = read(blocks)
    assert {part: len(told[part]["items"]) for part in FULL} == FULL
    assert not any(block.omitted for block in blocks)


def test_lists_shrink_first_with_the_number_left_out_and_then_parts_go_in_order() -> None:
    """Checklist 39: to 7 actions, 5 memories, 5 thoughts, 2 procedures, 3 proactive, 10 working, 5 goals."""
    whole = package(FULL)
    order: list[Part] = []
    for budget in range(20_000, MINIMUM_TOKENS, -20):
        told = read(pack(whole, budget))
        gone = [part for part in FULL if part not in told and part not in order]
        if gone:
            assert len(gone) == 1
            for part, limit in SHOW.items():
                if part in told:
                    assert len(told[part]["items"]) == limit
                    assert told[part]["omitted"] == FULL[part] - limit
        order += gone
        assert told[Part.SITUATION].get("left_out_for_length", []) == [
            str(part) for part in Part if part in order
        ]
    assert tuple(order) == DROPPED_FIRST


def test_before_parts_go_long_texts_are_cut_to_beginning_and_end() -> None:
    """Checklist 41: the budgeted head of the last output is there where the whole is too long."""
    whole = package(FULL, size=100)
    said = entry("a1", result="begins " + "x" * 30_000 + " ends")
    found = tuple(
        replace(one, items=(said, *one.items[1:])) if one.part is Part.ACTIONS else one
        for one in whole.sections
    )
    told = read(pack(replace(whole, sections=found), 3_000))
    assert set(told) == set(Part)
    result = told[Part.ACTIONS]["items"][0]["result"]
    assert result.startswith("begins xxx")
    assert result.endswith("xxx ends")
    assert "28012 characters left out" in result


def test_goal_plan_and_last_error_stay_cut_with_a_mark_where_nothing_else_fits() -> None:
    """Checklist 39: what matters most is never dropped."""
    steps = tuple(
        PlanStep(
            f"s{n}", f"step {n} " + "y" * 300, status=StepStatus.COMPLETED if n < 40 else StepStatus.PLANNED
        )
        for n in range(80)
    )
    asked = Situation("the goal " + "g" * 9_000, steps, "step 40", "the error " + "e" * 9_000)
    for budget in (MINIMUM_TOKENS, 800, 2_000):
        (only,) = pack(package(FULL, situation=asked), budget)
        told = read((only,))[Part.SITUATION]
        assert told["goal"].startswith("the goal")
        assert "more characters" in told["goal"]
        assert told["last_error"].startswith("the erro")
        assert "s40" in [step["id"] for step in told["plan"]]
        assert told.get("done_before", 0) + len(told["plan"]) + told.get("more_steps", 0) == 80
        assert len(told["left_out_for_length"]) == len(FULL)


def test_a_memory_that_stands_in_several_parts_is_told_in_the_one_that_stays_longest() -> None:
    mine = package({Part.WORKING: 1, Part.IMPORTANT: 1, Part.PROACTIVE: 1})
    (same,) = mine.section(Part.WORKING).items
    linked = {**same, "link": {"type": "supports"}}
    again = package({})
    parts = {Part.WORKING: same, Part.IMPORTANT: same, Part.LINKS: linked, Part.PROACTIVE: same}
    found = tuple(
        type(one)(one.part, (parts[one.part],), STAMP) for one in again.sections if one.part in parts
    )
    told = read(pack(ContextPackage(again.question, STAMP, found), 5_000))
    assert told[Part.WORKING]["items"] == [same]
    assert told[Part.IMPORTANT]["items"] == [{"id": same["id"], "see": "working"}]
    assert told[Part.LINKS]["items"][0] == {"id": same["id"], "see": "working", "link": {"type": "supports"}}


def test_what_could_not_be_read_is_said() -> None:
    errors = (PartError(Part.LINKS, "memory is closed", STAMP),)
    told = read(pack(package({}, errors=errors), 1_000))
    assert told[Part.SITUATION]["not_readable"] == [{"part": "links", "error": "memory is closed"}]


def test_a_budget_that_holds_nothing_is_refused_with_a_reason() -> None:
    with pytest.raises(ValueError, match="at least 400"):
        pack(package(FULL), 399)
    with pytest.raises(ValueError, match="not even the situation"):
        pack(package(FULL), 400, lambda text: len(text) * 50)
