"""The nodes of compiled formulas.

Formulas that ask the belief base: literals, and variables that stand for literals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TypeAlias

from engine.bdi.beliefs import RETURN, TRIES, Answers, Clause, Fact, Link, Node, Query
from engine.bdi.errors import ErrorId, EvaluationError, UnknownActionError
from engine.bdi.rewriting import instantiated, rewrite
from engine.bdi.term_compiler import Builder, Env, Matcher, key_of
from engine.bdi.terms import FALSE, TRUE, Cell, Struct, Term, deref, in_order, list_of, same
from engine.bdi.unification import Trail, remaining_annotations, split_annotations, undo, unify
from engine.value import dataclass

_Left: TypeAlias = "tuple[Link | None, int, Sequence[Clause], int]"
"""What was not yet looked at: the next fact, where newer ones begin, all rules, and which is the next."""


@dataclass(slots=True, eq=False)
class BeliefNode(Node):
    """A belief literal: facts and rules, by their places."""

    indicator: str
    first: Builder | None
    """Gives the first argument where it is known before the answer is."""
    matchers: tuple[tuple[int, Matcher], ...]
    args: list[Builder]
    notes: list[Builder]

    def step(self, query: Query) -> Node | None:
        beliefs = query.reasoner.beliefs
        rules = query.reasoner.rules.get(self.indicator, ())
        predicate = beliefs.predicates.get(self.indicator)
        if predicate is None:
            return self._rule(query, (None, 0, rules, 0)) if rules else None
        chain = predicate.candidates(None if self.first is None else self.first(query.env))
        if beliefs.newest_first:
            return self._fact(query, (chain.newest, 0, rules, 0))
        return self._fact(query, (chain.oldest, beliefs.places, rules, 0))

    def retry(self, query: Query, state: object) -> Node | None:
        if isinstance(state, tuple):
            return self._rule(query, state) if state[0] is None else self._fact(query, state)
        assert isinstance(state, Iterator)
        return _following(self, query, state)

    def _fact(self, query: Query, state: _Left) -> Node | None:
        """Look for a fact that fits, up to a newer rule; by insertion, facts from `end` on are too new."""
        link, end, rules, at = state
        env, trail = query.env, query.trail
        mark = len(trail)
        oldest = 0 if at == len(rules) or query.reasoner.beliefs.rules_apart else rules[at].place
        while link is not None:
            fact = link.fact
            if fact.place < oldest:
                break
            if end and fact.place >= end:
                link = None
                break
            link = link.newer if end else link.older
            if fact.open and fact.weight:
                query.copy(fact.weight)
            if fact.alive and self._fits(fact, env, trail):
                if link is not None or at < len(rules):
                    query.leave(self, (link, end, rules, at), mark)
                if not self.notes:
                    return self.next
                terms = [note(env) for note in self.notes]
                return _following(self, query, annotation_answers(terms, fact.annotations, trail))
            if len(trail) > mark:
                undo(trail, mark)
        return self._rule(query, (link, end, rules, at)) if at < len(rules) else None

    def _fits(self, fact: Fact, env: Env, trail: Trail) -> bool:
        args = fact.pattern.args if fact.open else fact.args
        # `all` would make a generator for each fact, which costs more than the match.
        for place, match in self.matchers:  # noqa: SIM110
            if not match(args[place], env, trail):
                return False
        return True

    def _rule(self, query: Query, state: _Left) -> Node | None:
        """Look for a rule that fits; where a newer fact is met it is left to be looked at by another step."""
        link, end, rules, at = state
        env, trail = query.env, query.trail
        mark = len(trail)
        args = tuple([make(env) for make in self.args])
        asked: tuple[Term, ...] = ()
        if self.notes and not query.reasoner.beliefs.rules_apart:
            asked = tuple([note(env) for note in self.notes])
        key = key_of(args[0]) if args else None
        at = _fitting(rules, at, key)
        while at < len(rules) and (link is None or rules[at].place > link.fact.place):
            inner = rules[at].enter(args, trail, asked)
            following = _fitting(rules, at + 1, key)
            if inner is not None:
                if following < len(rules) or link is not None:
                    query.leave(self, (link, end, rules, following), mark)
                if self.next is not RETURN:
                    query.continuation = (self.next, env, query.continuation)
                query.env = inner
                return rules[at].body
            undo(trail, mark)
            at = following
        if link is not None:
            query.leave(self, (link, end, rules, at), mark)
        return None


def _fitting(rules: Sequence[Clause], at: int, key: int | float | str | None) -> int:
    """The place of the next rule whose first argument may fit."""
    while at < len(rules) and key is not None and rules[at].key is not None and rules[at].key != key:
        at += 1
    return at


def _following(node: Node, query: Query, answers: Answers, mark: int | None = None) -> Node | None:
    """Go on with the next of some answers, which free what they bound themselves."""
    for fits in answers:
        query.leave(node, answers, len(query.trail) if mark is None else mark)
        return node.next if fits else None
    return None


def annotation_answers(target: list[Term], held: tuple[Term, ...], trail: Trail) -> Answers:
    """Each way to find all wanted annotations among those held; a tail is unified with those left over."""
    named, tail = split_annotations(tuple(target))
    at = [0]
    marks = [len(trail)]
    for tries in count(1):
        if not at:
            return
        if not tries % TRIES:
            yield False
        if len(at) > len(named):
            taken = [place - 1 for place in at[:-1]]
            if tail is None or unify(tail, remaining_annotations(held, taken), trail):
                yield True
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


@dataclass(slots=True, eq=False)
class VariableNode(Node):
    """A variable as a formula: what it stands for is asked; unbound, it stands for any belief."""

    make: Builder
    compiled: Callable[[Term], tuple[Node, Env]]

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
    def _any(cell: Cell, notes: list[Term], facts: list[Fact], trail: Trail) -> Answers:
        for fact in facts:
            if fact.alive:
                mark = len(trail)
                unify(cell, instantiated(fact.literal), trail)
                yield from annotation_answers(notes, fact.annotations, trail)
                undo(trail, mark)


class Succeed(Node):
    """`true`."""

    __slots__ = ()

    def step(self, query: Query) -> Node | None:
        return self.next


@dataclass(slots=True, eq=False)
class Test(Node):
    """A condition that binds nothing."""

    holds: Callable[[Env], bool]

    def step(self, query: Query) -> Node | None:
        return self.next if self.holds(query.env) else None


@dataclass(slots=True, eq=False)
class Write(Node):
    """`X = term` where X occurs for the first time."""

    slot: int
    make: Builder

    def step(self, query: Query) -> Node | None:
        query.env[self.slot] = self.make(query.env)
        return self.next


@dataclass(slots=True, eq=False)
class Unify(Node):
    r"""`left = right`; with `bind` false `left \= right`, which binds nothing."""

    left: Builder
    right: Builder
    bind: bool = True

    def step(self, query: Query) -> Node | None:
        mark = len(query.trail)
        fits = unify(self.left(query.env), self.right(query.env), query.trail)
        if not self.bind:
            undo(query.trail, mark)
        return self.next if fits == self.bind else None


@dataclass(slots=True, eq=False)
class Initialise(Node):
    """Gives variables that several branches share a cell before the branches part."""

    slots: list[int]

    def step(self, query: Query) -> Node | None:
        for slot in self.slots:
            query.env[slot] = Cell()
        return self.next


@dataclass(slots=True, eq=False)
class Either(Node):
    """`a | b | …`."""

    branches: list[Node]

    def step(self, query: Query) -> Node | None:
        return self._branch(query, 0)

    def retry(self, query: Query, state: object) -> Node | None:
        assert isinstance(state, int)
        return self._branch(query, state)

    def _branch(self, query: Query, at: int) -> Node:
        if at + 1 < len(self.branches):
            query.leave(self, at + 1, len(query.trail))
        return self.branches[at]


@dataclass(slots=True, eq=False)
class Enclosing(Node):
    """Asks a formula inside: the choice it leaves behind is taken when that has no (more) answer."""

    inner: Node
    slot: int

    def step(self, query: Query) -> Node | None:
        query.env[self.slot] = len(query.choices)
        query.leave(self, [], len(query.trail))
        return self.inner


class Absent(Enclosing):
    """`not formula`."""

    __slots__ = ()

    def retry(self, query: Query, state: object) -> Node | None:
        return self.next


@dataclass(slots=True, eq=False)
class Present(Node):
    """Reached when the formula under a `not` has an answer: forget its choices, and fail."""

    slot: int

    def step(self, query: Query) -> Node | None:
        _forget(query, self.slot)
        return None


def _forget(query: Query, slot: int) -> Node:
    """Undo what was bound since the choice was left that a slot names, and forget it with all later ones."""
    height = query.env[slot]
    assert isinstance(height, int)
    node, _, _, mark, _ = query.choices[height]
    undo(query.trail, mark)
    del query.choices[height:]
    return node


@dataclass(slots=True, eq=False)
class Truth(Enclosing):
    """`.eval(T, formula)`."""

    result: Matcher | None

    def retry(self, query: Query, state: object) -> Node | None:
        return self.judge(query, FALSE)

    def judge(self, query: Query, truth: Struct) -> Node | None:
        """Go on where the result fits."""
        fits = self.result is None or self.result(truth, query.env, query.trail)
        return self.next if fits else None


class Proved(Present):
    """Reached when the formula of a `Truth` has an answer: forget what it has bound and its choices."""

    __slots__ = ()

    def step(self, query: Query) -> Node | None:
        asked = _forget(query, self.slot)
        assert isinstance(asked, Truth)
        return asked.judge(query, TRUE)


@dataclass(slots=True, eq=False)
class Gather(Enclosing):
    """`.findall`, `.setof` and `.count`: the choice it leaves behind holds what was found so far."""

    value: Callable[[list[Term]], Term]
    result: Matcher | None

    def retry(self, query: Query, state: object) -> Node | None:
        assert isinstance(state, list)
        fits = self.result is None or self.result(self.value(state), query.env, query.trail)
        return self.next if fits else None


@dataclass(slots=True, eq=False)
class Found(Node):
    """One more answer for a `Gather`; asks for the next."""

    slot: int
    template: Builder

    def step(self, query: Query) -> Node | None:
        height = query.env[self.slot]
        assert isinstance(height, int)
        result = query.choices[height][4]
        assert isinstance(result, list)
        fresh: dict[Term, Cell] = {}
        template = self.template(query.env)
        result.append(rewrite(template, lambda cell: fresh.setdefault(cell, Cell()), query.hold))
        return None


def as_set(matches: list[Term]) -> Term:
    """The list of what was found, in order and each once."""
    kept: list[Term] = []
    for term in in_order(matches):
        if not kept or not same(kept[-1], term):
            kept.append(term)
    return list_of(kept)


@dataclass(slots=True, eq=False)
class Internal(Node):
    """An internal action as a condition; it may have several answers, and none where it cannot be done."""

    name: str
    args: list[Builder]

    def step(self, query: Query) -> Node | None:
        mark = len(query.trail)
        args = tuple([make(query.env) for make in self.args])
        try:
            answer = query.reasoner.invoke(self.name, args, query.trail)
        except EvaluationError as error:
            if _lasts(error):
                raise
            return None
        if isinstance(answer, bool):
            return self.next if answer else None
        return _following(self, query, _until_error(answer), mark)

    def retry(self, query: Query, state: object) -> Node | None:
        assert isinstance(state, Iterator)
        return _following(self, query, state)


def _lasts(error: EvaluationError) -> bool:
    """Whether an error of an internal action fails the step, and not only the formula."""
    return isinstance(error, UnknownActionError) or error.error_id is ErrorId.LIMIT_EXCEEDED


def _until_error(answers: Answers) -> Answers:
    try:
        yield from answers
    except EvaluationError as error:
        if _lasts(error):
            raise


@dataclass(slots=True, eq=False)
class Invalid(Node):
    """Something that is no formula."""

    what: str

    def step(self, query: Query) -> Node | None:
        raise EvaluationError(ErrorId.EVALUATION_FAILED, f"{self.what} is not a formula")
