"""Lists and sets.

Where the standard internal actions are registered.

What sort of term something is, and terms taken apart.

Texts, and what the agent prints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from engine.bdi.beliefs import Answers, is_source, with_origin
from engine.bdi.errors import ProgramError
from engine.bdi.internal_actions import ANY_NUMBER, Call, InternalActions, failed, is_list
from engine.bdi.nodes import as_set
from engine.bdi.parser import parse_term
from engine.bdi.printer import unquoted_text
from engine.bdi.rewriting import canonical, instantiated, is_ground, resolved
from engine.bdi.syntax import DEFAULT_SPACE, PLAN_MARK, in_space, is_literal, split_name
from engine.bdi.terms import (
    QUOTED_PLAN,
    Cell,
    Collection,
    Struct,
    Term,
    compare,
    deref,
    in_order,
    items_of,
    list_of,
)
from engine.bdi.unification import undo, unify

STANDARD = InternalActions()
internal = STANDARD.register


def _is_atom(term: Term) -> bool:
    return isinstance(term, Struct) and not (term.args or term.annotations or term.negated)


_SORTS: dict[str, Callable[[Term], bool]] = {
    ".ground": lambda term: is_ground(resolved(term)),
    ".atom": _is_atom,
    ".number": lambda term: isinstance(term, int | float),
    ".string": lambda term: isinstance(term, str),
    ".list": is_list,
    ".literal": is_literal,
    ".structure": lambda term: (isinstance(term, Struct) and not _is_atom(term)) or is_list(term),
}
"""What sort of term something is."""


def _declare_sort(name: str, fits: Callable[[Term], bool]) -> None:
    internal(name, 1)(lambda call: fits(deref(call.args[0])))


for _name, _fits_sort in _SORTS.items():
    _declare_sort(_name, _fits_sort)


@internal(".type", 2)
def sorts(call: Call) -> Answers:
    """Each sort that a term is of, such as `number`, `ground` or `free`."""
    term = deref(call.args[0])
    names = [name for name in _SORT_NAMES if _SORTS[f".{name}"](term)] or ["free"]
    if isinstance(term, Collection):
        names = [term.kind.replace("priority", "queue")]
    yield from call.each((1, Struct(name)) for name in names)


_SORT_NAMES = ("number", "atom", "literal", "string", "list", "structure", "ground")


# The same term with variables of its own
internal(".copy_term", 2)(lambda call: call.unify(1, instantiated(canonical(call.value(0)))))


@internal("=..", 2)
def univ(call: Call) -> bool:
    """`p(1, 2)[a] =.. [default, p, [1, 2], [a]]`, in both directions; the namespace may be left out."""
    left = deref(call.args[0])
    if isinstance(left, Struct) and left.args[:1] == (PLAN_MARK,) and len(left.args) == 6:
        _, label, sign, literal, context, body = left.args
        event = Struct(QUOTED_PLAN, (sign, literal))
        return call.unify(1, list_of([label, event, context, body]))
    if isinstance(left, Struct):
        spelled, name = split_name(left.functor)
        result = [Struct(name, negated=left.negated), list_of(left.args), list_of(left.annotations)]
        short = len(items_of(call.args[1]) or ()) == 3
        return call.unify(1, list_of(result if short else [Struct(spelled), *result]))
    if not isinstance(left, Cell):
        return False
    parts = call.items(1)
    space = deref(parts.pop(0)) if len(parts) == 4 else Struct(DEFAULT_SPACE)
    if not isinstance(space, Struct):
        raise call.wrong(1, "a list that begins with a namespace")
    functor = deref(parts[0]) if len(parts) == 3 else None
    args = items_of(parts[1]) if len(parts) == 3 else None
    notes = items_of(parts[2]) if len(parts) == 3 else None
    if not isinstance(functor, Struct) or args is None or notes is None:
        raise call.wrong(1, "a list of functor, arguments and annotations")
    name = in_space(space.functor, functor.functor)
    made = Struct(name, tuple(args), map(resolved, notes), functor.negated)
    return call.unify(0, made)


@internal(".length", 2)
def length(call: Call) -> bool:
    """Elements of a list, or characters of a text."""
    result = deref(call.args[0])
    return call.unify(1, len(result) if isinstance(result, str) else len(call.items(0)))


internal(".member", 2)(lambda call: call.each((0, item) for item in call.items(1)))  # each element that fits


@internal(".nth", 3)
def nth(call: Call) -> Answers:
    """`.nth(place, list, element)`, places from 0; without a place, each that fits."""
    items = call.items(1)
    places = range(len(items)) if call.is_unbound(0) else range(call.integer(0), call.integer(0) + 1)
    if places and not 0 <= places[0] < len(items):
        raise failed(f".nth: there is no place {places[0]} in a list of {len(items)}")
    yield from call.each((0, place, 2, items[place]) for place in places)


# In the total order of terms; equal ones stay
internal(".sort", 2)(lambda call: call.unify(1, list_of(in_order(call.items(0)))))


def _extreme(call: Call, sign: int) -> bool:
    items = call.items(0)
    if not items:
        return False
    best = items[0]
    for term in items[1:]:
        if compare(term, best) * sign > 0:
            best = term
    return call.unify(1, best)


internal(".min", 2)(lambda call: _extreme(call, -1))
internal(".max", 2)(lambda call: _extreme(call, 1))


@internal(".reverse", 2)
def reverse(call: Call) -> bool:
    """A list or a text backwards."""
    term = deref(call.args[0])
    if isinstance(term, str):
        return call.unify(1, term[::-1])
    return call.unify(1, list_of(call.items(0)[::-1]))


@internal(".concat", 2, 100)
def concat(call: Call) -> bool:
    """Lists one after the other, or the texts of anything else."""
    *parts, _ = (deref(term) for term in call.args)
    lists = [items_of(term) for term in parts]
    last = len(call) - 1
    if all(terms is not None for terms in lists):
        return call.unify(last, call.made(item for terms in lists if terms is not None for item in terms))
    return call.unify(last, call.joined(map(call.text, range(last))))


def _parts(call: Call, stretches: Callable[[int], Iterable[tuple[int, int]]]) -> Answers:
    """Each of these stretches of a list or text that fits, by the length of the whole."""
    whole = deref(call.args[1])
    if isinstance(whole, str):
        yield from call.each((0, whole[start:stop]) for start, stop in stretches(len(whole)))
        return
    items = call.items(1)
    yield from call.each((0, list_of(items[start:stop])) for start, stop in stretches(len(items)))


# Each beginning of a list or text that fits, the longest first
internal(".prefix", 2)(lambda call: _parts(call, lambda size: ((0, stop) for stop in range(size, -1, -1))))


# Each end of a list or text that fits, the longest first
internal(".suffix", 2)(lambda call: _parts(call, lambda size: ((start, size) for start in range(size + 1))))


@internal(".empty", 1)
def empty(call: Call) -> bool:
    """Whether a list or text has nothing in it."""
    term = deref(call.args[0])
    return not (term if isinstance(term, str) else call.items(0))


@internal(".sublist", 2)
def sublist(call: Call) -> Answers:
    """Each stretch of a list that fits."""
    items = call.items(1)
    size = len(items)
    stretches = ((start, stop) for start in range(size) for stop in range(size, start, -1))
    yield from call.each((0, list_of(items[start:stop])) for start, stop in chain(stretches, ((0, 0),)))


@internal(".delete", 3, 4)
def delete(call: Call) -> bool:
    """`.delete(element, list, rest)`; a number is a place, two numbers are a stretch; texts too."""
    *what, whole, _ = call.args
    match = deref(whole)
    items: list[Term] = list(match) if isinstance(match, str) else call.items(len(call) - 2)
    if isinstance(deref(what[0]), int | float):
        start = call.integer(0)
        stop = call.integer(1) if len(what) == 2 else start + 1
        kept = items[: max(start, 0)] + items[max(stop, 0) :]
    else:
        kept = [term for term in items if not _fits(call, what[0], term)]
    result = "".join(map(str, kept)) if isinstance(match, str) else list_of(kept)
    return call.unify(len(call) - 1, result)


def _fits(call: Call, pattern: Term, item: Term) -> bool:
    """Whether an item fits, which binds the pattern: a later one has to be alike."""
    mark = len(call.trail)
    if unify(pattern, item, call.trail):
        return True
    undo(call.trail, mark)
    return False


def _among(call: Call, *, inside: bool) -> list[Term]:
    """The elements of the first list that are, or are not, among those of the second."""
    # Resolved, for a term keeps the hash that it had before its variables got values.
    others = set(map(resolved, call.items(1)))
    return [term for term in call.items(0) if (resolved(term) in others) is inside]


internal(".union", 3)(lambda call: call.unify(2, as_set(call.items(0) + call.items(1))))
internal(".intersection", 3)(lambda call: call.unify(2, as_set(_among(call, inside=True))))
internal(".difference", 3)(lambda call: call.unify(2, as_set(_among(call, inside=False))))


@internal(".range", 3, 4)
def between(call: Call) -> Answers:
    """`.range(X, first, last)`, and with a fourth argument in steps of that."""
    first, last = call.integer(1), call.integer(2)
    pace = call.integer(3) if len(call) == 4 else 1
    if pace == 0:
        raise failed(".range: a step of 0 leads nowhere")
    yield from call.each((0, value) for value in range(first, last + (1 if pace > 0 else -1), pace))


@internal(".shuffle", 2)
def shuffle(call: Call) -> bool:
    """The elements in an order of chance."""
    items = call.items(0)
    call.agent.random.shuffle(items)
    return call.unify(1, list_of(items))


def _said(call: Call, first: int = 0) -> bool:
    limit = call.agent.limits.size
    call.agent.say(call.joined(unquoted_text(term, limit) for term in call.args[first:]))
    return True


for _name in (".print", ".println"):  # what an agent says is always a line of its own
    internal(_name, 0, ANY_NUMBER)(_said)


@internal(".log", 1, ANY_NUMBER)
def log(call: Call) -> bool:
    """Say the arguments behind a level: `.log(warning, "…")`."""
    call.name_of(0)
    return _said(call, 1)


@internal(".substring", 2, 4)
def substring(call: Call) -> Answers:
    """`.substring(part, text, start, end)`: each place where the part stands, and where its last letter is.

    Without a part it is the one from a start up to, but not with, an end.
    """
    if len(call) > 2 and call.is_unbound(0) and not call.is_unbound(2):
        text = call.text(1)
        start = call.integer(2)
        stop = call.integer(3) if len(call) == 4 and not call.is_unbound(3) else len(text)
        if not 0 <= start <= stop <= len(text):
            raise failed(f".substring: there are no places {start} to {stop} in {len(text)} characters")
        yield from call.each([(0, text[start:stop])])
        return
    part, text = call.text(0), call.text(1)

    def places() -> Iterator[int]:
        start = text.find(part)
        while start >= 0:
            yield start
            start = text.find(part, start + 1)

    yield from call.each((2, start, 3, start + len(part) - 1)[: 2 * (len(call) - 2)] for start in places())


def _declare_case(name: str, change: Callable[[str], str]) -> None:
    internal(name, 2)(lambda call: call.unify(1, change(call.text(0))))


_declare_case(".lower_case", str.lower)
_declare_case(".upper_case", str.upper)


@internal(".replace", 4)
def replace(call: Call) -> bool:
    """`.replace(text, part, other, result)`: every occurrence."""
    text, part, other = call.text(0), call.text(1), call.text(2)
    if part and len(text) + text.count(part) * len(other) > 2 * call.agent.limits.size:
        call.sized(text * 3)
    return call.unify(3, call.sized(text.replace(part, other) if part else text))


@internal(".term2string", 2)
def term2string(call: Call) -> bool:
    """The text of a term, or the term that a text says; a text that says none is the term itself."""
    if not call.is_unbound(0):
        return call.unify(1, call.text(0))
    text = call.text(1)
    try:
        return call.unify(0, instantiated(parse_term(text)))
    except ProgramError:
        return call.unify(0, text)


@internal(".add_annot", 3)
def add_annot(call: Call) -> bool:
    """A literal with one more annotation, or each of a list."""
    note = call.value(1)
    return call.unify(2, _each_literal(call, lambda term: term.with_annotations((*term.annotations, note))))


@internal(".add_nested_source", 3)
def add_nested_source(call: Call) -> bool:
    """A literal that came from somebody, who had it from its earlier sources; or each of a list."""
    sender = call.name_of(1)
    return call.unify(2, _each_literal(call, lambda term: with_origin(term, sender)))


@internal(".remove_source_annot", 2)
def remove_source(call: Call) -> bool:
    """A literal without its sources, or each of a list."""

    def removed(term: Struct) -> Struct:
        return term.with_annotations([note for note in term.annotations if not is_source(note)])

    return call.unify(1, _each_literal(call, removed))


def _each_literal(call: Call, change: Callable[[Struct], Struct]) -> Term:
    """The first argument changed; of a list each literal."""
    listed = items_of(call.args[0])
    if listed is None:
        return change(call.literal(0))
    return list_of([change(term) if isinstance(term, Struct) else term for term in map(resolved, listed)])
