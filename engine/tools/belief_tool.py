"""The tool through which a plan step changes or asks the agent's own beliefs.

It makes belief operations actions like all others: gated, stepped, journaled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.core.actions import ErrorCode, ResultStatus, ToolResult
from engine.core.beliefs import BeliefTerms
from engine.core.ports import CallContext
from engine.tools.command_table import read_commands

TTL_LIMIT_S = 366 * 86_400
"""A belief is held for a year, or without end."""


class BeliefTool:
    """Belief operations as a tool."""

    id = "mind"
    description = "the agent's own beliefs"
    commands = read_commands(__file__)

    async def call(self, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Change or ask a belief; a belief set to None is removed."""
        key = str(args["key"])
        if command == "test":
            return self._test(key, args, context)
        if command == "remove":
            return ToolResult(ResultStatus.SUCCESS, {"message": f"{key} forgotten"}, beliefs={key: None})
        return self._hold(key, args)

    def _hold(self, key: str, args: Mapping[str, Any]) -> ToolResult:
        value, confidence, ttl_s = args["value"], args.get("confidence"), args.get("ttl_s")
        if confidence is not None and not 0 <= confidence <= 1:
            return _wrong(f"confidence is a number from 0 to 1, not {confidence}")
        if ttl_s is not None and not 0 < ttl_s <= TTL_LIMIT_S:
            return _wrong(f"ttl_s is a number of seconds above 0 and up to {TTL_LIMIT_S}, not {ttl_s}")
        terms = {key: BeliefTerms(confidence, ttl_s)} if confidence is not None or ttl_s is not None else {}
        message = f"{key} = {value}"
        return ToolResult(ResultStatus.SUCCESS, {"message": message}, beliefs={key: value}, terms=terms)

    def _test(self, key: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        held, expected = context.beliefs.get(key), args.get("value")
        if held is not None and expected in (None, held):
            return ToolResult(ResultStatus.SUCCESS, {"message": f"{key} = {held}"})
        condition = key if expected is None else f"{key} = {expected}"
        return ToolResult(
            ResultStatus.FAILURE, {"message": f"not believed: {condition}"}, ErrorCode.NOT_FOUND
        )


def _wrong(message: str) -> ToolResult:
    return ToolResult(ResultStatus.ERROR, {"message": message}, ErrorCode.BAD_ARGUMENTS)
