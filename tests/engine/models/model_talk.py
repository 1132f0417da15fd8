"""A client of the scripted server whose waits are noted and not waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from engine.core.ports import SystemClock
from engine.models.client import MessagesClient
from engine.models.endpoint import Endpoint, Retries, Timeouts
from engine.models.errors import ModelError
from engine.models.messages import ModelAnswer, Piece, user_message
from engine.models.request import ModelRequest
from tests.messages_server import MessagesServer

CLAUDE = "claude-opus-4-6"
"""A model that takes every parameter."""


class NotedClock(SystemClock):
    """The machine's clock, but nobody sleeps."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


class EndlessClock(NotedClock):
    """The machine's clock, but who sleeps does not wake."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = asyncio.Event()
        """Set when somebody sleeps."""

    async def sleep(self, seconds: float) -> None:
        self.waiting.set()
        await asyncio.Event().wait()


class Longest:
    """Draws the upper end, so that waits show their ceilings."""

    def uniform(self, low: float, high: float) -> float:
        return high


class Talk:
    """A client, what it was told to watch and record, and how long it was to wait."""

    def __init__(self, client: MessagesClient, clock: NotedClock) -> None:
        self.client = client
        self.clock = clock
        self.pieces: list[Piece] = []
        self.watched = asyncio.Event()
        """Set when a piece has come."""
        self.records: list[tuple[ModelRequest, ModelAnswer | ModelError]] = []

    async def send(self, request: ModelRequest | None = None) -> ModelAnswer:
        return await self.client.send(
            request or question(),
            sink=self._watch,
            record=lambda request, outcome: self.records.append((request, outcome)),
        )

    def _watch(self, piece: Piece) -> None:
        self.pieces.append(piece)
        self.watched.set()

    def shown(self, kind: str) -> str:
        """What a watcher has of one kind in the end."""
        last = max((at for at, piece in enumerate(self.pieces) if piece.kind == "again"), default=-1)
        return "".join(piece.text for piece in self.pieces[last + 1 :] if piece.kind == kind)


def question(model: str = CLAUDE, **rest: Any) -> ModelRequest:
    return ModelRequest(model, (user_message("What is to be done?"),), **rest)


@asynccontextmanager
async def talking(
    server: MessagesServer,
    *,
    key: str = "",
    timeouts: Timeouts | None = None,
    retries: Retries | None = None,
    clock: NotedClock | None = None,
) -> AsyncIterator[Talk]:
    clock = clock or NotedClock()
    client = MessagesClient(
        Endpoint(server.url, key), timeouts=timeouts, retries=retries, clock=clock, randomness=Longest()
    )
    try:
        yield Talk(client, clock)
    finally:
        await client.close()
