"""Words as the full-text index knows them, of texts and of queries.

SQLite cuts a text where no letter stands and stems English words. What that would lose is written as words
beforehand: scripts without spaces as pairs of letters, parts of identifiers, and signs such as emoji.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* N* Co M*'"

_STOP_WORDS = """
    a about after all also an and any are as at be because been but by can could did do does for from had
    has have he her him his how i if in into is it its just me more my no not of on one or our out she so
    some than that the their them then there these they this to up us was we were what when where which who
    why will with would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words that a query is better off without; they count where nothing else is left to find."""

QUERY_CHARACTERS = 10_000
"""Characters of a query that are looked at."""
QUERY_WORDS = 256
"""Words of a query that are looked for."""
REPEATED = 4
"""How often one word counts at most."""

_UNSPACED = re.compile(
    "[\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1050-\u109f\u1780-\u17d3\u3005\u3041-\u30fa"
    "\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]+"
)
"""Thai, Lao, Burmese, Khmer, Japanese, Chinese and Korean."""
_SIGN = re.compile("[\u231a-\u23ff\u2600-\u27bf\u2b50-\u2b55\U0001f000-\U0001faff]")
_VOWEL_POINTS = re.compile("[\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\ufe0e\ufe0f]")
"""Marks that Hebrew and Arabic are written with or without, and those that colour a sign."""
_MARKS = "\u0300-\u036f\u0483-\u0489\u06d6-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0\u0900-\u0963\u0966-\u0dff"
_WORD = re.compile(f"(?:[^\\W_]|[{_MARKS}]|{_UNSPACED.pattern})+")
_HUMPS = re.compile(r"\b[A-Za-z0-9]*(?:[a-z0-9][A-Z]|[A-Z][A-Z][a-z])[A-Za-z0-9]*\b")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def indexed(text: str, *, asked: bool = False) -> str:
    """A text as it is written into the index.

    Args:
        text: any text.
        asked: whether it is a query; then no last letter stands by itself behind its pairs.
    """
    if not text.isascii():
        text = _VOWEL_POINTS.sub("", unicodedata.normalize("NFKC", text))
        text = _SIGN.sub(lambda sign: f" sign{ord(sign[0]):x} ", text)
        text = _UNSPACED.sub(lambda run: f" {_pairs(run[0], asked)} ", text)
    if text.islower() or not text:
        return text
    return _HUMPS.sub(lambda word: f"{word[0]} {' '.join(_HUMP.findall(word[0]))}", text)


def _pairs(run: str, asked: bool) -> str:
    pairs = [run[at : at + 2] for at in range(len(run) - 1)]
    return " ".join(pairs if asked and pairs else [*pairs, run[-1]])


class Tokens:
    """Cuts and stems words as SQLite itself does."""

    def __init__(self) -> None:
        self._scratch = sqlite3.connect(":memory:", check_same_thread=False)
        self._scratch.execute(f'create virtual table q using fts5(x, tokenize = "{TOKENIZER}")')
        self._scratch.execute("create virtual table qv using fts5vocab(q, 'instance')")

    def words_of(self, query: str) -> dict[str, str]:
        """The words of a query by their stem, as the index is asked for them; none for signs alone.

        What a query says more than once, in whatever form, is asked for as often, so that it weighs more.
        """
        words = _WORD.findall(indexed(query[:QUERY_CHARACTERS], asked=True))[:QUERY_WORDS]
        asked: dict[str, list[str]] = {}
        for term, at in self._cut(words):
            asked.setdefault(term, []).append(as_asked(words[at]))
        return {term: " OR ".join(forms[:REPEATED]) for term, forms in asked.items()}

    def stems_of(self, texts: Sequence[str]) -> list[set[str]]:
        """The stems of the words of each text."""
        stems: list[set[str]] = [set() for _ in texts]
        for term, at in self._cut([indexed(text) for text in texts]):
            stems[at].add(term)
        return stems

    def counts_of(self, texts: Sequence[str]) -> list[Counter[str]]:
        """How often each stem stands in each text, without those of stop words."""
        counts = [Counter[str]() for _ in texts]
        # What an operator types may hold half surrogate pairs, which SQLite refuses.
        for term, at in self._cut([indexed(text.encode("utf-8", "replace").decode()) for text in texts]):
            if term not in self._stop:
                counts[at][term] += 1
        return counts

    @cached_property
    def _stop(self) -> set[str]:
        return {term for term, _ in self._cut(sorted(STOP_WORDS))}

    def _cut(self, texts: Sequence[str]) -> list[tuple[str, int]]:
        """All words of texts by their stem, each with the place of its text."""
        return [(term, at) for term, at, _ in self.places_of(texts)]

    def places_of(self, texts: Sequence[str]) -> list[tuple[str, int, int]]:
        """All words of texts by their stem, each with the place of its text and its own place there."""
        self._scratch.executemany("insert into q(rowid, x) values(?, ?)", list(enumerate(texts)))
        rows = self._scratch.execute("select term, doc, offset from qv order by doc, offset").fetchall()
        self._scratch.rollback()
        return [(str(term), int(at), int(place)) for term, at, place in rows]

    def close(self) -> None:
        """Close the scratch database."""
        self._scratch.close()


def as_asked(word: str) -> str:
    """A word as FTS5 is asked for it; one letter of a script without spaces begins a pair."""
    return f'"{word}"*' if len(word) == 1 and _UNSPACED.match(word) else f'"{word}"'


def phrase(text: str) -> str:
    """A phrase as FTS5 is asked for it; empty for one without a word."""
    words = " ".join(_WORD.findall(indexed(text, asked=True)))
    return words and as_asked(words)


# ------------------------------------------------------------------ misspelt words

NEAR = 3
"""Words that one is looked for by in its stead."""


def nearest_words(word: str, terms: Iterable[tuple[str, int]]) -> list[str]:
    """The stems that a misspelt or unfinished word may stand for, best first.

    Args:
        word: a stem that stands nowhere.
        terms: stems, and in how many texts each stands.
    """
    most = 0 if len(word) < 5 else 1 if len(word) < 8 else 2
    letters = set(word)
    found = []
    for term, count in terms:
        if term.startswith(word):
            found.append((0, len(term), -count, term))
        elif abs(len(term) - len(word)) <= most and len(letters ^ set(term)) <= 2 * most:
            steps = _steps(word, term)
            if steps <= most:
                found.append((steps, 0, -count, term))
    return [term for *_, term in sorted(found)[:NEAR]]


def _steps(one: str, other: str) -> int:
    """Letters that are added, left out, replaced or swapped between two words."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        before, row, last = row, [at], before
        for to, against in enumerate(other, 1):
            best = min(before[to] + 1, row[-1] + 1, before[to - 1] + (letter != against))
            if at > 1 and to > 1 and letter == other[to - 2] and one[at - 2] == against:
                best = min(best, last[to - 2] + 1)
            row.append(best)
    return row[-1]


def beginnings(word: str) -> Collection[str]:
    """How words begin among which those nearest to a word are looked for."""
    return {word[:2], word[1::-1], word[1:3], word[0] + word[2:3]}
