"""Small worlds that an agent of the cockpit lives in, and the tool by which it acts there.

A world is a value that actions change; what an agent does in it is an action like all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.core.actions import ErrorCode, ResultStatus, ToolResult
from engine.core.ports import CallContext
from engine.tools.command_table import read_commands
from engine.tools.worlds import explorer

WorldData = dict[str, Any]
"""A world as JSON. All have `world` (its name), `percepts` (literals), `lines` (its picture) and `facts`."""


TRAIL = 12
"""Cells that the robot has left which are kept for the picture."""
_COMMANDS = read_commands(__file__)
_DIRECTION = _COMMANDS["move"].parameters[0].description


def _data(state: explorer.ExplorerState, draws: list[int], trail: list[list[int]], last: str) -> WorldData:
    return {
        "world": "explorer",
        "percepts": [f"{percept.functor}({','.join(percept.args)})" for percept in explorer.percepts(state)],
        "lines": list(explorer.draw_grid(state)),
        "facts": [["moves", str(state.moves)], ["robot at", f"{state.robot.x}, {state.robot.y}"]]
        + ([["last", last]] if last else []),
        "trail": trail,
        "robot": list(state.robot),
        "moves": state.moves,
        "draws": draws,
    }


def _done(world: WorldData, message: str, answer: str = "") -> ToolResult:
    """An action that succeeded; the answer is a term, what its unbound argument is."""
    data = {"message": message} | ({"term": answer} if answer else {})
    return ToolResult(ResultStatus.SUCCESS, data, world=world)


def _failed(world: WorldData, message: str) -> ToolResult:
    return ToolResult(ResultStatus.FAILURE, {"message": message}, ErrorCode.NOT_FOUND, world=world)


def _move(world: WorldData, state: explorer.ExplorerState, direction: str) -> ToolResult:
    after, feedback = explorer.move(state, direction)
    if not feedback.success:
        return _failed(world, f"there is no direction {direction}: {_DIRECTION}")
    if feedback.kind is explorer.FeedbackKind.REACHED:
        message = f"reached {feedback.value}"
    elif feedback.old == feedback.new:
        message = f"{direction} is blocked"
    else:
        message = f"moved {direction}"
    trail = world["trail"] if feedback.old == feedback.new else [*world["trail"], list(feedback.old)][-TRAIL:]
    return _done(_data(after, world["draws"], trail, message), message)


class ExplorerWorld:
    """The explorer's grid as a tool: each agent that lives there acts in its own."""

    id = "explorer"
    description = "a robot on a grid that looks for its home"
    commands = _COMMANDS

    def begin(self, seed: int) -> WorldData:
        """The world at its beginning, for a seed."""
        return _data(explorer.initial_state(), explorer.KotlinRandom(seed).state, [], "")

    async def call(self, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        """The world after the action; an agent that lives elsewhere can do nothing here."""
        world = dict(context.world)
        if world.get("world") != self.id:
            message = f"{context.agent or 'the caller'} does not live in the world {self.id}"
            return ToolResult(ResultStatus.ERROR, {"message": message}, ErrorCode.NOT_ALLOWED)
        state = explorer.ExplorerState(explorer.EXPLORER_GRID, explorer.Cell(*world["robot"]), world["moves"])
        if command == "move":
            return _move(world, state, str(args["direction"]))
        if command != "getDirectionToMove":
            return _done(world, "the robot stands still")
        draws = explorer.KotlinRandom.at_state(world["draws"])
        drawn = explorer.draw_direction(state, draws)
        world["draws"] = draws.state
        return (
            _done(world, drawn.value, drawn.value)
            if drawn.success
            else _failed(world, "there is no way out of here")
        )


WORLDS = {ExplorerWorld.id: ExplorerWorld()}
"""The worlds there are."""
