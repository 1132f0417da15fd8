"""Packages of the index by name and version: fetched once into a cache, unpacked, and run in the jail."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

from engine.improve.code.findings import ExaminedProject, examine_project
from engine.improve.code.projects import find_projects, project_box, run_tests
from engine.improve.code.source import Source
from engine.improve.judge.box import Boxes

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pilothouse" / "bench-evolve"
LISTED = Path(__file__).with_name("packages.txt")
_LEFT_OUT = shutil.ignore_patterns(
    *(
        "docs",
        "doc",
        "examples",
        "benchmarks",
        "*.egg-info",
        "setup.py",
        "tox.ini",
        ".*",
        "noxfile.py",
        "bin",
    ),
    *("conf.py", "tasks.py", "update-tables.py", "perf", "bench_*", "*.pyc", "*.rst", "*.po", "*.pot"),
)
_LONGEST_S = 40.0
"""A package is passed over whose tests take longer while their lines are noted."""
_AGAIN = 3
"""How often tests have to pass once more: those that depend on their order or on chance do not count."""


@dataclass
class Package:
    """One package that was run."""

    name: str
    root: Path
    """Stands for a workspace's directory."""
    seen: ExaminedProject

    @property
    def passing(self) -> set[str]:
        return {test for test, result in self.seen.tests.items() if result["outcome"] == "passed"}

    @property
    def sources(self) -> dict[str, Source]:
        """The modules that any test runs."""
        ran = {path for result in self.seen.tests.values() for path in result["lines"]}
        return {path: source for path, source in self.seen.sources.items() if path in ran}

    def tests_of(self, path: str, line: int) -> list[str]:
        """The tests that run a line."""
        tests = self.seen.tests
        return [test for test in sorted(self.passing) if line in tests[test]["lines"].get(path, ())]

    def path(self, inside: str) -> str:
        return self.seen.project.path(inside)


def listed(*, spare: bool) -> list[str]:
    """Name and version of the packages, or of those for what the others have no place for."""
    lines = [line.split() for line in LISTED.read_text().split("\n") if line and not line.startswith("#")]
    return [words[-1] for words in lines if (words[0] == "spare") is spare]


def fetched(line: str, cache: Path) -> Path:
    """The source of a package, from the index by way of pip where the cache does not have it."""
    name = line.partition("==")[0]
    there = cache / "sdists" / line
    if not any(there.glob("*.tar.gz")):
        words = ["download", "--no-deps", "--no-binary", name, "--quiet", "--disable-pip-version-check"]
        subprocess.run([sys.executable, "-m", "pip", *words, "-d", str(there), line], check=True, timeout=300)
    return next(there.glob("*.tar.gz"))


async def opened(line: str, cache: Path, boxes: Boxes) -> Package | None:
    """A package with the results of its tests; None where it cannot be run, or takes too long."""
    name = line.partition("==")[0].replace("-", "_")
    root = cache / "unpacked" / line
    place, notes = root / "sandbox" / name, root / "tests.json"
    if not place.is_dir():
        with tarfile.open(fetched(line, cache)) as archive:
            archive.extractall(root / "archive", filter="data")
        shutil.copytree(next((root / "archive").iterdir()), place, ignore=_LEFT_OUT)
        shutil.rmtree(root / "archive")
    projects = [project for project in find_projects(root) if project.tests]
    if not projects:
        return None
    if notes.is_file():
        seen = await examine_project(None, root, projects[0])
        seen.tests, seen.suite_s = json.loads(notes.read_text())
    else:
        seen = await examine_project(boxes, root, projects[0])
        unread = [test for test in seen.tests if test.endswith(".py")]  # none of it could be collected
        for test in unread:
            (place / test).unlink(missing_ok=True)
        if unread:
            seen = await examine_project(boxes, root, find_projects(root)[0])
        package = Package(name, root, seen)
        for _ in range(_AGAIN):
            for test in await failing(package, boxes, {}):
                seen.tests[test]["outcome"] = "failed"
        notes.write_text(json.dumps([seen.tests, seen.suite_s]))
    return Package(name, root, seen) if seen.suite_s < _LONGEST_S and seen.tests else None


async def failing(package: Package, boxes: Boxes, files: dict[str, str]) -> set[str]:
    """The tests that pass in a package and do not with other contents of files; all where it hangs."""
    async with project_box(boxes, package.root, package.seen.project) as box:
        texts = {package.path(path): text for path, text in files.items()}
        results = await run_tests(box, files=texts, limit_s=20 + 2 * package.seen.suite_s)
    return {test for test in package.passing if results.get(test, {}).get("outcome") != "passed"}
