"""The tools that agents and operators can call, by name, and the check of a call's arguments."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from engine.core.actions import ErrorCode
from engine.core.ports import CommandSpec, Parameter, Tool
from engine.tools.acp_tool import AcpTool
from engine.tools.belief_tool import BeliefTool
from engine.tools.worlds.world import WORLDS
from engine.value import dataclass

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "any": (object,),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a call."""

    code: ErrorCode
    message: str
    """Names what is wrong and what was expected."""
    argument: str = ""
    """The argument it is about, empty when it is about the call."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A call's arguments after the check."""

    args: dict[str, Any]
    """With defaults filled in; usable only when there is no problem."""
    problems: tuple[Problem, ...] = ()

    @property
    def message(self) -> str:
        """All problems in one text."""
        return " ".join(problem.message for problem in self.problems)


def suggestion(word: str, known: Iterable[str]) -> str:
    """` Did you mean 'x' or 'y'?`, or nothing when no known word is near."""
    near = difflib.get_close_matches(word, list(known), n=2, cutoff=0.6)
    return f" Did you mean {' or '.join(repr(name) for name in near)}?" if near else ""


def check_arguments(spec: CommandSpec, args: Mapping[str, Any]) -> Checked:
    """Compare arguments with the command's parameters; nothing is converted or guessed.

    An optional argument that is None counts as left out.
    """
    problems: list[Problem] = []
    checked: dict[str, Any] = {}
    known = {parameter.name: parameter for parameter in spec.parameters}
    for name in args:
        if name not in known and spec.open:
            checked[name] = args[name]
        elif name not in known:
            expected = f"It takes {', '.join(map(repr, known))}." if known else "It takes no arguments."
            text = f"{spec.name} has no argument {name!r}.{suggestion(name, known)} {expected}"
            problems.append(Problem(ErrorCode.BAD_ARGUMENTS, text, name))
    for name, parameter in known.items():
        value = args.get(name)
        if value is None and (name not in args or not parameter.required):
            if parameter.required:
                needs = f"{spec.name} needs the argument {name!r} ({expectation(parameter)})"
                text = f"{needs}: {parameter.description}."
                problems.append(Problem(ErrorCode.BAD_ARGUMENTS, text, name))
            elif spec.schema is None:
                checked[name] = parameter.default
        elif fits(parameter, value):
            checked[name] = value
        else:
            text = f"{spec.name}: {name!r} must be {expectation(parameter)}, not {_shown(value)}."
            problems.append(Problem(ErrorCode.BAD_ARGUMENTS, text, name))
    return Checked(checked, tuple(problems))


def json_schema(spec: CommandSpec) -> dict[str, Any]:
    """The command's arguments as a JSON Schema object."""
    if spec.schema is not None:
        return {"type": "object", **spec.schema}
    properties: dict[str, Any] = {}
    for parameter in spec.parameters:
        schema: dict[str, Any] = {} if parameter.type == "any" else {"type": parameter.type}
        if parameter.kind == "shell":
            schema = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
        schema["description"] = parameter.description
        if not parameter.required and parameter.default is not None:
            schema["default"] = parameter.default
        properties[parameter.name] = schema
    return {
        "type": "object",
        "properties": properties,
        "required": [parameter.name for parameter in spec.parameters if parameter.required],
        "additionalProperties": False,
    }


def expectation(parameter: Parameter) -> str:
    """What the argument must be, for people."""
    if parameter.kind == "shell":
        return "a string or an array of strings"
    if parameter.type == "any":
        return "any value"
    article = "an" if parameter.type[0] in "aio" else "a"
    return f"{article} {parameter.type}"


def fits(parameter: Parameter, value: Any) -> bool:
    """Whether a value is of the argument's type."""
    if parameter.kind == "shell" and isinstance(value, (list, tuple)):
        return all(isinstance(word, str) for word in value)
    if isinstance(value, bool) and parameter.type not in ("boolean", "any"):
        return False  # a bool is an int to Python, not to JSON
    return isinstance(value, _PYTHON_TYPES[parameter.type])


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "…"


class UnknownToolError(LookupError):
    """A tool was asked for that is not registered."""


def built_in_tools() -> tuple[Tool, ...]:
    """The tools that need nothing of a workspace, as every registry and every replay has them."""
    return (BeliefTool(), AcpTool(), *WORLDS.values())


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

    def spec(self, tool_id: str, command: str) -> CommandSpec | None:
        """What a command of a tool takes; None where there is no such tool or command."""
        return self._tools[tool_id].commands.get(command) if tool_id in self._tools else None

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
