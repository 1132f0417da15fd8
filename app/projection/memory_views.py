"""View models of what agents remember: pure functions of what memory answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from engine.core.memory import MemoryItem
from engine.core.text import clean, clean_line, short_duration
from widgets.base.rows import Row, heading
from widgets.base.text_layout import Piece, bar
from widgets.dialogs.memory_browser import LINK, MemoryDetail
from widgets.panes.beliefs import memory_row

if TYPE_CHECKING:
    from engine.memory.memories import LinkedMemory, MemoryCard, MemoryVersion
    from engine.memory.search import SearchMatch
    from engine.memory.working_memory import WorkingMemory


BAR_CELLS = 5
TEXT_LINES = 10_000
"""Lines that a line of a memory's text may take."""
FIRST_WORDS = 300
"""Characters of a memory that a list shows."""
_UNTOLD = frozenset({"updated_at", "digest", "access_count", "accessed_at", "created_at", "id"})
"""Fields whose change says nothing to a person."""
_NONE: Mapping[str, bool] = {}
_KINDS = {"memory.stored": "made", "memory.forgotten": "forgotten", "memory.promoted": "promoted"}


def age(seconds: float) -> str:
    """How long ago something was, in a word: `now`, `3m`, `2h`, `50d`."""
    return short_duration(seconds) if seconds >= 60 else "now"


def _ago(seconds: float) -> str:
    return "just now" if seconds < 60 else f"{age(seconds)} ago"


def working_set(working: WorkingMemory, now: float) -> list[Row]:
    """The memories in mind, the focal one first, then the most relevant.

    Args:
        working: what memory answered.
        now: seconds since 1970.
    """
    items = sorted(working.items, key=lambda item: (not item.focal, -item.relevance))
    return [
        memory_row(
            item.memory.id,
            _first_words(item.memory),
            item.memory.type.value,
            item.relevance,
            age(now - item.memory.created_at),
            focal=item.focal,
            pinned=item.pinned,
        )
        for item in items
    ]


def search_results(
    hits: Sequence[SearchMatch], now: float, *, scored: bool, judged: Mapping[str, bool] = _NONE
) -> list[Row]:
    """The rows of a search.

    Args:
        hits: what memory answered, best first.
        now: seconds since 1970.
        scored: whether words were looked for, so that the score says how well each fits them.
        judged: memories of which the operator said whether they answer the query.
    """
    return [_found_row(hit, now, scored, judged.get(hit.memory.id)) for hit in hits]


def _found_row(hit: SearchMatch, now: float, scored: bool, right: bool | None) -> Row:
    memory, text = hit.memory, clean_line(_first_words(hit.memory))
    mark = () if right is None else (Piece("✓ ", "success") if right else Piece("✗ ", "error"),)
    old = (Piece(f"superseded by {clean_line(hit.superseded)}: ", "warning"),) if hit.superseded else ()
    score = (*bar(hit.score, BAR_CELLS, style="accent"), Piece(f" {hit.score:.2f} ")) if scored else ()
    since = age(now - memory.created_at)
    return Row(
        memory.id,
        (
            *mark,
            Piece(f"{clean_line(memory.id)} {_words(memory.type)}: ", "dim"),
            *old,
            Piece(text, "dim" if old else "text"),
        ),
        tail=(*score, Piece(f"!{memory.importance:.0f} {since:>3}", "dim")),
        indent=2,
        most=2,
        copy=text,
    )


def _why(hit: SearchMatch, now: float) -> Iterator[str]:
    """What led to a memory: words, likeness, a link, its age."""
    if hit.words:
        yield f"words {hit.keyword:.2f} ({clean_line(', '.join(hit.words), limit=60)})"
    if hit.semantic:
        yield f"likeness {hit.semantic:.2f}"
    if hit.link is not None:
        ends = (hit.link.source, hit.link.target)
        other = ends[ends[0] == hit.memory.id]
        yield f"link: {_words(hit.link.type)} {clean_line(other)}"
    if hit.timely:
        yield "the time asked for"
    yield f"{_ago(now - hit.memory.created_at)}, relevance {hit.relevance:.1f}"


def detail(card: MemoryCard, now: float, hit: SearchMatch | None = None) -> MemoryDetail:
    """A memory in full: its text and facts, its links, which can be followed, and its history.

    Args:
        card: what memory answered.
        now: seconds since 1970.
        hit: how a search found it.
    """
    memory, work = card.memory, card.workflow
    in_mind = next((item for item in card.working.items if item.memory.id == memory.id), None)
    used = f"{memory.access_count} times" if memory.access_count != 1 else "once"
    last = f", last {_ago(now - memory.accessed_at)}" if memory.accessed_at is not None else ""
    head = (
        f"{memory.id} · {memory.level} {_words(memory.type)} · importance {memory.importance:.1f}",
        f"confidence {memory.confidence:.0%}",
        *(("★ in focus",) if in_mind is not None and in_mind.focal else ()),
        *(("◆ pinned",) if in_mind is not None and in_mind.pinned else ()),
        *(("in mind",) if in_mind is not None else ()),
    )
    facts = {
        "found by": " · ".join(_why(hit, now)) if hit is not None else "",
        "newer": f"{hit.superseded} supersedes it" if hit is not None and hit.superseded else "",
        "about": memory.description,
        "why": memory.reasoning,
        "source": " · ".join(filter(None, (memory.source, memory.action, memory.thought, memory.artifact))),
        "tags": ", ".join(memory.tags),
        "made": f"{_moment(memory.created_at)}, {_ago(now - memory.created_at)}",
        "used": f"{used}{last}" if memory.access_count else "never by the agent",
        "until": _moment(memory.expires_at) if memory.expires_at is not None else "",
        "work": f"{work.id} {work.title} ({work.status})",
    }
    rows = [_text_row("head", " · ".join(head), style="heading")]
    rows += [_text_row(f"text:{at}", line) for at, line in enumerate(clean(memory.content).split("\n"))]
    rows += [_text_row(label, text, label) for label, text in facts.items() if text]
    count = len(card.links)
    rows.append(heading("links", f"links ({count}): enter follows" if count else "no links"))
    rows += [_link_row(at, link, memory.id) for at, link in enumerate(card.links)]
    rows += [heading("history", "history"), *_versions(list(card.versions))]
    return MemoryDetail(memory.id, rows, in_mind is not None and in_mind.pinned)


def _text_row(key: str, text: str, label: str = "", style: str = "text") -> Row:
    head = (Piece(f"{label:<9}", "dim"),) if label else ()
    return Row(key, (*head, Piece(clean_line(text), style)), indent=9 if label else 0, most=TEXT_LINES)


def _link_row(at: int, linked: LinkedMemory, memory: str) -> Row:
    arrow, text = "→" if linked.link.source == memory else "←", clean_line(_first_words(linked.memory))
    return Row(
        f"{LINK}{linked.memory.id} {at}",
        (Piece(f"{arrow} {_words(linked.link.type)} ", "accent"), Piece(text)),
        tail=(Piece(f"{linked.link.strength:.2f}", "dim"),),
        indent=4,
        most=2,
        copy=text,
    )


def _words(name: str) -> str:
    return clean_line(name).replace("_", " ")


def _versions(versions: list[MemoryVersion]) -> Iterator[Row]:
    for at, version in enumerate(versions):
        before = versions[at + 1].memory if at + 1 < len(versions) else None
        when, what = Piece(f"{_moment(version.at)} ", "dim"), Piece(clean_line(_what(version, before)))
        yield Row(f"version:{at}", (when, Piece(f"{version.actor} ", "accent"), what), indent=4, most=4)


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
