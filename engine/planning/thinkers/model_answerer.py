"""A model of the Messages API as the one who is asked for AgentSpeak(L) plans."""

from __future__ import annotations

from engine.models.completion import ModelClient, PieceSink, Recorder, ask, ignore_call, ignore_piece
from engine.models.errors import ModelError, ModelErrorKind
from engine.planning.pgp.requests import AskError, AskFailure, GenerationConfig, Prompt, Reply
from engine.value import dataclass


@dataclass
class ModelAnswerer:
    """Asks one model, unless a configuration names another.

    Args:
        client: who carries requests to it.
        model: its name.
        sink: receives the pieces of answers as they come.
        record: receives every request with its result.
    """

    client: ModelClient
    model: str
    sink: PieceSink = ignore_piece
    record: Recorder = ignore_call

    async def answer(self, prompt: Prompt, config: GenerationConfig) -> Reply:
        """See `engine.planning.pgp.requests.Answerer`."""
        try:
            answer = await ask(
                self.client,
                config.model or self.model,
                prompt.system,
                prompt.user,
                max_tokens=config.max_tokens,
                temperature=min(1.0, config.temperature),
                sink=self.sink,
                record=self.record,
            )
        except ModelError as error:
            # What is whole of an answer that was cut is read, and the rest asked for again.
            if error.kind is not ModelErrorKind.TRUNCATED or not (error.answer and error.answer.text.strip()):
                raise AskError(_FAILURES.get(error.kind, AskFailure.HTTP), error.message) from error
            answer = error.answer
        usage, model = answer.usage, answer.model or self.model
        return Reply(answer.text, model, usage.prompt_tokens, usage.output_tokens, answer.latency_ms)


_FAILURES = {
    ModelErrorKind.BUDGET: AskFailure.BUDGET,
    ModelErrorKind.TIMEOUT: AskFailure.TIMEOUT,
    ModelErrorKind.NETWORK: AskFailure.NETWORK,
    **dict.fromkeys(
        (ModelErrorKind.REFUSED, ModelErrorKind.TRUNCATED, ModelErrorKind.UNREADABLE), AskFailure.UNUSABLE
    ),
}
"""All others are errors of the endpoint."""
