"""Texts, and what the agent prints."""

from __future__ import annotations

from collections.abc import Iterator

from engine.bdi.actions import ANY_NUMBER, Call, failed
from engine.bdi.library.registry import internal
from engine.bdi.parser import parse_term
from engine.bdi.printing import shown, text_of
from engine.bdi.problems import ProgramError
from engine.bdi.terms import instantiated
from engine.bdi.unification import undo


def _said(call: Call, first: int = 0) -> bool:
    call.agent.say(call.sized("".join(map(shown, call.args[first:]))))
    return True


@internal(".print", 0, ANY_NUMBER)
def print_line(call: Call) -> bool:
    """Say the arguments, one after the other without separators."""
    return _said(call)


@internal(".println", 0, ANY_NUMBER)
def println(call: Call) -> bool:
    """The same; what an agent says is always a line of its own."""
    return _said(call)


@internal(".log", 1, ANY_NUMBER)
def log(call: Call) -> bool:
    """Say the arguments behind a level: `.log(warning, "…")`."""
    call.name_of(0)
    return _said(call, 1)


@internal(".substring", 2, 4)
def substring(call: Call) -> Iterator[None]:
    """`.substring(part, text, start, end)`: each place where the part stands."""
    part, text = call.text(0), call.text(1)
    start = text.find(part)
    while start >= 0:
        mark = len(call.trail)
        if (len(call) < 3 or call.unify(2, start)) and (len(call) < 4 or call.unify(3, start + len(part))):
            yield
        undo(call.trail, mark)
        start = text.find(part, start + 1)


@internal(".replace", 4)
def replace(call: Call) -> bool:
    """`.replace(text, part, other, result)`: every occurrence."""
    text, part, other = call.text(0), call.text(1), call.text(2)
    if part and len(text) + text.count(part) * len(other) > 2 * call.agent.limits.size:
        call.sized(text * 3)
    return call.unify(3, call.sized(text.replace(part, other) if part else text))


@internal(".term2string", 2)
def term2string(call: Call) -> bool:
    """The text of a term, or the term that a text says."""
    if not call.is_unbound(0):
        return call.unify(1, call.sized(text_of(call.value(0))))
    try:
        return call.unify(0, instantiated(parse_term(call.text(1))))
    except ProgramError as error:
        raise failed(f".term2string: {error.problems[0]}") from None
