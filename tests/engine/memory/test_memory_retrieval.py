"""How well memories are found: recall among the first five on questions kept in the repository."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path

from tests.engine.memory.memory_desk import MemoryDesk

PAIRS = tomllib.loads((Path(__file__).parent / "retrieval_pairs.toml").read_text(encoding="utf-8"))
KINDS = ("paraphrase", "mixed", "keyword")


async def test_words_alone_find_what_names_a_thing(desk: MemoryDesk) -> None:
    assert sum(len(PAIRS[kind]) for kind in KINDS) >= 60
    texts = [answer for kind in KINDS for _, answer in PAIRS[kind]] + PAIRS["distractors"]
    stored = await asyncio.gather(*(desk.store_memory(text) for text in texts))
    ids = {one.content: one.id for one in stored}
    shares = {}
    for kind in KINDS:
        found = [ids[answer] in await desk.found(query, limit=5) for query, answer in PAIRS[kind]]
        shares[kind] = sum(found) / len(found)
    assert shares["keyword"] == 1.0
    assert shares["mixed"] >= 0.7
