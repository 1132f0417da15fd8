"""The tool through which a plan step changes or asks the agent's own beliefs.

It makes belief operations actions like all others: gated, stepped, journaled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.domain.action import ErrorCode, ResultStatus, ToolResult
from engine.domain.ports import CallContext, CommandSpec, Parameter

_KEY = Parameter("key", "name of the belief")
_VALUE = Parameter("value", "what is believed", type="any")
_COMMANDS = {
    "add": CommandSpec("add", "hold something true", (_KEY, _VALUE)),
    "update": CommandSpec("update", "replace what is held true", (_KEY, _VALUE)),
    "remove": CommandSpec("remove", "hold something no longer true", (_KEY,)),
    "test": CommandSpec(
        "test",
        "succeed only when a belief is held, and has the value if one is given",
        (_KEY, Parameter("value", "the value it must have", type="any", required=False)),
    ),
}


class Mind:
    """Belief operations as a tool."""

    id = "mind"
    description = "the agent's own beliefs"
    commands: Mapping[str, CommandSpec] = _COMMANDS

    async def call(self, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Change or ask a belief; a belief set to None is removed."""
        key = str(args["key"])
        if command == "test":
            return self._test(key, args, context)
        if command == "remove":
            return ToolResult(ResultStatus.SUCCESS, {"message": f"{key} forgotten"}, beliefs={key: None})
        value = args["value"]
        return ToolResult(ResultStatus.SUCCESS, {"message": f"{key} = {value}"}, beliefs={key: value})

    def _test(self, key: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        held = context.beliefs.get(key)
        if held is not None and ("value" not in args or held == args["value"]):
            return ToolResult(ResultStatus.SUCCESS, {"message": f"{key} = {held}"})
        wanted = f" = {args['value']}" if "value" in args else ""
        return ToolResult(
            ResultStatus.FAILURE, {"message": f"not believed: {key}{wanted}"}, ErrorCode.NOT_FOUND
        )
