"""Runs a plan set in the explorer's world until the robot stands at home."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Protocol

from engine.bdi.agent import BdiAgent
from engine.bdi.printer import text_of
from engine.bdi.semantics import Semantics
from engine.bdi.syntax import Operation, Plan, Program, Trigger, TriggerKind
from engine.bdi.terms import Struct, Var, atom
from engine.tools.worlds import explorer
from engine.value import dataclass, replace

ACTIONS = {
    name: frozenset({arity})
    for name, arity in (("move", 1), ("getDirectionToMove", 1), ("stop", 0), ("pause", 0), ("sleep", 1))
}
CYCLE_LIMIT = 10_000
"""Cycles before a run is given up."""
NAME = "explorer"
"""What the agent is called."""
HOME = "home"
_REACHED = explorer.FeedbackKind.REACHED
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


class ExplorerEnding(StrEnum):
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
    """The result of one run."""

    seed: int
    ending: ExplorerEnding
    cycles: int
    """Reasoning cycles, counted from 1; with home reached, the one that moved there."""
    moves: int
    generations: int

    @property
    def reached(self) -> bool:
        """Whether the robot stood at home."""
        return self.ending is ExplorerEnding.HOME


def run_explorer(
    plans: Sequence[Plan],
    seed: int,
    semantics: Semantics,
    *,
    procedure: Callable[[BdiAgent], Procedure] | None = None,
    cycles: int = CYCLE_LIMIT,
    grid: explorer.Grid = explorer.EXPLORER_GRID,
    knowing: Program | None = None,
) -> ExplorerRun:
    """Run plans until the robot is at home, has nothing to do, or takes too long.

    Args:
        plans: the plan library at the start.
        seed: of the directions drawn, 32 bits.
        semantics: how the agent's cycle goes; `compat` counts as the thesis does.
        procedure: makes plans for the agent; without one a goal that has none fails.
        cycles: after so many the run is given up.
        grid: the world; that of the benchmark when left out.
        knowing: a program whose beliefs and rules the robot has from the start.
    """
    draws, state = explorer.KotlinRandom(seed), explorer.initial_state(grid)
    program = replace(explorer.explorer_program(), plans=tuple(plans))
    if knowing is not None:
        program = replace(program, knowledge=knowing.knowledge)
    agent = BdiAgent(NAME, program, semantics=semantics, actions=ACTIONS)
    planner = procedure(agent) if procedure is not None else None
    ending: ExplorerEnding | None = None
    while ending is None:  # a cycle takes a millisecond of the agent's time
        agent.perceive(tuple(map(_literal, explorer.percepts(state))))
        report = agent.cycle(now=float(agent.cycles))
        for request in report.requests:
            # The state is still the one that was sensed in this cycle.
            state, feedback, answer, reason = _done(request.action, state, draws)
            agent.feedback(request.number, not reason, reason, answer)
            if request.action.functor == "stop":
                ending = ExplorerEnding.STOPPED
            elif feedback is not None and feedback.value == HOME and feedback.kind is _REACHED:
                ending = ExplorerEnding.HOME
        if planner is not None:
            planner.answer()
        if ending is None and agent.cycles >= cycles:
            ending = ExplorerEnding.CYCLES
        elif ending is None and agent.idle and agent.next_timer is None:
            ending = ExplorerEnding.IDLE
    return ExplorerRun(seed, ending, agent.cycles, state.moves, planner.asked if planner is not None else 0)


def _done(
    action: Struct, state: explorer.ExplorerState, draws: explorer.KotlinRandom
) -> tuple[explorer.ExplorerState, explorer.Feedback | None, Struct, str]:
    """The state after an action, the world's feedback, the agent's answer, and why it failed."""
    if action.functor == "move":
        after, feedback = explorer.move(state, text_of(action.args[0]))
        return after, feedback, action, "" if feedback.success else f"there is no direction {feedback.value}"
    if action.functor != "getDirectionToMove":
        return state, None, action, ""
    feedback = explorer.draw_direction(state, draws)
    # A direction that is given already is left alone; the draw is made all the same.
    free = feedback.success and isinstance(action.args[0], Var)
    return state, feedback, action.with_args((atom(feedback.value),)) if free else action, ""


@lru_cache(256)
def _literal(percept: explorer.Percept) -> Struct:
    # Perceived again and again: a term that is the same object is compared and hashed once.
    return Struct(percept.functor, tuple(map(atom, percept.args)))
