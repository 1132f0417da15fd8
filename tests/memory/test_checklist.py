"""Which of the specification's behaviours (§5) have a test here: each names its number in its docstring."""

from __future__ import annotations

import ast
import re
from pathlib import Path

MEMORY = (*range(1, 9), 12, 15, 37, 38, 39, 41, *range(47, 60))
"""What memory decides and keeps; of 1 to 8 and 12 the decision, as when it falls due is the loop's;
of 37 to 41 what is told, as when a prompt is made is the thinker's.
The others belong to the loop, the prompt and the cockpit."""


def numbered() -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            told = ast.get_docstring(node) or ""
            if told.startswith("Checklist"):
                for number in re.findall(r"\d+", told.partition(":")[0]):
                    found.setdefault(int(number), []).append(f"{path.name}::{node.name}")
    return found


def test_every_behaviour_of_memory_has_a_test() -> None:
    assert sorted(set(MEMORY) - set(numbered())) == []
