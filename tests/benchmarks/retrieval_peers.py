"""Other libraries for memory and search, asked in a process of their own.

Run by the Python of an environment that has them, and not by that of the project: reads a haystack as JSON,
prints for each question the names of ten texts and their scores. All get the same vectors, from a file, as
none of them may fetch a model while it is measured.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from typing import Any

PLACES = 10
Found = Iterator[list[tuple[str, float]]]


class Vectors:
    """Vectors of texts that were embedded before; some libraries strip a text before they ask."""

    def __init__(self, path: str) -> None:
        self.path = path
        with contextlib.closing(sqlite3.connect(path)) as connection:
            rows = connection.execute("select text, vector from vectors").fetchall()
        self._vectors = {text.strip(): vector for text, vector in rows}

    def of(self, text: str) -> list[float]:
        """The vector of a text."""
        return memoryview(self._vectors[text.strip()]).cast("f").tolist()

    def embed_query(self, text: str) -> list[float]:
        """The same, by the name that langchain uses."""
        return self.of(text)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The same for several."""
        return [self.of(text) for text in texts]


def chromadb(texts: dict[str, str], questions: list[str], vectors: Vectors) -> Found:
    """By the cosine, in its index."""
    library: Any = import_module("chromadb")
    client = library.EphemeralClient(library.Settings(anonymized_telemetry=False))
    settings = {"hnsw": {"space": "cosine"}}
    collection = client.create_collection("bench", configuration=settings, embedding_function=None)
    given = list(texts.values())
    collection.add(ids=list(texts), documents=given, embeddings=[vectors.of(text) for text in given])
    for question in questions:
        found = collection.query(query_embeddings=[vectors.of(question)], n_results=PLACES)
        pairs = zip(found["ids"][0], found["distances"][0], strict=True)
        yield [(name, 1 - far) for name, far in pairs]


def lancedb(texts: dict[str, str], questions: list[str], vectors: Vectors) -> Found:
    """By words with stems and by vectors, joined by rank as it does by default."""
    library: Any = import_module("lancedb")
    joined = import_module("lancedb.rerankers").RRFReranker()
    rows = [{"name": name, "text": text, "vector": vectors.of(text)} for name, text in texts.items()]
    table = library.connect(tempfile.mkdtemp()).create_table("bench", rows)
    table.create_fts_index("text", stem=True, remove_stop_words=True)
    for question in questions:
        search = table.search(query_type="hybrid").vector(vectors.of(question)).text(question)
        found = search.rerank(joined).limit(PLACES).to_list()
        yield [(item["name"], item["_relevance_score"]) for item in found]


def mem0(texts: dict[str, str], questions: list[str], vectors: Vectors) -> Found:
    """As it stores and searches without a model that rewrites."""
    os.environ.update(MEM0_TELEMETRY="False", OPENAI_API_KEY="none", MEM0_DIR=tempfile.mkdtemp())
    base = import_module("langchain_core.embeddings").Embeddings
    embeddings = type("Known", (Vectors, base), {})(vectors.path)
    where = tempfile.mkdtemp()
    store = {"collection_name": "bench", "embedding_model_dims": 384, "path": where, "on_disk": False}
    memory = import_module("mem0").Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": store},
            "embedder": {"provider": "langchain", "config": {"model": embeddings, "embedding_dims": 384}},
            "llm": {"provider": "openai", "config": {"api_key": "none"}},
            "history_db_path": os.path.join(where, "history.db"),
        }
    )
    for name, text in texts.items():
        memory.add(text, user_id="bench", infer=False, metadata={"name": name})
    for question in questions:
        found = memory.search(question, top_k=PLACES, filters={"user_id": "bench"}, threshold=0.0)
        yield [(item["metadata"]["name"], item["score"]) for item in found["results"]]


def main() -> None:
    """Answer what is told on standard input."""
    told = json.load(sys.stdin)
    ask = {"chromadb": chromadb, "lancedb": lancedb, "mem0": mem0}[sys.argv[1]]
    with contextlib.redirect_stdout(sys.stderr):
        found = list(ask(told["texts"], told["questions"], Vectors(sys.argv[2])))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
