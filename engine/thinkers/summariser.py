"""A model of the Messages API as the one who summarises a part of a prompt that is too long."""

from __future__ import annotations

from engine.domain.fence import RULE
from engine.memory.compression import SummaryUnavailable
from engine.models import ModelClient, ModelError, PieceSink, Recorder, ask, fence
from engine.models.port import unrecorded, unwatched

SYSTEM = f"""You shorten records of an agent's work for the agent itself. Keep what later steps may need: ids,
names, paths, numbers, what failed and why. Write plain sentences or short lines, and nothing that does not
stand in the record. Answer with the shortened text alone.

{RULE}"""

SPARE = 2
"""How many times the length asked for an answer may have, before it counts as none."""
TEMPERATURE = 0.2
RECORD_CHARACTERS = 200_000
"""Characters of a record that are sent; what is left out is counted."""


class ModelSummariser:
    """Asks one model to shorten a text; fits `engine.memory.compression.Summariser`.

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

    async def __call__(self, text: str, tokens: int) -> str:
        """The text in about so many tokens.

        Raises:
            SummaryUnavailable: the model could not be asked, or gave nothing that can be used.
        """
        record = fence("the record", text, limit=RECORD_CHARACTERS)
        question = f"{record}\nShorten this record to at most {tokens} tokens."
        try:
            said = await ask(
                self._client,
                self.model,
                SYSTEM,
                question,
                max_tokens=tokens * SPARE,
                temperature=TEMPERATURE,
                sink=self._sink,
                record=self._record,
            )
        except ModelError as error:
            raise SummaryUnavailable(f"{self.model}: {error.message}") from error
        return said.text
