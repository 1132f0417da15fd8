"""The explorer robot's grid: what it perceives and what its actions do (spec BDI §3.1).

The world is a value: an action leads from one state to the next and says what came of it. Only
`getDirectionToMove` draws from a generator, and the generator is given.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple, Protocol


class Cell(NamedTuple):
    """A place; x grows east and y grows south, both from 0."""

    x: int
    y: int


DIRECTIONS: dict[str, Cell] = {
    "north": Cell(0, -1),
    "south": Cell(0, 1),
    "east": Cell(1, 0),
    "west": Cell(-1, 0),
    "north_east": Cell(1, -1),
    "north_west": Cell(-1, -1),
    "south_east": Cell(1, 1),
    "south_west": Cell(-1, 1),
}
"""The eight neighbours in the order in which they are perceived."""
HERE = "here"


@dataclass(frozen=True, slots=True)
class Grid:
    """A rectangle of cells with obstacles, which block, and objects, which do not."""

    width: int
    height: int
    start: Cell
    obstacles: frozenset[Cell]
    objects: tuple[tuple[str, Cell], ...]

    def is_free(self, cell: Cell) -> bool:
        """Whether the robot can stand there."""
        inside = 0 <= cell.x < self.width and 0 <= cell.y < self.height
        return inside and cell not in self.obstacles


EXPLORER_GRID = Grid(
    width=5,
    height=5,
    start=Cell(2, 2),
    obstacles=frozenset({Cell(1, 3), Cell(2, 3), Cell(3, 3)}),
    objects=(("rock", Cell(1, 0)), ("home", Cell(4, 4))),
)
"""The benchmark's grid; home is out of sight from the start."""


@dataclass(frozen=True, slots=True)
class ExplorerState:
    """Where the robot is, and how many `move` actions it has run."""

    grid: Grid
    robot: Cell
    moves: int = 0


class Percept(NamedTuple):
    """A ground literal, such as `there_is(home, south)`."""

    functor: str
    args: tuple[str, ...]


class FeedbackKind(StrEnum):
    """What an action reports of itself; the last two are failures."""

    MOVED = "MoveActionSuccess"
    REACHED = "ObjectReached"
    DIRECTION = "DirectionDrawn"
    NO_DIRECTION = "NoSuchDirection"
    ENCLOSED = "NoFreeDirection"


@dataclass(frozen=True, slots=True)
class Feedback:
    """What came of an action; `value` is the object reached or the direction drawn."""

    kind: FeedbackKind
    old: Cell
    new: Cell
    value: str = ""

    @property
    def success(self) -> bool:
        """Whether the action did what it was asked to; a move that is blocked did."""
        return self.kind not in (FeedbackKind.NO_DIRECTION, FeedbackKind.ENCLOSED)


class Draws(Protocol):
    """A source of whole numbers below a bound."""

    def below(self, bound: int) -> int:
        """A number from 0 to `bound` - 1."""
        ...


def beginning(grid: Grid = EXPLORER_GRID) -> ExplorerState:
    """The state before the robot has done anything."""
    return ExplorerState(grid, grid.start)


def _neighbour(state: ExplorerState, direction: str) -> Cell:
    step = DIRECTIONS[direction]
    return Cell(state.robot.x + step.x, state.robot.y + step.y)


def free_directions(state: ExplorerState) -> tuple[str, ...]:
    """Where the robot can go, in the order of perception."""
    return tuple(name for name in DIRECTIONS if state.grid.is_free(_neighbour(state, name)))


def percepts(state: ExplorerState) -> tuple[Percept, ...]:
    """What the robot perceives, in the order of spec §3.1; 19 percepts at the start of the benchmark."""
    free = set(free_directions(state))
    around = {_neighbour(state, name): name for name in DIRECTIONS} | {state.robot: HERE}
    return (
        *(Percept("direction", (name,)) for name in (*DIRECTIONS, HERE)),
        *(Percept("object", (name,)) for name, _ in state.grid.objects),
        *(Percept("free" if name in free else "obstacle", (name,)) for name in DIRECTIONS),
        *(Percept("there_is", (name, around[cell])) for name, cell in state.grid.objects if cell in around),
    )


def move(state: ExplorerState, direction: str) -> tuple[ExplorerState, Feedback]:
    """The state after `move(direction)`; an obstacle or the border leaves the robot where it is."""
    old = state.robot
    if direction != HERE and direction not in DIRECTIONS:
        return state, Feedback(FeedbackKind.NO_DIRECTION, old, old, direction)
    wanted = old if direction == HERE else _neighbour(state, direction)
    new = wanted if state.grid.is_free(wanted) else old
    reached = next((name for name, cell in state.grid.objects if cell == new), None)
    after = replace(state, robot=new, moves=state.moves + 1)
    if reached is not None:
        return after, Feedback(FeedbackKind.REACHED, old, new, reached)
    return after, Feedback(FeedbackKind.MOVED, old, new)


def draw_direction(sensed: ExplorerState, draws: Draws) -> Feedback:
    """The answer of `getDirectionToMove`: any direction that was free when the robot last looked."""
    free = free_directions(sensed)
    if not free:
        return Feedback(FeedbackKind.ENCLOSED, sensed.robot, sensed.robot)
    return Feedback(FeedbackKind.DIRECTION, sensed.robot, sensed.robot, free[draws.below(len(free))])


def picture(state: ExplorerState) -> tuple[str, ...]:
    """The grid as lines: A the robot, # an obstacle, objects by their initial (H home, R rock)."""
    signs = {cell: name[0].upper() for name, cell in state.grid.objects}
    signs |= dict.fromkeys(state.grid.obstacles, "#") | {state.robot: "A"}
    columns, rows = range(state.grid.width), range(state.grid.height)
    return tuple(" ".join(signs.get(Cell(x, y), ".") for x in columns) for y in rows)
