"""Mending a failing test by search: small changes on suspect lines, tried in the jail, kept where they help.

A change is kept when the failing test passes with it and no test that passed before fails. That is all it
shows; whether it is right beyond these tests is for the judge to say. Source: mindX spec §6.4.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.mastermind.code.box import Box, Tests, Workshop
from engine.mastermind.code.mutations import Mutation, mutations
from engine.mastermind.code.projects import Project
from engine.mastermind.code.source import Source, loose, names
from engine.mastermind.code.spectrum import BAD, Suspicion, suspicion
from engine.mastermind.code.tree import read_source

MOST = 160
"""Changes that are tried for one test."""
_COPIES = 2
_EACH_S = 10.0
_ALL_S = 90.0
_MODULE_LEVEL = 0.5
"""How suspect a module's own line is, of the most suspect line that uses what it binds."""


@dataclass(frozen=True, slots=True)
class Mended:
    """A change that makes a failing test pass."""

    test: str
    path: str
    """From the project's directory."""
    text: str
    line: int
    words: str
    suspect: float
    tried: int
    """Changes that were tried for this test."""
    others: tuple[str, ...] = ()
    """Further tests that pass with it."""


async def mend(
    workshop: Workshop,
    root: Path,
    project: Project,
    tests: Tests,
    failing: str,
    rng: random.Random,
    *,
    may: frozenset[str] | None = None,
    most: int = MOST,
    limit_s: float = _ALL_S,
) -> list[Mended]:
    """Changes that make one failing test pass, the most plausible first; empty when none of those tried does.

    Args:
        workshop: what holds the trials.
        root: the directory that paths count from.
        project: the project.
        tests: what became of its tests, with the lines of each; from the same tree.
        failing: the test's id.
        rng: breaks ties.
        may: the modules that may be changed, from the project's directory; all by default.
        most: changes that are tried.
        limit_s: seconds for all of them.

    Raises:
        BoxError: nothing could be run.
    """
    suspects = suspicion(tests, [failing])
    allowed = set(project.modules) if may is None else may
    sources = _sources(root, project, {path for path, _ in suspects} & allowed)
    found = _ordered(sources, suspects, rng)[:most]
    if not found:
        return []
    before = {path: source.text for path, source in sources.items()}
    async with Box(workshop, root, project, copies=_COPIES) as box:
        job = {
            "mode": "candidates",
            "slots": box.roots,
            "tests": [],
            "first": [failing],
            "each_s": _EACH_S,
            "original": {f"{box.name}/{path}": text for path, text in before.items()},
            "changes": [{f"{box.name}/{path}": text} for _, path, _, text in found],
        }
        said = await box.work(job, limit_s)
    held = {test for test, one in tests.items() if one["outcome"] == "passed"}
    bad = {test for test, one in tests.items() if one["outcome"] in BAD}
    kept = []
    for (suspect, path, change, text), result in zip(found, said.get("results", ()), strict=False):
        states = {test: one.get("outcome") for test, one in ((result or {}).get("tests") or {}).items()}
        passes = {test for test, state in states.items() if state == "passed"}
        if failing in passes and held <= passes:
            others = tuple(sorted(bad & passes - {failing}))
            kept.append(Mended(failing, path, text, change.line, change.words, suspect, len(found), others))
    return sorted(kept, key=lambda one: -len(one.others))


def _sources(root: Path, project: Project, paths: set[str]) -> dict[str, Source]:
    found = {}
    for path in sorted(paths):
        try:
            source = loose(read_source(root / project.path(path)))
        except (OSError, ValueError):
            continue
        if source is not None:
            found[path] = source
    return found


def _ordered(
    sources: Mapping[str, Source], suspects: Suspicion, rng: random.Random
) -> list[tuple[float, str, Mutation, str]]:
    """Every change with its text, the most plausible first; those that lead to the same tree once."""
    found: list[tuple[float, str, Mutation, str]] = []
    for path, source in sources.items():
        lines = {line: suspect for (where, line), suspect in suspects.items() if where == path}
        lines |= _module_level(source, lines)
        shapes = {ast.dump(source.tree)}
        for change in mutations(source, frozenset(lines)):
            text = source.edited([change.edit])
            if text is None:
                continue
            shape = ast.dump(ast.parse(text))
            if shape not in shapes:
                shapes.add(shape)
                found.append((lines.get(change.line, min(lines.values())), path, change, text))
    rng.shuffle(found)
    return sorted(found, key=lambda one: -one[0] * one[2].plausible)


def _module_level(source: Source, lines: Mapping[int, float]) -> dict[int, float]:
    """Lines of constants of the module that suspect lines use, which no test runs as it runs a function."""
    used: dict[str, float] = {}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name) and node.lineno in lines:
            used[node.id] = max(used.get(node.id, 0.0), lines[node.lineno])
    found = {}
    for node in source.tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            bound = {name for target in _targets(node) for name in names(target)}
            worst = max((used[name] for name in bound & used.keys()), default=0.0)
            if worst and node.lineno not in lines:
                found[node.lineno] = worst * _MODULE_LEVEL
    return found


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]
