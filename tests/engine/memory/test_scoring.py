"""The numbers of relevance, promotion and links, against those that the specification works out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.memory import LinkType, MemoryItem, MemoryLevel, MemoryLink, MemoryType
from engine.memory import scoring
from tests.engine.memory.memory_desk import DAY, HOUR

NOW = 1_800_000_000.0


def memory(ident: str = "m1", **more: object) -> MemoryItem:
    return MemoryItem(ident, "w1", "text", **{"created_at": NOW, **more})  # type: ignore[arg-type]


def test_relevance_of_a_day_old_memory_is_3_147() -> None:
    """I 8, C 1, 24 hours old and idle, never used; the exponential form."""
    old = memory(importance=8.0, created_at=NOW - DAY)
    assert scoring.relevance(old, NOW) == pytest.approx(3.147, abs=0.0005)


@pytest.mark.parametrize(
    ("importance", "age_h", "uses", "idle_d", "relevance"),
    [(8, 24, 10, 0, 7.802), (10, 100, 0, 4.17, 0.712), (9, 720, 20, 0, 0.009)],
)
def test_the_other_check_values(
    importance: float, age_h: float, uses: int, idle_d: float, relevance: float
) -> None:
    assert scoring.decayed(importance, 1.0, uses, age_h, idle_d) == pytest.approx(relevance, abs=0.001)


def test_a_procedure_of_a_month_is_not_buried() -> None:
    month = {"created_at": NOW - 720 * HOUR, "accessed_at": NOW, "importance": 9.0}
    assert scoring.relevance(memory(level=MemoryLevel.EPISODIC, **month), NOW) < 0.01
    assert scoring.relevance(memory(level=MemoryLevel.PROCEDURAL, **month), NOW) > 7


@given(st.floats(0, 10), st.floats(0, 1), st.integers(0, 10**6), st.floats(-10, 1e6), st.floats(-10, 1e6))
def test_relevance_stays_between_0_and_10(
    importance: float, confidence: float, uses: int, age: float, idle: float
) -> None:
    assert 0 <= scoring.decayed(importance, confidence, uses, age, idle) <= 10


def test_levels_are_ordered_by_rank_and_not_by_letters() -> None:
    assert sorted(MemoryLevel, key=lambda one: one.rank) == [
        MemoryLevel.WORKING,
        MemoryLevel.EPISODIC,
        MemoryLevel.SEMANTIC,
        MemoryLevel.PROCEDURAL,
    ]


@pytest.mark.parametrize(
    ("told", "level"),
    [
        ({"level": "episodic", "access_count": 5, "confidence": 0.8}, "semantic"),
        ({"level": "episodic", "access_count": 4, "confidence": 1.0}, None),
        ({"level": "episodic", "access_count": 9, "confidence": 0.79}, None),
        ({"level": "semantic", "type": "procedure", "access_count": 10, "confidence": 0.9}, "procedural"),
        ({"level": "semantic", "type": "skill", "access_count": 9, "confidence": 1.0}, None),
        ({"level": "semantic", "type": "fact", "access_count": 99, "confidence": 1.0}, None),
        ({"level": "working", "access_count": 99, "confidence": 1.0}, None),
        ({"level": "procedural", "type": "skill", "access_count": 99}, None),
    ],
)
def test_promotion_needs_use_and_confidence(told: dict[str, object], level: str | None) -> None:
    told |= {"level": MemoryLevel(told["level"])}
    if "type" in told:
        told |= {"type": MemoryType(told["type"])}
    assert scoring.next_level(memory(**told)) == level


def test_the_focus_goes_to_what_the_last_actions_made() -> None:
    plain = memory("m1", importance=9.0)
    recent = memory("m2", importance=6.0, action="a7")
    question = memory("m3", importance=7.0, type=MemoryType.QUESTION)
    settled = memory("m4", importance=9.0, level=MemoryLevel.SEMANTIC)
    scores = [round(scoring.focus_score(one, NOW, {"a7"}), 2) for one in (plain, recent, question, settled)]
    assert scores == [5.4, 6.6, 5.7, 5.9]


def test_the_most_relevant_stay_in_mind_in_their_order() -> None:
    items = [memory(f"m{place}", importance=9.0 - place / 10) for place in range(30)]
    assert scoring.optimized(items, 20, {"m29"}, NOW) == (*(f"m{place}" for place in range(19)), "m29")


def test_what_fits_is_left_alone() -> None:
    items = [memory("m1"), memory("m2")]
    assert scoring.optimized(items, 2, (), NOW) == ("m1", "m2")


def test_kept_memories_stay_beyond_the_target() -> None:
    items = [memory(f"m{place}") for place in range(4)]
    assert scoring.optimized(items, 1, {"m1", "m3"}, NOW) == ("m1", "m3")


def test_suggested_links_follow_type_and_level() -> None:
    fact = memory("m1", type=MemoryType.FACT)
    settled = replace(fact, level=MemoryLevel.SEMANTIC)
    insight = memory("m2", type=MemoryType.INSIGHT)
    assert scoring.suggested_link(fact, fact) is LinkType.SEQUENTIAL
    assert scoring.suggested_link(settled, fact) is LinkType.SUPPORTS
    assert scoring.suggested_link(insight, fact) is LinkType.GENERALIZES
    assert scoring.suggested_link(fact, insight) is LinkType.RELATED


def test_old_links_weaken_and_then_go() -> None:
    link = MemoryLink("m1", "m2", LinkType.RELATED, 1.0, created_at=NOW)
    assert scoring.weakened(link, NOW + 14 * DAY) is None
    assert scoring.weakened(link, NOW + 14 * DAY + 1) == pytest.approx(0.95)
    assert scoring.weakened(replace(link, strength=0.104), NOW + 15 * DAY) == 0.0
