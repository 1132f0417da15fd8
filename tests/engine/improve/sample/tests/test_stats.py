import pytest
from stats import mean, median, moving_average


def test_mean():
    assert mean([1.0, 2.0, 6.0]) == 3.0


def test_mean_of_nothing():
    with pytest.raises(ValueError):
        mean([])


@pytest.mark.parametrize(("values", "middle"), [([5.0], 5.0), ([3.0, 1.0, 2.0], 2.0)])
def test_median_of_an_odd_number(values, middle):
    assert median(values) == middle


def test_median_of_an_even_number():
    assert median([4.0, 1.0, 3.0, 2.0]) == 2.5


def test_moving_average():
    assert moving_average([1.0, 3.0, 5.0, 7.0], 2) == [2.0, 4.0, 6.0]
    assert moving_average([1.0, 3.0], 3) == []
