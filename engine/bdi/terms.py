"""Terms of AgentSpeak(L): numbers, strings, structures, lists, variables.

Numbers and strings are Python's own. Logical formulas and arithmetic are structures too, with the operator
as functor (`&` and `|` take any number of arguments). Nothing here recurses on depth, so lists of 100,000
elements and terms nested 50,000 deep are ordinary values.

The total order of terms: numbers, strings, lists, then structures (settled with Jason).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cmp_to_key
from typing import TypeAlias, TypeGuard

from engine.bdi.errors import ErrorId, EvaluationError

WALK = 1_000_000
"""Structures and list cells that one walk through terms takes.

A term whose parts are shared, `f(X, X)` of `X = f(Y, Y)` and so on, is small to make and endless to walk.
"""

QUOTED_PLAN = "{}"
"""Functor of what is in braces: `{ +!g(X) }` holds sign and literal, a plan its text, a body its items."""

VARIABLE_LITERAL = ""
"""Functor of a variable that stands for a literal with annotations, `P[e]`; the variable is its argument."""


ANNOTATION_TAIL = "|"
"""Functor of the annotation that stands for all others, `T` of `p[a|T]`; it has one argument."""


class Var:
    """A variable as a programmer wrote it; equal names are equal, anonymous ones are `_1`, `_2`, …"""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def anonymous(self) -> bool:
        """True for `_`."""
        return self.name[0] == "_" and self.name[1:].isdigit()

    def __eq__(self, other: object) -> bool:
        return type(other) is Var and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Var({self.name!r})"


class Cell:
    """A logic variable while a program runs: empty until something is bound to it."""

    __slots__ = ("ref",)

    def __init__(self) -> None:
        self.ref: Term | None = None


class Struct:
    """A structure `f(a, B)[note]`; without arguments an atom, with `negated` strong negation `~f(…)`.

    Never changed after it was made. Two structures are equal when functor, arguments, negation and
    annotations (a set) are.
    """

    __slots__ = ("_hash", "annotations", "args", "functor", "ground", "indicator", "negated")

    def __init__(
        self,
        functor: str,
        args: tuple[Term, ...] = (),
        annotations: Iterable[Term] = (),
        negated: bool = False,
    ) -> None:
        self.functor = functor
        self.args = args
        self.negated = negated
        self.annotations: tuple[Term, ...] = annotation_set(annotations) if annotations else ()
        self.indicator = f"~{functor}/{len(args)}" if negated else f"{functor}/{len(args)}"
        """Functor and number of arguments, `~p/2`: what may unify has the same."""
        self.ground = not args and not annotations
        """True when it is known to hold no unbound variable."""
        self._hash: int | None = None

    def with_args(self, args: tuple[Term, ...]) -> Struct:
        """The same functor and annotations with other arguments, as many as before."""
        made = _new(Struct)
        made.functor = self.functor
        made.args = args
        made.negated = self.negated
        made.annotations = self.annotations
        made.indicator = self.indicator
        made.ground = False
        made._hash = None
        return made

    def with_annotations(self, annotations: Iterable[Term]) -> Struct:
        """The same literal with these annotations instead."""
        made = self.with_args(self.args)
        made.annotations = annotation_set(annotations)
        return made

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not Struct or self.indicator != other.indicator:
            return False
        known = self._hash is not None and other._hash is not None
        return not (known and self._hash != other._hash) and same(self, other)

    def __hash__(self) -> int:
        if self._hash is None:
            _hash_parts(self)
        return self._hash  # type: ignore[return-value]  # just computed

    def __repr__(self) -> str:
        return f"Struct({self.functor!r}, {self.args!r})"


class Nil:
    """The empty list; there is one, `NIL`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<[]>"


class Cons:
    """A list cell `[head | tail]`; taking head or tail costs nothing."""

    __slots__ = ("_hash", "ground", "head", "tail")

    def __init__(self, head: Term, tail: Term) -> None:
        self.head = head
        self.tail = tail
        self.ground = False
        self._hash: int | None = None

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is Cons and same(self, other))

    def __hash__(self) -> int:
        if self._hash is None:
            _hash_parts(self)
        return self._hash  # type: ignore[return-value]  # just computed

    def __repr__(self) -> str:
        return f"Cons({self.head!r}, {self.tail!r})"


class Collection:
    """A set, map or queue: it changes, and whoever has it has the same one.

    What it holds has variables of its own, as `canonical` makes them. Sets are equal when they hold the same.
    """

    __slots__ = ("kind", "queued", "room", "rows", "taken")

    def __init__(self, kind: str, room: list[int]) -> None:
        self.kind = kind
        """`set`, `map`, `queue`, or `priority` for a queue in the order of terms."""
        self.rows: dict[Term, Term] = {}
        """Of a map the values by key; of a set each element by itself."""
        self.queued: list[Term] = []
        """Of a queue, the head first."""
        self.room, self.taken = room, 0
        """What all of an agent may still take together, as `weight_of` counts, and what this one takes."""

    def __del__(self) -> None:
        self.room[0] += self.taken

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Collection) and self.kind == other.kind == "set" and self.rows == other.rows
        )

    __hash__ = object.__hash__

    def __len__(self) -> int:
        return len(self.rows) + len(self.queued)

    @property
    def keys(self) -> list[Term]:
        """The keys of a map, the elements of a set, each in the order of terms."""
        return in_order(self.rows)

    @property
    def elements(self) -> list[Term]:
        """The elements, of a map the values in the order of their keys."""
        return self.queued or [self.rows[key] for key in self.keys]

    def charge(self, *terms: Term, sign: int = 1) -> None:
        """Count terms that it holds now, or with -1 no longer.

        Raises:
            EvaluationError: there is no room for them.
        """
        weight = sign * (SHORT + weight_of(terms))
        if weight > self.room[0]:
            raise EvaluationError(ErrorId.LIMIT_EXCEEDED, "sets, maps and queues are too large together")
        self.room[0] -= weight
        self.taken += weight


Term: TypeAlias = int | float | str | Struct | Nil | Cons | Var | Cell | Collection

NIL = Nil()
_new = object.__new__


def atom(name: str) -> Struct:
    """The atom with this name."""
    return Struct(name)


TRUE = atom("true")
FALSE = atom("false")
SELF = Struct("source", (atom("self"),))
PERCEPT = Struct("source", (atom("percept"),))


def list_of(items: Iterable[Term], tail: Term = NIL) -> Term:
    """A list term of these items, ending in `tail`."""
    made = tail
    for item in reversed(list(items)):
        made = Cons(item, made)
    return made


def items_of(term: Term) -> list[Term] | None:
    """The elements of a proper list, None when the term is not one."""
    items: list[Term] = []
    term = deref(term)
    while type(term) is Cons:
        items.append(term.head)
        term = deref(term.tail)
    return items if term is NIL else None


def deref(term: Term) -> Term:
    """What a logic variable stands for at present."""
    while type(term) is Cell:
        ref = term.ref
        if ref is None:
            return term
        term = ref
    return term


def children(term: Term) -> tuple[Term, ...]:
    """The parts directly inside a term: arguments and annotations, or head and tail."""
    if type(term) is Struct:
        return term.args + term.annotations
    if type(term) is Cons:
        return (term.head, term.tail)
    return ()


def too_large() -> EvaluationError:
    """The error for terms that a walk does not get to the end of."""
    return EvaluationError(ErrorId.LIMIT_EXCEEDED, f"a term has more than {WALK} parts")


def subterms(term: Term) -> Iterator[Term]:
    """The term and everything inside it, outermost first, left to right."""
    waiting = [term]
    left = WALK
    while waiting:
        item = deref(waiting.pop())
        yield item
        if type(item) is Struct or type(item) is Cons:
            left -= 1
            if left < 0:
                raise too_large()
            waiting.extend(reversed(children(item)))


def weight_of(terms: Iterable[Term]) -> int:
    """What terms take of the memory: characters of long texts, and parts inside; simple ones take nothing."""
    weight = 0
    visited: set[int] = set()
    waiting: list[Term] = [
        term for term in terms if type(term) is str or type(term) is Struct or type(term) is Cons
    ]
    while waiting:
        item = deref(waiting.pop())
        if type(item) is str:
            weight += len(item) if len(item) > SHORT else 0
        elif id(item) not in visited and (parts := children(item)):
            visited.add(id(item))
            weight += SHORT
            waiting.extend(parts)
    return weight


SHORT = 100
"""Characters of a text that do not count, and what a structure counts."""


def annotation_set(annotations: Iterable[Term]) -> tuple[Term, ...]:
    """Without duplicates, in the total order of terms; a tail that has a value is replaced by that."""
    given = tuple(annotations)
    for term in given:
        if type(term) is Struct and term.functor == ANNOTATION_TAIL:
            given = tuple(expanded_annotations(given))
            break
    if len(given) < 2:
        return given

    sorted_set: list[Term] = []
    for term in in_order(given):
        if not sorted_set or not same(sorted_set[-1], term):
            sorted_set.append(term)
    return tuple(sorted_set)


def is_tail(annotation: Term) -> TypeGuard[Struct]:
    """True for the `|T` of a set of annotations."""
    return type(annotation) is Struct and annotation.functor == ANNOTATION_TAIL and len(annotation.args) == 1


def without_open_tail(annotations: tuple[Term, ...]) -> tuple[Term, ...]:
    """The annotations without a tail that has no value."""
    return tuple(term for term in annotations if not is_tail(term)) if annotations else ()


def expanded_annotations(annotations: Iterable[Term]) -> list[Term]:
    """The annotations with the elements of a tail in its place, as far as it has a value."""
    made: list[Term] = []
    for term in annotations:
        if not is_tail(term):
            made.append(term)
            continue
        rest = deref(term.args[0])
        while type(rest) is Cons:
            made.append(rest.head)
            rest = deref(rest.tail)
        if rest is not NIL:
            made.append(Struct(ANNOTATION_TAIL, (rest,)))
    return made


def same(left: Term, right: Term) -> bool:
    """True when two terms are identical as they stand, `==` of the language; binds nothing."""
    waiting = [(left, right)]
    walk = WALK
    while waiting:
        a, b = waiting.pop()
        a, b = deref(a), deref(b)
        if a is b:
            continue
        if type(a) is Struct and type(b) is Struct:
            if a.indicator != b.indicator or len(a.annotations) != len(b.annotations):
                return False
            if a.args or a.annotations:
                walk -= 1
                if walk < 0:
                    raise too_large()
                waiting.extend(zip(a.args, b.args, strict=True))
                waiting.extend(zip(a.annotations, b.annotations, strict=True))
        elif type(a) is Cons and type(b) is Cons:
            walk -= 1
            if walk < 0:
                raise too_large()
            waiting.append((a.tail, b.tail))
            waiting.append((a.head, b.head))
        elif type(a) in _COMPOUND or type(b) in _COMPOUND or a != b:
            return False
    return True


_COMPOUND = (Struct, Cons, Cell)


def _hash_parts(term: Struct | Cons) -> None:
    """Give a term its hash, inner parts first, so that no part has to ask another for it."""
    waiting: list[tuple[Term, bool]] = [(term, False)]
    while waiting:
        item, ready = waiting.pop()
        if not isinstance(item, Struct | Cons) or item._hash is not None:
            continue
        parts = tuple(map(deref, children(item)))
        if ready:
            item._hash = hash((item.indicator, parts) if isinstance(item, Struct) else parts)
        else:
            waiting.append((item, True))
            waiting.extend((part, False) for part in parts)


hash(SELF), hash(PERCEPT)  # known hashes tell the two apart without a look inside


def compare(left: Term, right: Term) -> int:
    """Negative, zero or positive as `left` stands before, with or after `right`.

    Structures go by functor, then arguments, then their number, positive before `~`, then annotations;
    variables come last.
    """
    waiting = [(left, right)]
    walk = 2 * WALK
    while waiting:
        walk -= 1
        if walk < 0:
            raise too_large()
        a, b = waiting.pop()
        a, b = deref(a), deref(b)
        if a is b:
            continue
        rank, other = _RANK[type(a)], _RANK[type(b)]
        if rank != other:
            return -1 if rank < other else 1
        if isinstance(a, Struct) and isinstance(b, Struct):
            if a.functor != b.functor:
                return -1 if a.functor < b.functor else 1
            waiting.append((len(a.annotations), len(b.annotations)))
            waiting.extend(_backwards(a.annotations, b.annotations))
            waiting.append((a.negated, b.negated))
            waiting.append((len(a.args), len(b.args)))
            waiting.extend(_backwards(a.args, b.args))
        elif isinstance(a, Cons) and isinstance(b, Cons):
            waiting.append((a.tail, b.tail))
            waiting.append((a.head, b.head))
        elif isinstance(a, Collection):
            continue
        elif isinstance(a, Cons | Nil):
            return 1 if isinstance(a, Cons) else -1
        elif (key := _leaf(a)) != (with_ := _leaf(b)):
            return -1 if key < with_ else 1  # type: ignore[operator]  # of one rank, so of one type
    return 0


_RANK: dict[type, int] = {
    bool: 0,
    int: 0,
    float: 0,
    str: 1,
    Nil: 2,
    Cons: 2,
    Struct: 3,
    Collection: 4,
    Var: 5,
    Cell: 6,
}


def _backwards(left: tuple[Term, ...], right: tuple[Term, ...]) -> list[tuple[Term, Term]]:
    """Pairs, the first of them last, as a stack wants them."""
    return list(zip(left, right, strict=False))[::-1]


def _leaf(term: Term) -> int | float | str:
    if isinstance(term, Var):
        return term.name
    return id(term) if isinstance(term, Cell) else term  # type: ignore[return-value]


def in_order(terms: Iterable[Term]) -> list[Term]:
    """The terms sorted; equal ones keep their places."""
    return sorted(terms, key=cmp_to_key(compare))
