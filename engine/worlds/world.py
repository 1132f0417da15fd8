"""What a small world is to the agent that lives in it: a value that actions change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.domain.ports import CommandSpec

WorldData = dict[str, Any]
"""A world as JSON. All have `world` (its name), `percepts` (literals), `lines` (its picture) and `facts`."""


@dataclass(frozen=True, slots=True)
class Happened:
    """What came of an action in a world."""

    world: WorldData
    message: str
    answer: str = ""
    """A term: what the action's unbound argument is."""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class World:
    """A kind of small world: where it begins, and what can be done in it."""

    name: str
    description: str
    begin: Callable[[int], WorldData]
    """The world at its beginning, for a seed."""
    commands: Mapping[str, CommandSpec]
    act: Callable[[WorldData, str, Mapping[str, Any]], Happened]
    """The world after a command with validated arguments; the given one is left as it is."""
