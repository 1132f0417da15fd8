"""What `pilothouse explorer` tries: plans there from the start, or somebody who is asked for some."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from app.answerers import CandidateError, read_file
from engine.bdi.parser import parse_program
from engine.bdi.printing import plan_text
from engine.bdi.problems import ProgramError
from engine.bdi.syntax import Plan
from engine.generation.pgp.answer import Answer, ReadPlan, read_answer
from engine.generation.pgp.asking import Answerer
from engine.generation.pgp.config import EffectiveConfig, GenerationConfig, resolve
from engine.generation.pgp.context import META_PLANS, without_actions
from engine.generation.pgp.documentation import Documentation, documentation_of
from engine.generation.pgp.recorded_answers import RecordedAnswers
from engine.generation.pgp.recorded_log import RecordedLog
from engine.worlds.explorer_files import (
    baseline_program,
    explorer_program,
    recorded_answer,
    recorded_answers,
)

SEED_LIMIT = 10_000
"""Seeds in one go."""
EXPLORER = GenerationConfig(request_timeout_s=240.0, filters=(META_PLANS, without_actions("print")))
"""What the thesis' experiment sets besides model, temperature and prompt (spec BDI §2.6, §2.7)."""
DEFAULT_CONFIG = resolve(None, None, EXPLORER)
_SEEDS = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10}))?")


@dataclass(frozen=True, slots=True)
class Candidate:
    """Plans to be tried."""

    name: str
    read: Callable[[str], Answer]
    """How an answer is read."""
    answerer: Answerer | None = None
    """Who is asked when the goal finds no plan; None where the plans are there from the start."""
    program: Answer | None = None
    """Those plans, as if they were read from an answer."""
    config: EffectiveConfig = DEFAULT_CONFIG


@cache
def known() -> Documentation:
    """What is documented of the robot."""
    return documentation_of(explorer_program().docs)


def read(text: str) -> Answer:
    """An answer about the robot."""
    return read_answer(text, known().actions)


def plans_candidate(text: str, *, generated: bool = False) -> Candidate:
    """The plans that a name or path stands for.

    Args:
        text: `baseline`, a recorded answer such as `5.8`, an `.asl` program, or a file with an answer.
        generated: whether a program's plans arrive when the goal finds none; answers always do.

    Raises:
        CandidateError: there is no such thing, or the program is not valid.
    """
    if text == "baseline":
        return _program(text, baseline_program().plans, generated)
    if not text.endswith(".asl"):
        return answer_candidate(text)
    try:
        return _program(text, parse_program(read_file(Path(text)), text).plans, generated)
    except ProgramError as error:
        raise CandidateError(str(error)) from None


def answer_candidate(text: str) -> Candidate:
    """An answer as a model gave it: a recorded one such as `5.8`, or a file.

    Raises:
        CandidateError: there is no such thing.
    """
    name = text if text.startswith("listing-") else f"listing-{text}"
    if name in recorded_answers():
        return asked_candidate(RecordedAnswers([recorded_answer(name)]), name)
    try:
        return asked_candidate(RecordedAnswers([read_file(Path(text))]), text)
    except CandidateError as error:
        if Path(text).exists():
            raise
        listed = ", ".join(("baseline", *recorded_answers()))
        raise CandidateError(f"{error}; it is none of {listed} either") from None


def asked_candidate(by: Answerer, name: str, given: GenerationConfig | None = None) -> Candidate:
    """Somebody who is asked for plans; the log of a run keeps the parameters that it was made with."""
    own = by.config if isinstance(by, RecordedLog) else GenerationConfig(model=by.model)
    return Candidate(name, read, by, config=resolve(given, own, EXPLORER))


def _program(name: str, plans: Sequence[Plan], generated: bool) -> Candidate:
    whole = Answer("", tuple(ReadPlan(plan, plan.position.line) for plan in plans))
    if not generated:
        return Candidate(name, read, program=whole)
    text = "\n\n".join(map(plan_text, plans))
    return replace(asked_candidate(RecordedAnswers([text]), name), read=partial(_as_written, whole))


def _as_written(whole: Answer, text: str) -> Answer:
    """A program's plans for its own text; the answer format need not have words for all of it."""
    return replace(whole, text=text)


def seeds_of(text: str) -> tuple[int, ...]:
    """The seeds that `7`, `1-100` or a list such as `7,20-25` stands for, each once.

    Raises:
        ValueError: it is none of these; the message says so.
    """
    found: dict[int, None] = {}
    for part in text.split(","):
        written = _SEEDS.fullmatch(part.strip())
        if written is None:
            raise ValueError(f"'{text[:40]}' are no seeds: write 7, 1-100 or 7,20-25")
        first, last = int(written[1]), int(written[2] or written[1])
        if not 0 <= last - first < SEED_LIMIT or last >= 2**31:
            raise ValueError(f"'{text[:40]}' are no seeds: from 1 to {SEED_LIMIT} of them, each below 2^31")
        found |= dict.fromkeys(range(first, last + 1))
        if len(found) > SEED_LIMIT:
            raise ValueError(f"'{text[:40]}' are too many seeds: up to {SEED_LIMIT} in one go")
    return tuple(found)
