"""The belief base: facts with their sources, indexed by first argument.

Queries on beliefs and rules: depth first, lazily, with explicit stacks instead of recursion.

A compiled formula is a graph of nodes. A query walks it: a node that succeeds names the next one, a node with
more answers leaves a choice behind, and a failure takes up the latest choice again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeAlias

from engine.bdi.errors import ErrorId, EvaluationError
from engine.bdi.rewriting import instantiated, is_ground
from engine.bdi.semantics import Limits, Semantics
from engine.bdi.term_compiler import UNWRITTEN, Builder, Env, Matcher, key_of
from engine.bdi.terms import PERCEPT, SELF, Struct, Term, annotation_set, weight_of
from engine.bdi.unification import Trail, annotations_within, undo
from engine.value import dataclass, field

SELF_ONLY = (SELF,)


class Fact:
    """One belief: a literal, and annotations of which at least one is a source."""

    __slots__ = ("alike", "alive", "annotations", "args", "link", "open", "place", "plain", "weight")

    def __init__(self, plain: Struct, annotations: tuple[Term, ...], place: int) -> None:
        self.plain = plain
        """The literal without annotations."""
        self.args = plain.args
        self.annotations = annotations
        self.place = place
        """Number of beliefs that came before it."""
        self.open = not is_ground(plain)
        """True when it holds variables, so that each use needs a copy."""
        self.alive = True
        self.weight = 0
        for arg in plain.args:
            if type(arg) is not int:  # most facts hold numbers alone
                self.weight = weight_of(plain.args)
                break
        self.link: Link | None = None
        """Its place among all facts of its predicate."""
        self.alike: Link | None = None
        """Its place among those with the same first argument."""

    @property
    def pattern(self) -> Struct:
        """The literal with variables that can be bound, without annotations."""
        if not self.open:
            return self.plain
        copy = instantiated(self.plain)
        assert isinstance(copy, Struct)
        return copy

    @property
    def literal(self) -> Struct:
        """The literal with its annotations."""
        return self.plain.with_annotations(self.annotations)


@dataclass(slots=True, eq=False)
class Link:
    """A fact's place in a chain; one that was taken out still leads back into it, for whoever reads there."""

    fact: Fact
    older: Link | None
    newer: Link | None = None


@dataclass(slots=True, eq=False)
class Chain:
    """Facts in the order they came; adding and taking out costs the same however many there are."""

    newest: Link | None = None
    oldest: Link | None = None

    def add(self, fact: Fact) -> Link:
        """Put a fact at the newer end."""
        link = Link(fact, self.newest)
        if self.newest is None:
            self.oldest = link
        else:
            self.newest.newer = link
        self.newest = link
        return link

    def take_out(self, link: Link) -> None:
        """Take a fact out."""
        if link.older is None:
            self.oldest = link.newer
        else:
            link.older.newer = link.newer
        if link.newer is None:
            self.newest = link.older
        else:
            link.newer.older = link.older

    def facts(self, *, newest_first: bool = False) -> Iterator[Fact]:
        """The facts that are here now; ones that go meanwhile are left out, ones that come are not seen."""
        link = self.newest if newest_first else self.oldest
        last = self.newest.fact.place if self.newest else 0
        while link is not None and link.fact.place <= last:
            if link.fact.alive:
                yield link.fact
            link = link.older if newest_first else link.newer


class Predicate:
    """All facts with one functor and number of arguments."""

    __slots__ = ("all", "by_args", "by_first", "open")

    def __init__(self) -> None:
        self.all = Chain()
        self.by_args: dict[tuple[Term, ...], Fact] = {}
        """The same by their arguments."""
        self.by_first: dict[int | float | str | None, Chain] = {}
        self.open = 0
        """Facts with variables; while there are any, the index is passed over."""

    def candidates(self, first: Term | None) -> Chain:
        """Facts that may fit a first argument."""
        if first is not None and not self.open:
            key = key_of(first)
            if key is not None:
                return self.by_first.get(key, _NOTHING)
        return self.all


_NOTHING = Chain()


class BeliefBase:
    """What an agent holds true, apart from rules.

    Args:
        semantics: in which order facts and rules answer.
        limits: how many beliefs it may hold and their size; more raise EvaluationError with `limit_exceeded`.
    """

    def __init__(self, semantics: Semantics, limits: Limits) -> None:
        self.limit, self.size = limits.beliefs, limits.belief_size
        self.newest_first = semantics.newest_first
        self.rules_apart = semantics.edition < 2 or not semantics.newest_first
        """Whether rules answer behind all facts, whatever annotations are asked for."""
        self.predicates: dict[str, Predicate] = {}
        self.count = 0
        self.weight = 0
        self.places = 0
        self.percepts: dict[Struct, Fact] = {}
        """Beliefs with `source(percept)`, by their literals."""
        self.touched: dict[Struct, None] | None = None
        """Literals whose belief has come, gone or changed; None where nobody looks after them."""

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Fact]:
        """The facts, oldest first."""
        facts = [item for predicate in self.predicates.values() for item in predicate.all.facts()]
        return iter(sorted(facts, key=lambda fact: fact.place))

    def clear(self) -> None:
        """Forget everything."""
        self.predicates.clear()
        self.percepts.clear()
        self.count = self.weight = 0

    def find(self, literal: Struct) -> Fact | None:
        """The fact with this functor and these arguments, whatever its annotations."""
        predicate = self.predicates.get(literal.indicator)
        return predicate.by_args.get(literal.args) if predicate is not None else None

    def add(self, literal: Struct, annotations: tuple[Term, ...]) -> tuple[Term, ...]:
        """Add a belief, or more annotations to one; the annotations that are new, none when nothing changed.

        Args:
            literal: without unbound cells; variables in it are those of `canonical`.
            annotations: a set as `annotation_set` makes it, with at least one source.

        Raises:
            EvaluationError: the base is full.
        """
        fact = self.find(literal)
        new = annotations
        if fact is None:
            if self.count >= self.limit:
                raise EvaluationError(
                    ErrorId.LIMIT_EXCEEDED, f"the belief base is full ({self.limit} beliefs)"
                )
            fact = Fact(
                literal.with_annotations(()) if literal.annotations else literal, annotations, self.places
            )
            if self.weight + fact.weight > self.size:
                raise EvaluationError(ErrorId.LIMIT_EXCEEDED, "the beliefs hold too much text")
            self.places += 1
            self.put(fact)
            if self.touched is not None:
                self.touched[fact.plain] = None
        else:
            new = tuple(term for term in annotations if term not in fact.annotations)
            if new:
                fact.annotations = annotation_set(fact.annotations + new)
                if self.touched is not None:
                    self.touched[fact.plain] = None
        if PERCEPT in new:
            self.percepts[fact.plain] = fact
        return new

    def put(self, fact: Fact) -> None:
        """Put a fact that is not there yet behind the others."""
        indicator = fact.plain.indicator
        predicate = self.predicates.get(indicator)
        if predicate is None:
            predicate = self.predicates[indicator] = Predicate()
        self.count += 1
        self.weight += fact.weight
        fact.link = predicate.all.add(fact)
        predicate.by_args[fact.args] = fact
        if fact.open:
            predicate.open += 1
        elif fact.args:
            alike = predicate.by_first.get(key := key_of(fact.args[0]))
            if alike is None:
                alike = predicate.by_first[key] = Chain()
            fact.alike = alike.add(fact)

    def remove(self, fact: Fact, annotations: tuple[Term, ...]) -> None:
        """Take annotations from a belief; without a source left the whole belief goes."""
        if PERCEPT in annotations:
            self.percepts.pop(fact.plain, None)
        if self.touched is not None:
            self.touched[fact.plain] = None
        if fact.annotations != annotations:
            left = tuple([term for term in fact.annotations if term not in annotations])
            if any(map(is_source, left)):
                fact.annotations = left
                return
        self.drop(fact)

    def drop(self, fact: Fact) -> None:
        """Take a belief away, whatever its sources."""
        predicate = self.predicates[fact.plain.indicator]
        if self.touched is not None:
            self.touched[fact.plain] = None
        fact.alive = False
        self.count -= 1
        self.weight -= fact.weight
        self.percepts.pop(fact.plain, None)
        del predicate.by_args[fact.args]
        assert fact.link is not None
        predicate.all.take_out(fact.link)
        if predicate.all.newest is None:
            del self.predicates[fact.plain.indicator]
        elif fact.alike is not None:
            alike = predicate.by_first[key := key_of(fact.args[0])]
            alike.take_out(fact.alike)
            if alike.newest is None:
                del predicate.by_first[key]
        predicate.open -= fact.open

    def unseen(self, percepts: dict[Struct, None]) -> list[Fact]:
        """Beliefs held from percepts that are not among these."""
        return [fact for plain, fact in self.percepts.items() if plain not in percepts]


def is_source(annotation: Term) -> bool:
    """True for `source(…)`."""
    return isinstance(annotation, Struct) and annotation.indicator == "source/1"


def with_origin(literal: Struct, sender: str) -> Struct:
    """The literal with its sender as source; earlier sources become sources of that."""
    earlier = [term for term in literal.annotations if is_source(term)]
    others = [term for term in literal.annotations if not is_source(term)]
    return literal.with_annotations((*others, Struct("source", (Struct(sender),), earlier)))


def sourced(annotations: tuple[Term, ...]) -> tuple[Term, ...]:
    """These annotations, with `source(self)` where they name no source."""
    if not annotations:
        return SELF_ONLY
    return annotations if any(map(is_source, annotations)) else annotation_set((*annotations, SELF))


@dataclass(slots=True, eq=False)
class Node:
    """One step of a compiled formula."""

    next: Node = field(init=False, default_factory=lambda: RETURN)

    def step(self, query: Query) -> Node | None:
        """Do it; the node to continue with, None when it failed."""
        raise NotImplementedError

    def retry(self, query: Query, state: object) -> Node | None:
        """Try the next answer of a choice that this node left."""
        raise NotImplementedError


@dataclass(slots=True, eq=False)
class Clause:
    """A compiled rule."""

    head: tuple[tuple[int, Matcher], ...]
    annotations: list[Builder]
    open: bool
    """True when annotations of the head have variables that are not in its arguments."""
    body: Node
    size: int
    """Places in its environment."""
    key: int | float | str | None
    """What the first argument must be filed under, None when anything fits."""
    term: Struct
    """The rule as a quoted term."""
    indicator: str
    place: int = 0
    """Number of beliefs that came before it."""

    def enter(self, args: tuple[Term, ...], trail: Trail, annotations: tuple[Term, ...] = ()) -> Env | None:
        """The environment of its body when the head fits these arguments and has the annotations."""
        env: Env = [UNWRITTEN] * self.size
        for place, match in self.head:
            if not match(args[place], env, trail):
                return None
        if annotations or self.open:
            held = tuple([make(env) for make in self.annotations])
            if not annotations_within(annotations, held, trail):
                return None
        return env


Answers: TypeAlias = "Iterator[bool]"
"""True for an answer; False for some tries that did not fit, so that whoever asks can count them."""
Answer: TypeAlias = "bool | Answers"
COPIED = 1_000
"""How much of beliefs may be copied for each step that a query may take."""
TRIES = 4
"""Tries without an answer that count as one step of a query."""
"""What an internal action says: yes or no, or one item for each answer it has bound."""


class Reasoner(Protocol):
    """What a query needs of the agent."""

    beliefs: BeliefBase
    rules: dict[str, list[Clause]]
    query_steps: int
    """Nodes that one answer may take."""

    def invoke(self, name: str, args: tuple[Term, ...], trail: Trail) -> Answer:
        """Run an internal action inside a formula."""


Continuation: TypeAlias = "tuple[Node, Env, Continuation | None]"
"""Where to continue when a rule's body is through, and with which environment; what comes behind that."""

Choice: TypeAlias = "tuple[Node, Env, Continuation | None, int, object]"
"""A node with more answers, the environment, continuation and length of the trail there, and its state."""


class Query:
    """One question, answered one by one.

    The variables are read from the environment it was given; asking for the next answer frees what the one
    before had bound.
    """

    __slots__ = ("choices", "continuation", "copied", "entry", "env", "held", "reasoner", "trail")

    def __init__(self, entry: Node, env: Env, reasoner: Reasoner) -> None:
        self.entry: Node | None = entry
        self.env = env
        self.reasoner = reasoner
        self.continuation: Continuation | None = None
        self.choices: list[Choice] = []
        self.trail: Trail = []
        self.copied = 0
        """Characters and parts of beliefs with variables that were copied to look whether they fit."""
        self.held = 0
        """Parts of the answers that `.findall` and its like have kept."""

    def copy(self, weight: int) -> None:
        """Count a copy of a belief.

        Raises:
            EvaluationError: copies took too long together.
        """
        self.copied += weight
        if self.copied > self.reasoner.query_steps * COPIED:
            raise EvaluationError(
                ErrorId.LIMIT_EXCEEDED, "no answer without copying large beliefs over and over"
            )

    def hold(self, parts: int) -> None:
        """Count what is kept of an answer; all together may have as many parts as a query may take steps.

        Raises:
            EvaluationError: they have more.
        """
        self.held += parts
        if self.held > self.reasoner.query_steps:
            raise EvaluationError(ErrorId.LIMIT_EXCEEDED, "the answers found so far are too large together")

    def leave(self, node: Node, state: object, mark: int) -> None:
        """Remember that a node has more answers."""
        self.choices.append((node, self.env, self.continuation, mark, state))

    def advance(self) -> bool:
        """Find the next answer; False when there is none.

        Raises:
            EvaluationError: a formula cannot be evaluated, or the search took too many steps.
        """
        node, self.entry = self.entry, None
        budget = self.reasoner.query_steps
        while node is not DONE:
            if node is not None:
                node = node.step(self)
            elif self.choices:
                resumed, self.env, self.continuation, mark, state = self.choices.pop()
                undo(self.trail, mark)
                node = resumed.retry(self, state)
            else:
                undo(self.trail, 0)
                return False
            budget -= 1
            if budget < 0:
                raise EvaluationError(
                    ErrorId.LIMIT_EXCEEDED, f"no answer within {self.reasoner.query_steps} steps of a query"
                )
        return True


class _Return(Node):
    """The end of a clause."""

    __slots__ = ()

    def __init__(self) -> None:
        self.next = self

    def step(self, query: Query) -> Node | None:
        if query.continuation is None:
            return DONE
        node, query.env, query.continuation = query.continuation
        return node


RETURN: Node = _Return()
DONE: Node = _Return()
