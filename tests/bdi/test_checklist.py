"""Which of the specification's behaviours (§7) have a test here: each names its number in its docstring."""

from __future__ import annotations

import ast
import re
from pathlib import Path

REASONER = (*range(1, 33), 60)
"""Language, beliefs, cycle, failure, messages and, as far as it needs no host, holding at breakpoints; the
others belong to plan generation and the cockpit."""


def numbered() -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and "Checklist" in (ast.get_docstring(node) or ""):
                for number in re.findall(r"\d+", (ast.get_docstring(node) or "").partition(":")[0]):
                    found.setdefault(int(number), []).append(f"{path.name}::{node.name}")
    return found


def test_every_behaviour_of_the_reasoner_has_a_test() -> None:
    assert sorted(set(REASONER) - set(numbered())) == []
