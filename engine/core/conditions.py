"""Conditions over what an agent believes and has done: `failures > 2 and belief.tests_green == false`.

A language of comparisons with `and`, `or`, `not` and brackets. It knows names and constants, calls nothing,
and what it cannot compare is false. Patterns have `*` and `?` only, so that no text makes them slow.
"""

from __future__ import annotations

import fnmatch
import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from engine.value import dataclass

LOOKED_AT = 64 * 1024
"""Characters of a text that a pattern is compared with."""


@lru_cache(maxsize=512)
def _glob(pattern: str) -> re.Pattern[str]:
    """A pattern as `fnmatch` has it, which tries no piece between two stars twice; `[` is itself."""
    return re.compile(fnmatch.translate(pattern.replace("[", "[[]")))


def glob_matches(pattern: str, text: str) -> bool:
    """Whether the whole text is of this form: `*` stands for any characters, `?` for one."""
    if "*" not in pattern and "?" not in pattern:
        return pattern == text
    return _glob(pattern).match(text[:LOOKED_AT]) is not None


def glob_found_in(pattern: str, text: str) -> bool:
    """Whether the text has a part of this form; without `*` and `?` that is the pattern itself."""
    text = text[:LOOKED_AT]
    if "*" not in pattern and "?" not in pattern:
        return pattern in text
    return glob_matches(f"*{pattern}*", text)


LONGEST = 500
"""Characters of a condition."""
DEEPEST = 20
"""Brackets and negations inside one another."""
BELIEF = "belief."
COUNTERS = {
    "actions": "actions started",
    "failed_actions": "actions that did not succeed",
    "errors": "failures since the last success",
    "failures": "failures that nothing has settled",
    "goals": "open goals",
    "loops": "ticks since it was set running",
    "tokens": "of its models' calls",
    "usd": "cost of its models' calls",
    "calls": "of its models",
    "jobs": "running background jobs",
    "goal": "id of the goal being pursued",
    "step": "id of the step that runs or would run next",
}
"""Names beside beliefs, with what they are."""

Lookup = Callable[[str], Any]
"""The value of a name; None where there is none."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>-?\d+(?:\.\d+)?(?![\w.]))|(?P<text>\"[^\"]*\"|'[^']*')"
    r"|(?P<op><=|>=|==|!=|<|>|\(|\))|(?P<name>[A-Za-z_][\w.:-]*))"
)
_CONSTANTS: dict[str, Any] = {"true": True, "false": False, "none": None}
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class ConditionError(ValueError):
    """The text is no condition; the message says where and what was expected."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    column: int


@dataclass(frozen=True, slots=True)
class Name:
    """A belief or a counter."""

    text: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A value as it was written."""

    value: Any


@dataclass(frozen=True, slots=True)
class Compared:
    """Two values side by side."""

    op: str
    left: Name | Constant
    right: Name | Constant


@dataclass(frozen=True, slots=True)
class Joined:
    """Parts with `and` or `or` between them, or one part behind `not`."""

    op: str
    parts: tuple[Condition, ...]


Condition = Name | Constant | Compared | Joined


@lru_cache(maxsize=256)
def read_condition(text: str) -> Condition:
    """A condition from its text.

    Raises:
        ConditionError: it is none.
    """
    if len(text) > LONGEST:
        raise ConditionError(f"a condition has at most {LONGEST} characters, not {len(text)}")
    reader = _Reader(_tokens(text))
    condition = reader.joined("or", 0)
    if (rest := reader.next) is not None:
        raise ConditionError(f"'{rest.text}' at character {rest.column} is too much; join with and, or")
    return condition


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise ConditionError(f"'{text[at : at + 20].strip()}' at character {at + 1} cannot be read")
        tokens.append(_Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup) + 1))
        at = match.end()
    return tokens


class _Reader:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def next(self) -> _Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _take(self, *texts: str) -> str:
        """The next token where it is one of these words or signs; empty where it is not."""
        token = self.next
        if token is None or token.kind not in ("op", "name") or token.text not in texts:
            return ""
        self._at += 1
        return token.text

    def joined(self, op: str, depth: int) -> Condition:
        parts = [self._part(op, depth)]
        while self._take(op):
            parts.append(self._part(op, depth))
        return parts[0] if len(parts) == 1 else Joined(op, tuple(parts))

    def _part(self, op: str, depth: int) -> Condition:
        return self.joined("and", depth) if op == "or" else self._negated(depth)

    def _negated(self, depth: int) -> Condition:
        if depth > DEEPEST:
            raise ConditionError(f"a condition is nested at most {DEEPEST} deep")
        if self._take("not"):
            return Joined("not", (self._negated(depth + 1),))
        if self._take("("):
            inside = self.joined("or", depth + 1)
            if not self._take(")"):
                raise ConditionError("a bracket is not closed")
            return inside
        left = self._value()
        op = self._take("==", "!=", "like", *_ORDER)
        return Compared(op, left, self._value()) if op else left

    def _value(self) -> Name | Constant:
        token = self.next
        if token is None:
            raise ConditionError("a name or a value is missing at the end, such as failures > 2")
        if token.kind == "op" or token.text in ("and", "or", "not", "like"):
            raise ConditionError(
                f"a name or a value is expected at character {token.column}, not '{token.text}'"
            )
        self._at += 1
        if token.kind == "number":
            return Constant(float(token.text) if "." in token.text else int(token.text))
        if token.kind == "text":
            return Constant(token.text[1:-1])
        if token.text in _CONSTANTS:
            return Constant(_CONSTANTS[token.text])
        if token.text not in COUNTERS and not token.text.startswith(BELIEF):
            known = ", ".join(COUNTERS)
            raise ConditionError(f"there is no '{token.text}'; names: belief.KEY, {known}")
        return Name(token.text)


def is_met(condition: Condition, lookup: Lookup) -> bool:
    """Whether a condition holds.

    Args:
        condition: as it was read; it is nested at most `DEEPEST` deep.
        lookup: gives values by name.
    """
    match condition:
        case Joined("not", (part,)):
            return not is_met(part, lookup)
        case Joined("and", parts):
            return all(is_met(part, lookup) for part in parts)
        case Joined(_, parts):
            return any(is_met(part, lookup) for part in parts)
        case Compared(op, left, right):
            return _compare(op, _of(left, lookup), _of(right, lookup))
        case Name() | Constant():
            return bool(_of(condition, lookup))
    raise AssertionError(condition)


def _of(value: Name | Constant, lookup: Lookup) -> Any:
    return lookup(value.text) if isinstance(value, Name) else value.value


def _compare(op: str, item: Any, other: Any) -> bool:
    if op in ("==", "!="):
        # True is no number here, although it is 1 to Python.
        same = isinstance(item, bool) == isinstance(other, bool) and item == other
        return same is (op == "==")
    if op == "like":
        return isinstance(other, str) and item is not None and glob_matches(other, str(item))
    texts = isinstance(item, str) and isinstance(other, str)
    return (texts or (_is_number(item) and _is_number(other))) and _ORDER[op](item, other)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
