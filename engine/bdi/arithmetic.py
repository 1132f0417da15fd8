"""Arithmetic as Jason does it: integers are exact up to 2**53, larger numbers floating point."""

from __future__ import annotations

import math
import operator
import statistics
from collections.abc import Callable
from typing import TypeAlias

from engine.bdi.errors import ErrorId, EvaluationError, unbound
from engine.bdi.terms import Cell, Cons, Term, Var, deref, items_of

Number: TypeAlias = int | float

EXACT = 2**53


def _invalid(message: str) -> EvaluationError:
    return EvaluationError(ErrorId.EVALUATION_FAILED, message)


def normalized(value: Number) -> Number:
    """A result in its range.

    Raises:
        EvaluationError: it is no number, or too large for one.
    """
    if type(value) is int:
        return value if -EXACT < value < EXACT else float(value)
    if math.isfinite(value):
        return value
    raise _invalid("the result is too large for a number")


def number(term: Term) -> Number:
    """The term as a number.

    Raises:
        EvaluationError: it is unbound or something else.
    """
    result = deref(term)
    if isinstance(result, int | float):
        return result
    if isinstance(result, Cell | Var):
        raise unbound("a variable in arithmetic")
    from engine.bdi.printer import brief_text

    raise _invalid(f"{brief_text(result)} is not a number")


def _divide(left: Number, right: Number) -> Number:
    if right == 0:
        raise _invalid("division by zero")
    return left / right


def _whole(left: Number, right: Number) -> Number:
    """Towards zero, as Java does it."""
    if right == 0:
        raise _invalid("division by zero")
    if isinstance(left, int) and isinstance(right, int):
        return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return math.trunc(left / right)


def _remainder(left: Number, right: Number) -> Number:
    """With the sign of the dividend: -7 mod 3 is -1."""
    if right == 0:
        raise _invalid("division by zero")
    rest = math.fmod(left, right)
    return int(rest) if isinstance(left, int) and isinstance(right, int) else rest


def _power(left: Number, right: Number) -> Number:
    try:
        value = math.pow(left, right)
    except (ValueError, OverflowError):
        raise _invalid(f"{left} ** {right} has no value") from None
    whole = isinstance(left, int) and isinstance(right, int) and right >= 0 and abs(value) < EXACT
    return int(value) if whole else value


BINARY: dict[str, Callable[[Number, Number], Number]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "div": _whole,
    "mod": _remainder,
    "**": _power,
}


def _length(term: Term) -> Number:
    result = deref(term)
    if isinstance(result, str):
        return len(result)
    items = items_of(result)
    if items is None:
        raise _invalid("the length of something that is neither list nor text")
    return len(items)


def _extreme(choose: Callable[[list[Number]], Number]) -> Callable[..., Number]:
    def chosen(*terms: Term) -> Number:
        first = deref(terms[0])
        listed = items_of(first) if isinstance(first, Cons) else None
        return choose([number(term) for term in (listed if listed is not None else terms)])

    return chosen


def _of_number(function: Callable[[Number], Number]) -> Callable[..., Number]:
    def applied(term: Term) -> Number:
        value = number(term)
        try:
            return function(value)
        except (ValueError, OverflowError):
            raise _invalid(f"the function has no value at {value}") from None

    return applied


def _of_list(function: Callable[[list[Number]], Number]) -> Callable[..., Number]:
    """A function of one or more numbers in a list."""

    def applied(term: Term) -> Number:
        items = items_of(term)
        if not items:
            raise _invalid("the function needs a list with numbers in it")
        return function([number(item) for item in items])

    return applied


def _deviation(numbers: list[Number]) -> Number:
    """The sample's standard deviation; 0 of a single number."""
    return statistics.stdev(numbers) if len(numbers) > 1 else 0


_OF_MATH: tuple[Callable[[Number], Number], ...] = (
    *(math.sin, math.cos, math.tan, math.asin, math.acos, math.atan, math.log),
)

FUNCTIONS: dict[tuple[str, int], Callable[..., Number]] = {
    ("math.abs", 1): _of_number(abs),
    ("math.round", 1): _of_number(lambda value: math.floor(value + 0.5)),
    ("math.floor", 1): _of_number(math.floor),
    ("math.ceil", 1): _of_number(math.ceil),
    ("math.sqrt", 1): _of_number(math.sqrt),
    ("math.min", 1): _extreme(min),
    ("math.max", 1): _extreme(max),
    ("math.min", 2): _extreme(min),
    ("math.max", 2): _extreme(max),
    ("math.average", 1): _of_list(statistics.fmean),
    ("math.mean", 1): _of_list(statistics.fmean),
    ("math.median", 1): _of_list(statistics.median),
    ("math.sum", 1): _of_list(sum),
    ("math.std_dev", 1): _of_list(_deviation),
    **{(f"math.{function.__name__}", 1): _of_number(function) for function in _OF_MATH},
    ("math.pi", 0): lambda: math.pi,
    ("math.e", 0): lambda: math.e,
    (".length", 1): _length,
}
"""Functions that may stand in a term, by name and number of arguments."""
