"""What a changed project is judged by: its tests, tests held out, calls compared, benchmarks of other sizes.

Where the code before is trusted, its answers are right: a function that no failing test runs has to answer
drawn inputs as before. Inputs on which it failed in its own words are left out, so that a check that was
missing may be put in. Benchmarks count for the gain where they grow steeply, and all where none does.
Source: issue 8 (held-out tasks, tests, benchmark), steering spec §3 idea 13.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import math
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from engine.domain.improvement import Component
from engine.mastermind.code.box import Box, BoxError, Workshop, libraries
from engine.mastermind.code.checks import deliberate
from engine.mastermind.code.findings import SIZES, STEEP, Examined, bench_functions, examine, import_paths
from engine.mastermind.code.inputs import draw, examples
from engine.mastermind.code.projects import Project, is_bench, is_test, module_name, project_of
from engine.mastermind.code.source import Function, Source, called, loose
from engine.mastermind.code.spectrum import BAD
from engine.mastermind.code.tree import LeftOut, read_bytes, walk
from engine.mastermind.judge.suite import Call, Check, Measure, Split

_NOTHING_BESIDE = (
    "it has neither tests nor a benchmark, so nothing could show a change of it to be better; put "
    "test_{stem}.py beside it, or bench_{stem}.py with a function bench_…(size)"
)
DRIVER = "pilothouse_timed.py"
HELD_OUT = "held_out"
"""The directory of tests that candidates do not see, in the project or in the workspace's own directory."""
_SETTINGS = frozenset({"pyproject.toml", "setup.cfg", "pytest.ini", "tox.ini", ".coveragerc"})
_CALLS = 24
"""Inputs drawn for one function."""
_ALL_CALLS = 240
_TOGETHER = 4
"""Inputs that one check asks a function, as each check costs a process."""
_CHOOSE = 0.3
"""Share of the compared calls by which candidates are chosen; the rest is sealed."""
_CALL_S = 0.03
"""Processor seconds that one timed call is to take, so that what the machine does besides is small to it."""
_SPREAD = (0.7, 1.4)
"""Sizes are drawn from this range around the one that takes so long."""
_LARGEST = 16_384
"""More takes longer to make ready and to read than to time."""
_SIZES_EACH = 3


@dataclass(frozen=True)
class ProjectSuite:
    """The suite of one project; see `engine.mastermind.judge.suite.Boxed`."""

    key: str
    root: str
    imports: tuple[str, ...]
    packages: tuple[Path, ...]
    plugins: tuple[str, ...]
    measure: Measure | None
    asked: tuple[Check, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Held-out tests, by path from the root that components count from; nobody has them before judging."""
    driver: Mapping[str, bytes] = field(default_factory=dict)
    owned: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    """What could not be asked, and why."""

    def checks(self, split: Split) -> Sequence[Check]:
        """The checks of a split."""
        return [one for one in self.asked if one.split is split]

    def material(self, split: Split) -> Mapping[str, bytes]:
        """The files of a split: what runs benchmarks, and the held-out tests once it is sealed."""
        return {**self.driver, **(self.files if split is Split.SEALED else {})}

    def owns(self, path: str) -> bool:
        """Whether a file is one of those by which the project is judged."""
        inner = path.removeprefix(f"{self.root}/") if self.root != "." else path
        if path in self.owned or is_test(inner) or is_bench(inner):
            return True
        return PurePosixPath(inner).name in (*_SETTINGS, DRIVER) or inner.startswith(f"{HELD_OUT}/")


async def project_suite(
    root: Path,
    component: Component,
    *,
    workshop: Workshop,
    seed: int,
    held_out: Path | None = None,
    under: str = "sandbox",
    seen: Examined | None = None,
) -> ProjectSuite:
    """The suite of a project or of the project that a module belongs to.

    Args:
        root: the tree as it is before any change: a workspace's directory, or a copy of it.
        component: the project or module.
        workshop: where it is found out what holds before.
        seed: draws inputs and sizes; the same seed gives the same suite.
        held_out: the directory with tests for each project, by its id; `.pilothouse/held_out` of a workspace.
        under: where projects lie below the root.
        seen: the project as it was looked at in this tree; looked at anew where it is not given.

    Raises:
        BoxError: there is no such project, nothing can be run, or there is nothing to judge it by.
    """
    project = project_of(root, component, under)
    if project is None:
        raise BoxError(f"{component.id} is no Python project below {under or root}")
    if project.alone and not project.asked and not project.benches:
        raise BoxError(_NOTHING_BESIDE.format(stem=PurePosixPath(project.modules[0]).stem))
    if seen is None:
        seen = await examine(workshop, root, project)
    files = _held_out_files(root, project, held_out)
    rng = random.Random(f"suite {seed}")
    notes = list(seen.notes)
    families = test_families(seen.test_sources, seen)
    asked = [
        Check(test, Split.WORK, test=test, family=_family(families, test))
        for test, said in sorted(seen.tests.items())
        if said["outcome"] not in ("skipped", "xfailed")
    ]
    held = {f"{HELD_OUT}/{name}": loose(data.decode("utf-8", "replace")) for name, data in files.items()}
    families = test_families({path: source for path, source in held.items() if source}, seen)
    held_out_tests = await _held_out_tests(root, project, workshop, files, notes)
    asked += [Check(test, Split.SEALED, test=test, family=_family(families, test)) for test in held_out_tests]
    asked += await _compared(root, seen, workshop, rng, notes)
    benches = bench_functions(root, project)
    steep = {bench for bench, (exponent, _) in seen.growth.items() if exponent >= STEEP}
    for number, (path, name) in enumerate(benches):
        counted = f"{path}::{name}" in steep or not steep
        growth = seen.growth.get(f"{path}::{name}")
        base = _base(growth[1]) if growth is not None and counted else SIZES[-1]
        asked += [_timing(number, name, size, split, counted) for split, size in _drawn_sizes(base, rng)]
    if not asked:
        raise BoxError(f"{component.id} has no tests, no benchmarks and no function that can be asked")
    suite = ProjectSuite(
        "",
        project.directory or ".",
        tuple(dict.fromkeys((".", *import_paths(root, project)))),
        tuple(Path(one) for one in libraries(root, project)),
        _plugins(root, project, seen),
        Measure.time() if benches else None,
        tuple(asked),
        {project.path(f"{HELD_OUT}/{name}"): data for name, data in files.items()},
        {project.path(DRIVER): driver_text(benches).encode()} if benches else {},
        frozenset(project.path(path) for path in (*project.tests, *project.benches)),
        tuple(notes),
    )
    return _keyed(root, project, suite)


def _keyed(root: Path, project: Project, suite: ProjectSuite) -> ProjectSuite:
    """The suite with the hash of all that it is made of, the project's own tests and benchmarks among it."""
    digest = hashlib.sha256(repr((suite.asked, suite.root, suite.imports, suite.plugins)).encode())
    for path, data in sorted({**suite.files, **suite.driver}.items()):
        digest.update(path.encode() + b"\0" + data)
    for path in sorted((*project.tests, *project.benches)):
        digest.update(path.encode() + b"\0" + read_bytes(root / project.path(path)))
    return ProjectSuite(**{**vars(suite), "key": digest.hexdigest()})


def _held_out_files(root: Path, project: Project, held_out: Path | None) -> dict[str, bytes]:
    """Held-out tests by path within their directory; those of the workspace go before the project's own."""
    found: dict[str, bytes] = {}
    places = [root / project.directory / HELD_OUT]
    places += [held_out / project.id] if held_out is not None else []
    for place in places:
        if place.is_dir():
            for path in walk(place, LeftOut()):
                found[path] = read_bytes(place / path)
    return found


def foretold(root: Path, component: Component, held_out: Path | None) -> dict[str, str]:
    """What a project is going to be asked, in words by split; by the names in its files, nothing is run."""
    project = project_of(root, component)
    if project is None:
        return {}
    texts = [read_bytes(root / project.path(path)) for path in project.tests]
    own = _named(texts, b"test_")
    held = _named(_held_out_files(root, project, held_out).values(), b"test_")
    benches = len(bench_functions(root, project))
    sizes = f" of each of {benches} benchmarks; " if benches else ""
    calls = f"of up to {_ALL_CALLS} drawn calls, compared with the code before"
    return {
        "work": f"{own} test functions of its own",
        "choose": f"{f'1 drawn size{sizes}' if sizes else ''}some {_CHOOSE:.0%} {calls}",
        "sealed": f"{held} held-out test functions; "
        f"{f'{_SIZES_EACH} drawn sizes{sizes}' if sizes else ''}the rest {calls}",
    }


def _named(texts: Iterable[bytes], prefix: bytes) -> int:
    """How many functions begin with a prefix."""
    return sum(len(re.findall(rb"^[ \t]*(?:async )?def " + prefix, text, re.M)) for text in texts)


async def _held_out_tests(
    root: Path, project: Project, workshop: Workshop, files: Mapping[str, bytes], notes: list[str]
) -> list[str]:
    """The ids of held-out tests."""
    wanted = [f"{HELD_OUT}/{name}" for name in files if PurePosixPath(name).name.startswith("test_")]
    if not wanted:
        return []
    try:
        async with Box(workshop, root, project) as box:
            for name, data in files.items():
                box.add(f"{HELD_OUT}/{name}", data)
            told = await box.tests(sorted(wanted))
    except BoxError as error:
        notes.append(f"the held-out tests could not be run: {error}")
        return []
    return [test for test, said in sorted(told.items()) if said["outcome"] != "skipped"]


def test_families(sources: Mapping[str, Source], seen: Examined) -> dict[str, str]:
    """The function of the project that each test asks about, the first one that it calls, by its id."""
    known = {
        name.rpartition(".")[2]: f"{PurePosixPath(path).stem}:{name}"
        for path, source in seen.sources.items()
        for name, _ in source.functions
    }
    found = {}
    for path, source in sources.items():
        for name, function in source.functions:
            calls = sorted(
                (node.lineno, node.col_offset, known[called(node)])
                for node in ast.walk(function)
                if isinstance(node, ast.Call) and called(node) in known
            )
            if calls:
                found[f"{path}::{name.replace('.', '::')}"] = calls[0][2]
    return found


def _family(families: Mapping[str, str], test: str) -> str:
    return families.get(test.partition("[")[0], "")


async def _compared(
    root: Path, seen: Examined, workshop: Workshop, rng: random.Random, notes: list[str]
) -> list[Check]:
    """Calls on which the code before is trusted: it answered, twice the same."""
    drawn = _drawn_calls(root, seen, rng)
    if not drawn:
        return []
    calls = [
        {"module": target.partition(":")[0], "function": target.partition(":")[2], "arguments": repr(given)}
        for target, given, _ in drawn
    ]
    job: dict[str, Any] = {"mode": "calls", "call_s": 0.5, "calls": calls}
    job["imports"] = import_paths(root, seen.project)
    answers: list[list[Any]] = []
    try:
        async with Box(workshop, root, seen.project) as box:
            for _ in range(2):
                answers.append((await box.work(job, 30.0)).get("answers", []))
    except BoxError as error:
        notes.append(f"no calls are compared: {error}")
        return []
    trusted: dict[str, list[Call]] = {}
    for (target, given, function), first, second in zip(drawn, *answers, strict=False):
        if first == second and (first[0] == "returned" or first[1] in deliberate(function)):
            trusted.setdefault(target, []).append(Call(target, given))
    found = []
    for target, those in trusted.items():
        for number, start in enumerate(range(0, len(those), _TOGETHER)):
            split = Split.CHOOSE if rng.random() < _CHOOSE else Split.SEALED
            some = tuple(those[start : start + _TOGETHER])
            found.append(Check(f"{target} compared {number}", split, calls=some, family=target))
    return found


def _drawn_calls(
    root: Path, seen: Examined, rng: random.Random
) -> list[tuple[str, tuple[Any, ...], Function]]:
    known, doubted = examples(seen.test_sources.values()), doubted_functions(seen)
    found: list[tuple[str, tuple[Any, ...], Function]] = []
    for path, source in sorted(seen.sources.items()):
        module, _ = module_name(seen.project, root, path)
        for name, function in source.functions:
            plain = "." not in name and not name.startswith("_") and isinstance(function, ast.FunctionDef)
            if not plain or name in doubted or name == "main" or function.decorator_list:
                continue
            given = [draw(function, known.get(name, []), rng) for _ in range(_CALLS)]
            once = {repr(one): one for one in given if one is not None}
            found += [(f"{module}:{name}", one, function) for one in once.values()]
    return rng.sample(found, _ALL_CALLS) if len(found) > _ALL_CALLS else found


def doubted_functions(seen: Examined) -> set[str]:
    """Last names of functions whose answers are not trusted: failing tests run them, or they call such."""
    found: set[str] = set()
    bad = [said.get("lines", {}) for said in seen.tests.values() if said["outcome"] in BAD]
    for path, source in seen.sources.items():
        for name, function in source.functions:
            body = range(function.body[0].lineno, (function.end_lineno or function.lineno) + 1)
            if any(line in body for lines in bad for line in lines.get(path, ())):
                found.add(name.rpartition(".")[2])
    calls = {
        name.rpartition(".")[2]: {called(node) for node in ast.walk(function)}
        for source in seen.sources.values()
        for name, function in source.functions
    }
    while more := {name for name, inner in calls.items() if inner & found} - found:
        found |= more
    return found


def _base(seconds: Sequence[float]) -> int:
    """The size at which a benchmark takes about as long as it should, within a factor of four.

    In steps of sixteen and whole powers, so that the clock, which never says quite the same, does not make
    another suite each time.
    """
    longer = float(16 ** round(math.log(_CALL_S / seconds[-1], 16)))
    growth = max(1, round(math.log(seconds[-1] / seconds[-2], SIZES[-1] / SIZES[-2])))
    return round(min(_LARGEST, max(8, SIZES[-1] * math.pow(longer, 1 / growth))))


def _drawn_sizes(base: int, rng: random.Random) -> list[tuple[Split, int]]:
    sizes = [max(1, round(base * rng.uniform(*_SPREAD))) for _ in range(_SIZES_EACH + 1)]
    return [(Split.CHOOSE, sizes[0]), *((Split.SEALED, size) for size in sizes[1:])]


def _timing(number: int, name: str, size: int, split: Split, counted: bool) -> Check:
    module = PurePosixPath(DRIVER).stem
    calls = (Call(f"{module}:prepare_{number}", (size,)), Call(f"{module}:run_{number}"))
    return Check(f"{name} of {size}", split, calls=calls, family=name, measured=counted, ready=1)


def driver_text(benches: Sequence[tuple[str, str]]) -> str:
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
    return "\n".join(lines)


_PLUGINS = (("asyncio", "pytest_asyncio", "pytest_asyncio.plugin"), ("anyio", "anyio", "anyio.pytest_plugin"))


def _plugins(root: Path, project: Project, seen: Examined) -> tuple[str, ...]:
    """Plugins of pytest that its tests name, where they are installed."""
    words = " ".join(source.text for source in seen.test_sources.values())
    for name in sorted(_SETTINGS):
        path = root / project.path(name)
        if path.is_file() and not path.is_symlink():
            words += path.read_text(encoding="utf-8", errors="replace")
    return tuple(
        plugin
        for mark, package, plugin in _PLUGINS
        if (f"mark.{mark}" in words or f"{mark}_mode" in words) and importlib.util.find_spec(package)
    )
