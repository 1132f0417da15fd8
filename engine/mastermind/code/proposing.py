"""Proposals of the mechanical fixers for a Python project: slow places, failing tests, ruff's safe fixes.

A missing check has no fixer: what is right there is not to be read off the code, so such findings are only
listed. Source: issue 8 (without a model, candidates come from mechanical fixes).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from engine.domain.improvement import Component, Concern, Finding, Proposal
from engine.domain.text import clean_line
from engine.mastermind.code.box import BoxError, Tests, Workshop
from engine.mastermind.code.findings import Examined, examine
from engine.mastermind.code.projects import Project, project_of
from engine.mastermind.code.repair import mend
from engine.mastermind.code.slow import slow_places
from engine.mastermind.code.source import Source
from engine.mastermind.code.spectrum import BAD
from engine.mastermind.code.speed_fixes import fix
from engine.mastermind.code.static import StaticError, fixed

MOST_PER_TEST = 3
"""Changes proposed for one failing test."""
_TESTS = 5
"""Failing tests that changes are searched for."""


async def propose(
    root: Path,
    component: Component,
    found: Sequence[Finding],
    rng: random.Random,
    *,
    workshop: Workshop | None = None,
    under: str = "sandbox",
    seen: Examined | None = None,
) -> list[Proposal]:
    """Changes that may mend findings, the worst finding's first and its most plausible change first.

    Args:
        root: the workspace's directory.
        component: a project or module; only its files are changed.
        found: what `findings` found, or some of it.
        rng: orders what is equally plausible; the same seed gives the same proposals.
        workshop: where changes for failing tests are tried; without one there are none of these.
        under: where projects lie.
        seen: the project as it was looked at; looked at anew where it is not given and a test fails.
    """
    project = project_of(root, component, under)
    if project is None:
        return []
    needs_tests = workshop is not None and any(one.concern is Concern.TEST for one in found)
    if seen is None:
        seen = await examine(workshop if needs_tests else None, root, project)
    may = frozenset(project.inside(path) for path in component.paths) & set(project.modules)
    proposals: list[Proposal] = []
    for one in sorted(found, key=lambda one: -one.severity):
        if one.concern is Concern.SPEED:
            proposals += _faster(seen.sources, project, one, may)
        elif one.concern is Concern.STYLE:
            proposals += await _tidied(seen.sources, project, one, may)
    if workshop is not None:
        proposals = [*await _mended(workshop, root, project, seen.tests, found, rng, may), *proposals]
    return _once(proposals)


def _faster(
    sources: Mapping[str, Source], project: Project, one: Finding, may: frozenset[str]
) -> list[Proposal]:
    path = project.inside(one.path)
    if path not in may or path not in sources:
        return []
    source = sources[path]
    for place in slow_places(source):
        if place.line == one.line and one.name == f"{place.kind}:{place.function}":
            text = fix(source, place)
            if text is not None:
                title = f"{place.function} no longer {place.text.partition(';')[0]}"
                files = {one.path: text}
                return [Proposal(title, f"fixer:{place.kind}", files, why=one.text, answers=(one,))]
    return []


async def _tidied(
    sources: Mapping[str, Source], project: Project, one: Finding, may: frozenset[str]
) -> list[Proposal]:
    path = project.inside(one.path)
    if path not in may or path not in sources or "has a safe fix" not in one.evidence:
        return []
    try:
        text = await fixed(sources[path].text, one.name)
    except StaticError:
        return []
    if text is None:
        return []
    title = f"{one.name} in {path} by ruff's safe fix"
    return [Proposal(title, "fixer:ruff", {one.path: text}, why=one.text, answers=(one,))]


async def _mended(
    workshop: Workshop,
    root: Path,
    project: Project,
    tests: Tests,
    found: Sequence[Finding],
    rng: random.Random,
    may: frozenset[str],
) -> list[Proposal]:
    proposals: list[Proposal] = []
    failing = [one for one in found if one.concern is Concern.TEST]
    failing = [one for one in failing if tests.get(one.name, {}).get("outcome") in BAD][:_TESTS]
    mended: set[str] = set()
    for one in failing:
        if one.name in mended:
            continue
        try:
            kept = await mend(workshop, root, project, tests, one.name, rng, may=may)
        except BoxError:
            continue
        for change in kept[:MOST_PER_TEST]:
            answers = tuple(other for other in failing if other.name in (one.name, *change.others))
            mended |= {other.name for other in answers}
            proposals.append(
                Proposal(
                    f"{change.path}:{change.line} {change.words}",
                    "fixer:repair",
                    {project.path(change.path): change.text},
                    why=f"with it {one.name} passes and nothing that passed fails; "
                    f"{len(kept)} of {change.tried} changes tried did that",
                    answers=answers,
                )
            )
    return proposals


def _once(proposals: Sequence[Proposal]) -> list[Proposal]:
    """Each set of files once, with words that may be shown."""
    found: dict[tuple[tuple[str, str | None], ...], Proposal] = {}
    for one in proposals:
        title, why = clean_line(one.title, limit=300), clean_line(one.why, limit=600)
        key = tuple(sorted(one.files.items(), key=lambda item: item[0]))
        found.setdefault(key, replace(one, title=title, why=why))
    return list(found.values())
