"""A small project, a suite for it, and how a candidate for it is judged."""

from __future__ import annotations

import importlib.util
import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.core.improvement import Component, ComponentKind, Proposal, Verdict
from engine.improve.judge.judge import Judge, JudgeBudget
from engine.improve.ports import Call, Check, ExpectedAnswer, Measure, Split
from engine.sandbox.policy import Tier

ROOT = "sandbox/sums"
MODULE = f"{ROOT}/sums.py"
SETTINGS = f"{ROOT}/agent.json"
SUMS = '''"""Sums over lists."""


def mean(values):
    """The arithmetic mean."""
    if not values:
        raise ValueError("no values")
    total = 0
    for value in values:
        total += value
    return total / len(values)


def distinct(values):
    """The values without repetition, in their order."""
    found = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def squares(count):
    """The sum of the first squares."""
    total = 0
    for number in range(count):
        total += number * number
    return total


def clipped(value, low, high):
    """The value, or the nearer end."""
    if value < low:
        return low
    if value > high:
        return low
    return value
'''
"""`clipped` is wrong above the high end, and `distinct` is slow."""
TESTS = """import pytest

from sums import clipped, distinct, mean, squares


def test_mean_of_three_values():
    assert mean([1, 2, 6]) == 3


def test_mean_of_no_values():
    with pytest.raises(ValueError):
        mean([])


@pytest.mark.parametrize(("values", "count"), [([1, 1, 2], 2), ([], 0)])
def test_distinct_values_count(values, count):
    assert len(distinct(values)) == count


def test_sum_of_squares():
    assert squares(4) == 14


def test_clipped_within():
    assert clipped(5, 0, 9) == 5


def test_clipped_above():
    assert clipped(12, 0, 9) == 9
"""
FILES = {
    MODULE: SUMS,
    f"{ROOT}/tests/test_sums.py": TESTS,
    SETTINGS: '{"thinker": "procedural", "budget": {"usd": 1.0}}',
}
_NODES = (
    *("test_mean_of_three_values", "test_mean_of_no_values", "test_distinct_values_count[values0-2]"),
    *("test_distinct_values_count[values1-0]", "test_sum_of_squares", "test_clipped_within"),
    "test_clipped_above",
)
COMPONENT = Component("sums", ComponentKind.PROJECT, "Sums", (MODULE, SETTINGS))
FAST = SUMS.replace(
    """    found = []
    for value in values:
        if value not in found:
            found.append(value)
    return found""",
    """    return list(dict.fromkeys(values))""",
)
WASTEFUL = SUMS.replace(
    "        total += number * number\n",
    "        total += number * number\n    for number in range(count // 4):\n        total += number * 0\n",
)
"""`squares` goes a quarter of the way twice, for nothing; `SUMS` is better by a fifth."""
TWICE = WASTEFUL.replace("count // 4", "count")
"""`squares` goes the whole way twice: a gain that shows on a busy machine, too."""
NULLS = (
    ("total", "summed"),
    ("number", "n"),
    ("count", "how_many"),
    ("values", "items"),
    ("found", "seen_so_far"),
    ('"""The sum of the first squares."""', '"""Squares, added up.\n\n    From 0 on.\n    """'),
    ("def squares", "# Adds squares up, one after the other.\ndef squares"),
    ("return total\n", "return total  # all of them\n"),
    ('"""Sums over lists."""', '"""Sums over lists, and more."""'),
)
"""Changes of names and comments only: what is put in place of what."""


@dataclass(frozen=True)
class SumsSuite:
    """What is asked of the project: its tests, calls with known answers, and timed calls."""

    measure: Measure | None = field(default_factory=Measure.time)
    seed: int = 1
    tests: bool = True
    size: int = 2000
    timed: str = "sums:distinct"
    root: str = ROOT
    imports: tuple[str, ...] = (".",)
    plugins: tuple[str, ...] = ()

    @property
    def packages(self) -> tuple[Path, ...]:
        found = importlib.util.find_spec("pytest") if self.tests else None
        return (Path(found.origin).parents[1],) if found and found.origin else ()

    @property
    def key(self) -> str:
        return f"sums {self}"

    def checks(self, split: Split) -> tuple[Check, ...]:
        if split is Split.CHOOSE:
            return ()
        calls = self._clipped(split) + self._squares(split)
        if split is Split.WORK:
            nodes = _NODES if self.tests else ()
            return tuple(
                Check(f"tests/test_sums.py::{name}", split, test=f"tests/test_sums.py::{name}")
                for name in nodes
            ) + tuple(calls)
        return tuple(calls) + self._timed()

    def _clipped(self, split: Split) -> list[Check]:
        rng = random.Random(f"{self.seed} {split}")
        cases = [(12, 0, 9, 9), (5, 0, 9, 5), (-4, 0, 9, 0)]
        if split is Split.SEALED:
            cases = []
            for _ in range(6):
                low = rng.randint(-50, 50)
                high = low + rng.randint(1, 40)
                cases.append((high + rng.randint(1, 60), low, high, high))
        return [
            Check(
                f"clipped {number} {split}", split, (Call("sums:clipped", case[:3]),),
                expected=(ExpectedAnswer(case[3]),), family="clipped",
            )
            for number, case in enumerate(cases)
        ]  # fmt: skip

    def _squares(self, split: Split) -> list[Check]:
        rng = random.Random(f"squares {self.seed} {split}")
        counts = [4, 10, 33] if split is Split.WORK else [rng.randint(40, 400) for _ in range(4)]
        return [
            Check(
                f"squares of {count} {split}", split, (Call("sums:squares", (count,)),),
                expected=(ExpectedAnswer(sum(n * n for n in range(count))),), family="squares",
            )
            for count in counts
        ]  # fmt: skip

    def _timed(self) -> tuple[Check, ...]:
        if self.measure is None:
            return ()
        rng = random.Random(f"timed {self.seed}")
        found = []
        for number in range(6):
            size = self.size + rng.randint(-50, 50)
            if self.timed == "sums:distinct":
                args: tuple[Any, ...] = ([rng.randint(0, size * 2) for _ in range(size)],)
            else:
                args = (size * 60,)
            found.append(
                Check(
                    f"timed {number}", Split.SEALED, (Call(self.timed, args),), measured=True,
                    family=self.timed.partition(":")[2],
                )
            )  # fmt: skip
        return tuple(found)

    def owns(self, path: str) -> bool:
        return path.startswith(f"{ROOT}/tests/")

    def material(self, split: Split) -> Mapping[str, bytes]:
        return {}  # its tests lie in the tree


@dataclass
class Grounds:
    """Where candidates are made and judged."""

    place: Path
    files: Mapping[str, str] = field(default_factory=lambda: FILES)
    """What is there before."""
    tier: Tier = Tier.FULL
    judge: Judge = field(init=False)

    def __post_init__(self) -> None:
        self.judge = Judge(self.place / "workspace/.pilothouse/judge", at_most=self.tier)
        lay(self.place / "before", self.files)

    async def judged(
        self,
        files: Mapping[str, str | None],
        suite: Any = None,
        *,
        seed: int = 1,
        told: Mapping[str, str | None] | None = None,
        budget: JudgeBudget | None = None,
    ) -> Verdict:
        """The verdict on a candidate with these files; `told` is what its proposal says instead."""
        after = self.place / "after"
        shutil.rmtree(after, ignore_errors=True)
        lay(after, {**self.files, **files})
        proposal = Proposal("a change", "test", dict(files if told is None else told))
        return await self.judge.compare(
            self.place / "before", after, COMPONENT, proposal, suite or SumsSuite(), seed=seed, budget=budget
        )


def null(number: int, text: str = WASTEFUL) -> str:
    """A candidate that is no better: some names and comments are others, which ones depends on the number."""
    rng = random.Random(f"null {number}")
    for old, new in rng.sample(NULLS, rng.randint(1, 4)):
        text = text.replace(old, new)
    return text


def lay(tree: Path, files: Mapping[str, str | None]) -> None:
    """Put files into a tree; None leaves one out."""
    for path, text in files.items():
        if text is not None:
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text)
