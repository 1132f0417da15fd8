"""When to reflect and consolidate: the worked numbers of the specification."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.memory import ReflectionKind
from engine.memory.metacognition.schedule import (
    CONSOLIDATION,
    REFLECTION,
    adapted_consolidation,
    adapted_reflection,
    consolidation_overdue,
)


def test_reflection_waits_longer_and_longer_while_nothing_fails() -> None:
    """9, 11, 14, 15, 15 from 7."""
    threshold, seen = 7, []
    for _ in range(5):
        threshold = adapted_reflection(threshold, 10, 0, 0)
        seen.append(threshold)
    assert seen == [9, 11, 14, 15, 15]


def test_a_pending_error_takes_the_momentum_away() -> None:
    """8 in the place of 9."""
    assert adapted_reflection(7, 10, 0, 1) == 8


@pytest.mark.parametrize(
    ("failures", "threshold"), [(4, 8), (5, 7), (8, 7), (12, 7), (20, 5), (30, 4), (50, 3), (100, 3)]
)
def test_failures_bring_reflection_sooner(failures: int, threshold: int) -> None:
    """F of 0.05 to 0.12, 0.20, 0.30, 0.50."""
    assert adapted_reflection(7, 100, failures, 0) == threshold


def test_four_calls_say_nothing() -> None:
    """All four failed."""
    assert adapted_reflection(7, 4, 4, 4) == 7


def test_consolidation_waits_while_little_is_episodic() -> None:
    """15, 19, 24, 25 from 12; 6 and 5 where much is."""
    threshold, seen = 12, []
    for _ in range(4):
        threshold = adapted_consolidation(threshold, 0, 10)
        seen.append(threshold)
    assert seen == [15, 19, 24, 25]
    assert [adapted_consolidation(12, episodic, 20) for episodic in (1, 7, 10, 14, 20)] == [14, 9, 6, 5, 5]


@pytest.mark.parametrize("episodic", [10, 13, 20, 27, 30])
def test_within_the_band_consolidation_does_not_move(episodic: int) -> None:
    """From 0.10 to 0.30."""
    assert adapted_consolidation(12, episodic, 100) == 12


def test_without_memories_nothing_is_adapted() -> None:
    """No memory says nothing about episodic ones."""
    assert adapted_consolidation(12, 0, 0) == 12


def test_more_than_twice_the_threshold_is_consolidated_at_once() -> None:
    """25 memories at a threshold of 12, and not 24."""
    assert consolidation_overdue(25, 12)
    assert not consolidation_overdue(24, 12)


def test_reflections_take_their_kinds_in_turn() -> None:
    """The sixth is of the first kind again."""
    kinds = [ReflectionKind.nth(index).value for index in range(6)]
    assert kinds == ["summary", "progress", "gaps", "strengths", "plan", "summary"]


@given(st.integers(3, 15), st.integers(0, 1_000), st.integers(0, 1_000), st.integers(0, 9))
def test_thresholds_never_leave_their_bounds(threshold: int, calls: int, failures: int, errors: int) -> None:
    reflect = adapted_reflection(threshold, calls, min(calls, failures), errors)
    assert REFLECTION.low <= reflect <= REFLECTION.high
    merge = adapted_consolidation(CONSOLIDATION.clamp(threshold), min(calls, failures), calls)
    assert CONSOLIDATION.low <= merge <= CONSOLIDATION.high
