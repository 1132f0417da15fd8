"""Searches everything: events of all sessions and agents, and memories.

Hits are reported while the search continues, each source newest first; ending the task ends the search.
Memories are searched by their words.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from engine.core.journal import JournalError
from engine.memory.commands import owner_tag
from engine.memory.errors import MemoryFault
from engine.memory.search import SearchMatch
from engine.value import dataclass

WORDS_LIMIT = 400
"""Characters of what is looked for."""
MOST_WORDS = 16
SHOWN_BEFORE, SHOWN_AFTER = 60, 180
"""Characters of a text that are shown around the first word found."""
LIMIT = 100
"""Hits of each source where nothing else is said."""

_WORD = re.compile(r'"([^"]+)"|(\S+)')


class SearchError(ValueError):
    """What cannot be looked for; the message says why."""


class Source(StrEnum):
    """Where something was found."""

    EVENT = "event"
    MEMORY = "memory"

    @property
    def several(self) -> str:
        """The word for more than one."""
        return "memories" if self is Source.MEMORY else f"{self.value}s"


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What is looked for; made by `wanted`."""

    words: tuple[str, ...]
    """Each must occur, in any case and order."""
    agent: str = ""
    """The one agent that counts; empty for all."""
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
        return frozenset(Source)

    @property
    def event_kind(self) -> str:
        """The beginning of the kinds of events that count."""
        return "" if self.kind in set(Source) else self.kind


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that was found; its text is as it was recorded and is cleaned by whoever shows it."""

    source: Source
    ref: str
    """`stream:version` of an event, or the id of a memory."""
    at: str
    """When it happened, or when it was changed: ISO 8601 UTC."""
    agent: str
    """The stream of an event; empty where it is no agent's."""
    kind: str
    """The kind of an event, or the type of a memory."""
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
    """Events or memories that were looked at so far."""
    done: bool = False
    more: bool = False
    """Whether there may be more than the limits let through."""
    problem: str = ""
    """Why the source could not be searched."""


Tell = Callable[[Batch], None]
Search = Callable[[SearchQuery, Tell], Coroutine[Any, Any, None]]
"""Looks through one source, telling what it finds, and a last batch that is `done`."""


def parse_query(text: str, *, agent: str = "", kind: str = "", limit: int = LIMIT) -> SearchQuery:
    """What a line of words looks for; words between double quotes belong together.

    Raises:
        FindingError: there is no word, or there are too many.
    """
    if len(text) > WORDS_LIMIT:
        raise SearchError(f"the words have {len(text)} characters; at most {WORDS_LIMIT} are looked for")
    if not 1 <= limit <= 10_000:
        raise SearchError(f"the limit is {limit}; it can be from 1 to 10000")
    terms = [quoted or plain for quoted, plain in _WORD.findall(text)]
    words = tuple(dict.fromkeys(word for word in terms if word.strip('" ')))
    if not words:
        raise SearchError("say what to look for: one word or more")
    if len(words) > MOST_WORDS:
        raise SearchError(f"{len(words)} words are too many; at most {MOST_WORDS} are looked for")
    return SearchQuery(words, agent, kind, limit)


async def run_search(what: SearchQuery, sources: Sequence[tuple[Source, Search]], tell: Tell) -> None:
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


async def in_thread(work: Callable[[Tell, threading.Event], None], tell: Tell) -> None:
    """Run a search in a thread; what it tells is passed on in this loop until the calling task ends.

    Args:
        work: takes where to tell, and what is set when it is to end.
        tell: called in this loop.
    """
    loop = asyncio.get_running_loop()
    stop = threading.Event()

    def pass_on(batch: Batch) -> None:
        if not stop.is_set():
            tell(batch)

    def report(batch: Batch) -> None:
        if not stop.is_set():
            loop.call_soon_threadsafe(pass_on, batch)

    try:
        await loop.run_in_executor(None, work, report, stop)
    finally:
        stop.set()


def contains_words(text: str, words: Sequence[str]) -> bool:
    """Whether all words occur in a text, in any case."""
    folded = text.casefold()
    return all(word.casefold() in folded for word in words)


def excerpt(text: str, words: Sequence[str]) -> str:
    """The part of a text around the first word that occurs in it, with `…` where something was cut."""
    starts = [match.start() for word in words if (match := re.search(re.escape(word), text, re.IGNORECASE))]
    first = min(starts, default=0)
    start, end = max(0, first - SHOWN_BEFORE), first + SHOWN_AFTER
    cut = text[start:end]
    return ("…" if start else "") + cut + ("…" if end < len(text) else "")


def newest_first(hits: Sequence[Hit]) -> list[Hit]:
    """Hits of all sources in one order."""
    return sorted(hits, key=lambda hit: hit.at, reverse=True)


Ask = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""Answers a request to memory by its name and arguments."""
MOST = 100
"""Memories that are asked for; memory itself ranks them."""


class MemorySearch:
    """Looks through the memories of a workspace; those that are only alike do not count."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def __call__(self, what: SearchQuery, tell: Tell) -> None:
        """Tell what is found, newest first."""
        try:
            asked = {"query": " ".join(what.words), "limit": min(what.limit, MOST), "nearest": True}
            matches: list[SearchMatch] = list(await self._ask("hybrid_search_memories", asked))
            worded = [match for match in matches if match.keyword > 0]
            if what.agent:
                tag, works = owner_tag(what.agent), {match.memory.workflow for match in worded}
                details = {
                    work: await self._ask("get_workflow_details", {"workflow_id": work}) for work in works
                }
                worded = [match for match in worded if tag in details[match.memory.workflow].tags]
        except (MemoryFault, JournalError) as error:
            tell(Batch(Source.MEMORY, done=True, problem=str(error)))
            return
        worded.sort(key=lambda match: match.memory.created_at, reverse=True)
        hits = tuple(_hit(match, what) for match in worded)
        tell(Batch(Source.MEMORY, hits, len(matches), done=True, more=len(matches) == asked["limit"]))


def _hit(match: SearchMatch, what: SearchQuery) -> Hit:
    memory = match.memory
    at = datetime.fromtimestamp(memory.created_at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return Hit(Source.MEMORY, memory.id, at, "", str(memory.type), excerpt(memory.content, what.words))
