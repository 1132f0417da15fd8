"""Rooms that open late: all their names are there, and a start that needs none of them leaves them closed."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

LATE = [
    "engine.generation.pgp",
    "engine.inquiry",
    "engine.loop",
    "engine.mcp",
    "engine.metacognition",
    "engine.models",
    "engine.parameters",
    "engine.reasoner",
    "engine.selection",
    "engine.thinkers",
]
CLOSED = (
    "engine.bdi.agent",
    "engine.bdi.parser",
    "engine.generation.pgp.asking",
    "engine.inquiry.record",
    "app.building",
    "app.crew_doing",
    "app.mastermind_doing",
    "engine.agents.values",
    "engine.crew.crew",
    "engine.building.builder",
    "engine.mastermind.mastermind",
    "engine.mastermind.specifying",
    "engine.mcp.servers",
    "engine.mcp.settings",
    "mcp",
    "mcp_types",
    "engine.models.client",
    "engine.models.wire",
    "widgets.dialogs.builder",
    "widgets.dialogs.campaign",
    "widgets.dialogs.debate",
    "widgets.dialogs.guided",
    "widgets.dialogs.pipeline",
    "widgets.dialogs.fleet",
    "engine.parameters.extraction",
    "engine.reasoner.reasoner",
    "engine.selection.selecting",
    "engine.thinkers.claude",
)
"""What only some agents need."""


@pytest.mark.parametrize("room", LATE)
def test_every_public_name_of_a_late_room_can_be_had(room: str) -> None:
    script = (
        "import importlib, types\n"
        f"room = importlib.import_module({room!r})\n"
        "found = {name: getattr(room, name) for name in room.__all__}\n"
        "wrong = [name for name, value in found.items() if isinstance(value, types.ModuleType)]\n"
        "assert found and not wrong, wrong\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("room", LATE)
def test_no_public_name_of_a_late_room_is_that_of_a_module_which_would_hide_it(room: str) -> None:
    opened = import_module(room)
    assert opened.__file__ is not None
    modules = {path.stem for path in Path(opened.__file__).parent.glob("*.py")}
    early = {name for name in opened.__all__ if name in modules and not callable(vars(opened).get(name))}
    assert not early


def test_what_a_late_room_does_not_have_is_said_by_name() -> None:
    with pytest.raises(AttributeError, match=r"'engine.models' has no attribute 'oracle'"):
        _ = import_module("engine.models").oracle


def test_the_cockpit_starts_without_what_only_some_agents_need() -> None:
    script = f"import sys, app.cockpit; print([one for one in {CLOSED!r} if one in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
