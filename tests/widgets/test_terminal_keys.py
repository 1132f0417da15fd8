"""Keys and pastes as a terminal of the xterm family sends them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets.terminal.protocol import ChildModes, encode_key, encode_paste

KEYS = [
    ("a", "a", b"a"),
    ("A", "A", b"A"),
    ("é", "é", "é".encode()),
    ("日", "日", "日".encode()),
    ("space", " ", b" "),
    ("full_stop", ".", b"."),
    ("plus", "+", b"+"),
    ("enter", "\r", b"\r"),
    ("shift+enter", None, b"\r"),
    ("alt+enter", None, b"\x1b\r"),
    ("tab", "\t", b"\t"),
    ("shift+tab", None, b"\x1b[Z"),
    ("escape", "\x1b", b"\x1b"),
    ("backspace", "\x7f", b"\x7f"),
    ("ctrl+backspace", None, b"\b"),
    ("alt+backspace", None, b"\x1b\x7f"),
    ("ctrl+a", "\x01", b"\x01"),
    ("ctrl+c", None, b"\x03"),
    ("ctrl+q", None, b"\x11"),
    ("ctrl+z", None, b"\x1a"),
    ("ctrl+j", "\n", b"\n"),
    ("ctrl+shift+c", None, b"\x03"),
    ("ctrl+at", "\x00", b"\x00"),
    ("ctrl+space", None, b"\x00"),
    ("ctrl+2", None, b"\x00"),
    ("ctrl+backslash", "\x1c", b"\x1c"),
    ("ctrl+circumflex_accent", "\x1e", b"\x1e"),
    ("ctrl+underscore", "\x1f", b"\x1f"),
    ("ctrl+slash", None, b"\x1f"),
    ("ctrl+left_square_bracket", None, b"\x1b"),
    ("alt+x", "x", b"\x1bx"),
    ("alt+shift+x", "X", b"\x1bX"),
    ("alt+ctrl+a", None, b"\x1b\x01"),
    ("up", None, b"\x1b[A"),
    ("home", None, b"\x1b[H"),
    ("shift+up", None, b"\x1b[1;2A"),
    ("ctrl+right", None, b"\x1b[1;5C"),
    ("alt+left", None, b"\x1b[1;3D"),
    ("ctrl+shift+end", None, b"\x1b[1;6F"),
    ("insert", None, b"\x1b[2~"),
    ("delete", None, b"\x1b[3~"),
    ("ctrl+delete", None, b"\x1b[3;5~"),
    ("pageup", None, b"\x1b[5~"),
    ("pagedown", None, b"\x1b[6~"),
    ("f1", None, b"\x1bOP"),
    ("f4", None, b"\x1bOS"),
    ("f5", None, b"\x1b[15~"),
    ("f12", None, b"\x1b[24~"),
    ("ctrl+f1", None, b"\x1b[1;5P"),
    ("ctrl+f5", None, b"\x1b[15;5~"),
    ("super+a", None, b""),
    ("caps_lock", None, b""),
    ("<ignore>", "\x1b[E", b""),
]


@pytest.mark.parametrize(("key", "character", "sent"), KEYS, ids=[key for key, _, _ in KEYS])
def test_keys_are_encoded_as_xterm_does(key: str, character: str | None, sent: bytes) -> None:
    assert encode_key(key, character, ChildModes()) == sent


def test_cursor_keys_follow_the_mode_and_modified_ones_do_not() -> None:
    modes = ChildModes(application_cursor=True)
    assert encode_key("up", None, modes) == b"\x1bOA"
    assert encode_key("end", None, modes) == b"\x1bOF"
    assert encode_key("ctrl+up", None, modes) == b"\x1b[1;5A"
    assert encode_key("delete", None, modes) == b"\x1b[3~"


def test_a_paste_has_the_enter_keys_line_ends() -> None:
    assert encode_paste("a\r\nb\nc\td", bracketed=False) == b"a\rb\rc\td"
    assert encode_paste("a\nb", bracketed=True) == b"\x1b[200~a\rb\x1b[201~"


@given(st.text())
def test_a_paste_presses_no_key_and_cannot_leave_its_brackets(text: str) -> None:
    sent = encode_paste("x\x1b[201~\x03rm\x9b" + text, bracketed=True)
    inside = sent.removeprefix(b"\x1b[200~").removesuffix(b"\x1b[201~")
    assert len(inside) == len(sent) - 12
    assert not [byte for byte in inside if byte < 32 and byte not in b"\t\r"]
