"""What `pilothouse explorer` tries: plans there from the start, or a thinker that is asked for some.

Who can be asked for plans, by the name that an operator gives.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from engine.bdi.errors import ProgramError
from engine.bdi.parser import parse_program
from engine.bdi.printer import plan_text
from engine.bdi.syntax import Plan
from engine.core.store.places import read_plain
from engine.planning.pgp.answer_parser import Answer, ParsedPlan, parse_answer
from engine.planning.pgp.documentation import Documentation, documentation_of
from engine.planning.pgp.requests import Answerer, GenerationConfig, RecordedAnswers
from engine.tools.worlds.explorer import baseline_program, explorer_program, recorded_answer, recorded_answers
from engine.value import dataclass, replace

FILE_LIMIT = 20_000_000
"""Bytes of a file with plans, an answer or a log."""


class CandidateError(ValueError):
    """Plans, or a thinker, that cannot be had; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Thinker:
    """A sort of answerer."""

    usage: str
    """How it is named, `recorded:FILE`."""
    make: Callable[[str], Answerer]
    """Gets what stands behind the colon; raises CandidateError where it is of no use."""


def _recorded(path: str) -> Answerer:
    if not path:
        raise CandidateError("say which recording: --thinker recorded:FILE")
    return RecordedAnswers([read_file(Path(path))])


def _claude(model: str) -> Answerer:
    from engine.models.choice import NO_MODEL, ModelChoice
    from engine.models.errors import ModelError
    from engine.planning.thinkers.model_answerer import ModelAnswerer

    try:
        choice = ModelChoice.from_environment(os.environ, name=model)
    except ModelError as error:
        raise CandidateError(error.message) from None
    if choice is None:
        raise CandidateError(NO_MODEL)
    return ModelAnswerer(choice.client(), choice.name)


THINKERS: Mapping[str, Thinker] = {
    "recorded": Thinker("recorded:FILE (an answer)", _recorded),
    "claude": Thinker("claude or claude:MODEL (by ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL)", _claude),
}
"""Every sort by the word before the colon."""


def find_answerer(name: str, thinkers: Mapping[str, Thinker] = THINKERS) -> Answerer:
    """Which answerer a name such as `recorded:answer.txt` names.

    Raises:
        CandidateError: there is no such one; the message lists what there is.
    """
    sort, _, rest = name.partition(":")
    if sort not in thinkers:
        listed = "; ".join(thinker.usage for thinker in thinkers.values())
        raise CandidateError(f"there is no thinker '{sort[:40]}' here: choose {listed}")
    return thinkers[sort].make(rest)


def read_file(path: Path) -> str:
    """A text file's content.

    Raises:
        CandidateError: it cannot be read, is too large, or is no text.
    """
    try:
        return read_plain(path, FILE_LIMIT).decode("utf-8")
    except OSError as error:
        raise CandidateError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CandidateError(f"{path}: not a text in UTF-8") from None


def write_answer(path: Path, text: str) -> None:
    """Write an answer to a file.

    Raises:
        CandidateError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CandidateError(f"{path}: {error.strerror}; the answer could not be kept") from None


SEED_LIMIT = 10_000
"""Seeds in one go."""
EXPLORER = GenerationConfig(request_timeout_s=240.0, hidden=("print",))
"""What the thesis' experiment sets besides model, temperature and prompt."""
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
    config: GenerationConfig = EXPLORER


@cache
def documented_facts() -> Documentation:
    """What is documented of the robot."""
    return documentation_of(explorer_program().docs)


def parse_candidate_answer(text: str) -> Answer:
    """An answer about the robot."""
    return parse_answer(text, documented_facts().actions)


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


def asked_candidate(by: Answerer, name: str, **given: Any) -> Candidate:
    """A thinker that is asked for plans."""
    return Candidate(name, parse_candidate_answer, by, config=EXPLORER.over(model=by.model).over(**given))


def _program(name: str, plans: Sequence[Plan], generated: bool) -> Candidate:
    whole = Answer("", tuple(ParsedPlan(plan, plan.position.line) for plan in plans))
    if not generated:
        return Candidate(name, parse_candidate_answer, program=whole)
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
    seeds: dict[int, None] = {}
    for part in text.split(","):
        written = _SEEDS.fullmatch(part.strip())
        if written is None:
            raise ValueError(f"'{text[:40]}' are no seeds: write 7, 1-100 or 7,20-25")
        first, last = int(written[1]), int(written[2] or written[1])
        if not 0 <= last - first < SEED_LIMIT or last >= 2**31:
            raise ValueError(f"'{text[:40]}' are no seeds: from 1 to {SEED_LIMIT} of them, each below 2^31")
        seeds |= dict.fromkeys(range(first, last + 1))
        if len(seeds) > SEED_LIMIT:
            raise ValueError(f"'{text[:40]}' are too many seeds: up to {SEED_LIMIT} in one go")
    return tuple(seeds)
