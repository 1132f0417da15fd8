"""Small worlds that plan libraries are tried in, drawn by number and never told to who proposes.

Every world is a grid of its own with a free way home, so that a library which knows one way by heart gains
nothing. Work, choose and sealed worlds are drawn apart: a candidate is made with the first, picked by the
second and judged by the third (steering spec §3 idea 13).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.bdi.semantics import Semantics
from engine.bdi.syntax import Program
from engine.worlds.explorer import DIRECTIONS, Cell, Grid
from engine.worlds.explorer_run import HOME, run_explorer

SIDES = (3, 4)
"""Shortest and longest side of a grid."""
OBSTACLES = 3
"""Most of one grid."""
CYCLES = 1_500
"""Cycles after which a run in a world so small is given up; the hand-written plans need 16 in the mean, and
no search at random comes near it by chance."""

COUNTED = 120
"""Most cycles that a run counts: one long walk by chance says little, and would drown all others."""


class Split(StrEnum):
    """What worlds are for."""

    WORK = "work"
    CHOOSE = "choose"
    SEALED = "sealed"


@dataclass(frozen=True, slots=True)
class Task:
    """One world, and the directions that the robot draws in it."""

    name: str
    grid: Grid
    seed: int


@dataclass(frozen=True, slots=True)
class Flown:
    """What came of a library in one world."""

    reached: bool
    cycles: int
    """Reasoning cycles, the limit where home was not reached."""
    moves: int

    @property
    def cost(self) -> int:
        """Cycles as they count in a comparison."""
        return min(self.cycles, COUNTED)


def tasks(split: Split, key: int | str, count: int, first: int = 0) -> tuple[Task, ...]:
    """Worlds by number.

    Args:
        split: what they are for; splits share none but by chance.
        key: names the series; equal keys give equal worlds.
        count: how many.
        first: number of the first one, from 0.
    """
    return tuple(_task(split, key, number) for number in range(first, first + count))


def _task(split: Split, key: int | str, number: int) -> Task:
    # Seeded by text, Python's generator is the same in every process and version.
    draws = random.Random(f"{split}/{key}/{number}")
    return Task(f"world {number + 1}", _grid(draws), draws.getrandbits(31))


def _grid(draws: random.Random) -> Grid:
    while True:
        width, height = draws.randint(*SIDES), draws.randint(*SIDES)
        cells = [Cell(x, y) for y in range(height) for x in range(width)]
        draws.shuffle(cells)
        start, home, rock, *rest = cells
        obstacles = frozenset(rest[: draws.randint(0, OBSTACLES)])
        grid = Grid(width, height, start, obstacles, (("rock", rock), (HOME, home)))
        apart = max(abs(start.x - home.x), abs(start.y - home.y))
        if apart > 1 and _connected(grid, home):
            return grid


def _connected(grid: Grid, home: Cell) -> bool:
    seen, waiting = {grid.start}, [grid.start]
    while waiting:
        cell = waiting.pop()
        around = (Cell(cell.x + step.x, cell.y + step.y) for step in DIRECTIONS.values())
        new = [one for one in around if one not in seen and grid.is_free(one)]
        seen.update(new)
        waiting += new
    return home in seen


def fly(library: Program, task: Task, limit: int = CYCLES) -> Flown:
    """Run a library in a world until the robot is home, has nothing to do, or takes too long; blocking."""
    run = run_explorer(
        library.plans, task.seed, Semantics.jason(), cycles=limit, grid=task.grid, knowing=library
    )
    return Flown(run.reached, run.cycles if run.reached else CYCLES, run.moves)


def fly_all(library: Program, through: Sequence[Task], limits: Sequence[int] = ()) -> tuple[Flown, ...]:
    """What came of a library in each world; blocking.

    Args:
        library: what the robot plans by.
        through: the worlds.
        limits: cycles for each of them, the usual limit where left out.
    """
    return tuple(
        fly(library, task, limits[number] if limits else CYCLES) for number, task in enumerate(through)
    )
