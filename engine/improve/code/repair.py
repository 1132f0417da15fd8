"""Mends failing tests by search: small changes on suspect lines, tried in the jail, kept where they help.

A change is kept when a failing test passes with it and no test that passed before fails; whether it is right
beyond these tests is for the judge to say. Suspect are lines that failing tests run and passing ones do not
(Ochiai's measure). Each trial may take little more processor time than its tests took without a change.
"""

from __future__ import annotations

import ast
import asyncio
import math
import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.core.offload import in_thread
from engine.improve.code.findings import ExaminedProject
from engine.improve.code.mutations import Mutation, guards, mutations
from engine.improve.code.projects import SlowError, Tests, project_box, run_tests
from engine.improve.code.source import Edit, Source, used_names
from engine.improve.judge.box import Box, BoxError, Boxes, BoxLimits
from engine.value import dataclass

Suspicion = dict[tuple[str, int], float]
"""By file and line, 0 to 1."""


def suspiciousness(tests: Mapping[str, Mapping[str, Any]], failing: Collection[str]) -> Suspicion:
    """How suspect each line is of what fails in some tests.

    Args:
        tests: the results of all tests, with the lines of each; those of other failing tests do not count.
        failing: ids of the tests that are to be mended.
    """
    bad: Counter[tuple[str, int]] = Counter()
    good: Counter[tuple[str, int]] = Counter()
    for test, result in tests.items():
        count = bad if test in failing else good if result["outcome"] == "passed" else None
        if count is not None:
            count.update((path, line) for path, lines in result.get("lines", {}).items() for line in lines)
    every = len(failing)
    return {place: times / math.sqrt(every * (times + good[place])) for place, times in bad.items() if times}


def alike(tests: Tests, failing: Sequence[str]) -> list[str]:
    """Failing tests that probably fail for one reason, as they run much the same lines as the first one."""

    def lines(test: str) -> set[tuple[str, int]]:
        return {(path, line) for path, some in tests[test].get("lines", {}).items() for line in some}

    first = lines(failing[0])
    ran = [(test, lines(test)) for test in failing]
    return [test for test, mine in ran if 2 * len(mine & first) >= min(len(mine), len(first))]


MOST, ENOUGH, FURTHER = 400, 3, 24
"""Changes that are tried for one reason, changes that help after which no more are tried, and how many more
are tried behind one that helps."""
_BOXES = 2
"""Boxes that changes are tried in side by side."""
_LEAST_S = 2.0
"""Processor seconds that tests may take with a change, beside what they took without it."""
_ASLEEP = 6
"""Times its processor seconds that a trial may take by the clock."""
_LIMITS = BoxLimits(processor_s=600, whole_s=1800.0)
_CRASHED, _NEAR = 0.9, 3
"""How suspect the lines are by which an exception came, and how many statements before one."""
_MODULE_LEVEL = 0.5
"""How suspect a module's own line is, of the most suspect line that uses what it binds."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A change that makes a failing test pass."""

    path: str
    """From the project's directory."""
    text: str
    line: int
    words: str
    tried: int
    """Changes that were tried."""
    mends: tuple[str, ...] = ()
    """Tests that pass with it and did not before."""


async def repair_tests(
    boxes: Boxes,
    root: Path,
    seen: ExaminedProject,
    sources: Mapping[str, Source],
    failing: Sequence[str],
    rng: random.Random,
    processor_s: float = math.inf,
) -> list[Repair]:
    """Changes that make tests pass, those that mend most first; empty when none of those tried does.

    Args:
        boxes: makes the boxes that changes are tried in.
        root: the directory that paths count from.
        seen: the project as it was examined in the same tree.
        sources: the modules that may be changed, by path from the project's directory.
        failing: ids of tests that fail for one reason; the one that runs fewest lines is tried first.
        rng: breaks ties.
        processor_s: what all trials may take.

    Raises:
        SlowError: no change helps, and some took too long to say so.
        BoxError: nothing could be run.
    """
    project, tests, suite_s = seen.project, seen.tests, seen.suite_s
    suspects = suspiciousness(tests, failing)
    for place in _near_crashes(tests, sources, failing):
        suspects[place] = max(suspects.get(place, 0.0), _CRASHED)
    places = {path for path, _ in suspects}
    suspected = {path: source for path, source in sorted(sources.items()) if path in places}
    changes = await in_thread(_ordered, suspected, suspects, rng)
    if not changes:
        return []
    first = min(failing, key=lambda test: sum(map(len, tests[test].get("lines", {}).values())))
    passing: dict[int, set[str]] = {}
    late: list[int] = []
    waiting = iter(range(len(changes)))
    held = {test for test, entry in tests.items() if entry["outcome"] == "passed"}

    async def tried(box: Box, files: Mapping[str, str]) -> set[str]:
        done: Tests = {first: {"outcome": "passed"}}
        for names, usual_s in (([first], tests[first].get("seconds", suite_s)), (project.asked, suite_s)):
            if done.get(first, {}).get("outcome") == "passed":
                most_s = _LEAST_S + usual_s
                done = await run_tests(box, names, files=files, limit_s=_ASLEEP * most_s, processor_s=most_s)
        return {test for test, entry in done.items() if entry["outcome"] == "passed"}

    async def try_some() -> None:
        async with project_box(boxes, root, project, limits=_LIMITS) as box:
            for number in waiting:
                path, _, text = changes[number]
                try:
                    passes = await tried(box, {project.path(path): text})
                    if first in passes and held <= passes:
                        passing[number] = passes - held
                except SlowError:
                    late.append(number)
                except BoxError:
                    pass
                enough = len(passing) >= ENOUGH or (passing and number > min(passing) + FURTHER)
                if not box.alive or enough or box.processor_s > processor_s / _BOXES:
                    return

    await asyncio.gather(*(try_some() for _ in range(_BOXES)))
    if late and not passing:
        raise SlowError(f"{len(late)} of {len(changes)} changes that were tried ran out of time")
    kept = [
        Repair(path, text, change.line, change.words, len(changes), tuple(sorted(passing[number])))
        for number, (path, change, text) in enumerate(changes)
        if number in passing
    ]
    return sorted(kept, key=lambda repair: -len(repair.mends))


def _ordered(
    sources: Mapping[str, Source], suspects: Suspicion, rng: random.Random
) -> list[tuple[str, Mutation, str]]:
    """The most plausible changes with their texts, each once; what is no Python fails where it is tried."""
    ordered: dict[tuple[str, Edit], tuple[float, Mutation]] = {}
    for path, source in sources.items():
        lines = {line: suspect for (where, line), suspect in suspects.items() if where == path}
        lines |= _module_level(source, lines) | _heads(source, lines)
        places = frozenset(lines)
        for change in (*mutations(source, places), *guards(source, places)):
            ordered.setdefault((path, change.edit), (lines.get(change.line, min(lines.values())), change))
    entries = [(suspect, path, change) for (path, _), (suspect, change) in ordered.items()]
    rng.shuffle(entries)
    entries.sort(key=lambda entry: -entry[0] * entry[2].plausible)
    return [(path, change, sources[path].with_edit(change.edit)) for _, path, change in entries[:MOST]]


def _near_crashes(
    tests: Tests, sources: Mapping[str, Source], failing: Sequence[str]
) -> set[tuple[str, int]]:
    """Where exceptions of failing tests came from: the lines, and what stands before and around them."""
    near = set()
    for test in failing:
        for where, line in tests[test].get("frames", ()):
            path = next((path for path in sources if f"/{where}".endswith(f"/{path}")), "")
            source = sources.get(path)
            for _, function in source.functions if source else ():
                inside = [node for node in ast.walk(function) if isinstance(node, ast.stmt)]
                before = [node.lineno for node in inside if function.lineno < node.lineno <= line]
                if function.lineno < line <= (function.end_lineno or 0):
                    around = [node.lineno for node in inside if node.lineno <= line <= (node.end_lineno or 0)]
                    near |= {(path, number) for number in (*around[1:], *sorted(before)[-_NEAR:])}
    return near


def _heads(source: Source, lines: Mapping[int, float]) -> dict[int, float]:
    """Where functions with suspect lines begin: their defaults were computed before any test ran."""
    return {
        function.lineno: worst
        for _, function in source.functions
        if function.args.defaults or any(function.args.kw_defaults)
        if function.lineno not in lines
        if (worst := max((lines[node.lineno] for node in function.body if node.lineno in lines), default=0.0))
    }


def _module_level(source: Source, lines: Mapping[int, float]) -> dict[int, float]:
    """Lines of constants of the module that suspect lines use, which no test runs as it runs a function."""
    used: dict[str, float] = {}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name) and node.lineno in lines:
            used[node.id] = max(used.get(node.id, 0.0), lines[node.lineno])
    owners = {}
    for node in source.tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            bound = {name for target in targets for name in used_names(target)}
            worst = max((used[name] for name in bound & used.keys()), default=0.0)
            if worst and node.lineno not in lines:
                owners[node.lineno] = worst * _MODULE_LEVEL
    return owners
