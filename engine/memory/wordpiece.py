"""Cuts text into the pieces that BERT's uncased models know, as their own tokenizer does."""

from __future__ import annotations

import gzip
import hashlib
import unicodedata
from collections.abc import Iterator
from pathlib import Path

VOCABULARY = Path(__file__).with_name("minilm_vocabulary.txt.gz")
"""The vocabulary of bert-base-uncased, by Google, under the Apache License 2.0."""
SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
LONGEST_WORD = 100
"""Characters from which a word is unknown."""
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


class WordPiece:
    """The longest pieces first, from the left; a word that is not made of known pieces is unknown."""

    def __init__(self) -> None:
        text = gzip.decompress(VOCABULARY.read_bytes())
        if hashlib.sha256(text).hexdigest() != SHA256:
            raise ValueError(f"{VOCABULARY} is not as it was installed: install Pilothouse again")
        self._numbers = {piece: number for number, piece in enumerate(text.decode().split("\n")[:-1])}
        self._known: dict[str, list[int]] = {}
        self._unknown, self._begin, self._end = (self._numbers[name] for name in ("[UNK]", "[CLS]", "[SEP]"))

    def encode(self, text: str, limit: int) -> list[int]:
        """The numbers of a text's pieces, with those of beginning and end, cut off after so many."""
        numbers = [self._begin]
        for word in _words(text):
            numbers += self._pieces(word)
            if len(numbers) >= limit:
                break
        return [*numbers[: limit - 1], self._end]

    def _pieces(self, word: str) -> list[int]:
        known = self._known.get(word)
        if known is None:
            if len(self._known) > 50_000:
                self._known.clear()
            known = self._known[word] = self._cut(word)
        return known

    def _cut(self, word: str) -> list[int]:
        pieces: list[int] = []
        at = 0
        while at < len(word) <= LONGEST_WORD:
            prefix = "##" if at else ""
            for end in range(len(word), at, -1):
                number = self._numbers.get(prefix + word[at:end])
                if number is not None:
                    pieces.append(number)
                    at = end
                    break
            else:
                return [self._unknown]
        return pieces or [self._unknown]


def _words(text: str) -> Iterator[str]:
    """Words and single signs, in small letters and without accents."""
    spaced = "".join(map(_spaced, text))
    plain = unicodedata.normalize("NFD", spaced.lower())
    for word in "".join(" " if char.isspace() else char for char in plain).split(" "):
        begin = 0
        kept = "".join(char for char in word if unicodedata.category(char) != "Mn")
        for at, char in enumerate(kept):
            if _is_sign(char):
                if at > begin:
                    yield kept[begin:at]
                yield char
                begin = at + 1
        if begin < len(kept):
            yield kept[begin:]


def _spaced(char: str) -> str:
    """A character as it counts: a control character not at all, one that is a word between blanks."""
    if char in "\t\n\r":
        return " "
    if char in "\0\ufffd" or unicodedata.category(char) in ("Cc", "Cf", "Co"):
        return ""
    return f" {char} " if any(low <= ord(char) <= high for low, high in _IDEOGRAPHS) else char


def _is_sign(char: str) -> bool:
    """Whether it is a word by itself: punctuation, or any printable sign of ASCII."""
    return (char < "\x7f" and not char.isalnum()) or unicodedata.category(char).startswith("P")
