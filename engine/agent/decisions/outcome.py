"""What a command leads to: events, or a refusal in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import unified_diff
from typing import Any, TypeVar

from engine.core import events as ev
from engine.core.command import Command
from engine.core.plan import Plan, PlanStep
from engine.core.reasons import Reason, free_text
from engine.core.state import AgentState
from engine.tools.registry import ToolRegistry
from engine.value import dataclass, replace

LINES_SHOWN, LINE_SHOWN = 6, 200
"""Changed lines that a refused edit is told, and characters of each."""


class RefusedError(Exception):
    """The command cannot be carried out now; the message says why and what to do."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.reason = free_text(why)


def refuse(condition: object, why: str) -> None:
    """Refuse a command where a condition holds.

    Raises:
        RefusedError: it holds.
    """
    if condition:
        raise RefusedError(why)


V = TypeVar("V")


def needed(value: V | None, why: str) -> V:
    """A value that has to be there.

    Raises:
        RefusedError: it is not, with the reason.
    """
    if value is None:
        raise RefusedError(why)
    return value


def step_of(state: AgentState, step: str) -> tuple[Plan, PlanStep]:
    """A step with its plan.

    Raises:
        RefusedError: there is no such step.
    """
    return needed(state.find_step(step), Reason("refused.no-step", step=step))


def refuse_overwriting(was: Sequence[str], now: Sequence[str], what: str, by: str) -> None:
    """Refuse an edit that was made from something else than there is now.

    Args:
        was: the lines that its editor showed; empty where nobody says.
        now: the lines that there are.
        what: what they are of.
        by: the operator who changed it; empty where the agent did.

    Raises:
        RefusedError: they differ; the reason says how.
    """
    if was and tuple(was) != tuple(now):
        lines = [line for line in unified_diff(was, now, n=0, lineterm="") if line[0] != "@"][2:]
        shown = tuple(line[:LINE_SHOWN] for line in lines[:LINES_SHOWN])
        raise RefusedError(Reason("refused.overwrites", what=what, by=by or "the agent", lines=shown))


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command leads to."""

    message: str
    events: tuple[ev.Payload, ...] = ()


Handler = Callable[[AgentState, Any, ToolRegistry], CommandResult]
"""What a command leads to in a state, given what can be called; refuses with `RefusedError`."""
H = TypeVar("H", bound=Handler)
HANDLERS: dict[type[Command], Handler] = {}
"""Handlers of commands to agents by the command's type; their modules fill it."""
PROGRAM_HANDLERS: dict[type[Command], Handler] = {}
"""Handlers of commands to agents whose goals a program pursues, where they differ."""


def handles(*commands: type[Command]) -> Callable[[H], H]:
    """Register a function as the handler of these commands."""
    return _registering(HANDLERS, commands)


def handles_for_programs(*commands: type[Command]) -> Callable[[H], H]:
    """Register a function as the handler of these commands for agents with a program."""
    return _registering(PROGRAM_HANDLERS, commands)


def _registering(
    handlers: dict[type[Command], Handler], commands: Sequence[type[Command]]
) -> Callable[[H], H]:
    def register(handler: H) -> H:
        handlers.update(dict.fromkeys(commands, handler))
        return handler

    return register


def fresh_id(state: AgentState, kind: str, ahead: int = 1) -> str:
    """The next id of a kind (`g`, `p`, `s`, `a`), or one further ahead."""
    return f"{kind}{state.next_id.get(kind, 0) + ahead}"


def close_turn(
    state: AgentState, *, resolution: Reason, step: str = "", goal: str = ""
) -> tuple[ev.Payload, ...]:
    """The event that ends an open intervention on this step or goal, when there is one."""
    turn = state.intervention
    if turn is None:
        return ()
    if (step and turn.step == step) or (goal and turn.goal == goal):
        return (ev.InterventionClosed(resolution=resolution),)
    return ()


def renumber(state: AgentState, steps: Sequence[PlanStep]) -> tuple[PlanStep, ...]:
    """The steps with lasting ids in place of their local ones."""
    names = {step.id: fresh_id(state, "s", number) for number, step in enumerate(steps, 1)}
    return tuple(
        replace(step, id=names[step.id], depends_on=tuple(names[other] for other in step.depends_on))
        for step in steps
    )
