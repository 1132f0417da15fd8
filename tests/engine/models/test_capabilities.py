"""What a model takes and costs is in a dated table; what is not in it is said to be unknown."""

from __future__ import annotations

from decimal import Decimal

import pytest

from engine.models.model_table import capabilities_of
from engine.models.request import ToolSpec
from tests.engine.models.model_talk import question


def test_a_model_is_known_by_its_name_with_or_without_a_date() -> None:
    plain = capabilities_of("claude-haiku-4-5")
    for name in ("claude-haiku-4-5-20251001", "claude-haiku-4-5@20251001", "claude-haiku-4-5-latest"):
        assert capabilities_of(name).prices == plain.prices
        assert capabilities_of(name).model == name
    assert (plain.context_window, plain.max_output, plain.thinking) == (200_000, 64_000, "budget")


@pytest.mark.parametrize("name", ["claude-opus-5", "claude-opus-5-5", "claude-sonnet-5", "claude-sonnet-5-5"])
def test_a_name_that_begins_like_another_is_not_taken_for_it(name: str) -> None:
    assert capabilities_of(name).prices
    assert capabilities_of(f"{name}-9").prices == ()


def test_a_claude_that_is_not_in_the_table_has_no_price_and_takes_little() -> None:
    unknown = capabilities_of("claude-fable-5-2")
    assert unknown.price(1) is None
    assert unknown.tools
    assert unknown.refuses == {"temperature", "tool_choice"}


def test_a_model_that_nobody_described_is_treated_with_care() -> None:
    unknown = capabilities_of("qwen3:4b")
    assert (unknown.known, unknown.tools, unknown.thinking, unknown.prices) == (False, False, "none", ())
    request = question(
        "qwen3:4b", temperature=0.5, tools=(ToolSpec("t", "d"),), tool_choice="t", max_tokens=9_000
    )
    fitted, notes = unknown.fit(request)
    assert fitted == question("qwen3:4b", max_tokens=unknown.max_output)
    assert all("not in the table" in note for note in notes[:3])


def test_a_request_that_fits_is_left_as_it_is() -> None:
    request = question("claude-opus-4-6", temperature=0.0)
    assert capabilities_of("claude-opus-4-6").fit(request) == (request, ())


def test_a_budget_of_thinking_stays_below_the_longest_answer() -> None:
    fitted, notes = capabilities_of("claude-haiku-4-5").fit(
        question("claude-haiku-4-5", max_tokens=100_000, thinking_budget=90_000)
    )
    assert (fitted.max_tokens, fitted.thinking_budget) == (64_000, 63_999)
    assert len(notes) == 2


def test_prices_go_by_the_length_of_the_prompt_where_they_have_bands() -> None:
    haiku = capabilities_of("claude-haiku-5-5")
    at_most, beyond = haiku.price(100_000), haiku.price(100_001)
    assert at_most is not None
    assert beyond is not None
    assert (at_most.input, beyond.input) == (Decimal("0.10"), Decimal("0.50"))
