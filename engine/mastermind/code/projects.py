"""Python projects in the sandbox, as components that can be improved (mindX spec §5, coord_improve)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from engine.domain.improvement import Component, ComponentKind
from engine.mastermind.code.tree import LeftOut, is_skipped, walk

_STRONG = ("pyproject.toml", "setup.cfg", "setup.py")
_MEASURE = "its own tests, tests held out, calls compared with the code before, timed benchmarks"
_TOOL_MEASURE = "the tests beside it, calls compared with the tool before, timed benchmarks beside it"
_MOST_TOOLS = 500
TOOLS = "tools"
"""The directory below the sandbox whose files of Python are tools, each by itself."""
_DEEPEST = 6
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
        return tuple(one for one in self.tests if not one.endswith("conftest.py")) if self.alone else ()

    def path(self, inside: str) -> str:
        """A path of the project, from the root."""
        return f"{self.directory}/{inside}" if self.directory else inside

    def inside(self, path: str) -> str:
        """A path from the root, from the project's directory."""
        return path.removeprefix(f"{self.directory}/") if self.directory else path


def find_projects(root: Path, under: str = "sandbox") -> list[Project]:
    """The projects below a directory, in order of their paths; a project within another one belongs to that.

    Args:
        root: the directory that paths count from, such as a workspace's.
        under: where to look, relative to it; "" for the root itself.
    """
    top = root / under if under else root
    return [_project(root, directory, under) for directory in _directories(top, "", 0)]


def projects(root: Path, under: str = "sandbox") -> list[Component]:
    """Each project, and each of its modules, as a component; see `find_projects`."""
    return [component for project in find_projects(root, under) for component in _components(project)]


def tools(root: Path, under: str = "sandbox") -> list[Component]:
    """Each file of Python in `tools` that belongs to no project, as a component."""
    known = find_projects(root, under)
    taken = {project.path(one) for project in known for one in (*project.modules, *project.tests)}
    found = []
    for name in _python_in(root / under / TOOLS):
        path, stem = f"{under}/{TOOLS}/{name}", PurePosixPath(name).stem
        if path in taken or is_test(name) or is_bench(name) or f"{TOOLS}/{stem}" in {one.id for one in known}:
            continue
        title = f"the tool {path}, written in the workspace"
        aliases = (stem, f"{stem} tool", f"{stem}_tool", path)
        found.append(
            Component(f"{TOOLS}/{stem}", ComponentKind.TOOL, title, (path,), _TOOL_MEASURE, aliases=aliases)
        )
    return found


def _python_in(directory: Path) -> list[str]:
    try:
        with os.scandir(directory) as found:
            names = [one.name for one in found if one.is_file(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(name for name in names if name.endswith(".py") and name != "__init__.py")[:_MOST_TOOLS]


def _tool(root: Path, component: Component, under: str) -> Project | None:
    """A tool as a project of one module, with the tests and benchmarks that name or import it."""
    directory = f"{under}/{TOOLS}"
    (path,) = component.paths
    inside = path.removeprefix(f"{directory}/")
    if not path.startswith(f"{directory}/") or not (root / path).is_file():
        return None
    whole = _project(root, TOOLS, under)
    mine = [one for one in (*whole.tests, *whole.benches) if _is_about(root / whole.path(one), inside)]
    return Project(
        component.id,
        directory,
        (inside,),
        tuple(one for one in whole.tests if one in mine),
        tuple(one for one in whole.benches if one in mine),
        alone=True,
    )


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


def project_of(root: Path, component: Component, under: str = "sandbox") -> Project | None:
    """The project that a component is, or is a module of; a tool is one by itself."""
    if component.kind is ComponentKind.TOOL:
        return _tool(root, component, under)
    for project in find_projects(root, under):
        if project.id == component.id or any(project.path(one) in component.paths for one in project.modules):
            return project
    return None


def _directories(top: Path, below: str, depth: int) -> Iterator[str]:
    here = top / below
    try:
        with os.scandir(here) as found:
            entries = sorted(found, key=lambda entry: entry.name)
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


def _project(root: Path, below: str, under: str) -> Project:
    directory = "/".join(part for part in (under, below) if part)
    found = [path for path in walk(root / directory, LeftOut()) if path.endswith(".py")]
    tests = tuple(path for path in found if is_test(path) and not path.startswith("held_out/"))
    benches = tuple(path for path in found if is_bench(path) and not is_test(path))
    modules = tuple(path for path in found if not is_test(path) and not is_bench(path))
    return Project(below or under or root.name, directory, modules, tests, benches)


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
