"""Vectors of texts: what they take."""

from __future__ import annotations

import tracemalloc

from engine.memory.embedding import hashed


def test_ever_new_words_do_not_fill_the_memory() -> None:
    tracemalloc.start()
    try:
        for number in range(12_000):
            hashed(f"word{number * 7919}")
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken < 12e6
