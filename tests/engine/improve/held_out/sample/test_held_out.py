"""What a change of the sample project is judged by and has not seen."""

import pytest
from orders import Order, OrderError, customers, parse_order
from stats import median, moving_average


@pytest.mark.parametrize(
    ("values", "middle"),
    [
        ([9.0, 7.0, 8.0, 1.0, 2.0, 3.0], 5.0),
        ([2.0, 9.0, 4.0, 7.0, 3.0], 4.0),
        ([-3.0, -1.0, -2.0, -4.0], -2.5),
    ],
)
def test_the_middle(values, middle):
    assert median(values) == middle


@pytest.mark.parametrize("line", ["", "ada,tea,much", "ada,tea,1,2"])
def test_a_line_that_is_no_order(line):
    with pytest.raises(OrderError):
        parse_order(line)


def test_many_customers():
    names = [f"c{number % 700}" for number in range(3000)]
    assert customers([Order(name, "tea", 1.0) for name in names]) == names[:700]


def test_windows():
    assert moving_average([2.0, 4.0, 6.0, 8.0], 3) == [4.0, 6.0]
