"""What a generation is run with, parameter by parameter (spec BDI §2.7; §7 50)."""

from __future__ import annotations

from typing import Any

import pytest

from engine.planning.pgp.requests import GenerationConfig


def test_what_is_given_counts_and_the_rest_is_kept() -> None:
    system = GenerationConfig(model="m", remarks=("of the system",))
    chosen = system.over(temperature=0.0, model=None, hidden=("a",))
    assert (chosen.temperature, chosen.model, chosen.max_tokens, chosen.hidden) == (0.0, "m", 2_048, ("a",))
    assert chosen.remarks == ("of the system",)


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -0.1},
        {"temperature": float("nan")},
        {"max_tokens": 0},
        {"request_timeout_s": 0.0},
        {"request_timeout_s": float("inf")},
        {"remarks": ("",)},
    ],
)
def test_a_value_out_of_range_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong)).removesuffix("s")):
        GenerationConfig(**wrong)
