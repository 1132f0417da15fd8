"""Formulas and rules compiled to the nodes that a query walks."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import NamedTuple

from engine.bdi.chance import drawn
from engine.bdi.formulas import ARITHMETIC, CONNECTIVES, NESTING_LIMIT
from engine.bdi.held import Held, Meant
from engine.bdi.nodes import (
    Absent,
    Either,
    Found,
    Gather,
    Initialise,
    Internal,
    Invalid,
    Present,
    Proved,
    Succeed,
    Test,
    Truth,
    Unify,
    Write,
    as_set,
)
from engine.bdi.ordering import compare
from engine.bdi.patterns import (
    Builder,
    Env,
    Scope,
    builder,
    is_computed,
    is_constant,
    key_of,
    matcher,
    matchers,
)
from engine.bdi.printing import text_of
from engine.bdi.problems import ErrorId, EvaluationError, unbound
from engine.bdi.queries import RETURN, Clause, Node, Query, Reasoner
from engine.bdi.syntax import Rule
from engine.bdi.terms import (
    FALSE,
    TRUE,
    VARIABLE_LITERAL,
    Cell,
    Struct,
    Term,
    Var,
    list_of,
    nests_within,
    rewrite,
    same,
)
from engine.bdi.unification import Trail

FORMULAS_INSIDE = frozenset({".findall", ".setof", ".count", ".eval"})
"""Internal actions that are compiled as formulas, because they ask one."""


class Fragment(NamedTuple):
    """Nodes of a formula: where they start, and the last ones, whose `next` is still open."""

    entry: Node
    tails: tuple[Node, ...]

    def then(self, node: Node) -> None:
        """Let the formula go on with a node."""
        for tail in self.tails:
            tail.next = node


class Formula:
    """A compiled formula over an environment."""

    __slots__ = ("entry", "test")

    def __init__(self, entry: Node, test: Callable[[Env], bool] | None) -> None:
        self.entry = entry
        self.test = test
        """The whole formula as one condition, where it consists of conditions only."""

    def answers(self, env: Env, reasoner: Reasoner) -> Query:
        """Ask for all answers, lazily."""
        return Query(self.entry, env, reasoner)

    def first(self, env: Env, reasoner: Reasoner) -> Trail | None:
        """Find the first answer: the variables it has bound, None when there is no answer.

        Raises:
            EvaluationError: the formula cannot be evaluated.
        """
        if self.test is not None:
            return [] if self.test(env) else None
        query = Query(self.entry, env, reasoner)
        return query.trail if query.advance() else None

    def holds(self, env: Env, reasoner: Reasoner) -> bool:
        """As `first`, where what was bound does not matter."""
        return self.first(env, reasoner) is not None


def compile_formula(term: Term, scope: Scope) -> Formula:
    """Compile a formula in the scope of its clause."""
    node = entry = _fragment(term, scope).entry
    test: Callable[[Env], bool] | None = None
    while isinstance(node, Test):
        test = node.holds if test is None else _both(test, node.holds)
        node = node.next
    return Formula(entry, test if node is RETURN else None)


def _both(first: Callable[[Env], bool], second: Callable[[Env], bool]) -> Callable[[Env], bool]:
    return lambda env: first(env) and second(env)


def compile_rule(rule: Rule) -> Clause:
    """Compile a rule."""
    scope = Scope()
    args = rule.head.args
    head = matchers(args, scope)
    body = _fragment(rule.body, scope).entry
    key = key_of(args[0]) if args and not is_computed(args[0]) else None
    return Clause(head, body, scope.size, key)


def _fragment(term: Term, scope: Scope) -> Fragment:
    if isinstance(term, Var):
        return _alone(Meant(builder(term, scope), _compile_meant))
    if not isinstance(term, Struct) or (term.functor in ARITHMETIC and term.args):
        return _alone(Invalid(text_of(term)))
    if term.functor not in CONNECTIVES and term.functor not in FORMULAS_INSIDE:
        replaced, draws = drawn(term, scope)
        if draws:
            return _conjunction((*draws, replaced), scope)
    if term == TRUE:
        return _alone(Succeed())
    if term == FALSE:
        return _alone(Test(lambda env: False))
    match term.functor, len(term.args):
        case "&", _:
            return _conjunction(term.args, scope)
        case "|", _:
            return _disjunction(term.args, scope)
        case "not", 1:
            return _negation(term.args[0], scope)
        case (("=" | "\\="), 2):
            return _alone(_unification(term, scope))
        case (("==" | "\\==" | "<" | "<=" | ">" | ">="), 2):
            return _alone(_comparison(term, scope))
        case "=..", 2:
            return _alone(Internal("=..", [builder(one, scope) for one in term.args]))
        case ((".findall" | ".setof"), 3) | (".count", 2):
            return _gathering(term, scope)
        case ".eval", 2:
            return _truth(term, scope)
    if term.functor == VARIABLE_LITERAL:
        return _alone(Meant(builder(term, scope), _compile_meant))
    if term.functor[0] == ".":
        return _alone(Internal(term.functor, [builder(one, scope) for one in term.args]))
    return _alone(_held(term, scope))


def _alone(node: Node) -> Fragment:
    return Fragment(node, (node,))


def _conjunction(parts: tuple[Term, ...], scope: Scope) -> Fragment:
    first = last = _fragment(parts[0], scope)
    for part in parts[1:]:
        following = _fragment(part, scope)
        last.then(following.entry)
        last = following
    return Fragment(first.entry, last.tails)


def _disjunction(parts: tuple[Term, ...], scope: Scope) -> Fragment:
    start = Initialise(scope.unwritten(*parts))
    scope.written.update(start.slots)
    branches = [_fragment(part, scope) for part in parts]
    start.next = Either([branch.entry for branch in branches])
    return Fragment(start, tuple(tail for branch in branches for tail in branch.tails))


def _negation(part: Term, scope: Scope) -> Fragment:
    slot = scope.hidden()
    written = set(scope.written)
    inner = _fragment(part, scope)
    scope.written = written
    inner.then(Present(slot))
    return _alone(Absent(inner.entry, slot))


def _gathering(term: Struct, scope: Scope) -> Fragment:
    """`.findall(T, F, L)`, `.setof(T, F, L)`, `.count(F, N)`; variables new in T and F stay inside."""
    *template, condition, result = term.args
    slot = scope.hidden()
    written = set(scope.written)
    inner = _fragment(condition, scope)
    inner.then(Found(slot, builder(template[0] if template else TRUE, scope)))
    scope.written = written
    node = Gather(inner.entry, slot, _VALUES[term.functor])
    node.result = matcher(result, scope)
    return _alone(node)


def _truth(term: Struct, scope: Scope) -> Fragment:
    """`.eval(T, formula)`; variables new in the formula stay inside."""
    result, condition = term.args
    slot = scope.hidden()
    written = set(scope.written)
    inner = _fragment(condition, scope)
    scope.written = written
    node = Truth(inner.entry, slot)
    inner.then(Proved(node))
    node.result = matcher(result, scope)
    return _alone(node)


_VALUES: dict[str, Callable[[list[Term]], Term]] = {".findall": list_of, ".setof": as_set, ".count": len}


def _unification(term: Struct, scope: Scope) -> Node:
    left, right = term.args
    if term.functor == "=":
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Var) and not one.anonymous and scope.slot(one) not in scope.written:
                make = builder(other, scope)
                slot = scope.slot(one)
                if slot in scope.written:  # `X = f(X)`: the other side has made X already
                    return Unify(builder(one, scope), make)
                scope.written.add(slot)
                return Write(slot, make)
    return Unify(builder(left, scope), builder(right, scope), bind=term.functor == "=")


_ORDERS: dict[str, Callable[[int | float, int | float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _comparison(term: Struct, scope: Scope) -> Node:
    left, right = (builder(one, scope) for one in term.args)
    if term.functor in ("==", "\\=="):
        wanted = term.functor == "=="
        return Test(lambda env: same(left(env), right(env)) is wanted)
    order = _ORDERS[term.functor]
    text = text_of(term)

    def holds(env: Env) -> bool:
        a, b = left(env), right(env)
        if (type(a) is int or type(a) is float) and (type(b) is int or type(b) is float):
            return order(a, b)
        if type(a) is Cell or type(b) is Cell:
            raise unbound(f"a variable of {text}")
        return order(compare(a, b), 0)

    return Test(holds)


def _held(term: Struct, scope: Scope) -> Node:
    first = _known_first(term, scope)
    before = set(scope.written)
    match = matchers(term.args, scope)
    after, scope.written = scope.written, before
    args = [builder(one, scope) for one in term.args]
    scope.written = after
    notes = [builder(one, scope) for one in term.annotations]
    return Held(term.indicator, first, match, args, notes)


def _known_first(term: Struct, scope: Scope) -> Builder | None:
    if not term.args:
        return None
    first = term.args[0]
    if isinstance(first, Var) and (first.anonymous or scope.slot(first) not in scope.written):
        return None
    if isinstance(first, Var) or is_constant(first) or (is_computed(first) and not scope.unwritten(first)):
        return builder(first, scope)
    # An index looks no further than the functor, so the pattern itself will do.
    return None if is_computed(first) else lambda env: first


def _compile_meant(term: Term) -> tuple[Node, Env]:
    """A formula that exists only while a program runs, with an environment that holds its variables."""
    if not nests_within(term, NESTING_LIMIT):
        raise EvaluationError(ErrorId.LIMIT_EXCEEDED, f"a formula nests deeper than {NESTING_LIMIT} levels")
    scope = Scope()
    cells: dict[Term, Var] = {}
    written = rewrite(term, lambda cell: cells.setdefault(cell, Var(f"V{len(cells)}")))
    scope.written.update(scope.slot(variable) for variable in cells.values())
    entry = _fragment(written, scope).entry
    env = scope.environment()
    for cell, variable in cells.items():
        env[scope.slot(variable)] = cell
    return entry, env
