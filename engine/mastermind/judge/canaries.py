"""Tests mixed in among a project's own whose outcome is known: what lets these pass lets anything pass.

They stand in the project's own test files, under names like the others', so they import what the others
import. Most are copies of the project's tests with one wrong number; the others are plainly wrong or right.
"""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.mastermind.judge.suite import Check, Split

_WRONG = (
    "assert {a} * {b} == {wrong}",
    "raise AssertionError({a})",
    "import pytest\n    with pytest.raises(KeyError):\n        dict.fromkeys(({a}, {b}))[{a}]",
    "import unittest\n    unittest.TestCase().assertEqual({a} * {b}, {wrong})",
    "import pytest\n    assert {a} * {b} == pytest.approx({wrong})",
    "values = list(range({a}))\n    assert len(values) > {wrong}, values",
)
_RIGHT = (
    "assert {a} * {b} == {right}",
    "import pytest\n    with pytest.raises(KeyError):\n        dict.fromkeys(({a}, {b}))[{right} + {a}]",
    "import pytest\n    assert {a} * {b} == pytest.approx({right})",
)
_COPIES, _PLAIN = 4, 3
"""Copies from each file, and plainly wrong ones in all."""


@dataclass(frozen=True, slots=True)
class Canaries:
    """Tests with a known outcome."""

    material: Mapping[str, bytes]
    """The test files with them in it."""
    fails: tuple[Check, ...]
    """Those that have to fail."""
    holds: tuple[Check, ...]
    """Those that have to hold."""


def canaries(checks: Sequence[Check], material: Mapping[str, bytes], root: str, seed: int) -> Canaries:
    """Canaries for the test files that these checks are from.

    Args:
        checks: what is asked; only those that are tests count.
        material: the suite's files by path from the workspace's directory.
        root: the project's directory.
        seed: of the comparison.
    """
    rng = random.Random(f"canaries {seed}")
    files = sorted({check.test.partition("::")[0] for check in checks if check.test})
    places = {name: name if root in ("", ".") else f"{root}/{name}" for name in files}
    sources = {
        name: material[place].decode("utf-8", "replace")
        for name, place in places.items()
        if place in material and name.endswith(".py")
    }
    texts = dict(sources)
    fails: list[str] = []
    holds: list[str] = []
    for name, source in sources.items():
        taken = set(_tests(source))
        for function in _copies(source, rng)[:_COPIES]:
            function.name = _name(taken, rng)
            texts[name] += f"\n\n{ast.unparse(ast.fix_missing_locations(function))}\n"
            fails.append(f"{name}::{function.name}")
    for number in range(_PLAIN + 1 if sources else 0):
        name = rng.choice(sorted(sources))
        called = _name(set(_tests(texts[name])), rng)
        wrong = number < _PLAIN
        texts[name] += f"\n\ndef {called}():\n    {_body(rng, _WRONG if wrong else _RIGHT)}\n"
        (fails if wrong else holds).append(f"{name}::{called}")
    return Canaries(
        {places[name]: text.encode() for name, text in texts.items()},
        tuple(Check(node, Split.WORK, test=node) for node in fails),
        tuple(Check(node, Split.WORK, test=node) for node in holds),
    )


def _body(rng: random.Random, choices: tuple[str, ...]) -> str:
    a, b = rng.randint(3, 60), rng.randint(61, 99)
    return rng.choice(choices).format(a=a, b=b, right=a * b, wrong=a * b + rng.randint(1, 9))


def _tests(source: str) -> dict[str, ast.FunctionDef]:
    """The plain test functions of a module."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return {}
    return {
        node.name: node for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test")
    }


def _name(taken: set[str], rng: random.Random) -> str:
    """A name made of words of the names that are there."""
    words = sorted({word for name in taken for word in name.split("_")[1:] if word}) or ["value"]
    while True:
        name = "_".join(["test", *rng.choices(words, k=rng.randint(2, 4))])
        if name not in taken:
            taken.add(name)
            return name


def _copies(source: str, rng: random.Random) -> list[ast.FunctionDef]:
    """Copies of tests in which one comparison with a number or a text is wrong now, in random order."""
    found = []
    for node in _tests(source).values():
        if node.decorator_list:
            continue
        function = copy.deepcopy(node)
        places = [
            one
            for part in ast.walk(function)
            if isinstance(part, ast.Assert) and isinstance(part.test, ast.Compare)
            and len(part.test.ops) == 1 and isinstance(part.test.ops[0], ast.Eq)
            for one in [part.test.comparators[0]]
            if isinstance(one, ast.Constant) and type(one.value) in (int, float, str)
        ]  # fmt: skip
        if places:
            one = rng.choice(places)
            value = one.value
            one.value = f"{value}{rng.randint(2, 9)}" if isinstance(value, str) else value + rng.randint(1, 9)  # type: ignore[operator]
            found.append(function)
    rng.shuffle(found)
    return found
