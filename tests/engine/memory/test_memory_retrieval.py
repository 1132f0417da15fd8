"""How well memories are found: recall among the first five on questions kept in the repository."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path

from engine.memory.search import Weights
from tests.engine.memory.memory_desk import MemoryDesk

PAIRS = tomllib.loads((Path(__file__).parent / "retrieval_pairs.toml").read_text(encoding="utf-8"))
KINDS = ("paraphrase", "mixed", "keyword")


async def recall_at_5(
    desk: MemoryDesk, ids: dict[str, str], semantic: float, keyword: float
) -> dict[str, float]:
    shares = {}
    for kind in KINDS:
        hits = 0
        for query, answer in PAIRS[kind]:
            first = await desk.found(query, limit=5, semantic_weight=semantic, keyword_weight=keyword)
            hits += ids[answer] in first
        shares[kind] = hits / len(PAIRS[kind])
    total = sum(shares[kind] * len(PAIRS[kind]) for kind in KINDS) / sum(len(PAIRS[kind]) for kind in KINDS)
    return {"all": total, **shares}


async def test_both_halves_together_find_no_less_than_the_better_one(desk: MemoryDesk) -> None:
    assert sum(len(PAIRS[kind]) for kind in KINDS) >= 60
    texts = [answer for kind in KINDS for _, answer in PAIRS[kind]] + PAIRS["distractors"]
    stored = await asyncio.gather(*(desk.store_memory(text) for text in texts))
    ids = {one.content: one.id for one in stored}
    default = Weights()
    hybrid = await recall_at_5(desk, ids, default.semantic, default.keyword)
    likeness = await recall_at_5(desk, ids, 1.0, 0.0)
    words = await recall_at_5(desk, ids, 0.0, 1.0)
    assert hybrid["all"] >= max(likeness["all"], words["all"])
    assert hybrid["keyword"] == 1.0
