"""Which of plan generation's behaviours (spec BDI §7) have a test: each names its number in its docstring."""

from __future__ import annotations

import ast
import re
from pathlib import Path

GENERATION = range(33, 60)
"""Triggers and life cycle, prompts and parser, benchmark and trace."""
ELSEWHERE = {
    59: "speed is measured by tests/benchmarks/bdi.py, no test asserts it",
}
TOP = Path(__file__).parent.parent


def numbered() -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for room in ("generation", "worlds", "reasoner"):
        for path in sorted((TOP / room).glob("test_*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                    for listed in re.findall(r"§7 (\d+(?:, \d+)*)", ast.get_docstring(node) or ""):
                        for number in listed.split(", "):
                            found.setdefault(int(number), []).append(f"{path.name}::{node.name}")
    return found


def test_every_behaviour_of_plan_generation_has_a_test_or_a_reason_why_not() -> None:
    assert sorted(set(GENERATION) - set(numbered())) == sorted(ELSEWHERE)
