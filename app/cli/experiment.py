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

Answers of an experiment as files, so that it continues where it stopped and can be computed again.

Cells are asked and run several at a time, each failure kept with its cell. The tables 5.2 to 5.5 of the
thesis have its published rows beside ours. Ours use the variants of CC, RR and BSA that
have the artefacts of the thesis' program, leave out runs with more than one generation as the thesis does,
and count time in its cycles.
"""

from __future__ import annotations

import asyncio
import csv
import hashlib
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from app.cli.candidates import (
    THINKERS,
    CandidateError,
    Thinker,
    answer_candidate,
    asked_candidate,
    find_answerer,
    read_file,
    seeds_of,
)
from app.cli.explorer import CandidateRuns, Mode, Result, judge_config, judge_plans, report
from engine.core.text import first_problem
from engine.planning.pgp.prompts import PromptVariant
from engine.planning.pgp.requests import Answerer, AskError, Conversation, Prompt, Reply
from engine.tools.worlds.explorer import recorded_answers
from engine.value import dataclass, replace


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    system: str
    user: str
    config: dict[str, str | int | float]
    reply: Reply | None = None
    failure: dict[str, str] | None = None


class AnswerFolder:
    """The answers to one cell's prompts, each in a file named after prompt, model and parameters.

    A failure is kept to be read, and asked again in the next conversation.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def get(self, prompt: Prompt, config: Mapping[str, str | float]) -> Reply | None:
        """The answer that was kept; blocking.

        Raises:
            CandidateError: the file cannot be read, or is not what was written there.
        """
        path = self._place(prompt, config)
        if not path.exists():
            return None
        try:
            return _File.model_validate_json(read_file(path)).reply
        except ValidationError as error:
            reason = error.errors()[0]["msg"]
            raise CandidateError(f"{path}: no kept answer ({reason}); delete it to ask again") from None

    def put(self, prompt: Prompt, config: Mapping[str, str | float], result: Reply | AskError) -> None:
        """Keep an answer, or why there is none; blocking.

        Raises:
            CandidateError: it cannot be written.
        """
        reply = result if isinstance(result, Reply) else None
        failure = (
            {"kind": result.kind, "reason": str(result.args[0])} if isinstance(result, AskError) else None
        )
        file = _File(system=prompt.system, user=prompt.user, config={**config}, reply=reply, failure=failure)
        path = self._place(prompt, config)
        half = path.with_suffix(".part")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            half.write_text(file.model_dump_json(indent=1) + "\n", encoding="utf-8")
            half.replace(path)
        except OSError as error:
            raise CandidateError(f"{path}: {error.strerror}; an answer could not be kept") from None

    def _place(self, prompt: Prompt, config: Mapping[str, str | float]) -> Path:
        # Where and how patiently it is asked makes no other answer.
        deciding = [config.get(name) for name in ("model", "temperature", "max_tokens")]
        known = json.dumps([prompt.system, prompt.user, *deciding])
        return self.path / f"{hashlib.sha256(known.encode()).hexdigest()[:16]}.json"


CELL_LIMIT = 10_000
"""Answers of one experiment."""


class ExperimentError(ValueError):
    """A file that is no experiment; the message names what is wrong."""


class _Grid(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(min_length=1, max_length=100)
    prompts: list[PromptVariant] = Field(min_length=1)
    temperatures: list[Annotated[float, Field(ge=0, le=2)]] = Field(min_length=1)
    repeats: int = Field(default=1, ge=1, le=1_000)


class _Answers(_Grid):
    source: str = Field(min_length=1, max_length=500)


class _Thinkers(_Grid):
    thinker: str = Field(min_length=1, max_length=500)


def _are_seeds(value: str) -> str:
    seeds_of(value)
    return value


class _Experiment(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    seeds: Annotated[str, AfterValidator(_are_seeds)] = "7"
    at_once: int = Field(default=4, ge=1, le=64)
    timeout_s: float = Field(default=240.0, gt=0, le=86_400, allow_inf_nan=False)
    folder: str = Field(default="", max_length=500)
    judge: str = Field(default="", max_length=500)
    judged: int = Field(default=5, ge=1, le=CELL_LIMIT)
    answers: list[_Answers] = Field(default=[], max_length=1_000)
    thinkers: list[_Thinkers] = Field(default=[], max_length=1_000)


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

    given: _Experiment
    cells: tuple[Cell, ...]
    folder: Path
    judge: Answerer | None


def load_experiment(path: Path, thinkers: Mapping[str, Thinker] = THINKERS) -> Experiment:
    """The cells and settings of an experiment; blocking.

    Raises:
        ExperimentError: the file cannot be read, or is no experiment.
    """
    try:
        given = _Experiment.model_validate(tomllib.loads(path.read_bytes().decode("utf-8")))
        grids: list[_Answers | _Thinkers] = [*given.answers, *given.thinkers]
        cells = tuple(cell for grid in grids for cell in _cells(grid, path.parent, thinkers))
        judge = _answerer(given.judge, path.parent, thinkers) if given.judge else None
    except OSError as error:
        raise ExperimentError(f"{path}: {error.strerror}") from None
    except ValidationError as error:
        raise ExperimentError(f"{path}: {first_problem(error)}") from None
    except ValueError as error:
        raise ExperimentError(f"{path}: {error}") from None
    if not 0 < len(cells) <= CELL_LIMIT:
        raise ExperimentError(f"{path}: {len(cells)} answers; there must be from 1 to {CELL_LIMIT}")
    names = [cell.name for cell in cells if cell.thinker is not None]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ExperimentError(f"{path}: thinkers: {twice} stands there twice; give each a model of its own")
    folder = path.parent / (given.folder or f"{path.stem}-answers")
    return Experiment(given, cells, folder, judge)


def _cells(grid: _Answers | _Thinkers, beside: Path, thinkers: Mapping[str, Thinker]) -> Iterator[Cell]:
    by = _answerer(grid.thinker, beside, thinkers) if isinstance(grid, _Thinkers) else None
    for prompt, temperature, repeat in product(grid.prompts, grid.temperatures, range(1, grid.repeats + 1)):
        source = ""
        if isinstance(grid, _Answers):
            source = grid.source.replace("{prompt}", prompt).replace("{temperature}", f"{temperature:g}")
            source = source.replace("{repeat}", str(repeat))
            source = source if source in recorded_answers() else str(beside / source)
        yield Cell(grid.model, prompt, temperature, repeat, source, by)


def _answerer(name: str, beside: Path, thinkers: Mapping[str, Thinker]) -> Answerer:
    """A thinker; the file of a recording stands beside the experiment."""
    sort, colon, rest = name.partition(":")
    if sort == "recorded" and rest:
        name = f"{sort}{colon}{beside / rest}"
    return find_answerer(name, thinkers)


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of one answer; without one it could not be had."""

    cell: Cell
    result: Result | None
    problem: str = ""
    """Why there is no answer, or what failed later in the run."""


async def run_experiment(experiment: Experiment) -> list[Trial]:
    """Each answer had, judged and run in the world; the thesis' cycle counts.

    Raises:
        CandidateError: an answer cannot be kept, or a kept one cannot be read.
    """
    gate = asyncio.Semaphore(experiment.given.at_once)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_trial(cell, experiment, gate)) for cell in experiment.cells]
    except* CandidateError as errors:
        raise _first(errors) from None
    return await _with_judgements([task.result() for task in tasks], experiment, gate)


def _first(errors: BaseExceptionGroup[CandidateError]) -> CandidateError:
    """One of several errors that ended everything; the others will be met when it is mended."""
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


async def _trial(cell: Cell, experiment: Experiment, gate: asyncio.Semaphore) -> Trial:
    given, seeds = experiment.given, seeds_of(experiment.given.seeds)
    try:
        if cell.thinker is None:
            runs = CandidateRuns(answer_candidate(cell.source), seeds)
        else:
            tried = asked_candidate(
                cell.thinker,
                cell.name,
                temperature=cell.temperature,
                request_timeout_s=given.timeout_s,
                user_prompt=cell.prompt,
            )
            keeper = AnswerFolder(experiment.folder / cell.name)
            talk = Conversation(cell.thinker, tried.config, keeper=keeper, gate=gate)
            runs = CandidateRuns(tried, seeds, talk)
        result = await runs.result(Mode.COMPAT)
    except (AskError, CandidateError) as error:
        if isinstance(error, CandidateError) and cell.thinker is not None:
            raise  # a kept answer cannot be read, or a new one not be kept
        return Trial(cell, None, str(error))
    return Trial(cell, result, "; ".join(str(each) for each in result.said if isinstance(each, AskError)))


async def _with_judgements(
    trials: list[Trial], experiment: Experiment, gate: asyncio.Semaphore
) -> list[Trial]:
    """The trials with the judge's scores: of each model the first few that reached home."""
    judge, judged = experiment.judge, experiment.given.judged
    if judge is None:
        return trials
    keeper = AnswerFolder(experiment.folder / "judge")
    talk = Conversation(judge, judge_config(judge), keeper=keeper, gate=gate, limit=CELL_LIMIT)
    count: Counter[str] = Counter()
    scored: list[Trial] = []
    for trial in trials:
        result = trial.result
        if result is not None and result.tsr > 0 and count[trial.cell.model] < judged:
            count[trial.cell.model] += 1
            trial = replace(trial, result=replace(result, judgement=await judge_plans(result, talk)))
        scored.append(trial)
    return scored


# ------------------------------------------------------------------ the tables of the thesis

METRICS = ("PC", "CC", "PBC", "GC", "RR", "NGC", "NBC", "GSA", "BSA")
"""The columns that the plans alone decide."""
AS_THESIS = {"CC": "cc_ref", "RR": "rr_ref", "BSA": "bsa_ref"}
"""Metrics of which the variant counts that has the artefacts of the thesis' program."""
Row = dict[str, str]


@dataclass(frozen=True, slots=True)
class Table:
    """One table: which columns name a row, which hold values, and which trials count."""

    name: str
    title: str
    keys: tuple[str, ...]
    values: tuple[str, ...]
    successful_only: bool = False
    """Trials that never reached home are left out."""
    ranked: bool = False
    """The best TSR stands first, and rows without success are left out."""


TABLES = (
    Table("5.2", "by model and prompt", ("model", "prompt"), (*METRICS, "TSR")),
    Table("5.3", "by model and temperature", ("model", "temperature"), (*METRICS, "TSR")),
    Table("5.4", "success above 0", ("model", "prompt", "temperature"), ("TSR",), ranked=True),
    Table("5.5", "successful runs only", ("model",), (*METRICS, "GAT"), successful_only=True),
)


async def experiment_answer(
    path: Path, thinkers: Mapping[str, Thinker] = THINKERS
) -> tuple[dict[str, Any], str]:
    """What `pilothouse explorer --experiment` answers, for a program and for a person.

    Args:
        path: of the experiment's file.
        thinkers: who can be named in it.

    Raises:
        ValueError: the file is no experiment, or an answer cannot be kept or read; the message says why.
    """
    experiment = load_experiment(path, thinkers)
    trials = await run_experiment(experiment)
    problems = [trial for trial in trials if trial.problem]
    done = [(trial.cell, trial.result) for trial in trials if trial.result is not None]
    pras = _pras(trials)
    answer = {
        "answers": len(trials),
        "trials": [_named_cell(cell) | report(result, experiment.given.seeds) for cell, result in done],
        "missing": [f"{trial.cell.name}: {trial.problem}" for trial in trials if trial.result is None],
        "failures": [_named_cell(trial.cell) | {"problem": trial.problem} for trial in problems],
        "PRAS": pras,
        "tables": {
            table.name: {"ours": table_rows(table, trials), "published": published_rows(table.name)}
            for table in TABLES
        },
    }
    text = "\n\n".join("\n".join(table_lines(table, trials)) for table in TABLES)
    return answer, "\n".join(
        [text, *_pras_lines(pras), *(f"{trial.cell.name}: {trial.problem}" for trial in problems)]
    )


def _named_cell(cell: Cell) -> dict[str, Any]:
    return {name: getattr(cell, name) for name in ("model", "prompt", "temperature", "repeat")}


def _pras(trials: Sequence[Trial]) -> dict[str, dict[str, Any]]:
    """Alignment of the answers that succeeded, a mean for each model; a judge's where one was asked."""
    scored: dict[str, dict[str, Any]] = {}
    for model in dict.fromkeys(trial.cell.model for trial in trials):
        results = [each.result for each in trials if each.cell.model == model and each.result is not None]
        judged = [result.judgement for result in results if result.judgement is not None]
        scores = [each.value for each in judged if each.value is not None]
        if not judged:
            scores = [result.surrogate for result in results if result.tsr > 0]
        scored[model] = {
            "value": round(mean(scores), 2) if scores else None,
            "kind": "judge" if judged else "surrogate",
            "answers": len(scores),
            "unreadable": [each.problem for each in judged if each.value is None],
        }
    return scored


def _pras_lines(scored: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield "\nPRAS of answers that reached home"
    for model, match in scored.items():
        value = "none" if match["value"] is None else f"{match['value']:.2f}"
        yield f"  {model}: {value} by {match['kind']}, {match['answers']} answers"
        yield from (f"  {model}: {problem}" for problem in match["unreadable"])


def published_rows(name: str) -> list[Row]:
    """The rows of a table of the thesis."""
    text = (files("engine.tools.worlds") / "published" / f"table-{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def table_rows(table: Table, trials: Sequence[Trial]) -> list[Row]:
    """Our rows of a table, in the order in which their keys first occur."""
    groups: dict[tuple[str, ...], list[Trial]] = {}
    for trial in trials:
        if _counts(trial, table):
            groups.setdefault(_key(trial, table), []).append(trial)
    rows = [
        dict(zip(table.keys, key, strict=True)) | {name: _value(name, group) for name in table.values}
        for key, group in groups.items()
    ]
    if table.ranked:
        rows = sorted((row for row in rows if float(row["TSR"]) > 0), key=lambda row: -float(row["TSR"]))
    return rows


def _counts(trial: Trial, table: Table) -> bool:
    if trial.result is None or any(run.generations > 1 for run in trial.result.counted):
        return False
    return not table.successful_only or trial.result.tsr > 0


def _key(trial: Trial, table: Table) -> tuple[str, ...]:
    cell = trial.cell
    row = {"model": cell.model, "prompt": str(cell.prompt), "temperature": f"{cell.temperature:g}"}
    return _named(row, table)


def _value(name: str, group: Sequence[Trial]) -> str:
    results = [trial.result for trial in group if trial.result is not None]
    if name == "TSR":
        return f"{mean(result.tsr for result in results):.2f}"
    if name == "GAT":
        return f"{mean(time for result in results for time in result.times()[Mode.COMPAT]):.2f}"
    return f"{mean(result.metrics.as_dict()[AS_THESIS.get(name, name.lower())] for result in results):.2f}"


def table_lines(table: Table, trials: Sequence[Trial]) -> Iterator[str]:
    """The table as text: after each of our rows the thesis' row of the same keys, then its other rows."""
    theirs = {_named(row, table): row for row in published_rows(table.name)}
    ordered: list[tuple[str, Row]] = []
    for row in table_rows(table, trials):
        ordered.append(("ours", row))
        if (match := theirs.pop(_named(row, table), None)) is not None:
            ordered.append(("thesis", match))
    ordered += [("thesis", row) for row in theirs.values()]
    columns = (*table.keys, *table.values)
    widths = {name: max(len(name), *(len(row[name]) for _, row in ordered)) for name in columns}
    yield f"Table {table.name}: {table.title}"
    yield "  ".join([f"{'':<6}", *(name.ljust(width) for name, width in widths.items())]).rstrip()
    for whose, row in ordered:
        shown = (f"{row[name]:{'<' if name in table.keys else '>'}{widths[name]}}" for name in columns)
        yield "  ".join([f"{whose:<6}", *shown])


def _named(row: Row, table: Table) -> tuple[str, ...]:
    return tuple(row[key] for key in table.keys)
