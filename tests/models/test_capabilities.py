"""What a model takes and costs is in a dated table; what is not in it is said to be unknown."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from engine.models import ModelTableError, ToolSpec, load_models
from engine.models.capabilities import read_models
from tests.models.model_talk import question

TABLE = """
dated = 2026-11-01
source = "a test"
[[model]]
names = ["*-instruct", "local-7b"]
context_window = 8_000
max_output = 2_000
tools = true
prices = [{ input = 0, output = 0, cache_write = 0, cache_write_1h = 0, cache_read = 0 }]
"""


def test_a_model_is_known_by_its_name_with_or_without_a_date() -> None:
    table = load_models()
    plain = table.of("claude-haiku-4-5")
    for name in ("claude-haiku-4-5-20251001", "claude-haiku-4-5@20251001", "claude-haiku-4-5-latest"):
        assert table.of(name).prices == plain.prices
        assert table.of(name).model == name
    assert (plain.context_window, plain.max_output, plain.thinking) == (200_000, 64_000, "budget")
    assert plain.dated is not None
    assert plain.dated >= date(2026, 10, 1)
    assert plain.source


@pytest.mark.parametrize("name", ["claude-opus-5", "claude-opus-5-5", "claude-sonnet-5", "claude-sonnet-5-5"])
def test_a_name_that_begins_like_another_is_not_taken_for_it(name: str) -> None:
    table = load_models()
    assert table.of(name).prices
    assert table.of(f"{name}-9").prices == ()


def test_a_claude_that_is_not_in_the_table_has_no_price_and_takes_little() -> None:
    unknown = load_models().of("claude-fable-5-2")
    assert unknown.price(1) is None
    assert unknown.tools
    assert unknown.refuses == {"temperature", "top_p", "tool_choice"}


def test_a_model_that_nobody_described_is_treated_with_care() -> None:
    unknown = load_models().of("qwen3:4b")
    assert (unknown.known, unknown.tools, unknown.thinking, unknown.prices) == (False, False, "none", ())
    request = question(
        "qwen3:4b", temperature=0.5, tools=(ToolSpec("t", "d"),), tool_choice="t", max_tokens=9_000
    )
    fitted, notes = unknown.fit(request)
    assert fitted == question("qwen3:4b", max_tokens=unknown.max_output)
    assert all("not in the table" in note for note in notes[:3])


def test_a_request_that_fits_is_left_as_it_is() -> None:
    request = question("claude-opus-4-6", temperature=0.0)
    assert load_models().of("claude-opus-4-6").fit(request) == (request, ())


def test_a_budget_of_thinking_stays_below_the_longest_answer() -> None:
    fitted, notes = (
        load_models()
        .of("claude-haiku-4-5")
        .fit(question("claude-haiku-4-5", max_tokens=100_000, thinking_budget=90_000))
    )
    assert (fitted.max_tokens, fitted.thinking_budget) == (64_000, 63_999)
    assert len(notes) == 2


def test_prices_go_by_the_length_of_the_prompt_where_they_have_bands() -> None:
    haiku = load_models().of("claude-haiku-5-5")
    at_most, beyond = haiku.price(100_000), haiku.price(100_001)
    assert at_most is not None
    assert beyond is not None
    assert (at_most.input, beyond.input) == (Decimal("0.10"), Decimal("0.50"))


def test_an_operators_table_goes_before_the_shipped_one(tmp_path: Path) -> None:
    file = tmp_path / "models.toml"
    file.write_text(TABLE.replace("local-7b", "claude-opus-5"), encoding="utf-8")
    table = load_models(file)
    assert table.of("claude-opus-5").max_output == 2_000
    assert table.of("mistral-instruct").price(10) is not None
    assert table.of("claude-opus-5-5") == load_models().of("claude-opus-5-5")


def test_no_operators_table_is_no_error(tmp_path: Path) -> None:
    assert load_models(tmp_path / "none.toml") == load_models()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("dated = yesterday", "not valid TOML"),
        (TABLE.replace("dated = 2026-11-01", ""), "'dated'"),
        (TABLE.replace("max_output = 2_000", "max_output = 0"), "model.0.max_output"),
        (TABLE.replace("max_output = 2_000", "max_output = 9_000"), "larger than context_window"),
        (TABLE.replace("input = 0", "input = -1"), "input"),
        (TABLE.replace("input = 0", "input = inf"), "input"),
        (TABLE.replace("{ input", "{ prompt_over = 5, input"), "without prompt_over"),
        (TABLE + 'refuses = ["speed"]', "refuses"),
        (TABLE + "colour = 1", "colour"),
        ("\xff", "not valid TOML"),
        ("#" * 300_000, "larger than"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_with_file_place_and_reason(wrong: str, said: str) -> None:
    with pytest.raises(ModelTableError, match=said) as caught:
        read_models(wrong.encode("latin-1"), "mine.toml")
    assert str(caught.value).startswith("mine.toml: ")
