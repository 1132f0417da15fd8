"""`pilothouse eval`: a suite of graded tasks for a model, as a table by level; two results side by side."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.cli.evaluation import TASK_S, Suite, SuiteError, Task, load_suite, run_task
from app.cli.options import accepted_tier, add_tier_option, flag, positive, print_answer, print_error, seconds
from app.commands.headless import EXIT_CODES, Status
from app.commands.rewind import wilson_interval
from app.commands.settings import load_and_say
from engine import __version__
from engine.agent.shared import EngineConfig
from engine.core.text import clean_line, first_problem
from engine.core.trust import read_plain
from engine.models.choice import NO_MODEL, ModelChoice
from engine.sandbox.policy import Network
from engine.value import replace

USUAL = "levels"
"""The suite that is run where none is named."""
RESULTS = "results.json"
LARGEST = 100_000_000
PROCEDURAL = "procedural"
WIDE = 10
"""Characters of a bar."""


class _Row(BaseModel):
    """One run of one task; what is unknown here came with a later version."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    task: str
    round: int = 1
    level: int
    kind: str
    digest: str
    passed: bool
    status: str
    why: str = ""
    crashed: bool = False
    replays: bool = True
    seconds: float = 0.0
    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0
    repairs: int = 0
    plans: int = 0
    first_valid: int = 0


class Results(BaseModel):
    """What an evaluation gave."""

    model_config = ConfigDict(extra="ignore")

    suite: str
    model: str
    version: str
    levels: tuple[str, ...] = ()
    runs: list[_Row] = Field(default_factory=list)


def add_arguments(evaluate: argparse.ArgumentParser) -> None:
    """Declare what it takes."""
    evaluate.add_argument(
        "words",
        nargs="*",
        metavar="SUITE",
        help=f"a shipped suite (the usual one: {USUAL}), a suite's file, or: compare A B, two results",
    )
    evaluate.add_argument("--model", default="", metavar="NAME", help="who is asked; procedural: nobody")
    evaluate.add_argument(
        "-n", dest="rounds", type=positive, default=1, metavar="K", help="how often each task is run; 1"
    )
    evaluate.add_argument(
        "--task", default="*", metavar="GLOB", help="only tasks whose id, kind or level is of this form"
    )
    evaluate.add_argument("--list", action="store_true", help="list the tasks, and run none")
    evaluate.add_argument(
        "--timeout", type=seconds, default=TASK_S, metavar="S", help=f"seconds a task may take; {TASK_S:g}"
    )
    evaluate.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where results and the journal of each run are kept; what is there already is not run again",
    )
    add_tier_option(evaluate)


def run(options: argparse.Namespace) -> int:
    """Run a suite, list its tasks, or compare two results."""
    try:
        if options.words[:1] == ["compare"]:
            if len(options.words) != 3:
                return print_error("say two results: pilothouse eval compare A B")
            return _compare(options, *(read_results(Path(word)) for word in options.words[1:]))
        if len(options.words) > 1:
            return print_error(f"one suite at a time, not {len(options.words)}: or compare A B")
        suite = load_suite(options.words[0] if options.words else USUAL)
        tasks = [task for task in suite.tasks if _chosen(task, options.task)]
        if not tasks:
            kinds = ", ".join(sorted({task.kind for task in suite.tasks}))
            return print_error(f"no task of {suite.name} is of the form '{options.task}'; kinds: {kinds}")
        if options.list:
            rows = [{"task": each.id, "level": each.level, "kind": each.kind} for each in tasks]
            lines = [f"{each.level} {each.kind:<14} {each.id:<24} {each.goal or each.line}" for each in tasks]
            print_answer(options, {"tasks": rows}, "\n".join(clean_line(line) for line in lines))
            return 0
        return _evaluate(options, suite, tasks)
    except SuiteError as error:
        return print_error(str(error))


def _chosen(task: Task, form: str) -> bool:
    return any(fnmatchcase(name, form) for name in (task.id, task.kind, str(task.level)))


# ------------------------------------------------------------------ running


def _evaluate(options: argparse.Namespace, suite: Suite, tasks: Sequence[Task]) -> int:
    place = options.out or Path("evaluations")
    settings = load_and_say(place)
    choice: ModelChoice | None = settings.model if options.model != PROCEDURAL else None
    if options.model not in ("", PROCEDURAL):
        if choice is None:
            return print_error(NO_MODEL)
        choice = replace(choice, name=options.model)
    model = choice.name if choice is not None else PROCEDURAL
    if options.out is None:
        place /= f"{suite.name}-{model}".replace("/", "-").replace(":", "-")
    if choice is None:
        sys.stderr.write("no model is asked: tasks are planned by recipes alone\n")
    policy = settings.engine_config(accept=accepted_tier(options)).policy.with_network(Network.OFF)
    config = EngineConfig(policy=policy, model=choice)
    file = place / RESULTS
    results = Results(suite=suite.name, model=model, version=__version__, levels=suite.levels)
    if file.exists():
        before = read_results(file)
        if (before.suite, before.model) != (suite.name, model):
            return print_error(f"{file} is of {before.suite} with {before.model}: give another --out")
        results.runs = before.runs
    sys.stderr.write(f"{len(tasks) * options.rounds} runs; results and journals: {place}\n")
    try:
        whole = asyncio.run(_run_all(options, tasks, config, results, place))
    except OSError as error:
        return print_error(f"{error.filename or place} cannot be written: {error.strerror}")
    answer = {**results.model_dump(mode="json"), "table": summary(results.runs), "file": str(file)}
    print_answer(options, answer, table(results))
    crashed = any(row.crashed or not row.replays for row in results.runs)
    return EXIT_CODES[Status.FAULT if crashed else Status.GOAL_ACHIEVED if whole else Status.INTERRUPTED]


async def _run_all(
    options: argparse.Namespace, tasks: Sequence[Task], config: EngineConfig, results: Results, place: Path
) -> bool:
    """Run what has no result yet, until interrupted; each result is on the disk before the next begins."""
    thinker = "claude" if config.model is not None else PROCEDURAL
    for number in range(1, options.rounds + 1):
        for task in tasks:
            if any(
                (row.task, row.round, row.digest) == (task.id, number, task.digest) for row in results.runs
            ):
                continue
            workspace = _free(place / f"{task.id}-{number}")
            row = await run_task(task, workspace, config, thinker=thinker, timeout_s=options.timeout)
            if row["status"] == Status.INTERRUPTED:
                return False
            results.runs.append(_Row(**row, round=number))
            text = json.dumps(results.model_dump(mode="json"), indent=1)
            await asyncio.to_thread(_write, place / RESULTS, text)
            if not flag(options, "quiet"):
                sys.stderr.write(f"{_line(results.runs[-1])}\n")
    return True


def _free(path: Path) -> Path:
    """The path, or the first of `path.2`, `path.3`, … that is free."""
    number = 1
    while (free := path if number == 1 else path.with_name(f"{path.name}.{number}")).exists():
        number += 1
    return free


def _write(file: Path, text: str) -> None:
    """Put a file in place at once, so that it is whole whatever happens."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(file)


def _line(row: _Row) -> str:
    mark = "!" if row.crashed or not row.replays else "✓" if row.passed else "✗"
    why = clean_line(row.why, limit=100)
    return f"{mark} {row.task:<24} {row.seconds:>7.1f} s {row.tokens:>8,} tokens  {why}".rstrip()


# ------------------------------------------------------------------ tables


def read_results(path: Path) -> Results:
    """The results of a file, or of the directory that has it; blocking.

    Raises:
        SuiteError: it cannot be read, or holds none.
    """
    file = path / RESULTS if path.is_dir() else path
    try:
        return Results.model_validate_json(read_plain(file, LARGEST))
    except OSError as error:
        raise SuiteError(
            f"{file} cannot be read ({error.strerror}): give a {RESULTS} or its folder"
        ) from None
    except ValidationError as error:
        raise SuiteError(f"{file} has no results of an evaluation: {first_problem(error)}") from None


def _figures(runs: Sequence[_Row]) -> dict[str, Any]:
    passed, plans = sum(row.passed for row in runs), sum(row.plans for row in runs)
    rate = wilson_interval(passed, len(runs))
    sums = {
        name: sum(getattr(row, name) for row in runs) for name in ("calls", "tokens", "repairs", "seconds")
    }
    return {
        "runs": len(runs),
        "passed": passed,
        "rate": rate.value,
        "low": rate.low,
        "high": rate.high,
        "plans": plans,
        "first_valid": sum(row.first_valid for row in runs),
        **sums,
        "usd": None if any(row.unpriced for row in runs) else round(sum(row.usd for row in runs), 6),
        "crashed": sum(row.crashed for row in runs),
        "replays": sum(row.replays for row in runs),
    }


def summary(runs: Sequence[_Row]) -> dict[str, dict[str, Any]]:
    """Figures by level, and of `all`."""
    levels = sorted({row.level for row in runs})
    by_level = {str(level): _figures([row for row in runs if row.level == level]) for level in levels}
    return {**by_level, "all": _figures(runs)} if runs else {}


def table(results: Results) -> str:
    """The figures as a table, with a bar for each level, and what did not pass."""
    wide = max((len(name) + 2 for name in results.levels), default=8)
    about = clean_line(f"{results.suite} with {results.model}, Pilothouse {results.version}")
    head = f"{'level':<{wide}} {'passed':>8} {'':<{WIDE}} {'95 %':>7}"
    lines = [about, f"{head} 1st plan repairs calls    tokens seconds     cost"]
    figures = summary(results.runs)
    for level, of in figures.items():
        first = f"{of['first_valid'] / of['plans']:.0%}" if of["plans"] else "-"
        cost = "unknown" if of["usd"] is None else f"${of['usd']:.4f}"
        took = f"{of['calls']:>5} {of['tokens']:>9,} {of['seconds']:>7.0f} {cost:>8}"
        lines.append(f"{_named(results, level):<{wide}} {_share(of)} {first:>8} {of['repairs']:>7} {took}")
    wrong = [row for row in results.runs if row.crashed or not row.replays]
    every = figures["all"]["runs"] if figures else 0
    lines.append(
        f"{len(wrong)} of {every} runs crashed or did not replay" if wrong else f"all {every} runs replay"
    )
    missed = Counter(row.task for row in results.runs if not row.passed)
    why = {row.task: row.why for row in results.runs if not row.passed}
    lines += [f"✗ {task:<24} {times}× {clean_line(why[task], limit=100)}" for task, times in missed.items()]
    return "\n".join(lines)


def _named(results: Results, level: str) -> str:
    known = level.isdigit() and int(level) <= len(results.levels)
    return f"{level} {results.levels[int(level) - 1]}" if known else level


def _bar(rate: float) -> str:
    full = round(rate * WIDE)
    return "█" * full + "░" * (WIDE - full)


def _share(of: dict[str, Any]) -> str:
    """How many passed, as numbers, a bar, and the interval of the rate."""
    return f"{of['passed']:>4}/{of['runs']:<3} {_bar(of['rate'])} {_range(of):>7}"


def _range(of: dict[str, Any]) -> str:
    return f"{of['low']:.0%}–{of['high']:.0%}".replace("%–", "–")


def _compare(options: argparse.Namespace, one: Results, other: Results) -> int:
    """Two results side by side: of the tasks that are the same in both."""
    same = {(row.task, row.digest) for row in one.runs} & {(row.task, row.digest) for row in other.runs}
    if not same:
        return print_error(f"{one.suite} and {other.suite} have no task in common that is the same in both")
    both = [[row for row in each.runs if (row.task, row.digest) in same] for each in (one, other)]
    left, right = map(summary, both)
    names = [f"{each.model}, Pilothouse {each.version}" for each in (one, other)]
    rows, lines = {}, [clean_line(f"{mark} {name}") for mark, name in zip("AB", names, strict=True)]
    for level in left:
        rows[level] = {"a": left[level], "b": right[level], "apart": _apart(left[level], right[level])}
        lines.append(_named(one, level))
        lines += [
            f"  {mark} {_share(of)} {of['tokens']:>10,} tokens {of['seconds']:>7.0f} s"
            for mark, of in (("A", left[level]), ("B", right[level]))
        ]
        if rows[level]["apart"]:
            lines[-1] += "  a difference beyond chance"
    rates = [_rates(runs) for runs in both]
    changed = {
        task: (rates[0][task], rates[1][task]) for task in rates[0] if rates[0][task] != rates[1][task]
    }
    lines += [f"{'+' if b > a else '-'} {task:<24} {a:.0%} → {b:.0%}" for task, (a, b) in changed.items()]
    if left_out := len({row.task for each in (one, other) for row in each.runs} - {task for task, _ in same}):
        lines.append(f"{left_out} tasks are not the same in both, and left out")
    answer = {"a": names[0], "b": names[1], "levels": rows, "changed": changed, "left_out": left_out}
    print_answer(options, answer, "\n".join(lines))
    return 0


def _apart(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return bool(one["high"] < other["low"] or other["high"] < one["low"])


def _rates(runs: Iterable[_Row]) -> dict[str, float]:
    passed: dict[str, list[bool]] = {}
    for row in runs:
        passed.setdefault(row.task, []).append(row.passed)
    return {task: sum(each) / len(each) for task, each in passed.items()}
