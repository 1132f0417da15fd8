"""The interval of a paired comparison."""

from __future__ import annotations

import math
import random

import pytest

from engine.mastermind.judge.paired import paired, student
from engine.mastermind.judge.suite import Split, divided


@pytest.mark.parametrize(
    ("freedom", "value"), [(1, 12.7062), (4, 2.7764), (9, 2.2622), (30, 2.0423), (1000, 1.9623)]
)
def test_students_values_are_those_of_the_tables(freedom: int, value: float) -> None:
    assert student(0.975, freedom) == pytest.approx(value, abs=1e-4)


def test_few_pairs_show_nothing_and_equal_differences_are_sure() -> None:
    assert paired([5.0] * 5).low == -math.inf
    assert paired([2.0] * 6) == paired([2.0] * 6)
    assert (paired([2.0] * 6).low, paired([2.0] * 20).low) == (2.0, 2.0)
    assert (paired([]).mean, paired([]).low) == (0.0, -math.inf)
    assert not paired([0.0] * 10).low > 0


def test_one_pair_against_all_others_is_enough_to_doubt() -> None:
    assert paired([1.0] * 5 + [-1.0]).low < 0


@pytest.mark.parametrize("wrong", [[math.nan] * 6, [math.inf] * 6])
def test_only_finite_numbers_are_compared(wrong: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        paired(wrong)


@pytest.mark.parametrize("pairs", [6, 9, 30])
def test_no_difference_is_taken_for_a_gain_in_at_most_one_of_forty(pairs: int) -> None:
    rng = random.Random(pairs)
    # Even with outliers, as times have.
    draws = [[rng.gauss(0, 1) ** 3 for _ in range(pairs)] for _ in range(400)]
    shown = sum(paired(one).low > 0 for one in draws)
    assert shown <= 20  # 2.5 % of 400, and three times its spread


@pytest.mark.parametrize("pairs", [6, 9, 30])
def test_a_gain_that_is_there_is_found(pairs: int) -> None:
    rng = random.Random(pairs)
    assert all(paired([rng.gauss(20, 4) for _ in range(pairs)]).low > 0 for _ in range(100))


def test_tasks_are_split_by_the_seed_and_none_twice() -> None:
    first = divided(range(50), 7)
    assert first == divided(range(50), 7) != divided(range(50), 8)
    assert sorted(item for items in first.values() for item in items) == list(range(50))
    assert [len(first[split]) for split in Split] == [20, 10, 20]
