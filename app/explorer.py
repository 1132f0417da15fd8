"""`pilothouse explorer`: plan sets run in the explorer's world, and their metrics (spec BDI §3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from app.answerers import THINKERS, CandidateError, Thinker, answerer
from app.candidates import (
    EXPLORER,
    Candidate,
    answer_candidate,
    asked_candidate,
    known,
    plans_candidate,
    seeds_of,
)
from app.explorer_log import ExplorerLog
from engine.bdi.agent import BdiAgent
from engine.bdi.semantics import Semantics
from engine.generation.pgp.answer import Answer
from engine.generation.pgp.answer_format import as_answer
from engine.generation.pgp.answering import AnsweredProcedure, Note
from engine.generation.pgp.asking import Answerer, AskError, Conversation, Reply, UnansweredError
from engine.generation.pgp.config import EffectiveConfig, GenerationConfig, resolve
from engine.generation.pgp.judging import Judgement, judge_prompt, judged
from engine.generation.pgp.log_events import LogLine
from engine.generation.pgp.metrics import Metrics, alignment_surrogate, measure
from engine.generation.pgp.prompt import PromptVariant, user_prompt
from engine.generation.pgp.validation import Review, review, unknown_actions
from engine.worlds.explorer_files import baseline_program
from engine.worlds.explorer_run import GOAL, ExplorerRun, run_explorer


class Mode(StrEnum):
    """Which cycle runs the plans; the value names its time to the goal."""

    COMPAT = "ref_cycles"
    """As the thesis' reasoner counts: one event a cycle, percepts first in the queue."""
    NATIVE = "cycles"

    @property
    def semantics(self) -> Semantics:
        """The reasoner's settings."""
        return Semantics.compat() if self is Mode.COMPAT else Semantics.jason()


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a candidate."""

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
        return sum(1 for plan in plans for _ in unknown_actions(plan, known().actions))

    def times(self) -> dict[str, list[int]]:
        """Of the runs that reached home: the cycle, by mode, and the moves."""
        found = {mode.value: [run.cycles for run in runs if run.reached] for mode, runs in self.runs.items()}
        return found | {"moves": [run.moves for run in self.counted if run.reached]}


class Trying:
    """A candidate over seeds in both modes; a run that lacks an answer is made again when it is there."""

    def __init__(self, tried: Candidate, seeds: Sequence[int], talk: Conversation | None = None) -> None:
        self._tried = tried
        self._todo = [(mode, seed) for mode in Mode for seed in seeds]
        if talk is None and tried.answerer is not None:
            talk = Conversation(tried.answerer, tried.config)
        self._talk = talk
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

    def lines(self, main: Mode) -> Iterator[LogLine]:
        """The log of every run, the main mode's first; each is made again from the answers."""
        for mode, seed in sorted(self._todo, key=lambda one: one[0] is not main):
            written: list[LogLine] = []
            log = ExplorerLog(f"explorer-{seed}-{mode}", written.append)
            log.ended(self._run(mode, seed, log))
            yield from written

    def _run(self, mode: Mode, seed: int, log: ExplorerLog | None = None) -> ExplorerRun:
        program = self._tried.program
        plans = [read.plan for read in program.plans] if program is not None else []
        procedure: Callable[[BdiAgent], AnsweredProcedure] | None = None
        if self._talk is not None:
            note: Note | None = log.note if log is not None else None
            procedure = partial(
                AnsweredProcedure, known=known(), conversation=self._talk, read=self._tried.read, note=note
            )
        return run_explorer(plans, seed, mode.semantics, procedure=procedure, watcher=log)

    def _measured(self, main: Mode) -> Result:
        answer = self._tried.program or self._first_answer()
        runs = {mode: tuple(self._done[key] for key in self._todo if key[0] is mode) for mode in Mode}
        plans = [read.plan for read in answer.plans]
        return Result(
            self._tried,
            review(answer, GOAL, known().actions),
            measure(answer, known().admissible_goals, known().admissible_beliefs),
            alignment_surrogate(plans, baseline_program().plans),
            runs,
            main,
            self._talk.said if self._talk is not None else (),
        )

    def _first_answer(self) -> Answer:
        assert self._talk is not None
        said = self._talk.said[0]
        if isinstance(said, AskError):
            raise said
        return self._tried.read(said.text)


async def judgement(result: Result, judge: Conversation) -> Judgement:
    """What a judge says of the plans, held against the baseline."""
    answer = result.review.answer
    text = answer.text or as_answer(read.plan for read in answer.plans)
    return judged(await judge.say(judge_prompt(text, as_answer(baseline_program().plans))))


def judge_config(by: Answerer) -> EffectiveConfig:
    """What a judge is asked with: temperature 0."""
    return resolve(GenerationConfig(model=by.model, temperature=0.0), None, EXPLORER)


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
    log: Path | None = None

    def candidate(self, thinkers: Mapping[str, Thinker]) -> Candidate:
        """What is to be tried.

        Raises:
            CandidateError: it cannot be had.
        """
        if self.thinker:
            prompt = user_prompt(self.prompt) if self.prompt is not None else None
            given = GenerationConfig(temperature=self.temperature, user_prompt=prompt)
            return asked_candidate(answerer(self.thinker, thinkers), self.thinker, given)
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
    from app.explorer_report import report, words

    seeds = seeds_of(options.seeds)
    judge = answerer(options.judge, thinkers) if options.judge else None
    trying = Trying(options.candidate(thinkers), seeds)
    if options.log is not None:
        _writable(options.log)
    result = await trying.result(options.main)
    if judge is not None:
        talk = Conversation(judge, judge_config(judge))
        result = replace(result, judgement=await judgement(result, talk))
    if options.log is not None:
        with options.log.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line.to_json()}\n" for line in trying.lines(options.main))
    answer = report(result, options.seeds.strip())
    return answer, words(answer)


def _writable(path: Path) -> None:
    """See that a log can be written, before anything is asked that costs money."""
    try:
        path.open("a", encoding="utf-8").close()
    except OSError as error:
        raise CandidateError(f"{path}: {error.strerror}; choose another file for --log") from None
