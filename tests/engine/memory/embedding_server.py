"""A server on loopback that answers `/v1/embeddings` as Ollama does, with vectors that words alone decide."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from engine.memory.embedder_choice import EmbedderChoice

DIMENSION = 96
SAME = {"automobile": "car", "reboot": "restart", "postgres": "database"}
"""Words that are one word to this model."""


def vector_of(text: str, size: int = DIMENSION) -> list[float]:
    total = [0.0] * size
    for word in re.findall(r"\w+", text.lower()):
        digest = hashlib.shake_256(SAME.get(word, word).encode()).digest(size)
        total = [number + byte / 127.5 - 1 for number, byte in zip(total, digest, strict=True)]
    return total if any(total) else [1.0, *total[1:]]


@dataclass
class EmbeddingServer:
    """What was asked; `mode` says how it answers from now on."""

    mode: str = "good"
    port: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    def choice(self, model: str = "words", **more: Any) -> EmbedderChoice:
        return EmbedderChoice(f"http://127.0.0.1:{self.port}/v1", model, **more)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = int(head.lower().partition("content-length: ")[2].partition("\r\n")[0])
                request = json.loads(await reader.readexactly(length))
                self.requests.append({"path": head.split()[1], **request})
                self.headers.append(head)
                self.asked.set()
                if self.mode == "hang":
                    await reader.read()
                    return
                status, body = self._answer(request["input"])
                writer.write(f"HTTP/1.1 {status} x\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self, texts: list[str]) -> tuple[int, bytes]:
        rows: list[Any] = [vector_of(text, 32 if self.mode == "small" else DIMENSION) for text in texts]
        match self.mode:
            case "html":
                return 200, b"<html><body>Please log in</body></html>"
            case "down":
                return 503, b'{"error": "loading"}'
            case "model":
                return 400, b'{"error": "no such model"}'
            case "poison" if any("POISON" in text for text in texts):
                return 400, b'{"error": "too long"}'
            case "nan":
                rows = [[float("nan")] * DIMENSION for _ in texts]
            case "few":
                rows = rows[1:]
            case "ragged":
                rows = [row[: 90 + at] for at, row in enumerate(rows)]
            case "words":
                rows = [["one"] * DIMENSION for _ in texts]
        data = [{"index": at, "embedding": row} for at, row in enumerate(rows)]
        return 200, json.dumps({"data": data[::-1]}).encode()


@asynccontextmanager
async def embedding(mode: str = "good") -> AsyncIterator[EmbeddingServer]:
    server = EmbeddingServer(mode)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
