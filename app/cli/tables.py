"""`pilothouse explorer --tables FOLDER`: the tables 5.2 to 5.5 of the thesis, its published rows beside ours.

The folder holds models' answers as `MODEL/PROMPT-TEMPERATURE-REPEAT.txt`, such as `Claude/hints-0.5-1.txt`;
`explorer --thinker NAME --keep FILE` asks for one.

Ours use the variants of CC, RR and BSA that have the artefacts of the thesis' program, leave out runs with
more than one generation as the thesis does, and count time in its cycles.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from statistics import mean
from typing import Any

from app.cli.candidates import CandidateError, answer_candidate, seeds_of
from app.cli.explorer import CandidateRuns, Mode, Result, report
from engine.planning.pgp.prompts import PromptVariant
from engine.planning.pgp.requests import AskError
from engine.value import dataclass

METRICS = ("PC", "CC", "PBC", "GC", "RR", "NGC", "NBC", "GSA", "BSA")
"""The columns that the plans alone decide."""
AS_THESIS = {"CC": "cc_ref", "RR": "rr_ref", "BSA": "bsa_ref"}
"""Metrics of which the variant counts that has the artefacts of the thesis' program."""
_NAME = re.compile(rf"({'|'.join(PromptVariant)})-(\d(?:\.\d+)?)-(\d+)")
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


@dataclass(frozen=True, slots=True)
class Trial:
    """One answer with its result."""

    given: Row
    """Model, prompt, temperature and repeat."""
    result: Result


async def tables_answer(folder: Path, seeds: str) -> tuple[dict[str, Any], str]:
    """What `pilothouse explorer --tables` answers, for a program and for a person.

    Args:
        folder: with the answers.
        seeds: each answer is run with these.

    Raises:
        ValueError: the folder holds something else; the message says what is expected.
    """
    trials, failures = [], {}
    for path, given in _answers(folder).items():
        try:
            runs = CandidateRuns(answer_candidate(str(path)), seeds_of(seeds))
            trials.append(Trial(given, await runs.result(Mode.COMPAT)))
        except (AskError, CandidateError) as error:
            failures[str(path.relative_to(folder))] = str(error)
    pras = _pras(trials)
    answer = {
        "answers": len(trials) + len(failures),
        "trials": [trial.given | report(trial.result, seeds) for trial in trials],
        "failures": failures,
        "PRAS": pras,
        "tables": {
            table.name: {"ours": table_rows(table, trials), "published": published_rows(table.name)}
            for table in TABLES
        },
    }
    lines = ["\n".join(table_lines(table, trials)) + "\n" for table in TABLES]
    lines += ["PRAS of answers that reached home, by likeness to the baseline"]
    lines += [f"  {model}: {value}" for model, value in pras.items()]
    return answer, "\n".join([*lines, *(f"{name}: {problem}" for name, problem in failures.items())])


def _answers(folder: Path) -> dict[Path, Row]:
    answers = {}
    for path in sorted(folder.glob("*/*.txt")):
        if (named := _NAME.fullmatch(path.stem)) is None:
            expected = f"PROMPT-TEMPERATURE-REPEAT.txt with a prompt of {', '.join(PromptVariant)}"
            raise ValueError(f"{path}: an answer is named {expected}")
        prompt, temperature, repeat = named.groups()
        row = {"model": path.parent.name, "prompt": prompt, "temperature": f"{float(temperature):g}"}
        answers[path] = row | {"repeat": repeat}
    if not answers:
        raise ValueError(f"{folder}: there are no answers MODEL/PROMPT-TEMPERATURE-REPEAT.txt")
    return answers


def _pras(trials: Sequence[Trial]) -> dict[str, float]:
    """Alignment of the answers that succeeded, a mean for each model that has some."""
    scores: dict[str, list[float]] = {}
    for trial in trials:
        if trial.result.tsr > 0:
            scores.setdefault(trial.given["model"], []).append(trial.result.surrogate)
    return {model: round(mean(some), 2) for model, some in scores.items()}


def published_rows(name: str) -> list[Row]:
    """The rows of a table of the thesis."""
    text = (files("engine.tools.worlds") / "published" / f"table-{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def table_rows(table: Table, trials: Sequence[Trial]) -> list[Row]:
    """Our rows of a table, in the order in which their keys first occur."""
    groups: dict[tuple[str, ...], list[Result]] = {}
    for trial in trials:
        if _counts(trial.result, table):
            groups.setdefault(_named(trial.given, table), []).append(trial.result)
    rows = [
        dict(zip(table.keys, key, strict=True)) | {name: _value(name, group) for name in table.values}
        for key, group in groups.items()
    ]
    if table.ranked:
        rows = sorted((row for row in rows if float(row["TSR"]) > 0), key=lambda row: -float(row["TSR"]))
    return rows


def _counts(result: Result, table: Table) -> bool:
    if any(run.generations > 1 for run in result.counted):
        return False
    return not table.successful_only or result.tsr > 0


def _value(name: str, results: Sequence[Result]) -> str:
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
