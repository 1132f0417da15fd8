"""What is wrong with a project, each finding with what shows it.

Tests are run, benchmarks timed and odd inputs tried in the jail; the rest is read from the text. Where
nothing can be run, what could be read is still told. Source: mindX spec §6.3, §6.4 (findings: type, severity,
description, target).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from radon.complexity import cc_visit_ast

from engine.domain.improvement import Component, ComponentKind, Concern, Finding
from engine.domain.text import clean_line
from engine.mastermind.code.box import Box, BoxError, Tests, Workshop
from engine.mastermind.code.checks import RAW, MissingCheck, deliberate, missing_checks, probes, reached_names
from engine.mastermind.code.projects import Project, module_name, project_of
from engine.mastermind.code.slow import slow_places
from engine.mastermind.code.source import Source, loose
from engine.mastermind.code.spectrum import BAD
from engine.mastermind.code.static import StaticError, static_findings
from engine.mastermind.code.tree import read_source

COMPLEX = 15
"""Cyclomatic complexity of a function from which it is told."""
SIZES = (100, 200, 400, 800)
"""Sizes that benchmarks are seen with; others are drawn for the judge."""
STEEP = 1.5
"""Exponent of growth from which a benchmark is told."""
_PROBES = 200


@dataclass(slots=True)
class Examined:
    """A project as it was looked at, for findings and for proposals."""

    project: Project
    sources: dict[str, Source] = field(default_factory=dict)
    """Modules by path from the project's directory; those that are no Python are missing."""
    test_sources: dict[str, Source] = field(default_factory=dict)
    tests: Tests = field(default_factory=dict)
    growth: dict[str, tuple[float, list[float]]] = field(default_factory=dict)
    """By benchmark, `file::name`: the exponent of its growth and the seconds at each of `SIZES`."""
    notes: list[str] = field(default_factory=list)
    """What could not be looked at, and why."""


async def examine(workshop: Workshop | None, root: Path, project: Project) -> Examined:
    """Read a project and, where there is a workshop, run its tests and benchmarks."""
    seen = Examined(project)
    _read(seen, root)
    if workshop is None:
        seen.notes.append("nothing was run: there is no jail to run it in")
        return seen
    try:
        async with Box(workshop, root, project) as box:
            if project.asked or (project.tests and not project.alone):
                seen.tests = await box.tests(project.asked, lines=True)
            await _time(seen, box, root)
    except BoxError as error:
        seen.notes.append(str(error))
    return seen


def _read(seen: Examined, root: Path) -> None:
    for paths, sources in ((seen.project.modules, seen.sources), (seen.project.tests, seen.test_sources)):
        for path in paths:
            try:
                source = loose(read_source(root / seen.project.path(path)))
            except (OSError, ValueError) as error:
                seen.notes.append(f"{path} was not read: {clean_line(str(error), limit=200)}")
                continue
            if source is None:
                seen.notes.append(f"{path} is no valid Python")
            else:
                sources[path] = source


async def _time(seen: Examined, box: Box, root: Path) -> None:
    benches = bench_functions(root, seen.project)
    if not benches:
        return
    job = {
        "mode": "timings",
        "imports": import_paths(root, seen.project),
        "each_s": 5.0,
        "repeats": 7,
        "enough_s": 0.1,
        "benches": [{"file": path, "name": name, "size": size} for path, name in benches for size in SIZES],
    }
    said = (await box.work(job, 40.0)).get("timings", [])
    for number, (path, name) in enumerate(benches):
        rows = said[number * len(SIZES) : (number + 1) * len(SIZES)]
        best = [min(row.get("seconds") or [0.0]) for row in rows]
        if len(best) == len(SIZES) and all(second > 0 for second in best):
            seen.growth[f"{path}::{name}"] = (_exponent(SIZES, best), best)
        else:
            problems = [problem for row in rows for problem in row.get("problems", [])]
            seen.notes.append(
                f"{name} in {path} could not be timed: {clean_line('; '.join(problems), limit=200)}"
            )


def bench_functions(root: Path, project: Project) -> list[tuple[str, str]]:
    """The timed functions of a project as file and name: `bench_*` with one parameter, the size."""
    found = []
    for path in project.benches:
        try:
            source = loose(read_source(root / project.path(path)))
        except (OSError, ValueError):
            continue
        for name, function in source.functions if source is not None else ():
            if name.startswith("bench_") and len(function.args.args) == 1:
                found.append((path, name))
    return found


def import_paths(root: Path, project: Project) -> list[str]:
    """Directories, from the project's own, that its modules are imported from."""
    return list(dict.fromkeys(module_name(project, root, path)[1] for path in project.modules)) or ["."]


def _exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The slope of seconds over sizes, both as logarithms."""
    xs, ys = [math.log(size) for size in sizes], [math.log(second) for second in seconds]
    middle_x, middle_y = sum(xs) / len(xs), sum(ys) / len(ys)
    above = sum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys, strict=True))
    return above / sum((x - middle_x) ** 2 for x in xs)


async def findings(
    root: Path, component: Component, *, workshop: Workshop | None = None, under: str = "sandbox"
) -> list[Finding]:
    """What is wrong with a project or one of its modules, the worst first.

    Args:
        root: the workspace's directory.
        component: a project or module of `projects(root)`.
        workshop: where things are run; without one, only what can be read is found.
        under: where projects lie, see `projects`.
    """
    project = project_of(root, component, under)
    if project is None:
        return []
    return await found_in(root, component, await examine(workshop, root, project), workshop)


async def found_in(
    root: Path, component: Component, seen: Examined, workshop: Workshop | None
) -> list[Finding]:
    """The findings of a project that was looked at already; see `findings`."""
    project = seen.project
    found = [*_failing(component, seen), *_slow(component, seen), *_complex(component, seen)]
    found += await _unchecked(root, component, seen, workshop)
    try:
        static = await static_findings(root / project.directory, list(seen.sources))
    except StaticError as error:
        seen.notes.append(str(error))
        static = []
    for one in static:
        words = f"{one.code} in {one.path}: {clean_line(one.message, limit=200)}"
        found.append(
            Finding(
                component.id,
                Concern.STYLE,
                words,
                (
                    f"{project.path(one.path)}:{one.line}",
                    f"ruff {one.code}",
                    *(["has a safe fix"] * one.fixable),
                ),
                5 if one.code.startswith(("F", "E9", "PLE", "invalid")) else 3,
                project.path(one.path),
                one.line,
                one.code,
            )
        )
    if component.kind is not ComponentKind.PROJECT:
        found = [one for one in found if one.path in component.paths or one.concern is Concern.TEST]
    found = [replace(one, text=clean_line(one.text, limit=600)) for one in found]
    return sorted(found, key=lambda one: (-one.severity, one.path, one.line, one.name))


def _failing(component: Component, seen: Examined) -> Iterator[Finding]:
    mine = {seen.project.inside(path) for path in component.paths}
    for test, said in sorted(seen.tests.items()):
        lines: Mapping[str, Any] = said.get("lines", {})
        if said["outcome"] not in BAD or (
            component.kind is not ComponentKind.PROJECT and not mine & set(lines)
        ):
            continue
        message = clean_line(str(said.get("message", "")), limit=300)
        what = "fails" if said["outcome"] == "failed" else "cannot run"
        path = test.partition("::")[0]
        line = int(said.get("line", 0))
        ran = [one for one in lines if one in seen.sources]
        yield Finding(
            component.id,
            Concern.TEST,
            f"{clean_line(test, limit=200)} {what}: {message}",
            (f"{seen.project.path(path)}:{line}", message, *(f"ran {seen.project.path(one)}" for one in ran)),
            9,
            seen.project.path(path),
            line,
            test,
        )


def _slow(component: Component, seen: Examined) -> Iterator[Finding]:
    steep = {bench: found for bench, found in seen.growth.items() if found[0] >= STEEP}
    for path, source in seen.sources.items():
        for place in slow_places(source):
            shown = [
                bench for bench in steep if place.function.rpartition(".")[2] in bench.rpartition("::")[2]
            ]
            evidence = [f"{seen.project.path(path)}:{place.line}", f"`{source.line(place.line)}`"]
            evidence += [_growth_words(bench, *steep.pop(bench)) for bench in shown]
            yield Finding(
                component.id,
                Concern.SPEED,
                f"{place.function} in {path} {place.text}",
                tuple(clean_line(one, limit=200) for one in evidence),
                7 if shown else 3 + min(place.depth, 2),
                seen.project.path(path),
                place.line,
                f"{place.kind}:{place.function}",
            )
    for bench, (exponent, seconds) in steep.items():
        path, _, name = bench.partition("::")
        yield Finding(
            component.id,
            Concern.SPEED,
            f"{name} grows with the power {exponent:.1f} of its size",
            (_growth_words(bench, exponent, seconds),),
            6,
            seen.project.path(path),
            0,
            name,
        )


def _growth_words(bench: str, exponent: float, seconds: Sequence[float]) -> str:
    times = ", ".join(f"{size}: {second * 1000:.3g} ms" for size, second in zip(SIZES, seconds, strict=True))
    return f"{bench} grows with the power {exponent:.2f} of the size ({times})"


def _complex(component: Component, seen: Examined) -> Iterator[Finding]:
    for path, source in seen.sources.items():
        for block in cc_visit_ast(source.tree):
            if block.letter != "C" and block.complexity >= COMPLEX:
                yield Finding(
                    component.id,
                    Concern.COMPLEXITY,
                    f"{block.fullname} in {path} has a cyclomatic complexity of {block.complexity}",
                    (
                        f"{seen.project.path(path)}:{block.lineno}",
                        f"{block.complexity} of at most {COMPLEX - 1}",
                    ),
                    3 + (block.complexity >= 2 * COMPLEX),
                    seen.project.path(path),
                    block.lineno,
                    block.fullname,
                )


async def _unchecked(
    root: Path, component: Component, seen: Examined, workshop: Workshop | None
) -> list[Finding]:
    reached = reached_names(seen.sources, seen.test_sources.values())
    checks = [(path, one) for path, source in seen.sources.items() for one in missing_checks(source, reached)]
    shown = await _probed(root, seen, checks, workshop) if workshop is not None and checks else {}
    found = []
    for path, one in checks:
        answers = shown.get((path, one.function), []) if not one.hides else []
        found.append(_check_finding(component, seen, path, one, answers))
    return found


def _check_finding(
    component: Component, seen: Examined, path: str, one: MissingCheck, answers: list[str]
) -> Finding:
    words = f"{one.function} in {path} takes its input as it comes"
    if one.hides:
        words = f"{one.function} in {path} has {one.places[0][1]}"
    elif one.promised:
        words = f"{one.function} in {path} says it raises {', '.join(one.promised)}, and does not"
    places = [f"{seen.project.path(path)}:{line} {what}" for line, what in one.places]
    return Finding(
        component.id,
        Concern.ROBUSTNESS,
        words,
        tuple(clean_line(words, limit=240) for words in (*answers, *places)),
        (8 if one.promised else 6) if answers else 5 if one.promised or one.hides else 3,
        seen.project.path(path),
        one.line,
        one.function,
    )


async def _probed(
    root: Path, seen: Examined, checks: Sequence[tuple[str, MissingCheck]], workshop: Workshop
) -> dict[tuple[str, str], list[str]]:
    """What functions raise in their own words when they are asked about odd inputs."""
    asked: list[tuple[str, str, str, str]] = []
    for path, one in checks:
        module, _ = module_name(seen.project, root, path)
        owner = dict(seen.sources[path].functions).get(one.function)
        if owner is not None and "." not in one.function and not one.hides:
            asked += [(path, one.function, module, arguments) for arguments in probes(owner)]
    asked = asked[:_PROBES]
    if not asked:
        return {}
    calls = [{"module": module, "function": name, "arguments": given} for _, name, module, given in asked]
    job = {"mode": "calls", "imports": import_paths(root, seen.project), "call_s": 1.0, "calls": calls}
    try:
        async with Box(workshop, root, seen.project) as box:
            answers = (await box.work(job, 30.0)).get("answers", [])
    except BoxError as error:
        seen.notes.append(str(error))
        return {}
    found: dict[tuple[str, str], list[str]] = {}
    for (path, name, _, given), answer in zip(asked, answers, strict=False):
        owner = dict(seen.sources[path].functions)[name]
        if answer[0] == "raised" and answer[1] in RAW - deliberate(owner):
            words = f"{name}{given.replace(',)', ')')} raised {answer[1]}"
            found.setdefault((path, name), []).append(words)
    return found
