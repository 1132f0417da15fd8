"""What ships of the explorer: its program, the plans written by hand, and recorded answers of models."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.bdi.syntax import Program

_ROOM = files("engine.worlds")


@cache
def explorer_program() -> Program:
    """The robot's goal and documentation; it has no plan."""
    return _program("explorer.asl")


@cache
def baseline_program() -> Program:
    """The three plans that a person wrote (listing 5.4)."""
    return _program("baseline.asl")


def _program(name: str) -> Program:
    from engine.bdi.parser import parse_program

    return parse_program((_ROOM / name).read_text(encoding="utf-8"), name)


def recorded_answers() -> tuple[str, ...]:
    """The names of the recorded answers."""
    answers = (one.name for one in (_ROOM / "answers").iterdir() if one.name.endswith(".txt"))
    return tuple(sorted((name.removesuffix(".txt") for name in answers), key=lambda name: (len(name), name)))


def recorded_answer(name: str) -> str:
    """An answer as the model gave it.

    Raises:
        KeyError: there is none of this name; the message lists those there are.
    """
    if name not in recorded_answers():
        raise KeyError(f"there is no recorded answer '{name}'; there are {', '.join(recorded_answers())}")
    return (_ROOM / "answers" / f"{name}.txt").read_text(encoding="utf-8")
