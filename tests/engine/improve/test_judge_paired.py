"""The interval of a paired comparison."""

from __future__ import annotations

import math
import random

import pytest

from engine.improve.judge.measurement import PairedRounds, measured_gain, paired_interval, student_t
from engine.improve.judge.questions import RoundResult
from engine.improve.judge.violations import canaries
from engine.improve.ports import Check, Measure, Split


@pytest.mark.parametrize(("freedom", "value"), [(14, 2.1448), (19, 2.0930), (30, 2.0423), (1000, 1.9623)])
def test_students_values_are_those_of_the_tables(freedom: int, value: float) -> None:
    assert student_t(0.975, freedom) == pytest.approx(value, abs=1e-4)


def test_few_pairs_show_nothing_and_equal_differences_are_sure() -> None:
    assert paired_interval([5.0] * 5).low == -math.inf
    assert paired_interval([2.0] * 6) == paired_interval([2.0] * 6)
    assert (paired_interval([2.0] * 6).low, paired_interval([2.0] * 20).low) == (2.0, 2.0)
    assert (paired_interval([]).mean, paired_interval([]).low) == (0.0, -math.inf)
    assert not paired_interval([0.0] * 10).low > 0


def test_one_pair_against_all_others_is_enough_to_doubt() -> None:
    assert paired_interval([1.0] * 5 + [-1.0]).low < 0


@pytest.mark.parametrize("wrong", [[math.nan] * 6, [math.inf] * 6])
def test_only_finite_numbers_are_compared(wrong: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        paired_interval(wrong)


@pytest.mark.parametrize("pairs", [6, 9, 30])
def test_no_difference_is_taken_for_a_gain_in_at_most_one_of_forty(pairs: int) -> None:
    rng = random.Random(pairs)
    # Even with outliers, as times have.
    draws = [[rng.gauss(0, 1) ** 3 for _ in range(pairs)] for _ in range(400)]
    shown = sum(paired_interval(one).low > 0 for one in draws)
    assert shown <= 20  # 2.5 % of 400, and three times its spread


@pytest.mark.parametrize("pairs", [6, 9, 30])
def test_a_gain_that_is_there_is_found(pairs: int) -> None:
    rng = random.Random(pairs)
    assert all(paired_interval([rng.gauss(20, 4) for _ in range(pairs)]).low > 0 for _ in range(100))


def test_trees_that_were_asked_in_different_numbers_of_rounds_are_not_compared() -> None:
    rounds = PairedRounds([RoundResult(), RoundResult()], [RoundResult()])
    with pytest.raises(ValueError, match="asked in 2 and 1 rounds"):
        measured_gain(rounds, [Check("a", Split.SEALED)], Measure("words"))


def test_canaries_have_names_of_their_own_where_the_tests_take_all_that_their_words_make() -> None:
    names = ["test_value" + "_value" * more for more in range(5)]
    source = "".join(f"def {name}():\n    assert 2 + 2 == 4\n\n\n" for name in names)
    checks = [Check(name, Split.WORK, test=f"test_all.py::{name}") for name in names]
    drawn = canaries(checks, {"test_all.py": source.encode()}, ".", 3)
    made = {check.test.rpartition("::")[2] for check in (*drawn.fails, *drawn.holds)}
    assert len(made) == len(drawn.fails) + len(drawn.holds)
    assert not made & set(names)
