"""Connections to an engine's socket: by the client, and raw ones that send what they are given."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from app.commands.headless import open_engine
from app.gateways.addresses import find_engine
from app.gateways.engine_client import EngineClient
from app.gateways.socket_server import EngineServer
from engine.api.engine import Engine
from tests.patience import PATIENCE_S

HELLO = {"hello": {"protocol": 1, "oldest": 1, "version": "0", "operator": "ann"}}


@asynccontextmanager
async def serving(workspace: Path) -> AsyncIterator[tuple[Engine, EngineServer]]:
    """An engine with its server, in this program."""
    async with open_engine(workspace) as engine:
        server = EngineServer(engine, "serve")
        await server.begin()
        assert not server.trouble
        try:
            yield engine, server
        finally:
            await server.close()


@asynccontextmanager
async def client_of(workspace: Path, operator: str = "ann", **more: bool) -> AsyncIterator[EngineClient]:
    """A client of the engine that answers for a workspace."""
    client = await EngineClient.open(workspace, operator, **more)
    assert client is not None
    try:
        yield client
    finally:
        await client.close()


class Raw:
    """A connection that sends what it is given."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, workspace: Path, hello: object = HELLO) -> Raw:
        """A connection to the engine of a workspace, with the hello said and answered unless it is None."""
        there = await asyncio.to_thread(find_engine, workspace)
        assert there is not None
        connection: socket.socket = there[1]
        connection.setblocking(False)
        raw = cls(*await asyncio.open_unix_connection(sock=connection, limit=64 * 1024 * 1024))
        if hello is not None:
            await raw.send(hello)
        return raw

    async def send(self, message: object) -> None:
        """Send a line, or bytes as they are."""
        self.writer.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        await self.writer.drain()

    async def next(self) -> dict[str, Any]:
        """The next line; empty at the end."""
        async with asyncio.timeout(PATIENCE_S):
            line = await self.reader.readline()
        answer: dict[str, Any] = json.loads(line) if line else {}
        return answer

    async def ask(self, message: object) -> dict[str, Any]:
        """Send a line and await the next one."""
        await self.send(message)
        return await self.next()
