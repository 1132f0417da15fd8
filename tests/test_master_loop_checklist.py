"""The sixty behaviours of the master loop (its spec §5): each has a test with its number."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent
ROOMS = ("engine", "memory", "metacognition", "thinkers")
"""Where they are; other rooms number the lists of other specifications."""


def numbered() -> dict[int, list[str]]:
    """The tests of each number, which their docstrings begin with: `Checklist 14, 40: …`."""
    found: dict[int, list[str]] = {}
    for path in sorted(path for room in ROOMS for path in (TESTS / room).glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                told = ast.get_docstring(node) or ""
                if told.startswith("Checklist"):
                    for number in re.findall(r"\d+", told.partition(":")[0]):
                        found.setdefault(int(number), []).append(f"{path.name}::{node.name}")
    return found


def test_every_behaviour_has_a_test_that_names_it() -> None:
    assert sorted(set(range(1, 61)) - set(numbered())) == []
