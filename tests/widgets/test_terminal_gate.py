"""The gate: a hostile child's output, sequence by sequence, and what is left of it."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from widgets.terminal.protocol import PARAMETER_LIMIT, SEQUENCE_LIMIT, ChildModes, OutputFilter, Token

SWALLOWED = {
    "clipboard": b"\x1b]52;c;aGVsbG8=\x1b\\",
    "clipboard, ended by a bell": b"\x1b]52;c;aGVsbG8=\x07",
    "title": b"\x1b]0;title\x07",
    "window title": b"\x1b]2;title\x1b\\",
    "hyperlink": b"\x1b]8;;http://localhost/\x1b\\",
    "notification": b"\x1b]9;hello\x07",
    "notification of urxvt": b"\x1b]777;notify;a;b\x07",
    "files of iterm": b"\x1b]1337;File=name=eA==:AAAA\x07",
    "palette": b"\x1b]4;1;?\x07",
    "background question": b"\x1b]11;?\x1b\\",
    "device control": b"\x1bPq#0;2;0;0;0~\x1b\\",
    "status string question": b'\x1bP$q"p\x1b\\',
    "terminfo question": b"\x1bP+q544e\x1b\\",
    "macro": b"\x1bP1;0;1!z41\x1b\\\x1b[1*z",
    "application command": b"\x1b_Ga=T;AAAA\x1b\\",
    "privacy message": b"\x1b^secret\x1b\\",
    "start of string": b"\x1bXtext\x1b\\",
    "title report": b"\x1b[21t",
    "resize": b"\x1b[8;500;500t",
    "minimise": b"\x1b[2t",
    "media copy": b"\x1b[5i",
    "80 columns": b"\x1b[?3h",
    "reverse screen": b"\x1b[?5h",
    "locator": b"\x1b[1'z",
    "kitty keyboard": b"\x1b[>31u\x1b[=31u\x1b[?u",
    "other keys": b"\x1b[>4;2m",
    "keyboard lock": b"\x1b[2h",
    "version question": b"\x1b[>q",
    "checksum question": b"\x1b[1;1;1;1;1;1*y",
    "mode question": b"\x1b[?2026$p",
    "columns": b"\x1b[132$|",
    "status line": b"\x1b[2$~\x1b[1$}",
    "answerback": b"\x05",
    "bells": b"\x07" * 1_000,
    "nulls and deletes": b"\x00\x7f\x00",
    "VT52": b"\x1b[?2l",
    "8-bit controls": "\x9b\x9d\x9c\x90\x98\x84\x85\x8d".encode(),
    "direction overrides": "\u202e\u2066\u200f".encode(),
    "tags and joiners without a shape": "\U000e0041\ufeff\u200b".encode(),
    "cancelled sequence": b"\x1b[31\x18\x1b]0;x\x1a",
    "a sequence without an end": b"\x1b[" + b"1;" * 5_000 + b"m",
    "not a sequence": b"\x1b[1<2m\x1b[1?h\x1b[ 1q",
}

SAFE = re.compile(
    r"[\b\t\n\v\f\r\x0e\x0f]|\r\n|\x1b[78DEHMc]|\x1b[()][0AB]|\x1b#8"
    r"|\x1b\[\??[0-9;:]*[@ABCDEFGHIJKLMPSTXZ`abdefgmrsuhl]|\x1b\[[0-9]* q|\x1b\[!p"
)


def tokens_of(*pieces: bytes) -> list[Token]:
    gate = OutputFilter()
    return [token for piece in pieces for token in gate.tokens(piece)]


def joined(tokens: list[Token]) -> list[tuple[str, str]]:
    """Tokens with neighbouring runs of text joined, and line ends split: what an emulator makes of them."""
    found: list[tuple[str, str]] = []
    for token in tokens:
        if token.kind == "text" and found and found[-1][0] == "text":
            found[-1] = "text", found[-1][1] + token.text
        elif token.text == "\r\n":
            found += [("control", "\r"), ("control", "\n")]
        else:
            found.append((token.kind, token.text))
    return found


def cuts(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


@pytest.mark.parametrize("data", SWALLOWED.values(), ids=SWALLOWED.keys())
def test_what_is_not_on_a_list_does_nothing(data: bytes) -> None:
    assert joined(tokens_of(b"a" + data + b"b")) == [("text", "ab")]


@pytest.mark.parametrize(
    ("data", "passed"),
    [
        (b"\x1b[2J\x1b[H", ["\x1b[2J", "\x1b[H"]),
        (b"\x1b[38;2;1;2;3;4:3m", ["\x1b[38;2;1;2;3;4:3m"]),
        (b"\x1b[?25l\x1b[?1049h", ["\x1b[?25l", "\x1b[?1049h"]),
        (b"\x1b[?1;25;3;1000h", ["\x1b[?25h"]),
        (b"\x1b[4h\x1b[2;4;12l", ["\x1b[4h", "\x1b[4l"]),
        (b"\x1b(0q\x1b(B", ["\x1b(0", "q", "\x1b(B"]),
        (b"\x1b7\x1b8\x1bM\x1bc", ["\x1b7", "\x1b8", "\x1bM", "\x1bc"]),
        (b"\x1b[5 q\x1b[!p", ["\x1b[5 q", "\x1b[!p"]),
        (b"\x1b[3\n1m", ["\n", "\x1b[31m"]),
        (b"\x1b[3\x1b[1m", ["\x1b[1m"]),
        (b"a\r\n\tb\b", ["a", "\r\n", "\t", "b", "\b"]),
    ],
)
def test_screen_controls_get_through(data: bytes, passed: list[str]) -> None:
    assert [token.text for token in tokens_of(data)] == passed


def test_numbers_are_bounded() -> None:
    assert tokens_of(b"\x1b[99999999999C\x1b[00012C") == [
        Token("control", f"\x1b[{PARAMETER_LIMIT}C"),
        Token("control", "\x1b[12C"),
    ]


def test_questions_are_named_and_hold_no_word_of_the_childs() -> None:
    asked = tokens_of(b"\x1b[c\x1b[0c\x1b[>c\x1b[5n\x1b[6n\x1bZ\x1b[=c\x1b[?6n\x1b[7n")
    assert [(token.kind, token.text) for token in asked] == [
        ("ask", "attributes"),
        ("ask", "attributes"),
        ("ask", "more attributes"),
        ("ask", "status"),
        ("ask", "cursor"),
        ("ask", "attributes"),
    ]


def test_keyboard_modes_are_noted_and_mouse_modes_dropped_and_none_passed_on() -> None:
    gate = OutputFilter()
    assert list(gate.tokens(b"\x1b[?1h\x1b[?2004h\x1b[?1002h\x1b[?1006h")) == []
    assert gate.modes == ChildModes(application_cursor=True, bracketed_paste=True)
    list(gate.tokens(b"\x1bc"))
    assert gate.modes == ChildModes()


def test_unfinished_strings_are_not_kept() -> None:
    gate = OutputFilter()
    for _ in range(20):
        assert list(gate.tokens(b"\x1bP" + b"x" * 65_536)) == []
        assert list(gate.tokens(b"\x1b]" + b"x" * 65_536)) == []
        assert list(gate.tokens(b"\x1b[" + b"1;" * 32_768)) == []
    kept = [value for value in vars(gate).values() if isinstance(value, str)]
    assert max(map(len, kept)) <= max(SEQUENCE_LIMIT + 1, 256)


def test_broken_characters_become_replacement_characters() -> None:
    assert joined(tokens_of(b"a\xffb\xe6\x97", b"\xa5c\xc3")) == [("text", "a\ufffdb日c")]


PIECES = st.one_of(
    st.sampled_from(
        [*SWALLOWED.values(), b"\x1b", b"\x1b[", b"\x1b]0;", b"\x9b", b"\x18", b"\x1b\\", b"\r\n", b"m"]
    ),
    st.binary(max_size=12),
    st.text(max_size=8).map(lambda text: text.encode("utf-8", "ignore")),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=12).map(b"".join), st.lists(st.integers(0, 10_000), max_size=12))
def test_any_split_gives_the_same_tokens(data: bytes, places: list[int]) -> None:
    assert joined(tokens_of(*cuts(data, places))) == joined(tokens_of(data))


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=12).map(b"".join))
def test_every_token_is_text_without_controls_or_on_a_list(data: bytes) -> None:
    for token in tokens_of(data):
        if token.kind == "text":
            assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", token.text)
        elif token.kind == "control":
            assert SAFE.fullmatch(token.text)
        else:
            assert token.text in ("attributes", "more attributes", "status", "cursor")
