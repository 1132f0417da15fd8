"""The nodes of compiled formulas.

Formulas that ask the belief base: literals, and variables that stand for literals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.bdi.beliefs import RETURN, Clause, Fact, Link, Node, Query
from engine.bdi.errors import ErrorId, EvaluationError
from engine.bdi.terms import (
    FALSE,
    TRUE,
    Cell,
    Struct,
    Term,
    deref,
    in_order,
    instantiated,
    list_of,
    rewrite,
    same,
)
from engine.bdi.unification import (
    Builder,
    Env,
    Matcher,
    Trail,
    key_of,
    remaining_annotations,
    split_annotations,
    undo,
    unify,
)


class BeliefNode(Node):
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
                terms = [note(env) for note in self.notes]
                return _following(self, query, annotation_answers(terms, fact.annotations, trail))
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


def _following(node: Node, query: Query, answers: Iterator[None], mark: int | None = None) -> Node | None:
    """Go on with the next of some answers, which free what they bound themselves."""
    for _ in answers:
        query.leave(node, answers, len(query.trail) if mark is None else mark)
        return node.next
    return None


def annotation_answers(wanted: list[Term], held: tuple[Term, ...], trail: Trail) -> Iterator[None]:
    """Each way to find all wanted annotations among those held; a tail is unified with those left over."""
    named, tail = split_annotations(tuple(wanted))
    at = [0]
    marks = [len(trail)]
    while at:
        if len(at) > len(named):
            taken = [place - 1 for place in at[:-1]]
            if tail is None or unify(tail, remaining_annotations(held, taken), trail):
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


class VariableNode(Node):
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


class Succeed(Node):
    """`true`."""

    __slots__ = ()

    def step(self, query: Query) -> Node | None:
        return self.next


class Test(Node):
    """A condition that binds nothing."""

    __slots__ = ("holds",)

    def __init__(self, holds: Callable[[Env], bool]) -> None:
        super().__init__()
        self.holds = holds

    def step(self, query: Query) -> Node | None:
        return self.next if self.holds(query.env) else None


class Write(Node):
    """`X = term` where X occurs for the first time."""

    __slots__ = ("make", "slot")

    def __init__(self, slot: int, make: Builder) -> None:
        super().__init__()
        self.slot = slot
        self.make = make

    def step(self, query: Query) -> Node | None:
        query.env[self.slot] = self.make(query.env)
        return self.next


class Unify(Node):
    r"""`left = right`; with `bind` false `left \= right`, which binds nothing."""

    __slots__ = ("bind", "left", "right")

    def __init__(self, left: Builder, right: Builder, bind: bool = True) -> None:
        super().__init__()
        self.left, self.right, self.bind = left, right, bind

    def step(self, query: Query) -> Node | None:
        mark = len(query.trail)
        fits = unify(self.left(query.env), self.right(query.env), query.trail)
        if not self.bind:
            undo(query.trail, mark)
        return self.next if fits == self.bind else None


class Initialise(Node):
    """Gives variables that several branches share a cell before the branches part."""

    __slots__ = ("slots",)

    def __init__(self, slots: list[int]) -> None:
        super().__init__()
        self.slots = slots

    def step(self, query: Query) -> Node | None:
        for slot in self.slots:
            query.env[slot] = Cell()
        return self.next


class Either(Node):
    """`a | b | …`."""

    __slots__ = ("branches",)

    def __init__(self, branches: list[Node]) -> None:
        super().__init__()
        self.branches = branches

    def step(self, query: Query) -> Node | None:
        return self._branch(query, 0)

    def retry(self, query: Query, state: object) -> Node | None:
        assert isinstance(state, int)
        return self._branch(query, state)

    def _branch(self, query: Query, at: int) -> Node:
        if at + 1 < len(self.branches):
            query.leave(self, at + 1, len(query.trail))
        return self.branches[at]


class Enclosing(Node):
    """Asks a formula inside: the choice it leaves behind is taken when that has no (more) answer."""

    __slots__ = ("inner", "slot")

    def __init__(self, inner: Node, slot: int) -> None:
        super().__init__()
        self.inner = inner
        self.slot = slot

    def step(self, query: Query) -> Node | None:
        query.env[self.slot] = len(query.choices)
        query.leave(self, [], len(query.trail))
        return self.inner


class Absent(Enclosing):
    """`not formula`."""

    __slots__ = ()

    def retry(self, query: Query, state: object) -> Node | None:
        return self.next


class Present(Node):
    """Reached when the formula under a `not` has an answer: forget its choices, and fail."""

    __slots__ = ("slot",)

    def __init__(self, slot: int) -> None:
        super().__init__()
        self.slot = slot

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


class Truth(Enclosing):
    """`.eval(T, formula)`."""

    __slots__ = ("result",)

    def __init__(self, inner: Node, slot: int, result: Matcher | None) -> None:
        super().__init__(inner, slot)
        self.result = result

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


class Gather(Enclosing):
    """`.findall`, `.setof` and `.count`: the choice it leaves behind holds what was found so far."""

    __slots__ = ("result", "value")

    def __init__(
        self, inner: Node, slot: int, value: Callable[[list[Term]], Term], result: Matcher | None
    ) -> None:
        super().__init__(inner, slot)
        self.value = value
        self.result = result

    def retry(self, query: Query, state: object) -> Node | None:
        assert isinstance(state, list)
        fits = self.result is None or self.result(self.value(state), query.env, query.trail)
        return self.next if fits else None


class Found(Node):
    """One more answer for a `Gather`; asks for the next."""

    __slots__ = ("slot", "template")

    def __init__(self, slot: int, template: Builder) -> None:
        super().__init__()
        self.slot = slot
        self.template = template

    def step(self, query: Query) -> Node | None:
        height = query.env[self.slot]
        assert isinstance(height, int)
        result = query.choices[height][4]
        assert isinstance(result, list)
        fresh: dict[Term, Cell] = {}
        result.append(rewrite(self.template(query.env), lambda cell: fresh.setdefault(cell, Cell())))
        return None


def as_set(found: list[Term]) -> Term:
    """The list of what was found, in order and each once."""
    kept: list[Term] = []
    for term in in_order(found):
        if not kept or not same(kept[-1], term):
            kept.append(term)
    return list_of(kept)


class Internal(Node):
    """An internal action as a condition; it may have several answers."""

    __slots__ = ("args", "name")

    def __init__(self, name: str, args: list[Builder]) -> None:
        super().__init__()
        self.name = name
        self.args = args

    def step(self, query: Query) -> Node | None:
        mark = len(query.trail)
        args = tuple([make(query.env) for make in self.args])
        answer = query.reasoner.invoke(self.name, args, query.trail)
        if isinstance(answer, bool):
            return self.next if answer else None
        return _following(self, query, answer, mark)

    def retry(self, query: Query, state: object) -> Node | None:
        assert isinstance(state, Iterator)
        return _following(self, query, state)


class Invalid(Node):
    """Something that is no formula."""

    __slots__ = ("what",)

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    def step(self, query: Query) -> Node | None:
        raise EvaluationError(ErrorId.EVALUATION_FAILED, f"{self.what} is not a formula")
