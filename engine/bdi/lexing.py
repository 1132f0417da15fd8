"""The text of a program cut into tokens, each with its place."""

from __future__ import annotations

import re
from bisect import bisect_right

from engine.bdi.syntax import Position

NAME, VARIABLE, NUMBER, STRING, BAD = "name", "variable", "number", "string", "bad"
"""Kinds of tokens that carry a text; the kind of any other is the mark or word itself."""

END = "end"
"""Kind of the token behind the last."""

DOC = "//@"
"""Opens a documentation comment, which ends with its line."""

WORDS = frozenset({"not", "div", "mod"})

_NAME = r"[^\W\d_A-Z]\w*(?:\.[^\W\d_A-Z]\w*)*"
_TOKEN = re.compile(
    rf"""(?:\s++|//(?!@)[^\n]*+|/\*.*?\*/)*+
    (?:(?P<name>\.?{_NAME})
    |(?P<variable>[A-Z_]\w*)
    |(?P<mark><-|:-|\\==|\\=|==|=\.\.|!=|<=|>=|\*\*|!!|//@|/(?!\*)|[-+*<>=!?@:;,.()\[\]{{}}|&~^])
    |(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    |(?P<string>"(?:[^"\\\n]|\\[^\n])*+")
    |(?P<quoted>'(?:[^'\\\n]|\\[^\n])++')
    |(?P<bad>/\*.*|["'][^\n]*|.)
    |(?P<end>\Z))""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_MEANT = {"n": "\n", "t": "\t", "r": "\r"}


class Tokens:
    """The tokens of a text as parallel lists; documentation comments are set apart."""

    __slots__ = ("docs", "kinds", "offsets", "text", "texts")

    def __init__(self, text: str, start: int = 0, stop: int | None = None) -> None:
        self.text = text
        self.kinds: list[str] = []
        self.texts: list[str] = []
        self.offsets: list[int] = []
        self.docs: list[tuple[int, int]] = []
        """Start and end of what each documentation comment says."""
        self._cut(start, len(text) if stop is None else stop)

    def _cut(self, start: int, stop: int) -> None:
        kinds, texts, offsets = self.kinds, self.texts, self.offsets
        match = _TOKEN.match
        found = match(self.text, start, stop)
        while found is not None:
            kind = found.lastgroup or END
            text = found[kind]
            start = found.end()
            if kind == "mark":
                kind = text
                if text == DOC:
                    line_end = self.text.find("\n", start, stop)
                    line_end = stop if line_end < 0 else line_end
                    self.docs.append((start, line_end))
                    found = match(self.text, line_end, stop)
                    continue
            elif kind == NAME:
                if text in WORDS:
                    kind = text
            elif kind == "quoted":
                kind, text = NAME, unescaped(text)
            kinds.append(kind)
            texts.append(text)
            offsets.append(found.start(found.lastgroup or END))
            if kind == END:
                return
            found = match(self.text, start, stop)


def unescaped(text: str) -> str:
    """What stands between the quotes of a string or quoted name."""
    inner = text[1:-1]
    if "\\" not in inner:
        return inner
    return _ESCAPE.sub(lambda found: _MEANT.get(found[1], found[1]), inner)


class Lines:
    """Turns offsets into lines and columns."""

    __slots__ = ("_starts",)

    def __init__(self, text: str) -> None:
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def at(self, offset: int) -> Position:
        """Line and column of an offset, both from 1."""
        line = bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1)


def described(kind: str, text: str) -> str:
    """A token in the words of an error message."""
    if kind == END:
        return "the end of the text"
    if kind != BAD:
        return f"'{text}'" if len(text) < 40 else f"'{text[:37]}...'"
    if text.startswith("/*"):
        return "a comment without its '*/'"
    if text[0] in "\"'":
        return f"a text without its closing {text[0]}"
    return f"the character {text!r}"
