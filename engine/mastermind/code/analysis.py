"""`analyze_codebase`: what a tree of Python is made of and where it is worth a look, by reading alone.

Files are measured in processes of their own, ruff and git run in theirs; the loop only waits. The same tree
gives the same report. Source: mindX spec §1.2 (`analyze_codebase`), issue 8.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from engine.domain.text import clean_line
from engine.mastermind.code.box import Workshop
from engine.mastermind.code.history import HistoryError, changes, repository
from engine.mastermind.code.projects import is_test
from engine.mastermind.code.report import CodeReport, FunctionReport, HotSpot, ModuleReport, StaticReport
from engine.mastermind.code.static import StaticError, StaticFinding, by_rule, static_findings
from engine.mastermind.code.tree import LeftOut, walk

_PROCESSES = 2
_HOUSE = str(Path(__file__).resolve().parents[3])
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
    workshop: Workshop | None = None,
    actions: Mapping[str, int] | None = None,
    tell: Tell = lambda done, of, text: None,
) -> CodeReport:
    """The report of a directory.

    Args:
        root: nothing outside of it is read.
        path: the directory, from the root.
        focus: words; lists are narrowed to paths and functions that have one of them, where any does.
        workshop: what holds git; without one there is no history.
        actions: how often agents changed files, by path from the directory, as the journal says.
        tell: told how far it is: files done, files, words.

    Raises:
        AnalysisError: there is no such directory beneath the root.
    """
    top = directory_beneath(root, path)
    left = LeftOut()
    files = await asyncio.to_thread(lambda: list(walk(top, left)))
    paths = [one for one in files if one.endswith(".py")]
    notes: list[str] = []
    measured, static, changed = await asyncio.gather(
        _measured(top, paths, tell), _static(top, paths, notes), _changed(workshop, root, top, notes)
    )
    tell(len(paths), len(paths), "putting it together")
    report = await asyncio.to_thread(
        _put_together, str(PurePosixPath(path)), focus, measured, static, changed, actions or {}
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
    found: dict[str, dict[str, Any]] = {}
    shares = [list(paths[start::_PROCESSES]) for start in range(_PROCESSES)]
    await asyncio.gather(*(_share(top, share, found, len(paths), tell) for share in shares if share))
    return [found[path] for path in paths]


async def _share(top: Path, paths: list[str], found: dict[str, dict[str, Any]], of: int, tell: Tell) -> None:
    waiting = paths
    while waiting:
        done = await _measure_some(top, waiting, found, of, tell)
        if done == len(waiting):
            return
        found[waiting[done]] = {"path": waiting[done], "problem": "it ended the process that read it"}
        waiting = waiting[done + 1 :]


async def _measure_some(
    top: Path, paths: Sequence[str], found: dict[str, dict[str, Any]], of: int, tell: Tell
) -> int:
    """Measure files in one process until it ends; how many it did."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "engine.mastermind.code.measures", str(top)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={"PYTHONPATH": _HOUSE},
        limit=64 * 1024 * 1024,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    feeding = asyncio.create_task(_feed(process.stdin, paths))
    done = 0
    try:
        async with asyncio.timeout(_LIMIT_S):
            while line := await process.stdout.readline():
                said = json.loads(line)
                found[said["path"]] = said
                done += 1
                if len(found) % 50 == 0:
                    tell(len(found), of, said["path"])
    except (TimeoutError, ValueError):
        pass  # the file that it was at is told as the one that stopped it
    finally:
        feeding.cancel()
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    return done


async def _feed(pipe: asyncio.StreamWriter, paths: Sequence[str]) -> None:
    with suppress(ConnectionError):
        for start in range(0, len(paths), 100):
            pipe.write("".join(json.dumps(path) + "\n" for path in paths[start : start + 100]).encode())
            await pipe.drain()
        pipe.close()


async def _static(top: Path, paths: Sequence[str], notes: list[str]) -> list[StaticFinding]:
    try:
        return await static_findings(top, paths)
    except StaticError as error:
        notes.append(f"static findings: {error}")
        return []


async def _changed(workshop: Workshop | None, root: Path, top: Path, notes: list[str]) -> Counter[str]:
    place = await asyncio.to_thread(repository, top, root)
    if place is None:
        notes.append("changes: there is no git repository of its own here")
        return Counter()
    if workshop is None:
        notes.append("changes: git runs in the jail only, and there is none")
        return Counter()
    try:
        return await changes(workshop, place, top)
    except HistoryError as error:
        notes.append(f"changes: {clean_line(str(error), limit=200)}")
        return Counter()


def _put_together(
    path: str,
    focus: str,
    measured: Sequence[dict[str, Any]],
    static: Sequence[StaticFinding],
    changed: Mapping[str, int],
    actions: Mapping[str, int],
) -> CodeReport:
    good = [one for one in measured if "problem" not in one]
    names = module_names(one["path"] for one in measured)
    graph = import_graph(good, names)
    modules = tuple(
        ModuleReport(
            one["path"],
            names[one["path"]],
            one["lines"],
            one["code"],
            one["complexity"],
            one["upkeep"],
            one["classes"],
            one["tests"] if is_test(one["path"]) else 0,
            tuple(sorted(graph[names[one["path"]]])),
        )
        for one in good
    )
    near, note = _narrowing(focus, [one["path"] for one in measured], good)
    functions = [FunctionReport(one["path"], *row) for one in good for row in one["functions"]]
    functions = [one for one in functions if one.complexity >= _COMPLEX and near(f"{one.path} {one.name}")]
    slow = [StaticReport(one["path"], *row) for one in good for row in one["slow"] if near(one["path"])]
    tested = {name for one in modules if is_test(one.path) for name in one.imports}
    tested |= {
        inner
        for one in modules
        if one.path.endswith("__init__.py") and one.name in tested
        for inner in one.imports
        if inner.startswith(f"{one.name}.")
    }
    untested = [one.path for one in modules if not is_test(one.path) and one.code and one.name not in tested]
    hot = [_hot(one, changed, actions) for one in modules if not is_test(one.path) and near(one.path)]
    return CodeReport(
        path,
        focus,
        modules,
        tuple(sorted({names[one["path"]] for one in good if one["path"].endswith("__init__.py")})),
        cycles=circles(graph),
        complex=tuple(sorted(functions, key=lambda one: (-one.complexity, one.path, one.line))[:_MOST]),
        untested=tuple(path for path in untested if near(path) and not path.endswith("__init__.py"))[:_MOST],
        static=tuple(
            StaticReport(one.path, one.line, one.code, one.message) for one in static if near(one.path)
        )[:_MOST],
        slow=tuple(slow[:_MOST]),
        hot=tuple(sorted(hot, key=lambda one: (-one.score, one.path))[:20]),
        problems=tuple(f"{one['path']}: {one['problem']}" for one in measured if "problem" in one)[:_MOST],
        notes=(note,) if note else (),
        rules=dict(by_rule(static)),
    )


def _narrowing(
    focus: str, paths: Sequence[str], good: Sequence[dict[str, Any]]
) -> tuple[Callable[[str], bool], str]:
    """What is near the focus, by its words; everything where no path and no function has one of them."""
    words = [word for word in re.findall(r"[a-z0-9_]+", focus.lower()) if len(word) > 2]
    everything = [*paths, *(row[0] for one in good for row in one["functions"])]
    known = [word for word in words if any(word in one.lower() for one in everything)]
    if not known:
        note = f"focus: no path and no function has a word of {clean_line(focus, limit=100)!r}; all is shown"
        return (lambda text: True), note if words else ""
    return (lambda text: any(word in text.lower() for word in known)), ""


def _hot(one: ModuleReport, changed: Mapping[str, int], actions: Mapping[str, int]) -> HotSpot:
    times, acts = changed.get(one.path, 0), actions.get(one.path, 0)
    score = one.code * one.complexity * (1 + times + acts)
    return HotSpot(one.path, one.code, one.complexity, times, acts, score)


def module_names(paths: Iterable[str]) -> dict[str, str]:
    """The names under which files are imported: from the first directory above that is no package."""
    every = sorted(paths)
    packages = {str(PurePosixPath(path).parent) for path in every if path.endswith("__init__.py")}
    found = {}
    for path in every:
        parts = list(PurePosixPath(path).with_suffix("").parts)
        start = len(parts) - 1
        while start > 0 and "/".join(parts[:start]) in packages:
            start -= 1
        inner = parts[start:-1] if parts[-1] == "__init__" else parts[start:]
        found[path] = ".".join(inner) or "__init__"
    return found


def import_graph(measured: Sequence[dict[str, Any]], names: Mapping[str, str]) -> dict[str, set[str]]:
    """Which modules of the tree each imports when it is imported."""
    known = set(names.values())
    graph: dict[str, set[str]] = {}
    for one in measured:
        name = names[one["path"]]
        edges = graph.setdefault(name, set())
        for level, module, what in one["imports"]:
            target = _resolved(level, module, what, name, one["path"].endswith("__init__.py"), known)
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


def circles(graph: Mapping[str, set[str]]) -> tuple[tuple[str, ...], ...]:
    """The groups of modules that import each other (Tarjan's algorithm, without recursion)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    inside: set[str] = set()
    found: list[tuple[str, ...]] = []
    for start in sorted(graph):
        if start in order:
            continue
        work = [(start, iter(sorted(graph[start])))]
        order[start] = low[start] = len(order)
        stack.append(start)
        inside.add(start)
        while work:
            name, following = work[-1]
            for other in following:
                if other not in graph:
                    continue
                if other not in order:
                    order[other] = low[other] = len(order)
                    stack.append(other)
                    inside.add(other)
                    work.append((other, iter(sorted(graph[other]))))
                    break
                if other in inside:
                    low[name] = min(low[name], order[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == order[name]:
                    group: list[str] = []
                    while not group or group[-1] != name:
                        group.append(stack.pop())
                        inside.discard(group[-1])
                    if len(group) > 1:
                        found.append(tuple(sorted(group)))
    return tuple(sorted(found))
