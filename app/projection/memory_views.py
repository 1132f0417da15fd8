"""View models of what agents remember: pure functions of what memory answered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from engine.core.memory import MemoryItem, MemoryLevel, MemoryType
from widgets.dialogs.memory_browser import FoundLine, LinkLine, MemoryDetail, VersionLine
from widgets.panes.beliefs import RememberedLine

if TYPE_CHECKING:
    from engine.memory.memories import LinkedMemory, MemoryCard, MemoryVersion
    from engine.memory.search import SearchMatch
    from engine.memory.working_memory import WorkingMemory


LEVELS = tuple(level.value for level in MemoryLevel)
TYPES = tuple(kind.value for kind in MemoryType)
FIRST_WORDS = 300
"""Characters of a memory that a list shows."""
_UNITS = ((7 * 86_400, "w"), (86_400, "d"), (3_600, "h"), (60, "m"))
_UNTOLD = frozenset({"updated_at", "digest", "access_count", "accessed_at", "created_at", "id"})
"""Fields whose change says nothing to a person."""
_KINDS = {
    "memory.stored": "made",
    "memory.forgotten": "forgotten",
    "memory.promoted": "promoted",
}


def age(seconds: float) -> str:
    """How long ago something was, in a word: `now`, `3m`, `2h`, `5d`, `7w`."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return "now"


def _ago(seconds: float) -> str:
    return "just now" if seconds < 60 else f"{age(seconds)} ago"


def working_set(working: WorkingMemory, now: float) -> tuple[RememberedLine, ...]:
    """The memories in mind, the focal one first, then the most relevant.

    Args:
        working: what memory answered.
        now: seconds since 1970.
    """
    items = sorted(working.items, key=lambda item: (not item.focal, -item.relevance))
    return tuple(
        RememberedLine(
            item.memory.id,
            _first_words(item.memory),
            item.memory.level.value,
            item.memory.type.value,
            round(item.relevance, 1),
            age(now - item.memory.created_at),
            item.focal,
            item.pinned,
        )
        for item in items
    )


def search_results(hits: Sequence[SearchMatch], now: float, *, scored: bool) -> tuple[FoundLine, ...]:
    """The lines of a search.

    Args:
        hits: what memory answered, best first.
        now: seconds since 1970.
        scored: whether words were looked for, so that the score says how well each fits them.
    """
    return tuple(
        FoundLine(
            hit.memory.id,
            _first_words(hit.memory),
            hit.memory.level.value,
            hit.memory.type.value,
            age(now - hit.memory.created_at),
            hit.memory.importance,
            hit.score if scored else None,
            f"words {hit.keyword:.2f} likeness {hit.semantic:.2f}" if scored else "",
        )
        for hit in hits
    )


def detail(card: MemoryCard, now: float) -> MemoryDetail:
    """A memory in full.

    Args:
        card: what memory answered.
        now: seconds since 1970.
    """
    memory, work = card.memory, card.workflow
    in_mind = next((item for item in card.working.items if item.memory.id == memory.id), None)
    used = f"{memory.access_count} times" if memory.access_count != 1 else "once"
    last = f", last {_ago(now - memory.accessed_at)}" if memory.accessed_at is not None else ""
    return MemoryDetail(
        memory.id,
        memory.content,
        memory.level.value,
        memory.type.value,
        memory.importance,
        memory.confidence,
        description=memory.description,
        reasoning=memory.reasoning,
        source=" · ".join(filter(None, (memory.source, memory.action, memory.thought, memory.artifact))),
        tags=memory.tags,
        created=f"{_moment(memory.created_at)}, {_ago(now - memory.created_at)}",
        used=f"{used}{last}" if memory.access_count else "never by the agent",
        expires=_moment(memory.expires_at) if memory.expires_at is not None else "",
        work=f"{work.id} {work.title} ({work.status})",
        in_mind=in_mind is not None,
        focal=in_mind is not None and in_mind.focal,
        pinned=in_mind is not None and in_mind.pinned,
        links=tuple(_link(link, memory.id) for link in card.links),
        history=tuple(_versions(list(card.versions))),
    )


def _link(linked_memory: LinkedMemory, memory: str) -> LinkLine:
    outward = linked_memory.link.source == memory
    return LinkLine(
        linked_memory.memory.id,
        outward,
        linked_memory.link.type.value,
        linked_memory.link.strength,
        _first_words(linked_memory.memory),
    )


def _versions(versions: list[MemoryVersion]) -> Iterator[VersionLine]:
    for at, version in enumerate(versions):
        before = versions[at + 1].memory if at + 1 < len(versions) else None
        yield VersionLine(_moment(version.at), version.actor, _what(version, before))


def _what(version: MemoryVersion, before: MemoryItem | None) -> str:
    """What a version changed."""
    named = _KINDS.get(version.kind, version.kind.removeprefix("memory.").replace("_", " "))
    if before is None:
        return named
    return "; ".join(_changes(before, version.memory)) or named


def _changes(before: MemoryItem, after: MemoryItem) -> Iterator[str]:
    for field in fields(MemoryItem):
        old, new = getattr(before, field.name), getattr(after, field.name)
        if field.name not in _UNTOLD and old != new:
            yield f"{field.name.replace('_', ' ')} {_value(field.name, old)} → {_value(field.name, new)}"


def _value(name: str, value: Any) -> str:
    if value is None or value == "" or value == ():
        return "none"
    if name == "expires_at":
        return _moment(value)
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    text = ", ".join(value) if isinstance(value, tuple) else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _first_words(memory: MemoryItem) -> str:
    text = f"{memory.description}: {memory.content}" if memory.description else memory.content
    return text[:FIRST_WORDS]


def _moment(seconds: float) -> str:
    """A time as it is shown, in UTC like the other times of the cockpit."""
    then = datetime.fromtimestamp(seconds, UTC)
    return then.strftime("%Y-%m-%d %H:%M:%S")
