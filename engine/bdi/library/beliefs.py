"""Beliefs removed in bulk, chance, and the agent's name."""

from __future__ import annotations

from engine.bdi import believing
from engine.bdi.actions import Call
from engine.bdi.library.registry import internal
from engine.bdi.terms import Struct, Term, annotation_set, resolved
from engine.bdi.unification import Trail, annotations_within, undo, unify


@internal(".abolish", 1)
def abolish(call: Call) -> bool:
    """Remove every belief that fits; one that names sources removes only those."""
    pattern = call.literal(0)
    plain = pattern.with_annotations(())
    predicate = call.agent.beliefs.predicates.get(pattern.indicator)
    for fact in predicate.all.facts() if predicate else ():
        trail: Trail = []
        fits = unify(plain, fact.pattern, trail)
        gone: tuple[Term, ...] = fact.annotations
        if fits and pattern.annotations:
            fits = annotations_within(pattern.annotations, fact.annotations, trail)
            gone = annotation_set([resolved(one) for one in pattern.annotations])
        undo(trail, 0)
        if fits:
            call.agent.beliefs.remove(fact, gone)
            believing.announce(call.agent, believing.BeliefChange("-", fact.plain, gone))
    return True


@internal(".my_name", 1)
def my_name(call: Call) -> bool:
    """The agent's name."""
    return call.unify(0, Struct(call.agent.name))


@internal(".random", 1, 2)
def random(call: Call) -> bool:
    """A number from 0 up to 1, or an element of a list: `.random(list, X)`."""
    chance = call.agent.random
    if len(call) == 1:
        return call.unify(0, chance.random())
    items = call.items(0)
    return bool(items) and call.unify(1, items[chance.randrange(len(items))])
