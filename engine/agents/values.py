"""What the ontology's values have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from engine.domain.text import clean_line

AGENT_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}\Z")
RESERVED = ("user", "orchestrator")
"""Ends of a handoff that are no registered agents."""


class Problem(BaseModel):
    """One thing that is wrong with what was given."""

    model_config = ConfigDict(frozen=True)

    path: str
    """Where, as `handoff.receives.min_clarity` or `phases[1].inputs[0]`."""
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class InvalidError(ValueError):
    """Something given is not valid; all of its problems are told together.

    Args:
        what: what was to be read, as `agent spec`.
        problems: everything that is wrong with it.
    """

    def __init__(self, what: str, problems: tuple[Problem, ...]) -> None:
        super().__init__(f"{what}: " + "; ".join(map(str, problems)))
        self.problems = problems


class Value(BaseModel):
    """A frozen value that is equal to what its JSON gives."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)

    @classmethod
    def read(cls, given: Mapping[str, Any], what: str = "") -> Self:
        """The value of what somebody gave.

        Raises:
            InvalidError: it is none; every field that is wrong is named.
        """
        try:
            return cls.model_validate(dict(given))
        except ValidationError as error:
            raise InvalidError(what or cls.__name__, problems_in(error)) from error

    @classmethod
    def loaded(cls, stored: Mapping[str, Any]) -> tuple[Self, tuple[str, ...]]:
        """The value of a stored row, and warnings about fields that this version does not know.

        Raises:
            InvalidError: it is none.
        """
        unknown = tuple(sorted(set(stored) - set(cls.model_fields)))
        value = cls.read({key: one for key, one in stored.items() if key in cls.model_fields})
        return value, tuple(
            f"{cls.__name__}: the field {name!r} is not known and was left out" for name in unknown
        )


def problems_in(error: ValidationError) -> tuple[Problem, ...]:
    """Everything that pydantic found wrong, with paths as they stand in YAML."""
    return tuple(
        Problem(path=path_of(details["loc"]), message=_said(details["msg"])) for details in error.errors()
    )


def path_of(loc: tuple[int | str, ...]) -> str:
    """`phases[1].inputs[0]` of `("phases", 1, "inputs", 0)`."""
    path = ""
    for part in loc:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def _said(message: str) -> str:
    return clean_line(message.removeprefix("Value error, "), limit=500)


def _agent_id(given: str) -> str:
    if not AGENT_ID.match(given):
        raise ValueError(
            f"{clean_line(given, limit=80)!r} is no agent id: lower-case letters, digits and hyphens, "
            "up to 64, not beginning with a hyphen"
        )
    return given


def _deduped(given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(given))


AgentId = Annotated[str, AfterValidator(_agent_id)]
"""The id of a registered agent, or a reserved end."""
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000)]
Lines = Annotated[tuple[Line, ...], Field(max_length=50), AfterValidator(_deduped)]
"""Up to 50 lines of up to 2,000 characters, each once, in the order given."""
Words = Annotated[str, Field(max_length=200_000)]
"""A text of any kind."""
Share = Annotated[float, Field(ge=0.0, le=1.0)]
"""A number from 0 to 1."""
