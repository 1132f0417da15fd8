"""Finds what is wrong with a project, each finding with its evidence.

Tests are run, the work of benchmarks is counted and odd inputs are tried in the jail; the rest is read from
the text. Where nothing can be run, the findings from reading are still given.
"""

from __future__ import annotations

import ast
import asyncio
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from engine.core.improvement import Component, ComponentKind, Concern, Finding
from engine.core.offload import in_thread
from engine.core.text import clean_line
from engine.improve.code.inputs import RAW, broken_promises, deliberate_exceptions, odd_arguments
from engine.improve.code.projects import BAD, Project, Tests, module_name, project_box, run_tests
from engine.improve.code.slow_code import slow_places
from engine.improve.code.source import Function, Source, parse_source, read_source, stored_names, used_names
from engine.improve.judge.box import Box, BoxError, Boxes

SIZES = (100, 200, 400, 800)
"""Sizes at which the work of benchmarks is counted; others are drawn for the judge."""
STEEP = 1.5
"""Exponent of growth from which a benchmark is listed."""
MEASURED = 6
"""How severe a slow place is at least that a benchmark reaches."""
DRIVER = "pilothouse_timed.py"
"""The module by which benchmarks are run."""
_PROBES = 200
_MOST_WORK = 20_000_000
"""Work that a benchmark is counted up to."""


@dataclass(slots=True)
class ExaminedProject:
    """A project as it was looked at, for findings and for proposals."""

    project: Project
    sources: dict[str, Source] = field(default_factory=dict)
    """Modules by path from the project's directory; those that are no Python are missing."""
    test_sources: dict[str, Source] = field(default_factory=dict)
    bench_sources: dict[str, Source] = field(default_factory=dict)
    tests: Tests = field(default_factory=dict)
    work: dict[str, list[int]] = field(default_factory=dict)
    """By benchmark, `file::name`: the work counted at each of `SIZES`, up to the first that is too much."""

    suite_s: float = 0.0
    """Processor seconds that its tests took, while their lines were noted."""
    problem: str = ""
    """Why nothing more is known of it by running."""

    @property
    def steep(self) -> set[str]:
        """Benchmarks whose work grows steeply; the same on every machine."""
        return {bench for bench, work in self.work.items() if growth_of(work) >= STEEP}


async def examine_project(boxes: Boxes | None, root: Path, project: Project) -> ExaminedProject:
    """Read a project and, where there are boxes, run its tests and benchmarks."""
    seen = ExaminedProject(project)
    await asyncio.to_thread(_read, seen, root)
    if boxes is None:
        return seen
    benches = bench_functions(seen.bench_sources)
    driver = {project.path(DRIVER): driver_text(benches)}
    try:
        async with project_box(boxes, root, project, driver) as box:
            if project.asked or (project.tests and not project.alone):
                seen.tests = await run_tests(box, project.asked, lines=True)
                seen.suite_s = box.processor_s
            for number, (path, name) in enumerate(benches):
                seen.work[f"{path}::{name}"] = await _counted(box, number)
    except BoxError as error:
        seen.problem = str(error)
    return seen


def _read(seen: ExaminedProject, root: Path) -> None:
    seen.sources = read_sources(root, seen.project, seen.project.modules)
    seen.test_sources = read_sources(root, seen.project, seen.project.tests)
    seen.bench_sources = read_sources(root, seen.project, seen.project.benches)


def read_sources(root: Path, project: Project, paths: Sequence[str]) -> dict[str, Source]:
    """Files of a project by path from its directory, but for those that are no Python."""
    sources: dict[str, Source] = {}
    for path in paths:
        with suppress(OSError, ValueError):
            if (source := parse_source(read_source(root / project.path(path)))) is not None:
                sources[path] = source
    return sources


async def _counted(box: Box, number: int) -> list[int]:
    """The work of a benchmark at each of `SIZES`, up to the first that is too much or fails."""
    counts: list[int] = []
    for size in SIZES:
        question = {"calls": bench_calls(number, size), "ready": 1, "work": _MOST_WORK}
        answer = (await box.put(question, 120.0)).said
        if not answer.get("work") or any("raises" in call for call in answer["answers"]):
            break
        counts.append(answer["work"])
    return counts


def bench_calls(number: int, size: int) -> tuple[tuple[str, tuple[Any, ...], dict[str, Any], bool], ...]:
    """The calls that make a benchmark of a size ready and run it, by `driver_text`."""
    module = PurePosixPath(DRIVER).stem
    return (f"{module}:prepare_{number}", (size,), {}, False), (f"{module}:run_{number}", (), {}, False)


def driver_text(benches: Sequence[tuple[str, str]]) -> bytes:
    """A module that runs benchmarks: it loads them when it is loaded itself, so that this is not timed."""
    lines = ["import importlib, pathlib, sys", "_top = pathlib.Path(__file__).parent", ""]
    for number, (path, name) in enumerate(benches):
        file = PurePosixPath(path)
        lines += [
            f"sys.path.insert(0, str(_top / {str(file.parent)!r}))",
            f"_bench_{number} = importlib.import_module({file.stem!r}).{name}",
            f"def prepare_{number}(size):",
            f"    global _made_{number}",
            f"    _made_{number} = _bench_{number}(size)",
            f"def run_{number}():",
            f"    return _made_{number}() if callable(_made_{number}) else _made_{number}",
            "",
        ]
    return "\n".join(lines).encode()


def growth_of(work: Sequence[int]) -> float:
    """The exponent of growth of counted work at the largest sizes; 0 where too little is known."""
    sizes = SIZES[len(work) - 2 : len(work)]
    return math.log(work[-1] / work[-2]) / math.log(sizes[1] / sizes[0]) if len(work) > 1 else 0.0


def bench_functions(benches: Mapping[str, Source]) -> list[tuple[str, str]]:
    """The timed functions of a project as file and name: `bench_*` with one parameter, the size."""
    return [
        (path, name)
        for path, source in benches.items()
        for name, function in source.functions
        if name.startswith("bench_") and len(function.args.args) == 1
    ]


async def findings_of_examined(
    root: Path, component: Component, seen: ExaminedProject, boxes: Boxes | None
) -> list[Finding]:
    """What is wrong with a project that was examined, or with one of its modules, the worst first.

    Args:
        root: the workspace's directory.
        component: the project or module.
        seen: the project as it was examined.
        boxes: where odd inputs are tried; None tries none.
    """
    findings = await in_thread(lambda: [*_failing(component, seen), *_slow(component, seen)])
    if boxes is not None:
        findings += await _unchecked(root, component, seen, boxes)
    if component.kind is not ComponentKind.PROJECT:
        mine = component.paths
        findings = [entry for entry in findings if entry.path in mine or entry.concern is Concern.TEST]
    findings = [replace(finding, text=clean_line(finding.text, limit=600)) for finding in findings]
    return sorted(findings, key=lambda finding: (-finding.severity, finding.path, finding.line, finding.name))


def _failing(component: Component, seen: ExaminedProject) -> Iterator[Finding]:
    mine = {seen.project.inside(path) for path in component.paths}
    for test, result in sorted(seen.tests.items()):
        lines: Mapping[str, Any] = result.get("lines", {})
        concerns = component.kind is ComponentKind.PROJECT or mine & set(lines)
        if result["outcome"] not in BAD or not concerns:
            continue
        message = clean_line(str(result.get("message", "")), limit=300)
        what = "fails" if result["outcome"] == "failed" else "cannot run"
        path = test.partition("::")[0]
        line = int(result.get("line", 0))
        ran = [f"ran {seen.project.path(name)}" for name in lines if name in seen.sources]
        text, path = f"{clean_line(test, limit=200)} {what}: {message}", seen.project.path(path)
        evidence = (f"{path}:{line}", message, *ran)
        yield Finding(component.id, Concern.TEST, text, evidence, 9, path, line, test)


def _slow(component: Component, seen: ExaminedProject) -> Iterator[Finding]:
    steep = {bench: _growth_words(bench, seen.work[bench]) for bench in seen.work if bench in seen.steep}
    reached = _reached(seen)
    for path, source in seen.sources.items():
        for place in slow_places(source):
            last = place.function.rpartition(".")[2]
            shown = [bench for bench in steep if last in bench.rpartition("::")[2]]
            evidence = [f"{seen.project.path(path)}:{place.line}", f"`{source.line(place.line)}`"]
            evidence += [steep.pop(bench) for bench in shown]
            severity = 7 if shown else MEASURED if last in reached else 3 + min(place.depth, 2)
            text, name = f"{place.function} in {path} {place.text}", f"{place.kind}:{place.function}"
            words = tuple(clean_line(part, limit=200) for part in evidence)
            where = seen.project.path(path)
            yield Finding(component.id, Concern.SPEED, text, words, severity, where, place.line, name)
    for bench, shows in steep.items():
        path, _, name = bench.partition("::")
        text = f"{name} grows with the power {growth_of(seen.work[bench]):.1f} of its size"
        yield Finding(component.id, Concern.SPEED, text, (shows,), 6, seen.project.path(path), 0, name)


def _reached(seen: ExaminedProject) -> set[str]:
    """Last names of functions that benchmarks may call, at any depth, by the words in the text."""
    calls: dict[str, set[str]] = {}
    for source in seen.sources.values():
        for name, function in source.functions:
            calls.setdefault(name.rpartition(".")[2], set()).update(_words(function))
        for table in source.tree.body:  # functions may be called by way of a module's values
            if isinstance(table, (ast.Assign, ast.AnnAssign)):
                for name in stored_names(table):
                    calls.setdefault(name, set()).update(_words(table))
    reached = {name for source in seen.bench_sources.values() for name in _words(source.tree)} & calls.keys()
    if reached:  # what is called without a name: operators, iteration, construction
        reached |= {name for name in calls if name.startswith("__")}
    while more := {name for inner in reached for name in calls[inner]} & calls.keys() - reached:
        reached |= more
    return reached


def _words(node: ast.AST) -> set[str]:
    """The names and attributes that stand in it."""
    return used_names(node) | {inner.attr for inner in ast.walk(node) if isinstance(inner, ast.Attribute)}


def _growth_words(bench: str, work: Sequence[int]) -> str:
    counts = ", ".join(f"{size}: {count:,}" for size, count in zip(SIZES, work, strict=False))
    return f"{bench} grows with the power {growth_of(work):.2f} of the size (work counted: {counts})"


def _probes(root: Path, seen: ExaminedProject) -> list[tuple[str, Function, str, str]]:
    """What to ask functions that say what they raise: path, function, target and arguments."""
    return [
        (path, function, f"{module_name(seen.project, root, path)[0]}:{name}", given)
        for path, source in seen.sources.items()
        for name, function in source.functions
        if "." not in name and broken_promises(function)
        for given in odd_arguments(function)
    ][:_PROBES]


async def _unchecked(root: Path, component: Component, seen: ExaminedProject, boxes: Boxes) -> list[Finding]:
    """Functions that say what they raise, and raise something else when they are given odd inputs."""
    asked = await in_thread(_probes, root, seen)
    if not asked:
        return []
    answers: object = None
    with suppress(BoxError):
        async with project_box(boxes, root, seen.project) as box:
            calls: list[Any] = [(target, ast.literal_eval(given), {}, False) for _, _, target, given in asked]
            answers = (await box.put({"calls": calls, "call_s": 1.0}, 30.0)).said.get("answers")
    if not isinstance(answers, list) or len(answers) != len(asked):
        return []
    shown: dict[tuple[str, Function], list[str]] = {}
    for (path, function, _, given), answer in zip(asked, answers, strict=True):
        if answer.get("raises") in RAW - deliberate_exceptions(function):
            words = f"{function.name}{given.replace(',)', ')')} raised {answer['raises']}"
            shown.setdefault((path, function), []).append(clean_line(words, limit=240))
    findings = []
    for (path, function), evidence in shown.items():
        promised = ", ".join(broken_promises(function))
        text = f"{function.name} in {path} says it raises {promised}, and does not"
        what = (text, tuple(evidence), 8, seen.project.path(path), function.lineno, function.name)
        findings.append(Finding(component.id, Concern.ROBUSTNESS, *what))
    return findings
