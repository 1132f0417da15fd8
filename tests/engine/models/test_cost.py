"""Money and room: what calls cost, and which call would break a budget."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from engine.models.cost import Cost, cost_of, worst_case
from engine.models.messages import Usage
from engine.models.model_table import capabilities_of

OPUS = capabilities_of("claude-opus-5-5")
UNKNOWN = capabilities_of("qwen3:4b")
COUNTS = st.integers(0, 10_000_000)
USAGES = st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)


def test_each_kind_of_token_has_its_price() -> None:
    used = Usage(1_000_000, 100_000, 200_000, 300_000, 400_000)
    # 4 + 2 + 0.04 + 1.5 + 3.2 dollars
    assert cost_of(used, OPUS).usd == Decimal("10.74")
    assert cost_of(used, OPUS).tokens == 2_000_000


def test_an_unknown_price_is_said_to_be_unknown_and_never_nothing() -> None:
    unpriced = cost_of(Usage(10, 10), UNKNOWN)
    assert (unpriced.unpriced, unpriced.tokens, str(unpriced)) == (1, 20, "price unknown")
    both = unpriced + cost_of(Usage(1_000_000, 0), OPUS)
    assert str(both) == "$4.0000 and 1 calls of unknown price"


def test_a_cost_from_estimated_tokens_says_about() -> None:
    assert str(cost_of(Usage(1_000_000, estimated=True), OPUS)) == "about $4.0000"


@given(st.lists(USAGES, max_size=8))
def test_a_total_is_the_same_in_any_order_and_exact(usages: list[Usage]) -> None:
    forward = sum((cost_of(usage, OPUS) for usage in usages), Cost())
    backward = sum((cost_of(usage, OPUS) for usage in reversed(usages)), Cost())
    assert forward == backward
    assert forward.calls == len(usages)


@given(prompt=st.integers(0, 900_000), output=st.integers(0, 50_000), cached=st.floats(0, 1))
def test_no_call_costs_more_than_its_worst_case(prompt: int, output: int, cached: float) -> None:
    read = int(prompt * cached)
    used = Usage(0, output, cache_read_tokens=read, cache_write_tokens=prompt - read)
    worst = worst_case(prompt, 50_000, OPUS)
    assert cost_of(used, OPUS).usd <= worst.usd
    assert cost_of(used, OPUS).tokens <= worst.tokens
