"""Programs of several files: `{ include("other.asl") }` stands for what the other file says.

An included file lies beneath the folder of the one that names it, links followed. A file that is named
several times is read once; one that includes itself, directly or through others, is an error.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from engine.bdi.errors import Position, SyntaxProblem
from engine.bdi.parser import read_program
from engine.bdi.syntax import Include, Program

DEEPEST = 50
"""Files that may include each other in a row."""


def load_program(
    path: str, read: Callable[[str], str], real: Callable[[str], str] = posixpath.normpath, space: str = ""
) -> tuple[Program, tuple[SyntaxProblem, ...]]:
    """A program with what it includes in the places of the directives, and every problem found.

    Args:
        path: of its file.
        read: gives a file's text; OSError and ValueError of an included one become problems.
        real: a path without links, by which files are told apart.
        space: namespace of its names.

    Raises:
        OSError, ValueError: the first file cannot be read.
    """
    loader = _Loader(read, real)
    loader.seen.add((real(path), space))
    program = loader.program(path, read(path), (real(path),), space)
    return program, tuple(loader.problems)


class _Loader:
    def __init__(self, read: Callable[[str], str], real: Callable[[str], str]) -> None:
        self.read = read
        self.real = real
        self.seen: set[tuple[str, str]] = set()
        """Real paths and namespaces of the files that were read."""
        self.problems: list[SyntaxProblem] = []

    def program(self, path: str, text: str, within: tuple[str, ...], space: str = "") -> Program:
        """One file and what it includes; `within` are real paths: those that include it, itself last."""
        program, problems = read_program(text, path, space)
        self.problems += problems
        included: list[tuple[Position, Program]] = []
        for include in program.includes:
            result = self._included(path, include, within)
            if result is not None:
                included.append((include.position, result))
        return _merged(program, included)

    def _included(self, path: str, include: Include, within: tuple[str, ...]) -> Program | None:
        file = posixpath.join(posixpath.dirname(path), include.path)
        try:
            real = self.real(file)
            problem = self._refusal(path, include, real, within)
            if problem is None and (real, include.space) not in self.seen:
                self.seen.add((real, include.space))
                return self.program(file, self.read(file), (*within, real), include.space)
        except FileNotFoundError:
            problem = "a file that exists"
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            problem = f"a file that can be read ({reason})"
        if problem is not None:
            line, column = include.position
            self.problems.append(SyntaxProblem(path, line, column, problem, f"'{include.path}'"))
        return None

    def _refusal(self, path: str, include: Include, real: str, within: tuple[str, ...]) -> str | None:
        """What should have been there instead; None when the file may be read."""
        folder = self.real(posixpath.dirname(path) or ".")
        if posixpath.isabs(include.path) or not _beneath(folder, real):
            return "a file beneath the folder of this one"
        if real in within:
            return "a file that does not include this one"
        if len(within) >= DEEPEST:
            return f"at most {DEEPEST} files that include each other"
        return None


def _beneath(folder: str, file: str) -> bool:
    above = [part for part in folder.split("/") if part not in ("", ".")]
    parts = [part for part in file.split("/") if part not in ("", ".")]
    return parts[: len(above)] == above and ".." not in parts[len(above) :]


def _merged(program: Program, included: Sequence[tuple[Position, Program]]) -> Program:
    """A file's own items with those of each included file where its directive stands."""

    def merged(kind: str) -> Iterator[Any]:
        own, begun = getattr(program, kind), Position()
        for place, other in included:
            yield from (item for item in own if begun <= item.position < place)
            yield from getattr(other, kind)
            begun = place
        yield from (item for item in own if begun <= item.position)

    parts: dict[str, Any] = {kind: tuple(merged(kind)) for kind in ("knowledge", "goals", "plans", "docs")}
    return replace(program, **parts)
