"""How long the parts of a report take as a day grows; each returns what is timed."""

from __future__ import annotations

from collections.abc import Callable

from orders import Order, customers, totals


def _day(size: int) -> list[Order]:
    return [Order(f"customer {number}", "tea", 3.5) for number in range(size)]


def bench_customers(size: int) -> Callable[[], object]:
    day = _day(size)
    return lambda: customers(day)


def bench_totals(size: int) -> Callable[[], object]:
    day = _day(size)
    return lambda: totals(day)
