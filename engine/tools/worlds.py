"""Small worlds as tools: what an agent does in its world is an action like all others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.domain.action import ErrorCode, ResultStatus, ToolResult
from engine.domain.ports import CallContext, CommandSpec
from engine.worlds.world import World


class WorldTool:
    """The actions of one kind of world, done in the caller's own."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.id = world.name
        self.description = world.description
        self.commands: Mapping[str, CommandSpec] = world.commands

    async def call(self, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        """The world after the action; an agent that lives elsewhere can do nothing here."""
        if context.world.get("world") != self._world.name:
            message = f"{context.agent or 'the caller'} does not live in the world {self._world.name}"
            return ToolResult(ResultStatus.ERROR, {"message": message}, ErrorCode.NOT_ALLOWED)
        came = self._world.act(dict(context.world), command, args)
        data = {"message": came.message} | ({"term": came.answer} if came.answer else {})
        if came.failed:
            return ToolResult(ResultStatus.FAILURE, data, ErrorCode.NOT_FOUND, world=came.world)
        return ToolResult(ResultStatus.SUCCESS, data, world=came.world)
