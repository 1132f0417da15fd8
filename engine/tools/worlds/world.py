"""Small worlds that an agent of the cockpit lives in, and the tool by which it acts there.

A world is a value that actions change; what an agent does in it is an action like all others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine.core.actions import ErrorCode, ResultStatus, ToolResult
from engine.core.ports import CallContext, CommandSpec, Parameter
from engine.tools.worlds.explorer import (
    EXPLORER_GRID,
    Cell,
    ExplorerState,
    FeedbackKind,
    KotlinRandom,
    draw_direction,
    draw_grid,
    initial_state,
    move,
    percepts,
)
from engine.value import dataclass

WorldData = dict[str, Any]
"""A world as JSON. All have `world` (its name), `percepts` (literals), `lines` (its picture) and `facts`."""


@dataclass(frozen=True, slots=True)
class WorldActionResult:
    """The result of an action in a world."""

    world: WorldData
    message: str
    answer: str = ""
    """A term: what the action's unbound argument is."""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class World:
    """A kind of small world: where it begins, and what can be done in it."""

    name: str
    description: str
    begin: Callable[[int], WorldData]
    """The world at its beginning, for a seed."""
    commands: Mapping[str, CommandSpec]
    act: Callable[[WorldData, str, Mapping[str, Any]], WorldActionResult]
    """The world after a command with validated arguments; the given one is left as it is."""


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
        result = self._world.act(dict(context.world), command, args)
        data = {"message": result.message} | ({"term": result.answer} if result.answer else {})
        if result.failed:
            return ToolResult(ResultStatus.FAILURE, data, ErrorCode.NOT_FOUND, world=result.world)
        return ToolResult(ResultStatus.SUCCESS, data, world=result.world)


TRAIL = 12
"""Cells that the robot has left which are kept for the picture."""
_DIRECTION = "north, south, east, west, north_east, north_west, south_east, south_west or here"
_COMMANDS = {
    spec.name: spec
    for spec in (
        CommandSpec(
            "move",
            "Move to a neighbouring cell; an obstacle or the border leaves the robot where it is.",
            (Parameter("direction", _DIRECTION),),
            example="move north",
        ),
        CommandSpec(
            "getDirectionToMove",
            "Draw a direction that is free; it is the answer.",
            (Parameter("direction", "One that is drawn already", required=False, default=""),),
        ),
        CommandSpec("stop", "Stand still."),
        CommandSpec("pause", "Stand still for a moment."),
        CommandSpec("sleep", "Stand still for a while.", (Parameter("ms", "Milliseconds", type="number"),)),
    )
}


def _begin(seed: int) -> WorldData:
    return _data(initial_state(), KotlinRandom(seed).state, [], "")


def _data(state: ExplorerState, draws: list[int], trail: list[list[int]], last: str) -> WorldData:
    return {
        "world": "explorer",
        "percepts": [f"{percept.functor}({','.join(percept.args)})" for percept in percepts(state)],
        "lines": list(draw_grid(state)),
        "facts": [["moves", str(state.moves)], ["robot at", f"{state.robot.x}, {state.robot.y}"]]
        + ([["last", last]] if last else []),
        "trail": trail,
        "robot": list(state.robot),
        "moves": state.moves,
        "draws": draws,
    }


def _act(world: WorldData, command: str, args: Mapping[str, Any]) -> WorldActionResult:
    state = ExplorerState(EXPLORER_GRID, Cell(*world["robot"]), world["moves"])
    if command == "move":
        return _move(world, state, str(args["direction"]))
    if command == "getDirectionToMove":
        draws = KotlinRandom.at_state(world["draws"])
        drawn = draw_direction(state, draws)
        after = {**world, "draws": draws.state}
        if not drawn.success:
            return WorldActionResult(after, "there is no way out of here", failed=True)
        return WorldActionResult(after, drawn.value, drawn.value)
    return WorldActionResult(world, "the robot stands still")


def _move(world: WorldData, state: ExplorerState, direction: str) -> WorldActionResult:
    after, feedback = move(state, direction)
    if not feedback.success:
        return WorldActionResult(world, f"there is no direction {direction}: {_DIRECTION}", failed=True)
    if feedback.kind is FeedbackKind.REACHED:
        message = f"reached {feedback.value}"
    elif feedback.old == feedback.new:
        message = f"{direction} is blocked"
    else:
        message = f"moved {direction}"
    trail = world["trail"] if feedback.old == feedback.new else [*world["trail"], list(feedback.old)][-TRAIL:]
    return WorldActionResult(_data(after, world["draws"], trail, message), message)


EXPLORER = World("explorer", "a robot on a grid that looks for its home", _begin, _COMMANDS, _act)
WORLDS = {EXPLORER.name: EXPLORER}
"""The worlds there are."""
