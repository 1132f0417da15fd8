"""What can be wrong with a program's text, and what can go wrong while a formula is evaluated.

Where something stands in the text of a program.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from engine.value import dataclass


class Position(NamedTuple):
    """A place in a text, both counted from 1; zero where there was no text."""

    line: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """One place where a program's text is not AgentSpeak(L)."""

    source: str
    """Name of the file, or what else the text came from."""
    line: int
    """From 1."""
    column: int
    """From 1, in characters."""
    expected: str
    found: str
    mend: str = ""
    """What was most likely meant."""
    written: str = ""
    """The line of the text, or of a long one the part from `SHOWN_BEFORE` characters before the place."""

    def __str__(self) -> str:
        """The problem alone, in words that journals hold."""
        return f"{self.source}:{self.line}:{self.column}: expected {self.expected}, found {self.found}"

    @property
    def advice(self) -> str:
        """The problem, and what was most likely meant."""
        return f"{self}; {self.mend}" if self.mend else str(self)

    @property
    def excerpt(self) -> tuple[str, ...]:
        """The line of the text and a mark below the place; empty where there is no text."""
        mark = f"{'':{min(self.column - 1, SHOWN_BEFORE)}}^"
        return (self.written.expandtabs(1), mark) if self.written.strip() else ()


SHOWN_BEFORE = 60
"""Characters of a long line that are shown before a place in it."""


class ProgramError(ValueError):
    """A text that cannot be read; holds every problem that was found in it."""

    def __init__(self, problems: tuple[SyntaxProblem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class ErrorId(StrEnum):
    """Values of `error(…)` on a failure event; the last three are ours."""

    NO_RELEVANT = "no_relevant"
    NO_APPLICABLE = "no_applicable"
    INTERNAL_ACTION_FAILED = "ia_failed"
    ACTION_FAILED = "action_failed"
    CONSTRAINT_FAILED = "constraint_failed"
    TEST_GOAL_FAILED = "test_goal_failed"
    ASK_FAILED = "ask_failed"
    WAIT_TIMEOUT = "wait_timeout"
    DEADLINE_REACHED = "deadline_reached"
    UNBOUND = "body_var_without_value"
    PGP_FAILED = "pgp_failed"
    LIMIT_EXCEEDED = "limit_exceeded"
    EVALUATION_FAILED = "evaluation_failed"
    """Arithmetic on something that is no number, a division by zero, an overflow."""


class EvaluationError(Exception):
    """A formula, term or step that cannot be evaluated; it fails the step, never the interpreter."""

    def __init__(self, error_id: ErrorId, message: str, details: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.error_id = error_id
        self.details = details
        """Terms: more annotations for the failure event."""


class UnknownActionError(EvaluationError):
    """There is no such internal action, or none that takes so many arguments: the program is wrong."""


def unbound(what: str) -> EvaluationError:
    """The error for a variable without a value where one is needed."""
    return EvaluationError(ErrorId.UNBOUND, f"{what} has no value here")
