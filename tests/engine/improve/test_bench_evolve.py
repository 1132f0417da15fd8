"""What the benchmark of campaigns plants, and which tests it holds back."""

from __future__ import annotations

from collections import Counter

import pytest

from engine.improve.code.source import Source
from tests.benchmarks.evolve.bugs import BUGS
from tests.benchmarks.evolve.plan import kinds_of, without
from tests.benchmarks.evolve.slownesses import SLOWNESSES, benchmarks

MODULE = '''import functools
import re

NAMES = {"a": 1, "b": 2}
PATTERN = re.compile("x+")


@functools.lru_cache
def work(items, size=3, sep="-"):
    """Do much."""
    seen = set()
    kept = []
    ordered = sorted(items)
    if not items or size == 0:
        raise ValueError("nothing")
    if size < 0:
        return None
    for item in items:
        if item not in seen and item in NAMES and "x" in item:
            seen.add(item)
            kept.append(NAMES.get(item, 0) + ordered[0] + items[0])
    try:
        total = (size + 1) * max(kept) - size
    except ValueError:
        raise KeyError(size)
    text = PATTERN.sub("", sep.replace("a", "b"))
    return divmod(total, len(text))
'''


@pytest.mark.parametrize("name", [*BUGS, *SLOWNESSES])
def test_each_class_has_a_place(name: str) -> None:
    source = Source(MODULE)
    texts = {source.edited(edits) for edits in (BUGS | SLOWNESSES)[name](source)} - {None}
    assert texts
    assert MODULE not in texts


def test_tests_are_taken_out_with_their_decorators() -> None:
    source = Source(
        "import pytest\n\n\n@pytest.mark.slow\ndef test_a():\n    assert 1\n\n\nclass TestB:\n"
        "    def test_c(self):\n        assert 2\n\n\ndef test_d():\n    assert 3\n"
    )
    left = Source(without(source, {"test_a", "TestB::test_c"}))
    assert [name for name, _ in left.functions] == ["test_d"]
    assert "pytest.mark" not in left.text


def test_half_of_sixty_have_bugs_and_twelve_nothing() -> None:
    kinds = kinds_of(60, 5)
    assert Counter(kind for kind, _ in kinds) == {"bug": 30, "slowness": 18, "untouched": 12}
    assert {name for _, name in kinds} == {*BUGS, *SLOWNESSES, ""}
    assert kinds == kinds_of(60, 5)


def test_benchmarks_are_modules_with_a_function_of_a_size() -> None:
    for text in benchmarks("own", "work", [(["a"], 2), ("x y",)]):
        assert [name for name, _ in Source(text).functions if name.startswith("bench_")] == ["bench_work"]
