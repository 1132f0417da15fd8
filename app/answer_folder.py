"""Answers of an experiment as files, so that it goes on where it stopped and can be computed again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.answerers import CandidateError, read_file
from engine.generation.pgp.asking import AskError, Prompt, Reply


class _Kept(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str
    model: str
    completion_id: str = ""
    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    latency_ms: float = Field(default=0.0, ge=0)


class _Failure(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str
    reason: str


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    system: str
    user: str
    config: dict[str, str | int | float]
    reply: _Kept | None = None
    failure: _Failure | None = None


class AnswerFolder:
    """The answers to one cell's prompts, each in a file named after prompt, model and parameters.

    A failure is kept to be read, and asked again in the next conversation.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def get(self, prompt: Prompt, config: Mapping[str, str | float]) -> Reply | None:
        """The answer that was kept; blocking.

        Raises:
            CandidateError: the file cannot be read, or is not what was written there.
        """
        path = self._place(prompt, config)
        if not path.exists():
            return None
        try:
            kept = _File.model_validate_json(read_file(path))
        except ValidationError as error:
            reason = error.errors()[0]["msg"]
            raise CandidateError(f"{path}: no kept answer ({reason}); delete it to ask again") from None
        return Reply(**kept.reply.model_dump()) if kept.reply is not None else None

    def put(self, prompt: Prompt, config: Mapping[str, str | float], said: Reply | AskError) -> None:
        """Keep an answer, or why there is none; blocking.

        Raises:
            CandidateError: it cannot be written.
        """
        reply = failure = None
        if isinstance(said, AskError):
            failure = _Failure(kind=said.kind, reason=str(said.args[0]))
        else:
            reply = _Kept(
                text=said.text,
                model=said.model,
                completion_id=said.completion_id,
                input_tokens=said.input_tokens,
                output_tokens=said.output_tokens,
                latency_ms=said.latency_ms,
            )
        file = _File(system=prompt.system, user=prompt.user, config={**config}, reply=reply, failure=failure)
        path = self._place(prompt, config)
        half = path.with_suffix(".part")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            half.write_text(file.model_dump_json(indent=1) + "\n", encoding="utf-8")
            half.replace(path)
        except OSError as error:
            raise CandidateError(f"{path}: {error.strerror}; an answer could not be kept") from None

    def _place(self, prompt: Prompt, config: Mapping[str, str | float]) -> Path:
        # Where and how patiently it is asked makes no other answer.
        deciding = [config.get(name) for name in ("model", "temperature", "max_tokens")]
        known = json.dumps([prompt.system, prompt.user, *deciding])
        return self.path / f"{hashlib.sha256(known.encode()).hexdigest()[:16]}.json"
