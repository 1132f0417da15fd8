"""`pilothouse explorer tables`: the tables 5.2 to 5.5 of the thesis, its published rows beside ours.

They are made of the answers that the thesis prints, of those in a folder, or of a model that is asked. A
folder holds models' answers as `MODEL/PROMPT-TEMPERATURE-REPEAT.txt`, such as `Claude/hints-0.5-1.txt`;
`explorer --thinker NAME --keep FILE` asks for one.

Ours use the variants of CC, RR and BSA that have the artefacts of the thesis' program, leave out runs with
more than one generation as the thesis does, and count time in its cycles.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from statistics import mean
from typing import Any
from xml.sax.saxutils import escape

from app.cli.candidates import (
    CandidateError,
    answer_candidate,
    asked_candidate,
    find_answerer,
    seeds_of,
    write_answer,
)
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


TEMPERATURES = (0.1, 0.5, 0.9)


async def ask_answers(name: str, folder: Path) -> None:
    """Ask a model once for each prompt and temperature, where the folder has no answer of it yet.

    Args:
        name: of a thinker, such as `claude`.
        folder: where the answers are kept.

    Raises:
        AskError: it gives no answer; those before it are kept.
        CandidateError: there is no such thinker, or an answer cannot be written.
    """
    for prompt in PromptVariant:
        for temperature in TEMPERATURES:
            by = find_answerer(name)
            path = folder / re.sub(r"[^\w.-]", "_", by.model) / f"{prompt}-{temperature}-1.txt"
            if not path.exists():
                candidate = asked_candidate(by, by.model, temperature=temperature, user_prompt=prompt)
                result = await CandidateRuns(candidate, seeds_of("7")).result(Mode.COMPAT)
                write_answer(path, result.review.answer.text)


async def tables_answer(
    folder: Path | None, seeds: str, out: Path | None = None
) -> tuple[dict[str, Any], str]:
    """What `pilothouse explorer tables` answers, for a program and for a person.

    Args:
        folder: with the answers; None for those that the thesis prints.
        seeds: each answer is run with these.
        out: where the tables are written as CSV and as a picture.

    Raises:
        ValueError: the folder holds something else, or nothing can be written; the message says what to do.
    """
    trials, failures = [], {}
    for name, given in _answers(folder).items():
        try:
            runs = CandidateRuns(answer_candidate(str(folder / name) if folder else name), seeds_of(seeds))
            trials.append(Trial(given, await runs.result(Mode.COMPAT)))
        except (AskError, CandidateError) as error:
            failures[name] = str(error)
    pras = _pras(trials)
    notes = _published("notes.txt").rstrip()
    answer = {
        "answers": len(trials) + len(failures),
        "trials": [trial.given | report(trial.result, seeds) for trial in trials],
        "failures": failures,
        "PRAS": pras,
        "tables": {
            table.name: {"ours": table_rows(table, trials), "published": published_rows(table.name)}
            for table in TABLES
        },
        "notes": notes,
    }
    if out is not None:
        _write(out, trials)
    lines = ["\n".join(table_lines(table, trials)) + "\n" for table in TABLES]
    lines += ["PRAS of answers that reached home, by likeness to the baseline"]
    lines += [f"  {model}: {value}" for model, value in pras.items()]
    lines += [*(f"{name}: {problem}" for name, problem in failures.items()), "", notes]
    return answer, "\n".join(lines)


def _answers(folder: Path | None) -> dict[str, Row]:
    names = ("model", "prompt", "temperature", "repeat")
    if folder is None:
        return {row.pop("listing"): row for row in csv.DictReader(_published("printed.csv").splitlines())}
    answers = {}
    for path in sorted(folder.glob("*/*.txt")):
        if (named := _NAME.fullmatch(path.stem)) is None:
            expected = f"PROMPT-TEMPERATURE-REPEAT.txt with a prompt of {', '.join(PromptVariant)}"
            raise ValueError(f"{path}: an answer is named {expected}")
        prompt, temperature, repeat = named.groups()
        given = (path.parent.name, prompt, f"{float(temperature):g}", repeat)
        answers[f"{path.parent.name}/{path.name}"] = dict(zip(names, given, strict=True))
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
    return list(csv.DictReader(_published(f"table-{name}.csv").splitlines()))


def _published(name: str) -> str:
    return (files("engine.tools.worlds") / "published" / name).read_text(encoding="utf-8")


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


def _ordered(table: Table, trials: Sequence[Trial]) -> list[tuple[str, Row]]:
    """After each of our rows the thesis' row of the same keys, then its other rows."""
    theirs = {_named(row, table): row for row in published_rows(table.name)}
    ordered: list[tuple[str, Row]] = []
    for row in table_rows(table, trials):
        ordered.append(("ours", row))
        if (match := theirs.pop(_named(row, table), None)) is not None:
            ordered.append(("thesis", match))
    return ordered + [("thesis", row) for row in theirs.values()]


def table_lines(table: Table, trials: Sequence[Trial]) -> Iterator[str]:
    """The table as text."""
    ordered = _ordered(table, trials)
    columns = (*table.keys, *table.values)
    widths = {name: max(len(name), *(len(row[name]) for _, row in ordered)) for name in columns}
    yield f"Table {table.name}: {table.title}"
    yield "  ".join([f"{'':<6}", *(name.ljust(width) for name, width in widths.items())]).rstrip()
    for whose, row in ordered:
        shown = (f"{row[name]:{'<' if name in table.keys else '>'}{widths[name]}}" for name in columns)
        yield "  ".join([f"{whose:<6}", *shown])


def _write(out: Path, trials: Sequence[Trial]) -> None:
    """Each table as CSV, and all as a picture with a bar for each value."""
    marks, y = [_mark(8, 16, "blue: ours, grey: the thesis")], 16
    for table in TABLES:
        columns, ordered = (*table.keys, *table.values), _ordered(table, trials)
        text = io.StringIO(newline="")
        csv.writer(text).writerow(("whose", *columns))
        csv.writer(text).writerows((whose, *(row[name] for name in columns)) for whose, row in ordered)
        write_answer(out / f"table-{table.name}.csv", text.getvalue())
        marks.append(_mark(8, y + 28, f"Table {table.name}: {table.title}"))
        marks += [_mark(8 + 110 * at, y + 46, name) for at, name in enumerate(columns)]
        y += 50
        most = {name: max(float(row[name]) for _, row in ordered) or 1 for name in table.values}
        for whose, row in ordered:
            colour = "#4c9be8" if whose == "ours" else "#c9c9c9"
            for at, name in enumerate(columns):
                width = 96 * float(row[name]) / most[name] if name in most else 0
                marks.append(_mark(8 + 110 * at, y + 11, row[name], f"{width:.1f}", colour))
            y += 16
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="1460" height="{y + 8}" font-family="monospace"'
    write_answer(out / "tables.svg", "\n".join([f'{head} font-size="11">', *marks, "</svg>\n"]))


def _mark(x: int, y: int, text: str, width: str = "0", colour: str = "none") -> str:
    bar = f'<rect x="{x}" y="{y - 11}" width="{width}" height="13" fill="{colour}"/>'
    return f'{bar}<text x="{x + 2}" y="{y}">{escape(text)}</text>'


def _named(row: Row, table: Table) -> tuple[str, ...]:
    return tuple(row[key] for key in table.keys)
