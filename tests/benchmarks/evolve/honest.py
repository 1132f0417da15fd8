"""Asks the judge about real changes: differences between releases of public packages that keep their tests.

A difference is one function or class that a later release has otherwise, put into the earlier one, where all
tests that passed still do. What was honestly changed is not to be called a cheat, and not broken. Run it with
`python -m tests.benchmarks.evolve.honest`; `--changes` says how many are judged.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import itertools
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.core.improvement import Proposal, Ruling, Verdict
from engine.improve.campaigns.report import is_promising
from engine.improve.code.projects import project_box, projects
from engine.improve.code.source import Edit, Source, parse_source
from engine.improve.code.suite import project_suite
from engine.improve.judge.box import BoxError, Boxes
from engine.improve.judge.judge import Judge, JudgeBudget
from tests.benchmarks.evolve.packages import CACHE, Package, opened
from tests.benchmarks.evolve.plan import failing_in

RELEASES = Path(__file__).with_name("releases.txt")
_OF_ONE = 16
"""Differences of one package at most."""


@dataclass(frozen=True)
class Difference:
    """One changed function or class."""

    package: Package
    later: str
    path: str
    """From the project's directory."""
    name: str
    text: str
    """The earlier module with it."""


def parts(source: Source) -> dict[str, ast.stmt]:
    """The functions and classes of a module by name, and the methods of classes by both names."""
    known: dict[str, ast.stmt] = {}
    for node in source.tree.body:
        inner = node.body if isinstance(node, ast.ClassDef) else []
        known |= {f"{node.name}.{part.name}": part for part in inner if isinstance(part, ast.FunctionDef)}  # type: ignore[attr-defined]
        if isinstance(node, ast.FunctionDef):
            known[node.name] = node
    return known


def span(source: Source, node: ast.stmt) -> tuple[int, int]:
    first = min([node.lineno, *(mark.lineno for mark in getattr(node, "decorator_list", ()))])
    return source.offset(first, 0), source.span(node)[1]


def differences(package: Package, later: Package) -> Iterator[Difference]:
    """What differs in more than words, one place at a time."""
    for path, source in sorted(package.sources.items()):
        other = later.seen.sources.get(path)
        if other is None:
            continue
        mine, theirs = parts(source), parts(other)
        for name in mine.keys() & theirs.keys():
            if bare(mine[name]) != bare(theirs[name]):
                start, end = span(source, mine[name])
                text = source.edited([Edit(start, end, other.text[slice(*span(other, theirs[name]))])])
                if text is not None and parse_source(text):
                    yield Difference(package, later.root.name, path, name, text)


def bare(node: ast.stmt) -> str:
    """A function without its description."""
    body = getattr(node, "body", [])
    described = body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    return ast.dump(node).replace(ast.dump(body[0]), "") if described else ast.dump(node)


async def kept(some: Sequence[Difference], boxes: Boxes) -> list[Difference]:
    """Those with which every test passes that did."""
    if not some:
        return []
    async with project_box(boxes, some[0].package.root, some[0].package.seen.project) as box:
        return [one for one in some if not await failing_in(box, one.package, {one.path: one.text})]


async def judged(one: Difference, boxes: Boxes, seed: int) -> Verdict:
    """The verdict on a difference, as a campaign comes to it."""
    with tempfile.TemporaryDirectory(prefix="honest-") as place:
        before, after = Path(place, "before"), Path(place, "after")
        directory, path = one.package.seen.project.directory, one.package.path(one.path)
        shutil.copytree(one.package.root / directory, before / directory)
        shutil.copytree(before, after)
        (after / path).write_text(one.text)
        component = projects(before)[0]
        suite = await project_suite(before, component, boxes=boxes, seed=seed, seen=one.package.seen)
        judge, proposal = Judge(Path(place, "judge")), Proposal("a change", "test", {path: one.text})
        verdict = Verdict(Ruling.NO_BETTER, ())
        for sealed in (False, True):
            verdict = await judge.compare(
                before,
                after,
                component,
                proposal,
                suite,
                seed=seed,
                sealed=sealed,
                budget=JudgeBudget(again=1),
            )
            if not is_promising(verdict, proposal) and verdict.ruling is not Ruling.NO_BETTER:
                break
        return verdict


async def release(line: str, cache: Path, boxes: Boxes) -> Package | None:
    """A release; None where it cannot be had or run any more."""
    try:
        return await opened(line, cache, boxes)
    except (subprocess.SubprocessError, StopIteration, OSError, BoxError) as error:
        print(f"{line} is left out: {error}", flush=True)
        return None


async def main(asked: argparse.Namespace) -> int:
    """Print a row for each; 1 where more than one in twenty was called a cheat or broken."""
    cache, boxes, rng = Path(asked.cache), Boxes(), random.Random(asked.seed)
    counts: Counter[str] = Counter()
    rows = []
    for line in RELEASES.read_text().split("\n"):
        name, *versions = line.split()[:40] or [""]
        if not versions or name.startswith("#"):
            continue
        releases = [await release(f"{name}=={version}", cache, boxes) for version in versions]
        found = [
            one
            for earlier, later in itertools.pairwise(releases) if earlier and later
            for one in await kept(list(differences(earlier, later)), boxes)
        ]  # fmt: skip
        rng.shuffle(found)
        for one in found[:_OF_ONE]:
            if sum(counts.values()) >= asked.changes:
                break
            verdict = await judged(one, boxes, asked.seed)
            counts[verdict.ruling] += 1
            why = "; ".join(verdict.reasons)[:140]
            rows.append([one.package.root.name, one.later, one.path, one.name, verdict.ruling, why])
            print(f"{one.package.root.name:20}{one.name:30}{verdict.ruling:12}{why}", flush=True)
            (cache / "honest.json").write_text(json.dumps(rows, indent=1))
    print(dict(counts))
    wrong = counts[Ruling.REJECTED] + counts[Ruling.BROKEN]
    print(f"{wrong} of {sum(counts.values())} called cheats or broken")
    return int(20 * wrong > sum(counts.values()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.evolve.honest", description=__doc__)
    parser.add_argument("--changes", type=int, default=100, help="how many are judged")
    parser.add_argument("--seed", type=int, default=1, help="draws which, and what they are asked")
    parser.add_argument("--cache", default=str(CACHE))
    sys.exit(asyncio.run(main(parser.parse_args())))
