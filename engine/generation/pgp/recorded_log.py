"""The log of a run in the place of the model that answered in it; other files are taken for an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import ValidationError

from engine.generation.pgp import log_events as log
from engine.generation.pgp.asking import AskError, AskFailure, Prompt, Reply
from engine.generation.pgp.config import EffectiveConfig, GenerationConfig
from engine.generation.pgp.prompt import PromptVariant, user_prompt
from engine.generation.pgp.recorded_answers import RecordedAnswers


class RecordingError(ValueError):
    """A log that cannot be used in the place of a model; the message says why."""


class RecordedLog:
    """The answers of a logged run, each to the prompt that it was given to.

    Args:
        lines: of the run's `.jsonl` file.

    Raises:
        RecordingError: a line is no log line, or no generation was logged, or several configurations.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._said: dict[Prompt, Reply | AskError] = {}
        self._config: Mapping[str, object] = {}
        prompts: dict[str, str] = {}
        for number, text in enumerate(lines, 1):
            try:
                event = log.LogLine.from_json(text).event
            except ValidationError as error:
                reason = error.errors()[0]["msg"]
                raise RecordingError(f"line {number} is no line of a run's log: {reason}") from None
            match event:
                case log.GenerationRequested():
                    prompts = {}
                    self._take(event.config, number)
                case log.PromptSent():
                    prompts[event.role] = event.text
                case log.AnswerReceived():
                    self._keep(prompts, Reply(event.text, self.model, event.completion_id))
                case log.GenerationFailed():
                    self._keep(prompts, _failure(event.reason))
                case _:
                    pass
        if not self._config:
            raise RecordingError("no generation was logged")
        self.config = _config_of(self._config)
        """What the logged generations were run with."""

    @property
    def model(self) -> str:
        """The model that was logged."""
        return str(self._config.get("model", RecordedAnswers.model))

    def _take(self, config: Mapping[str, object], number: int) -> None:
        if self._config and config != self._config:
            raise RecordingError(f"line {number}: this generation was run with other parameters")
        self._config = config

    def _keep(self, prompts: Mapping[str, str], said: Reply | AskError) -> None:
        # A failure behind an answer means that its plans were of no use.
        self._said.setdefault(Prompt(prompts.get("system", ""), prompts.get("user", "")), said)

    async def answer(self, prompt: Prompt, config: EffectiveConfig) -> Reply:
        """What was logged for the prompt."""
        said = self._said.get(prompt)
        if said is None:
            raise AskError(AskFailure.UNRECORDED, "the log holds no answer to this prompt")
        if isinstance(said, AskError):
            raise said
        return said


def _failure(reason: str) -> AskError:
    kind, _, message = reason.partition(": ")
    if kind in set(AskFailure):
        return AskError(AskFailure(kind), message)
    return AskError(AskFailure.UNRECORDED, reason)


def _config_of(public: Mapping[str, object]) -> GenerationConfig:
    """The parameters that a log tells, but for filters and remarks, of which it has no more than names.

    Raises:
        RecordingError: one is missing, or is none that this program has.
    """
    try:
        prompt = user_prompt(PromptVariant(str(public["user_prompt"]).removeprefix("user, ")))
        return GenerationConfig(
            model=str(public["model"]),
            temperature=float(str(public["temperature"])),
            max_tokens=int(str(public["max_tokens"])),
            url=str(public["url"]),
            request_timeout_s=float(str(public["request_timeout_s"])),
            connect_timeout_s=float(str(public["connect_timeout_s"])),
            socket_timeout_s=float(str(public["socket_timeout_s"])),
            user_prompt=prompt,
        )
    except KeyError as error:
        raise RecordingError(f"the logged parameters lack {error}") from None
    except ValueError as error:
        raise RecordingError(f"the logged parameters: {error}") from None


def recording(content: str) -> RecordedAnswers | RecordedLog:
    """A file's content in the place of a model: the log of a run, or else an answer.

    Raises:
        RecordingError: it is a log, but one that cannot be used.
    """
    lines = [line for line in content.split("\n") if line]
    first = next(iter(lines), "")
    if first.startswith('{"system":'):
        return RecordedLog(lines)
    return RecordedAnswers([content])
