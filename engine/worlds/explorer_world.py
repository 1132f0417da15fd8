"""The explorer's grid as a world that an agent of the cockpit lives in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.domain.ports import CommandSpec, Parameter
from engine.worlds.explorer import (
    EXPLORER_GRID,
    Cell,
    ExplorerState,
    FeedbackKind,
    beginning,
    draw_direction,
    move,
    percepts,
    picture,
)
from engine.worlds.kotlin_random import KotlinRandom
from engine.worlds.world import Happened, World, WorldData

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
    return _data(beginning(), KotlinRandom(seed).state, [], "")


def _data(state: ExplorerState, draws: list[int], trail: list[list[int]], last: str) -> WorldData:
    return {
        "world": "explorer",
        "percepts": [f"{one.functor}({','.join(one.args)})" for one in percepts(state)],
        "lines": list(picture(state)),
        "facts": [["moves", str(state.moves)], ["robot at", f"{state.robot.x}, {state.robot.y}"]]
        + ([["last", last]] if last else []),
        "trail": trail,
        "robot": list(state.robot),
        "moves": state.moves,
        "draws": draws,
    }


def _act(world: WorldData, command: str, args: Mapping[str, Any]) -> Happened:
    state = ExplorerState(EXPLORER_GRID, Cell(*world["robot"]), world["moves"])
    if command == "move":
        return _move(world, state, str(args["direction"]))
    if command == "getDirectionToMove":
        draws = KotlinRandom.standing_at(world["draws"])
        drawn = draw_direction(state, draws)
        after = {**world, "draws": draws.state}
        if not drawn.success:
            return Happened(after, "there is no way out of here", failed=True)
        return Happened(after, drawn.value, drawn.value)
    return Happened(world, "the robot stands still")


def _move(world: WorldData, state: ExplorerState, direction: str) -> Happened:
    after, came = move(state, direction)
    if not came.success:
        return Happened(world, f"there is no direction {direction}: {_DIRECTION}", failed=True)
    if came.kind is FeedbackKind.REACHED:
        said = f"reached {came.value}"
    elif came.old == came.new:
        said = f"{direction} is blocked"
    else:
        said = f"moved {direction}"
    trail = world["trail"] if came.old == came.new else [*world["trail"], list(came.old)][-TRAIL:]
    return Happened(_data(after, world["draws"], trail, said), said)


EXPLORER = World(
    "explorer",
    "a robot on a grid that looks for its home (spec BDI §3.1)",
    _begin,
    _COMMANDS,
    _act,
)
WORLDS = {EXPLORER.name: EXPLORER}
"""The worlds there are."""
