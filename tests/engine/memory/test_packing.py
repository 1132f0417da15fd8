"""Packing: valid JSON within any budget, what matters least goes first."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.memory.context import SHOW, Item, Part, pack
from engine.models.request import estimate_tokens
from tests.engine.memory.context_pieces import FULL, entry, gathered, parts_of, read

DROPPED_FIRST = (
    Part.PROCEDURES,
    Part.PROACTIVE,
    Part.LINKS,
    Part.THOUGHTS,
    Part.IMPORTANT,
    Part.CORE,
    Part.WORKING,
)


@settings(max_examples=60, deadline=None)
@given(gathered(), st.integers(0, 12_000))
def test_any_parts_in_any_budget_are_valid_json_within_it_and_in_order(
    parts: dict[Part, list[Item]], budget: int
) -> None:
    """Valid JSON within budget, whatever is in it; parts go from the end only."""
    blocks = pack(parts, budget)
    assert sum(block.tokens for block in blocks) <= budget
    assert [block.tokens for block in blocks] == [estimate_tokens(block.text) for block in blocks]
    read(blocks)
    assert [block.part for block in blocks] == list(parts)[: len(blocks)]


def test_all_is_shown_where_there_is_room() -> None:
    shown = read(pack(parts_of(FULL), 100_000))
    assert {part: len(shown[part]["items"]) for part in FULL} == FULL
    assert not any("omitted" in value for value in shown.values())


def test_lists_shrink_first_with_the_number_left_out_and_then_parts_go_in_order() -> None:
    """To 5 memories, 5 thoughts, 2 procedures, 3 proactive, 10 working, 3 links."""
    whole = parts_of(FULL)
    order: list[Part] = []
    for budget in range(20_000, -1, -20):
        shown = read(pack(whole, budget))
        gone = [part for part in FULL if part not in shown and part not in order]
        if gone:
            assert len(gone) == 1
            for part, limit in SHOW.items():
                if part in shown:
                    assert len(shown[part]["items"]) == limit
                    assert shown[part]["omitted"] == FULL[part] - limit
        order += gone
    assert tuple(order) == DROPPED_FIRST


def test_before_parts_go_long_texts_are_cut_to_beginning_and_end() -> None:
    whole = parts_of(FULL, size=100)
    whole[Part.IMPORTANT] = [entry("m1", note="begins " + "x" * 30_000 + " ends"), *whole[Part.IMPORTANT][1:]]
    shown = read(pack(whole, 3_000))
    assert set(shown) == set(Part)
    note = shown[Part.IMPORTANT]["items"][0]["note"]
    assert note.startswith("begins xxx")
    assert note.endswith("xxx ends")
    assert "28012 characters left out" in note


def test_a_memory_that_stands_in_several_parts_is_shown_in_the_one_that_stays_longest() -> None:
    same = entry("m1")
    linked = {**same, "link": {"type": "supports"}}
    shown = read(pack({Part.WORKING: [same], Part.IMPORTANT: [same], Part.LINKS: [linked]}, 5_000))
    assert shown[Part.WORKING]["items"] == [same]
    assert shown[Part.IMPORTANT]["items"] == [{"id": "m1", "see": "working"}]
    assert shown[Part.LINKS]["items"][0] == {"id": "m1", "see": "working", "link": {"type": "supports"}}
