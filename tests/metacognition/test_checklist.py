"""Which of the specification's behaviours (§5) have a test here: each names its number in its docstring."""

from __future__ import annotations

import ast
import re
from pathlib import Path

METACOGNITION = (*range(1, 16), 30, 31, 32, 33, 34, 35, 36, 40)


def numbered() -> set[int]:
    found: set[int] = set()
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                told = ast.get_docstring(node) or ""
                if told.startswith("Checklist"):
                    found |= {int(number) for number in re.findall(r"\d+", told.partition(":")[0])}
    return found


def test_every_behaviour_of_metacognition_has_a_test() -> None:
    assert sorted(set(METACOGNITION) - numbered()) == []
