"""Figures about amounts."""

from __future__ import annotations


def mean(values: list[float]) -> float:
    """The arithmetic mean; ValueError when there is nothing to take it of."""
    if not values:
        raise ValueError("no values")
    return sum(values) / len(values)


def median(values: list[float]) -> float:
    """The middle value, or the mean of the two in the middle; ValueError when there are none."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return ordered[middle]
    return (ordered[middle] + ordered[middle + 1]) / 2


def moving_average(values: list[float], width: int) -> list[float]:
    """The means of each `width` values that follow each other."""
    if width < 1:
        raise ValueError("width is at least 1")
    return [mean(values[start : start + width]) for start in range(len(values) - width + 1)]
