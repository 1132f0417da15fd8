"""An endpoint that answers `/v1/embeddings`, as OpenAI's, Ollama's and llama.cpp's do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import httpx2

from engine.core.text import clean_line
from engine.memory.embedding import BATCH, TEXT_LIMIT, EmbedderError, Kind, Vector, unit
from engine.models.endpoint import Endpoint

ANSWER_S = {"query": 5.0, "passage": 60.0}
"""In which the whole answer must be there; who searches waits for it."""
ANSWER_BYTES = 16 * 1024 * 1024
DIMENSIONS = 16_384
OF_TEXT = (400, 413, 422, 500)
"""Statuses by which servers refuse a text that is too long, or an odd one."""
PREFIXES = {
    "e5": {"query": "query: ", "passage": "passage: "},
    "nomic-embed": {"query": "search_query: ", "passage": "search_document: "},
}
"""What models were trained with before their texts, by a part of their names."""


class EndpointEmbedder:
    """Texts as vectors of a server's model."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self._endpoint = endpoint
        self._model = model
        base = endpoint.base_url.rstrip("/")
        self._url = base if base.endswith("/embeddings") else f"{base}/v1/embeddings"
        self.id = f"{model}@{endpoint.host}"
        self.dim = 0
        self._prefixes = next((each for name, each in PREFIXES.items() if name in model.lower()), {})
        self._client: httpx2.AsyncClient | None = None

    async def embed(self, texts: Sequence[str], kind: Kind) -> list[Vector]:
        """See `Embedder`."""
        if self._client is None:
            self._client = await asyncio.to_thread(self._connect)
        vectors: list[Vector] = []
        for at in range(0, len(texts), BATCH):
            batch = [self._prefixes.get(kind, "") + text[:TEXT_LIMIT] for text in texts[at : at + BATCH]]
            answer = await self._post(self._client, batch, ANSWER_S[kind])
            vectors += await asyncio.to_thread(self._read, answer, len(batch))
        return vectors

    def _connect(self) -> httpx2.AsyncClient:
        here = self._endpoint.loopback
        key = {"Authorization": f"Bearer {self._endpoint.key}"} if self._endpoint.key else {}
        return httpx2.AsyncClient(
            headers=key, timeout=None, trust_env=not here, verify=self._url.startswith("https:")
        )

    async def _post(self, client: httpx2.AsyncClient, texts: list[str], seconds: float) -> bytes:
        whole = bytearray()
        try:
            async with asyncio.timeout(seconds):
                asked = {"model": self._model, "input": texts}
                async with client.stream("POST", self._url, json=asked) as response:
                    async for part in response.aiter_bytes():
                        whole += part
                        if len(whole) > ANSWER_BYTES:
                            raise self._fault("answers without end")
        except TimeoutError:
            raise self._fault(f"did not answer within {seconds:g} s") from None
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise self._fault(f"cannot be reached ({clean_line(str(error), limit=120)})") from None
        if response.status_code != 200:
            said = self._endpoint.without_key(clean_line(whole[:300].decode(errors="replace"), limit=120))
            of_text = response.status_code in OF_TEXT
            raise self._fault(f"answered {response.status_code}: {said}", of_text=of_text)
        return bytes(whole)

    def _read(self, answer: bytes, count: int) -> list[Vector]:
        """The vectors of an answer."""
        try:
            entries: list[Any] = json.loads(answer)["data"]
            rows = [entry["embedding"] for entry in sorted(entries, key=lambda entry: entry["index"])]
            vectors = [unit(row) for row in rows]
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
            raise self._fault("answered something else than embeddings: check its address") from None
        if len(vectors) != count:
            raise self._fault(f"answered {len(vectors)} vectors for {count} texts")
        if any(vector is None for vector in vectors):
            raise self._fault("answered a vector that holds no numbers", of_text=True)
        good = [vector for vector in vectors if vector is not None]
        sizes = sorted({len(vector) for vector in good})
        if len(sizes) > 1 or sizes[0] > DIMENSIONS:
            raise self._fault(f"answered vectors of {sizes[0]} to {sizes[-1]} numbers")
        self.dim = sizes[0]
        return good

    def _fault(self, what: str, *, of_text: bool = False) -> EmbedderError:
        return EmbedderError(f"the embedder at {self._endpoint.host} {what}", of_text=of_text)

    async def close(self) -> None:
        """Close its connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None
