"""Vectors of texts: what they take, and which are near."""

from __future__ import annotations

import sys
from operator import mul

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.memory import embedding
from engine.memory.embedding import SignatureIndex, cosine, hashed, pack, signature


def test_ever_new_words_do_not_fill_the_memory() -> None:
    most = embedding._signs.cache_info().maxsize
    assert most is not None
    assert most * sys.getsizeof(embedding._signs("<word>")) < 8e6


def test_the_nearest_signs_come_first_and_none_is_lost() -> None:
    texts = [f"sample {n} of the crater rim" for n in range(500)]
    index = SignatureIndex()
    vectors = {text: hashed(text) for text in texts}
    index.add((text, signature(vector)) for text, vector in vectors.items())
    groups = list(index.nearest(vectors["sample 7 of the crater rim"], 50))
    assert "sample 7 of the crater rim" in groups[0]
    assert len(groups) > 1
    assert sorted(text for group in groups for text in group) == sorted(texts)
    few = list(index.nearest(vectors[texts[0]], 50, among=[texts[3], "unknown"]))
    assert few == [[texts[3]]]


def test_a_text_has_the_same_vector_everywhere() -> None:
    vector = hashed("Regolith, everywhere!")
    assert signature(vector) == signature(hashed("regolith everywhere"))
    assert signature(vector).to_bytes(31, "big").hex()[:16] == "b000a82e2430a18a"
    assert cosine(vector, pack(vector)) == pytest.approx(1.0, abs=0.001)
    assert not any(hashed("…!"))


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_kept_vector_is_near_enough(one: str, other: str) -> None:
    exact = sum(map(mul, hashed(one), hashed(other)))
    assert cosine(hashed(one), pack(hashed(other))) == pytest.approx(exact, abs=0.01)
