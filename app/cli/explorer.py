"""`pilothouse explorer`: plan sets run in the explorer's world, and their metrics.

What `pilothouse explorer` says of a candidate, for programs and for people.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from statistics import mean, median, pstdev
from typing import Any

from app.cli.candidates import (
    EXPLORER,
    THINKERS,
    Candidate,
    Thinker,
    answer_candidate,
    asked_candidate,
    documented_facts,
    find_answerer,
    plans_candidate,
    seeds_of,
    write_answer,
)
from engine.bdi.agent import BdiAgent
from engine.bdi.semantics import Semantics
from engine.planning.pgp.answer_parser import Answer
from engine.planning.pgp.answered_procedure import AnsweredProcedure
from engine.planning.pgp.metrics import (
    Judgement,
    Metrics,
    alignment_surrogate,
    judge_prompt,
    judged_reply,
    measure,
)
from engine.planning.pgp.prompts import PromptVariant, as_answer
from engine.planning.pgp.requests import (
    Answerer,
    AskError,
    Conversation,
    GenerationConfig,
    Reply,
    UnansweredError,
)
from engine.planning.pgp.validation import Review, review, unknown_actions
from engine.tools.worlds.explorer import baseline_program
from engine.tools.worlds.explorer_run import GOAL, ExplorerRun, run_explorer
from engine.value import dataclass, replace


class Mode(StrEnum):
    """Which cycle runs the plans; the value names its time to the goal."""

    COMPAT = "ref_cycles"
    """As the thesis' reasoner counts: one event a cycle, percepts first in the queue."""
    NATIVE = "cycles"

    @property
    def semantics(self) -> Semantics:
        """The reasoner's settings."""
        return Semantics.compat() if self is Mode.COMPAT else Semantics()


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a candidate."""

    candidate: Candidate
    review: Review
    metrics: Metrics
    surrogate: float
    """Likeness to the baseline, where no judge is asked."""
    runs: dict[Mode, tuple[ExplorerRun, ...]]
    main: Mode
    """Whose runs count for success and moves."""
    said: tuple[Reply | AskError, ...] = ()
    """What the thinker was asked for, in order."""
    judgement: Judgement | None = None

    @property
    def counted(self) -> tuple[ExplorerRun, ...]:
        """The runs of the main mode."""
        return self.runs[self.main]

    @property
    def tsr(self) -> float:
        """Runs that reached home, per cent."""
        return 100 * mean(run.reached for run in self.counted)

    @property
    def unknown_actions(self) -> int:
        """Uses of actions that the robot lacks."""
        plans = (read.plan for read in self.review.answer.plans)
        return sum(1 for plan in plans for _ in unknown_actions(plan, documented_facts().actions))

    def times(self) -> dict[str, list[int]]:
        """Of the runs that reached home: the cycle, by mode, and the moves."""
        cycles = {mode.value: [run.cycles for run in runs if run.reached] for mode, runs in self.runs.items()}
        return cycles | {"moves": [run.moves for run in self.counted if run.reached]}


class CandidateRuns:
    """A candidate over seeds in both modes; a run that lacks an answer is made again when it is there."""

    def __init__(self, tried: Candidate, seeds: Sequence[int]) -> None:
        self._tried = tried
        self._todo = [(mode, seed) for mode in Mode for seed in seeds]
        asked = tried.answerer
        self._talk = Conversation(asked, tried.config) if asked is not None else None
        self._done: dict[tuple[Mode, int], ExplorerRun] = {}

    async def result(self, main: Mode) -> Result:
        """Run everything, asking what has to be asked.

        Raises:
            AskError: there is no answer to the first question, so nothing to be measured.
        """
        while len(self._done) < len(self._todo):
            for key in self._todo:
                if key not in self._done:
                    with suppress(UnansweredError):
                        self._done[key] = self._run(*key)
                    await asyncio.sleep(0)
            if self._talk is not None and self._talk.open:
                await self._talk.ask_open()
        return self._measured(main)

    def _run(self, mode: Mode, seed: int) -> ExplorerRun:
        program = self._tried.program
        plans = [read.plan for read in program.plans] if program is not None else []
        procedure: Callable[[BdiAgent], AnsweredProcedure] | None = None
        if self._talk is not None:
            procedure = partial(
                AnsweredProcedure, known=documented_facts(), conversation=self._talk, read=self._tried.read
            )
        return run_explorer(plans, seed, mode.semantics, procedure=procedure)

    def _measured(self, main: Mode) -> Result:
        answer = self._tried.program or self._first_answer()
        runs = {mode: tuple(self._done[key] for key in self._todo if key[0] is mode) for mode in Mode}
        plans = [read.plan for read in answer.plans]
        return Result(
            self._tried,
            review(answer, GOAL, documented_facts().actions),
            measure(answer, documented_facts().admissible_goals, documented_facts().admissible_beliefs),
            alignment_surrogate(plans, baseline_program().plans),
            runs,
            main,
            self._talk.said if self._talk is not None else (),
        )

    def _first_answer(self) -> Answer:
        assert self._talk is not None
        first = self._talk.said[0]
        if isinstance(first, AskError):
            raise first
        return self._tried.read(first.text)


async def judge_plans(result: Result, judge: Conversation) -> Judgement:
    """What a judge says of the plans, held against the baseline."""
    answer = result.review.answer
    text = answer.text or as_answer(read.plan for read in answer.plans)
    return judged_reply(await judge.say(judge_prompt(text, as_answer(baseline_program().plans))))


def judge_config(by: Answerer) -> GenerationConfig:
    """What a judge is asked with: temperature 0."""
    return EXPLORER.over(model=by.model, temperature=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplorerOptions:
    """What the operator asked for; at most one of plans, answer and thinker."""

    plans: str = ""
    answer: str = ""
    thinker: str = ""
    seeds: str = "7"
    main: Mode = Mode.NATIVE
    generated: bool = False
    """A program's plans arrive when the goal finds none."""
    judge: str = ""
    prompt: PromptVariant | None = None
    temperature: float | None = None
    keep: Path | None = None
    """Where the thinker's answer is written."""

    def candidate(self, thinkers: Mapping[str, Thinker]) -> Candidate:
        """What is to be tried.

        Raises:
            CandidateError: it cannot be had.
        """
        if self.thinker:
            by = find_answerer(self.thinker, thinkers)
            return asked_candidate(by, self.thinker, temperature=self.temperature, user_prompt=self.prompt)
        if self.answer:
            return answer_candidate(self.answer)
        return plans_candidate(self.plans or "baseline", generated=self.generated)


async def explore(
    options: ExplorerOptions, thinkers: Mapping[str, Thinker] = THINKERS
) -> tuple[dict[str, Any], str]:
    """What `pilothouse explorer` answers, for a program and for a person.

    Args:
        options: what was asked for.
        thinkers: who can be named as thinker or judge.

    Raises:
        ValueError: something asked for is not understood or cannot be had; the message says so.
        AskError: the thinker gave no answer.
    """
    seeds = seeds_of(options.seeds)
    judge = find_answerer(options.judge, thinkers) if options.judge else None
    trying = CandidateRuns(options.candidate(thinkers), seeds)
    result = await trying.result(options.main)
    if options.keep is not None:
        write_answer(options.keep, result.review.answer.text)
    if judge is not None:
        talk = Conversation(judge, judge_config(judge))
        result = replace(result, judgement=await judge_plans(result, talk))
    answer = report(result, options.seeds.strip())
    return answer, "\n".join(_report_lines(answer))


CODES = ("PC", "CC", "cc_ref", "PBC", "GC", "RR", "rr_ref", "NGC", "NBC", "GSA", "BSA", "bsa_ref")
"""The metrics that plans alone decide, as the contract names them."""
STATISTICS: Mapping[str, Callable[[Sequence[int]], float]] = {
    "mean": mean,
    "sd": pstdev,
    "median": median,
    "min": min,
    "max": max,
}


def report(result: Result, seeds: str) -> dict[str, Any]:
    """A result ready for JSON, with the keys of the contract first; numbers to two digits."""
    metrics, times = result.metrics.as_dict(), result.times()
    answer = result.review.answer
    return {
        "runs": len(result.counted),
        "TSR": _two(result.tsr),
        "GAT": {name: _two(mean(values)) if values else None for name, values in times.items()},
        **{code: _two(metrics[code.lower()]) for code in CODES},
        "PRAS": _pras(result),
        "unparsable": len(answer.problems),
        "unknown_actions": result.unknown_actions,
        "executable": bool(answer.plans),
        "plans": result.candidate.name,
        "pgp": result.candidate.answerer is not None,
        "seeds": seeds,
        "spread": {name: _spread(values) for name, values in times.items()},
        "main": result.main.value,
        "generations": max(run.generations for run in result.counted),
        "asked": _asked(result),
        "problems": list(result.review.complaints),
    }


def _pras(result: Result) -> dict[str, Any]:
    judgement = result.judgement
    if judgement is None:
        return {"value": _two(result.surrogate), "kind": "surrogate"}
    value = None if judgement.value is None else _two(judgement.value)
    return {"value": value, "kind": "judge"} | ({"problem": judgement.problem} if judgement.problem else {})


def _asked(result: Result) -> dict[str, Any]:
    replies = [each for each in result.said if isinstance(each, Reply)]
    return {
        "prompts": len(result.said),
        "failures": [str(each) for each in result.said if not isinstance(each, Reply)],
        "models": sorted({reply.model for reply in replies}),
        "input_tokens": sum(reply.input_tokens for reply in replies),
        "output_tokens": sum(reply.output_tokens for reply in replies),
        "latency_ms": _two(mean(reply.latency_ms for reply in replies)) if replies else None,
    }


def _spread(values: Sequence[int]) -> dict[str, float | None]:
    """How values are spread, `sd` over all of them; None where no run reached home."""
    return {name: _two(statistic(values)) if values else None for name, statistic in STATISTICS.items()}


def _two(value: float) -> float:
    return round(value, 2)


def _report_lines(answer: dict[str, Any]) -> Iterator[str]:
    """A report for a person."""
    how = "generated when the goal found no plan" if answer["pgp"] else "there from the start"
    runs = f"{answer['runs']} run{'s' if answer['runs'] > 1 else ''} in each cycle"
    yield f"{answer['plans']}: plans {how}; seeds {answer['seeds']}, {runs}"
    yield f"  {'TSR':<11}{answer['TSR']:>9}"
    for code in CODES:
        yield f"  {code:<11}{answer[code]:>9}"
    pras = answer["PRAS"]
    value = "none" if pras["value"] is None else pras["value"]
    problem = f": {pras['problem']}" if "problem" in pras else ""
    yield f"  {'PRAS':<11}{value:>9} by {'a judge' if pras['kind'] == 'judge' else 'surrogate'}{problem}"
    yield f"  {'GAT':<11}" + "".join(f"{name:>9}" for name in STATISTICS)
    for name, spread in answer["spread"].items():
        shown = (spread[statistic] for statistic in STATISTICS)
        yield f"  {name:<11}" + "".join(f"{'never' if each is None else each:>9}" for each in shown)
    for line in (*answer["asked"]["failures"], *answer["problems"]):
        yield f"  {line}"
