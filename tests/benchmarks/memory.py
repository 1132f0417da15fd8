"""How fast memory takes and finds memories, beside plain `sqlite3`.

Ours is the whole way: checked, journaled and durable, indexed, then found by words and likeness with filters
held and relevance counted. The baselines are one table with one FTS5 index in one thread: inserts of finished
rows in transactions of the same size, and the best ten by bm25 with nothing else looked at. Run it with
`python -m tests.benchmarks.memory`.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import random
import sqlite3
import statistics
import tempfile
import time
from array import array
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from engine.core.ports import SystemClock
from engine.core.store.sqlite import SqliteJournal
from engine.memory import minilm, minilm_process
from engine.memory.embedder_choice import MINILM, EmbedderChoice
from engine.memory.memories import HybridSearch, StoreMemory
from engine.memory.memory import Memory
from engine.memory.scoring import text_digest
from engine.memory.sqlite import FileMemory
from engine.memory.workflows import CreateWorkflow

MEMORIES = int(os.environ.get("PILOTHOUSE_BENCH_MEMORIES", "100000"))
TOGETHER = 200
"""Memories that are stored at the same time, as by many agents."""
QUERIES = 100


def _texts(count: int) -> list[str]:
    """Sentences of 12 words out of 20,000, some far more frequent than others, as in a language."""
    dice = random.Random(7)
    words = [f"{a}{b}{c}" for a in _SYLLABLES for b in _SYLLABLES for c in _SYLLABLES][:20_000]
    shares = [1 / (rank + 10) for rank in range(len(words))]
    return [" ".join(dice.choices(words, shares, k=12)) for _ in range(count)]


_SYLLABLES = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]


def _queries(texts: list[str]) -> list[str]:
    dice = random.Random(11)
    return [" ".join(dice.sample(dice.choice(texts).split(), 5)) for _ in range(QUERIES)]


async def _measure(directory: Path, texts: list[str], queries: list[str]) -> dict[str, list[float]]:
    store = await SqliteJournal.open(directory, clock=SystemClock())
    memory = Memory(directory, store, clock=SystemClock())
    try:
        workflow = (await memory.do(CreateWorkflow(title="bench"))).id
        begin = time.perf_counter()
        for at in range(0, len(texts), TOGETHER):
            asked = [_store(memory, workflow, text) for text in texts[at : at + TOGETHER]]
            await asyncio.gather(*asked)
        storing = time.perf_counter() - begin
        by_words = await _timed(memory, HybridSearch(query="x"), queries)
        _embed(directory / ".pilothouse", texts)
        await memory.use_embedder(EmbedderChoice(MINILM))
        await memory.embedded(3_600)
        await memory.do(HybridSearch(query="the first one loads the model"))
        by_both = await _timed(memory, HybridSearch(query="x"), queries)
        assert not memory.status.note, memory.status.note
        return {"storing": [storing], "by words": by_words, "by words and likeness": by_both}
    finally:
        await memory.close()
        await store.close()


def _embed(directory: Path, texts: list[str]) -> None:
    """Random vectors in groups, as those of texts are, since a model would take hours for so many."""
    import numpy as np

    dice = np.random.default_rng(3)
    groups = dice.standard_normal((2_000, minilm.DIMENSION), np.float32)
    writer = FileMemory(directory.parent).vectors(minilm.ID)
    for at in range(0, len(texts), 10_000):
        some = texts[at : at + 10_000]
        rows = groups[dice.integers(0, len(groups), len(some))] * np.float32(0.7)
        rows += dice.standard_normal(rows.shape, np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        vectors = [array("f", row.tobytes()) for row in rows]
        writer.keep(
            minilm.DIMENSION, {text_digest("", text): row for text, row in zip(some, vectors, strict=True)}
        )
    writer.close()


async def _embedding(texts: list[str]) -> float:
    """Texts a second of the process that embeds."""
    model = minilm.MiniLM()
    try:
        await model.embed(texts[:8], "passage")
        begin = time.perf_counter()
        await model.embed(texts, "passage")
        return len(texts) / (time.perf_counter() - begin)
    finally:
        await model.close()


def _directly(texts: list[str]) -> float:
    """The same by the model in this process, a batch after the other."""
    embed = minilm_process.load(minilm_process.model_file())
    begin = time.perf_counter()
    for at in range(0, len(texts), 8):
        embed(texts[at : at + 8])
    return len(texts) / (time.perf_counter() - begin)


def _sentences() -> list[str]:
    dice = random.Random(13)
    return [" ".join(dice.choices(_ENGLISH, k=12)) for _ in range(400)]


_TEXT = (
    "the deployment of our staging server failed again because its disk was full and nobody had looked at "
    "what the nightly backup leaves there when it is cut off by a restart"
)
_ENGLISH = _TEXT.split()


def _store(memory: Memory, workflow: str, text: str) -> Awaitable[Any]:
    return memory.do(StoreMemory(workflow_id=workflow, content=text, memory_type="fact"))


async def _timed(memory: Memory, request: HybridSearch, queries: list[str]) -> list[float]:
    out = []
    for query in queries:
        begin = time.perf_counter()
        await memory.do(request.model_copy(update={"query": query}))
        out.append(time.perf_counter() - begin)
    return out


def _plain(directory: Path, texts: list[str], queries: list[str]) -> dict[str, list[float]]:
    with closing(sqlite3.connect(directory / "plain.db", isolation_level=None)) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        connection.execute("create table memories(id integer primary key, content text, importance real)")
        connection.execute("create virtual table words using fts5(content, content = '', tokenize = porter)")
        begin = time.perf_counter()
        for at in range(0, len(texts), TOGETHER):
            rows = list(enumerate(texts[at : at + TOGETHER], at))
            connection.execute("begin")
            connection.executemany("insert into memories values(?, ?, 5.0)", rows)
            connection.executemany("insert into words(rowid, content) values(?, ?)", rows)
            connection.execute("commit")
        storing = time.perf_counter() - begin
        by_words = "select rowid from words where words match ? order by rank limit 10"
        times = _each(lambda query: connection.execute(by_words, (" OR ".join(query.split()),)), queries)
        return {"storing": [storing], "by words": times, "by words and likeness": times}


def _each(ask: Callable[[str], sqlite3.Cursor], queries: list[str]) -> list[float]:
    out = []
    for query in queries:
        begin = time.perf_counter()
        ask(query).fetchall()
        out.append(time.perf_counter() - begin)
    return out


def rows() -> list[dict[str, Any]]:
    """Storing, and the two searches; a ratio of 1 means as fast as the baseline, and below that slower."""
    texts = _texts(MEMORIES)
    queries = _queries(texts)
    with tempfile.TemporaryDirectory() as directory:
        ours = asyncio.run(_measure(Path(directory), texts, queries))
    with tempfile.TemporaryDirectory() as directory:
        plain = _plain(Path(directory), texts, queries)
    storing = (MEMORIES / ours["storing"][0], MEMORIES / plain["storing"][0])
    out = [_row(f"memory, {TOGETHER} stored at a time", *storing, "memories/s")]
    for name in ("by words", "by words and likeness"):
        p95, base = (statistics.quantiles(times[name], n=20)[-1] * 1e3 for times in (ours, plain))
        each = (1 / statistics.median(times[name]) for times in (ours, plain))
        title = f"memory, search {name} in {MEMORIES} beside bm25, p95 {p95:.1f} and {base:.1f} ms"
        out.append(_row(title, *each, "searches/s"))
    sentences = _sentences()
    embedded = asyncio.run(_embedding(sentences)), _directly(sentences)
    out.append(_row("memory, embedding texts of 12 words beside the model alone", *embedded, "texts/s"))
    return out


def _row(name: str, our: float, base: float, unit: str) -> dict[str, Any]:
    return {
        "name": name,
        "ours": round(our),
        "baseline": round(base),
        "ratio": round(our / base, 3),
        "unit": unit,
        "n": MEMORIES,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}",
    }


if __name__ == "__main__":
    for found in rows():
        print(json.dumps(found))
