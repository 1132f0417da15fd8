"""A server on loopback that answers prompts by a script, and an answerer that asks it over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from app.cli.candidates import Thinker
from engine.planning.pgp.requests import AskError, AskFailure, GenerationConfig, Prompt, Reply

HANG = "hang"
"""As a script's answer: none, until the asker goes away."""
Script = Callable[[dict[str, Any]], str | int]
"""From a request to the answer's text, a status to fail with, or HANG."""


@dataclass
class AnswerServer:
    """What was asked, and how many asked at the same time."""

    script: Script
    port: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)
    inside: int = 0
    most_inside: int = 0
    together: int = 1
    """So many must ask at the same time before the first is answered."""
    enough: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().partition("content-length: ")[2].partition("\r\n")[0])
        request = json.loads(await reader.readexactly(length))
        self.requests.append(request)
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        if self.most_inside >= self.together:
            self.enough.set()
        await self.enough.wait()
        answer = self.script(request)
        if answer == HANG:
            await reader.read()
        else:
            status, text = (answer, "") if isinstance(answer, int) else (200, answer)
            body = json.dumps({"text": text, "model": "scripted-1", "id": f"c-{len(self.requests)}"}).encode()
            writer.write(f"HTTP/1.1 {status} x\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        self.inside -= 1
        writer.close()

    @property
    def thinkers(self) -> dict[str, Thinker]:
        return {"local": Thinker("local", lambda rest: HttpAnswerer(self.port))}


@asynccontextmanager
async def answering(script: Script) -> AsyncIterator[AnswerServer]:
    found = AnswerServer(script)
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()


class HttpAnswerer:
    """Asks over HTTP."""

    model = "scripted"

    def __init__(self, port: int) -> None:
        self._port = port

    async def answer(self, prompt: Prompt, config: GenerationConfig) -> Reply:
        body = json.dumps(
            {"system": prompt.system, "user": prompt.user, "temperature": config.temperature}
        ).encode()
        writer = None
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            writer.write(f"POST / HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
            head, _, rest = (await reader.read()).partition(b"\r\n\r\n")
        except OSError as error:
            raise AskError(AskFailure.NETWORK, error.strerror or "no connection") from None
        finally:
            if writer is not None:
                writer.close()
        status = int(head.split()[1])
        if status != 200:
            raise AskError(AskFailure.HTTP, f"status {status}")
        said = json.loads(rest)
        return Reply(said["text"], said["model"], input_tokens=11, output_tokens=7, latency_ms=2.5)
