"""A model of the Messages API as the one who is asked for AgentSpeak(L) plans."""

from __future__ import annotations

from engine.generation.pgp.asking import AskError, AskFailure, Prompt, Reply
from engine.generation.pgp.config import EffectiveConfig
from engine.models import ModelClient, ModelError, ModelErrorKind, PieceSink, Recorder, ask
from engine.models.port import unrecorded, unwatched

_HTTP = frozenset(
    {
        ModelErrorKind.AUTHENTICATION,
        ModelErrorKind.PERMISSION,
        ModelErrorKind.NOT_FOUND,
        ModelErrorKind.BAD_REQUEST,
        ModelErrorKind.TOO_LARGE,
        ModelErrorKind.RATE_LIMIT,
        ModelErrorKind.OVERLOADED,
        ModelErrorKind.SERVER,
    }
)


class ModelAnswerer:
    """Asks one model, unless a configuration names another.

    Args:
        client: who carries requests to it.
        model: its name.
        sink: told the pieces of answers as they come.
        record: told of every request what came of it.
    """

    def __init__(
        self,
        client: ModelClient,
        model: str,
        *,
        sink: PieceSink = unwatched,
        record: Recorder = unrecorded,
    ) -> None:
        self.model = model
        self._client = client
        self._sink = sink
        self._record = record

    async def answer(self, prompt: Prompt, config: EffectiveConfig) -> Reply:
        """See `engine.generation.pgp.asking.Answerer`."""
        try:
            said = await ask(
                self._client,
                config.model or self.model,
                prompt.system,
                prompt.user,
                max_tokens=config.max_tokens,
                temperature=min(1.0, config.temperature),
                sink=self._sink,
                record=self._record,
            )
        except ModelError as error:
            raise AskError(_failure(error.kind), error.message) from error
        return Reply(
            said.text,
            said.model or self.model,
            said.request_id,
            said.usage.prompt_tokens,
            said.usage.output_tokens,
            said.latency_ms,
        )


def _failure(kind: ModelErrorKind) -> AskFailure:
    if kind is ModelErrorKind.BUDGET:
        return AskFailure.BUDGET
    if kind is ModelErrorKind.TIMEOUT:
        return AskFailure.TIMEOUT
    return AskFailure.HTTP if kind in _HTTP else AskFailure.NETWORK
