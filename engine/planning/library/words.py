"""Words: the text of a goal cut into words, quoted texts and punctuation, each with its place."""

from __future__ import annotations

from engine.value import dataclass

QUOTES = {"'": "'", '"': '"', "`": "`", "‘": "’", "“": "”", "«": "»", "„": "“"}
"""Opening quotes and what closes them; there is no escape, the other quotes serve for that."""

_PUNCTUATION = ",;:.!?"
_AFTER_QUOTE = ",;:.!?)]}"
_BEFORE_INNER_QUOTE = "=([{,:"


@dataclass(frozen=True, slots=True)
class Word:
    """One word, quoted text or punctuation mark of a text."""

    text: str
    """As it stands in the source, quotes included."""
    value: str
    """Its meaning: the text without the quotes around it."""
    start: int
    """Offset of its first character in the source."""
    end: int
    """Offset after its last character."""
    quoted: bool = False
    lines_before: int = 0
    """Line breaks between the word before and this one."""
    unclosed: bool = False
    """True when it starts with a quote that nothing closes."""

    mark: bool = False
    """True for a punctuation mark after a word; a lone `.` is a path, not a mark."""

    @property
    def soft(self) -> bool:
        """True for a mark that may stand between any two words (`,` and `:`)."""
        return self.mark and self.text in (",", ":")

    @property
    def key(self) -> str:
        """What literal words are compared with: caseless, and empty for quoted text."""
        return "" if self.quoted else self.text.casefold()


def words_of(source: str) -> tuple[Word, ...]:
    """Cut a text into words; linear in its length whatever it holds.

    A quote opens at the start of a word and closes before white space, punctuation or the end, so
    that `don't` is a word and `'it's'` one quoted text. Punctuation at the end of a word is a word
    of its own; dots inside names (`notes.txt`, `v1.2`, `..`) stay.
    """
    return _Cutter(source).cut()


class _Cutter:
    """The state of one pass over a text."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.found: list[Word] = []
        self.lines = 0
        self._unclosable: set[str] = set()

    def cut(self) -> tuple[Word, ...]:
        at = 0
        while at < len(self.source):
            char = self.source[at]
            if char.isspace():
                self.lines += char == "\n"
                at += 1
            elif char in QUOTES and (close := self._closing(at)) is not None:
                self._add(at, close + 1, self.source[at + 1 : close], quoted=True)
                at = close + 1
            else:
                at = self._plain(at)
        return tuple(self.found)

    def _closing(self, opening: int) -> int | None:
        """Where the quote that opens here closes, or None."""
        mark = QUOTES[self.source[opening]]
        if mark in self._unclosable:
            return None
        at = self.source.find(mark, opening + 1)
        while at != -1:
            after = self.source[at + 1 : at + 2]
            if not after or after.isspace() or after in _AFTER_QUOTE:
                return at
            at = self.source.find(mark, at + 1)
        # Nothing closes it from here on, so nothing will later either: each quote is searched once.
        self._unclosable.add(mark)
        return None

    def _plain(self, start: int) -> int:
        at = start
        while at < len(self.source) and not self.source[at].isspace():
            inner = at > start and self.source[at] in "'\"`" and self.source[at - 1] in _BEFORE_INNER_QUOTE
            close = self._closing(at) if inner else None
            at = at + 1 if close is None else close + 1
        end = at
        while end > start and self._peels(start, end):
            end -= 1
        if end > start:
            self._add(start, end, unclosed=self.source[start] in QUOTES)
        for place in range(end, at):
            self._add(place, place + 1, mark=True)
        return at

    def _peels(self, start: int, end: int) -> bool:
        """True when the last character is punctuation after the word, not part of it."""
        last = self.source[end - 1]
        if last not in _PUNCTUATION:
            return False
        before = self.source[end - 2 : end - 1] if end - 1 > start else ""
        return last != "." or (before not in ("", ".", "/"))

    def _add(self, start: int, end: int, value: str | None = None, **facts: bool) -> None:
        text = self.source[start:end]
        meant = text if value is None else value
        self.found.append(Word(text, meant, start, end, lines_before=self.lines, **facts))
        self.lines = 0
