"""The gate before the emulator: of what a child writes, only what draws in its own screen gets through.

The child is hostile. Its bytes are decoded, cut into tokens, and checked against short lists:
what is not on a list is dropped, never passed on. So the emulator behind the gate never sees an
OSC, DCS, APC, PM or SOS string, a request to resize or to print, a report that would echo words
of the child's choice, or a number large enough to matter (spec textual-craft §0 finding 1, §4.3;
sandbox §6 case 77). Any split of the bytes gives the same tokens.

Unfinished strings are swallowed as they come and never kept, so none can grow.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from engine.domain.text import clean, clean_line

TokenKind = Literal["text", "control", "ask"]
"""Printable text, a control to give to the emulator, or a question to answer."""

SEQUENCE_LIMIT = 128
"""Characters of an escape sequence; a longer one is swallowed to its end and does nothing."""
PARAMETER_LIMIT = 9_999
"""The largest number passed on; screens are smaller."""
TITLE_LIMIT = 256
"""Characters of a title looked at."""

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
    """What the child asked of its keyboard and mouse; none of it is asked of the real terminal."""

    application_cursor: bool = False
    """Cursor keys are to begin with SS3 (DECCKM)."""
    bracketed_paste: bool = False
    mouse: Literal[0, 9, 1000, 1002, 1003] = 0
    """Which mouse events the child wants: none, presses, and releases, and drags, and all movement."""
    mouse_sgr: bool = False
    """Mouse reports in the SGR encoding (1006); without it columns and rows beyond 223 have none."""

    def set(self, mode: int, on: bool) -> bool:
        """Set a DEC private mode; tells whether it is one of these."""
        if mode == 1:
            self.application_cursor = on
        elif mode == 2004:
            self.bracketed_paste = on
        elif mode == 1006:
            self.mouse_sgr = on
        elif mode in (9, 1000, 1002, 1003):
            if on:
                self.mouse = mode  # type: ignore[assignment]  # narrowed by the line above
            elif self.mouse == mode:
                self.mouse = 0
        else:
            return False
        return True

    def reset(self) -> None:
        """As at power-on."""
        self.application_cursor = self.bracketed_paste = self.mouse_sgr = False
        self.mouse = 0


class Gate:
    """Turns a child's bytes into tokens; keeps the state between pieces."""

    def __init__(self) -> None:
        self.modes = ChildModes()
        self.title = ""
        """What the child last set as its title, cleaned, on one line; for the pane's use, never forwarded."""
        self._state: Literal["ground", "escape", "csi", "string", "string end"] = "ground"
        self._sequence = ""
        self._is_osc = False
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
                    yield from _printed(run)
                elif (sequence := match["csi"]) is not None:
                    yield from self._control_sequence(sequence)
                else:
                    yield _LINE_END
                continue
            at, found = self._step(text, at)
            yield from found

    def _step(self, text: str, at: int) -> tuple[int, Iterator[Token]]:
        """One character, where the fast way does not apply; gives where to go on, and its tokens."""
        char = text[at]
        if self._state == "string end":
            self._end_string()
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
            self._is_osc = char == "]"
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
        stop = end.start() if end else len(text)
        if self._is_osc and len(self._sequence) < TITLE_LIMIT:
            self._sequence += text[at : min(stop, at + TITLE_LIMIT - len(self._sequence))]
        if end is None:
            return len(text)
        if end.group() == "\x1b":
            self._state = "string end"
        else:
            if end.group() not in "\x18\x1a":
                self._end_string()
            self._state, self._sequence = "ground", ""
        return end.end()

    def _end_string(self) -> None:
        number, _, words = self._sequence.partition(";")
        if self._is_osc and number in ("0", "2"):
            self.title = clean_line(words, limit=80)
        self._sequence = ""

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


def _printed(run: str) -> Iterator[Token]:
    """Runs of ASCII, and all else one character at a time.

    One at a time because the emulator joins characters into clusters, and does so in the same way
    for every split of the bytes only if it never sees two that might belong together at once.
    """
    if run.isascii():
        yield Token("text", run)
        return
    for part in _RUN.findall(clean(run, limit=len(run) + 1)):
        yield Token("text", part)
