"""The commands of SimpleCoder: their arguments and what they may change (`simple_coder_commands.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from engine.core.actions import Reversibility
from engine.core.ports import CommandSpec, Parameter

_UNDO = {"changes": Reversibility.WORKSPACE, "runs": Reversibility.IRREVERSIBLE}


def _spec(name: str, given: Mapping[str, Any]) -> CommandSpec:
    rest = {key: value for key, value in given.items() if key not in ("does", "parameters")}
    effect = {"mutates": True, "undo": _UNDO[given["does"]]} if "does" in given else {}
    parameters = [Parameter(required="default" not in each, **each) for each in given.get("parameters", ())]
    return CommandSpec(name, **{"example": name, **effect, **rest}, parameters=tuple(parameters))


_FILE = Path(__file__).with_suffix(".toml")
COMMANDS: Mapping[str, CommandSpec] = MappingProxyType(
    {name: _spec(name, given) for name, given in tomllib.loads(_FILE.read_text("utf-8")).items()}
)
"""Commands by name, in the order of `help`."""


def help_text() -> str:
    """One line for each command: how it is called and what it does."""
    lines = []
    for spec in COMMANDS.values():
        words = [spec.name, *(p.name if p.required else f"[{p.name}]" for p in spec.parameters)]
        lines.append(f"{' '.join(words):<28} {spec.description}")
    return "\n".join(lines)
