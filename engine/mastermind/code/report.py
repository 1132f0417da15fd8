"""The report of `analyze_codebase`: plain values, as JSON and as text."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from engine.domain.text import clean, clean_line

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
    actions: int
    """Actions of agents that changed it."""
    score: int
    """code × complexity × (1 + changes + actions)."""


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
        return sum(one.code for one in self.modules)

    @property
    def test_count(self) -> int:
        """Functions of tests."""
        return sum(one.tests for one in self.modules)

    def as_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            **asdict(self),
            "code_lines": self.code_lines,
            "test_count": self.test_count,
        }

    def as_text(self) -> str:
        """For people; every name in it is cleaned."""
        parts = [self._summary(), self._structure(), self._list("most complex functions", self._complex())]
        parts.append(self._list("hot spots (code × complexity × changes)", self._hot()))
        parts.append(self._list(f"static findings ({_by_rule(self.rules)})", self._static(self.static)))
        parts.append(self._list("slow places", self._static(self.slow)))
        parts.append(self._list("modules that no test imports", list(self.untested)))
        parts.append(self._list("not read", list(self.problems)))
        parts.append(self._list("left out", list(self.left_out)))
        parts.append(self._list("not found out", list(self.notes)))
        return clean("\n\n".join(part for part in parts if part))

    def _summary(self) -> str:
        tests = sum(1 for one in self.modules if one.tests)
        words = f"{self.path}: {len(self.modules)} files of Python in {len(self.packages)} packages, "
        words += f"{self.code_lines:,} lines of code, {self.test_count} tests in {tests} files"
        words += f", {self.other_files} other files"
        return words + (f"\nfocus: {clean_line(self.focus, limit=200)}" if self.focus else "")

    def _structure(self) -> str:
        edges = sum(len(one.imports) for one in self.modules)
        circles = [f"{', '.join(circle)} import each other" for circle in self.cycles]
        return self._list(
            f"imports among its modules: {edges}; circles: {len(circles)}", circles, always=True
        )

    def _complex(self) -> list[str]:
        return [f"{one.complexity:>4}  {one.name}  {one.path}:{one.line}" for one in self.complex]

    def _hot(self) -> list[str]:
        return [
            f"{one.path}: {one.code} × {one.complexity} × {1 + one.changes + one.actions} = {one.score:,}"
            for one in self.hot
        ]

    @staticmethod
    def _static(found: tuple[StaticReport, ...]) -> list[str]:
        return [f"{one.path}:{one.line} {one.code} {clean_line(one.text, limit=160)}" for one in found]

    @staticmethod
    def _list(title: str, lines: list[str], *, always: bool = False) -> str:
        if not lines:
            return title if always else ""
        shown = [f"  {clean_line(line, limit=240)}" for line in lines[:_SHOWN]]
        more = [f"  … and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
        return "\n".join([f"{title}:", *shown, *more])


def _by_rule(rules: dict[str, int]) -> str:
    return ", ".join(
        f"{code} {count}" for code, count in sorted(rules.items(), key=lambda one: (-one[1], one[0]))
    )
