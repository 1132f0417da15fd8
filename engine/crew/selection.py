"""The selection graph: which agents fit a signal, in what order and why.

The graph is what the registered specs declare, with how their uses ended, and a pure function of both.
Triggers are compared as wholes: no stemming, and no parts of words. The words of a request are compared by
their stems with what an agent's spec says of it, by BM25, and with the tasks that it was given before: each
outcome is an edge between a word and an agent, which later outcomes make weaker.
"""

from __future__ import annotations

import math
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cache, lru_cache
from typing import Any

from engine.core.bm25 import Bm25
from engine.core.text import clean_line
from engine.crew.ontology.spec import AgentSpec
from engine.memory.words import Tokens
from engine.value import dataclass, replace

CLARIFIER = "larry"
"""Who is asked when nothing fits: clarity comes first, never an agent at random."""
LIMIT = 5
"""Candidates of a selection."""
LOST_LIMIT = 20
"""How many of those that fit and were not selected are named."""

TRIGGER, PROBLEM, CHAIN, RECORD = 0.6, 0.4, 0.3, 0.1
WORDS, LEARNED = 0.1, 2.0
ENOUGH = 0.7
"""What words must score for an agent to fit where nothing else speaks for it."""
OTHERS = 10
"""Agents that are counted beside those of a crew, for how rare a word is."""
HALF_LIFE = 100
"""Outcomes after which an outcome counts half."""
REMEMBERED = 500
"""Outcomes that are looked at, and uses of an agent that its record counts: the newest."""
INSTRUCTIONS, TASK = 8_000, 2_000
"""Characters that are looked at."""
SHOWN_WORDS = 5


def normalise(text: str) -> str:
    """A word or phrase as it is compared: NFKC, casefold, `_` as `-`, single blanks between words.

    Normalising twice changes nothing.
    """
    while True:
        # Folding can leave what composes again, and composing what folds; both settle after a round or two.
        folded = " ".join(unicodedata.normalize("NFKC", text).casefold().replace("_", "-").split())
        if folded == text:
            return folded
        text = folded


def normalised(words: Iterable[str]) -> tuple[str, ...]:
    """Words normalised in their order, each once; blank ones are dropped."""
    return tuple(dict.fromkeys(word for word in map(normalise, words) if word))


def triggers_in(text: str, vocabulary: Iterable[str]) -> tuple[str, ...]:
    """The triggers of a vocabulary that a text holds as whole words, those of several words as phrases.

    Words that a hyphen joins are one word, as are those that `_` joins: `defined` is not in `ill-defined`.

    Args:
        text: what a person or an agent said.
        vocabulary: triggers of registered agents.

    Returns:
        Normalised triggers, sorted.
    """
    inside = normalise(text)
    return tuple(sorted(trigger for trigger in normalised(vocabulary) if _stands_in(trigger, inside)))


def _stands_in(trigger: str, text: str) -> bool:
    at = text.find(trigger)
    while at >= 0:
        end = at + len(trigger)
        if not _goes_on(text[max(0, at - 2) : at][::-1]) and not _goes_on(text[end : end + 2]):
            return True
        at = text.find(trigger, at + 1)
    return False


def _goes_on(beyond: str) -> bool:
    """Whether a word continues with the one or two characters beyond it, nearest first."""
    return any(map(_is_letter, beyond[:1])) or (beyond[:1] == "-" and any(map(_is_letter, beyond[1:])))


def _is_letter(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character).startswith("M")


Uses = Mapping[tuple[str, str], bool]
"""By agent and session, whether the use succeeded."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a task ended that an agent was given."""

    agent: str
    task: str
    value: float
    """1 for achieved, below 0 for rejected or cancelled."""


@dataclass(frozen=True, slots=True)
class Signal:
    """What a selection is asked."""

    triggers: tuple[str, ...] = ()
    """As they were said; they are normalised for comparing."""
    problem_types: tuple[str, ...] = ()
    previous: tuple[str, ...] = ()
    """Ids of agents that have finished."""
    done: tuple[str, ...] | None = None
    """Ids of those that have finished this very task; None for all that have finished."""
    available: tuple[str, ...] | None = None
    """Ids to choose among; None for all."""
    limit: int = LIMIT
    text: str = ""
    """The whole request; empty where only triggers count."""


def signal_in(text: str, specs: Iterable[AgentSpec], **more: Any) -> Signal:
    """The signal that a text gives: the triggers and types of problems that it holds as whole words.

    Args:
        text: what a person or an agent said.
        specs: the agents whose triggers are looked for.
        more: the other fields of the signal.
    """
    words, kinds = set[str](), set[str]()
    for spec in specs:
        words |= set(spec.triggers.keywords)
        kinds |= {fit.type for fit in spec.triggers.problem_types}
    return Signal(triggers_in(text, words), triggers_in(text, kinds), text=text, **more)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An agent with what it scored."""

    id: str
    T: float = 0.0
    """0.6 where a trigger matches."""
    P: float = 0.0
    """Up to 0.4, by how good it is for the type of problem."""
    C: float = 0.0
    """Up to 0.3, by the chains from what has finished."""
    R: float = 0.0
    """-0.05 to 0.05, by its record."""
    W: float = 0.0
    """By the words of the request that its description and instructions hold."""
    L: float = 0.0
    """-2 to 2, by how tasks with the same words ended."""
    why: tuple[str, ...] = ()
    """Sentences that say where the points come from, one for each part that counts; safe to show."""
    lost: str = ""
    """Why it was not selected although something speaks for it; empty for one that was."""

    @property
    def score(self) -> float:
        """All parts together, to six places."""
        return round(math.fsum(self.parts.values()), 6)

    @property
    def fits(self) -> bool:
        """Whether what was said speaks for it; what has finished adds to that, and is not enough."""
        return self.T + self.P > 0 or self.C + self.W + self.L >= ENOUGH

    @property
    def parts(self) -> dict[str, float]:
        """What the score is made of."""
        return {"T": self.T, "P": self.P, "C": self.C, "R": self.R, "W": self.W, "L": self.L}


@dataclass(frozen=True, slots=True)
class Selection:
    """What was selected, and which others fitted and why they were not."""

    rows: tuple[Candidate, ...]
    lost: tuple[Candidate, ...]
    """At most 20, best first."""

    @property
    def route(self) -> str:
        """The id of the first row, or of the clarifier."""
        return self.rows[0].id if self.rows else CLARIFIER


def chains_of(spec: AgentSpec) -> dict[tuple[str, str], float]:
    """The chains that a spec declares, by who comes before whom."""
    chains = {(spec.id, edge.id): edge.weight for edge in spec.chaining.precedes}
    return chains | {(edge.id, spec.id): edge.weight for edge in spec.chaining.follows}


def choose(
    specs: Iterable[AgentSpec], uses: Uses, signal: Signal, outcomes: Sequence[Outcome] = ()
) -> Selection:
    """Select among agents: those that fit, sorted by score and id, barred ones apart.

    Args:
        specs: the registered agents.
        uses: how their uses ended.
        signal: what is asked.
        outcomes: how tasks ended, oldest first.
    """
    specs = list(specs)
    words = _WordParts(specs, signal.text, outcomes)
    chains: dict[tuple[str, str], float] = {}
    for spec in specs:
        for ends, weight in chains_of(spec).items():
            chains[ends] = max(weight, chains.get(ends, 0.0))
    open_to: list[Candidate] = []
    lost: list[Candidate] = []
    measured = [(words.added(_measured(spec, chains, uses, signal)), _barred(spec, signal)) for spec in specs]
    for row, reason in sorted(measured, key=lambda pair: (-pair[0].score, pair[0].id)):
        if not (row.fits or (row.C and not signal.text)):
            continue
        if not reason and len(open_to) < signal.limit:
            open_to.append(row)
        else:
            lost.append(replace(row, lost=reason or f"{signal.limit} others scored higher."))
    return Selection(tuple(open_to), tuple(lost[:LOST_LIMIT]))


def _barred(spec: AgentSpec, signal: Signal) -> str:
    """Why an agent cannot be selected whatever it scores; empty where it can."""
    if not spec.selectable:
        return "It is disabled."
    if spec.id in (signal.previous if signal.done is None else signal.done):
        return "It has finished already."
    unavailable = signal.available is not None and spec.id not in signal.available
    return "It is not available here." if unavailable else ""


def _record(ended: Sequence[bool]) -> tuple[float, str]:
    """The part of a score that uses give, by how they ended, and its sentence."""
    if not (ended := ended[-REMEMBERED:]):
        return 0.0, ""
    record = RECORD * ((sum(ended) + 1) / (len(ended) + 2) - 0.5)
    return record, f"{sum(ended)} of {len(ended)} uses succeeded: {record:+.3f}."


class _WordParts:
    """What the words of a request say for and against agents.

    Args:
        specs: the agents.
        text: the request.
        outcomes: how tasks ended, oldest first.
    """

    def __init__(self, specs: Sequence[AgentSpec], text: str, outcomes: Sequence[Outcome]) -> None:
        words = text[:TASK].split()
        if not words:
            specs = outcomes = ()
        self._words: dict[str, str] = {}
        for word, stems in zip(words, _tokens().counts_of(words), strict=True):
            for stem in stems:
                self._words.setdefault(stem, clean_line(word.strip(".,;:!?()\"'")))
        heads = [" ".join((spec.id, spec.name, spec.description, *spec.triggers.keywords)) for spec in specs]
        bodies = [spec.instructions.system[:INSTRUCTIONS] for spec in specs]
        wholes = [_stems(f"{head} {body}") for head, body in zip(heads, bodies, strict=True)]
        self._stems = {spec.id: stems for spec, stems in zip(specs, wholes, strict=True)}
        # What names an agent counts twice: among its instructions, and by itself.
        both = [Bm25(stems, OTHERS) for stems in (wholes, [_stems(head) for head in heads])]
        scores = zip(*(by.scores(self._words) for by in both), strict=True)
        self._scores = {name: WORDS * sum(pair) for name, pair in zip(self._stems, scores, strict=True)}
        self._rarities = {stem: both[0].rarity(stem) for stem in self._words}
        self._past: dict[str, list[tuple[float, float, Set[str]]]] = defaultdict(list)
        for age, outcome in enumerate(reversed(outcomes[-REMEMBERED:])):
            if shared := self._words.keys() & _stems(outcome.task[:TASK]).keys():
                self._past[outcome.agent].append((0.5 ** (age / HALF_LIFE), outcome.value, shared))

    def added(self, candidate: Candidate) -> Candidate:
        """A candidate with these parts, and a sentence for each."""
        score, past = self._scores.get(candidate.id, 0.0), self._past.get(candidate.id, ())
        learned, why = 0.0, list(candidate.why)
        if score:
            why.append(f"About {self._named(self._stems[candidate.id])}: {score:+.2f}.")
        if past:
            edges = {
                stem: math.fsum(decay * value for decay, value, shared in past if stem in shared)
                / (1 + math.fsum(decay for decay, _, shared in past if stem in shared))
                for stem in self._words
            }
            total = math.fsum(self._rarities[stem] * edge for stem, edge in edges.items())
            learned = LEARNED * total / math.fsum(self._rarities.values())
            good, words = (
                sum(value > 0 for _, value, _ in past),
                {stem for *_, shared in past for stem in shared},
            )
            why.append(
                f"{good} of {len(past)} tasks with {self._named(words)} were achieved: {learned:+.2f}."
            )
        return replace(candidate, W=score, L=learned, why=tuple(why))

    def _named(self, stems: Iterable[str]) -> str:
        """The rarest words of the request that are among these stems."""
        among = sorted(self._words.keys() & stems, key=lambda stem: (-self._rarities[stem], stem))
        return ", ".join(dict.fromkeys(self._words[stem] for stem in among[:SHOWN_WORDS]))


@cache
def _tokens() -> Tokens:
    return Tokens()


@lru_cache(maxsize=4_096)
def _stems(text: str) -> Mapping[str, int]:
    return _tokens().counts_of([text])[0]


def _measured(
    spec: AgentSpec, chains: Mapping[tuple[str, str], float], uses: Uses, signal: Signal
) -> Candidate:
    """An agent with what it scores, whether or not it could be selected."""
    why = []
    words, kinds = set(normalised(signal.triggers)), set(normalised(signal.problem_types))
    triggers = [word for word in normalised(spec.triggers.keywords) if word in words]
    trigger = TRIGGER if triggers else 0.0
    if triggers:
        noun = "Trigger" if len(triggers) == 1 else "Triggers"
        why.append(f"{noun} {', '.join(triggers)}: {trigger:+.2f}.")
    rated = {normalise(fit.type): fit.confidence for fit in spec.triggers.problem_types}
    rated = {name: value for name, value in sorted(rated.items()) if name in kinds}
    problem = PROBLEM * max(rated.values(), default=0.0)
    if problem:
        types = ", ".join(f"{name} ({value:g})" for name, value in rated.items())
        why.append(f"Good for {types}: {problem:+.2f}.")
    before = {src: value for (src, dst), value in chains.items() if dst == spec.id and src in signal.previous}
    before.pop(spec.id, None)
    total = math.fsum(before.values())
    chain = CHAIN * min(1.0, total)
    if before:
        named = sorted(before.items(), key=lambda pair: (-pair[1], pair[0]))
        message = ", ".join(f"{name} ({weight:g})" for name, weight in named)
        why.append(f"Follows {message}{', counted as 1' if total > 1 else ''}: {chain:+.2f}.")
    record, sentence = _record([success for (agent, _), success in uses.items() if agent == spec.id])
    why += [sentence] if sentence else []
    return Candidate(spec.id, trigger, problem, chain, record, why=tuple(map(clean_line, why)))
