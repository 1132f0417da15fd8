"""The tables 5.2 to 5.5 of the thesis, ours with the published rows beside them (spec BDI §3.6).

Ours use the variants of CC, RR and BSA that have the artefacts of the thesis' program, leave out runs
with more than one generation as the thesis does, and count time in its cycles.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from statistics import mean
from typing import Any

from app.experiment import Trial, load_experiment, run_experiment
from app.explorer import Mode, report

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


def experiment(path: Path) -> tuple[dict[str, Any], str]:
    """What `pilothouse explorer --experiment` answers, for a program and for a person; blocking.

    Raises:
        ExperimentError: the file is no experiment; the message says why.
    """
    cells, seeds = load_experiment(path)
    trials = list(run_experiment(cells, seeds))
    missing = [f"{trial.cell.model}: {trial.problem}" for trial in trials if trial.problem]
    answer = {
        "answers": len(trials),
        "trials": [_told(trial, seeds) for trial in trials if trial.result is not None],
        "missing": missing,
        "tables": {
            table.name: {"ours": rows(table, trials), "published": published(table.name)} for table in TABLES
        },
    }
    text = "\n\n".join("\n".join(lines(table, trials)) for table in TABLES)
    return answer, "\n".join([text, *missing])


def _told(trial: Trial, seeds: range) -> dict[str, Any]:
    cell, result = trial.cell, trial.result
    told = {
        "model": cell.model,
        "prompt": cell.prompt,
        "temperature": cell.temperature,
        "repeat": cell.repeat,
    }
    return told | (report(result, seeds) if result is not None else {})


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
    if trial.result is None or any(run.generations > 1 for run in trial.result.first):
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
