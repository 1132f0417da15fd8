"""A plan set run in the explorer's world until the robot stands at home (spec BDI §3.3, §3.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Protocol

from engine.bdi.agent import BdiAgent
from engine.bdi.printing import text_of
from engine.bdi.semantics import Semantics
from engine.bdi.syntax import Operation, Plan, Program, Trigger, TriggerKind
from engine.bdi.terms import Struct, Var, atom
from engine.bdi.trace import TraceEvent
from engine.worlds.explorer import (
    EXPLORER_GRID,
    ExplorerState,
    Feedback,
    FeedbackKind,
    Grid,
    Percept,
    beginning,
    draw_direction,
    move,
    percepts,
)
from engine.worlds.explorer_files import explorer_program
from engine.worlds.kotlin_random import KotlinRandom

ACTIONS = {
    name: frozenset({arity})
    for name, arity in (("move", 1), ("getDirectionToMove", 1), ("stop", 0), ("pause", 0), ("sleep", 1))
}
CYCLE_LIMIT = 10_000
"""Cycles before a run is given up."""
NAME = "explorer"
"""What the agent is called."""
HOME = "home"
GOAL = Trigger(Operation.ADDED, TriggerKind.ACHIEVE, Struct("reach", (atom(HOME),)))
"""What the robot is to do."""


class Procedure(Protocol):
    """Something that makes plans for goals which have none."""

    @property
    def asked(self) -> int:
        """Generations begun."""
        ...

    def answer(self) -> None:
        """Give the intentions that wait what they wait for; called between two cycles."""
        ...


class Watcher(Protocol):
    """Somebody who follows a run."""

    def trace(self, record: TraceEvent) -> None:
        """The agent reports a change."""

    def acted(self, action: Struct, feedback: Feedback | None, state: ExplorerState) -> None:
        """An action was run, with what came of it in the world; the agent hears of it next."""


class Ending(StrEnum):
    """Why a run was over."""

    HOME = "home"
    STOPPED = "stopped"
    """By the action `stop`."""
    IDLE = "idle"
    """Nothing was left to do; the goal was reached elsewhere, or had failed."""
    CYCLES = "cycles"
    """It took too many."""


@dataclass(frozen=True, slots=True)
class ExplorerRun:
    """What came of one run."""

    seed: int
    ending: Ending
    cycles: int
    """Reasoning cycles, counted from 1; with home reached, the one that moved there."""
    moves: int
    generations: int

    @property
    def reached(self) -> bool:
        """Whether the robot stood at home."""
        return self.ending is Ending.HOME


def run_explorer(
    plans: Sequence[Plan],
    seed: int,
    semantics: Semantics,
    *,
    procedure: Callable[[BdiAgent], Procedure] | None = None,
    watcher: Watcher | None = None,
    cycles: int = CYCLE_LIMIT,
    grid: Grid = EXPLORER_GRID,
    knowing: Program | None = None,
) -> ExplorerRun:
    """Run plans until the robot is at home, has nothing to do, or takes too long.

    Args:
        plans: the plan library at the start.
        seed: of the directions drawn, 32 bits.
        semantics: how the agent's cycle goes; `compat` counts as the thesis does.
        procedure: makes plans for the agent; without one a goal that has none fails.
        watcher: follows the run.
        cycles: after so many the run is given up.
        grid: the world; that of the benchmark when left out.
        knowing: a program whose beliefs and rules the robot has from the start.
    """
    return _Run(plans, seed, semantics, procedure, watcher, grid, knowing).to_the_end(cycles)


class _Run:
    def __init__(
        self,
        plans: Sequence[Plan],
        seed: int,
        semantics: Semantics,
        procedure: Callable[[BdiAgent], Procedure] | None,
        watcher: Watcher | None,
        grid: Grid,
        knowing: Program | None,
    ) -> None:
        self._watcher = watcher
        self._seed = seed
        self._draws = KotlinRandom(seed)
        self._state = beginning(grid)
        program = replace(explorer_program(), plans=tuple(plans))
        if knowing is not None:
            program = replace(program, beliefs=knowing.beliefs, rules=knowing.rules)
        self._agent = BdiAgent(
            NAME,
            program,
            semantics=semantics,
            actions=ACTIONS,
            tracer=watcher.trace if watcher is not None else None,
        )
        self._procedure = procedure(self._agent) if procedure is not None else None

    def to_the_end(self, cycles: int) -> ExplorerRun:
        """Sense, reason and act until the run is over; a cycle takes a millisecond of the agent's time."""
        ending: Ending | None = None
        while ending is None:
            self._agent.perceive(_literals(self._state))
            report = self._agent.cycle(now=float(self._agent.cycles))
            for request in report.requests:
                ending = self._act(request.number, request.action) or ending
            if self._procedure is not None:
                self._procedure.answer()
            if ending is None and self._agent.cycles >= cycles:
                ending = Ending.CYCLES
            elif ending is None and self._agent.idle and self._agent.next_timer is None:
                ending = Ending.IDLE
        asked = self._procedure.asked if self._procedure is not None else 0
        return ExplorerRun(self._seed, ending, self._agent.cycles, self._state.moves, asked)

    def _act(self, request: int, action: Struct) -> Ending | None:
        """Do what the agent wants; the state is still the one that it sensed in this cycle."""
        answer, reason = action, ""
        feedback: Feedback | None = None
        if action.functor == "move":
            self._state, feedback = move(self._state, text_of(action.args[0]))
            reason = "" if feedback.success else f"there is no direction {feedback.value}"
        elif action.functor == "getDirectionToMove":
            feedback = draw_direction(self._state, self._draws)
            # A direction that is given already is left alone; the draw is made all the same.
            if feedback.success and isinstance(action.args[0], Var):
                answer = action.with_args((atom(feedback.value),))
        if self._watcher is not None:
            self._watcher.acted(action, feedback, self._state)
        self._agent.feedback(request, not reason, reason, answer)
        if action.functor == "stop":
            return Ending.STOPPED
        at_home = feedback is not None and (feedback.kind, feedback.value) == (FeedbackKind.REACHED, HOME)
        return Ending.HOME if at_home else None


def _literals(state: ExplorerState) -> tuple[Struct, ...]:
    return tuple(map(_literal, percepts(state)))


@lru_cache(256)
def _literal(percept: Percept) -> Struct:
    # Perceived again and again: a term that is the same object is compared and hashed once.
    return Struct(percept.functor, tuple(map(atom, percept.args)))
