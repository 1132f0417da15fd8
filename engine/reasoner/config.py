"""What an agent with a reasoner is created with, checked where it comes in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from engine.bdi.parser import parse_program
from engine.bdi.problems import ProgramError
from engine.bdi.semantics import Limits, Semantics
from engine.worlds.explorer_world import WORLDS

PROGRAM_LIMIT = 1_000_000
"""Characters of a program."""
LIMITS = Limits(
    beliefs=50_000,
    intentions=5_000,
    frames=100_000,
    events=50_000,
    query_steps=100_000,
    size=100_000,
)
"""What a program may use while others live beside it: its longest query takes about a tenth of a second."""
Remark = Annotated[str, Field(min_length=1, max_length=2_000)]


class ReasonerError(ValueError):
    """A configuration with which there can be no reasoner; the message says what is wrong and where."""


class GenerationSettings(BaseModel):
    """How plans are generated for the agent; what is unset is inherited (spec BDI §2.7)."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    on: bool = True
    """Whether goals without a plan get one generated; without it they fail."""
    approve: bool = False
    """Whether the operator approves plans before they are installed."""
    proactive: bool = False
    """Whether plans are also generated before they are needed."""
    prompt: Literal["no-hints", "hints", "hints-and-remarks"] = "hints-and-remarks"
    model: str | None = Field(default=None, max_length=200)
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, gt=0, le=1_000_000)
    request_timeout_s: float | None = Field(default=None, gt=0, le=86_400)
    remarks: tuple[Remark, ...] = ()
    attempts: int = Field(default=3, ge=1, le=100)
    """Generations for one goal until one proves itself."""
    repairs: int = Field(default=2, ge=0, le=10)
    """How often a model is told what is wrong with its answer."""
    answers: tuple[str, ...] = ()
    """Recorded answers that are given in the place of a model's, the last one again and again."""


class ReasonerConfig(BaseModel):
    """The program of an agent, and how it is run."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    program: str = Field(max_length=PROGRAM_LIMIT)
    source: str = Field(default="program.asl", max_length=300)
    """What the program is called in messages."""
    semantics: Literal["jason", "compat"] = "jason"
    own_goals: bool = True
    """Whether the goals of the program are adopted when the agent is created."""
    tracing: bool = False
    """Whether every change of beliefs, events and intentions is journaled."""
    world: str = ""
    """The small world that it lives in; empty for none."""
    seed: int = Field(default=7, ge=-(2**31), lt=2**31)
    """Of the world."""
    generation: GenerationSettings = GenerationSettings()

    @field_validator("world")
    @classmethod
    def _known_world(cls, value: str) -> str:
        if value and value not in WORLDS:
            raise ValueError(f"there is no world '{value[:40]}'; worlds: {', '.join(WORLDS)}")
        return value

    @property
    def rules(self) -> Semantics:
        """The reasoner's settings."""
        return Semantics.compat() if self.semantics == "compat" else Semantics.jason()


def read_config(meta: Mapping[str, Any]) -> ReasonerConfig:
    """The configuration of an agent, with a program that can be read.

    Raises:
        ReasonerError: it cannot be used; every syntax error is named by line and column.
    """
    if "program" not in meta:
        raise ReasonerError(
            "an AgentSpeak(L) agent needs a program: agent_create asl_agent ID program=FILE.asl"
        )
    try:
        config = ReasonerConfig.model_validate(dict(meta))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ReasonerError(f"{where}: {first['msg'].removeprefix('Value error, ')}") from None
    try:
        parse_program(config.program, config.source)
    except ProgramError as error:
        raise ReasonerError(str(error)) from None
    return config
