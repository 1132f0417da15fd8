"""All commands under one name: what an operator may ask of the engine, validated at the border.

Every way in (key, command bar, mouse, headless) makes one of these; `Engine.submit` takes them. A command
is a pydantic model in the module of its noun (`engine/core/goals.py`, `plan.py`, …); its `do` registers it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Annotated, Any, Union

from pydantic import Field, TypeAdapter

from engine.core import campaigns, crew_commands  # noqa: F401  (they register their commands)
from engine.core.access import *
from engine.core.agents import *
from engine.core.approvals import *
from engine.core.beliefs import *
from engine.core.breakpoints import *
from engine.core.budgets import *
from engine.core.command import *
from engine.core.control import *
from engine.core.goals import *
from engine.core.memory import Remember as Remember
from engine.core.metacognition import *
from engine.core.notes import *
from engine.core.plan import *
from engine.core.reasoner import *
from engine.core.restored import *
from engine.core.rewind import *
from engine.core.sandbox import *


def parse_command(value: dict[str, Any]) -> Command:
    """A command from its JSON object.

    Raises:
        pydantic.ValidationError: it is none, or one of its fields is wrong.
    """
    return _adapter().validate_python(value)


def parse_recorded(value: dict[str, Any]) -> Command:
    """A command as the journal has it: what has been added since means what it was without.

    Raises:
        pydantic.ValidationError: it is none, or one of its fields is wrong.
    """
    return parse_command({"strides": False, "plans": False, **value} if value.get("do") == "step" else value)


def _leaves(parent: type[Command]) -> Iterable[type[Command]]:
    for child in parent.__subclasses__():
        if child.model_fields["do"].default:
            yield child
        yield from _leaves(child)


@cache
def _adapter() -> TypeAdapter[Command]:
    # Building it takes milliseconds, of each key if it were built for each command.
    kinds = tuple(_leaves(Command))
    return TypeAdapter(Annotated[Union[kinds], Field(discriminator="do")])  # type: ignore[arg-type]  # noqa: UP007
