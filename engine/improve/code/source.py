"""A project's files, and a module's source with its syntax tree and edits by the tree's positions.

What is not edited stays as it is, byte for byte: comments, blanks, quotes. Symbolic links are never followed.
"""

from __future__ import annotations

import ast
import itertools
import os
import tokenize
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path

from engine.core.store.places import open_plain

Function = ast.FunctionDef | ast.AsyncFunctionDef
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Text in place of a range of characters; an insertion where both ends are one."""

    start: int
    end: int
    text: str


class Source:
    """One module's text.

    Args:
        text: the module; SyntaxError, ValueError or RecursionError when it is none.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def offset(self, line: int, column: int) -> int:
        """The character of a place as the tree tells it: line from 1, column in bytes of UTF-8."""
        words = self._lines[line - 1]
        if not words.isascii():
            column = len(words.encode()[:column].decode(errors="ignore"))
        return self._starts[line - 1] + column

    def span(self, node: ast.expr | ast.stmt | ast.arg) -> tuple[int, int]:
        """The characters of a node."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def of(self, node: ast.expr | ast.stmt | ast.arg) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def replace(self, node: ast.expr | ast.stmt, text: str) -> Edit:
        """Put a text in the place of a node."""
        start, end = self.span(node)
        return Edit(start, end, text)

    def before(self, node: ast.stmt, text: str) -> Edit:
        """Put a line in front of a statement, as far in as it."""
        start = self._starts[node.lineno - 1]
        return Edit(start, start, f"{self.indent(node)}{text}\n")

    def after(self, node: ast.stmt, text: str) -> Edit:
        """Put a line behind a statement, as far in as it."""
        assert node.end_lineno is not None
        start = min(self._starts[node.end_lineno], len(self.text))
        lead = "" if start == self._starts[node.end_lineno] else "\n"
        return Edit(start, start, f"{lead}{self.indent(node)}{text}\n")

    def ahead(self, node: ast.AST, text: str) -> Edit:
        """Put a text in front of the statement of the module that a node is in, with its decorators."""
        top = next(place for place in self.tree.body if node in ast.walk(place))
        line = min([top.lineno, *(part.lineno for part in getattr(top, "decorator_list", ()))])
        return Edit(self._starts[line - 1], self._starts[line - 1], text)

    def indent(self, node: ast.stmt) -> str:
        """The white space in front of a statement."""
        line = self._lines[node.lineno - 1]
        return line[: len(line) - len(line.lstrip())]

    def line(self, number: int) -> str:
        """A line without the white space around it; numbers count from 1."""
        return self._lines[number - 1].strip() if 0 < number <= len(self._lines) else ""

    def with_edit(self, edit: Edit) -> str:
        """The text with an edit in it, whether or not it is a module then."""
        return self.text[: edit.start] + edit.text + self.text[edit.end :]

    def edited(self, edits: Iterable[Edit]) -> str | None:
        """The text with edits in it; None when two of them overlap or it is no module any more."""
        pieces, at = [], 0
        for edit in sorted(edits):
            if edit.start < at:
                return None
            pieces += [self.text[at : edit.start], edit.text]
            at = edit.end
        text = "".join([*pieces, self.text[at:]])
        return text if parse_source(text) is not None else None

    @cached_property
    def functions(self) -> list[tuple[str, Function]]:
        """Every function with its name, a method's behind its class's, in the order of the text."""
        return list(_functions(self.tree, ""))

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """What each node is a part of."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def loops_around(self, node: ast.AST, within: ast.AST) -> list[ast.AST]:
        """Loops and comprehensions whose repeated part a node is in, the outermost first."""
        loops: list[ast.AST] = []
        here, above = node, self.parents.get(node)
        while above is not None and here is not within:
            once = isinstance(above, (ast.For, ast.AsyncFor)) and here in (above.iter, *above.orelse)
            if isinstance(above, COMPREHENSIONS):  # the iterable of the first generator is evaluated once
                once = here is above.generators[0] and not above.generators[0].ifs
            if isinstance(above, (*LOOPS, *COMPREHENSIONS)) and not once:
                loops.append(above)
            here, above = above, self.parents.get(above)
        return loops[::-1]

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement that a node is in."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node


def _functions(node: ast.AST, above: str) -> Iterator[tuple[str, Function]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield f"{above}{child.name}", child
            yield from _functions(child, f"{above}{child.name}.")
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{above}{child.name}.")
        else:
            yield from _functions(child, above)


def defaults_of(given: ast.arguments) -> list[tuple[str, ast.expr]]:
    """The names of parameters that have a default, with the default."""
    plain = [*given.posonlyargs, *given.args]
    named = [*zip(plain[len(plain) - len(given.defaults) :], given.defaults, strict=True)]
    named += [(name, node) for name, node in zip(given.kwonlyargs, given.kw_defaults, strict=True) if node]
    return [(name.arg, node) for name, node in named]


def parameters(function: Function) -> list[ast.arg]:
    """Its parameters but for `self` and `cls`."""
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return [parameter for parameter in given if parameter.arg not in ("self", "cls")]


def used_names(node: ast.AST) -> set[str]:
    """The names that stand in it."""
    return {node.id for node in ast.walk(node) if isinstance(node, ast.Name)}


def called_name(node: ast.AST) -> str:
    """What a call calls, by its last word: `append` of `seen.append(x)`; empty for anything else."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def stored_names(node: ast.AST) -> set[str]:
    """The names that are bound in it, and those whose value a method may change in place."""
    names = set()
    for child in ast.walk(node):
        if isinstance(child, ast.Name) and not isinstance(child.ctx, ast.Load):
            names.add(child.id)
        elif isinstance(child, (ast.Subscript, ast.Attribute)) and not isinstance(child.ctx, ast.Load):
            names |= used_names(child.value)
        elif isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute):
            names |= used_names(child.func.value) if child.func.attr in MUTATORS else set()
    return names


MUTATORS = frozenset(
    {
        *("append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "add", "discard"),
        *("update", "appendleft", "popleft", "setdefault", "popitem"),
    }
)
"""Methods of containers that change them."""


def shapes_of(source: Source) -> dict[str, str]:
    """Each function as a tree, by name; under no name what else the module says."""
    shapes = {name: ast.dump(function) for name, function in source.functions}
    rest = [node for node in source.tree.body if not isinstance(node, Function)]
    classes = [node for node in rest if isinstance(node, ast.ClassDef)]
    shapes |= {node.name: ast.dump(node) for node in classes}
    shapes[""] = "\n".join(ast.dump(node) for node in rest if node not in classes)
    return shapes


def parse_source(text: str) -> Source | None:
    """The source of a text; None when it is no module."""
    try:
        return Source(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


SKIPPED = frozenset(
    {
        *("__pycache__", "node_modules", "venv", "env", "site-packages", "dist", "build", "htmlcov"),
        *(".git", ".hg", ".svn", ".venv", ".tox", ".nox", ".mypy_cache", ".ruff_cache", ".pytest_cache"),
        *(".hypothesis", ".pilothouse", ".home", ".tmp", ".idea", ".vscode", ".eggs", ".cache"),
    }
)
"""Directories that hold nothing which a person wrote."""
LARGEST = 1_000_000
"""Bytes of a file of source above which it is named and not read."""
MOST_FILES = 20_000


def is_skipped(name: str, directory: Path) -> bool:
    """Whether a directory of this name is passed over: hidden, a cache, or a virtual environment."""
    hidden = name in SKIPPED or name.startswith(".") or name.endswith(".egg-info")
    return hidden or (directory / name / "pyvenv.cfg").is_file()


def walk_files(top: Path, *, hidden: bool = False) -> Iterator[str]:
    """Regular files below a directory, at most 20,000, in order of their names, relative to it with `/`.

    Args:
        top: where to begin.
        hidden: whether files whose names begin with a point are given, too.
    """
    return itertools.islice(_files(top, "", hidden), MOST_FILES)


def _files(top: Path, below: str, hidden: bool) -> Iterator[str]:
    try:
        with os.scandir(top / below) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = f"{below}/{entry.name}" if below else entry.name
        if entry.is_dir(follow_symlinks=False):
            if not is_skipped(entry.name, top / below):
                yield from _files(top, path, hidden)
        elif entry.is_file(follow_symlinks=False) and (hidden or not entry.name.startswith(".")):
            yield path


def read_bytes(path: Path, most: int = LARGEST, *, beneath: Path | None = None) -> bytes:
    """A regular file's bytes, never through a link at its end and never from a pipe.

    Args:
        path: the file.
        most: its largest size in bytes.
        beneath: a directory, links resolved, that the file has to lie in once it is open; a directory that is
            swapped for a link meanwhile leads nowhere then.

    Raises:
        OSError: it cannot be read, is no regular file, is larger than `most`, or lies elsewhere.
    """
    with open_plain(path, links=False) as file:
        with suppress(FileNotFoundError):  # a system without /proc
            if beneath and not Path(f"/proc/self/fd/{file.fileno()}").readlink().is_relative_to(beneath):
                raise OSError(f"{path.name} leads out of the tree")
        if (size := os.fstat(file.fileno()).st_size) > most:
            raise OSError(f"{path.name} has {size:,} bytes, more than {most:,}")
        return file.read(most)


def read_source(path: Path) -> str:
    """The text of a file of Python, by the encoding that it declares.

    Raises:
        OSError: see `read_bytes`.
        ValueError: its bytes are not of that encoding; the message says so.
    """
    data = read_bytes(path)
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
        return data.decode(encoding).replace("\r\n", "\n")
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise ValueError(f"its text cannot be read: {error}") from error
