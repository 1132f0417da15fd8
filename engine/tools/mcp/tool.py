"""A server as a tool of the engine: its calls pass gate, pipeline, approvals and journal as all others.

A tool's JSON Schema becomes parameters as far as these can say it; what they cannot say is passed through and
checked by the server. Whatever a server does not declare read-only counts as changing something for good.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from engine.core.actions import ErrorCode, ResultStatus, Reversibility, ToolResult
from engine.core.ports import CallContext, CommandSpec, Parameter
from engine.core.text import clean_line
from engine.tools.mcp.health import CallAnswer, CallStatus
from engine.tools.mcp.names import command_of
from engine.tools.mcp.server import Server

if TYPE_CHECKING:
    from mcp.types import Tool


DESCRIPTION_LIMIT = 1_000
PARAMETERS_LIMIT = 100
_TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object"})
_OPEN = ("$ref", "allOf", "anyOf", "oneOf", "patternProperties")
"""What makes a schema say more about its arguments than a list of properties."""
_NOT_FOR_MODELS = ("$schema", "$id", "allOf", "anyOf", "oneOf", "not")
"""What models' interfaces do not take at the top of a schema; the server still checks it."""
_CODES: Mapping[CallStatus, tuple[ResultStatus, ErrorCode]] = {
    CallStatus.TOOL_FAILURE: (ResultStatus.FAILURE, ErrorCode.EXIT_STATUS),
    CallStatus.SERVER_ERROR: (ResultStatus.FAILURE, ErrorCode.INTERNAL),
    CallStatus.UNKNOWN_TOOL: (ResultStatus.ERROR, ErrorCode.UNKNOWN_COMMAND),
    CallStatus.CRASHED: (ResultStatus.FAILURE, ErrorCode.NETWORK),
    CallStatus.TIMEOUT: (ResultStatus.FAILURE, ErrorCode.TIMEOUT),
    CallStatus.SLOW_START: (ResultStatus.ERROR, ErrorCode.UNKNOWN_TOOL),
    CallStatus.DOWN: (ResultStatus.ERROR, ErrorCode.UNKNOWN_TOOL),
    CallStatus.NO_PERMISSION: (ResultStatus.ERROR, ErrorCode.UNKNOWN_TOOL),
}
"""By these recovery classifies; what is down counts as a tool that is unavailable."""


class McpTool:
    """One server for the registry of tools; its commands are the tools that it lists now."""

    foreign = True
    """What it offers comes from outside, and is on record (`engine.agent.shared`)."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._known: Mapping[str, Tool] = {}
        self._commands: dict[str, CommandSpec] = {}
        self._meant: dict[str, str] = {}

    @property
    def id(self) -> str:
        """The server's name."""
        return self._server.name

    @property
    def description(self) -> str:
        """What it is."""
        return f"the MCP server {self._server.name}"

    @property
    def commands(self) -> Mapping[str, CommandSpec]:
        """Its tools as commands; none before it has listed them."""
        if self._known is not self._server.tools:
            self._known = self._server.tools
            self._meant = {command_of(self.id, name): name for name in self._known}
            self._commands = {
                command: command_spec(command, self._known[name]) for command, name in self._meant.items()
            }
        return self._commands

    async def call(self, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Ask the server; see `engine.core.ports.Tool.call`."""
        name = self._meant.get(command, command)
        return result_of(await self._server.call(name, args, context.timeout_s))


def result_of(answer: CallAnswer) -> ToolResult:
    """A server's answer as a tool's."""
    if answer.ok:
        return ToolResult(ResultStatus.SUCCESS, {"content": answer.text})
    status, code = _CODES[answer.outcome]
    return ToolResult(status, {"message": answer.text, "outcome": answer.outcome.value}, code)


def command_spec(command: str, tool: Tool) -> CommandSpec:
    """A listed tool as a command's description.

    Args:
        command: its name as a command.
        tool: as the server lists it; nothing of it is trusted but that it is of the protocol's form.
    """
    schema = tool.input_schema
    needed = schema.get("required", ())
    needed = set(map(str, needed)) if isinstance(needed, list) else set()
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    reads = tool.annotations is not None and tool.annotations.read_only_hint is True
    more = schema.get("additionalProperties")
    return CommandSpec(
        command,
        clean_line(tool.description or tool.title or tool.name, limit=DESCRIPTION_LIMIT),
        tuple(
            _parameter(name, part, name in needed) for name, part in islice(known.items(), PARAMETERS_LIMIT)
        ),
        mutates=not reads,
        writes=not reads,
        undo=Reversibility.NONE.value if reads else Reversibility.IRREVERSIBLE.value,
        schema={key: value for key, value in schema.items() if key not in _NOT_FOR_MODELS},
        open=not 0 < len(known) <= PARAMETERS_LIMIT
        or more not in (None, False)
        or any(key in schema for key in _OPEN),
    )


def _parameter(name: str, schema: Any, required: bool) -> Parameter:
    fields = schema if isinstance(schema, dict) else {}
    kind = fields.get("type")
    words = clean_line(str(fields.get("description") or fields.get("title") or name), limit=300)
    plain = isinstance(kind, str) and kind in _TYPES
    return Parameter(name, words, str(kind) if plain else "any", required=required)
