"""Who can be asked for plans, by the name that an operator gives."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.generation.pgp.asking import Answerer
from engine.generation.pgp.recorded_log import RecordingError, recording

FILE_LIMIT = 20_000_000
"""Bytes of a file with plans, an answer or a log."""


class CandidateError(ValueError):
    """Plans, or somebody to give them, that cannot be had; the message says what to do."""


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
    try:
        return recording(read_file(Path(path)))
    except RecordingError as error:
        raise CandidateError(f"{path}: {error}") from None


def _claude(model: str) -> Answerer:
    from engine.models import ModelError
    from engine.models.choice import NO_MODEL, ModelChoice
    from engine.thinkers.answerer import ModelAnswerer

    try:
        choice = ModelChoice.from_environment(os.environ, name=model)
    except ModelError as error:
        raise CandidateError(error.message) from None
    if choice is None:
        raise CandidateError(NO_MODEL)
    return ModelAnswerer(choice.client(), choice.name)


THINKERS: Mapping[str, Thinker] = {
    "recorded": Thinker("recorded:FILE (an answer, or what --log wrote)", _recorded),
    "claude": Thinker("claude or claude:MODEL (by ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL)", _claude),
}
"""Every sort by the word before the colon."""


def answerer(name: str, thinkers: Mapping[str, Thinker] = THINKERS) -> Answerer:
    """Whom a name such as `recorded:answer.txt` stands for.

    Raises:
        CandidateError: nobody; the message lists whom there is.
    """
    sort, _, rest = name.partition(":")
    if sort not in thinkers:
        listed = "; ".join(one.usage for one in thinkers.values())
        raise CandidateError(f"there is no thinker '{sort[:40]}' here: choose {listed}")
    return thinkers[sort].make(rest)


def read_file(path: Path) -> str:
    """A text file's content.

    Raises:
        CandidateError: it cannot be read, is too large, or is no text.
    """
    try:
        with path.open("rb") as file:
            content = file.read(FILE_LIMIT + 1)
    except OSError as error:
        raise CandidateError(f"{path}: {error.strerror}") from None
    if len(content) > FILE_LIMIT:
        raise CandidateError(f"{path}: larger than {FILE_LIMIT} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise CandidateError(f"{path}: not a text in UTF-8") from None
