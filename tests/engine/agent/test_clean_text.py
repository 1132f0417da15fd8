"""Untrusted text loses what a terminal would obey or hide: sandbox spec §6 cases 77, 78 and 81."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.text import clean, clean_line

_UNSAFE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a\x1b]52;c;aGVsbG8=\x07b", "ab"),
        ("a\x1b]0;title\x1b\\b", "ab"),
        ("a\x1bPdevice\x1b\\b\x1b_app\x1b\\c\x1b^private\x1b\\d\x1bXstring\x1b\\e", "abcde"),
        ("a\x9d0;title\x9cb\x9b2Jc\x90device\x9cd", "abcd"),
        ("a\x1b[2J\x1b[?1049l\x1b[201~b\x1bcc", "abc"),
        ("a\x1b]never ended", "a"),
        ("a\x1b]cut short\x1b[1mb", "ab"),
        ("safe\u202egnp.exe", "safegnp.exe"),
        ("ad\u200bmin\u2060\ufeff", "admin"),
        ("plain\U000e0041\U000e0020\U000e007f", "plain"),
        ("lone \ud800", "lone "),
        ("оperator> ", "оperator> "),
        ("[@click=app.quit]x[/]", "[@click=app.quit]x[/]"),
    ],
)
def test_what_a_terminal_would_obey_or_hide_is_gone(text: str, left: str) -> None:
    assert clean(text) == left


@given(st.text(st.sampled_from("\x1b\x9b\x9d\x90\x9c\x07[]P^_X\\;0m \u202e\U000e0041ab\n")))
def test_nothing_unsafe_is_left_and_cleaning_twice_changes_nothing(text: str) -> None:
    cleaned = clean(text)
    assert not _UNSAFE.search(cleaned)
    assert clean(cleaned) == cleaned
    assert "\n" not in clean_line(text)


@pytest.mark.parametrize("opening", ["\x90", "\x9d", "\x1b]", "\x1b[", "\x9b", "\x1b ", "\x1b[0", "\x9b "])
def test_a_hundred_thousand_openings_are_cleaned_in_time_that_grows_with_them(opening: str) -> None:
    """What once grew with the square took minutes here, and held the cockpit for as long."""
    assert len(clean(opening * 100_000 + "\x1b", limit=1_000_000)) <= 300_000
