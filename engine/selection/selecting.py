"""Which agents fit a signal, in what order and why: the definition that every store must equal.

`corrected` is the definition of ontology spec §3.2; `literal` gives the numbers of the seed's query with its
grouping mended (§3.1), for comparison. Both are functions of plain values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from engine.domain.text import clean_line
from engine.selection.values import ANYONE, Edge, Node, Policy, Signal

CLARIFIER = "larry"
"""Who is asked when nothing fits: clarity comes first, never an agent at random."""
LOST_LIMIT = 20
"""How many of those that fit and were not selected are told."""

TRIGGER, PROBLEM, CHAIN, RECORD = 0.6, 0.4, 0.3, 0.1

Parts = tuple[float, float, float, float]
"""T, P, C and R."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the graph knows of one agent."""

    node: Node
    good_for: Mapping[str, float] = field(default_factory=dict)
    """Problem type → confidence."""
    before: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Who chains to it → the weights of the parallel edges."""
    after: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Whom it chains to → the weights of the parallel edges."""
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
    """Up to 0.3, by the chains from what has finished (literal: to it, without an upper end)."""
    R: float
    """-0.05 to 0.05, by its record."""
    evidence: Evidence
    policy: Policy = "corrected"

    @property
    def id(self) -> str:
        """The agent's id."""
        return self.node.id

    @property
    def score(self) -> float:
        """All four together, to six places."""
        return together((self.T, self.P, self.C, self.R))

    @property
    def matched(self) -> tuple[str, ...]:
        """The triggers that match."""
        return self.evidence.triggers

    @property
    def fits(self) -> bool:
        """Whether anything of the signal speaks for it."""
        if self.policy == "literal":
            return self.T + self.P > 0
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

    policy: Policy
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


def corrected_parts(matched: int, confidence: float, chain: float, successes: int, uses: int) -> Parts:
    """T, P, C and R (ontology spec §3.2).

    Args:
        matched: how many triggers match.
        confidence: the largest of the matching problem types, 0 to 1.
        chain: the weights of the chains from finished agents together.
        successes: how many uses succeeded.
        uses: how often it was used.
    """
    record = RECORD * ((successes + 1) / (uses + 2) - 0.5) if uses else 0.0
    return (TRIGGER if matched else 0.0, PROBLEM * confidence, CHAIN * min(1.0, chain), record)


def literal_parts(matched: int, confidence: float, chain: float) -> Parts:
    """The same as the seed's query counts them (spec §3.1): no confidence, no record, no upper end."""
    return (TRIGGER if matched else 0.0, PROBLEM if confidence else 0.0, CHAIN * chain, 0.0)


def together(parts: Parts) -> float:
    """The score that parts come to, to six places."""
    return round(sum(parts), 6)


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
    if signal.caller is not None and ANYONE not in node.callers and signal.caller not in node.callers:
        return clean_line(f"{signal.caller} may not call it.")
    return ""


def evidence_of(facts: Facts, signal: Signal, policy: Policy) -> Evidence:
    """What of a signal speaks for an agent."""
    words, types = signal.compared(policy)
    node = facts.node
    triggers = tuple(word for word in node.triggers if word in words)
    if policy == "literal":
        listed = tuple(one for one in node.problem_types if one in types)
        chains = [(other, w) for other, weights in facts.after.items() for w in weights]
        return Evidence(triggers, (), listed, _sorted(chains, signal))
    rated = tuple(sorted((one, value) for one, value in facts.good_for.items() if one in types))
    listed = tuple(one for one in node.problem_types if one in types and one not in facts.good_for)
    chains = [(other, max(map(_clamped, ws))) for other, ws in facts.before.items() if other != node.id]
    return Evidence(triggers, rated, listed, _sorted(chains, signal), facts.uses, facts.successes)


def _sorted(chains: list[tuple[str, float]], signal: Signal) -> tuple[tuple[str, float], ...]:
    kept = (chain for chain in chains if chain[0] in signal.finished)
    return tuple(sorted(kept, key=lambda chain: (-chain[1], chain[0])))


def _clamped(weight: float) -> float:
    return min(1.0, max(0.0, weight))


def measured(facts: Facts, signal: Signal, policy: Policy) -> Candidate:
    """An agent with what it scores, whether or not it could be selected."""
    found = evidence_of(facts, signal, policy)
    matched = len(found.triggers)
    if policy == "literal":
        parts = literal_parts(matched, found.confidence, found.chain)
    else:
        parts = corrected_parts(matched, found.confidence, found.chain, found.successes, found.uses)
    return Candidate(facts.node, *parts, found, policy)


def choose(graph: Iterable[Facts], signal: Signal, policy: Policy = "corrected") -> Selection:
    """Select among all agents of a graph.

    Args:
        graph: what is known of each agent.
        signal: what is asked.
        policy: how it is scored; the literal one knows no bars, as the seed's query does not.
    """
    return selection_of((measured(facts, signal, policy) for facts in graph), signal, policy)


def selection_of(candidates: Iterable[Candidate], signal: Signal, policy: Policy) -> Selection:
    """The selection among candidates that were measured: those that fit, sorted, barred ones apart."""
    ranked = sorted((one for one in candidates if one.fits), key=lambda one: one.order)
    open_to: list[Candidate] = []
    lost: list[Standing] = []
    for one in ranked:
        if len(open_to) >= signal.limit and len(lost) == LOST_LIMIT:
            break
        if reason := barred(one.node, signal) if policy == "corrected" else "":
            lost.append(Standing(one, 0, reason))
            continue
        open_to.append(one)
        if len(open_to) > signal.limit:
            place = len(open_to)
            lost.append(Standing(one, place, f"It came {_ordinal(place)}; {signal.limit} were asked for."))
    return Selection(policy, tuple(open_to[: signal.limit]), tuple(lost[:LOST_LIMIT]))


def standing(selection: Selection, candidate: Candidate, signal: Signal) -> Standing:
    """How one agent did in a selection, and why."""
    for place, row in enumerate(selection.rows, 1):
        if row.id == candidate.id:
            return Standing(row, place, "")
    for one in selection.lost:
        if one.candidate.id == candidate.id:
            return one
    if not candidate.fits:
        return Standing(candidate, 0, "No trigger, no type of problem and no chain leads to it.")
    reason = barred(candidate.node, signal) if selection.policy == "corrected" else ""
    return Standing(candidate, 0, reason or "Too many others fit better.")


def facts_of(nodes: Iterable[Node], edges: Iterable[Edge]) -> list[Facts]:
    """What is known of each agent, out of plain rows."""
    good_for: dict[str, dict[str, float]] = {}
    before: dict[str, dict[str, tuple[float, ...]]] = {}
    after: dict[str, dict[str, tuple[float, ...]]] = {}
    uses: dict[str, list[float]] = {}
    for edge in edges:
        if edge.rel == "GOOD_FOR":
            good_for.setdefault(edge.src, {})[edge.dst] = edge.value
        elif edge.rel == "USED_BY":
            uses.setdefault(edge.src, []).append(edge.value)
        else:
            for side, here, there in ((before, edge.dst, edge.src), (after, edge.src, edge.dst)):
                others = side.setdefault(here, {})
                others[there] = (*others.get(there, ()), edge.value)
    return [
        Facts(
            node,
            good_for.get(node.id, {}),
            before.get(node.id, {}),
            after.get(node.id, {}),
            len(uses.get(node.id, ())),
            int(sum(uses.get(node.id, ()))),
        )
        for node in nodes
    ]


def _reasons(one: Candidate) -> Iterable[str]:
    found = one.evidence
    if found.triggers:
        noun = "Trigger" if len(found.triggers) == 1 else "Triggers"
        yield f"{noun} {', '.join(found.triggers)}: {one.T:+.2f}."
    if one.P:
        types = [*found.listed, *(f"{name} ({value:g})" for name, value in found.rated)]
        yield f"Good for {', '.join(types)}: {one.P:+.2f}."
    if found.chains:
        said = ", ".join(f"{name} ({weight:g})" for name, weight in found.chains)
        capped = ", counted as 1" if one.policy == "corrected" and found.chain > 1 else ""
        verb = "Leads to" if one.policy == "literal" else "Follows"
        yield f"{verb} {said}{capped}: {one.C:+.2f}."
    if found.uses:
        yield f"{found.successes} of {found.uses} uses succeeded: {one.R:+.3f}."


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
