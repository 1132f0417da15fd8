"""An experiment's cells asked and run: several at a time, each failure kept with its cell."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.answer_folder import AnswerFolder
from app.answerers import CandidateError
from app.candidates import answer_candidate, asked_candidate, seeds_of
from app.experiment import CELL_LIMIT, Cell, Experiment
from app.explorer import Mode, Result, Trying, judge_config, judgement
from engine.generation.pgp.asking import AskError, Conversation
from engine.generation.pgp.config import GenerationConfig
from engine.generation.pgp.prompt import user_prompt


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of one answer; without a result it could not be had."""

    cell: Cell
    result: Result | None
    problem: str = ""
    """Why there is no answer, or what failed later in the run."""


async def run_experiment(given: Experiment) -> list[Trial]:
    """Each answer had, judged and run in the world; the thesis' cycle counts.

    Raises:
        CandidateError: an answer cannot be kept, or a kept one cannot be read.
    """
    gate, seeds = asyncio.Semaphore(given.at_once), seeds_of(given.seeds)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_trial(cell, given, seeds, gate)) for cell in given.cells]
    except* CandidateError as errors:
        raise _first(errors) from None
    return await _with_judgements([task.result() for task in tasks], given, gate)


def _first(errors: BaseExceptionGroup[CandidateError]) -> CandidateError:
    """One of several errors that ended everything; the others will be met when it is mended."""
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


async def _trial(cell: Cell, given: Experiment, seeds: Sequence[int], gate: asyncio.Semaphore) -> Trial:
    try:
        result = await _trying(cell, given, seeds, gate).result(Mode.COMPAT)
    except AskError as error:
        return Trial(cell, None, str(error))
    except _MissingError as error:
        return Trial(cell, None, str(error))
    later = [str(one) for one in result.said if isinstance(one, AskError)]
    return Trial(cell, result, "; ".join(later))


class _MissingError(Exception):
    """A recorded answer that is not there."""


def _trying(cell: Cell, given: Experiment, seeds: Sequence[int], gate: asyncio.Semaphore) -> Trying:
    if cell.thinker is None:
        try:
            return Trying(answer_candidate(cell.source), seeds)
        except CandidateError as error:
            raise _MissingError(str(error)) from None
    chosen = GenerationConfig(
        temperature=cell.temperature,
        request_timeout_s=given.timeout_s,
        user_prompt=user_prompt(cell.prompt),
    )
    tried = asked_candidate(cell.thinker, cell.name, chosen)
    keeper = AnswerFolder(given.folder / cell.name)
    return Trying(tried, seeds, Conversation(cell.thinker, tried.config, keeper=keeper, gate=gate))


async def _with_judgements(trials: list[Trial], given: Experiment, gate: asyncio.Semaphore) -> list[Trial]:
    """The trials with the judge's scores: of each model the first few that reached home."""
    if given.judge is None:
        return trials
    config, keeper = judge_config(given.judge), AnswerFolder(given.folder / "judge")
    talk = Conversation(given.judge, config, keeper=keeper, gate=gate, limit=CELL_LIMIT)
    count: Counter[str] = Counter()
    found: list[Trial] = []
    for trial in trials:
        result = trial.result
        if result is not None and result.tsr > 0 and count[trial.cell.model] < given.judged:
            count[trial.cell.model] += 1
            trial = replace(trial, result=replace(result, judgement=await judgement(result, talk)))
        found.append(trial)
    return found
