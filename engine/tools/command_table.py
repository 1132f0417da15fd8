"""Reads the commands of a tool from the table beside its module.

`does` says what a command may change: nothing (left out), files of the workspace, which can be undone, or
anything, as programs do. A parameter is required unless it has a default or says `required = false`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from engine.core.actions import Reversibility
from engine.core.ports import CommandSpec, Parameter

_UNDO = {"changes": Reversibility.WORKSPACE, "runs": Reversibility.IRREVERSIBLE}


def read_commands(module: str) -> Mapping[str, CommandSpec]:
    """The commands by name in the order of the table; blocking.

    Args:
        module: the file of the tool's module.
    """
    table = tomllib.loads(Path(module).with_suffix(".toml").read_text("utf-8"))
    return MappingProxyType({name: _spec(name, given) for name, given in table.items()})


def _spec(name: str, given: Mapping[str, Any]) -> CommandSpec:
    rest = {key: value for key, value in given.items() if key not in ("does", "parameters")}
    effect: dict[str, Any] = {"mutates": True, "undo": _UNDO[given["does"]]} if "does" in given else {}
    parameters = (
        Parameter(**{"required": "default" not in each, **each}) for each in given.get("parameters", ())
    )
    return CommandSpec(name, **effect, **rest, parameters=tuple(parameters))
