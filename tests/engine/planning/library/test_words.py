from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.planning.library.words import words_of


def texts(source: str) -> list[str]:
    return [word.text for word in words_of(source)]


def test_punctuation_after_a_word_is_a_word_of_its_own() -> None:
    assert texts("install httpx, rich; done.") == ["install", "httpx", ",", "rich", ";", "done", "."]


@pytest.mark.parametrize("name", ["notes.txt", "v1.2", "..", ".", "../..", "./a.b", "https://a.b/c?d=1"])
def test_dots_inside_names_stay(name: str) -> None:
    assert texts(f"go {name}") == ["go", name]


@pytest.mark.parametrize(("opening", "closing"), ["''", '""', "``", "‘’", "“”", "«»", "„“"])
def test_quoted_text_is_one_word_with_its_exact_text(opening: str, closing: str) -> None:
    (word,) = words_of(f"{opening}A  b, and c.\n{closing}")
    assert word.quoted
    assert word.value == "A  b, and c.\n"


def test_an_apostrophe_inside_a_word_opens_no_quote() -> None:
    assert texts("don't touch 'it's mine', now") == ["don't", "touch", "'it's mine'", ",", "now"]


def test_quotes_after_an_equals_sign_or_bracket_hold_their_word_together() -> None:
    assert texts("""echo x='a, b' print('c; d')""") == ["echo", "x='a, b'", "print('c; d')"]


def test_a_quote_that_nothing_closes_is_marked() -> None:
    assert [word.unclosed for word in words_of("write 'hello")] == [False, True]


def test_line_breaks_before_a_word_are_counted() -> None:
    assert [word.lines_before for word in words_of("a\n\nb c\nd")] == [0, 2, 0, 1]


@given(st.text(alphabet="ab '\"`“”,.;:\n=(", max_size=200))
def test_words_are_in_order_and_hold_all_but_white_space(source: str) -> None:
    words = words_of(source)
    at = 0
    for word in words:
        assert word.start >= at
        assert source[at : word.start].strip() == ""
        assert source[word.start : word.end] == word.text
        at = word.end
    assert source[at:].strip() == ""
