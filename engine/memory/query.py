"""The language of queries: words, "phrases", -words and filters; times that words name.

Nothing is an error: what is no filter is words to look for.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

from engine.core.memory import MemoryLevel, MemoryType
from engine.memory.words import QUERY_CHARACTERS
from engine.value import dataclass

DAY_S = 86_400.0
FOREVER = 1e18
OPERATED = 20
"""Words from which on a query is a text, in which quotes and dashes mean nothing."""
_PART = re.compile(
    r"""(?<!\S)(?P<minus>-)?"(?P<phrase>[^"]*\w[^"]*)"(?!\w)
    |(?<!\S)(?P<field>level|type|agent|since|until):(?P<value>\S+)
    |(?<!\S)-(?P<word>[^\W\d_][\w.-]+)(?!\S)""",
    re.VERBOSE,
)
_UNIT_S = {"m": 60.0, "h": 3_600.0, "d": DAY_S, "w": 7 * DAY_S, "y": 365 * DAY_S}
_COUNTS = ("a", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_SPAN = "(?P<{}>hour|day|week|month|year)s?"
_TIME = re.compile(
    r"\b(?:(?P<day>today|yesterday)|(?:last|past) (?:(?P<of>\d{1,4}) )?"
    + _SPAN.format("last")
    + r"|(?P<count>\d{1,4}|an|"
    + "|".join(_COUNTS)
    + ") "
    + _SPAN.format("unit")
    + r" ago)\b",
    re.IGNORECASE | re.ASCII,
)
_LEVELS, _TYPES = frozenset(MemoryLevel), frozenset(MemoryType)
_SPAN_S = {"hour": 3_600.0, "day": DAY_S, "week": 7 * DAY_S, "month": 30 * DAY_S, "year": 365 * DAY_S}

Span = tuple[float, float]
"""From and to, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Query:
    """What a query asks for."""

    text: str
    """Words and phrases to look for."""
    phrases: tuple[str, ...] = ()
    """All of them must stand in a memory as they are."""
    without: tuple[str, ...] = ()
    """None of them may."""
    level: MemoryLevel | None = None
    type: MemoryType | None = None
    agent: str = ""
    created: Span | None = None
    """When memories must have been made."""
    around: Span | None = None
    """When they were made that the words name, such as yesterday; these count for more."""

    @property
    def lists(self) -> bool:
        """Whether there are filters and nothing to look for, so that all that pass are meant."""
        filtered = self.without or self.level or self.type or self.agent or self.created
        return not self.text and bool(filtered)


def parsed(text: str, now: float) -> Query:
    """What a query asks for; `now` is in seconds since 1970."""
    phrases: list[str] = []
    without: list[str] = []
    level: MemoryLevel | None = None
    kind: MemoryType | None = None
    agent, since, until = "", 0.0, FOREVER

    def take(part: re.Match[str]) -> str:
        nonlocal level, kind, agent, since, until
        name, value = part["field"], part["value"]
        if part["word"] or part["minus"]:
            without.append(part["word"] or part["phrase"])
            return " "
        if part["phrase"]:
            phrases.append(part["phrase"])
            return f" {part['phrase']} "
        moment = _moment(value, now)
        if name == "level" and value.lower() in _LEVELS:
            level = MemoryLevel(value.lower())
        elif name == "type" and value.lower() in _TYPES:
            kind = MemoryType(value.lower())
        elif name == "agent":
            agent = value
        elif name == "since" and moment is not None:
            since = moment
        elif name == "until" and moment is not None:
            until = moment
        else:
            return part[0]
        return " "

    text = text[:QUERY_CHARACTERS]
    words = _PART.sub(take, text) if len(text.split(None, OPERATED)) <= OPERATED else text
    created = (since, until) if (since, until) != (0.0, FOREVER) else None
    around = _around(words, now)
    return Query(words.strip(), tuple(phrases), tuple(without), level, kind, agent, created, around)


def _moment(value: str, now: float) -> float | None:
    """The time that `2w` or a date says; None for neither."""
    if ago := re.fullmatch(r"(\d{1,5})([mhdwy])", value):
        return now - int(ago[1]) * _UNIT_S[ago[2]]
    try:
        return datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def _around(text: str, now: float) -> Span | None:
    """The time that words name; None where they name none."""
    found = _TIME.search(text)
    if found is None:
        return None
    day, of, last, count, unit = (part and part.lower() for part in found.groups())
    if day or (last in ("week", "month", "year") and not of):
        return _calendar(day or last, date.fromtimestamp(now))
    if last:
        return now - int(of or 1) * _SPAN_S[last], now
    many = int(count) if count.isdecimal() else _COUNTS.index(count.replace("an", "a")) + 1
    middle = now - _SPAN_S[unit] * many
    return middle - _SPAN_S[unit] / 2, middle + _SPAN_S[unit] / 2


def _calendar(word: str, today: date) -> Span:
    """A day or the whole week, month or year before this one, in local time."""
    first, end = today, today + timedelta(1)
    if word == "yesterday":
        first, end = today - timedelta(1), today
    elif word == "week":
        end = today - timedelta(today.weekday())
        first = end - timedelta(7)
    elif word == "month":
        end = today.replace(day=1)
        first = (end - timedelta(1)).replace(day=1)
    elif word == "year":
        end = today.replace(month=1, day=1)
        first = end.replace(year=end.year - 1)
    return _midnight(first), _midnight(end)


def _midnight(day: date) -> float:
    return datetime(day.year, day.month, day.day).timestamp()
