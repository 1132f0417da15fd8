"""Missions: shipped goals with the files they need."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from engine.core.text import first_problem
from engine.model import LateModel


class MissionError(ValueError):
    """A mission file that cannot be used; the message names the file, what is wrong and what to do."""


class MissionAgent(BaseModel, metaclass=LateModel):
    """An agent made for a mission."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    type: str
    id: str
    programs: list[str] = Field(default_factory=list)
    """Names of shipped AgentSpeak(L) programs that are its program together."""
    answers: list[str] = Field(default_factory=list)
    """Names of recorded answers that stand for a model."""
    config: dict[str, Any] = Field(default_factory=dict)
    """Further settings."""


class Mission(BaseModel, metaclass=LateModel):
    """A goal with a title, and the files installed in the sandbox before it starts."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,59}$")
    title: str = Field(min_length=1, max_length=100)
    goal: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=8_000)]
    """The goal's text as an operator would type it."""
    summary: str = Field(min_length=1, max_length=500)
    network: bool
    """Whether it needs the network to succeed."""
    expect: Literal["GOAL_ACHIEVED", "NEEDS_OPERATOR"]
    """How a run without an operator ends."""
    files: dict[str, str] = Field(default_factory=dict)
    """Contents by path relative to the sandbox root, `/`-separated."""
    agent: MissionAgent | None = None
    """The agent that it needs; None where any will do."""
    command: dict[str, Any] | None = None
    """What is sent to the crew or to Mastermind instead of a goal to an agent."""
    hint: str = "space runs it, s takes one step, ? shows all keys"
    """What to press once it has begun."""

    @field_validator("files")
    @classmethod
    def _inside(cls, value: dict[str, str]) -> dict[str, str]:
        for path in value:
            pure = PurePosixPath(path)
            if not path or "\0" in path or pure.is_absolute() or ".." in pure.parts:
                raise ValueError(f"'{path}' is not a path below the sandbox root")
        return value


def load_missions(directory: Traversable | Path | None = None) -> dict[str, Mission]:
    """The missions of a directory by name, in file order; blocking.

    Args:
        directory: where `*.toml` files with one mission each are; the shipped ones when left out.

    Raises:
        MissionError: a file is not valid, or two missions share a name.
    """
    root = files("engine.planning.library") / "missions" if directory is None else directory
    entries = sorted((e for e in root.iterdir() if e.name.endswith(".toml")), key=lambda e: e.name)
    missions: dict[str, Mission] = {}
    for entry in entries:
        mission = _read(entry)
        if mission.name in missions:
            raise MissionError(f"{entry.name}: the mission '{mission.name}' exists already: rename it")
        missions[mission.name] = mission
    return missions


def _read(entry: Traversable) -> Mission:
    try:
        return Mission.model_validate(tomllib.loads(entry.read_bytes().decode("utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MissionError(f"{entry.name}: cannot be read: {error}: correct the file") from error
    except ValidationError as error:
        raise MissionError(f"{entry.name}: {first_problem(error)}: correct the value") from error
