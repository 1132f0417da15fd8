"""The tables 5.2 to 5.5 of the thesis, ours with the published rows beside them (spec BDI §3.6).

Ours use the variants of CC, RR and BSA that have the artefacts of the thesis' program, leave out runs
with more than one generation as the thesis does, and count time in its cycles.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from statistics import mean
from typing import Any

from app.answerers import THINKERS, Thinker
from app.experiment import Cell, load_experiment
from app.experiment_run import Trial, run_experiment
from app.explorer import Mode
from app.explorer_report import report

METRICS = {
    "PC": "pc",
    "CC": "cc_ref",
    "PBC": "pbc",
    "GC": "gc",
    "RR": "rr_ref",
    "NGC": "ngc",
    "NBC": "nbc",
    "GSA": "gsa",
    "BSA": "bsa_ref",
}
"""The columns that the plans alone decide, and which metric each is."""

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


async def experiment(path: Path, thinkers: Mapping[str, Thinker] = THINKERS) -> tuple[dict[str, Any], str]:
    """What `pilothouse explorer --experiment` answers, for a program and for a person.

    Args:
        path: of the experiment's file.
        thinkers: who can be named in it.

    Raises:
        ValueError: the file is no experiment, or an answer cannot be kept or read; the message says why.
    """
    given = load_experiment(path, thinkers)
    trials = await run_experiment(given)
    failures = [_named_cell(trial.cell) | {"problem": trial.problem} for trial in trials if trial.problem]
    pras = _pras(trials)
    answer = {
        "answers": len(trials),
        "trials": [
            _named_cell(trial.cell) | report(trial.result, given.seeds)
            for trial in trials
            if trial.result is not None
        ],
        "missing": [f"{trial.cell.name}: {trial.problem}" for trial in trials if trial.result is None],
        "failures": failures,
        "PRAS": pras,
        "tables": {
            table.name: {"ours": rows(table, trials), "published": published(table.name)} for table in TABLES
        },
    }
    text = "\n\n".join("\n".join(lines(table, trials)) for table in TABLES)
    told = [f"{trial.cell.name}: {trial.problem}" for trial in trials if trial.problem]
    return answer, "\n".join([text, *_pras_lines(pras), *told])


def _named_cell(cell: Cell) -> dict[str, Any]:
    return {
        "model": cell.model,
        "prompt": cell.prompt,
        "temperature": cell.temperature,
        "repeat": cell.repeat,
    }


def _pras(trials: Sequence[Trial]) -> dict[str, dict[str, Any]]:
    """Alignment of the answers that succeeded, a mean for each model; a judge's where one was asked."""
    found: dict[str, dict[str, Any]] = {}
    for model in dict.fromkeys(trial.cell.model for trial in trials):
        results = [one.result for one in trials if one.cell.model == model and one.result is not None]
        judged = [one.judgement for one in results if one.judgement is not None]
        scores = [one.value for one in judged if one.value is not None]
        if not judged:
            scores = [one.surrogate for one in results if one.tsr > 0]
        found[model] = {
            "value": round(mean(scores), 2) if scores else None,
            "kind": "judge" if judged else "surrogate",
            "answers": len(scores),
            "unreadable": [one.problem for one in judged if one.value is None],
        }
    return found


def _pras_lines(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield "\nPRAS of answers that reached home"
    for model, one in found.items():
        value = "none" if one["value"] is None else f"{one['value']:.2f}"
        yield f"  {model}: {value} by {one['kind']}, {one['answers']} answers"
        yield from (f"  {model}: {problem}" for problem in one["unreadable"])


def published(name: str) -> list[Row]:
    """The rows of a table of the thesis."""
    text = (files("engine.worlds") / "published" / f"table-{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def rows(table: Table, trials: Sequence[Trial]) -> list[Row]:
    """Our rows of a table, in the order in which their keys first occur."""
    groups: dict[tuple[str, ...], list[Trial]] = {}
    for trial in trials:
        if _counts(trial, table):
            groups.setdefault(_key(trial, table), []).append(trial)
    found = [
        dict(zip(table.keys, key, strict=True)) | {name: _value(name, group) for name in table.values}
        for key, group in groups.items()
    ]
    if table.ranked:
        found = sorted((row for row in found if float(row["TSR"]) > 0), key=lambda row: -float(row["TSR"]))
    return found


def _counts(trial: Trial, table: Table) -> bool:
    if trial.result is None or any(run.generations > 1 for run in trial.result.counted):
        return False
    return not table.successful_only or trial.result.tsr > 0


def _key(trial: Trial, table: Table) -> tuple[str, ...]:
    cell = trial.cell
    named = {"model": cell.model, "prompt": str(cell.prompt), "temperature": f"{cell.temperature:g}"}
    return tuple(named[key] for key in table.keys)


def _value(name: str, group: Sequence[Trial]) -> str:
    results = [trial.result for trial in group if trial.result is not None]
    if name == "TSR":
        return f"{mean(result.tsr for result in results):.2f}"
    if name == "GAT":
        return f"{mean(time for result in results for time in result.times()[Mode.COMPAT]):.2f}"
    return f"{mean(result.metrics.as_dict()[METRICS[name]] for result in results):.2f}"


def lines(table: Table, trials: Sequence[Trial]) -> Iterator[str]:
    """The table as text: after each of our rows the thesis' row of the same keys, then its other rows."""
    theirs = {_named(row, table): row for row in published(table.name)}
    ordered: list[tuple[str, Row]] = []
    for row in rows(table, trials):
        ordered.append(("ours", row))
        if (match := theirs.pop(_named(row, table), None)) is not None:
            ordered.append(("thesis", match))
    ordered += [("thesis", row) for row in theirs.values()]
    columns = (*table.keys, *table.values)
    widths = [max(len(name), *(len(row[name]) for _, row in ordered)) for name in columns]
    yield f"Table {table.name}: {table.title}"
    heads = (name.ljust(width) for name, width in zip(columns, widths, strict=True))
    yield "  ".join([f"{'':<6}", *heads]).rstrip()
    for whose, row in ordered:
        shown = [
            row[name].ljust(width) if name in table.keys else row[name].rjust(width)
            for name, width in zip(columns, widths, strict=True)
        ]
        yield "  ".join([f"{whose:<6}", *shown])


def _named(row: Row, table: Table) -> tuple[str, ...]:
    return tuple(row[key] for key in table.keys)
