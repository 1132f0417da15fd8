"""Search for a better plan library: one change after the other, kept where it saves reasoning cycles.

A change puts plans for the same event in another order, or leaves out a plan or a step of one. What is not
changed stays as it was written, with comments. Each round tries every change in a few work worlds and the
promising ones in more (successive halving); the best is built upon. A result is confirmed in choose worlds
before it is proposed. Sealed worlds, by which it is judged, are drawn apart.

Every world is a grid with a free way home, so that a library which knows one way by heart gains nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from math import sqrt
from statistics import fmean, stdev

from engine.bdi.errors import ProgramError
from engine.bdi.parser import parse_program
from engine.bdi.printer import item_text, plan_text, text_of, trigger_text
from engine.bdi.semantics import Semantics
from engine.bdi.syntax import Belief, Doc, Goal, Include, Plan, Program, Rule
from engine.bdi.terms import Struct
from engine.tools.worlds.explorer import DIRECTIONS, Cell, Grid
from engine.tools.worlds.explorer_run import HOME, run_explorer
from engine.value import dataclass, field, replace

_Placed = Belief | Rule | Goal | Plan | Doc | Include
MOST_PLANS = 60
"""Plans of a library that is searched; beyond it neighbours are too many to be tried."""


@dataclass(frozen=True, slots=True)
class LibraryChange:
    """A library with one thing changed."""

    what: str
    """In words, such as `@near before @search`."""
    text: str


class LibraryText:
    """A library as text, with the place of each plan in it."""

    def __init__(self, text: str) -> None:
        """Read a library.

        Raises:
            ProgramError: it cannot be read.
        """
        self.text = text
        self.program: Program = parse_program(text, "library.asl")
        lines = text.splitlines(keepends=True)
        starts = _starts(self.program, lines)
        ends = [*starts[1:], len(text)]
        plans = {(plan.position.line, plan.position.column): plan for plan in self.program.plans}
        offsets = _offsets(lines)
        self._head = text[: starts[0]] if starts else text
        self._blocks = [text[a:b] for a, b in zip(starts, ends, strict=True)]
        self._plans: dict[int, Plan] = {}
        for place, plan in plans.items():
            at = offsets[place[0] - 1] + place[1] - 1
            number = max(n for n, start in enumerate(starts) if start <= at)
            self._plans[number] = plan

    def changes(self) -> Iterator[LibraryChange]:
        """Every library that one change leads to, those that reorder first."""
        if len(self._plans) > MOST_PLANS:
            return
        yield from self._reordered()
        yield from self._shortened()

    def _rivals(self, number: int) -> list[int]:
        """Plans for the same event as this one, itself included, in order."""
        event = _event(self._plans[number])
        return [other for other, plan in self._plans.items() if _event(plan) == event]

    def _reordered(self) -> Iterator[LibraryChange]:
        for number, plan in self._plans.items():
            rivals = self._rivals(number)
            for other in reversed(rivals[: rivals.index(number)]):
                blocks = list(self._blocks)
                moved = blocks.pop(number)
                # The last block of a file may have no line end of its own.
                blocks.insert(other, moved if moved.endswith("\n") else f"{moved}\n\n")
                yield LibraryChange(f"{_name(plan)} before {_name(self._plans[other])}", self._joined(blocks))

    def _shortened(self) -> Iterator[LibraryChange]:
        for number, plan in self._plans.items():
            if len(self._rivals(number)) > 1:
                yield LibraryChange(f"without {_name(plan)}", self._joined(self._with(number)))
        for number, plan in self._plans.items():
            for place, item in enumerate(plan.body):
                shorter = replace(plan, body=plan.body[:place] + plan.body[place + 1 :])
                blocks = self._with(number, f"{plan_text(shorter)}\n\n")
                what = f"{_name(plan)} without {_short(item_text(item))}"
                yield LibraryChange(what, self._joined(blocks))

    def _with(self, number: int, *blocks: str) -> list[str]:
        """The blocks with others in the place of one."""
        return [*self._blocks[:number], *blocks, *self._blocks[number + 1 :]]

    def _joined(self, blocks: list[str]) -> str:
        return f"{(self._head + ''.join(blocks)).rstrip()}\n"


def _offsets(lines: list[str]) -> list[int]:
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    return offsets


def _starts(program: Program, lines: list[str]) -> list[int]:
    """Where each clause begins, with the comment lines right above it."""
    clauses: list[_Placed] = [*program.knowledge, *program.goals, *program.plans]
    clauses += [*program.docs, *program.includes]
    offsets = _offsets(lines)
    starts = set()
    for line, column in {(clause.position.line, clause.position.column) for clause in clauses}:
        before = lines[line - 1][: column - 1] if line <= len(lines) else ""
        if before.strip():
            starts.add(offsets[line - 1] + column - 1)
            continue
        while line > 1 and _is_comment(lines[line - 2]):
            line -= 1
        starts.add(offsets[line - 1])
    return sorted(starts)


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("//") and not line.lstrip().startswith("//@")


def _event(plan: Plan) -> tuple[object, ...]:
    literal = plan.trigger.literal
    what = literal.indicator if isinstance(literal, Struct) else "any"
    return plan.trigger.operation, plan.trigger.kind, what


def _name(plan: Plan) -> str:
    return f"@{plan.name}" if plan.name else _short(f"{trigger_text(plan.trigger)} : {text_of(plan.context)}")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:59]}…"


SIDES = (3, 4)
"""Shortest and longest side of a grid."""
OBSTACLES = 3
"""Most of one grid."""
CYCLES = 1_500
"""Cycles after which a run in a world so small is given up; the hand-written plans need 16 in the mean, and
no search at random comes near it by chance."""

COUNTED = 120
"""Most cycles that a run counts: one long walk by chance says little, and would drown all others."""


@dataclass(frozen=True, slots=True)
class WorldTask:
    """One world, and the directions that the robot draws in it."""

    grid: Grid
    seed: int


@dataclass(frozen=True, slots=True)
class WorldResult:
    """The result of a library in one world."""

    reached: bool
    cycles: int
    """Reasoning cycles, the limit where home was not reached."""

    @property
    def cost(self) -> int:
        """Cycles as they count in a comparison."""
        return min(self.cycles, COUNTED)


def world_tasks(split: str, key: int | str, count: int, first: int = 0) -> tuple[WorldTask, ...]:
    """Worlds by number; equal arguments give equal worlds.

    Args:
        split: `work`, `choose` or `sealed`; splits share none but by chance.
        key: names the series.
        count: how many.
        first: number of the first one, from 0.
    """
    tasks = []
    for number in range(first, first + count):
        # Seeded by text, Python's generator is the same in every process and version.
        draws = random.Random(f"{split}/{key}/{number}")
        tasks.append(WorldTask(_grid(draws), draws.getrandbits(31)))
    return tuple(tasks)


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
        new = [neighbour for neighbour in around if neighbour not in seen and grid.is_free(neighbour)]
        seen.update(new)
        waiting += new
    return home in seen


def run_in_world(library: Program, task: WorldTask, limit: int = CYCLES) -> WorldResult:
    """Run a library in a world until the robot is home, has nothing to do, or takes too long; blocking."""
    run = run_explorer(library.plans, task.seed, Semantics(), cycles=limit, grid=task.grid, knowing=library)
    return WorldResult(run.reached, run.cycles if run.reached else CYCLES)


CLEAR = 1.0
"""Standard errors by which a change must be better on work worlds, to be built upon."""
CONFIRMED = 1.3
"""Standard errors by which the whole must be better on choose worlds, to be proposed."""


@dataclass(frozen=True, slots=True)
class SearchEffort:
    """How much is tried."""

    rounds: int = 3
    """Changes that may be made one upon the other."""
    worlds: tuple[int, ...] = (12, 48, 160)
    """Work worlds at each stage of a round, with those of the stages before."""
    kept: int = 6
    """Changes that continue to the second stage; half of these to the next."""
    choose: int = 240


@dataclass(frozen=True, slots=True)
class BetterLibrary:
    """A library that did better in worlds that it was not made with."""

    text: str
    changes: tuple[str, ...]
    before: float
    """Mean cycles on the choose worlds."""
    after: float
    worlds: int
    tried: int
    """Candidates that were run."""


@dataclass(slots=True)
class _Runner:
    """A candidate as it is run through more and more worlds."""

    change: LibraryChange
    program: Program
    saved: list[int] = field(default_factory=list)
    """Cycles saved in each world so far."""

    @property
    def score(self) -> float:
        return fmean(self.saved)


def search_library(
    text: str,
    rng: random.Random,
    effort: SearchEffort | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> BetterLibrary | None:
    """The best library that was found beside this one, or None; blocking.

    Args:
        text: the library; equal texts and generators give equal answers.
        rng: names the work and choose worlds.
        effort: how much is tried.
        stopped: asked between two runs; once it holds, nothing more is looked for.

    Raises:
        ProgramError: the library cannot be read.
    """
    return _Search(text, rng, effort or SearchEffort(), stopped).best()


class _Search:
    def __init__(
        self, text: str, rng: random.Random, effort: SearchEffort, stopped: Callable[[], bool]
    ) -> None:
        self._library = LibraryText(text)
        self._key = rng.getrandbits(64)
        self._effort = effort
        self._stopped = stopped
        self._tried = 0

    def best(self) -> BetterLibrary | None:
        now, made = self._library, list[str]()
        seen = {self._library.text}
        for _ in range(self._effort.rounds):
            better = self._round(now, seen)
            if better is None:
                break
            now = LibraryText(better.text)
            made.append(better.what)
        return self._confirmed(now, made) if made and not self._stopped() else None

    def _round(self, now: LibraryText, seen: set[str]) -> LibraryChange | None:
        """The neighbour that saves most, where one saves anything for certain."""
        runners = self._neighbours(now, seen)
        results: tuple[WorldResult, ...] = ()
        for stage, count in enumerate(self._effort.worlds):
            through = world_tasks("work", self._key, count)
            results += tuple(run_in_world(now.program, task) for task in through[len(results) :])
            runners = [runner for runner in runners if self._run(runner, through, results)]
            runners.sort(key=lambda entry: entry.score, reverse=True)
            runners = runners[: max(1, self._effort.kept >> stage)]
            if not runners or self._stopped():
                return None
        best = runners[0]
        return best.change if _clear(best.saved, CLEAR) else None

    def _neighbours(self, now: LibraryText, seen: set[str]) -> list[_Runner]:
        neighbours = []
        for change in now.changes():
            if change.text not in seen:
                seen.add(change.text)
                try:
                    neighbours.append(_Runner(change, LibraryText(change.text).program))
                except ProgramError:
                    continue
        return neighbours

    def _run(self, runner: _Runner, through: Sequence[WorldTask], results: Sequence[WorldResult]) -> bool:
        """Run a candidate through the worlds that are new to it; whether it is still promising."""
        self._tried += not runner.saved
        for task, now in list(zip(through, results, strict=True))[len(runner.saved) :]:
            if self._stopped():
                return False
            # Whoever needs thrice as long is lost, and need not be waited for.
            then = run_in_world(runner.program, task, min(CYCLES, 3 * now.cycles + 20))
            if now.reached and not then.reached:
                return False
            runner.saved.append(now.cost - then.cost)
        return runner.score > 0

    def _confirmed(self, now: LibraryText, made: list[str]) -> BetterLibrary | None:
        """A library that does better in the choose worlds, and leads home wherever the first one does."""
        through = world_tasks("choose", self._key, self._effort.choose)
        before, after = (
            [run_in_world(library.program, task) for task in through] for library in (self._library, now)
        )
        broke = any(old.reached and not new.reached for old, new in zip(before, after, strict=True))
        saved = [old.cost - new.cost for old, new in zip(before, after, strict=True)]
        if broke or not _clear(saved, CONFIRMED):
            return None
        means = fmean(result.cost for result in before), fmean(result.cost for result in after)
        return BetterLibrary(now.text, tuple(made), *means, len(through), self._tried)


def _clear(saved: Sequence[int], errors: float) -> bool:
    """Whether a mean is above nothing by so many of its standard errors."""
    if len(saved) < 2:
        return False
    spread = stdev(saved) / sqrt(len(saved))
    return fmean(saved) > errors * spread
