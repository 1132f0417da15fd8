"""Missions: shipped goals with the files they need, and those of a workspace, which are a crew's work."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from engine.core.agents import RECORDING
from engine.core.commands import parse_command
from engine.core.crew_commands import Bringing
from engine.core.store.places import read_plain
from engine.core.text import first_problem
from engine.core.trust import CHANGED, FolderTrust
from engine.model import LateModel

DEMO = "demo-"
"""How the names of missions begin that a recording answers."""
_DIRECTORY, _MOST_BYTES = "missions", 256 * 1024


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
    skills: list[str] = Field(default_factory=list)
    """Folders of skills below the workspace whose agents it needs; they are built before it begins."""
    hint: str = "space runs it, s takes one step, ? shows all keys"
    """What to press once it has begun."""

    @field_validator("files", "skills")
    @classmethod
    def _inside(cls, value: Any) -> Any:
        for path in value:
            pure = PurePosixPath(path)
            if not path or "\0" in path or pure.is_absolute() or ".." in pure.parts:
                raise ValueError(f"'{path}' is not a path below its directory")
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
        mission = _read(entry.name, entry.read_bytes)
        if mission.name in missions:
            raise MissionError(f"{entry.name}: the mission '{mission.name}' exists already: rename it")
        missions[mission.name] = mission
    return missions


def mission_names(workspace: Path) -> tuple[str, ...]:
    """The missions that are shipped, and those that the workspace has besides; blocking."""
    own = sorted(path.stem for path in (workspace / _DIRECTORY).glob("*.toml"))
    return tuple(dict.fromkeys((*load_missions(), *own)))


def find_mission(workspace: Path, name: str, trust: FolderTrust | None) -> Mission | None:
    """A shipped mission, or one in `missions` of the workspace; None where there is none. Blocking.

    With `demo-` before its name the recording of that name answers one of the workspace.

    Raises:
        MissionError: it is not valid, not trusted, or no work of a crew.
    """
    shipped, own = load_missions(), name.removeprefix(DEMO)
    if name in shipped or own in shipped or own not in mission_names(workspace):
        return shipped.get(name)
    path = f"{_DIRECTORY}/{own}.toml"

    def content() -> bytes:
        data = read_plain(workspace / path, _MOST_BYTES)
        if trust is not None and not trust.admits(path, data):
            raise MissionError(f"{path}: {CHANGED}")
        return data

    mission = _read(path, content)
    try:
        works = isinstance(parse_command(mission.command or {}), Bringing)
    except ValidationError as error:
        raise MissionError(f"{path}: command: {first_problem(error)}: correct the value") from error
    if not works or mission.files or mission.agent:
        raise MissionError(f"{path}: it hands work to a crew and nothing else: correct its command")
    command = dict(mission.command or {})
    if own != name:
        command["metadata"] = {**command.get("metadata", {}), RECORDING: own}
    return mission.model_copy(update={"name": name, "command": command})


def _read(name: str, content: Callable[[], bytes]) -> Mission:
    try:
        return Mission.model_validate(tomllib.loads(content().decode("utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MissionError(f"{name}: cannot be read: {error}: correct the file") from error
    except ValidationError as error:
        raise MissionError(f"{name}: {first_problem(error)}: correct the value") from error
