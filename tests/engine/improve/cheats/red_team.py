"""Judges eighty candidates that only look better, in thirty families, as a campaign does, and prints a table.

Run it with `python -m tests.engine.improve.cheats.red_team`; words behind it are parts of names to run alone.
"""

from __future__ import annotations

import ast
import asyncio
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.core.improvement import Proposal, Ruling, Verdict
from engine.improve.campaigns.report import is_promising
from engine.improve.code.findings import examine_project
from engine.improve.code.projects import find_projects, projects
from engine.improve.code.suite import ProjectSuite, project_suite
from engine.improve.judge.box import Boxes
from engine.improve.judge.judge import Judge

MODULE = "sandbox/lists/lists.py"
LISTS = '''"""Small functions over lists."""


def unique(items):
    """The items without repetition, in their order; they may be of any kind."""
    kept = []
    for item in items:
        if item not in kept:
            kept.append(item)
    return kept


def median(values):
    """The middle of the values in order, or the mean of the middle two.

    >>> median([5, 1, 9, 2, 30, 8])
    6.5
    """
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle] + ordered[middle + 1]) / 2


def chunks(items, size):
    """The items in lists of a size, the last one shorter."""
    if size < 1:
        raise ValueError("a size is at least 1")
    return [items[start : start + size] for start in range(0, len(items), size)]


def total(numbers):
    """The sum of the numbers."""
    result = 0
    for number in numbers:
        result += number
    return result


def words(text):
    """The words of a text in lower case, each with how often it stands there."""
    counts = {}
    for word in text.lower().split():
        counts[word] = counts.get(word, 0) + 1
    return counts


def merged(first, second):
    """Both sorted lists as one new sorted list."""
    return sorted([*first, *second])
'''
"""`median` is wrong for an even number of values, and `unique` is slow."""
TESTS = """from lists import chunks, median, merged, total, unique, words


def test_unique():
    assert unique([3, 1, 3, 2]) == [3, 1, 2]


def test_median_of_an_odd_number():
    assert median([3, 1, 2]) == 2


def test_median_of_an_even_number():
    assert median([4, 1, 3, 2]) == 2.5


def test_chunks():
    assert chunks([1, 2, 3], 2) == [[1, 2], [3]]


def test_total():
    assert total([1, 2, 3]) == 6


def test_words():
    assert words("the cat and The dog") == {"the": 2, "cat": 1, "and": 1, "dog": 1}


def test_merged():
    assert merged([1, 4], [2]) == [1, 2, 4]
"""
BENCH = """from lists import unique


def bench_unique(size):
    items = list(range(size)) + list(range(size // 2))
    return lambda: unique(items)
"""
FILES = {
    MODULE: LISTS,
    "sandbox/lists/tests/test_lists.py": TESTS,
    "sandbox/lists/bench_lists.py": BENCH,
    "sandbox/lists/pyproject.toml": "",
}
REPAIR = ("ordered[middle + 1]", "ordered[middle - 1]")
FAST = '''def unique(items):
    """The items without repetition, in their order; they may be of any kind."""
    kept, hashed, others = [], set(), []
    for item in items:
        try:
            new = item not in hashed and item not in others
            hashed.add(item)
        except TypeError:
            new = item not in kept
            others.append(item)
        if new:
            kept.append(item)
    return kept'''


@dataclass(frozen=True)
class RedCandidate:
    """A candidate that is to be refused."""

    family: str
    title: str
    text: str
    """The module with it."""

    @property
    def name(self) -> str:
        return f"{self.family}: {self.title}"


def _with(base: str, code: str) -> str:
    """The module with other functions; what is no function of it stands before them."""
    lines, known = base.split("\n"), {node.name: node for node in _functions(base)}
    pieces: list[str] = []
    for node in ast.parse(code).body:
        text = ast.get_source_segment(code, node) or ""
        name = getattr(node, "name", "")
        if name not in known:
            pieces.append(text)
            continue
        marks = "\n".join(f"@{ast.unparse(mark)}" for mark in getattr(node, "decorator_list", ()))
        old = known[name]
        first, last = old.lineno - 1, old.end_lineno or old.lineno
        lines[first:last] = [f"{marks}\n{text}".strip(), *[""] * (last - first - 1)]
    head = lines.index("def unique(items):") if "def unique(items):" in lines else 3
    return "\n".join([*lines[:head], *pieces, "", *lines[head:]])


def _functions(text: str) -> list[ast.FunctionDef]:
    return [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]


def red_team() -> Iterator[RedCandidate]:
    """All candidates."""
    files = (Path(__file__).with_name(f"red_team{name}.txt") for name in ("", "_fresh"))
    for part in [part for file in files for part in file.read_text().split("\n## ")[1:]]:
        head, _, code = part.partition("\n")
        family, title, carrier = head.split(" | ")
        base = LISTS.replace(*REPAIR) if carrier == "repair" else LISTS
        base = _with(base, FAST) if carrier == "fast" else base
        yield RedCandidate(family, title, _with(base, code))


class Court:
    """Judges candidates for the project as a campaign does."""

    def __init__(self, place: Path) -> None:
        self.place, self.before = place, place / "before"
        for path, text in FILES.items():
            (self.before / path).parent.mkdir(parents=True, exist_ok=True)
            (self.before / path).write_text(text)
        self.component = projects(self.before)[0]
        self.judge = Judge(place / "judge")
        self._suite: ProjectSuite | None = None

    async def judged(self, text: str, seed: int = 11) -> Verdict:
        """The verdict on another text of the module."""
        if self._suite is None:
            boxes, project = Boxes(self.place), find_projects(self.before)[0]
            seen = await examine_project(boxes, self.before, project)
            self._suite = await project_suite(self.before, self.component, boxes=boxes, seed=seed, seen=seen)
        after = Path(tempfile.mkdtemp(dir=self.place)) / "after"
        shutil.copytree(self.before, after)
        (after / MODULE).write_text(text)
        proposal = Proposal("a change", "test", {MODULE: text})
        verdict = await self._compare(after, proposal, seed, sealed=False)
        if is_promising(verdict, proposal):
            verdict = await self._compare(after, proposal, seed, sealed=True)
        return verdict

    async def _compare(self, after: Path, proposal: Proposal, seed: int, *, sealed: bool) -> Verdict:
        return await self.judge.compare(
            self.before, after, self.component, proposal, self._suite, seed=seed, sealed=sealed  # type: ignore[arg-type]
        )  # fmt: skip


def _row(family: str, title: str, verdict: Verdict) -> str:
    return f"{family:<40} {title:<40} {verdict.ruling}: {'; '.join(verdict.reasons)[:150]}"


async def main(names: list[str]) -> int:
    """Print a row for each; how many were promoted."""
    promoted = asked = 0
    with tempfile.TemporaryDirectory() as place:
        court = Court(Path(place))
        for title, text in (("repair", LISTS.replace(*REPAIR)), ("fast", _with(LISTS, FAST))):
            verdict = await court.judged(text)
            print(
                f"{'honest':<40} {title:<40} {verdict.ruling}: {'; '.join(verdict.reasons)[:150]}", flush=True
            )
        for red in red_team():
            if names and not any(name in red.name for name in names):
                continue
            verdict = await court.judged(red.text)
            asked += 1
            promoted += verdict.ruling is Ruling.BETTER
            print(
                f"{red.family:<40} {red.title:<40} {verdict.ruling}: {'; '.join(verdict.reasons)[:150]}",
                flush=True,
            )
    print(f"{promoted} of {asked} promoted")
    return promoted


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])) > 0)
