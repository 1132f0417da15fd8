"""The floors of ARCHITECTURE.md: a room imports only from rooms below it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent

FLOORS = [
    "app",
    "widgets",
    "themes",
    "engine.replay",
    "engine.engine",
    "engine.answers",
    "engine.mastermind",
    "engine.crew",
    "engine.building",
    "engine.loop",
    "engine.inquiry",
    "engine.reasoner",
    "engine.thinkers",
    "engine.generation",
    "engine.actions",
    "engine.parameters",
    "engine.recovery",
    "engine.steering",
    "engine.metacognition",
    "engine.models",
    "engine.snapshots",
    "engine.mcp",
    "engine.tools",
    "engine.sandbox",
    "engine.worlds",
    "engine.memory",
    "engine.journal",
    "engine.selection",
    "engine.agents",
    "engine.domain",
    "engine.bdi",
    "engine.library",
]
"""Top first, as in ARCHITECTURE.md; `engine.domain` is the vocabulary that the two rooms below do without."""

FORBIDDEN_BELOW_APP = {"textual", "rich"}
MODULES = sorted(
    path for room in ("app", "widgets", "themes", "engine") for path in (TOP / room).rglob("*.py")
)


def name_of(path: Path) -> str:
    parts = path.relative_to(TOP).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str | None:
    fitting = [room for room in FLOORS if module == room or module.startswith(room + ".")]
    return max(fitting, key=len) if fitting else None


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_room_imports_only_from_rooms_below_it(path: Path) -> None:
    module = name_of(path)
    here = room_of(module)
    if here is None:
        assert module == "engine", f"{module} belongs to no room of the list"
        return
    above = [
        f"{module} imports {name}"
        for name in imports_of(path)
        if (room := room_of(name)) is not None and FLOORS.index(room) < FLOORS.index(here)
    ]
    assert not above


@pytest.mark.parametrize("path", [p for p in MODULES if name_of(p).startswith("engine")], ids=name_of)
def test_the_engine_knows_no_screen(path: Path) -> None:
    roots = {name.split(".")[0] for name in imports_of(path)}
    assert not roots & (FORBIDDEN_BELOW_APP | {"app", "widgets", "themes"})


def test_widgets_know_no_engine_object() -> None:
    for path in MODULES:
        if name_of(path).startswith("widgets"):
            seen = {name for name in imports_of(path) if name.startswith("engine")}
            assert seen <= {"engine.domain.text", "engine.domain.text.clean", "engine.domain.text.clean_line"}


def test_the_plan_of_the_house_lists_the_floors_in_this_order() -> None:
    text = (TOP / "ARCHITECTURE.md").read_text(encoding="utf-8")
    listed = [
        name.rstrip("/").replace("/", ".")
        for name in re.findall(r"^\| `([\w/.]+?)(?:\.py)?/?` \|", text, re.M)
    ]
    assert [room for room in listed if room in FLOORS] == FLOORS
