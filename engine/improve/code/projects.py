"""Python projects in the sandbox: finds them and runs them in the judge's box.

The copy of a project takes regular files only, so nothing in it leads out.
"""

from __future__ import annotations

import asyncio
import importlib.util
import math
import os
import re
import signal
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.metadata import distributions
from pathlib import Path, PurePosixPath
from typing import Any

from engine.core.improvement import Component, ComponentKind
from engine.core.text import clean_line
from engine.improve.code.source import is_skipped, read_bytes, walk_files
from engine.improve.judge.box import Box, BoxError, Boxes, BoxLimits
from engine.improve.judge.questions import test_outcome
from engine.improve.ports import Split
from engine.value import dataclass

_STRONG = ("pyproject.toml", "setup.cfg", "setup.py")
_MEASURE = "its own tests, tests held out, calls compared with the code before, timed benchmarks"
_TOOL_MEASURE = "the tests beside it, calls compared with the tool before, timed benchmarks beside it"
_MOST_TOOLS = 500
SANDBOX = "sandbox"
TOOLS = "tools"
"""The directory below the sandbox whose files of Python are tools, each by itself."""
_DEEPEST = 6
SETTINGS = ("pyproject.toml", "setup.cfg", "pytest.ini", "tox.ini", ".coveragerc")
_TEST_DIRECTORIES = frozenset({"tests", "test", "held_out"})


@dataclass(frozen=True, slots=True)
class Project:
    """One Python project; paths are relative to its directory."""

    id: str
    """Its directory from the sandbox, or the sandbox's own name."""
    directory: str
    """Its directory from the root that components count from."""
    modules: tuple[str, ...] = ()
    """Files of Python that may be changed."""
    tests: tuple[str, ...] = ()
    """Files of its tests that everybody sees, with what they are set up by."""
    benches: tuple[str, ...] = ()
    """Files named `bench_*.py`; each `bench_*(size)` in them is timed."""
    alone: bool = False
    """Whether it is one tool among others in a directory, so that only its own tests are run."""

    @property
    def asked(self) -> tuple[str, ...]:
        """Files of tests that are run by name; empty runs all there are."""
        return tuple(test for test in self.tests if not test.endswith("conftest.py")) if self.alone else ()

    def path(self, inside: str) -> str:
        """A path of the project, from the root."""
        return f"{self.directory}/{inside}" if self.directory else inside

    def inside(self, path: str) -> str:
        """A path from the root, from the project's directory."""
        return path.removeprefix(f"{self.directory}/") if self.directory else path


def find_projects(root: Path) -> list[Project]:
    """The projects in the sandbox below a root, in order of their paths; inner ones belong to outer ones."""
    return [_project(root, directory) for directory in _directories(root / SANDBOX, "", 0)]


def projects(root: Path) -> list[Component]:
    """Each project, and each of its modules, as a component; see `find_projects`."""
    return [component for project in find_projects(root) for component in _components(project)]


def tools(root: Path) -> list[Component]:
    """Each file of Python in `tools` that belongs to no project, as a component."""
    known = find_projects(root)
    taken = {project.path(name) for project in known for name in (*project.modules, *project.tests)}
    components = []
    for name in _python_in(root / SANDBOX / TOOLS):
        path, stem = f"{SANDBOX}/{TOOLS}/{name}", PurePosixPath(name).stem
        ident, tests = f"{TOOLS}/{stem}", is_test(name) or is_bench(name)
        if path in taken or tests or ident in {project.id for project in known}:
            continue
        title, aliases = (
            f"the tool {path}, written in the workspace",
            (stem, f"{stem} tool", f"{stem}_tool", path),
        )
        components.append(
            Component(ident, ComponentKind.TOOL, title, (path,), _TOOL_MEASURE, aliases=aliases)
        )
    return components


def _python_in(directory: Path) -> list[str]:
    try:
        with os.scandir(directory) as listing:
            names = [name.name for name in listing if name.is_file(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(name for name in names if name.endswith(".py") and name != "__init__.py")[:_MOST_TOOLS]


def _tool(root: Path, component: Component) -> Project | None:
    """A tool as a project of one module, with the tests and benchmarks that name or import it."""
    whole, (path,) = _project(root, TOOLS), component.paths
    inside = whole.inside(path)
    if inside == path or not (root / path).is_file():
        return None
    tests, benches = (
        tuple(name for name in names if _is_about(root / whole.path(name), inside))
        for names in (whole.tests, whole.benches)
    )
    return Project(component.id, whole.directory, (inside,), tests, benches, alone=True)


def _is_about(file: Path, tool: str) -> bool:
    """Whether a file of tests or benchmarks is named after a tool, imports it, or sets tests up."""
    stem = PurePosixPath(tool).stem
    if file.name in ("conftest.py", f"test_{stem}.py", f"{stem}_test.py", f"bench_{stem}.py"):
        return True
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return re.search(rf"^\s*(from|import)\s+(tools\.)?{re.escape(stem)}\b", text, re.MULTILINE) is not None


def project_of(root: Path, component: Component) -> Project | None:
    """The project that a component is, or is a module of; a tool is one by itself."""
    if component.kind is ComponentKind.TOOL:
        return _tool(root, component)
    for project in find_projects(root):
        modules = map(project.path, project.modules)
        if project.id == component.id or any(module in component.paths for module in modules):
            return project
    return None


def _directories(top: Path, below: str, depth: int) -> Iterator[str]:
    here = top / below
    try:
        with os.scandir(here) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError:
        return
    files = {entry.name for entry in entries if entry.is_file(follow_symlinks=False)}
    inner = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    if _is_project(here, files, inner):
        yield below
        return
    if depth < _DEEPEST:
        for name in inner:
            if not is_skipped(name, here):
                yield from _directories(top, f"{below}/{name}" if below else name, depth + 1)


def _is_project(here: Path, files: set[str], inner: list[str]) -> bool:
    if files & {*_STRONG, "__init__.py"}:
        return True
    requirements = any(name.startswith("requirements") and name.endswith(".txt") for name in files)
    code = any(name.endswith(".py") for name in files)
    tests = any(next((here / name).glob("test_*.py"), None) for name in inner if name in ("tests", "test"))
    return tests or (requirements and code)


def _project(root: Path, below: str) -> Project:
    directory = "/".join(part for part in (SANDBOX, below) if part)
    paths = [path for path in walk_files(root / directory) if path.endswith(".py")]
    tests = tuple(path for path in paths if is_test(path) and not path.startswith("held_out/"))
    benches = tuple(path for path in paths if is_bench(path) and not is_test(path))
    modules = tuple(path for path in paths if not is_test(path) and not is_bench(path))
    return Project(below or SANDBOX, directory, modules, tests, benches)


def is_test(path: str) -> bool:
    """Whether a file is a part of the tests, which no candidate may change."""
    parts = PurePosixPath(path)
    name = parts.name
    tests = name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"
    return tests or not _TEST_DIRECTORIES.isdisjoint(parts.parts[:-1])


def is_bench(path: str) -> bool:
    """Whether a file holds timed functions, which no candidate may change."""
    return PurePosixPath(path).name.startswith("bench_")


def _components(project: Project) -> Iterator[Component]:
    paths = tuple(project.path(path) for path in project.modules)
    words = PurePosixPath(project.id).name
    yield Component(
        id=project.id,
        kind=ComponentKind.PROJECT,
        title=f"the project {project.id}: {len(paths)} modules, {len(project.tests)} files of tests",
        paths=paths,
        measure=_MEASURE,
        aliases=tuple(dict.fromkeys((words, words.replace("_", " "), f"project {words}"))),
    )
    for inside, path in zip(project.modules, paths, strict=True):
        stem = PurePosixPath(inside).stem
        yield Component(
            id=f"{project.id}/{inside}",
            kind=ComponentKind.MODULE,
            title=f"the module {inside} of {project.id}",
            paths=(path,),
            measure=_MEASURE,
            aliases=tuple(dict.fromkeys((path, inside, stem, stem.replace("_", " "), f"{words} {stem}"))),
        )


def module_name(project: Project, root: Path, inside: str) -> tuple[str, str]:
    """The name under which a module is imported, and the directory that has to be on the path for it.

    Both for a project copied to a directory of its own; the directory is relative to the project's.
    """
    parts = list(PurePosixPath(inside).with_suffix("").parts)
    top = root / project.directory
    start = len(parts) - 1
    while start > 0 and (top.joinpath(*parts[:start]) / "__init__.py").is_file():
        start -= 1
    if start == 0 and (top / "__init__.py").is_file():
        return ".".join((top.name, *_without_init(parts))), ".."
    return ".".join(_without_init(parts[start:])), "/".join(parts[:start]) or "."


def _without_init(parts: list[str]) -> list[str]:
    return parts[:-1] if parts and parts[-1] == "__init__" else parts


class SlowError(BoxError):
    """Tests took longer than they may."""


_EMPTY = (0, 5)
"""How pytest ends where there was nothing to run."""
LIMITS = BoxLimits(check_s=120.0, processor_s=600, whole_s=900.0)
"""What a box may use in which a project is examined."""
_LARGEST_FILE = 20_000_000
_LARGEST_PROJECT = 256_000_000
Tests = dict[str, dict[str, Any]]
"""By id: `outcome` (see `test_outcome`), `message` and `line` of a failure, and the `lines` run by file."""


@dataclass(frozen=True, slots=True)
class ProjectInBox:
    """How a project is run; see `engine.improve.ports.BoxedSuite`."""

    root: str
    imports: tuple[str, ...]
    packages: tuple[Path, ...]
    plugins: tuple[str, ...] = ()

    @classmethod
    def of(cls, root: Path, project: Project) -> ProjectInBox:
        """How a project below a root is run."""
        imports = dict.fromkeys((".", *(module_name(project, root, path)[1] for path in project.modules)))
        packages = map(Path, library_directories(root, project))
        plugins = tuple(_plugins(root, project))
        return cls(project.directory or ".", tuple(imports), tuple(packages), plugins)

    def material(self, split: Split) -> Mapping[str, bytes]:
        """No files beside the project's own."""
        return {}


@asynccontextmanager
async def project_box(
    boxes: Boxes,
    root: Path,
    project: Project,
    files: Mapping[str, bytes] | None = None,
    limits: BoxLimits = LIMITS,
) -> AsyncIterator[Box]:
    """A box on a copy of a project.

    Args:
        boxes: makes it.
        root: the directory that paths count from.
        project: what is copied, with its tests.
        files: further files, and contents in place of the project's own, by path from the root.
        limits: what it may use.

    Raises:
        BoxError: it cannot be made.
    """
    copied = await asyncio.to_thread(_project_files, root, project)
    suite = await asyncio.to_thread(ProjectInBox.of, root, project)
    async with boxes.opened(None, suite, {**copied, **(files or {})}, limits=limits) as box:
        yield box


def _project_files(root: Path, project: Project) -> dict[str, bytes]:
    """A project's files but for tests that are held out, by path from the root."""
    source = (root / project.directory).resolve()
    files: dict[str, bytes] = {}
    for path in walk_files(source, hidden=True):
        if not path.startswith("held_out/"):
            with suppress(OSError):
                files[project.path(path)] = read_bytes(source / path, _LARGEST_FILE, beneath=source)
        if sum(map(len, files.values())) > _LARGEST_PROJECT:
            raise BoxError(f"{project.id} is too large to be run: more than {_LARGEST_PROJECT >> 20} MiB")
    return files


BAD = ("failed", "error")
"""Outcomes of tests that say that something is wrong."""


async def run_tests(
    box: Box,
    names: Sequence[str] = (),
    *,
    lines: bool = False,
    files: Mapping[str, str] | None = None,
    limit_s: float = 300.0,
    processor_s: float = 0.0,
) -> Tests:
    """Run tests in a box, all when none is named; their results by id.

    Args:
        box: has the project.
        names: ids of tests or files, from the project's directory.
        lines: note the lines of the project that each runs.
        files: contents in place of the project's own for this run, by path from the root.
        limit_s: seconds by the clock.
        processor_s: seconds of the processor, rounded up; 0 for no limit but the box's.

    Raises:
        SlowError: they took too long.
        BoxError: no test reported anything.
    """
    question = {"tests": [*names], "lines": lines, "files": files and dict(files)}
    answer = await box.put(question | {"processor_s": math.ceil(processor_s)}, limit_s)
    if answer.late or -answer.code in (signal.SIGKILL, signal.SIGXCPU):
        raise SlowError(f"the tests took longer than {processor_s or limit_s:.0f} s")
    tests = answer.said.get("tests")
    why = answer.failure or ("" if tests else str(answer.said.get("text", "")))
    if not tests and answer.said.get("status") not in (*_EMPTY, None):
        why = why or "pytest could not begin"
    if why or not isinstance(tests, dict):
        raise BoxError(f"the tests gave nothing: {clean_line(why, limit=300)}")
    return {test: {**entry, "outcome": test_outcome(entry.get("phases"))} for test, entry in tests.items()}


_PLUGINS = (("asyncio", "pytest_asyncio.plugin"), ("anyio", "anyio.pytest_plugin"))


def _plugins(root: Path, project: Project) -> Iterator[str]:
    """Plugins of pytest that its tests name where they are installed, and those of its own environment."""
    texts = []
    for name in (*SETTINGS, *project.tests):
        with suppress(OSError):
            texts.append(read_bytes(root / project.path(name)).decode("utf-8", "replace"))
    own = {PurePosixPath(path).parts[0].removesuffix(".py") for path in project.modules}
    for mark, plugin in _PLUGINS:
        package = plugin.partition(".")[0]
        named = any(f"mark.{mark}" in text or f"{mark}_mode" in text for text in texts)
        if named and package not in own and importlib.util.find_spec(package):
            yield plugin
    installed = distributions(path=library_directories(root, project)[:-1])
    yield from {entry.value for each in installed for entry in each.entry_points.select(group="pytest11")}


def library_directories(root: Path, project: Project) -> list[str]:
    """Directories with packages that its programs may read: its own virtual environment's, and pytest's."""
    top = (root / project.directory).resolve()
    directories = []
    for name in (".venv", "venv", "env"):
        if (top / name / "pyvenv.cfg").is_file():
            places = sorted((top / name / "lib").glob("python3*/site-packages"))
            directories += [str(place.resolve()) for place in places if place.resolve().is_relative_to(top)]
    spec = importlib.util.find_spec("pytest")
    if spec is not None and spec.origin is not None:
        directories.append(str(Path(spec.origin).resolve().parent.parent))
    return directories
