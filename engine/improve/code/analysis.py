"""`analyze_codebase`: what a tree of Python is made of and where it is worth a look, by reading alone.

Files are measured in a process of their own, ruff and git run in theirs; the loop only waits. The same tree
gives the same report: plain values, as JSON and as text.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from engine.core.text import clean, clean_line
from engine.improve.code.metrics import StaticError, StaticFinding, static_findings
from engine.improve.code.projects import HistoryError, commit_counts, find_repository, is_test
from engine.improve.code.source import SkippedFiles, walk_files
from engine.improve.judge.box import Boxes
from engine.value import asdict, dataclass, field, replace

_SHOWN = 12


@dataclass(frozen=True, slots=True)
class ModuleReport:
    """One file of Python."""

    path: str
    name: str
    """As it is imported."""
    lines: int
    code: int
    """Lines with more than a comment on them."""
    complexity: int
    """The sum of its functions' cyclomatic complexity."""
    upkeep: float
    """Maintainability index, 0 to 100; 100 is the easiest to maintain (radon)."""
    classes: int = 0
    tests: int = 0
    """Functions whose name begins with `test`."""
    imports: tuple[str, ...] = ()
    """Modules of the same tree that it imports when it is imported."""

    @property
    def is_package(self) -> bool:
        """Whether it is the `__init__` of a package."""
        return self.path.endswith("__init__.py")


@dataclass(frozen=True, slots=True)
class FunctionReport:
    """One function."""

    path: str
    name: str
    line: int
    complexity: int


@dataclass(frozen=True, slots=True)
class HotSpot:
    """A file in which much comes together: size, complexity, changes."""

    path: str
    code: int
    complexity: int
    changes: int
    """Commits that changed it."""
    score: int
    """code × complexity × (1 + changes)."""


@dataclass(frozen=True, slots=True)
class StaticReport:
    """One static finding."""

    path: str
    line: int
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class CodeReport:
    """What was found out about a tree of Python by reading it."""

    path: str
    focus: str = ""
    modules: tuple[ModuleReport, ...] = ()
    packages: tuple[str, ...] = ()
    other_files: int = 0
    cycles: tuple[tuple[str, ...], ...] = ()
    """Groups of modules that import each other, each by its names."""
    complex: tuple[FunctionReport, ...] = ()
    """The most complex functions, the worst first."""
    untested: tuple[str, ...] = ()
    """Paths of modules that no file of tests imports."""
    static: tuple[StaticReport, ...] = ()
    slow: tuple[StaticReport, ...] = ()
    """Slow places that can be seen; the code is their kind's function."""
    hot: tuple[HotSpot, ...] = ()
    problems: tuple[str, ...] = ()
    """Files that could not be read or parsed, and why."""
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be found out, and why."""
    rules: dict[str, int] = field(default_factory=dict)
    """Static findings by rule."""

    @property
    def code_lines(self) -> int:
        """Lines of code of all modules, tests among them."""
        return sum(module.code for module in self.modules)

    @property
    def test_count(self) -> int:
        """Functions of tests."""
        return sum(module.tests for module in self.modules)

    def as_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {**asdict(self), "code_lines": self.code_lines, "test_count": self.test_count}

    def as_text(self) -> str:
        """For people; every name in it is cleaned."""
        rules = sorted(self.rules.items(), key=lambda entry: (-entry[1], entry[0]))
        by_rule = ", ".join(f"{code} {count}" for code, count in rules)
        complex_ = [
            f"{function.complexity:>4}  {function.name}  {function.path}:{function.line}"
            for function in self.complex
        ]
        hot = [
            f"{hot.path}: {hot.code} × {hot.complexity} × {1 + hot.changes} = {hot.score:,}"
            for hot in self.hot
        ]
        circles = [f"{', '.join(circle)} import each other" for circle in self.cycles]
        edges = sum(len(module.imports) for module in self.modules)
        structure = f"imports among its modules: {edges}; circles: {len(circles)}"
        parts = [
            self._summary(),
            _listing(structure, circles) or structure,
            _listing("most complex functions", complex_),
            _listing("hot spots (code × complexity × changes)", hot),
            _listing(f"static findings ({by_rule})", _lines(self.static)),
            _listing("slow places", _lines(self.slow)),
            _listing("modules that no test imports", self.untested),
            _listing("not read", self.problems),
            _listing("left out", self.left_out),
            _listing("not found out", self.notes),
        ]
        return clean("\n\n".join(part for part in parts if part))

    def _summary(self) -> str:
        tests = sum(1 for module in self.modules if module.tests)
        words = f"{self.path}: {len(self.modules)} files of Python in {len(self.packages)} packages, "
        words += f"{self.code_lines:,} lines of code, {self.test_count} tests in {tests} files"
        words += f", {self.other_files} other files"
        return words + (f"\nfocus: {clean_line(self.focus, limit=200)}" if self.focus else "")


def _lines(reports: Sequence[StaticReport]) -> list[str]:
    return [
        f"{report.path}:{report.line} {report.code} {clean_line(report.text, limit=160)}"
        for report in reports
    ]


def _listing(title: str, lines: Sequence[str]) -> str:
    """A list under its title; empty where it has no lines."""
    shown = [f"  {clean_line(line, limit=240)}" for line in lines[:_SHOWN]]
    more = [f"  … and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return "\n".join([f"{title}:", *shown, *more]) if lines else ""


_SOURCES = str(Path(__file__).resolve().parents[3])
_COMPLEX = 10
"""Complexity of a function from which it is listed."""
_MOST = 200
"""Entries of each list that are kept."""
_LIMIT_S = 600.0
Tell = Callable[[float, float, str], None]


class AnalysisError(Exception):
    """The path cannot be analysed; the message says why."""


async def analyze(
    root: Path,
    path: str = ".",
    focus: str = "",
    *,
    boxes: Boxes | None = None,
    tell: Tell = lambda done, of, text: None,
) -> CodeReport:
    """The report of a directory.

    Args:
        root: nothing outside of it is read.
        path: the directory, from the root.
        focus: words; lists are narrowed to paths and functions that have one of them, where any does.
        boxes: have the jail that holds git; without one there is no history.
        tell: takes how far it is: files done, files, words.

    Raises:
        AnalysisError: there is no such directory beneath the root.
    """
    top = directory_beneath(root, path)
    left = SkippedFiles()
    files = await asyncio.to_thread(lambda: list(walk_files(top, left)))
    paths = [file for file in files if file.endswith(".py")]
    notes: list[str] = []
    measured, static, changed = await asyncio.gather(
        _measured(top, paths, tell), _static(top, paths, notes), _changed(boxes, root, top, notes)
    )
    tell(len(paths), len(paths), "putting it together")
    report = await asyncio.to_thread(
        _put_together, str(PurePosixPath(path)), focus, measured, static, changed
    )
    others = len(files) - len(paths)
    return replace(report, other_files=others, left_out=tuple(left.lines()), notes=(*report.notes, *notes))


def directory_beneath(root: Path, path: str) -> Path:
    """The directory of a path, which has to lie beneath the root once all links are followed.

    Raises:
        AnalysisError: it does not, or is no directory.
    """
    if "\0" in path:
        raise AnalysisError("a path cannot have a NUL character; name a directory such as `.`")
    base, top = root.resolve(), (root / path).resolve()
    if not top.is_relative_to(base):
        raise AnalysisError(
            f"{clean_line(path, limit=200)!r} leads out of the sandbox; name a directory in it"
        )
    if not top.is_dir():
        raise AnalysisError(f"{clean_line(path, limit=200)!r} is no directory; name one, such as `.`")
    return top


async def _measured(top: Path, paths: Sequence[str], tell: Tell) -> list[dict[str, Any]]:
    """The measures of all files, in the order of the paths."""
    measures: list[dict[str, Any]] = []
    while len(measures) < len(paths):
        done = len(measures)
        async for measure in _measured_in_one(top, paths[done:]):
            measures.append(measure)
            if len(measures) % 50 == 0:
                tell(len(measures), len(paths), measure["path"])
        if len(measures) < len(paths):
            measures.append({"path": paths[len(measures)], "problem": "it ended the process that read it"})
    return measures


async def _measured_in_one(top: Path, paths: Sequence[str]) -> AsyncIterator[dict[str, Any]]:
    """The measures of files, as far as one process gets with them."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "engine.improve.code.metrics", str(top)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={"PYTHONPATH": _SOURCES},
        limit=64 * 1024 * 1024,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    feeding = asyncio.create_task(_feed(process.stdin, paths))
    try:
        async with asyncio.timeout(_LIMIT_S):
            while line := await process.stdout.readline():
                yield json.loads(line)
    except (TimeoutError, ValueError):
        pass  # the file that it was at is reported as the one that stopped it
    finally:
        feeding.cancel()
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _feed(pipe: asyncio.StreamWriter, paths: Sequence[str]) -> None:
    with suppress(ConnectionError):
        for path in paths:
            pipe.write(f"{json.dumps(path)}\n".encode())
            await pipe.drain()
        pipe.close()


async def _static(top: Path, paths: Sequence[str], notes: list[str]) -> list[StaticFinding]:
    try:
        return await static_findings(top, paths)
    except StaticError as error:
        notes.append(f"static findings: {error}")
        return []


async def _changed(boxes: Boxes | None, root: Path, top: Path, notes: list[str]) -> Counter[str]:
    place = await asyncio.to_thread(find_repository, top, root)
    if place is None:
        notes.append("changes: there is no git repository of its own here")
        return Counter()
    if boxes is None:
        notes.append("changes: git runs in the jail only, and there is none")
        return Counter()
    try:
        return await commit_counts(boxes, place, top)
    except HistoryError as error:
        notes.append(f"changes: {clean_line(str(error), limit=200)}")
        return Counter()


def _put_together(
    path: str,
    focus: str,
    measured: Sequence[dict[str, Any]],
    static: Sequence[StaticFinding],
    changed: Mapping[str, int],
) -> CodeReport:
    good = [module for module in measured if "problem" not in module]
    names = module_names(module["path"] for module in measured)
    graph = import_graph(good, names)
    modules = tuple(_module_report(module, names[module["path"]], graph) for module in good)
    near, note = _narrowing(focus, [module["path"] for module in measured], good)

    def near_only(reports: Iterable[_Placed]) -> tuple[_Placed, ...]:
        return tuple(report for report in reports if near(f"{report.path} {getattr(report, 'name', '')}"))[
            :_MOST
        ]

    slow = [StaticReport(module["path"], *row) for module in good for row in module["slow"]]
    findings = [StaticReport(item.path, item.line, item.code, item.message) for item in static]
    hot = [_hot(module, changed) for module in modules if not is_test(module.path)]
    problems = [f"{module['path']}: {module['problem']}" for module in measured if "problem" in module]
    return CodeReport(
        path,
        focus,
        modules,
        tuple(sorted({module.name for module in modules if module.is_package})),
        cycles=import_circles(graph),
        complex=near_only(_complex_functions(good)),
        untested=tuple(module for module in _untested(modules) if near(module))[:_MOST],
        static=near_only(findings),
        slow=near_only(slow),
        hot=near_only(sorted(hot, key=lambda spot: (-spot.score, spot.path)))[:20],
        problems=tuple(problems)[:_MOST],
        notes=(note,) if note else (),
        rules=dict(Counter(item.code for item in static)),
    )


_Placed = TypeVar("_Placed", FunctionReport, HotSpot, StaticReport)


def _module_report(module: dict[str, Any], name: str, graph: Mapping[str, Iterable[str]]) -> ModuleReport:
    same = {key: module[key] for key in ("path", "lines", "code", "complexity", "upkeep", "classes")}
    tests = module["tests"] if is_test(module["path"]) else 0
    return ModuleReport(**same, name=name, tests=tests, imports=tuple(sorted(graph[name])))


def _complex_functions(measured: Sequence[dict[str, Any]]) -> list[FunctionReport]:
    functions = [FunctionReport(module["path"], *row) for module in measured for row in module["functions"]]
    complex_ = [function for function in functions if function.complexity >= _COMPLEX]
    return sorted(complex_, key=lambda function: (-function.complexity, function.path, function.line))


def _untested(modules: Sequence[ModuleReport]) -> list[str]:
    """The modules with code that no test imports, also not by the package that they are in."""
    tested = {name for module in modules if is_test(module.path) for name in module.imports}
    packages = [module for module in modules if module.is_package and module.name in tested]
    tested |= {
        name for package in packages for name in package.imports if name.startswith(f"{package.name}.")
    }
    plain = [
        module for module in modules if module.code and not module.is_package and not is_test(module.path)
    ]
    return [module.path for module in plain if module.name not in tested]


def _narrowing(
    focus: str, paths: Sequence[str], good: Sequence[dict[str, Any]]
) -> tuple[Callable[[str], bool], str]:
    """What is near the focus, by its words; everything where no path and no function has one of them."""
    words = [word for word in re.findall(r"[a-z0-9_]+", focus.lower()) if len(word) > 2]
    everything = [*paths, *(row[0] for module in good for row in module["functions"])]
    known = [word for word in words if any(word in module.lower() for module in everything)]
    if not known:
        note = f"focus: no path and no function has a word of {clean_line(focus, limit=100)!r}; all is shown"
        return (lambda text: True), note if words else ""
    return (lambda text: any(word in text.lower() for word in known)), ""


def _hot(module: ModuleReport, changed: Mapping[str, int]) -> HotSpot:
    times = changed.get(module.path, 0)
    score = module.code * module.complexity * (1 + times)
    return HotSpot(module.path, module.code, module.complexity, times, score)


def module_names(paths: Iterable[str]) -> dict[str, str]:
    """The names under which files are imported: from the first directory above that is no package."""
    every = sorted(paths)
    packages = {str(PurePosixPath(path).parent) for path in every if path.endswith("__init__.py")}
    names = {}
    for path in every:
        parts = list(PurePosixPath(path).with_suffix("").parts)
        start = len(parts) - 1
        while start > 0 and "/".join(parts[:start]) in packages:
            start -= 1
        inner = parts[start:-1] if parts[-1] == "__init__" else parts[start:]
        names[path] = ".".join(inner) or "__init__"
    return names


def import_graph(measured: Sequence[dict[str, Any]], names: Mapping[str, str]) -> dict[str, set[str]]:
    """Which modules of the tree each imports when it is imported."""
    known = set(names.values())
    graph: dict[str, set[str]] = {}
    for measured_module in measured:
        name = names[measured_module["path"]]
        edges = graph.setdefault(name, set())
        for level, module, what in measured_module["imports"]:
            target = _resolved(
                level, module, what, name, measured_module["path"].endswith("__init__.py"), known
            )
            if target and target != name:
                edges.add(target)
    return graph


def _resolved(level: int, module: str, what: str, importer: str, package: bool, known: set[str]) -> str:
    if level:
        parts = importer.split(".")
        kept = parts[: len(parts) - level + package]
        module = ".".join([*kept, *([module] if module else [])])
    for name in (f"{module}.{what}" if what else module, module):
        while name:
            if name in known:
                return name
            name = name.rpartition(".")[0] if not what else ""
    return ""


def import_circles(graph: Mapping[str, set[str]]) -> tuple[tuple[str, ...], ...]:
    """The groups of modules that import each other, directly or by way of others."""
    reached = {name: _reached(graph, name) for name in graph}
    groups = {
        tuple(sorted(other for other in reached[name] if name in reached.get(other, ())))
        for name in graph
        if name in reached[name]
    }
    return tuple(sorted(group for group in groups if len(group) > 1))


def _reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    """The modules that one imports, directly or by way of others."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    return reached
