"""`pilothouse explorer`: plan sets run in the explorer's world, and their metrics (spec BDI §3)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from statistics import mean, median, pstdev
from typing import Any

from engine.bdi.agent import BdiAgent
from engine.bdi.parser import parse_program
from engine.bdi.printing import trigger_text
from engine.bdi.problems import ProgramError
from engine.bdi.semantics import Semantics
from engine.bdi.syntax import Plan
from engine.generation.pgp.answer import Answer, ReadPlan, read_answer
from engine.generation.pgp.documentation import Documentation, documentation_of
from engine.generation.pgp.metrics import Metrics, alignment_surrogate, measure
from engine.generation.pgp.partial_plans import Provenance
from engine.generation.pgp.reactive import ReactiveProcedure
from engine.generation.pgp.validation import Review, review
from engine.worlds.explorer_files import (
    baseline_program,
    explorer_program,
    recorded_answer,
    recorded_answers,
)
from engine.worlds.explorer_run import GOAL, ExplorerRun, run_explorer

SEED_LIMIT = 10_000
"""Seeds in one go."""
FILE_LIMIT = 1_000_000
"""Bytes of a file with plans or an answer."""
_SEEDS = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10}))?")


class Mode(StrEnum):
    """Which cycle runs the plans; the value names its time to the goal."""

    COMPAT = "ref_cycles"
    """As the thesis' reasoner counts: one event a cycle, percepts first in the queue."""
    NATIVE = "cycles"

    @property
    def semantics(self) -> Semantics:
        """The reasoner's settings."""
        return Semantics.compat() if self is Mode.COMPAT else Semantics.jason()


class CandidateError(ValueError):
    """Plans that cannot be had; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Plans to be tried."""

    name: str
    answer: Answer
    """The plans as an answer; of a program each plan is one that was read."""
    generated: bool
    """Whether they arrive through the reactive procedure, or are there from the start."""


@cache
def known() -> Documentation:
    """What is documented of the robot."""
    return documentation_of(explorer_program().docs)


def candidate(text: str, *, generated: bool) -> Candidate:
    """The plans that a name or path stands for.

    Args:
        text: `baseline`, a recorded answer such as `5.8`, an `.asl` program, or a file with an answer.
        generated: whether a program's plans arrive through the reactive procedure; answers always do.

    Raises:
        CandidateError: there is no such thing, or the program is not valid.
    """
    if text == "baseline":
        return Candidate(text, _as_answer(baseline_program().plans), generated)
    name = text if text.startswith("listing-") else f"listing-{text}"
    if name in recorded_answers():
        return Candidate(name, read_answer(recorded_answer(name), known().actions), generated=True)
    content = _content(Path(text))
    if not text.endswith(".asl"):
        return Candidate(text, read_answer(content, known().actions), generated=True)
    try:
        return Candidate(text, _as_answer(parse_program(content, text).plans), generated)
    except ProgramError as error:
        raise CandidateError(str(error)) from None


def _content(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(FILE_LIMIT + 1)
    except OSError as error:
        listed = ", ".join(("baseline", *recorded_answers()))
        raise CandidateError(f"{path}: {error.strerror}; it is none of {listed} either") from None
    if len(content) > FILE_LIMIT:
        raise CandidateError(f"{path}: larger than {FILE_LIMIT} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise CandidateError(f"{path}: not a text in UTF-8") from None


def _as_answer(plans: Sequence[Plan]) -> Answer:
    return Answer("", tuple(ReadPlan(plan, plan.position.line) for plan in plans))


def seeds_of(text: str) -> range:
    """The seeds that `7` or `1-100` stands for.

    Raises:
        ValueError: it is neither; the message says so.
    """
    written = _SEEDS.fullmatch(text)
    if written is None:
        raise ValueError(f"'{text[:40]}' are no seeds: write 7 or 1-100")
    first, last = int(written[1]), int(written[2] or written[1])
    found = range(first, last + 1)
    if not 0 < len(found) <= SEED_LIMIT or found[-1] >= 2**31:
        raise ValueError(f"'{text}' are no seeds: from 1 to {SEED_LIMIT} of them, each below 2^31")
    return found


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a candidate."""

    candidate: Candidate
    review: Review
    metrics: Metrics
    pras_surrogate: float
    runs: dict[Mode, tuple[ExplorerRun, ...]]

    @property
    def first(self) -> tuple[ExplorerRun, ...]:
        """The runs of the first mode."""
        return next(iter(self.runs.values()))

    @property
    def tsr(self) -> float:
        """Runs that reached home, per cent."""
        return 100 * mean(run.reached for run in self.first)

    def times(self) -> dict[str, list[int]]:
        """Of the runs that reached home: the cycle, by mode, and the moves."""
        found = {mode.value: [run.cycles for run in runs if run.reached] for mode, runs in self.runs.items()}
        return found | {"moves": [run.moves for run in self.first if run.reached]}


def try_out(tried: Candidate, seeds: Sequence[int], modes: Sequence[Mode]) -> Result:
    """Measure a candidate's plans, and run them once for each seed and mode; blocking."""
    judged = review(tried.answer, GOAL, known().actions)
    plans = [read.plan for read in tried.answer.plans]
    installed = () if tried.generated else tuple(plans)
    procedure = partial(_Recorded, tried=tried) if tried.generated else None
    return Result(
        tried,
        judged,
        measure(tried.answer, known().admissible_goals, known().admissible_beliefs),
        alignment_surrogate(plans, baseline_program().plans),
        {
            mode: tuple(run_explorer(installed, seed, mode.semantics, procedure=procedure) for seed in seeds)
            for mode in modes
        },
    )


class _Recorded:
    """The reactive procedure with a recorded answer in the place of a model."""

    def __init__(self, agent: BdiAgent, tried: Candidate) -> None:
        self._inner = ReactiveProcedure(agent)
        self._tried = tried

    @property
    def asked(self) -> int:
        return self._inner.asked

    def answer(self) -> None:
        for question in self._inner.questions:
            judged = review(self._tried.answer, question.goal, known().actions)
            goal = trigger_text(question.goal)
            source = Provenance(goal, "recorded", self._tried.name, time="", depth=question.depth)
            self._inner.settle(question, judged, source)


def explore(
    plans: str, seeds: str, *, compat: bool, native: bool, generated: bool
) -> tuple[dict[str, Any], str]:
    """What `pilothouse explorer` answers, for a program and for a person; blocking.

    Args:
        plans: as for `candidate`.
        seeds: as for `seeds_of`.
        compat: run the thesis' cycle; with neither both are run.
        native: run our own cycle.
        generated: as for `candidate`.

    Raises:
        ValueError: plans or seeds are not understood; the message says so.
    """
    chosen = [mode for mode, wanted in ((Mode.COMPAT, compat), (Mode.NATIVE, native)) if wanted]
    over = seeds_of(seeds)
    answer = report(try_out(candidate(plans, generated=generated), over, chosen or list(Mode)), over)
    return answer, words(answer)


def report(result: Result, seeds: range) -> dict[str, Any]:
    """A result ready for JSON, by the codes of the metrics; numbers to two digits."""
    metrics = {_code(name): _two(value) for name, value in result.metrics.as_dict().items()}
    times = result.times()
    return {
        "plans": result.candidate.name,
        "pgp": result.candidate.generated,
        "seeds": [seeds[0], seeds[-1]],
        **metrics,
        "PRAS_surrogate": _two(result.pras_surrogate),
        "TSR": _two(result.tsr),
        "GAT": {name: _two(mean(found)) if found else None for name, found in times.items()},
        "spread": {name: _spread(found) for name, found in times.items()} if len(seeds) > 1 else {},
        "generations": max(run.generations for run in result.first),
        "problems": list(result.review.complaints),
    }


def _code(name: str) -> str:
    """The metric's code in the thesis, `CC` or `CC_ref`."""
    code, _, variant = name.partition("_")
    return f"{code.upper()}_{variant}" if variant else code.upper()


def _spread(values: Sequence[int]) -> dict[str, float]:
    if not values:
        return {}
    return {
        "min": min(values),
        "median": _two(median(values)),
        "max": max(values),
        "deviation": _two(pstdev(values)),
    }


def _two(value: float) -> float:
    return round(value, 2)


def words(answer: dict[str, Any]) -> str:
    """A report for a person."""
    first, last = answer["seeds"]
    seeds = f"seed {first}" if first == last else f"seeds {first} to {last}"
    how = "generated when the goal found no plan" if answer["pgp"] else "there from the start"
    lines = [f"{answer['plans']}: plans {how}; {seeds}"]
    codes = (*(_code(one.name) for one in fields(Metrics)), "PRAS_surrogate", "TSR")
    lines += [f"  {name:<15} {answer[name]}" for name in codes]
    for name, value in answer["GAT"].items():
        spread = answer["spread"].get(name) or {}
        told = "".join(f"  {word} {number}" for word, number in spread.items())
        lines.append(f"  GAT {name:<11} {'never' if value is None else value}{told}")
    return "\n".join([*lines, *(f"  {problem}" for problem in answer["problems"])])
