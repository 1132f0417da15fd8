"""Other libraries for memory and search, asked in a process of their own.

Run by the Python of an environment that has them, and not by that of the project: reads a haystack as JSON,
prints for each question the names of ten texts and their scores. All get the same vectors, from a file, as none
of them may fetch a model while it is measured.
"""

import contextlib
import hashlib
import json
import os
import sqlite3
import sys
import tempfile

PLACES = 10


class Vectors:
    """Vectors of texts that were embedded before."""

    def __init__(self, path):
        self.path = path
        self._connection = sqlite3.connect(path, check_same_thread=False)

    def of(self, text):
        digest = hashlib.sha256(text.encode()).hexdigest()[:32]
        row = self._connection.execute("select vector from vectors where digest = ?", (digest,)).fetchone()
        return memoryview(row[0]).cast("f").tolist()

    # The names by which langchain asks.
    def embed_query(self, text):
        return self.of(text)

    def embed_documents(self, texts):
        return [self.of(text) for text in texts]


def chromadb(texts, questions, vectors):
    import chromadb

    client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
    settings = {"hnsw": {"space": "cosine"}}
    collection = client.create_collection("bench", configuration=settings, embedding_function=None)
    names = list(texts)
    collection.add(
        ids=names, documents=[texts[name] for name in names], embeddings=[vectors.of(texts[name]) for name in names]
    )
    for question in questions:
        found = collection.query(query_embeddings=[vectors.of(question)], n_results=PLACES)
        yield [(name, 1 - far) for name, far in zip(found["ids"][0], found["distances"][0])]


def langmem(texts, questions, vectors):
    from langgraph.store.memory import InMemoryStore
    from langmem import create_search_memory_tool

    store = InMemoryStore(index={"dims": 384, "embed": vectors.embed_documents, "fields": ["content"]})
    for name, text in texts.items():
        store.put(("bench",), name, {"content": text})
    search = create_search_memory_tool(namespace=("bench",), store=store, response_format="content_and_artifact")
    for question in questions:
        call = {"name": search.name, "args": {"query": question, "limit": PLACES}, "id": "1", "type": "tool_call"}
        yield [(item.key, item.score) for item in search.invoke(call).artifact]


def mem0(texts, questions, vectors):
    os.environ.update(MEM0_TELEMETRY="False", OPENAI_API_KEY="none", MEM0_DIR=tempfile.mkdtemp())
    from langchain_core.embeddings import Embeddings
    from mem0 import Memory

    embeddings = type("Known", (Vectors, Embeddings), {})(vectors.path)
    where = tempfile.mkdtemp()
    store = {"collection_name": "bench", "embedding_model_dims": 384, "path": where, "on_disk": False}
    memory = Memory.from_config(
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


def main():
    told = json.load(sys.stdin)
    ask = {"chromadb": chromadb, "langmem": langmem, "mem0": mem0}[sys.argv[1]]
    with contextlib.redirect_stdout(sys.stderr):
        found = list(ask(told["texts"], told["questions"], Vectors(sys.argv[2])))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
