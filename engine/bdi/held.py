"""Formulas that ask the belief base: literals, and variables that stand for literals."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.bdi.beliefs import Fact, Link
from engine.bdi.patterns import Builder, Env, Matcher, key_of
from engine.bdi.queries import RETURN, Clause, Node, Query
from engine.bdi.terms import Cell, Struct, Term, deref, instantiated
from engine.bdi.unification import Trail, divided, left_over, undo, unify


class Held(Node):
    """A belief literal: facts first, then rules."""

    __slots__ = ("args", "first", "indicator", "matchers", "notes")

    def __init__(
        self,
        indicator: str,
        first: Builder | None,
        matchers: tuple[tuple[int, Matcher], ...],
        args: list[Builder],
        notes: list[Builder],
    ) -> None:
        super().__init__()
        self.indicator = indicator
        self.first = first
        """Gives the first argument where it is known before the answer is."""
        self.matchers = matchers
        self.args = args
        self.notes = notes

    def step(self, query: Query) -> Node | None:
        beliefs = query.reasoner.beliefs
        predicate = beliefs.predicates.get(self.indicator)
        if predicate is None:
            return self._rule(query, 0)
        chain = predicate.candidates(None if self.first is None else self.first(query.env))
        if beliefs.newest_first:
            return self._fact(query, chain.newest, 0)
        return self._fact(query, chain.oldest, beliefs.places)

    def retry(self, query: Query, state: object) -> Node | None:
        if isinstance(state, int):
            return self._rule(query, state)
        if isinstance(state, tuple):
            return self._fact(query, *state)
        assert isinstance(state, Iterator)
        return _following(self, query, state)

    def _fact(self, query: Query, link: Link | None, end: int) -> Node | None:
        """Look for a fact that fits; in order of insertion, facts from place `end` on are too new."""
        env, trail = query.env, query.trail
        mark = len(trail)
        while link is not None:
            fact = link.fact
            if end and fact.place >= end:
                break
            link = link.newer if end else link.older
            if fact.alive and self._fits(fact, env, trail):
                if link is not None or self.indicator in query.reasoner.rules:
                    query.leave(self, (link, end), mark)
                if not self.notes:
                    return self.next
                wanted = [note(env) for note in self.notes]
                return _following(self, query, annotation_answers(wanted, fact.annotations, trail))
            if len(trail) > mark:
                undo(trail, mark)
        return self._rule(query, 0)

    def _fits(self, fact: Fact, env: Env, trail: Trail) -> bool:
        args = fact.pattern.args if fact.open else fact.args
        # `all` would make a generator for each fact, which costs more than the match.
        for place, match in self.matchers:  # noqa: SIM110
            if not match(args[place], env, trail):
                return False
        return True

    def _rule(self, query: Query, at: int) -> Node | None:
        rules = query.reasoner.rules.get(self.indicator)
        if rules is None:
            return None
        env, trail = query.env, query.trail
        mark = len(trail)
        args = tuple([make(env) for make in self.args])
        key = key_of(args[0]) if args else None
        at = _fitting(rules, at, key)
        while at < len(rules):
            inner = rules[at].enter(args, trail)
            following = _fitting(rules, at + 1, key)
            if inner is not None:
                if following < len(rules):
                    query.leave(self, following, mark)
                if self.next is not RETURN:
                    query.continuation = (self.next, env, query.continuation)
                query.env = inner
                return rules[at].body
            undo(trail, mark)
            at = following
        return None


def _fitting(rules: list[Clause], at: int, key: int | float | str | None) -> int:
    """The place of the next rule whose first argument may fit."""
    while at < len(rules) and key is not None and rules[at].key is not None and rules[at].key != key:
        at += 1
    return at


def _following(node: Node, query: Query, answers: Iterator[None]) -> Node | None:
    """Go on with the next of some answers that free what they bound themselves."""
    for _ in answers:
        query.leave(node, answers, len(query.trail))
        return node.next
    return None


def annotation_answers(wanted: list[Term], held: tuple[Term, ...], trail: Trail) -> Iterator[None]:
    """Each way to find all wanted annotations among those held; a tail is unified with those left over."""
    named, tail = divided(tuple(wanted))
    at = [0]
    marks = [len(trail)]
    while at:
        if len(at) > len(named):
            taken = [place - 1 for place in at[:-1]]
            if tail is None or unify(tail, left_over(held, taken), trail):
                yield
            at.pop()
            undo(trail, marks.pop())
            continue
        undo(trail, marks[-1])
        place = at[-1]
        at[-1] += 1
        if place == len(held):
            at.pop()
            marks.pop()
        elif unify(named[len(at) - 1], held[place], trail):
            at.append(0)
            marks.append(len(trail))


class Meant(Node):
    """A variable as a formula: what it stands for is asked; unbound, it stands for any belief."""

    __slots__ = ("compiled", "make")

    def __init__(self, make: Builder, compiled: Callable[[Term], tuple[Node, Env]]) -> None:
        super().__init__()
        self.make = make
        self.compiled = compiled

    def step(self, query: Query) -> Node | None:
        meant = deref(self.make(query.env))
        bare = meant.args[0] if isinstance(meant, Struct) and not meant.functor else meant
        if isinstance(bare, Cell):
            notes = list(meant.annotations) if isinstance(meant, Struct) else []
            facts = list(query.reasoner.beliefs)
            if query.reasoner.beliefs.newest_first:
                facts.reverse()
            return self.retry(query, self._any(bare, notes, facts, query.trail))
        node, env = self.compiled(meant)
        query.continuation = (self.next, query.env, query.continuation)
        query.env = env
        return node

    def retry(self, query: Query, state: object) -> Node | None:
        assert isinstance(state, Iterator)
        return _following(self, query, state)

    @staticmethod
    def _any(cell: Cell, notes: list[Term], facts: list[Fact], trail: Trail) -> Iterator[None]:
        for fact in facts:
            if fact.alive:
                mark = len(trail)
                unify(cell, instantiated(fact.literal), trail)
                yield from annotation_answers(notes, fact.annotations, trail)
                undo(trail, mark)
