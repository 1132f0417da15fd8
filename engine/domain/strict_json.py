"""JSON read strictly: what two readers might understand differently is refused, not guessed."""

from __future__ import annotations

import json
import math
from typing import Any

NESTING_LIMIT = 100
"""Lists and objects inside one another that a value may have; deeper ones might not be read back."""


class StrictJsonError(ValueError):
    """The text is not one unambiguous JSON value; the message says where and why."""


class DuplicateKeyError(StrictJsonError):
    """A key stands twice in one object; another program would keep the first or the last."""


def read_json(text: str) -> Any:
    """The one JSON value that a text holds.

    Raises:
        DuplicateKeyError: an object repeats a key.
        StrictJsonError: the text is no JSON, holds NaN, an infinity or a number too large to keep, or its
            lists and objects lie deeper inside one another than the limit.
    """
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
    except StrictJsonError:
        raise
    except json.JSONDecodeError as error:
        raise StrictJsonError(f"line {error.lineno} column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise StrictJsonError(_DEEP) from None
    except ValueError:
        # The decoder's own errors are above; what is left is Python's limit of digits.
        raise StrictJsonError("a number has too many digits") from None
    if too_deep(value):
        raise StrictJsonError(_DEEP)
    return value


def too_deep(value: Any) -> bool:
    """Whether lists and objects lie inside one another deeper than the limit."""
    level = [value] if isinstance(value, (dict, list, tuple)) else []
    for _ in range(NESTING_LIMIT + 1):
        level = [
            item
            for holder in level
            for item in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(item, (dict, list, tuple))
        ]
        if not level:
            return False
    return True


_DEEP = f"lists and objects lie inside one another more than {NESTING_LIMIT} deep"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise DuplicateKeyError(f"the key '{key}' appears twice in one object")
        out[key] = value
    return out


def _no_constant(name: str) -> None:
    raise StrictJsonError(f"{name} is no JSON value")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise StrictJsonError(f"the number {text[:40]} is too large")
    return value
