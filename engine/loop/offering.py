"""Tools from outside (MCP servers, custom functions): what they offer is told to each agent's stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from engine.domain.ports import CommandSpec, Parameter, Tool
from engine.journal.events import ToolOffered

_LEFT_OUT = ("schema", "parameters")


def from_outside(tools: Iterable[Tool]) -> Iterator[Tool]:
    """Those of the tools that come from outside, as they say of themselves by `foreign`."""
    return (tool for tool in tools if getattr(tool, "foreign", False))


def offer_of(tool: Tool) -> ToolOffered:
    """What a tool offers now, for the record."""
    return ToolOffered(tool=tool.id, commands=tuple(_recorded(spec) for spec in tool.commands.values()))


def commands_of(said: ToolOffered) -> dict[str, CommandSpec]:
    """The commands of a recorded offer."""
    specs = (_restored(one) for one in said.commands)
    return {spec.name: spec for spec in specs}


def _recorded(spec: CommandSpec) -> dict[str, Any]:
    out = {field.name: getattr(spec, field.name) for field in fields(spec) if field.name not in _LEFT_OUT}
    parameters = [
        {field.name: getattr(parameter, field.name) for field in fields(parameter)}
        for parameter in spec.parameters
    ]
    return {**out, "parameters": parameters, "checked": spec.schema is not None}


def _restored(said: Mapping[str, Any]) -> CommandSpec:
    known = {name: value for name, value in said.items() if name not in ("parameters", "checked")}
    parameters = tuple(Parameter(**parameter) for parameter in said["parameters"])
    return CommandSpec(**known, parameters=parameters, schema={} if said["checked"] else None)
