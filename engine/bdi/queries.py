"""Queries on beliefs and rules: depth first, lazily, with explicit stacks instead of recursion (spec §1.2).

A compiled formula is a graph of nodes. A query walks it: a node that succeeds names the next one, a node with
more answers leaves a choice behind, and a failure takes up the latest choice again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeAlias

from engine.bdi.beliefs import BeliefBase
from engine.bdi.patterns import UNWRITTEN, Env, Matcher
from engine.bdi.problems import ErrorId, EvaluationError
from engine.bdi.terms import Term
from engine.bdi.unification import Trail, undo


class Node:
    """One step of a compiled formula."""

    __slots__ = ("next",)

    def __init__(self) -> None:
        self.next: Node = RETURN

    def step(self, query: Query) -> Node | None:
        """Do it; the node to go on with, None when it failed."""
        raise NotImplementedError

    def retry(self, query: Query, state: object) -> Node | None:
        """Take up a choice that this node left behind."""
        raise NotImplementedError


class Clause:
    """A compiled rule."""

    __slots__ = ("body", "head", "key", "size", "text")

    def __init__(
        self, head: tuple[tuple[int, Matcher], ...], body: Node, size: int, key: int | float | str | None
    ) -> None:
        self.head = head
        self.body = body
        self.size = size
        """Places in its environment."""
        self.key = key
        """What the first argument must be filed under, None when anything fits."""

    def enter(self, args: tuple[Term, ...], trail: Trail) -> Env | None:
        """The environment of its body when the head fits these arguments."""
        env: Env = [UNWRITTEN] * self.size
        for place, match in self.head:
            if not match(args[place], env, trail):
                return None
        return env


Answer: TypeAlias = "bool | Iterator[None]"
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
"""Where to go on when a rule's body is through, and with which environment; what comes behind that."""

Choice: TypeAlias = "tuple[Node, Env, Continuation | None, int, object]"
"""A node with more answers, the environment, continuation and length of the trail there, and its state."""


class Query:
    """One question, answered one by one.

    The variables are read from the environment it was given; asking for the next answer frees what the one
    before had bound.
    """

    __slots__ = ("choices", "continuation", "entry", "env", "reasoner", "trail")

    def __init__(self, entry: Node, env: Env, reasoner: Reasoner) -> None:
        self.entry: Node | None = entry
        self.env = env
        self.reasoner = reasoner
        self.continuation: Continuation | None = None
        self.choices: list[Choice] = []
        self.trail: Trail = []

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
