"""Where a fault may be, by the lines that failing tests run and passing ones do not (Ochiai's measure)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

Suspicion = dict[tuple[str, int], float]
"""By file and line, 0 to 1."""
BAD = ("failed", "error")


def suspicion(tests: Mapping[str, Mapping[str, Any]], failing: Collection[str]) -> Suspicion:
    """How suspect each line is of what fails in some tests.

    Args:
        tests: what became of all tests, with the lines of each; those of other failing tests do not count.
        failing: ids of the tests that are to be mended.
    """
    bad: Counter[tuple[str, int]] = Counter()
    good: Counter[tuple[str, int]] = Counter()
    for test, said in tests.items():
        count = bad if test in failing else good if said["outcome"] == "passed" else None
        if count is not None:
            count.update((path, line) for path, lines in said.get("lines", {}).items() for line in lines)
    return {
        place: times / math.sqrt(len(failing) * (times + good[place]))
        for place, times in bad.items()
        if times
    }
