"""The selection graph: which agents fit a signal, in what order and why.

The graph is what the registered specs declare, with how their uses ended, and a pure function of both.
Words are compared as wholes: no stemming, and no parts of words.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Literal

from engine.core.text import clean_line
from engine.crew.ontology.spec import ANYBODY, AgentSpec
from engine.value import dataclass, field

Rel = Literal["CHAINS_TO", "GOOD_FOR", "USED_BY"]
CLARIFIER = "larry"
"""Who is asked when nothing fits: clarity comes first, never an agent at random."""
LOST_LIMIT = 20
"""How many of those that fit and were not selected are named."""

TRIGGER, PROBLEM, CHAIN, RECORD = 0.6, 0.4, 0.3, 0.1


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
    """Whether a word goes on with the one or two characters beyond it, nearest first."""
    return any(map(_is_letter, beyond[:1])) or (beyond[:1] == "-" and any(map(_is_letter, beyond[1:])))


def _is_letter(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character).startswith("M")


@dataclass(frozen=True, slots=True)
class Node:
    """An agent that can be selected; its words are normalised."""

    id: str
    triggers: tuple[str, ...] = ()
    problem_types: tuple[str, ...] = ()
    """How sure the agent is of each stands in its GOOD_FOR edges."""
    enabled: bool = True
    callers: tuple[str, ...] = (ANYBODY,)
    """Ids of agents that may call it; `*` for all."""


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """A relation: between two agents, to a problem type, or to a session."""

    src: str
    rel: Rel
    dst: str
    """An agent's id, a normalised problem type, or a session's id."""
    value: float
    """Weight (0, 1], confidence [0, 1], or success as 1 or 0."""
    source: str = ""
    """Who declared it: two agents may each declare the chain between them."""


def node_of(spec: AgentSpec) -> Node:
    """The node of a spec; one that selection may not offer is disabled."""
    callers = spec.handoff.routing.can_be_called_by
    return Node(
        spec.id,
        normalised(spec.triggers.keywords),
        normalised(fit.type for fit in spec.triggers.problem_types),
        spec.selectable,
        (ANYBODY,) if callers == ANYBODY else tuple(callers),
    )


def edges_of(spec: AgentSpec) -> tuple[Edge, ...]:
    """The edges that a spec declares: its chains, `follows` reversed, with itself as their source."""
    chains = [(spec.id, edge.id, edge.weight) for edge in spec.chaining.precedes]
    chains += [(edge.id, spec.id, edge.weight) for edge in spec.chaining.follows]
    edges = {(src, dst): Edge(src, "CHAINS_TO", dst, weight, spec.id) for src, dst, weight in chains}
    good = {normalise(fit.type): fit.confidence for fit in spec.triggers.problem_types}
    return (*edges.values(), *(Edge(spec.id, "GOOD_FOR", kind, sure) for kind, sure in good.items() if kind))


def graph_of(specs: Iterable[AgentSpec], uses: Mapping[tuple[str, str], bool]) -> list[Facts]:
    """What is known of each agent, sorted by id.

    Args:
        specs: the registered agents.
        uses: by agent and session, whether the use succeeded.
    """
    specs = sorted(specs, key=lambda spec: spec.id)
    edges = [edge for spec in specs for edge in edges_of(spec)]
    edges += [Edge(agent, "USED_BY", session, float(success)) for (agent, session), success in uses.items()]
    return facts_of(map(node_of, specs), edges)


def signal_in(text: str, graph: Iterable[Facts], **more: Any) -> Signal:
    """The signal that a text gives: the triggers and types of problems that it holds as whole words.

    Args:
        text: what a person or an agent said.
        graph: whose agents' triggers are looked for.
        more: the other fields of the signal.
    """
    nodes = [facts.node for facts in graph]
    words, kinds = ({w for n in nodes for w in n.triggers}, {k for n in nodes for k in n.problem_types})
    return Signal(triggers_in(text, words), triggers_in(text, kinds), **more)


@dataclass(frozen=True)
class Signal:
    """What a selection is asked."""

    triggers: tuple[str, ...] = ()
    """As they were said; they are normalised for comparing."""
    problem_types: tuple[str, ...] = ()
    previous: tuple[str, ...] = ()
    """Ids of agents that have finished."""
    exclude: tuple[str, ...] = ()
    caller: str | None = None
    """The agent that would hand off; None when the choice is not restricted."""
    available: tuple[str, ...] | None = None
    """Ids to choose among; None for all."""
    limit: int = 5
    allow_repeat: bool = False
    """Whether an agent that has finished may be selected again."""

    @cached_property
    def finished(self) -> frozenset[str]:
        """The agents that have finished."""
        return frozenset(self.previous)

    @cached_property
    def compared(self) -> tuple[frozenset[str], frozenset[str]]:
        """Triggers and problem types as they are compared."""
        return frozenset(normalised(self.triggers)), frozenset(normalised(self.problem_types))


@dataclass(frozen=True, slots=True)
class Facts:
    """What the graph knows of one agent."""

    node: Node
    good_for: Mapping[str, float] = field(default_factory=dict)
    """Problem type → confidence."""
    before: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Who chains to it → the weights of the parallel edges."""
    uses: int = 0
    successes: int = 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What of a signal speaks for one agent."""

    triggers: tuple[str, ...] = ()
    rated: tuple[tuple[str, float], ...] = ()
    """Problem types that match by a GOOD_FOR edge, with its confidence."""
    listed: tuple[str, ...] = ()
    """Problem types that match because the agent only lists them."""
    chains: tuple[tuple[str, float], ...] = ()
    """Finished agents that it is chained with, and the weights, largest first."""
    uses: int = 0
    successes: int = 0

    @property
    def confidence(self) -> float:
        """The largest confidence of a matching type; 0 where none matches."""
        return 1.0 if self.listed else max((value for _, value in self.rated), default=0.0)

    @property
    def chain(self) -> float:
        """The weights together; the same for any order of them."""
        return math.fsum(weight for _, weight in self.chains)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An agent with what it scored."""

    node: Node
    T: float
    """0.6 where a trigger matches."""
    P: float
    """Up to 0.4, by how good it is for the type of problem."""
    C: float
    """Up to 0.3, by the chains from what has finished."""
    R: float
    """-0.05 to 0.05, by its record."""
    evidence: Evidence

    @property
    def id(self) -> str:
        """The agent's id."""
        return self.node.id

    @property
    def score(self) -> float:
        """All four together, to six places."""
        return round(self.T + self.P + self.C + self.R, 6)

    @property
    def matched(self) -> tuple[str, ...]:
        """The triggers that match."""
        return self.evidence.triggers

    @property
    def fits(self) -> bool:
        """Whether anything of the signal speaks for it."""
        return self.T + self.P + self.C > 0

    @property
    def order(self) -> tuple[float, int, float, str]:
        """What it is sorted by: score, matched triggers, largest single chain, id."""
        best = max((weight for _, weight in self.evidence.chains), default=0.0)
        return -self.score, -len(self.matched), -best, self.id

    @property
    def why(self) -> tuple[str, ...]:
        """Sentences that say where the points come from, one for each part that counts; safe to show."""
        return tuple(clean_line(sentence) for sentence in _reasons(self))


@dataclass(frozen=True, slots=True)
class Standing:
    """How an agent did in a selection."""

    candidate: Candidate
    place: int
    """1 for the first of those that could be selected; 0 for one that could not, or far behind."""
    reason: str
    """Why it was not selected; empty for one that was."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What was selected, and which others fitted and why they were not."""

    rows: tuple[Candidate, ...]
    lost: tuple[Standing, ...]
    """At most 20, best first."""

    @property
    def clarify(self) -> bool:
        """Nothing fits: it has to become clear first what is wanted."""
        return not self.rows

    @property
    def route(self) -> str:
        """The id of the first row, or of the clarifier."""
        return self.rows[0].id if self.rows else CLARIFIER


def barred(node: Node, signal: Signal) -> str:
    """Why an agent cannot be selected whatever it scores; empty where it can."""
    if not node.enabled:
        return "It is disabled."
    if node.id in signal.exclude:
        return "It was excluded."
    if node.id in signal.finished and not signal.allow_repeat:
        return "It has finished already."
    if signal.available is not None and node.id not in signal.available:
        return "It is not available here."
    if signal.caller == node.id:
        return "It is the one that asks."
    if signal.caller is not None and ANYBODY not in node.callers and signal.caller not in node.callers:
        return clean_line(f"{signal.caller} may not call it.")
    return ""


def evidence_of(facts: Facts, signal: Signal) -> Evidence:
    """What of a signal speaks for an agent."""
    words, types = signal.compared
    node = facts.node
    triggers = tuple(word for word in node.triggers if word in words)
    rated = tuple(sorted((good, value) for good, value in facts.good_for.items() if good in types))
    listed = tuple(good for good in node.problem_types if good in types and good not in facts.good_for)
    chains = [(other, max(map(_clamped, ws))) for other, ws in facts.before.items() if other != node.id]
    return Evidence(triggers, rated, listed, _sorted(chains, signal), facts.uses, facts.successes)


def _sorted(chains: list[tuple[str, float]], signal: Signal) -> tuple[tuple[str, float], ...]:
    kept = (chain for chain in chains if chain[0] in signal.finished)
    return tuple(sorted(kept, key=lambda chain: (-chain[1], chain[0])))


def _clamped(weight: float) -> float:
    return min(1.0, max(0.0, weight))


def measured(facts: Facts, signal: Signal) -> Candidate:
    """An agent with what it scores, whether or not it could be selected."""
    evidence = evidence_of(facts, signal)
    trigger = TRIGGER if evidence.triggers else 0.0
    problem, chain = PROBLEM * evidence.confidence, CHAIN * min(1.0, evidence.chain)
    share = (evidence.successes + 1) / (evidence.uses + 2) if evidence.uses else 0.5
    return Candidate(facts.node, trigger, problem, chain, RECORD * (share - 0.5), evidence)


def choose(graph: Iterable[Facts], signal: Signal) -> Selection:
    """Select among all agents of a graph: those that fit, sorted, barred ones apart.

    Args:
        graph: what is known of each agent.
        signal: what is asked.
    """
    candidates = (measured(facts, signal) for facts in graph)
    ranked = sorted((row for row in candidates if row.fits), key=lambda row: row.order)
    open_to: list[Candidate] = []
    lost: list[Standing] = []
    for row in ranked:
        if len(open_to) >= signal.limit and len(lost) == LOST_LIMIT:
            break
        if reason := barred(row.node, signal):
            lost.append(Standing(row, 0, reason))
            continue
        open_to.append(row)
        if len(open_to) > signal.limit:
            place = len(open_to)
            lost.append(Standing(row, place, f"It came {_ordinal(place)}; {signal.limit} were asked for."))
    return Selection(tuple(open_to[: signal.limit]), tuple(lost[:LOST_LIMIT]))


def facts_of(nodes: Iterable[Node], edges: Iterable[Edge]) -> list[Facts]:
    """What is known of each agent, out of plain rows."""
    good_for: dict[str, dict[str, float]] = {}
    before: dict[str, dict[str, tuple[float, ...]]] = {}
    uses: dict[str, list[float]] = {}
    for edge in edges:
        if edge.rel == "GOOD_FOR":
            good_for.setdefault(edge.src, {})[edge.dst] = edge.value
        elif edge.rel == "USED_BY":
            uses.setdefault(edge.src, []).append(edge.value)
        else:
            others = before.setdefault(edge.dst, {})
            others[edge.src] = (*others.get(edge.src, ()), edge.value)
    return [
        Facts(
            node,
            good_for.get(node.id, {}),
            before.get(node.id, {}),
            len(uses.get(node.id, ())),
            int(sum(uses.get(node.id, ()))),
        )
        for node in nodes
    ]


def _reasons(candidate: Candidate) -> Iterable[str]:
    evidence = candidate.evidence
    if evidence.triggers:
        noun = "Trigger" if len(evidence.triggers) == 1 else "Triggers"
        yield f"{noun} {', '.join(evidence.triggers)}: {candidate.T:+.2f}."
    if candidate.P:
        types = [*evidence.listed, *(f"{name} ({value:g})" for name, value in evidence.rated)]
        yield f"Good for {', '.join(types)}: {candidate.P:+.2f}."
    if evidence.chains:
        message = ", ".join(f"{name} ({weight:g})" for name, weight in evidence.chains)
        capped = ", counted as 1" if evidence.chain > 1 else ""
        yield f"Follows {message}{capped}: {candidate.C:+.2f}."
    if evidence.uses:
        yield f"{evidence.successes} of {evidence.uses} uses succeeded: {candidate.R:+.3f}."


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
