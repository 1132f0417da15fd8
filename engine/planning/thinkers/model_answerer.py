"""A model of the Messages API as the one who is asked for AgentSpeak(L) plans."""

from __future__ import annotations

from engine.models.completion import ModelClient, PieceSink, Recorder, ask, ignore_call, ignore_piece
from engine.models.errors import ModelError, ModelErrorKind
from engine.models.messages import ModelAnswer
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
            reply = await ask(
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
            cut = error.answer if error.kind is ModelErrorKind.TRUNCATED else None
            if (
                cut is not None and cut.text.strip()
            ):  # what is whole of it is read, and the rest asked for again
                return _reply(cut, self.model)
            raise AskError(_FAILURES.get(error.kind, AskFailure.HTTP), error.message) from error
        return _reply(reply, self.model)


def _reply(answer: ModelAnswer, model: str) -> Reply:
    return Reply(
        answer.text,
        answer.model or model,
        answer.request_id,
        answer.usage.prompt_tokens,
        answer.usage.output_tokens,
        answer.latency_ms,
    )


_FAILURES = {
    ModelErrorKind.BUDGET: AskFailure.BUDGET,
    ModelErrorKind.TIMEOUT: AskFailure.TIMEOUT,
    ModelErrorKind.NETWORK: AskFailure.NETWORK,
    **dict.fromkeys(
        (ModelErrorKind.REFUSED, ModelErrorKind.TRUNCATED, ModelErrorKind.UNREADABLE), AskFailure.UNUSABLE
    ),
}
"""All others are errors of the endpoint."""
