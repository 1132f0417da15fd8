"""`pilothouse eval`: a suite of graded tasks for a model, as a table by level; two results side by side."""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from app.cli.evaluation import FIGURES, Suite, SuiteError, Task, load_suite, run_task
from app.cli.options import accepted_tier, flag, print_answer, print_error
from app.commands.headless import EXIT_CODES, Status
from app.commands.missions import free_name
from app.commands.rewind import wilson_interval
from app.commands.settings import load_and_say
from engine import __version__
from engine.agent.shared import STYLES, EngineConfig
from engine.core.store.places import read_plain
from engine.core.text import clean_line, first_problem
from engine.core.user_key import write_own
from engine.models.choice import NO_MODEL
from engine.sandbox.policy import Network
from engine.value import replace

USUAL = "levels"
"""The suite that is run where none is named."""
RESULTS = "results.json"
LARGEST = 100_000_000
PROCEDURAL = "procedural"
WIDE = 10
"""Characters of a bar."""


class _Row(BaseModel, frozen=True):
    """One run of one task; what is unknown here came with a later version."""

    task: str
    round: int
    level: int
    kind: str
    digest: str
    passed: bool
    status: str
    why: str
    replays: bool
    figures: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]]
    """Seconds, and what `app.cli.evaluation.counted` counts."""

    def of(self, name: str) -> float:
        """A figure; 0 where the version that wrote it had none."""
        return self.figures.get(name, 0.0)

    @property
    def sound(self) -> bool:
        """Whether it neither crashed nor differs when it is replayed."""
        return self.replays and self.status != Status.FAULT


class Results(BaseModel):
    """What an evaluation gave."""

    suite: str
    model: str
    """Its name, and behind it the style where that is not the usual one."""
    version: str
    levels: tuple[str, ...] = ()
    runs: list[_Row] = Field(default_factory=list)


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
    settings = load_and_say(options.out or Path("evaluations"))
    choice = settings.model if options.model != PROCEDURAL else None
    if choice is None and options.model not in ("", PROCEDURAL):
        return print_error(NO_MODEL)
    if choice is None:
        sys.stderr.write("no model is asked: tasks are planned by recipes alone\n")
    elif options.model:
        choice = replace(choice, name=options.model, roles={}, fallback=())
    model = choice.name if choice is not None else PROCEDURAL
    if choice is None:
        options.style = STYLES[0]
    elif options.style != STYLES[0]:
        model += f" {options.style}"
    place = options.out or Path("evaluations", re.sub("[^A-Za-z0-9._-]", "-", f"{suite.name}-{model}"))
    policy = settings.engine_config(accept=accepted_tier(options)).policy.with_network(Network.OFF)
    file = place / RESULTS
    results = Results(suite=suite.name, model=model, version=__version__, levels=suite.levels)
    if file.exists():
        before = read_results(file)
        if (before.suite, before.model) != (suite.name, model):
            return print_error(f"{file} is of {before.suite} with {before.model}: give another --out")
        results.runs = before.runs
    sys.stderr.write(f"{len(tasks) * options.rounds} runs; results and journals: {place}\n")
    try:
        config = EngineConfig(policy=policy, model=choice)
        early = asyncio.run(_run_all(options, tasks, config, results, place))
    except OSError as error:
        return print_error(f"{error.filename or place} cannot be written: {error.strerror}")
    answer = {**results.model_dump(mode="json"), "table": summary(results.runs), "file": str(file)}
    print_answer(options, answer, table(results))
    sound = all(row.sound for row in results.runs)
    return EXIT_CODES[early or (Status.GOAL_ACHIEVED if sound else Status.FAULT)]


async def _run_all(
    options: argparse.Namespace, tasks: Sequence[Task], config: EngineConfig, results: Results, place: Path
) -> Status | None:
    """Run what has no result yet; each result is on the disk before the next begins. Why it ended early."""
    how = {"thinker": PROCEDURAL} if config.model is None else {"thinker": "claude", "style": options.style}
    done = {(row.task, row.round, row.digest) for row in results.runs}
    taken = await asyncio.to_thread(lambda: [path.name for path in place.glob("*")])
    for number, task in product(range(1, options.rounds + 1), tasks):
        if (task.id, number, task.digest) in done:
            continue
        workspace = place / free_name(f"{task.id}-{number}", taken)
        row = await run_task(task, workspace, config, how, timeout_s=options.timeout)
        if (ended := Status(row["status"])) in (Status.INTERRUPTED, Status.NO_JAIL):
            print_error(row["why"])
            return ended
        results.runs.append(_Row(**row, round=number))
        await asyncio.to_thread(write_own, place / RESULTS, results.model_dump_json(indent=1).encode())
        if not flag(options, "quiet"):
            sys.stderr.write(f"{_line(results.runs[-1])}\n")
    return None


def _line(row: _Row) -> str:
    mark = "!" if not row.sound else "✓" if row.passed else "✗"
    took = f"{row.of('seconds'):>7.1f} s {row.of('tokens'):>8,.0f} tokens"
    return f"{mark} {row.task:<24} {took}  {clean_line(row.why, limit=100)}".rstrip()


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
    passed = sum(row.passed for row in runs)
    rate = wilson_interval(passed, len(runs))
    sums = {name: round(sum(row.of(name) for row in runs), 6) for name in (*FIGURES, "seconds")}
    given = {"runs": len(runs), "passed": passed, "rate": rate.value, "low": rate.low, "high": rate.high}
    alone = sum(row.passed and not row.of("calls") for row in runs)
    return {**given, **sums, "without_a_call": alone, "sound": sum(row.sound for row in runs)}


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
        cost = "unknown" if of["unpriced"] else f"${of['usd']:.4f}"
        took = f"{of['calls']:>5.0f} {of['tokens']:>9,.0f} {of['seconds']:>7.0f} {cost:>8}"
        lines.append(f"{_named(results, level):<{wide}} {_share(of)} {first:>8} {of['repairs']:>7.0f} {took}")
    if every := figures.get("all"):
        wrong = every["runs"] - every["sound"]
        lines.append(f"{wrong} crashed or did not replay" if wrong else f"all {every['runs']} runs replay")
        if results.model != PROCEDURAL and every["without_a_call"]:
            lines[-1] += f"; {every['without_a_call']} passed by recipes, without a call of the model"
    missed = Counter(row.task for row in results.runs if not row.passed)
    why = {row.task: row.why for row in results.runs if not row.passed}
    lines += [f"✗ {task:<24} {times}× {clean_line(why[task], limit=100)}" for task, times in missed.items()]
    return "\n".join(lines)


def _named(results: Results, level: str) -> str:
    known = level.isdigit() and int(level) <= len(results.levels)
    return f"{level} {results.levels[int(level) - 1]}" if known else level


def _share(of: dict[str, Any]) -> str:
    """How many passed, as numbers, a bar, and the interval of the rate."""
    full = round(of["rate"] * WIDE)
    interval = f"{of['low']:.0%}–{of['high']:.0%}".replace("%–", "–")
    return f"{of['passed']:>4}/{of['runs']:<3} {'█' * full}{'░' * (WIDE - full)} {interval:>7}"


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
        a, b = left[level], right[level]
        rows[level] = {"a": a, "b": b, "apart": a["high"] < b["low"] or b["high"] < a["low"]}
        lines.append(_named(one, level))
        lines += [
            f"  {mark} {_share(of)} {of['tokens']:>10,.0f} tokens {of['seconds']:>7.0f} s"
            for mark, of in (("A", a), ("B", b))
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


def _rates(runs: Iterable[_Row]) -> dict[str, float]:
    passed: dict[str, list[bool]] = {}
    for row in runs:
        passed.setdefault(row.task, []).append(row.passed)
    return {task: sum(each) / len(each) for task, each in passed.items()}
