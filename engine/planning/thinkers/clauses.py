"""Cuts a goal's text where a new thing to do begins, and resolves `it`, `the file` and `the project`."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from engine.core.actions import SandboxSession
from engine.planning.library.parameters import ParameterType, Reference
from engine.planning.library.plan_library import PlanLibrary
from engine.planning.library.words import Word, words_of
from engine.value import dataclass

_JOINTS = frozenset({"and", "then", "&", "also"})


def _by_first_word(phrases: str) -> dict[str, tuple[tuple[str, ...], ...]]:
    by_word: dict[str, tuple[tuple[str, ...], ...]] = {}
    for phrase in phrases.split("|"):
        words = tuple(phrase.split())
        by_word[words[0]] = (*by_word.get(words[0], ()), words)
    return by_word


_LEADS = _by_first_word(
    "please|kindly|now|just|first|firstly|second|secondly|next|finally|lastly|afterwards|after that|also|and|"
    "then|&|plus|so|ok|okay|hi|hello|hey|could you|can you|would you|will you|to|i want you to|i need you to|"
    "i would like you to|i'd like you to|i want to|i would like to|i'd like to|i need to|we need to|let's|"
    "let us|you should|make sure to|don't forget to|go ahead|do the following|do this|your task is to|"
    "your goal is to"
)
_TAILS = (("please",), ("thanks",), ("thank", "you"))
_BULLETS = frozenset("-*•–·")
_NUMBERED = re.compile(r"\d{1,3}\)?|[a-z]\)")


@dataclass(frozen=True, slots=True)
class Clause:
    """One thing that a goal asks for."""

    words: tuple[Word, ...]
    source: str
    """The whole text the words are from."""

    @property
    def text(self) -> str:
        """The clause verbatim."""
        return self.source[self.words[0].start : self.words[-1].end]

    @property
    def stops(self) -> frozenset[int]:
        """Numbers of words after which a joint stands, so that the clause might end there."""
        return frozenset(at for at, word in enumerate(self.words) if at > 0 and _joins(word))

    def after(self, count: int) -> Clause | None:
        """What follows the first words, without the joint between; None when nothing does."""
        return _clause(self.source, self.words, _past_leads(self.words, count), len(self.words))


def split_clauses(source: str, library: PlanLibrary) -> tuple[Clause, ...]:
    """Cut a goal into clauses.

    A clause ends at `;`, at the end of a sentence, at a bullet or blank line; at a comma, `and`, `then`
    or a line break only where a verb of the library follows, so that lists stay whole. Nothing inside
    quotes ends a clause, and nothing after a quote that is not closed. Politeness and joints around a
    clause are dropped.
    """
    words = words_of(source)
    clauses: list[Clause] = []
    start = at = _past_leads(words, 0)
    while at < len(words) and not words[at].unclosed:
        if at == start or not _joins(words[at]):
            at += 1
            continue
        following = _past_leads(words, at)
        if _ends(words, at, following, library):
            _append(clauses, _clause(source, words, start, at))
            start = following
        # What was passed over needs no second look, so that a row of a thousand joints is read once.
        at = max(following, at + 1)
    _append(clauses, _clause(source, words, start, len(words)))
    return tuple(clauses)


def _append(clauses: list[Clause], clause: Clause | None) -> None:
    if clause is not None:
        clauses.append(clause)


def _clause(source: str, words: Sequence[Word], start: int, end: int) -> Clause | None:
    while end > start:
        tail = next(
            (t for t in _TAILS if _keys(words, end - len(t), len(t)) == t and end - len(t) > start), ()
        )
        if words[end - 1].mark or words[end - 1].key in _JOINTS:
            end -= 1
        elif tail:
            end -= len(tail)
        else:
            return Clause(tuple(words[start:end]), source)
    return None


def _keys(words: Sequence[Word], start: int, count: int) -> tuple[str, ...]:
    return tuple(word.key for word in words[max(start, 0) : start + count])


def _joins(word: Word) -> bool:
    return word.mark or word.key in _JOINTS or word.lines_before > 0 or word.text == ";"


def _ends(words: Sequence[Word], at: int, following: int, library: PlanLibrary) -> bool:
    """True when a clause ends before the joint here, and `following` starts the next one."""
    if following >= len(words):
        return True
    word, jump = words[at], words[at : following + 1]
    if word.mark and (word.text == ";" or (word.text in ".!?" and _starts_sentence(words[following]))):
        return True
    if any(w.lines_before > 1 or (w.lines_before and _bullet(words, at + i)) for i, w in enumerate(jump)):
        return True
    sure = any(w.key == "then" or (w.mark and w.text in ".!?") for w in jump)
    return _starts_clause(words, following, library, sure=sure)


def _starts_sentence(word: Word) -> bool:
    return word.text[0].isupper() or word.lines_before > 0


def _starts_clause(words: Sequence[Word], at: int, library: PlanLibrary, *, sure: bool) -> bool:
    """True when a verb of the library stands here; a lone word only when it is a clause by itself."""
    key = words[at].key
    if key not in library.verbs:
        return False
    alone = at + 1 >= len(words) or words[at + 1].mark or words[at + 1].key in _JOINTS
    if not alone or sure:
        return True
    return any(matcher.run(words[at : at + 1]).match for _, matcher in library.starting_with(key))


def _past_leads(words: Sequence[Word], at: int) -> int:
    """The first word from here that is no punctuation, bullet, joint or politeness."""
    while at < len(words):
        if words[at].mark:
            at += 1
        elif bullet := _bullet(words, at):
            at += bullet
        elif lead := _lead(words, at):
            at += lead
        else:
            break
    return at


def _lead(words: Sequence[Word], at: int) -> int:
    """How many words of politeness or joint stand here."""
    phrases = _LEADS.get(words[at].key, ())
    return max((len(phrase) for phrase in phrases if _keys(words, at, len(phrase)) == phrase), default=0)


def _bullet(words: Sequence[Word], at: int) -> int:
    """How many words a bullet here takes: 0 when there is none."""
    word = words[at]
    if (at > 0 and not word.lines_before) or word.quoted or at + 1 >= len(words):
        return 0
    if word.text in _BULLETS:
        return 1
    if _NUMBERED.fullmatch(word.text):
        return 1 if word.text.endswith(")") else int(words[at + 1].mark and words[at + 1].text == ".") * 2
    return 0


@dataclass(frozen=True, slots=True)
class Mention:
    """Something that was named."""

    kind: str
    """`file`, `directory`, `project` or `venv`."""
    path: str
    """Relative to the sandbox root, `/`-separated."""


class Context:
    """What a plan has named so far, and the directory it will be in."""

    def __init__(self, session: SandboxSession) -> None:
        self.cwd = session.cwd
        self._mentions: list[Mention] = []
        if self.cwd != ".":
            self._mentions.append(Mention("project", self.cwd))
        if session.venv:
            self._mentions.append(Mention("venv", session.venv))

    @property
    def project(self) -> str:
        """The name of the project the agent is in, `project` when there is none."""
        path = next((m.path for m in reversed(self._mentions) if m.kind == "project"), self.cwd)
        return posixpath.basename(path).strip(".") or "project"

    def name(self, kind: str, path: str) -> None:
        """Note that a clause named something, by a path relative to the directory the plan is in."""
        self._mentions.append(Mention(kind, self._from_root(path)))

    def enter(self, path: str) -> None:
        """Note that the plan changes its directory."""
        self.cwd = self._from_root(path)

    def resolve(self, reference: Reference, kind: ParameterType) -> str | None:
        """The last thing named that a reference fits, relative to the directory the plan is in."""
        for mention in reversed(self._mentions):
            path = posixpath.relpath(mention.path, self.cwd)
            if mention.kind in reference.kinds and kind.accepts(Word(path, path, 0, 0, quoted=True)):
                return path
        return None

    def _from_root(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self.cwd, path))
