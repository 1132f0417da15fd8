"""`pilothouse explorer --experiment FILE`: answers and thinkers over prompts, temperatures and repeats.

The file is TOML:

    seeds = "7"                       # each answer is run with these
    at_once = 4                       # requests to thinkers at the same time
    timeout_s = 240                   # seconds for one answer
    folder = "my-answers"             # where thinkers' answers are kept, beside the file
    judge = "recorded:judge.txt"      # who scores plans that succeed (PRAS); none by default
    judged = 5                        # answers a model that are scored
    [[answers]]
    model = "Claude"
    source = "claude/{prompt}-{temperature}-{repeat}.txt"   # beside the file, or a recorded answer
    prompts = ["no-hints", "hints", "hints-and-remarks"]
    temperatures = [0.1, 0.5, 0.9]
    repeats = 10
    [[thinkers]]
    model = "DeepSeek"                # how its rows are called
    thinker = "recorded:deepseek.jsonl"
    prompts = ["hints"]
    temperatures = [0.1]
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from app.answerers import THINKERS, Thinker, answerer
from app.candidates import seeds_of
from engine.generation.pgp.asking import Answerer
from engine.generation.pgp.prompt import PromptVariant
from engine.worlds.explorer_files import recorded_answers

CELL_LIMIT = 10_000
"""Answers of one experiment."""


class ExperimentError(ValueError):
    """A file that is no experiment; the message names what is wrong."""


class _Grid(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(min_length=1, max_length=100)
    prompts: list[PromptVariant] = Field(min_length=1)
    temperatures: list[float] = Field(min_length=1)
    repeats: int = Field(default=1, ge=1, le=1_000)

    @field_validator("temperatures")
    @classmethod
    def _are_temperatures(cls, value: list[float]) -> list[float]:
        if not all(0 <= one <= 2 for one in value):
            raise ValueError("a temperature is a number from 0 to 2")
        return value


class _Answers(_Grid):
    source: str = Field(min_length=1, max_length=500)


class _Thinkers(_Grid):
    thinker: str = Field(min_length=1, max_length=500)


class _Experiment(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    seeds: str = "7"
    at_once: int = Field(default=4, ge=1, le=64)
    timeout_s: float = Field(default=240.0, gt=0, le=86_400, allow_inf_nan=False)
    folder: str = Field(default="", max_length=500)
    judge: str = Field(default="", max_length=500)
    judged: int = Field(default=5, ge=1, le=CELL_LIMIT)
    answers: list[_Answers] = Field(default=[], max_length=1_000)
    thinkers: list[_Thinkers] = Field(default=[], max_length=1_000)

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
    source: str = ""
    """A recorded answer, or a file with one."""
    thinker: Answerer | None = None
    """Who is asked, where there is no answer yet."""

    @property
    def name(self) -> str:
        """The cell in one word, for people and for its folder."""
        model = re.sub(r"[^\w.-]", "_", self.model).lstrip(".") or "_"
        return f"{model}-{self.prompt}-{self.temperature:g}-{self.repeat}"


@dataclass(frozen=True, slots=True)
class Experiment:
    """What an experiment file asks for."""

    cells: tuple[Cell, ...]
    seeds: str
    at_once: int
    timeout_s: float
    folder: Path
    judge: Answerer | None
    judged: int


def load_experiment(path: Path, thinkers: Mapping[str, Thinker] = THINKERS) -> Experiment:
    """The cells and settings of an experiment; blocking.

    Raises:
        ExperimentError: the file cannot be read, or is no experiment.
    """
    try:
        given = _Experiment.model_validate(tomllib.loads(path.read_bytes().decode("utf-8")))
        cells = (*_recorded(given, path.parent), *_asked(given, path.parent, thinkers))
        judge = _answerer(given.judge, path.parent, thinkers) if given.judge else None
    except OSError as error:
        raise ExperimentError(f"{path}: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise ExperimentError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except ValueError as error:
        raise ExperimentError(f"{path}: {error}") from None
    if not 0 < len(cells) <= CELL_LIMIT:
        raise ExperimentError(f"{path}: {len(cells)} answers; there must be from 1 to {CELL_LIMIT}")
    names = [cell.name for cell in cells if cell.thinker is not None]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ExperimentError(f"{path}: thinkers: {twice} stands there twice; give each a model of its own")
    folder = path.parent / (given.folder or f"{path.stem}-answers")
    return Experiment(cells, given.seeds, given.at_once, given.timeout_s, folder, judge, given.judged)


def _places(one: _Grid) -> Iterator[tuple[PromptVariant, float, int]]:
    yield from product(one.prompts, one.temperatures, range(1, one.repeats + 1))


def _recorded(given: _Experiment, beside: Path) -> Iterator[Cell]:
    for one in given.answers:
        for prompt, temperature, repeat in _places(one):
            places = {"{prompt}": prompt, "{temperature}": f"{temperature:g}", "{repeat}": str(repeat)}
            source = one.source
            for place, value in places.items():
                source = source.replace(place, value)
            if source not in recorded_answers():
                source = str(beside / source)
            yield Cell(one.model, prompt, temperature, repeat, source)


def _asked(given: _Experiment, beside: Path, thinkers: Mapping[str, Thinker]) -> Iterator[Cell]:
    for one in given.thinkers:
        by = _answerer(one.thinker, beside, thinkers)
        for prompt, temperature, repeat in _places(one):
            yield Cell(one.model, prompt, temperature, repeat, thinker=by)


def _answerer(name: str, beside: Path, thinkers: Mapping[str, Thinker]) -> Answerer:
    """A thinker; the file of a recording stands beside the experiment."""
    sort, colon, rest = name.partition(":")
    if sort == "recorded" and rest:
        name = f"{sort}{colon}{beside / rest}"
    return answerer(name, thinkers)
