"""Keys, pastes and mouse events as the bytes a child expects from a terminal of the xterm family.

Legacy encodings only: what a child may ask of its keyboard beyond cursor keys (the Kitty protocol,
modifyOtherKeys) is refused at the gate, so that a key always sends what the operator would expect.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from textual.keys import REPLACED_KEYS, key_to_character

from widgets.terminal_gate import ChildModes

_CURSOR_KEYS = {"up": "A", "down": "B", "right": "C", "left": "D", "home": "H", "end": "F"}
_NUMBERED_KEYS = {"insert": 2, "delete": 3, "pageup": 5, "pagedown": 6}
_NUMBERED_KEYS |= {
    f"f{key}": code for key, code in zip(range(5, 13), (15, 17, 18, 19, 20, 21, 23, 24), strict=True)
}
_PF_KEYS = {"f1": "P", "f2": "Q", "f3": "R", "f4": "S"}
_PLAIN_KEYS = {"enter": b"\r", "tab": b"\t", "escape": b"\x1b", "backspace": b"\x7f", "space": b" "}
_CONTROL_ALIASES = dict(zip("2345678/-?", b"\x00\x1b\x1c\x1d\x1e\x1f\x7f\x1f\x1f\x7f", strict=True))
"""What ctrl makes of digits and signs, as on a VT220; `@` to `_` and letters follow a rule."""
_MODIFIERS = ("shift", "alt", "ctrl")
_FOREIGN_MODIFIERS = frozenset(("super", "hyper", "meta"))
_PASTE_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_WHEEL = {"wheel up": 64, "wheel down": 65, "wheel left": 66, "wheel right": 67}
_LEGACY_MOUSE_MOST = 223
"""The largest column or row the mouse encoding of one byte each can say."""

MouseKind = Literal["press", "release", "move", "wheel up", "wheel down", "wheel left", "wheel right"]


@dataclass(frozen=True, slots=True)
class MouseAction:
    """What the mouse did on the screen."""

    kind: MouseKind
    column: int
    """In cells, 0 at the left."""
    row: int
    """0 at the top."""
    button: int = 0
    """1 left, 2 middle, 3 right; 0 for a movement without one, and for the wheel."""
    shift: bool = False
    alt: bool = False
    ctrl: bool = False


def encode_key(key: str, character: str | None, modes: ChildModes) -> bytes:
    """What a key sends to the child; nothing for keys terminals do not have.

    Args:
        key: Textual's name of the key with its modifiers, `ctrl+shift+left`.
        character: the character it types, if it types one.
        modes: what the child asked of its keyboard.
    """
    *held, name = key.split("+") if key != "+" else ["+"]
    modifiers = frozenset(held)
    if modifiers & _FOREIGN_MODIFIERS or key == "<ignore>":
        return b""
    if (named := _named_key(name, modifiers, modes)) is not None:
        return named
    typed = _control(name) if "ctrl" in modifiers else _typed(name, character, modifiers)
    return b"\x1b" + typed if typed and "alt" in modifiers else typed


def _named_key(name: str, modifiers: frozenset[str], modes: ChildModes) -> bytes | None:
    """Keys with names; None for keys that type a character."""
    if name in ("f13", "f14", "f15", "f16", "f17", "f18", "f19", "f20", "f21", "f22", "f23", "f24"):
        # Keyboards have twelve; Textual calls the shifted ones so.
        name, modifiers = f"f{int(name[1:]) - 12}", modifiers | {"shift"}
    code = 1 + sum(1 << bit for bit, each in enumerate(_MODIFIERS) if each in modifiers)
    if (number := _NUMBERED_KEYS.get(name)) is not None:
        return b"\x1b[%d~" % number if code == 1 else b"\x1b[%d;%d~" % (number, code)
    if (letter := _CURSOR_KEYS.get(name) or _PF_KEYS.get(name)) is not None:
        if code > 1:
            return f"\x1b[1;{code}{letter}".encode()
        return f"\x1b{'O' if name in _PF_KEYS or modes.application_cursor else '['}{letter}".encode()
    if name not in _PLAIN_KEYS:
        return None
    if name == "tab" and "shift" in modifiers:
        return b"\x1b[Z"
    plain = _PLAIN_KEYS[name]
    if "ctrl" in modifiers and name in ("space", "backspace"):
        plain = b"\x00" if name == "space" else b"\b"
    return b"\x1b" + plain if "alt" in modifiers else plain


def _control(name: str) -> bytes:
    char = name if len(name) == 1 else _sign(name)
    if char in _CONTROL_ALIASES:
        return bytes((_CONTROL_ALIASES[char],))
    if char.isascii() and len(char) == 1 and (char.isalpha() or "@" <= char <= "_"):
        return bytes((ord(char.upper()) & 0x1F,))
    return b""


def _sign(name: str) -> str:
    """The character of a key named by its Unicode name; empty if it has none."""
    return key_to_character(REPLACED_KEYS.get(name, name)) or ""


def _typed(name: str, character: str | None, modifiers: frozenset[str]) -> bytes:
    text = character if character and character.isprintable() else (name if len(name) == 1 else _sign(name))
    if "shift" in modifiers and len(text) == 1 and character is None:
        text = text.upper()
    if not text or unicodedata.category(text[0]) in ("Cc", "Cs"):
        return b""
    return text.encode("utf-8", "ignore")


def encode_paste(text: str, bracketed: bool) -> bytes:
    """What pasting a text sends: line ends as the enter key's, and no control but the tab.

    Without controls a text can neither end the brackets early nor press keys (spec textual-craft §4.3).

    Args:
        text: what is pasted.
        bracketed: the child asked for pastes in brackets.
    """
    text = _PASTE_CONTROLS.sub("", text.replace("\r\n", "\n")).replace("\n", "\r")
    data = text.encode("utf-8", "ignore")
    return b"\x1b[200~" + data + b"\x1b[201~" if bracketed else data


def encode_mouse(action: MouseAction, modes: ChildModes) -> bytes:
    """What a mouse event sends to the child; nothing when the child did not ask for it.

    Args:
        action: the event; places off the screen are not reported.
        modes: what the child asked of its mouse.
    """
    if not _wanted(action, modes) or action.column < 0 or action.row < 0:
        return b""
    code = _WHEEL.get(action.kind, (action.button - 1) & 3)
    if modes.mouse != 9:
        code += 4 * action.shift + 8 * action.alt + 16 * action.ctrl
    if action.kind == "move":
        code += 32
    column, row = action.column + 1, action.row + 1
    if modes.mouse_sgr:
        return f"\x1b[<{code};{column};{row}{'m' if action.kind == 'release' else 'M'}".encode()
    if max(column, row) > _LEGACY_MOUSE_MOST:
        return b""
    if action.kind == "release":
        code |= 3  # this encoding cannot say which button
    return b"\x1b[M" + bytes((32 + code, 32 + column, 32 + row))


def _wanted(action: MouseAction, modes: ChildModes) -> bool:
    if action.kind == "move":
        return modes.mouse == 1003 or (modes.mouse == 1002 and action.button > 0)
    if action.kind == "release":
        return modes.mouse >= 1000
    return modes.mouse != 0
