"""Projects that are made of packages by a seed: what is planted where, and which tests a campaign sees."""

from __future__ import annotations

import ast
import json
import random
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from engine.improve.code.findings import DRIVER, bench_calls, driver_text
from engine.improve.code.projects import module_name, project_box, run_tests
from engine.improve.code.source import Edit, Source
from engine.improve.judge.box import Box, BoxError, Boxes
from tests.benchmarks.evolve.bugs import BUGS, Edits
from tests.benchmarks.evolve.packages import Package
from tests.benchmarks.evolve.slownesses import SLOWNESSES, benchmarks

HELD_BACK = 0.4
"""The share of tests that a campaign does not see."""
_TRIES, _BENCHES = 6, 6
"""Places of a package that are tried for one class, and benchmarks for one place."""
_SIZE, _RATIO, _LEAST_S, _MOST_S = 2_000, 1.3, 0.001, 4.0
"""Where a slowness is measured, what makes one, and how long a benchmark takes."""
BUG, SLOW, UNTOUCHED = "bug", "slowness", "untouched"


@dataclass
class Planted:
    """One project."""

    kind: str
    name: str
    """The class of what was planted."""
    package: str
    path: str = ""
    text: str = ""
    """The module with what was planted."""
    words: str = ""
    """The lines that were changed, before and after."""
    failing: list[str] = field(default_factory=list)
    bench: str = ""
    seconds: list[float] = field(default_factory=list)
    """What the benchmark took before and afterwards."""
    hidden: list[str] = field(default_factory=list)
    """Tests that are held back, without their parameters."""

    def lay(self, package: Package, workspace: Path) -> str:
        """Put the project into a workspace; its id."""
        directory = package.seen.project.directory
        shutil.copytree(package.root / directory, workspace / directory)
        gone = set(self.hidden) | {base(test) for test in package.seen.tests if test not in package.passing}
        for path, source in package.seen.test_sources.items():
            text = without(source, {name.partition("::")[2] for name in gone if name.startswith(f"{path}::")})
            (workspace / package.path(path)).write_text(text)
        if self.text:
            (workspace / package.path(self.path)).write_text(self.text)
        if self.bench:
            (workspace / package.path("bench_own.py")).write_text(self.bench)
        return package.seen.project.id

    def note(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name not in ("text", "bench")}


def base(test: str) -> str:
    return test.partition("[")[0]


def without(source: Source, names: set[str]) -> str:
    """A file of tests without some of them."""
    edits = []
    for name, function in source.functions:
        if name.replace(".", "::") in names:
            first = min([function.lineno, *(node.lineno for node in function.decorator_list)])
            assert function.end_lineno is not None
            above = source.parents[function]
            start, end = source.offset(first, 0), source.offset(function.end_lineno, 0)
            end = source.text.find("\n", end) + 1 or len(source.text)
            alone = isinstance(above, ast.ClassDef)
            edits.append(Edit(start, end, f"{source.indent(function)}pass\n" if alone else ""))
    return source.edited(edits) or source.text


def hidden(package: Package, failing: set[str], rng: random.Random) -> list[str] | None:
    """Tests to hold back, so that one that fails is left; None where there is no such choice."""
    used = {name for source in package.seen.test_sources.values() for name in called(source)}
    groups = sorted({base(test) for test in package.passing if base(test).rpartition("::")[2] not in used})
    bad = sorted({base(test) for test in failing})
    rng.shuffle(bad)
    kept, back = bad[:1], bad[1:2]
    rest = [group for group in groups if group not in (*kept, *back)]
    return sorted({*back, *(group for group in rest if rng.random() < HELD_BACK)})


def called(source: Source) -> set[str]:
    """Functions of tests that other tests call."""
    return {node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name)}


def line_of(source: Source, edits: Sequence[Edit]) -> int:
    return source.text.count("\n", 0, min(edits).start) + 1


def sites(
    package: Package, plant: Callable[[Source], Edits], rng: random.Random
) -> list[tuple[str, str, int]]:
    """Where a class can be planted so that a test runs it: path, text and line, in random order."""
    made = []
    for path, source in sorted(package.sources.items()):
        options = [edits for edits in plant(source) if package.tests_of(path, line_of(source, edits))]
        made += [(path, edits) for edits in rng.sample(options, min(40, len(options)))]
    rng.shuffle(made)
    places = (
        (path, package.sources[path].edited(edits), line_of(package.sources[path], edits))
        for path, edits in made
    )
    return [(path, text, line) for path, text, line in places if text is not None]


def changed(before: str, after: str) -> str:
    old, new = before.split("\n"), after.split("\n")
    gone, come = [line for line in old if line not in new], [line for line in new if line not in old]
    return (
        " / ".join(line.strip() for line in gone[:3]) + " -> " + " / ".join(line.strip() for line in come[:4])
    )


async def failing_in(box: Box, package: Package, files: dict[str, str]) -> set[str]:
    """The tests that pass in a package and do not with other contents of files; all where it hangs."""
    results = {}
    with suppress(BoxError):
        texts = {package.path(path): text for path, text in files.items()}
        results = await run_tests(box, files=texts, limit_s=15 + 2 * package.seen.suite_s)
    return {test for test in package.passing if results.get(test, {}).get("outcome") != "passed"}


async def timed(box: Box, package: Package, bench: str, path: str, text: str, rank: int = 0) -> float:
    """Processor seconds of a benchmark with a text of a module; 0 where it fails.

    Args:
        rank: which of five runs counts, 0 for the quickest.
    """
    name = next(line for line in bench.split("\n") if line.startswith("def bench_"))[4:].partition("(")[0]
    driver = driver_text([("bench_own.py", name)]).decode()
    files = {path: text, "bench_own.py": bench, DRIVER: driver}
    took = []
    for _ in range(5):
        calls = {"calls": bench_calls(0, _SIZE), "ready": 1, "measured": True}
        asked = calls | {"files": {package.path(inside): words for inside, words in files.items()}}
        answer = await box.put(asked, 20.0)
        answers = answer.said.get("answers") or [{"raises": "late"}]
        if answer.late or any("raises" in given for given in answers):
            return 0.0
        took.append(answer.clocks["done"] - answer.clocks["ready"])
    return sorted(took)[rank]


async def bug(name: str, package: Package, boxes: Boxes, rng: random.Random) -> Planted | None:
    """A bug of a class in a package; None where none can be planted that a test shows."""
    places = sites(package, BUGS[name], rng)[:_TRIES]
    if not places:
        return None
    async with project_box(boxes, package.root, package.seen.project) as box:
        for path, text, _ in places:
            bad = await failing_in(box, package, {path: text})
            if 0 < len(bad) < max(2, len(package.passing) // 2):
                words, back = changed(package.sources[path].text, text), hidden(package, bad, rng)
                if back is not None:
                    return Planted(BUG, name, package.name, path, text, words, sorted(bad), hidden=back)
    return None


def entries(package: Package, path: str, line: int) -> Iterator[tuple[str, str, list[tuple[object, ...]]]]:
    """Functions that tests call where they run a line, the line's own first: module, name and inputs."""
    own = {name for name, node in package.sources[path].functions
           if node.lineno <= line <= (node.end_lineno or 0)}  # fmt: skip
    inputs: dict[str, list[tuple[object, ...]]] = {}
    for test in package.tests_of(path, line)[:20]:
        for name, texts in package.seen.tests[test]["inputs"].items():
            for text in texts:
                with suppress(ValueError, SyntaxError):
                    given = ast.literal_eval(text)
                    if given not in inputs.setdefault(name, []):
                        inputs[name].append(given)
    there = [
        (name not in own, module, name)
        for module, source in package.sources.items()
        for name, node in source.functions
        if "." not in name
        and not name.startswith("_")
        and name in inputs
        and isinstance(node, ast.FunctionDef)
    ]
    for _, module, name in sorted(there):
        yield module_name(package.seen.project, package.root, module)[0], name, inputs[name]


async def slowness(name: str, package: Package, boxes: Boxes, rng: random.Random) -> Planted | None:
    """A slowness of a class in a package; None where none can be planted that a benchmark shows."""
    places = sites(package, SLOWNESSES[name], rng)[:_TRIES]
    if not places:
        return None
    async with project_box(boxes, package.root, package.seen.project) as box:
        for path, text, line in places:
            before = package.sources[path].text
            best: tuple[float, float, float, str] = (0.0, 0.0, 0.0, "")
            benches = [
                text for entry in list(entries(package, path, line))[:3] for text in benchmarks(*entry)
            ]
            for bench in rng.sample(benches, min(_BENCHES, len(benches))):
                slow = await timed(box, package, bench, path, text)
                if not _LEAST_S < slow < _MOST_S:
                    continue
                quick = await timed(box, package, bench, path, before, rank=2)
                best = max(best, (slow / quick if quick else 0.0, quick, slow, bench))
            if best[0] >= _RATIO and not await failing_in(box, package, {path: text}):
                words, back = changed(before, text), hidden(package, set(), rng) or []
                return Planted(SLOW, name, package.name, path, text, words, [], best[3], [*best[1:3]], back)
    return None


async def untouched(package: Package, boxes: Boxes, rng: random.Random) -> Planted:
    """A package as it is, with a benchmark where one of its functions can have one."""
    options = [
        (path, line) for path, source in package.sources.items()
        for line in [node.body[0].lineno for name, node in source.functions if "." not in name]
        if package.tests_of(path, line)
    ]  # fmt: skip
    planted = Planted(UNTOUCHED, "", package.name, hidden=hidden(package, set(), rng) or [])
    for path, line in rng.sample(options, min(3, len(options))):
        for entry in list(entries(package, path, line))[:1]:
            for bench in list(benchmarks(*entry))[:2]:
                async with project_box(boxes, package.root, package.seen.project) as box:
                    if (
                        _LEAST_S
                        < await timed(box, package, bench, path, package.sources[path].text)
                        < _MOST_S
                    ):
                        planted.bench = bench
                        return planted
    return planted


async def planned(
    kinds: Sequence[tuple[int, str, str]],
    packages: Sequence[Package],
    spare: Sequence[Package],
    boxes: Boxes,
    seed: int,
    notes: Path,
) -> AsyncIterator[tuple[int, Planted]]:
    """A project for each number, kind and class that can be had, packages in turn.

    Args:
        kinds: what is wanted.
        packages: where it is planted.
        spare: where slownesses are planted that the packages have no place for.
        boxes: makes boxes for trying it.
        seed: draws the places.
        notes: a file in which what was made is kept for the next time.
    """

    def noted() -> dict[str, Any]:
        return json.loads(notes.read_text()) if notes.is_file() else {}  # type: ignore[no-any-return]

    known = noted()
    taken = {package.name: 0 for package in (*packages, *spare)}
    for number, kind, name in kinds:
        rng, key = random.Random(f"{seed} {number} {kind} {name}"), str(number)
        made = Planted(**known[key]) if known.get(key) else None
        in_turn = sorted(packages, key=lambda package: (taken[package.name], rng.random()))
        for package in (*in_turn, *(spare if kind == SLOW else ())):
            if made is not None or key in known:
                break
            plant = {BUG: bug, SLOW: slowness}.get(kind)
            made = await (plant(name, package, boxes, rng) if plant else untouched(package, boxes, rng))
        if key not in known:  # another run may write others
            notes.write_text(json.dumps(noted() | {key: made and asdict(made)}))
        if made is not None:
            taken[made.package] += 1
            yield number, made


def kinds_of(count: int, seed: int) -> list[tuple[str, str]]:
    """Kinds and classes for a number of projects: half bugs, a third slownesses, the rest untouched."""
    bugs, slow = round(count / 2), round(count * 0.3)
    rng, kinds = random.Random(f"kinds {seed}"), []
    for kind, names, many in ((BUG, list(BUGS), bugs), (SLOW, list(SLOWNESSES), slow)):
        order = [name for _ in range(many // len(names) + 1) for name in rng.sample(names, len(names))]
        kinds += [(kind, name) for name in order[:many]]
    return [*kinds, *[(UNTOUCHED, "")] * (count - bugs - slow)]
