"""Programs of several files: `{ include("other.asl") }` stands for what the other file says (spec §1.4).

An included file lies beneath the folder of the one that names it, links followed. A file that is named
several times is read once; one that includes itself, directly or through others, is an error.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from engine.bdi.parser import read_program
from engine.bdi.problems import SyntaxProblem
from engine.bdi.syntax import Include, Position, Program

DEEPEST = 50
"""Files that may include each other in a row."""


class _Placed(Protocol):
    @property
    def position(self) -> Position:
        """Where it stands in its file."""


T = TypeVar("T", bound=_Placed)


def load_program(
    path: str, read: Callable[[str], str], real: Callable[[str], str] = posixpath.normpath
) -> tuple[Program, tuple[SyntaxProblem, ...]]:
    """A program with what it includes in the places of the directives, and every problem found.

    Args:
        path: of its file.
        read: gives a file's text; OSError and ValueError of an included one become problems.
        real: a path without links, by which files are told apart.

    Raises:
        OSError, ValueError: the first file cannot be read.
    """
    loader = _Loader(read, real)
    loader.seen.add(real(path))
    program = loader.program(path, read(path), (real(path),))
    return program, tuple(loader.problems)


class _Loader:
    def __init__(self, read: Callable[[str], str], real: Callable[[str], str]) -> None:
        self.read = read
        self.real = real
        self.seen: set[str] = set()
        """Real paths of the files that were read."""
        self.problems: list[SyntaxProblem] = []

    def program(self, path: str, text: str, within: tuple[str, ...]) -> Program:
        """One file and what it includes; `within` are real paths: those that include it, itself last."""
        program, problems = read_program(text, path)
        self.problems += problems
        included: list[tuple[Position, Program]] = []
        for include in program.includes:
            found = self._included(path, include, within)
            if found is not None:
                included.append((include.position, found))
        return _merged(program, included)

    def _included(self, path: str, include: Include, within: tuple[str, ...]) -> Program | None:
        file = posixpath.join(posixpath.dirname(path), include.path)
        try:
            real = self.real(file)
            problem = self._refusal(path, include, real, within)
            if problem is None and real not in self.seen:
                self.seen.add(real)
                return self.program(file, self.read(file), (*within, real))
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
    def merged(own: tuple[T, ...], of: Callable[[Program], tuple[T, ...]]) -> tuple[T, ...]:
        return tuple(_in_places(own, [(place, of(one)) for place, one in included]))

    return Program(
        merged(program.beliefs, lambda one: one.beliefs),
        merged(program.rules, lambda one: one.rules),
        merged(program.goals, lambda one: one.goals),
        merged(program.plans, lambda one: one.plans),
        merged(program.docs, lambda one: one.docs),
        program.includes,
        program.source,
    )


def _in_places(own: tuple[T, ...], included: Sequence[tuple[Position, tuple[T, ...]]]) -> Iterator[T]:
    """A file's own items with those of each included file where its directive stands."""
    begun = Position()
    for place, others in included:
        yield from (one for one in own if begun <= one.position < place)
        yield from others
        begun = place
    yield from (one for one in own if begun <= one.position)
