"""Terms of a clause compiled: builders make a term, matchers take one apart without making anything.

The variables of a clause are slots of a flat list, its environment. A slot is written where its variable
first occurs and only read afterwards, so another answer needs no clearing: it writes over what it finds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from engine.bdi.arithmetic import BINARY, EXACT, FUNCTIONS, Number, normalized, number
from engine.bdi.errors import EvaluationError
from engine.bdi.rewriting import is_ground, rewrite, variables
from engine.bdi.syntax import SPACE_MARK, in_space, is_quoted, split_name
from engine.bdi.terms import NIL, VARIABLE_LITERAL, Cell, Cons, Struct, Term, Var, deref, list_of, subterms
from engine.bdi.unification import Trail, annotations_within, unify

Env: TypeAlias = list[Term]
Builder: TypeAlias = Callable[[Env], Term]
Matcher: TypeAlias = Callable[[Term, Env, Trail], bool]


UNWRITTEN = Cell()
"""What a slot holds that was not written; it is never read."""


class Scope:
    """The variables of one clause while it is compiled."""

    def __init__(self) -> None:
        self.slots: dict[str, int] = {}
        self.written: set[int] = set()
        """Slots that hold a value wherever the code being compiled is reached."""
        self.size = 0

    def slot(self, variable: Var) -> int:
        """The variable's place."""
        result = self.slots.get(variable.name)
        if result is None:
            result = self.slots[variable.name] = self.hidden()
        return result

    def hidden(self) -> int:
        """A place for something that is no variable of the program."""
        self.size += 1
        return self.size - 1

    def unwritten(self, *terms: Term) -> list[int]:
        """Slots of the variables in these terms that hold nothing yet."""
        result = dict.fromkeys(
            self.slot(variable) for term in terms for variable in variables(term) if not variable.anonymous
        )
        return [slot for slot in result if slot not in self.written]

    def environment(self) -> Env:
        """A fresh environment."""
        return [UNWRITTEN] * self.size


def key_of(term: Term) -> int | float | str | None:
    """What an index files a first argument under; None for an unbound variable.

    Different terms may share a key, so whoever finds something under it still has to match.
    """
    result = deref(term)
    if isinstance(result, Struct):
        return result.indicator
    if isinstance(result, int | float | str):
        return result
    if isinstance(result, Cell | Var):
        return None
    return "[|]" if result is not NIL else "[]"


# ------------------------------------------------------------------ building


def is_constant(term: Term) -> bool:
    """True when there is nothing to fill in and nothing to work out."""
    return not any(type(subterm) is Var or is_computed(subterm) for subterm in subterms(term)) and is_ground(
        term
    )


def is_computed(term: Term) -> bool:
    """True for arithmetic and functions, whose value stands for them."""
    return isinstance(term, Struct) and (
        (term.functor in BINARY and len(term.args) in (1, 2)) or (term.functor, len(term.args)) in FUNCTIONS
    )


def builder(term: Term, scope: Scope) -> Builder:
    """Code that makes the term, with its arithmetic worked out."""
    if isinstance(term, Var):
        return _variable_builder(term, scope)
    if is_constant(term):
        return lambda env: term
    if isinstance(term, Cons):
        return _list_builder(term, scope)
    assert isinstance(term, Struct)
    if is_computed(term):
        return arithmetic(term, scope)
    if term.functor == VARIABLE_LITERAL:
        return _annotated_variable(term, scope)
    if is_quoted(term):
        return _body_builder(term, scope)
    if term.functor == SPACE_MARK:
        return _space_builder(term, scope)
    return _struct_builder(term, scope)


def _variable_builder(variable: Var, scope: Scope) -> Builder:
    if variable.anonymous:
        return lambda env: Cell()
    slot = scope.slot(variable)
    if slot not in scope.written:
        scope.written.add(slot)
        return _fresh(slot)

    def read(env: Env) -> Term:
        value = env[slot]
        return deref(value) if type(value) is Cell else value

    return read


def _fresh(slot: int) -> Builder:
    def make(env: Env) -> Term:
        cell = env[slot] = Cell()
        return cell

    return make


def _struct_builder(term: Struct, scope: Scope) -> Builder:
    parts = [builder(arg, scope) for arg in term.args]
    notes = [builder(annotation, scope) for annotation in term.annotations]
    if notes:
        return lambda env: term.with_args(tuple([part(env) for part in parts])).with_annotations(
            [note(env) for note in notes]
        )
    if len(parts) == 1:
        only = parts[0]
        return lambda env: term.with_args((only(env),))
    return lambda env: term.with_args(tuple([part(env) for part in parts]))


def _body_builder(term: Struct, scope: Scope) -> Builder:
    """A quoted body with its variables filled in; its arithmetic is worked out when it is run."""
    values = {var: builder(var, scope) for var in variables(term)}

    def make(env: Env) -> Term:
        cells = {variable: value(env) for variable, value in values.items()}
        return rewrite(term, lambda variable: cells[variable] if type(variable) is Var else variable)

    return make


def _space_builder(term: Struct, scope: Scope) -> Builder:
    """`N::p(X)`: the literal in the namespace that N stands for."""
    space, literal = (builder(arg, scope) for arg in term.args)

    def make(env: Env) -> Term:
        name, bare = deref(space(env)), deref(literal(env))
        if not isinstance(name, Struct) or not isinstance(bare, Struct) or not bare.functor:
            return Struct(VARIABLE_LITERAL, (Cell(),))
        functor = in_space(name.functor, split_name(bare.functor)[1]) if name.functor else bare.functor
        return named_anew(bare, functor, bare.negated or negated)

    negated = term.negated
    return make


def named_anew(literal: Struct, functor: str, negated: bool) -> Struct:
    """The literal with another functor."""
    return Struct(functor, literal.args, literal.annotations, negated)


_OWN = Struct("")
"""In place of a namespace: the one that the literal has."""


def _space_matcher(term: Struct, scope: Scope) -> Matcher:
    """`N::p(X)` or `~P` as a trigger: its namespace and name, each on its own."""
    space, literal = (builder(arg, scope) for arg in term.args)

    def match(value: Term, env: Env, trail: Trail) -> bool:
        wanted_space, wanted = space(env), literal(env)
        found = deref(value)
        if not isinstance(found, Struct) or (negated and not found.negated):
            return False
        if wanted_space == _OWN:
            return unify(wanted, named_anew(found, found.functor, False), trail)
        name, functor = split_name(found.functor)
        fits = unify(wanted_space, Struct(name), trail)
        return fits and unify(wanted, named_anew(found, functor, found.negated and not negated), trail)

    negated = term.negated

    return match


def _list_builder(term: Cons, scope: Scope) -> Builder:
    heads: list[Builder] = []
    rest: Term = term
    while isinstance(rest, Cons):
        heads.append(builder(rest.head, scope))
        rest = rest.tail
    tail = builder(rest, scope)
    if len(heads) == 1:
        only = heads[0]
        return lambda env: Cons(only(env), tail(env))
    return lambda env: list_of([head(env) for head in heads], tail(env))


def _annotated_variable(term: Struct, scope: Scope) -> Builder:
    """`G[note]`: the literal that G stands for, with more annotations."""
    variable = builder(term.args[0], scope)
    notes = [builder(annotation, scope) for annotation in term.annotations]

    def make(env: Env) -> Term:
        literal = deref(variable(env))
        added = [note(env) for note in notes]
        if isinstance(literal, Struct):
            return literal.with_annotations((*literal.annotations, *added))
        return Struct(VARIABLE_LITERAL, (literal,), added)

    return make


def arithmetic(term: Struct, scope: Scope) -> Callable[[Env], Number]:
    """Code that works out an arithmetic expression or function."""
    if term.functor not in BINARY:
        function = FUNCTIONS[term.functor, len(term.args)]
        given = [builder(arg, scope) for arg in term.args]
        return lambda env: normalized(function(*[item(env) for item in given]))
    operation = BINARY[term.functor]
    left = builder(term.args[0], scope)
    if len(term.args) == 1:
        return lambda env: -number(left(env))
    right = builder(term.args[1], scope)

    def compute(env: Env) -> Number:
        a, b = left(env), right(env)
        if type(a) is int and type(b) is int:
            value = operation(a, b)
            return value if type(value) is int and -EXACT < value < EXACT else normalized(value)
        return normalized(operation(number(a), number(b)))

    return compute


# ------------------------------------------------------------------ matching


def matchers(terms: tuple[Term, ...], scope: Scope) -> tuple[tuple[int, Matcher], ...]:
    """Matchers for these terms with their places; places where everything fits are left out."""
    made = [(place, matcher(term, scope)) for place, term in enumerate(terms)]
    return tuple((place, match) for place, match in made if match is not None)


def matcher(term: Term, scope: Scope) -> Matcher | None:
    """Code that unifies the term, as left side, with a given one; None when everything fits."""
    if isinstance(term, Var):
        return _variable_matcher(term, scope)
    if is_constant(term):
        return _constant_matcher(term)
    if isinstance(term, Cons) and _cells(term) <= LONG_PATTERN:
        return _pair_matcher(term, scope)
    if isinstance(term, Struct) and term.functor == SPACE_MARK:
        return _space_matcher(term, scope)
    if isinstance(term, Struct) and not (term.annotations or is_computed(term) or is_quoted(term)):
        return _struct_matcher(term, scope)
    make = builder(term, scope)
    if is_computed(term):
        return _computed_matcher(make)
    return lambda value, env, trail: unify(make(env), value, trail)


def _computed_matcher(make: Builder) -> Matcher:
    """For arithmetic: what cannot be worked out fits nothing."""

    def match(value: Term, env: Env, trail: Trail) -> bool:
        try:
            made = make(env)
        except EvaluationError:
            return False
        return unify(made, value, trail)

    return match


LONG_PATTERN = 20
"""Elements of a list pattern up to which it is matched piece by piece; a longer one is made and unified."""


def _cells(term: Term) -> int:
    count = 0
    while isinstance(term, Cons):
        count += 1
        term = term.tail
    return count


def _constant_matcher(constant: Term) -> Matcher:
    if isinstance(constant, Cons) or (
        isinstance(constant, Struct) and (constant.args or constant.annotations)
    ):
        return lambda value, env, trail: unify(constant, value, trail)
    if isinstance(constant, Struct):
        return _atom_matcher(constant)

    def match(value: Term, env: Env, trail: Trail) -> bool:
        return value == constant or (type(value) is Cell and unify(constant, value, trail))

    return match


def _atom_matcher(constant: Struct) -> Matcher:
    indicator = constant.indicator

    def match(value: Term, env: Env, trail: Trail) -> bool:
        if type(value) is Struct:
            return value.indicator == indicator
        return type(value) is Cell and unify(constant, value, trail)

    return match


def _variable_matcher(variable: Var, scope: Scope) -> Matcher | None:
    if variable.anonymous:
        return None
    slot = scope.slot(variable)
    if slot not in scope.written:
        scope.written.add(slot)

        def write(value: Term, env: Env, trail: Trail) -> bool:
            env[slot] = value
            return True

        return write

    def compare(value: Term, env: Env, trail: Trail) -> bool:
        held = env[slot]
        if type(held) is int and type(value) is int:
            return held == value
        return unify(held, value, trail)

    return compare


def _both_ways(
    term: Term, parts: tuple[Term, ...], scope: Scope
) -> tuple[tuple[tuple[int, Matcher], ...], Builder]:
    """Matchers for the parts, and the builder for when an unbound variable is met instead of a structure."""
    before = set(scope.written)
    match = matchers(parts, scope)
    after, scope.written = scope.written, before
    make = builder(term, scope)
    scope.written = after
    return match, make


def _struct_matcher(term: Struct, scope: Scope) -> Matcher:
    parts, make = _both_ways(term, term.args, scope)
    indicator = term.indicator

    def match(value: Term, env: Env, trail: Trail) -> bool:
        if type(value) is Cell:
            value = deref(value)
            if type(value) is Cell:
                return unify(value, make(env), trail)
        if type(value) is not Struct or value.indicator != indicator:
            return False
        args = value.args
        return all(part(args[place], env, trail) for place, part in parts)

    return match


def _pair_matcher(term: Cons, scope: Scope) -> Matcher:
    parts, make = _both_ways(term, (term.head, term.tail), scope)

    def match(value: Term, env: Env, trail: Trail) -> bool:
        if type(value) is Cell:
            value = deref(value)
            if type(value) is Cell:
                return unify(value, make(env), trail)
        if type(value) is not Cons:
            return False
        ends = (value.head, value.tail)
        return all(part(ends[place], env, trail) for place, part in parts)

    return match


def annotation_matcher(
    annotations: tuple[Term, ...], scope: Scope
) -> Callable[[tuple[Term, ...], Env, Trail], bool]:
    """Code that finds each of these annotations, as left side, among those of a literal."""
    makes = [builder(term, scope) for term in annotations]

    def match(held: tuple[Term, ...], env: Env, trail: Trail) -> bool:
        return annotations_within(tuple([make(env) for make in makes]), held, trail)

    return match
