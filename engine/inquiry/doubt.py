"""What stands on results that the operator marked as wrong, and what of it could be taken back.

Source: spec steering §3 idea 7, story S1. Reading only: what is believed is taken back by ordinary commands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.inquiry.naming import Relation, body_of
from engine.inquiry.record import Record
from engine.inquiry.why import Standing, cascade
from engine.journal import events as ev

_EVIDENCE = frozenset(
    kind.kind
    for kind in (ev.ActionFinished, ev.WorldPerceived, ev.MessageHeard, ev.CommandReceived, ev.ChangesSettled)
)
"""Events by which something comes to be known."""
_OF_CONTENT = frozenset({Relation.AFTER, Relation.BELIEF, Relation.FILE})
"""How an act of the mind itself stands on what it was made of; plan and goal only say what it is for."""


def doubted(record: Record) -> Mapping[str, str]:
    """The events that stand on one that is marked as wrong, each with the marked one, without these."""
    found: dict[str, str] = {}
    marked = record.disputes
    for root in marked:
        todo = [basis.ref for basis in record.followers(root)]
        while todo:
            ref = todo.pop()
            if ref not in found and ref not in marked:
                found[ref] = root
                todo += [basis.ref for basis in record.followers(ref)]
    return found


def standing_alone(record: Record, refs: Iterable[str]) -> tuple[Standing, ...]:
    """The beliefs held now that nothing speaks for but these events.

    A belief that came out of a later action is not among them, though that action may have been done for the
    wrong reason: what it saw, it saw.

    Args:
        record: the events.
        refs: what is taken to be wrong.
    """
    wrong = set(refs)
    return tuple(
        one
        for one in cascade(record, wrong).standing
        if one.kind == "belief" and (known := _evidence(record, one.ref)) and known <= wrong
    )


def _evidence(record: Record, ref: str) -> set[str]:
    """The nearest events by which something came to be known, on which an event stands."""
    found: set[str] = set()
    seen = {ref}
    todo = [ref]
    while todo:
        at = todo.pop()
        event = record.events.get(at)
        if event is None:
            continue
        own = at != ref and event.kind == ev.ActionFinished.kind and _of_the_mind(record, at)
        if at != ref and event.kind in _EVIDENCE and not own:
            found.add(at)
            continue
        requested = event.kind == ev.ActionRequested.kind
        for basis in record.bases(at):
            if basis.ref not in seen and (not requested or basis.relation in _OF_CONTENT):
                seen.add(basis.ref)
                todo.append(basis.ref)
    return found


def _of_the_mind(record: Record, finished: str) -> bool:
    """Whether an action was one of the agent's own mind, which finds nothing out."""
    todo = [finished]
    for _ in range(4):
        todo = [basis.ref for ref in todo for basis in record.bases(ref)]
        for ref in todo:
            event = record.events.get(ref)
            if event is not None and event.kind == ev.ActionRequested.kind:
                return body_of(event).get("tool") == "mind"
    return False
