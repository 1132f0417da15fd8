"""Orders as they come from the till, one a line: customer, article, amount."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class OrderError(ValueError):
    """A line that is no order; the message names the line."""


@dataclass(frozen=True)
class Order:
    """One article that one customer bought."""

    customer: str
    article: str
    amount: float


def parse_order(line: str) -> Order:
    """The order of a line such as `ada,tea,3.50`.

    Raises:
        OrderError: the line has not three parts, or its amount is no number.
    """
    parts = line.strip().split(",")
    return Order(parts[0].strip(), parts[1].strip(), float(parts[2]))


def read_orders(path: Path) -> list[Order]:
    """The orders of a file; empty lines are passed over."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [parse_order(line) for line in lines if line.strip()]


def customers(orders: list[Order]) -> list[str]:
    """Everybody who bought something, in the order of their first purchase."""
    seen = []
    for order in orders:
        if order.customer not in seen:
            seen.append(order.customer)
    return seen


def totals(orders: list[Order]) -> dict[str, float]:
    """What each customer spent."""
    spent: dict[str, float] = {}
    for order in orders:
        spent[order.customer] = spent.get(order.customer, 0.0) + order.amount
    return spent
