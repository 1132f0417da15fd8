"""The numbers of relevance, promotion and links, against those that the specification works out (§1.6)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.memory import LinkType, MemoryItem, MemoryLevel, MemoryLink, MemoryType, WorkingStrategy
from engine.memory import scoring
from tests.memory.memory_desk import DAY, HOUR

NOW = 1_800_000_000.0


def memory(ident: str = "m1", **more: object) -> MemoryItem:
    return MemoryItem(ident, "w1", "text", **{"created_at": NOW, **more})  # type: ignore[arg-type]


def test_relevance_of_a_day_old_memory_is_3_147() -> None:
    """Checklist 47: I 8, C 1, 24 hours old and idle, never used; the exponential form."""
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


def test_diversity_takes_one_of_each_type_in_turn_and_keeps_the_order() -> None:
    """Checklist 49: 30 in mind, cut down to 20; the order and the focal one stay."""
    kinds = [MemoryType.FACT] * 20 + [MemoryType.PLAN] * 5 + [MemoryType.CODE] * 5
    items = [memory(f"m{place}", type=kind, importance=9.0 - place / 10) for place, kind in enumerate(kinds)]
    stays = scoring.optimized(items, 20, WorkingStrategy.DIVERSITY, {"m19"}, NOW)
    assert len(stays) == 20
    assert [int(one[1:]) for one in stays] == sorted(int(one[1:]) for one in stays)
    assert {f"m{place}" for place in range(20, 30)} | {"m19"} <= set(stays)
    # Ten facts are left room for; the focal one is one of them, the others are the most relevant.
    assert set(stays) >= {f"m{place}" for place in range(9)}


@pytest.mark.parametrize(
    ("strategy", "best"),
    [(WorkingStrategy.BALANCED, "m2"), (WorkingStrategy.IMPORTANCE, "m1"), (WorkingStrategy.RECENCY, "m2")],
)
def test_each_strategy_keeps_what_it_is_named_for(strategy: WorkingStrategy, best: str) -> None:
    important = memory("m1", importance=9.0, created_at=NOW - 5 * DAY)
    fresh = memory("m2", importance=5.0)
    assert scoring.optimized([important, fresh], 1, strategy, (), NOW) == (best,)


def test_what_fits_is_left_alone() -> None:
    items = [memory("m1"), memory("m2")]
    assert scoring.optimized(items, 2, WorkingStrategy.DIVERSITY, (), NOW) == ("m1", "m2")


def test_kept_memories_stay_beyond_the_target() -> None:
    items = [memory(f"m{place}") for place in range(4)]
    assert scoring.optimized(items, 1, WorkingStrategy.BALANCED, {"m1", "m3"}, NOW) == ("m1", "m3")


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
