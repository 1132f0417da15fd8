"""The report of a day."""

from __future__ import annotations

import sys
from pathlib import Path

from orders import Order, customers, read_orders, totals
from stats import mean, median


def render(orders: list[Order]) -> str:
    """The report as lines for people."""
    amounts = [order.amount for order in orders]
    spent = totals(orders)
    lines = [f"{len(orders)} orders, mean {mean(amounts):.2f}, median {median(amounts):.2f}"]
    lines += [f"{name:<12} {spent[name]:8.2f}" for name in customers(orders)]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Print the report of the file that is named."""
    if len(arguments) != 1:
        print("usage: report.py FILE", file=sys.stderr)
        return 2
    print(render(read_orders(Path(arguments[0]))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
