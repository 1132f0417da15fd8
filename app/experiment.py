"""`pilothouse explorer --experiment FILE`: recorded answers over a grid of prompts, temperatures and repeats.

The file is TOML:

    seeds = "7"                       # each answer is run with these
    [[answers]]
    model = "Claude"
    source = "claude/{prompt}-{temperature}-{repeat}.txt"   # beside the file, or a recorded answer
    prompts = ["no-hints", "hints", "hints-and-remarks"]
    temperatures = [0.1, 0.5, 0.9]
    repeats = 10
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from app.explorer import CandidateError, Mode, Result, candidate, seeds_of, try_out
from engine.generation.pgp.prompt import PromptVariant
from engine.worlds.explorer_files import recorded_answers

CELL_LIMIT = 10_000
"""Answers of one experiment."""


class ExperimentError(ValueError):
    """A file that is no experiment; the message names what is wrong."""


class _Answers(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(min_length=1, max_length=100)
    source: str = Field(min_length=1, max_length=500)
    prompts: list[PromptVariant] = Field(min_length=1)
    temperatures: list[float] = Field(min_length=1)
    repeats: int = Field(default=1, ge=1, le=1_000)


class _Experiment(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    seeds: str = "7"
    answers: list[_Answers] = Field(min_length=1, max_length=1_000)

    @field_validator("seeds")
    @classmethod
    def _are_seeds(cls, value: str) -> str:
        seeds_of(value)
        return value


@dataclass(frozen=True, slots=True)
class Cell:
    """One answer of the grid."""

    model: str
    prompt: PromptVariant
    temperature: float
    repeat: int
    source: str


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of one answer; without a result it could not be had."""

    cell: Cell
    result: Result | None
    problem: str = ""


def load_experiment(path: Path) -> tuple[tuple[Cell, ...], range]:
    """The cells and seeds of an experiment; blocking.

    Raises:
        ExperimentError: the file cannot be read, or is no experiment.
    """
    try:
        given = _Experiment.model_validate(tomllib.loads(path.read_bytes().decode("utf-8")))
    except OSError as error:
        raise ExperimentError(f"{path}: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise ExperimentError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except ValueError as error:
        raise ExperimentError(f"{path}: {error}") from None
    cells = tuple(_cells(given, path.parent))
    if len(cells) > CELL_LIMIT:
        raise ExperimentError(f"{path}: {len(cells)} answers; {CELL_LIMIT} are allowed")
    return cells, seeds_of(given.seeds)


def _cells(given: _Experiment, beside: Path) -> Iterator[Cell]:
    for one in given.answers:
        for prompt, temperature, repeat in product(one.prompts, one.temperatures, range(1, one.repeats + 1)):
            places = {"{prompt}": prompt, "{temperature}": f"{temperature:g}", "{repeat}": str(repeat)}
            source = one.source
            for place, value in places.items():
                source = source.replace(place, value)
            if source not in recorded_answers():
                source = str(beside / source)
            yield Cell(one.model, prompt, temperature, repeat, source)


def run_experiment(cells: tuple[Cell, ...], seeds: range) -> Iterator[Trial]:
    """Each answer read, judged and run in the world; blocking."""
    for cell in cells:
        try:
            tried = candidate(cell.source, generated=True)
        except CandidateError as error:
            yield Trial(cell, None, str(error))
        else:
            yield Trial(cell, try_out(tried, seeds, [Mode.COMPAT]))
