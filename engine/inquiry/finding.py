"""Searching everything: events of all sessions and agents, memories, and files of the sandbox.

What is found is told while the search goes on, each source newest first; ending the task ends the search.
Source: spec steering §1 row 53, target T18.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

WORDS_LIMIT = 400
"""Characters of what is looked for."""
MOST_WORDS = 16
SHOWN_BEFORE, SHOWN_AFTER = 60, 180
"""Characters of a text that are shown around the first word found."""
LIMIT = 100
"""Hits of each source where nothing else is said."""

_WORD = re.compile(r'"([^"]+)"|(\S+)')


class FindingError(ValueError):
    """What cannot be looked for; the message says why."""


class Source(StrEnum):
    """Where something was found."""

    EVENT = "event"
    MEMORY = "memory"
    FILE = "file"

    @property
    def several(self) -> str:
        """The word for more than one."""
        return "memories" if self is Source.MEMORY else f"{self.value}s"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for; made by `wanted`."""

    words: tuple[str, ...]
    """Each must occur, in any case and order."""
    agent: str = ""
    """The one agent that counts; empty for all. Files belong to no agent."""
    kind: str = ""
    """A kind of event or the beginning of one (`action`), or the name of a source; empty for all."""
    limit: int = LIMIT
    """Hits of each source."""

    @property
    def sources(self) -> frozenset[Source]:
        """Where it is to be looked for."""
        if self.kind in set(Source):
            return frozenset({Source(self.kind)})
        if self.kind:
            return frozenset({Source.EVENT})
        return frozenset(Source) - ({Source.FILE} if self.agent else set())

    @property
    def event_kind(self) -> str:
        """The beginning of the kinds of events that count."""
        return "" if self.kind in set(Source) else self.kind


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that was found; its text is as it was recorded and is cleaned by whoever shows it."""

    source: Source
    ref: str
    """`stream:version` of an event, the id of a memory, or `path:line` of a file."""
    at: str
    """When it happened, or when it was changed: ISO 8601 UTC."""
    agent: str
    """The stream of an event; empty where it is no agent's."""
    kind: str
    """The kind of an event, the type of a memory, `text` or `name` of a file."""
    text: str
    """What stands around the first word."""
    session: str = ""
    """The session of an event."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What one source has found since it last told, and how far it is."""

    source: Source
    hits: tuple[Hit, ...] = ()
    looked_at: int = 0
    """Events, memories or files that were looked at so far."""
    done: bool = False
    more: bool = False
    """Whether there may be more than the limits let through."""
    problem: str = ""
    """Why the source could not be searched."""


Tell = Callable[[Batch], None]
Search = Callable[[Wanted, Tell], Coroutine[Any, Any, None]]
"""Looks through one source, telling what it finds, and a last batch that is `done`."""


def wanted(text: str, *, agent: str = "", kind: str = "", limit: int = LIMIT) -> Wanted:
    """What a line of words looks for; words between double quotes belong together.

    Raises:
        FindingError: there is no word, or there are too many.
    """
    if len(text) > WORDS_LIMIT:
        raise FindingError(f"the words have {len(text)} characters; at most {WORDS_LIMIT} are looked for")
    if not 1 <= limit <= 10_000:
        raise FindingError(f"the limit is {limit}; it can be from 1 to 10000")
    found = [quoted or plain for quoted, plain in _WORD.findall(text)]
    words = tuple(dict.fromkeys(word for word in found if word.strip('" ')))
    if not words:
        raise FindingError("say what to look for: one word or more")
    if len(words) > MOST_WORDS:
        raise FindingError(f"{len(words)} words are too many; at most {MOST_WORDS} are looked for")
    return Wanted(words, agent, kind, limit)


async def find(what: Wanted, sources: Sequence[tuple[Source, Search]], tell: Tell) -> None:
    """Look through all sources at once; to end it before, cancel the task.

    Args:
        what: what is looked for.
        sources: where, by name; those that do not count for it are left out.
        tell: takes what is found as it comes, in this loop.
    """
    async with asyncio.TaskGroup() as group:
        for source, search in sources:
            if source in what.sources:
                group.create_task(search(what, tell))


def holds(text: str, words: Sequence[str]) -> bool:
    """Whether all words occur in a text, in any case."""
    folded = text.casefold()
    return all(word.casefold() in folded for word in words)


def around(text: str, words: Sequence[str]) -> str:
    """The part of a text around the first word that occurs in it, with `…` where something was cut."""
    found = [match.start() for word in words if (match := re.search(re.escape(word), text, re.IGNORECASE))]
    first = min(found, default=0)
    start, end = max(0, first - SHOWN_BEFORE), first + SHOWN_AFTER
    cut = text[start:end]
    return ("…" if start else "") + cut + ("…" if end < len(text) else "")


def newest_first(hits: Sequence[Hit]) -> list[Hit]:
    """Hits of all sources in one order."""
    return sorted(hits, key=lambda hit: hit.at, reverse=True)
