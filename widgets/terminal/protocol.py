"""The gate before the emulator, and the bytes that the operator's keys and pastes send the child.

The child is hostile. What it writes is decoded, cut into tokens, and checked against short lists: what is not
on a list is dropped, never passed on. So the emulator behind the gate never sees an OSC, DCS, APC, PM or SOS
string, a request to resize or to print, a report that would echo words of the child's choice, or a number
large enough to matter. Any split of the bytes gives the same tokens; unfinished strings are swallowed as they
come and never kept, so none can grow.

Keys are sent in the encodings of the xterm family, legacy ones only: what a child may ask of its keyboard
beyond cursor keys (the Kitty protocol, modifyOtherKeys) is refused at the gate, so that a key always sends
what the operator would expect.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterator
from typing import Literal

from textual.keys import REPLACED_KEYS, key_to_character

from engine.core.text import clean
from engine.value import dataclass

TokenKind = Literal["text", "control", "ask"]
"""Printable text, a control to give to the emulator, or a question to answer."""

SEQUENCE_LIMIT = 128
"""Characters of an escape sequence; a longer one is swallowed to its end and does nothing."""
PARAMETER_LIMIT = 9_999
"""The largest number passed on; screens are smaller."""

_FAST = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f-\x9f]+)|(?P<line_end>\r\n)|\x1b\[(?P<csi>[0-?]{0,64}[ -/]{0,2}[@-~])"
)
_STRING_END = re.compile("[\x07\x18\x1a\x1b\x9c]")
_CSI = re.compile(r"(?P<mark>[<-?]?)(?P<numbers>[0-9;:]*)(?P<between>[ -/]*)(?P<final>[@-~])")
_RUN = re.compile(r"[ -~]+|[^ -~]")

_CONTROLS = frozenset("\b\t\n\v\f\r\x0e\x0f")
"""Backspace, tab, line feeds, return, and the two character set shifts. The bell is not among them."""
_ESCAPES = frozenset(("7", "8", "D", "E", "H", "M", "c", "(0", "(A", "(B", ")0", ")A", ")B", "#8"))
"""Cursor save and restore, index, next line, tab stop, reverse index, reset, line drawing, alignment."""
_PLAIN_FINALS = frozenset("@ABCDEFGHIJKLMPSTXZ`abdefgmrsu")
"""Cursor movement, erasing, inserting, deleting, scrolling, repeating, colours and margins."""
_SPECIAL_FINALS = frozenset(("?J", "?K", " q", "!p"))
"""Selective erasing, the cursor's shape, and the soft reset."""
_SCREEN_MODES = frozenset((6, 7, 25, 47, 1047, 1048, 1049))
"""Origin, wrapping, cursor, and the alternate screen: of the emulator, never of the real terminal."""
_ANSI_MODES = frozenset((4, 20))
"""Insertion and newline."""
_QUESTIONS = {"c": "attributes", "0c": "attributes", ">c": "more attributes", ">0c": "more attributes"}
_QUESTIONS |= {"5n": "status", "6n": "cursor"}


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the child's output that is harmless by construction."""

    kind: TokenKind
    text: str
    """Characters without controls; a whole sequence; or a question's name:
    `attributes`, `more attributes`, `status`, `cursor`."""


_LINE_END = Token("control", "\r\n")


@dataclass(slots=True)
class ChildModes:
    """What the child asked of its keyboard; none of it is asked of the real terminal."""

    application_cursor: bool = False
    """Cursor keys are to begin with SS3 (DECCKM)."""
    bracketed_paste: bool = False

    def set(self, mode: int, on: bool) -> bool:
        """Set a DEC private mode; tells whether it is one of these."""
        if mode == 1:
            self.application_cursor = on
        elif mode == 2004:
            self.bracketed_paste = on
        else:
            return False
        return True

    def reset(self) -> None:
        """As at power-on."""
        self.application_cursor = self.bracketed_paste = False


class OutputFilter:
    """Turns a child's bytes into tokens; keeps the state between pieces.

    Args:
        clusters: whether characters that are not ASCII may come together; see `_printed`.
    """

    def __init__(self, *, clusters: bool = False) -> None:
        self._clusters = clusters
        self.modes = ChildModes()
        self._state: Literal["ground", "escape", "csi", "string", "string end"] = "ground"
        self._sequence = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    @property
    def resting(self) -> bool:
        """True between sequences; an unfinished character does not count."""
        return self._state == "ground"

    def forget_character(self) -> None:
        """Drop the beginning of an unfinished character, because what would finish it is skipped."""
        self._decoder.reset()

    def tokens(self, data: bytes | str) -> Iterator[Token]:
        """The tokens of the next piece of output, in order."""
        text = data if isinstance(data, str) else self._decoder.decode(data)
        at = 0
        while at < len(text):
            if self._state == "string":
                at = self._skip_string(text, at)
                continue
            if self._state == "ground" and (match := _FAST.match(text, at)) is not None:
                at = match.end()
                if (run := match["text"]) is not None:
                    yield from _printed(run, self._clusters)
                elif (sequence := match["csi"]) is not None:
                    yield from self._control_sequence(sequence)
                else:
                    yield _LINE_END
                continue
            at, tokens = self._step(text, at)
            yield from tokens

    def _step(self, text: str, at: int) -> tuple[int, Iterator[Token]]:
        """One character, where the fast way does not apply; gives where to continue, and its tokens."""
        char = text[at]
        if self._state == "string end":
            # Any ESC ends a string. If no backslash follows, it begins the next sequence.
            self._state = "ground" if char == "\\" else "escape"
            return (at + 1 if char == "\\" else at), iter(())
        if char == "\x1b":
            self._state, self._sequence = "escape", ""
        elif char in "\x18\x1a":
            self._state = "ground"
        elif char < " ":
            return at + 1, iter((Token("control", char),) if char in _CONTROLS else ())
        elif "\x7f" <= char <= "\x9f" or self._state == "ground":
            pass  # DEL and C1 controls mean nothing here, in a sequence or out of it.
        elif char > "\x9f":
            self._state = "ground"
            return at, iter(())
        elif self._state == "escape":
            return at + 1, self._in_escape(char)
        else:
            return at + 1, self._in_csi(char)
        return at + 1, iter(())

    def _in_escape(self, char: str) -> Iterator[Token]:
        if not self._sequence and char in "[P]X^_":
            self._state = "csi" if char == "[" else "string"
            return iter(())
        self._collect(char)
        if char < "0":
            return iter(())
        self._state = "ground"
        return self._escape_sequence(self._sequence)

    def _in_csi(self, char: str) -> Iterator[Token]:
        self._collect(char)
        if char < "@":
            return iter(())
        self._state = "ground"
        return self._control_sequence(self._sequence)

    def _collect(self, char: str) -> None:
        # One more than the limit marks a sequence as too long; no list has such a one.
        if len(self._sequence) <= SEQUENCE_LIMIT:
            self._sequence += char

    def _skip_string(self, text: str, at: int) -> int:
        end = _STRING_END.search(text, at)
        if end is None:
            return len(text)
        if end.group() == "\x1b":
            self._state = "string end"
        else:
            self._state = "ground"
        return end.end()

    # What is on the lists

    def _escape_sequence(self, sequence: str) -> Iterator[Token]:
        if sequence == "Z":
            yield Token("ask", "attributes")
        elif sequence in _ESCAPES:
            if sequence == "c":
                self.modes.reset()
            yield Token("control", "\x1b" + sequence)

    def _control_sequence(self, sequence: str) -> Iterator[Token]:
        match = _CSI.fullmatch(sequence)
        if match is None or len(sequence) > SEQUENCE_LIMIT:
            return
        mark, numbers, between, final = match.group("mark", "numbers", "between", "final")
        if (question := _QUESTIONS.get(sequence)) is not None:
            yield Token("ask", question)
        elif final in "hl" and not between and mark in ("", "?"):
            yield from self._mode_change(mark, numbers, final)
        elif (
            not mark and not between and final in _PLAIN_FINALS
        ) or mark + between + final in _SPECIAL_FINALS:
            if between == "!":
                self.modes.reset()
            if final == "m" or ":" not in numbers:
                yield Token("control", f"\x1b[{mark}{_bounded(numbers)}{between}{final}")

    def _mode_change(self, mark: str, numbers: str, final: str) -> Iterator[Token]:
        allowed = _SCREEN_MODES if mark else _ANSI_MODES
        for part in numbers.split(";"):
            mode = int(part) if part.isdigit() else -1
            if not (mark and self.modes.set(mode, final == "h")) and mode in allowed:
                yield Token("control", f"\x1b[{mark}{mode}{final}")


def _bounded(numbers: str) -> str:
    if len(numbers) <= 4:
        return numbers
    return re.sub(r"\d{5,}", lambda long: str(min(int(long[0]), PARAMETER_LIMIT)), numbers)


def _printed(run: str, clusters: bool) -> Iterator[Token]:
    """Runs of ASCII, and all else one character at a time.

    One at a time because the emulator joins characters into clusters, and does so in the same way
    for every split of the bytes only if it never sees two that might belong together at once.
    """
    if clusters or run.isascii():
        yield Token("text", run)
        return
    for part in _RUN.findall(clean(run, limit=len(run) + 1)):
        yield Token("text", part)


_CURSOR_KEYS = {"up": "A", "down": "B", "right": "C", "left": "D", "home": "H", "end": "F"}
_NUMBERED_KEYS = {"insert": 2, "delete": 3, "pageup": 5, "pagedown": 6}
_NUMBERED_KEYS |= {f"f{number + 5}": code for number, code in enumerate((15, 17, 18, 19, 20, 21, 23, 24))}
_PF_KEYS = {"f1": "P", "f2": "Q", "f3": "R", "f4": "S"}
_PLAIN_KEYS = {"enter": b"\r", "tab": b"\t", "escape": b"\x1b", "backspace": b"\x7f", "space": b" "}
_CONTROL_ALIASES = dict(zip("2345678/-?", b"\x00\x1b\x1c\x1d\x1e\x1f\x7f\x1f\x1f\x7f", strict=True))
"""What ctrl makes of digits and signs, as on a VT220; `@` to `_` and letters follow a rule."""
_MODIFIERS = ("shift", "alt", "ctrl")
_FOREIGN_MODIFIERS = frozenset(("super", "hyper", "meta"))
_PASTE_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


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

    Without controls a text can neither end the brackets early nor press keys.

    Args:
        text: what is pasted.
        bracketed: the child asked for pastes in brackets.
    """
    text = _PASTE_CONTROLS.sub("", text.replace("\r\n", "\n")).replace("\n", "\r")
    data = text.encode("utf-8", "ignore")
    return b"\x1b[200~" + data + b"\x1b[201~" if bracketed else data
