"""Vectors of texts: what they take."""

from __future__ import annotations

import sys

from engine.memory import embedding


def test_ever_new_words_do_not_fill_the_memory() -> None:
    most = embedding._signs.cache_info().maxsize
    assert most is not None
    assert most * sys.getsizeof(embedding._signs("<word>")) < 8e6
