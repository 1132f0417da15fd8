"""Missions: goals ready to fly, with the files they need."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from engine.value import dataclass, field


class MissionError(ValueError):
    """A mission file that cannot be used; the message names the file, what is wrong and what to do."""


class MissionAgent(BaseModel):
    """An agent made for a mission."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    type: str
    id: str
    programs: tuple[str, ...] = ()
    """Names of shipped AgentSpeak(L) programs that are its program together."""
    answers: tuple[str, ...] = ()
    """Names of recorded answers that stand for a model."""
    config: dict[str, Any] = Field(default_factory=dict)
    """Further settings."""

    @field_validator("programs", "answers", mode="before")
    @classmethod
    def _tuple(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Mission:
    """A goal with a title, and the files installed in the sandbox before it starts."""

    name: str
    title: str
    goal: str
    """The goal's text as an operator would type it."""
    summary: str
    network: bool
    """Whether it needs the network to succeed."""
    expect: str
    """How a run without an operator ends: `GOAL_ACHIEVED` or `NEEDS_OPERATOR`."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Contents by path relative to the sandbox root, `/`-separated."""
    agent: MissionAgent | None = None
    """The agent that it needs; None where any will do."""


class _MissionTable(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,59}$")
    title: str = Field(min_length=1, max_length=100)
    goal: str = Field(min_length=1, max_length=8_000)
    summary: str = Field(min_length=1, max_length=500)
    network: bool
    expect: Literal["GOAL_ACHIEVED", "NEEDS_OPERATOR"]
    files: dict[str, str] = Field(default_factory=dict)
    agent: MissionAgent | None = None

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
        table = _MissionTable.model_validate(tomllib.loads(entry.read_bytes().decode("utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MissionError(f"{entry.name}: cannot be read: {error}: correct the file") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise MissionError(f"{entry.name}: '{where}': {first['msg']}: correct the value") from error
    goal = table.goal.strip()
    return Mission(
        table.name,
        table.title,
        goal,
        table.summary,
        table.network,
        table.expect,
        dict(table.files),
        table.agent,
    )
