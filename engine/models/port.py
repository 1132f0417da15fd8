"""The port to a model: what the rest of the engine knows of one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeAlias

from engine.models.answer import ModelAnswer, TokenCount
from engine.models.assembly import Piece
from engine.models.capabilities import Capabilities
from engine.models.errors import ModelError
from engine.models.request import ModelRequest

PieceSink: TypeAlias = Callable[[Piece], None]
"""Told each piece of an answer as it comes; must return at once."""

Recorder: TypeAlias = Callable[[ModelRequest, ModelAnswer | ModelError], None]
"""Told once of every call what was sent, and the answer (perhaps partial) or the error that came of it."""


def unwatched(_piece: Piece) -> None:
    """Watches no piece."""


def unrecorded(_request: ModelRequest, _outcome: ModelAnswer | ModelError) -> None:
    """Records nothing."""


class ModelClient(Protocol):
    """Who carries requests to a model and answers back: over the network, or from a record."""

    def capabilities(self, model: str) -> Capabilities:
        """What is known of a model."""

    async def send(
        self,
        request: ModelRequest,
        *,
        sink: PieceSink = unwatched,
        record: Recorder = unrecorded,
        cut: asyncio.Event | None = None,
    ) -> ModelAnswer:
        """Ask, and return the whole answer.

        Args:
            request: what is asked; parameters that the model refuses are left out and noted in the answer.
            sink: told the pieces as they come.
            record: told of the outcome, also when the calling task is cancelled.
            cut: when set, the stream is cut off and what has come is returned, marked as partial.

        Raises:
            ModelError: no answer came, and retries would not or did not help.
        """

    async def count_tokens(self, request: ModelRequest) -> TokenCount:
        """The tokens of a request's prompt; estimated where nobody counts. Never raises a `ModelError`."""
