"""Why something is as it is, and what stands on it: chains of recorded events.

Source: spec steering §6 idea 6; every line of an answer names the event that it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from engine.inquiry.naming import Basis, Relation, body_of
from engine.inquiry.record import Record
from engine.journal import events as ev
from engine.journal.event import Event
from engine.journal.memory_events import MemoriesForgotten, MemoryStored

LINES = 200
"""Events that a chain lists unless told otherwise, the nearest; the rest is counted."""
LOOKED_AT = 5
"""Times as many events as it lists are looked at: in a long session, all stands on nearly all before."""
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
    """How many branches off the trunk it is. Of what belongs to a line, the longest part goes on at its
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
class Standing:
    """Something that holds now and stands on what was asked about."""

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
    standing: tuple[Standing, ...]


def backward(record: Record, ref: str, *, limit: int = LINES) -> Chain:
    """From an event back through its causes to where they begin: a command, the world, a session.

    Args:
        record: the events.
        ref: the event asked about; one that the record lacks gives a chain of one line without an event.
        limit: events at most, 1 or more; the nearest.
    """
    return _walk(record, (ref,), record.bases, limit)


def forward(record: Record, refs: Iterable[str], *, limit: int = LINES) -> Chain:
    """From events on to all that stand on them, directly or through others.

    Args:
        record: the events.
        refs: the events asked about.
        limit: events at most, 1 or more; the nearest.
    """
    return _walk(record, tuple(refs), record.followers, limit)


def cascade(record: Record, refs: Iterable[str], *, limit: int = LINES) -> Cascade:
    """What stands on these events, and which of it still holds.

    Args:
        record: the events.
        refs: the events whose result is taken to be wrong.
        limit: events of the chain at most, 1 or more; what still holds is told in full.
    """
    wrong = tuple(refs)
    return Cascade(forward(record, wrong, limit=limit), tuple(_standing(record, _cone(record, wrong))))


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
    found: list[tuple[_Node, _Node | None]] = []
    seen: set[str] = set()
    todo: list[tuple[Basis, _Node | None]] = [(Basis(ref), None) for ref in reversed(roots)]
    while todo:
        basis, above = todo.pop()
        if basis.ref not in listed:
            continue
        event = record.events.get(basis.ref)
        relation = basis.relation if above is not None else None
        again = basis.ref in seen
        if again and relation is not Relation.CAUSE:
            continue  # only what was recorded is worth a line a second time
        node = _Node(Link(basis.ref, above.link.depth + 1 if above else 0, relation, event, again), [])
        (tops if above is None else above.below).append(node)
        found.append((node, above))
        if not again:
            seen.add(basis.ref)
            todo += [(each, node) for each in reversed(onward(basis.ref))]
    for node, above in reversed(found):
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
        event = record.events.get(ref)
        if len(listed) < limit and (ref in roots or event is None or event.kind not in QUIET):
            listed.add(ref)
        for basis in onward(ref):
            if basis.ref not in seen:
                seen[basis.ref] = None
                todo.append(basis.ref)
    return listed, len(seen) - len(listed), not todo


def _cone(record: Record, roots: tuple[str, ...]) -> set[str]:
    """The events and all that stand on them."""
    found: set[str] = set()
    todo = list(roots)
    while todo:
        ref = todo.pop()
        if ref not in found:
            found.add(ref)
            todo += [basis.ref for basis in record.followers(ref)]
    return found


def _standing(record: Record, cone: set[str]) -> Iterable[Standing]:
    for (agent, key), ref in record.beliefs.items():
        if ref in cone:
            yield Standing("belief", key, ref, agent)
    for path, ref in record.files.items():
        if ref in cone:
            yield Standing("file", path, ref, record.events[ref].stream)
    for agent in dict.fromkeys(record.events[ref].stream for ref in cone if ref in record.events):
        doubted = {step: ref for step, ref in record.done_steps(agent).items() if ref in cone}
        yield from (Standing("step", step, ref, agent) for step, ref in doubted.items())
        for step, needs in record.open_steps(agent):
            for need in needs:
                if need in doubted:
                    yield Standing("waiting step", step, doubted[need], agent)
                    break
    forgotten = {
        str(one)
        for event in record.of_kind(MemoriesForgotten.kind)
        for one in body_of(event).get("memories", ())
    }
    for ref in sorted(cone, key=lambda one: record.events[one].seq if one in record.events else 0):
        event = record.events.get(ref)
        if event is None:
            continue
        if event.kind == ev.GoalEnded.kind and body_of(event).get("status") == "achieved":
            yield Standing("goal", str(body_of(event).get("goal", "")), ref, event.stream)
        elif event.kind == MemoryStored.kind:
            memory = body_of(event).get("memory")
            name = str(memory.get("id", "")) if isinstance(memory, dict) else ""
            if name not in forgotten:
                yield Standing("memory", name, ref)
