"""The tools that agents and operators can call, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from engine.domain.action import ErrorCode
from engine.domain.ports import Tool
from engine.tools.arguments import Checked, Problem, check_arguments, json_schema, suggestion


class UnknownToolError(LookupError):
    """A tool was asked for that is not registered."""


class ToolRegistry:
    """Tools by id; what is not registered cannot be called."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool) -> None:
        """Add a tool.

        Raises:
            ValueError: its id is empty or taken.
        """
        if not tool.id:
            raise ValueError("a tool needs an id")
        if tool.id in self._tools:
            raise ValueError(f"a tool named {tool.id!r} is registered already")
        self._tools[tool.id] = tool

    def get(self, tool_id: str) -> Tool:
        """The tool of that name.

        Raises:
            UnknownToolError: there is none; `validate` says so beforehand.
        """
        try:
            return self._tools[tool_id]
        except KeyError:
            raise UnknownToolError(self._unknown(tool_id)) from None

    def __contains__(self, tool_id: object) -> bool:
        return tool_id in self._tools

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def schemas(self) -> list[dict[str, Any]]:
        """What is offered to a model: an entry for each command that agents may call.

        Each has the tool, the command, a name that model interfaces accept, and a JSON Schema.
        """
        return [
            {
                "name": f"{tool.id}__{spec.name}",
                "tool": tool.id,
                "command": spec.name,
                "description": spec.description,
                "input_schema": json_schema(spec),
            }
            for tool in self
            for spec in tool.commands.values()
            if not (spec.operator_only or spec.runs_only)
        ]

    def validate(self, tool_id: str, command: str, args: Mapping[str, Any]) -> list[Problem]:
        """Everything that is wrong with a call; empty when it can be made."""
        return list(self.check(tool_id, command, args).problems)

    def check(self, tool_id: str, command: str, args: Mapping[str, Any]) -> Checked:
        """The call's arguments with defaults filled in, and everything that is wrong with the call."""
        tool = self._tools.get(tool_id)
        if tool is None:
            return Checked({}, (Problem(ErrorCode.UNKNOWN_TOOL, self._unknown(tool_id)),))
        spec = tool.commands.get(command)
        if spec is None:
            return Checked({}, (unknown_command(tool, command),))
        return check_arguments(spec, args)

    def _unknown(self, tool_id: str) -> str:
        known = ", ".join(self._tools) or "none"
        return f"There is no tool {tool_id!r}.{suggestion(tool_id, self._tools)} Tools: {known}."


def unknown_command(tool: Tool, command: str) -> Problem:
    """The tool has no such command; says which it has."""
    text = f"{tool.id} has no command {command!r}.{suggestion(command, tool.commands)}"
    return Problem(ErrorCode.UNKNOWN_COMMAND, f"{text} Commands: {', '.join(tool.commands)}.")
