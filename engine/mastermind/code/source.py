"""A module's source with its syntax tree, and edits of its text by the tree's positions.

What is not edited stays as it is, byte for byte: comments, blanks, quotes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
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

    def indent(self, node: ast.stmt) -> str:
        """The white space in front of a statement."""
        line = self._lines[node.lineno - 1]
        return line[: len(line) - len(line.lstrip())]

    def line(self, number: int) -> str:
        """A line without the white space around it; numbers count from 1."""
        return self._lines[number - 1].strip() if 0 < number <= len(self._lines) else ""

    def edited(self, edits: Iterable[Edit]) -> str | None:
        """The text with edits in it; None when two of them overlap or it is no module any more."""
        pieces, at = [], 0
        for edit in sorted(edits):
            if edit.start < at:
                return None
            pieces += [self.text[at : edit.start], edit.text]
            at = edit.end
        text = "".join([*pieces, self.text[at:]])
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            return None
        return text

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
        found: list[ast.AST] = []
        here, above = node, self.parents.get(node)
        while above is not None and here is not within:
            once = isinstance(above, (ast.For, ast.AsyncFor)) and here in (above.iter, *above.orelse)
            if isinstance(above, (*LOOPS, *COMPREHENSIONS)) and not once and not self._first(above, here):
                found.append(above)
            here, above = above, self.parents.get(above)
        return found[::-1]

    @staticmethod
    def _first(above: ast.AST, here: ast.AST) -> bool:
        """Whether this is a comprehension's first generator, whose iterable is evaluated once."""
        return (
            isinstance(above, COMPREHENSIONS) and here is above.generators[0] and not above.generators[0].ifs
        )

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement that a node is in."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node


def _functions(node: ast.AST, above: str) -> Iterator[tuple[str, Function]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{above}{child.name}", child
            yield from _functions(child, f"{above}{child.name}.")
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{above}{child.name}.")
        else:
            yield from _functions(child, above)


def parameters(function: Function) -> list[ast.arg]:
    """Its parameters but for `self` and `cls`."""
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return [one for one in given if one.arg not in ("self", "cls")]


def names(node: ast.AST) -> set[str]:
    """The names that stand in it."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def called(node: ast.AST) -> str:
    """What a call calls, by its last word: `append` of `seen.append(x)`; empty for anything else."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def stores(node: ast.AST) -> set[str]:
    """The names that are bound in it, and those whose value a method may change in place."""
    found = set()
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load):
            found.add(one.id)
        elif isinstance(one, (ast.Subscript, ast.Attribute)) and not isinstance(one.ctx, ast.Load):
            found |= names(one.value)
        elif called(one) in MUTATORS and isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute):
            found |= names(one.func.value)
    return found


MUTATORS = frozenset(
    {
        *(
            "append",
            "extend",
            "insert",
            "pop",
            "remove",
            "clear",
            "sort",
            "reverse",
            "add",
            "discard",
            "update",
        ),
        *("appendleft", "popleft", "setdefault", "popitem"),
    }
)
"""Methods of containers that change them."""


def loose(text: str) -> Source | None:
    """The source of a text; None when it is no module."""
    try:
        return Source(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
