"""What tools answered, made comparable: what differs from call to call by itself is left out.

Whether two answers say the same decides whether an agent that asks again has learned something (spec
steering §4 T17).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from engine.journal.event import canonical

LOOKED_AT = 20_000
"""Characters of an answer that are compared; of a longer one its beginning and its end."""
_PASSING = re.compile(
    r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|\b\d\d?:\d\d:\d\d(?:[.,]\d+)?\b"
    r"|\b\d+(?:[.,]\d+)?\s?(?:ns|us|µs|ms|s|secs?|seconds?|min|minutes?)\b"
    r"|\b0x[0-9a-fA-F]{4,}\b|\bpid[ =:]+\d+|/tmp/[\w.-]+",
    re.I,
)
"""Times, durations, addresses of memory, ids of processes, names of temporary files."""
_PLACE = re.compile(r"\blines? \d+|:\d+(?::\d+)?\b", re.I)
"""Where in a file something was found, which moves with each edit above it."""
_NAMED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`|“[^”\n]*”|(?:\.{0,2}/)?[\w.-]+(?:/[\w.-]+)+/?|\d+")
"""What an error is about: quoted words, paths, numbers."""
_MEASURED = frozenset({"duration_ms", "took_s", "duration_s", "tier"})


def digest(value: Any) -> str:
    """A short name for a value; equal values have the same."""
    return hashlib.sha256(canonical(value).encode("utf-8", "replace")).hexdigest()[:16]


def answer_digest(result: Mapping[str, Any], *, ok: bool) -> str:
    """A short name for what an answer says; the same for answers that differ in times and the like alone.

    Args:
        result: the answer.
        ok: whether it is one; of an error, the place in a file does not count either.
    """
    told = canonical({name: value for name, value in result.items() if name not in _MEASURED})
    if len(told) > LOOKED_AT:
        told = f"{told[: LOOKED_AT // 2]}{len(told)}{told[-LOOKED_AT // 2 :]}"
    told = _PASSING.sub("~", told)
    return digest(told if ok else _PLACE.sub("~", told))


def error_words(code: str, result: Mapping[str, Any]) -> str:
    """What sort of error it was: its code and its last line, without what it is about.

    Args:
        code: the error's code.
        result: the failed call's answer.
    """
    told = (_last_line(result.get(name)) for name in ("stderr", "stdout", "message"))
    said = _NAMED.sub("#", _PLACE.sub("#", _PASSING.sub("~", next(filter(None, told), ""))))
    return f"{code} {' '.join(said.split())}"[:200].lower().strip()


def _last_line(value: object) -> str:
    return value.rstrip().rpartition("\n")[2].strip() if isinstance(value, str) else ""
