"""Matching: whether a clause is what a pattern says, and with which parameters.

A pattern becomes a small automaton that is run over the words of a clause with all its states at
once (Thompson's construction with captures). The time is at most states times words: there is no
backtracking, whatever the clause holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from engine.planning.library import pattern as language
from engine.planning.library.parameters import POINTERS, PRONOUNS, ParameterType, Shape, points_at
from engine.planning.library.words import Word
from engine.value import dataclass, field

Capture = tuple[str, int, int]
"""Parameter, its first word, its last word."""


@dataclass(slots=True)
class _State:
    """A state: takes one word when `accepts` is set, else leads on without one."""

    accepts: Callable[[Word], bool] | None = None
    parameter: str = ""
    begins: bool = False
    """Whether taking a word begins the parameter's value, or continues with it."""
    literal: bool = False
    loose: bool = False
    """Whether it takes any word at all."""
    next: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Thread:
    """One way of having read the words so far."""

    state: int
    captures: tuple[Capture, ...] = ()
    literals: int = 0
    loose: int = 0


@dataclass(frozen=True, slots=True)
class Match:
    """A pattern fits the first words of a clause."""

    end: int
    """How many words it took."""
    captures: tuple[Capture, ...]
    literals: int
    """Literal words matched: the more, the more specific."""
    loose: int
    """Words taken by parameters that take anything: the fewer, the more specific."""


@dataclass(frozen=True, slots=True)
class MatchAttempt:
    """The result of running a pattern over a clause."""

    match: Match | None = None
    """The whole clause fits."""
    prefix: Match | None = None
    """The longest beginning that fits and stops at an allowed place."""
    reached: int = 0
    """Words read before no way was left."""
    literals: int = 0
    """Literal words read by the best way that got that far."""
    missing: str = ""
    """The parameter at which the clause ran out of words."""
    refused: str = ""
    """The parameter that could not take the word at `reached`."""


class Matcher:
    """A pattern made ready to run."""

    def __init__(self, pattern: language.Pattern) -> None:
        self.pattern = pattern
        self._states: list[_State] = []
        self._accept = self._new(_State())
        self._start = self._sequence(pattern.root, self._accept)

    def run(self, words: Sequence[Word], stops: Collection[int] = ()) -> MatchAttempt:
        """Run over the words of a clause.

        Args:
            words: the clause.
            stops: numbers of words after which a prefix may end.
        """
        threads = self._close([_Thread(self._start)])
        prefix: Match | None = None
        for at, word in enumerate(words):
            following = self._close(self._step(threads, at, word))
            if not following:
                return self._dead(threads, at, word, prefix)
            threads = following
            if at + 1 in stops and (accepted := self._accepted(threads, at + 1)) is not None:
                prefix = accepted
        match = self._accepted(threads, len(words))
        missing, literals = self._waiting(threads)
        return MatchAttempt(match, prefix, len(words), literals, missing)

    def _step(self, threads: list[_Thread], at: int, word: Word) -> list[_Thread]:
        following: list[_Thread] = []
        for thread in threads:
            state = self._states[thread.state]
            if state.accepts is None:
                continue
            if state.accepts(word):
                captures = thread.captures
                if state.parameter:
                    begin = at if state.begins else captures[-1][1]
                    before = captures if state.begins else captures[:-1]
                    captures = (*before, (state.parameter, begin, at))
                literals, loose = thread.literals + state.literal, thread.loose + state.loose
                following += [_Thread(n, captures, literals, loose) for n in state.next]
            elif word.soft and at > 0 and (state.literal or state.begins):
                following.append(thread)
        return following

    def _close(self, threads: list[_Thread]) -> list[_Thread]:
        """Follow the states that take no word; the first way to a state is the preferred one."""
        closed: list[_Thread] = []
        seen: set[int] = set()
        pending = threads[::-1]
        while pending:
            thread = pending.pop()
            if thread.state in seen:
                continue
            seen.add(thread.state)
            state = self._states[thread.state]
            if state.accepts is None and thread.state != self._accept:
                pending += [
                    _Thread(n, thread.captures, thread.literals, thread.loose) for n in reversed(state.next)
                ]
            else:
                closed.append(thread)
        return closed

    def _accepted(self, threads: list[_Thread], end: int) -> Match | None:
        for thread in threads:
            if thread.state == self._accept:
                return Match(end, thread.captures, thread.literals, thread.loose)
        return None

    def _dead(self, threads: list[_Thread], at: int, word: Word, prefix: Match | None) -> MatchAttempt:
        literals = max((thread.literals for thread in threads), default=0)
        refusing = [t for t in threads if self._states[t.state].begins and t.literals == literals]
        refused = self._states[refusing[0].state].parameter if refusing else ""
        return MatchAttempt(None, prefix, at, literals, "", refused)

    def _waiting(self, threads: list[_Thread]) -> tuple[str, int]:
        """The parameter that the way with the most literal words waits for, and their number."""
        best = ("", 0)
        for thread in threads:
            name = self._ahead(thread)
            if name and thread.literals > best[1]:
                best = (name, thread.literals)
        return best if best[0] else ("", max((t.literals for t in threads), default=0))

    def _ahead(self, thread: _Thread) -> str:
        """The parameter a thread waits for: at once, or after one word when it has one already."""
        state = self._states[thread.state]
        if state.begins:
            return state.parameter
        if state.literal and thread.captures:
            after = self._close([_Thread(n) for n in state.next])
            return next((s.parameter for t in after if (s := self._states[t.state]).begins), "")
        return ""

    def _new(self, state: _State) -> int:
        self._states.append(state)
        return len(self._states) - 1

    def _sequence(self, sequence: language.Sequence, then: int) -> int:
        for node in reversed(sequence.nodes):
            if isinstance(node, language.Literal):
                then = self._literal(node.word, then)
            elif isinstance(node, language.Parameter):
                then = self._parameter(node.name, node.type, then)
            else:
                ways = [self._sequence(option, then) for option in node.options]
                then = self._new(_State(next=[*ways, then] if node.optional else ways))
        return then

    def _literal(self, word: str, then: int) -> int:
        return self._new(_State(lambda given: given.key == word, literal=True, next=[then]))

    def _parameter(self, name: str, kind: ParameterType, then: int) -> int:
        loose = kind.shape in (Shape.WORDS, Shape.REST)
        first = _State(kind.accepts, name, begins=True, loose=loose, next=[then])
        if loose:
            return self._words(name, kind, then)
        entry = self._new(first)
        if kind.shape is Shape.LIST:
            self._list(name, kind, first, then)
        return self._new(_State(next=[entry, self._reference(name, kind, then)])) if kind.kinds else entry

    def _words(self, name: str, kind: ParameterType, then: int) -> int:
        more = _State(lambda _word: True, name, loose=True)
        again = self._new(more)
        # Words stop as early as the rest of the pattern allows; the rest goes on to the end.
        more.next = [self._new(_State(next=[then, again] if kind.shape is Shape.WORDS else [again, then]))]
        bare = _State(
            lambda w: not w.quoted and kind.accepts(w), name, begins=True, loose=True, next=more.next
        )
        if kind.shape is Shape.WORDS:
            bare.accepts = kind.accepts
            return self._new(bare)
        # With nothing after it in the pattern to hold it, text in quotes is the whole value unless words
        # follow directly: what comes after `'a',` or `'a' and` is another matter.
        direct = _State(lambda w: not (w.mark or _joins(w)), name, loose=True, next=more.next)
        after = self._new(_State(next=[then, self._new(direct)]))
        quoted = _State(lambda w: w.quoted and kind.accepts(w), name, begins=True, loose=True, next=[after])
        return self._new(_State(next=[self._new(quoted), self._new(bare)]))

    def _list(self, name: str, kind: ParameterType, first: _State, then: int) -> None:
        item, joint = _State(kind.accepts, name), _State(_joins, name)
        at_item, at_joint = self._new(item), self._new(joint)
        fork = self._new(_State(next=[at_joint, at_item, then]))
        joint.next = [self._new(_State(next=[at_joint, at_item]))]
        first.next = item.next = [fork]

    def _reference(self, name: str, kind: ParameterType, then: int) -> int:
        pronoun = self._new(_State(lambda word: word.key in PRONOUNS, name, begins=True, next=[then]))
        noun = self._new(_State(lambda word: points_at(kind, word), name, next=[then]))
        pointer = self._new(_State(lambda word: word.key in POINTERS, name, begins=True, next=[noun]))
        return self._new(_State(next=[pronoun, pointer]))


def _joins(word: Word) -> bool:
    return word.text == "," or word.key in ("and", "&")
