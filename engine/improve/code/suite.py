"""What a changed project is judged by: its tests, tests held out, calls compared, benchmarks of other sizes.

What a candidate could have broken, and the sizes that it is timed at, are drawn once it is known. Benchmarks
count for the gain where they grow steeply, and all where none does.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import math
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from engine.core.improvement import Component
from engine.core.offload import in_thread
from engine.improve.code.differential import drawn_checks, read_module
from engine.improve.code.findings import (
    DRIVER,
    SIZES,
    ExaminedProject,
    bench_calls,
    bench_functions,
    driver_text,
    examine_project,
    growth_of,
    read_sources,
)
from engine.improve.code.inputs import example_arguments
from engine.improve.code.projects import (
    BAD,
    SETTINGS,
    Project,
    ProjectInBox,
    Tests,
    is_bench,
    is_test,
    project_box,
    project_of,
    run_tests,
)
from engine.improve.code.small_changes import differing, is_pinned, is_small, lets_through, stands_elsewhere
from engine.improve.code.source import Source, called_name, parse_source, read_bytes, walk_files
from engine.improve.judge.box import BoxError, Boxes
from engine.improve.ports import Call, Check, Measure, Split

_NOTHING_BESIDE = (
    "it has neither tests nor a benchmark, so nothing could show a change of it to be better; put "
    "test_{stem}.py beside it, or bench_{stem}.py with a function bench_…(size)"
)
HELD_OUT = "held_out"
"""The directory of tests that candidates do not see, in the project or in the workspace's own directory."""
_CALL_WORK = 2_000_000
"""Counted work of one timed call: some 30 ms, so that what the machine does besides is small to it."""
_COUNTED = 0.5
"""Exponent below which the work that can be counted says nothing about larger sizes."""
_SPREAD = (0.7, 1.4)
"""Sizes are drawn from this range around the one that takes so long."""
_LARGEST = 16_384
"""More takes longer to make ready and to read than to time."""
_SIZES_EACH = 3
_FORMAT = "drawn for each candidate 1"
"""Of what is asked; another one makes verdicts be given anew."""


@dataclass(frozen=True, kw_only=True)
class ProjectSuite(ProjectInBox):
    """The suite of one project; see `engine.improve.ports.BoxedSuite`."""

    key: str
    measure: Measure | None
    asked: tuple[Check, ...]
    files: Mapping[str, bytes]
    """Held-out tests, by path from the root that components count from; candidates never see them."""
    driver: Mapping[str, bytes]
    owned: frozenset[str]
    seen: ExaminedProject = field(repr=False, compare=False)
    """The project as it was examined, from which more is drawn once a candidate is known."""
    benches: tuple[tuple[str, str], ...]

    def drawn(self, before: Path, after: Path, seed: str) -> list[Check]:
        """Sealed checks of what changed between two trees, and sizes for benchmarks; blocking."""
        rng = random.Random(f"sizes {seed}")
        timings = [
            check
            for number, bench in enumerate(self.benches)
            for check in _timings(number, bench, self.seen, rng, Split.SEALED, _SIZES_EACH)
        ]
        doubted, known = untrusted_functions(self.seen), known_arguments(self.seen)
        return [*timings, *drawn_checks(before, after, self.seen, doubted, known, seed)]

    async def backed(
        self, boxes: Boxes | None, before: Path, after: Path, mended: Sequence[str], seed: str
    ) -> bool:
        """Whether the code around a small change shows that it mends rightly what it mends."""
        changed = {
            path: (source, new)
            for path, source in self.seen.sources.items()
            if (new := read_module(after / self.seen.project.path(path))) and new.text != source.text
        }
        if boxes is None or len(changed) != 1:
            return False
        [(path, (old, new))] = changed.items()
        pairs = list(differing(old.tree, new.tree))
        if lets_through(old, pairs) or stands_elsewhere(self.seen.sources, path, old, new, pairs):
            return True
        return is_small(old, pairs) and await is_pinned(
            boxes, after, self.seen, path, new, pairs, mended, seed
        )

    def checks(self, split: Split) -> Sequence[Check]:
        """The checks of a split."""
        return [question for question in self.asked if question.split is split]

    def material(self, split: Split) -> Mapping[str, bytes]:
        """The files of a split: what runs benchmarks, and the held-out tests once it is sealed."""
        return {**self.driver, **(self.files if split is Split.SEALED else {})}

    def owns(self, path: str) -> bool:
        """Whether a file is one of those by which the project is judged."""
        inner = path.removeprefix(f"{self.root}/") if self.root != "." else path
        if path in self.owned or is_test(inner) or is_bench(inner):
            return True
        return PurePosixPath(inner).name in (*SETTINGS, DRIVER) or inner.startswith(f"{HELD_OUT}/")


_NOT_RUN = ("skipped", "xfailed")
_REFUSING = frozenset({"raises", "assertRaises", "assertRaisesRegex"})
"""What tests call that ask for an exception."""


async def project_suite(
    root: Path,
    component: Component,
    *,
    boxes: Boxes,
    seed: int,
    held_out: Path | None = None,
    seen: ExaminedProject | None = None,
) -> ProjectSuite:
    """The suite of a project or of the project that a module belongs to.

    Args:
        root: the tree as it is before any change: a workspace's directory, or a copy of it.
        component: the project or module.
        boxes: makes boxes, in which is examined what holds before.
        seed: draws inputs and sizes; the same seed gives the same suite.
        held_out: the directory with tests for each project, by its id; `.pilothouse/held_out` of a workspace.
        seen: the project as it was looked at in this tree; looked at anew where it is not given.

    Raises:
        BoxError: there is no such project, nothing can be run, or there is nothing to judge it by.
    """
    project = project_of(root, component)
    if project is None:
        raise BoxError(f"{component.id} is no Python project below the sandbox")
    if project.alone and not (project.asked or project.benches):
        raise BoxError(_NOTHING_BESIDE.format(stem=PurePosixPath(project.modules[0]).stem))
    if seen is None:
        seen = await examine_project(boxes, root, project)
    if seen.problem:
        raise BoxError(seen.problem)
    files = await in_thread(_held_out_files, root, project, held_out)
    rng = random.Random(f"suite {seed}")
    families = await in_thread(test_families, seen.test_sources, seen)
    asked = [_test_check(seen, test, Split.WORK, families) for test in _tests_run(seen)]
    families = await in_thread(_held_out_families, files, seen)
    held_out_tests = await _held_out_tests(root, project, boxes, files)
    asked += [_test_check(seen, test, Split.SEALED, families) for test in held_out_tests]
    benches = bench_functions(seen.bench_sources)
    for number, bench in enumerate(benches):
        asked += _timings(number, bench, seen, rng, Split.CHOOSE, 1)
    if not asked:
        raise BoxError(f"{component.id} has no tests, no benchmarks and no function that can be asked")
    inside = ProjectInBox.of(root, project)
    held = {project.path(f"{HELD_OUT}/{name}"): data for name, data in files.items()}
    driver = {project.path(DRIVER): driver_text(benches)} if benches else {}
    key = (_FORMAT, tuple(asked), inside.root, inside.imports, inside.plugins)
    return ProjectSuite(
        **asdict(inside),
        key=await in_thread(_key, root, project, repr(key), {**held, **driver}),
        measure=Measure.time() if benches else None,
        asked=tuple(asked),
        files=held,
        driver=driver,
        owned=frozenset(project.path(path) for path in (*project.tests, *project.benches)),
        seen=seen,
        benches=tuple(benches),
    )


def _held_out_families(files: Mapping[str, bytes], seen: ExaminedProject) -> dict[str, str]:
    texts = {f"{HELD_OUT}/{name}": data.decode("utf-8", "replace") for name, data in files.items()}
    sources = {path: source for path, text in texts.items() if (source := parse_source(text))}
    return test_families(sources, seen)


def _tests_run(seen: ExaminedProject) -> list[str]:
    """Tests by id; one that passes with all its parameters is asked with all of them at once."""
    asked: list[str] = []
    for function, group in itertools.groupby(sorted(seen.tests), lambda test: test.partition("[")[0]):
        results = {test: seen.tests[test]["outcome"] for test in group}
        ran = [test for test, outcome in results.items() if outcome not in _NOT_RUN]
        asked += [function] if {*results.values()} == {"passed"} else ran
    return asked


def _test_check(seen: ExaminedProject, test: str, split: Split, families: Mapping[str, str]) -> Check:
    family = families.get(test.partition("[")[0], "")
    source = seen.test_sources.get(test.partition("::")[0])
    last = test.partition("[")[0].rpartition("::")[2]
    asks = [node for name, node in (source.functions if source else ()) if name.rpartition(".")[2] == last]
    called = [node for function in asks for node in ast.walk(function) if isinstance(node, ast.Call)]
    calls = {ast.dump(node) for node in called if called_name(node) == family.rpartition(":")[2]}
    refuses = any(called_name(node) in _REFUSING for node in called)
    return Check(test, split, test=test, family=family, cases=max(1, len(calls)), refuses=refuses)


def _timings(
    number: int, bench: tuple[str, str], seen: ExaminedProject, rng: random.Random, split: Split, count: int
) -> list[Check]:
    path, name = bench
    counted = f"{path}::{name}" in seen.steep or not seen.steep
    base = _base(seen.work.get(f"{path}::{name}", [])) if counted else SIZES[-1]
    sizes = [max(1, round(base * rng.uniform(*_SPREAD))) for _ in range(count)]
    return [
        Check(
            f"{name} of {size}", split, calls=tuple(Call(*call) for call in bench_calls(number, size)),
            family=name, measured=counted, ready=1,
        )
        for size in sizes
    ]  # fmt: skip


def _key(root: Path, project: Project, asked: str, files: Mapping[str, bytes]) -> str:
    """The hash of all that a suite is made of, the project's own tests and benchmarks among it."""
    digest = hashlib.sha256(asked.encode())
    for path, data in sorted(files.items()):
        digest.update(path.encode() + b"\0" + data)
    for path in sorted((*project.tests, *project.benches)):
        digest.update(path.encode() + b"\0" + read_bytes(root / project.path(path)))
    return digest.hexdigest()


def _held_out_files(root: Path, project: Project, held_out: Path | None) -> dict[str, bytes]:
    """Held-out tests by path within their directory; those of the workspace go before the project's own."""
    files: dict[str, bytes] = {}
    places = [root / project.directory / HELD_OUT]
    places += [held_out / project.id] if held_out is not None else []
    for place in places:
        if place.is_dir():
            for path in walk_files(place):
                files[path] = read_bytes(place / path)
    return files


def estimate_checks(root: Path, component: Component, held_out: Path | None) -> dict[str, str]:
    """What a project is going to be asked, in words by split; by the names in its files, nothing is run."""
    project = project_of(root, component)
    if project is None:
        return {}
    texts = [read_bytes(root / project.path(path)) for path in project.tests]
    own = _named(texts, b"test_")
    held = _named(_held_out_files(root, project, held_out).values(), b"test_")
    benches = len(bench_functions(read_sources(root, project, project.benches)))
    sizes = f" of each of {benches} benchmarks; " if benches else ""
    calls = "calls of what changed, drawn then and compared with the code before"
    return {
        "work": f"{own} test functions of its own",
        "choose": f"1 drawn size{sizes}".removesuffix("; ") if sizes else "",
        "sealed": f"{held} held-out test functions; "
        f"{f'{_SIZES_EACH} drawn sizes{sizes}' if sizes else ''}{calls}",
    }


def _named(texts: Iterable[bytes], prefix: bytes) -> int:
    """How many functions begin with a prefix."""
    return sum(len(re.findall(rb"^[ \t]*(?:async )?def " + prefix, text, re.M)) for text in texts)


async def _held_out_tests(
    root: Path, project: Project, boxes: Boxes, files: Mapping[str, bytes]
) -> list[str]:
    """The ids of held-out tests."""
    tests = [f"{HELD_OUT}/{name}" for name in files if PurePosixPath(name).name.startswith("test_")]
    if not tests:
        return []
    held = {project.path(f"{HELD_OUT}/{name}"): data for name, data in files.items()}
    results: Tests = {}
    with suppress(BoxError):
        async with project_box(boxes, root, project, held) as box:
            results = await run_tests(box, sorted(tests))
    return [test for test, result in sorted(results.items()) if result["outcome"] != "skipped"]


def test_families(sources: Mapping[str, Source], seen: ExaminedProject) -> dict[str, str]:
    """The function of the project that each test asks about, the first one that it calls, by its id."""
    known = {
        name.rpartition(".")[2]: f"{PurePosixPath(path).stem}:{name}"
        for path, source in seen.sources.items()
        for name, _ in source.functions
    }
    families = {}
    for path, source in sources.items():
        for name, function in source.functions:
            calls = sorted(
                (node.lineno, node.col_offset, known[called_name(node)])
                for node in ast.walk(function)
                if isinstance(node, ast.Call) and called_name(node) in known
            )
            if calls:
                families[f"{path}::{name.replace('.', '::')}"] = calls[0][2]
    return families


_MOST_KNOWN = 16


def known_arguments(seen: ExaminedProject) -> dict[str, list[tuple[Any, ...]]]:
    """Arguments that tests give to functions, by their last names: as they stand there, and as recorded."""
    known = example_arguments(seen.test_sources.values())
    for result in seen.tests.values():
        for name, texts in result.get("inputs", {}).items():
            for text in texts if len(known.setdefault(name, [])) < _MOST_KNOWN else ():
                with suppress(ValueError, SyntaxError, TypeError, MemoryError):
                    known[name].append(ast.literal_eval(text))
    return known


def untrusted_functions(seen: ExaminedProject) -> set[str]:
    """Last names of functions whose answers are not trusted: failing tests run them, or they call such."""
    names: set[str] = set()
    bad = [result.get("lines", {}) for result in seen.tests.values() if result["outcome"] in BAD]
    for path, source in seen.sources.items():
        for name, function in source.functions:
            body = range(function.body[0].lineno, (function.end_lineno or function.lineno) + 1)
            if any(line in body for lines in bad for line in lines.get(path, ())):
                names.add(name.rpartition(".")[2])
    calls = {
        name.rpartition(".")[2]: {called_name(node) for node in ast.walk(function)}
        for source in seen.sources.values()
        for name, function in source.functions
    }
    while more := {name for name, inner in calls.items() if inner & names} - names:
        names |= more
    return names


def _base(work: Sequence[int]) -> int:
    """The size at which a benchmark is about as much work as it should be.

    Args:
        work: what was counted at each of the usual sizes. No clock is asked: it would make another suite on
            another machine.
    """
    if growth_of(work) < _COUNTED:
        return SIZES[max(0, len(work) - 1)]
    size = SIZES[len(work) - 1]
    growth = max(1, round(growth_of(work)))
    return round(min(_LARGEST, max(8, size * math.pow(_CALL_WORK / work[-1], 1 / growth))))
