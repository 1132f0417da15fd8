"""View models of what agents remember: pure functions of what memory answered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from engine.domain.memory import MemoryItem, MemoryLevel, MemoryType
from widgets import RememberedLine
from widgets.memory_detail import LinkLine, MemoryDetail, VersionLine

if TYPE_CHECKING:
    from engine.memory.finding import Found
    from engine.memory.history import MemoryCard, MemoryVersion
    from engine.memory.memories import LinkedMemory
    from engine.memory.mind import WorkingMemory
    from widgets.dialogs.memory_browser import FoundLine

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


def mind(working: WorkingMemory, now: float) -> tuple[RememberedLine, ...]:
    """The memories in mind, the focal one first, then the most relevant.

    Args:
        working: what memory answered.
        now: seconds since 1970.
    """
    items = sorted(working.items, key=lambda one: (not one.focal, -one.relevance))
    return tuple(
        RememberedLine(
            one.memory.id,
            _first_words(one.memory),
            one.memory.level.value,
            one.memory.type.value,
            round(one.relevance, 1),
            age(now - one.memory.created_at),
            one.focal,
            one.pinned,
        )
        for one in items
    )


def found(hits: Sequence[Found], now: float, *, scored: bool) -> tuple[FoundLine, ...]:
    """The lines of a search.

    Args:
        hits: what memory answered, best first.
        now: seconds since 1970.
        scored: whether words were looked for, so that the score says how well each fits them.
    """
    from widgets.dialogs.memory_browser import FoundLine

    return tuple(
        FoundLine(
            one.memory.id,
            _first_words(one.memory),
            one.memory.level.value,
            one.memory.type.value,
            age(now - one.memory.created_at),
            one.memory.importance,
            one.score if scored else None,
            f"words {one.keyword:.2f} likeness {one.semantic:.2f}" if scored else "",
        )
        for one in hits
    )


def detail(card: MemoryCard, now: float) -> MemoryDetail:
    """A memory in full.

    Args:
        card: what memory answered.
        now: seconds since 1970.
    """
    one, work = card.memory, card.workflow
    in_mind = next((item for item in card.working.items if item.memory.id == one.id), None)
    used = f"{one.access_count} times" if one.access_count != 1 else "once"
    last = f", last {_ago(now - one.accessed_at)}" if one.accessed_at is not None else ""
    return MemoryDetail(
        one.id,
        one.content,
        one.level.value,
        one.type.value,
        one.importance,
        one.confidence,
        description=one.description,
        reasoning=one.reasoning,
        source=" · ".join(filter(None, (one.source, one.action, one.thought, one.artifact))),
        tags=one.tags,
        created=f"{_moment(one.created_at)}, {_ago(now - one.created_at)}",
        used=f"{used}{last}" if one.access_count else "never by the agent",
        expires=_moment(one.expires_at) if one.expires_at is not None else "",
        work=f"{work.id} {work.title} ({work.status})",
        in_mind=in_mind is not None,
        focal=in_mind is not None and in_mind.focal,
        pinned=in_mind is not None and in_mind.pinned,
        links=tuple(_link(link, one.id) for link in card.links),
        history=tuple(_versions(list(card.versions))),
    )


def _link(one: LinkedMemory, memory: str) -> LinkLine:
    outward = one.link.source == memory
    return LinkLine(one.memory.id, outward, one.link.type.value, one.link.strength, _first_words(one.memory))


def _versions(versions: list[MemoryVersion]) -> Iterator[VersionLine]:
    for at, version in enumerate(versions):
        before = versions[at + 1].memory if at + 1 < len(versions) else None
        yield VersionLine(_moment(version.at), version.actor, _what(version, before))


def _what(version: MemoryVersion, before: MemoryItem | None) -> str:
    """What a version changed."""
    named = _KINDS.get(version.kind, version.kind.removeprefix("memory.").replace("_", " "))
    if version.memory is None or before is None:
        return named
    return "; ".join(_changes(before, version.memory)) or named


def _changes(before: MemoryItem, after: MemoryItem) -> Iterator[str]:
    for one in fields(MemoryItem):
        old, new = getattr(before, one.name), getattr(after, one.name)
        if one.name not in _UNTOLD and old != new:
            yield f"{one.name.replace('_', ' ')} {_value(one.name, old)} → {_value(one.name, new)}"


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
    told = f"{memory.description}: {memory.content}" if memory.description else memory.content
    return told[:FIRST_WORDS]


def _moment(seconds: float) -> str:
    """A time as it is shown, in UTC like the other times of the cockpit."""
    then = datetime.fromtimestamp(seconds, UTC)
    return then.strftime("%Y-%m-%d %H:%M:%S")
