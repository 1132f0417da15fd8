"""Why something is as it is: chains of recorded events, forward and backward from one of them.

Here is also what shows that a goal was achieved (its criteria with the steps that show them, and its last
results), and what depends on results that the operator marked as wrong.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest

from engine.core import events as ev
from engine.core.goals import GoalStatus
from engine.core.journal import Event
from engine.core.memory_events import MemoriesForgotten, MemoryStored
from engine.core.plan import StepStatus
from engine.core.thinking import DecisionKind
from engine.inquiry.record import Record
from engine.inquiry.relations import Basis, Relation, body_of
from engine.value import dataclass, replace

RESULTS = 5
"""Newest results that are told."""


@dataclass(frozen=True, slots=True)
class EvidenceItem:
    """A step's result; for a criterion where one is named."""

    criterion: str
    """Empty for a result that stands for no criterion."""
    step: str
    """Empty where nothing shows the criterion."""
    summary: str = ""
    ref: str = ""
    """The event by which the step was completed; empty where it never was."""

    @property
    def holds(self) -> bool:
        """True where a completed step stands behind it."""
        return bool(self.ref)


@dataclass(slots=True)
class Evidence:
    """What there is to show for a goal."""

    goal: str
    text: str
    ref: str
    """The event by which it ended; that by which it was adopted while it is open."""
    criteria: tuple[EvidenceItem, ...] = ()
    results: tuple[EvidenceItem, ...] = ()
    """The newest results, oldest first."""
    status: GoalStatus = GoalStatus.ACTIVE
    reason: str = ""


def evidence_of(events: Iterable[Event], goal: str) -> Evidence | None:
    """What there is to show for a goal; None when the events have no such goal.

    Args:
        events: the agent's events in their order.
        goal: the goal's id.
    """
    evidence: Evidence | None = None
    criteria: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    done: dict[str, EvidenceItem] = {}
    for event in events:
        payload = ev.payload_of(event) if event.kind in _KINDS else None
        if getattr(payload, "goal", None) != goal:
            continue
        match payload:
            case ev.GoalAdopted():
                evidence, criteria = Evidence(goal, payload.text, event.ref), payload.criteria
            case ev.GoalChanged() if evidence is not None:
                evidence.text = payload.text
            case ev.GoalEnded() if evidence is not None:
                evidence.status, evidence.reason, evidence.ref = payload.status, payload.reason, event.ref
            case ev.DecisionMade() if payload.decision.kind is DecisionKind.FINISH:
                named = payload.decision.evidence
            case ev.StepEnded():
                done.pop(payload.step, None)
                if payload.status is StepStatus.COMPLETED:
                    done[payload.step] = EvidenceItem("", payload.step, payload.summary, event.ref)
    if evidence is not None:
        shown = zip_longest(criteria, named[: len(criteria)], fillvalue="")
        evidence.criteria = tuple(
            replace(done.get(step, EvidenceItem("", step)), criterion=text) for text, step in shown
        )
        evidence.results = tuple(done.values())[-RESULTS:]
    return evidence


_KINDS = frozenset(
    kind.kind for kind in (ev.GoalAdopted, ev.GoalChanged, ev.GoalEnded, ev.DecisionMade, ev.StepEnded)
)


LINES = 200
"""Events that a chain lists unless told otherwise, the nearest; the rest is counted."""
LOOKED_AT = 5
"""Times as many events as it lists are looked at: in a long session, all depends on nearly all before."""
QUIET = frozenset(
    kind.kind for kind in (ev.ActionOutput, ev.JobOutput, ev.ModelSaid, ev.ShellTyped, ev.ShellResized)
)
"""Pieces of something else; they are counted in a chain and not listed."""


@dataclass(frozen=True, slots=True)
class Link:
    """One line of a chain."""

    ref: str
    depth: int
    """0 for what was asked about; each deeper one belongs to the nearest line above that is one less deep."""
    relation: Relation | None
    """How it is tied to the line that it belongs to; None for what was asked about."""
    event: Event | None
    """None where the record has no such event."""
    again: bool = False
    """True where it is listed in another place too, with what belongs to it."""
    level: int = 0
    """How many branches off the trunk it is. Of what belongs to a line, the longest part continues at its
    level, behind the others, which branch off one level further: so even a long story stays narrow."""
    branches: bool = False
    """Whether a branch begins with it."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Events that hang together, each after the one through which it was reached."""

    links: tuple[Link, ...]
    left_off: int = 0
    """Events beyond the limit, and pieces of output."""
    whole: bool = True
    """Whether these are all; if not, there are more that were not even counted."""

    @property
    def refs(self) -> tuple[str, ...]:
        """The events that are listed, each once."""
        return tuple(link.ref for link in self.links if not link.again)


@dataclass(frozen=True, slots=True)
class Dependent:
    """Something that holds now and depends on what was asked about."""

    kind: str
    """`belief`, `file`, `step`, `waiting step`, `goal`, `memory`."""
    name: str
    ref: str
    """The event by which it holds."""
    agent: str = ""


@dataclass(frozen=True, slots=True)
class Cascade:
    """What would be in doubt if something recorded were wrong; looking at it changes nothing."""

    chain: Chain
    standing: tuple[Dependent, ...]


def backward(record: Record, ref: str, *, limit: int = LINES) -> Chain:
    """From an event back through its causes to where they begin: a command, the world, a session.

    Args:
        record: the events.
        ref: the event asked about; one that the record lacks gives a chain of one line without an event.
        limit: events at most, 1 or more; the nearest.
    """
    return _walk(record, (ref,), record.bases, limit)


def forward(record: Record, refs: Iterable[str], *, limit: int = LINES) -> Chain:
    """From events on to all that depend on them, directly or through others.

    Args:
        record: the events.
        refs: the events asked about.
        limit: events at most, 1 or more; the nearest.
    """
    return _walk(record, tuple(refs), record.followers, limit)


def cascade(record: Record, refs: Iterable[str]) -> Cascade:
    """What depends on these events, and which of it still holds; this is told in full.

    Args:
        record: the events.
        refs: the events whose result is taken to be wrong.
    """
    wrong = tuple(refs)
    return Cascade(forward(record, wrong), tuple(_standing(record, _cone(record, wrong))))


@dataclass(slots=True)
class _Node:
    """An event in the tree by which it was reached, depth first."""

    link: Link
    below: list[_Node]
    size: int = 1


def _walk(
    record: Record, roots: tuple[str, ...], onward: Callable[[str], tuple[Basis, ...]], limit: int
) -> Chain:
    listed, left_off, whole = _nearest(record, roots, onward, limit)
    tops: list[_Node] = []
    nodes: list[tuple[_Node, _Node | None]] = []
    seen: set[str] = set()
    todo: list[tuple[Basis, _Node | None]] = [(Basis(ref), None) for ref in reversed(roots)]
    while todo:
        basis, above = todo.pop()
        if basis.ref not in listed:
            continue
        event = record.event(basis.ref)
        relation = basis.relation if above is not None else None
        again = basis.ref in seen
        if again and relation is not Relation.CAUSE:
            continue  # only what was recorded is worth a line a second time
        node = _Node(Link(basis.ref, above.link.depth + 1 if above else 0, relation, event, again), [])
        (tops if above is None else above.below).append(node)
        nodes.append((node, above))
        if not again:
            seen.add(basis.ref)
            todo += [(each, node) for each in reversed(onward(basis.ref))]
    for node, above in reversed(nodes):
        if above is not None:
            above.size += node.size
    return Chain(tuple(_trunk_last(tops)), left_off, whole)


def _trunk_last(tops: list[_Node]) -> Iterable[Link]:
    """The links of trees in the order in which they are read: of each line the branches, then the trunk."""
    todo = [(node, 0, False) for node in reversed(tops)]
    while todo:
        node, level, branches = todo.pop()
        yield replace(node.link, level=level, branches=branches)
        if node.below:
            trunk = max(reversed(node.below), key=lambda each: each.size)
            todo.append((trunk, level, False))
            todo += [(each, level + 1, True) for each in reversed(node.below) if each is not trunk]


def _nearest(
    record: Record, roots: tuple[str, ...], onward: Callable[[str], tuple[Basis, ...]], limit: int
) -> tuple[set[str], int, bool]:
    """The events that are fewest links away, without pieces of output; how many more; whether that is all."""
    seen = dict.fromkeys(roots)
    listed: set[str] = set()
    todo = deque(seen)
    while todo and len(seen) < LOOKED_AT * limit:
        ref = todo.popleft()
        event = record.event(ref)
        if len(listed) < limit and (ref in roots or event is None or event.kind not in QUIET):
            listed.add(ref)
        for basis in onward(ref):
            if basis.ref not in seen:
                seen[basis.ref] = None
                todo.append(basis.ref)
    return listed, len(seen) - len(listed), not todo


def _cone(record: Record, roots: tuple[str, ...]) -> set[str]:
    """The events and all that depend on them."""
    cone: set[str] = set()
    todo = list(roots)
    while todo:
        ref = todo.pop()
        if ref not in cone:
            cone.add(ref)
            todo += [basis.ref for basis in record.followers(ref)]
    return cone


def _standing(record: Record, cone: set[str]) -> Iterable[Dependent]:
    for (agent, key), ref in record.beliefs.items():
        if ref in cone:
            yield Dependent("belief", key, ref, agent)
    for path, ref in record.files.items():
        if ref in cone:
            yield Dependent("file", path, ref, ref.rpartition(":")[0])
    yield from _standing_steps(record, cone)
    yield from _standing_results(record, cone)


def _standing_steps(record: Record, cone: set[str]) -> Iterable[Dependent]:
    for agent in dict.fromkeys(ref.rpartition(":")[0] for ref in cone):
        doubted = {step: ref for step, ref in record.done_steps(agent).items() if ref in cone}
        yield from (Dependent("step", step, ref, agent) for step, ref in doubted.items())
        for step, needs in record.open_steps(agent):
            if need := next((need for need in needs if need in doubted), ""):
                yield Dependent("waiting step", step, doubted[need], agent)


def _standing_results(record: Record, cone: set[str]) -> Iterable[Dependent]:
    forgotten = {
        str(memory_id)
        for event in record.of_kind(MemoriesForgotten.kind)
        for memory_id in body_of(event).get("memories", ())
    }
    events = [event for ref in cone if (event := record.event(ref)) is not None]
    for event in sorted(events, key=lambda event: event.seq):
        if event.kind == ev.GoalEnded.kind and body_of(event).get("status") == "achieved":
            yield Dependent("goal", str(body_of(event).get("goal", "")), event.ref, event.stream)
        elif event.kind == MemoryStored.kind:
            memory = body_of(event).get("memory")
            name = str(memory.get("id", "")) if isinstance(memory, dict) else ""
            if name not in forgotten:
                yield Dependent("memory", name, event.ref)


_EVIDENCE = frozenset(
    kind.kind
    for kind in (ev.ActionFinished, ev.WorldPerceived, ev.MessageHeard, ev.CommandReceived, ev.ChangesSettled)
)
"""Events by which something comes to be known."""
_OF_CONTENT = frozenset({Relation.AFTER, Relation.BELIEF, Relation.FILE})
"""How an act of the mind itself depends on what it was made of; plan and goal only say what it is for."""


def doubted_events(record: Record) -> Mapping[str, str]:
    """The events that depend on one that is marked as wrong, each with the marked one, without these."""
    doubted: dict[str, str] = {}
    marked = record.disputes
    for root in marked:
        todo = [basis.ref for basis in record.followers(root)]
        while todo:
            ref = todo.pop()
            if ref not in doubted and ref not in marked:
                doubted[ref] = root
                todo += [basis.ref for basis in record.followers(ref)]
    return doubted


def unsupported_beliefs(record: Record, refs: Iterable[str]) -> tuple[Dependent, ...]:
    """The beliefs held now that nothing speaks for but these events.

    A belief that came out of a later action is not among them, though that action may have been done for the
    wrong reason: what it saw, it saw.

    Args:
        record: the events.
        refs: what is taken to be wrong.
    """
    wrong = set(refs)
    return tuple(
        dependent
        for dependent in cascade(record, wrong).standing
        if dependent.kind == "belief" and (known := _evidence(record, dependent.ref)) and known <= wrong
    )


def _evidence(record: Record, ref: str) -> set[str]:
    """The nearest events by which something came to be known, on which an event stands."""
    evidence: set[str] = set()
    seen = {ref}
    todo = [ref]
    while todo:
        at = todo.pop()
        event = record.event(at)
        if event is None:
            continue
        own = at != ref and event.kind == ev.ActionFinished.kind and _of_the_mind(record, at)
        if at != ref and event.kind in _EVIDENCE and not own:
            evidence.add(at)
            continue
        requested = event.kind == ev.ActionRequested.kind
        for basis in record.bases(at):
            if basis.ref not in seen and (not requested or basis.relation in _OF_CONTENT):
                seen.add(basis.ref)
                todo.append(basis.ref)
    return evidence


def _of_the_mind(record: Record, finished: str) -> bool:
    """Whether an action was one of the agent's own mind, which finds nothing out."""
    todo = [finished]
    for _ in range(4):
        todo = [basis.ref for ref in todo for basis in record.bases(ref)]
        for ref in todo:
            event = record.event(ref)
            if event is not None and event.kind == ev.ActionRequested.kind:
                return body_of(event).get("tool") == "mind"
    return False
