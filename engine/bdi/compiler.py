"""Formulas and rules compiled to the nodes that a query walks.

`math.random` in terms: drawn from the agent's own source of chance before the term is made.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import NamedTuple

from engine.bdi.beliefs import RETURN, Clause, Node, Query, Reasoner, sourced
from engine.bdi.errors import ErrorId, EvaluationError, unbound
from engine.bdi.nodes import (
    Absent,
    BeliefNode,
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
    VariableNode,
    Write,
    as_set,
)
from engine.bdi.printer import text_of
from engine.bdi.rewriting import nests_within, rewrite
from engine.bdi.syntax import (
    ARITHMETIC,
    CONNECTIVES,
    NESTING_LIMIT,
    RULE_MARK,
    SPACE_MARK,
    Rule,
    conjunction,
    is_internal,
    is_quoted,
)
from engine.bdi.term_compiler import (
    Builder,
    Env,
    Matcher,
    Scope,
    builder,
    is_computed,
    is_constant,
    key_of,
    matcher,
    matchers,
)
from engine.bdi.terms import (
    FALSE,
    QUOTED_PLAN,
    TRUE,
    VARIABLE_LITERAL,
    Cell,
    Cons,
    Struct,
    Term,
    Var,
    compare,
    deref,
    list_of,
    same,
    without_open_tail,
)
from engine.bdi.unification import Trail
from engine.value import dataclass


def extract_calls(term: Term, scope: Scope) -> tuple[Term, tuple[Struct, ...]]:
    """The term with a variable for each call that is written as a value, and the calls.

    These are `math.random`, `system.time`, `.count(formula)` and `.value(rule)`. The variables are new in the
    scope. `math.random(N)` is a number from 0 up to N. A quoted body is left as it is: it calls when run.
    """
    if not _calls(term):
        return term, ()
    calls: list[Struct] = []
    return _replaced(term, calls, scope), tuple(calls)


def _calls(term: Term) -> bool:
    waiting = [term]
    while waiting:
        item = waiting.pop()
        if type(item) is Struct:
            if _is_call(item):
                return True
            waiting += item.args
            waiting += item.annotations
        elif type(item) is Cons:
            waiting += (item.head, item.tail)
    return False


def _is_call(term: Struct) -> bool:
    return term.indicator in _CALLED


_CALLED = frozenset({"math.random/0", "math.random/1", "system.time/0", ".count/1", ".value/1"})


def _replaced(term: Term, calls: list[Struct], scope: Scope) -> Term:
    """Recurses on the nesting of a program's text, which is limited, and not on the length of lists."""
    if isinstance(term, Cons):
        items: list[Term] = []
        rest: Term = term
        while isinstance(rest, Cons):
            items.append(_replaced(rest.head, calls, scope))
            rest = rest.tail
        return list_of(items, rest)
    if not isinstance(term, Struct) or is_quoted(term):
        return term
    args = tuple([_replaced(arg, calls, scope) for arg in term.args])
    if _is_call(term):
        # No name of a program's own holds a space, and the size grows with each name that is used.
        value = Var(f"call {scope.size + len(calls)}")
        if term.functor == ".value":  # a rule as a function: its last argument is the value
            asked = args[0]
            if isinstance(asked, Struct):
                calls.append(Struct(asked.functor, (*asked.args, value), asked.annotations))
            return value
        if term.functor == ".count":
            calls.append(Struct(".count", (*term.args, value)))
            return value
        if term.functor == "system.time":
            calls.append(Struct(".nano_time", (value,)))
            return Struct("div", (value, 1_000_000))
        calls.append(Struct(".random", (value,)))
        return Struct("*", (value, *args)) if args else value
    notes = [_replaced(annotation, calls, scope) for annotation in term.annotations]
    return Struct(term.functor, args, notes, term.negated)


FORMULAS_INSIDE = frozenset({".findall", ".setof", ".count", ".eval"})
"""Internal actions that are compiled as formulas, because they ask one."""


class Fragment(NamedTuple):
    """Nodes of a formula: where they start, and the last ones, whose `next` is still open."""

    entry: Node
    tails: tuple[Node, ...]

    def then(self, node: Node) -> None:
        """Let the formula continue with a node."""
        for tail in self.tails:
            tail.next = node


@dataclass(slots=True, eq=False)
class Formula:
    """A compiled formula over an environment."""

    entry: Node
    test: Callable[[Env], bool] | None
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
    late = {place: Var(f"head {place}") for place, arg in enumerate(args) if is_computed(arg)}
    # Arithmetic in a head is worked out when the body has given its variables their values.
    plain = tuple([late.get(place, arg) for place, arg in enumerate(args)])
    head = matchers(plain, scope)
    head += tuple([(place, _workable(args[place], variable, scope)) for place, variable in late.items()])
    opens = bool(scope.unwritten(*rule.head.annotations))
    annotations = [builder(term, scope) for term in sourced(without_open_tail(rule.head.annotations))]
    values = [Struct("=", (variable, args[place])) for place, variable in late.items()]
    body = _fragment(conjunction([rule.body, *values]) if values else rule.body, scope).entry
    key = key_of(args[0]) if args and not is_computed(args[0]) else None
    term = Struct(QUOTED_PLAN, (RULE_MARK, rule.head, rule.body))
    return Clause(head, annotations, opens, body, scope.size, key, term, rule.head.indicator)


def _workable(expression: Term, variable: Var, scope: Scope) -> Matcher:
    """Fits where an argument of a head can be worked out at once, or nothing particular is asked for."""
    slot = scope.slot(variable)
    fresh = scope.unwritten(expression)
    scope.written.update(fresh)
    make = builder(expression, scope)

    def match(value: Term, env: Env, trail: Trail) -> bool:
        for place in fresh:
            env[place] = Cell()
        try:
            make(env)
        except EvaluationError:
            return isinstance(deref(env[slot]), Cell)
        return True

    return match


def _fragment(term: Term, scope: Scope) -> Fragment:
    if isinstance(term, Var):
        return _alone(VariableNode(builder(term, scope), _compile_meant))
    if not isinstance(term, Struct) or (term.functor in ARITHMETIC and term.args):
        return _alone(Invalid(text_of(term)))
    if term.functor not in CONNECTIVES and term.functor not in FORMULAS_INSIDE:
        replaced, draws = extract_calls(term, scope)
        if draws:
            return _conjunction((*draws, replaced), scope)
    if term.functor == "&":
        return _conjunction(term.args, scope)
    if term.functor == "|":
        return _disjunction(term.args, scope)
    if term.functor in (VARIABLE_LITERAL, SPACE_MARK):
        return _alone(VariableNode(builder(term, scope), _compile_meant))
    if term in (TRUE, FALSE):
        return _alone(Succeed() if term == TRUE else Test(lambda env: False))
    make = _SPECIAL.get(term.indicator) or (_internal if is_internal(term.functor) else _held)
    return _alone(make(term, scope))


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


def _enclosed(condition: Term, scope: Scope, last: Callable[[int], Node]) -> tuple[Node, int]:
    """A formula inside of another, whose new variables stay inside, with its last node; entry and slot."""
    slot = scope.hidden()
    written = set(scope.written)
    inner = _fragment(condition, scope)
    inner.then(last(slot))
    scope.written = written
    return inner.entry, slot


def _gathering(term: Struct, scope: Scope) -> Node:
    """`.findall(T, F, L)`, `.setof(T, F, L)`, `.count(F, N)`."""
    *template, condition, result = term.args

    def last(slot: int) -> Node:
        return Found(slot, builder(template[0] if template else TRUE, scope))

    entry, slot = _enclosed(condition, scope, last)
    return Gather(entry, slot, _VALUES[term.functor], matcher(result, scope))


def _truth(term: Struct, scope: Scope) -> Node:
    """`.eval(T, formula)`."""
    entry, slot = _enclosed(term.args[1], scope, Proved)
    return Truth(entry, slot, matcher(term.args[0], scope))


def _internal(term: Struct, scope: Scope) -> Node:
    return Internal(term.functor, [builder(arg, scope) for arg in term.args])


_VALUES: dict[str, Callable[[list[Term]], Term]] = {".findall": list_of, ".setof": as_set, ".count": len}


def _unification(term: Struct, scope: Scope) -> Node:
    left, right = term.args
    if term.functor == "=":
        for item, other in ((left, right), (right, left)):
            if isinstance(item, Var) and not item.anonymous and scope.slot(item) not in scope.written:
                make = builder(other, scope)
                slot = scope.slot(item)
                if slot in scope.written:  # `X = f(X)`: the other side has made X already
                    return Unify(builder(item, scope), make)
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
    left, right = (builder(arg, scope) for arg in term.args)
    if term.functor in ("==", "\\=="):
        expected = term.functor == "=="
        return Test(lambda env: same(left(env), right(env)) is expected)
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
    args = [builder(arg, scope) for arg in term.args]
    scope.written = after
    notes = [builder(annotation, scope) for annotation in term.annotations]
    return BeliefNode(term.indicator, first, match, args, notes)


_SPECIAL: dict[str, Callable[[Struct, Scope], Node]] = {
    "not/1": lambda term, scope: Absent(*_enclosed(term.args[0], scope, Present)),
    **dict.fromkeys(("=/2", "\\=/2"), _unification),
    **dict.fromkeys(("==/2", "\\==/2", "</2", "<=/2", ">/2", ">=/2"), _comparison),
    "=../2": _internal,
    **dict.fromkeys((".findall/3", ".setof/3", ".count/2"), _gathering),
    ".eval/2": _truth,
}
"""What is not asked of the belief base, by functor and number of arguments."""


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
