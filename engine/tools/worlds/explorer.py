"""The explorer robot's grid: what it perceives and what its actions do.

The world is a value: an action leads from one state to the next and gives its feedback. Only
`getDirectionToMove` draws from a generator, which is given to it: Kotlin's `Random(seed)`, the xorwow
generator, so that recorded runs come out draw for draw.

The explorer's files: its program, the plans written by hand, and recorded answers of models.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from engine.value import dataclass, replace


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
    """The result of an action; `value` is the object reached or the direction drawn."""

    kind: FeedbackKind
    old: Cell
    new: Cell
    value: str = ""

    @property
    def success(self) -> bool:
        """Whether the action did what it was asked to; a move that is blocked did."""
        return self.kind not in (FeedbackKind.NO_DIRECTION, FeedbackKind.ENCLOSED)


def initial_state(grid: Grid = EXPLORER_GRID) -> ExplorerState:
    """The state before the robot has done anything."""
    return ExplorerState(grid, grid.start)


def _neighbour(state: ExplorerState, direction: str) -> Cell:
    step = DIRECTIONS[direction]
    return Cell(state.robot.x + step.x, state.robot.y + step.y)


def free_directions(state: ExplorerState) -> tuple[str, ...]:
    """Where the robot can go, in the order of perception."""
    return tuple(name for name in DIRECTIONS if state.grid.is_free(_neighbour(state, name)))


def percepts(state: ExplorerState) -> tuple[Percept, ...]:
    """What the robot perceives, in a fixed order; 19 percepts at the start of the benchmark."""
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
    target = old if direction == HERE else _neighbour(state, direction)
    new = target if state.grid.is_free(target) else old
    reached = next((name for name, cell in state.grid.objects if cell == new), None)
    after = replace(state, robot=new, moves=state.moves + 1)
    if reached is not None:
        return after, Feedback(FeedbackKind.REACHED, old, new, reached)
    return after, Feedback(FeedbackKind.MOVED, old, new)


def draw_direction(sensed: ExplorerState, draws: KotlinRandom) -> Feedback:
    """The answer of `getDirectionToMove`: any direction that was free when the robot last looked."""
    free = free_directions(sensed)
    if not free:
        return Feedback(FeedbackKind.ENCLOSED, sensed.robot, sensed.robot)
    return Feedback(FeedbackKind.DIRECTION, sensed.robot, sensed.robot, free[draws.below(len(free))])


def draw_grid(state: ExplorerState) -> tuple[str, ...]:
    """The grid as lines: A the robot, # an obstacle, objects by their initial (H home, R rock)."""
    signs = {cell: name[0].upper() for name, cell in state.grid.objects}
    signs |= dict.fromkeys(state.grid.obstacles, "#") | {state.robot: "A"}
    columns, rows = range(state.grid.width), range(state.grid.height)
    return tuple(" ".join(signs.get(Cell(x, y), ".") for x in columns) for y in rows)


_MASK = 0xFFFF_FFFF
_STEP = 362_437
_WARM_UP = 64
_SIGN = 0x8000_0000


class KotlinRandom:
    """Whole numbers as Kotlin's standard library draws them for an `Int` seed."""

    def __init__(self, seed: int) -> None:
        if not -_SIGN <= seed < _SIGN:
            raise ValueError(f"the seed {seed} does not fit 32 bits: choose one from {-_SIGN} to {_SIGN - 1}")
        x, y = seed & _MASK, (seed >> 31) & _MASK
        self._x, self._y, self._z, self._w, self._v = x, y, 0, 0, ~x & _MASK
        self._addend = (x << 10 & _MASK) ^ (y >> 4)
        for _ in range(_WARM_UP):
            self._next()

    @property
    def state(self) -> list[int]:
        """The position in the sequence."""
        return [self._x, self._y, self._z, self._w, self._v, self._addend]

    @classmethod
    def at_state(cls, state: Sequence[int]) -> KotlinRandom:
        """A generator that continues from such a state."""
        made = cls(0)
        made._x, made._y, made._z, made._w, made._v, made._addend = (int(number) & _MASK for number in state)
        return made

    def _next(self) -> int:
        t = self._x ^ self._x >> 2
        self._x, self._y, self._z, self._w = self._y, self._z, self._w, self._v
        t = (t ^ t << 1 ^ self._v ^ self._v << 4) & _MASK
        self._v = t
        self._addend = (self._addend + _STEP) & _MASK
        return (t + self._addend) & _MASK

    def below(self, bound: int) -> int:
        """A number from 0 to `bound` - 1, all alike likely.

        Raises:
            ValueError: the bound is not from 1 to 2³¹ - 1.
        """
        if not 0 < bound < _SIGN:
            raise ValueError(f"cannot draw below {bound}: the bound is from 1 to {_SIGN - 1}")
        if bound & -bound == bound:
            # A power of two takes the upper bits; for 1 that is none of them, yet a number is drawn.
            return self._next() >> (33 - bound.bit_length())
        while True:
            bits = self._next() >> 1
            value = bits % bound
            # Kotlin sees an overflow of 32 bits here: the last, incomplete run of `bound` numbers.
            if bits - value + bound - 1 < _SIGN:
                return value


if TYPE_CHECKING:
    from engine.bdi.syntax import Program


_PACKAGE = files("engine.tools.worlds")


@cache
def explorer_program() -> Program:
    """The robot's goal and documentation; it has no plan."""
    return _program("explorer.asl")


@cache
def baseline_program() -> Program:
    """The three plans that a person wrote."""
    return _program("baseline.asl")


def _program(name: str) -> Program:
    from engine.bdi.parser import parse_program

    return parse_program((_PACKAGE / name).read_text(encoding="utf-8"), name)


def recorded_answers() -> tuple[str, ...]:
    """The names of the recorded answers."""
    answers = (file.name for file in (_PACKAGE / "answers").iterdir() if file.name.endswith(".txt"))
    return tuple(sorted((name.removesuffix(".txt") for name in answers), key=lambda name: (len(name), name)))


def recorded_answer(name: str) -> str:
    """An answer as the model gave it.

    Raises:
        KeyError: there is none of this name; the message lists those there are.
    """
    if name not in recorded_answers():
        raise KeyError(f"there is no recorded answer '{name}'; there are {', '.join(recorded_answers())}")
    return (_PACKAGE / "answers" / f"{name}.txt").read_text(encoding="utf-8")
