from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets.base.text_layout import Piece, bar, break_line, cut, cut_text, fit, plain, width_of, wrap


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("short", 10, "short"),
        ("exactly", 7, "exactly"),
        ("too long", 7, "too lo…"),
        ("too long", 1, "…"),
        ("too long", 0, ""),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
    ],
)
def test_text_is_cut_by_cells_and_says_so(text: str, width: int, shown: str) -> None:
    assert cut_text(text, width) == shown


def test_cutting_keeps_the_styles() -> None:
    assert cut((Piece("abc", "dim"), Piece("def", "error")), 5) == (Piece("abc", "dim"), Piece("d…", "error"))


def test_fitting_puts_the_tail_at_the_right_end() -> None:
    assert plain(fit((Piece("left"),), (Piece("right"),), 14)) == "left     right"


def test_fitting_leaves_the_tail_at_most_half_the_line() -> None:
    assert plain(fit((Piece("left"),), (Piece("a very long tail"),), 10)) == "left a ve…"


def test_wrapping_breaks_at_blanks_and_indents() -> None:
    lines = wrap((Piece("12:00 "), Piece("one two three four")), 14, indent=6, most=9)

    assert [plain(line) for line in lines] == ["12:00 one two", "      three", "      four"]


def test_a_shorter_first_line_breaks_between_words() -> None:
    lines = wrap((Piece("● g1 "), Piece("make a directory")), 16, indent=2, most=5, first=7)

    assert [plain(line) for line in lines] == ["● g1", "  make a", "  directory"]
    assert [plain(line) for line in wrap((Piece("abcdefghij"),), 6, most=9, first=4)] == ["abcd", "efghij"]


def test_wrapping_breaks_a_word_longer_than_the_line() -> None:
    assert [plain(line) for line in wrap((Piece("abcdefghij"),), 4, most=9)] == ["abcd", "efgh", "ij"]


def test_wrapping_ends_in_an_ellipsis_when_lines_are_lost() -> None:
    assert [plain(line) for line in wrap((Piece("one two three four"),), 8, most=2)] == [
        "one two",
        "three f…",
    ]


@given(
    *(st.text(alphabet="ab 日é", max_size=80), st.integers(1, 20), st.integers(0, 10), st.integers(1, 6)),
    st.integers(2, 20),
)
def test_no_wrapped_line_is_wider_than_asked(
    text: str, width: int, indent: int, most: int, first: int
) -> None:
    first = min(first, max(2, width))
    lines = wrap((Piece(text),), max(2, width), indent=indent, most=most, first=first)

    assert len(lines) <= most
    assert width_of(lines[0]) <= first
    assert all(width_of(line) <= max(2, width) for line in lines)


@given(st.text(alphabet="ab 日é", max_size=40), st.text(alphabet="xy日", max_size=20), st.integers(0, 40))
def test_a_fitted_line_has_exactly_the_width_asked(left: str, right: str, width: int) -> None:
    assert width_of(fit((Piece(left),), (Piece(right),) if right else (), width)) == width


@given(st.text(alphabet="ab 日é\u0301", max_size=60), st.integers(2, 20))
def test_a_broken_text_fits_and_loses_nothing_but_blanks(text: str, width: int) -> None:
    lines = break_line(text, width)

    assert all(width_of((Piece(line.rstrip()),)) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("one two three", ["one two", "three"]),
        ("one twoo", ["one twoo"]),
        ("onetwothree", ["onetwoth", "ree"]),
        ("日本 語文字列", ["日本", "語文字列"]),
    ],
)
def test_a_text_is_broken_at_blanks(text: str, lines: list[str]) -> None:
    assert break_line(text, 8) == lines


def test_a_bar_shows_at_least_one_cell_of_what_is_not_nothing() -> None:
    assert plain(bar(0.0, 5)) == "░░░░░"
    assert plain(bar(0.001, 5)) == "▓░░░░"
    assert plain(bar(0.5, 4)) == "▓▓░░"
    assert plain(bar(7.0, 3)) == "▓▓▓"
    assert plain(bar(0.5, 0)) == ""
