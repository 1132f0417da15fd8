"""Patterns: the small language in which a recipe says what it understands.

    (create|make) [a|an|the] [new] directory [named|called] {path:path}

Words stand for themselves, whatever their case. `(a|b c)` is one of several, `[a|b]` one or none,
`{name:type}` a parameter of a type of `engine.planning.library.parameters.TYPES`. Groups nest. A pattern
starts with a word (its verb), and a parameter that takes the rest of the clause stands at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.planning.library.parameters import TYPES, ParameterType, Shape
from engine.value import dataclass

MAX_LENGTH = 400
"""Longest pattern, in characters."""
MAX_DEPTH = 6
"""Deepest nesting of groups."""

_PIECE = re.compile(r"\s*([()\[\]|]|\{[^{}]*\}|[^\s()\[\]|{}]+|[{}])")
_PARAMETER = re.compile(r"\{([a-z][a-z0-9_]{0,39}):([a-z]+)\}")


class PatternError(ValueError):
    """A pattern that cannot be read; the message says what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A word that stands for itself."""

    word: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """A place for a value."""

    name: str
    type: ParameterType


@dataclass(frozen=True, slots=True)
class Group:
    """One of several sequences; none at all when optional."""

    options: tuple[Sequence, ...]
    optional: bool


Node = Literal | Parameter | Group


@dataclass(frozen=True, slots=True)
class Sequence:
    """Nodes one after the other."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that was read and checked."""

    text: str
    root: Sequence
    verbs: frozenset[str]
    """The words it can start with, lower case."""
    bound: frozenset[str]
    """Parameters that have a value whichever way it matches."""
    parameters: dict[str, ParameterType]
    """All its parameters."""


def parse_pattern(text: str) -> Pattern:
    """Read a pattern.

    Raises:
        PatternError: it is empty, too long, nested too deep or unbalanced, names an unknown type, names a
            parameter twice, does not start with a word, or has a rest parameter before its end.
    """
    if len(text) > MAX_LENGTH:
        raise PatternError(f"the pattern is longer than {MAX_LENGTH} characters: split it into several")
    root = _Reader(text).read()
    if not root.nodes:
        raise PatternError("the pattern is empty: write the words a clause starts with")
    parameters: dict[str, ParameterType] = {}
    for parameter in _walk(root):
        if parameters.setdefault(parameter.name, parameter.type) is not parameter.type:
            raise PatternError(f"parameter '{parameter.name}' has two types: give one of them another name")
    _check_unique(root)
    _check_rest_is_last(root, last=True)
    return Pattern(text, root, _verbs(root), _bound(root), parameters)


class _Reader:
    """Recursive descent over the pieces of a pattern."""

    def __init__(self, text: str) -> None:
        self.pieces = [match.group(1) for match in _PIECE.finditer(text)]
        self.at = 0

    def read(self) -> Sequence:
        node = self._sequence(0)
        if self.at < len(self.pieces):
            piece = self.pieces[self.at]
            raise PatternError(f"'{piece}' does not belong here: write alternatives as (a|b), options as [a]")
        return node

    def _sequence(self, depth: int) -> Sequence:
        if depth > MAX_DEPTH:
            raise PatternError(f"groups are nested deeper than {MAX_DEPTH}: write several patterns instead")
        nodes: list[Node] = []
        while self.at < len(self.pieces) and self.pieces[self.at] not in (")", "]", "|"):
            nodes.append(self._node(depth))
        return Sequence(tuple(nodes))

    def _node(self, depth: int) -> Node:
        piece = self.pieces[self.at]
        self.at += 1
        if piece in ("(", "["):
            return self._group(piece, depth)
        if piece[0] in "{}":
            return _parameter(piece)
        return Literal(piece.casefold())

    def _group(self, opening: str, depth: int) -> Group:
        closing = ")" if opening == "(" else "]"
        options = [self._sequence(depth + 1)]
        while self.at < len(self.pieces) and self.pieces[self.at] == "|":
            self.at += 1
            options.append(self._sequence(depth + 1))
        if self.at >= len(self.pieces) or self.pieces[self.at] != closing:
            raise PatternError(f"a '{opening}' is not closed: add '{closing}'")
        self.at += 1
        if any(not option.nodes for option in options):
            what = f"a group '{opening}…{closing}' has an empty alternative"
            raise PatternError(f"{what}: write [a|b] for 'or none'")
        return Group(tuple(options), optional=opening == "[")


def _parameter(piece: str) -> Parameter:
    match = _PARAMETER.fullmatch(piece)
    if match is None:
        todo = "write {name:type} in lower case, as in {path:path}"
        raise PatternError(f"'{piece}' is not a parameter: {todo}")
    name, kind = match.groups()
    if kind not in TYPES:
        raise PatternError(f"'{piece}' has an unknown type '{kind}': use one of {', '.join(sorted(TYPES))}")
    return Parameter(name, TYPES[kind])


def _walk(sequence: Sequence) -> Iterator[Parameter]:
    for node in sequence.nodes:
        if isinstance(node, Parameter):
            yield node
        elif isinstance(node, Group):
            for option in node.options:
                yield from _walk(option)


def _check_unique(sequence: Sequence) -> set[str]:
    """The names below, where no way through names one twice."""
    seen: set[str] = set()
    for node in sequence.nodes:
        if isinstance(node, Literal):
            continue
        names = {node.name} if isinstance(node, Parameter) else set().union(*map(_check_unique, node.options))
        if twice := seen & names:
            raise PatternError(f"parameter '{min(twice)}' is named twice: give one of them another name")
        seen |= names
    return seen


def _check_rest_is_last(sequence: Sequence, *, last: bool) -> None:
    for place, node in enumerate(sequence.nodes):
        here = last and place == len(sequence.nodes) - 1
        if isinstance(node, Parameter) and node.type.shape is Shape.REST and not here:
            what = f"'{{{node.name}:{node.type.name}}}' takes the rest of the clause"
            raise PatternError(f"{what}: put it last")
        if isinstance(node, Group):
            for option in node.options:
                _check_rest_is_last(option, last=here)


def _verbs(sequence: Sequence) -> frozenset[str]:
    verbs: set[str] = set()
    for node in sequence.nodes:
        if isinstance(node, Parameter):
            raise PatternError("a pattern starts with a word, not with a parameter: put its verb first")
        if isinstance(node, Literal):
            return frozenset(verbs | {node.word})
        for option in node.options:
            verbs |= _verbs(option)
        if not node.optional:
            return frozenset(verbs)
    raise PatternError("a pattern needs at least one word that is not optional: put its verb first")


def _bound(sequence: Sequence) -> frozenset[str]:
    bound: frozenset[str] = frozenset()
    for node in sequence.nodes:
        if isinstance(node, Parameter):
            bound |= {node.name}
        elif isinstance(node, Group) and not node.optional:
            bound |= frozenset.intersection(*map(_bound, node.options))
    return bound
