"""The engine: agents that think and act, with every happening an event in one journal.

It knows nothing of screens. Commands enter through `engine.engine.Engine.submit`,
events leave through `engine.engine.Engine.events`; there is no other door.

Rooms that many sessions never enter (models, the reasoner) open late: their public names are imported when
they are first asked for (`late`), so that a workspace without them is on the screen sooner. Use such a room
as `from engine import reasoner` and `reasoner.read_config(...)`; to import a name from it opens it at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

__version__ = "0.1.0"


def late(room: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """The `__getattr__` of a room whose modules are imported when one of their names is first asked for.

    Args:
        room: the room's `__name__`.
        names: the public names of each module, by the module's name in the room.
    """
    homes = {name: module for module, held in names.items() for name in held}

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module '{room}' has no attribute '{name}'")
        value: object = getattr(import_module(f"{room}.{homes[name]}"), name)
        setattr(import_module(room), name, value)
        return value

    return find
