"""Events as rows of the journal's table, and back."""

from __future__ import annotations

import json
from typing import NamedTuple

from engine.journal.event import GENESIS, Event, canonical

Row = tuple[int, str, int, str, int, str, str, str, str, str]
"""One row, in the order of `COLUMNS`."""

COLUMNS = "seq, stream, version, at, tick, actor, causes, kind, body, hash"


def insert(rows: int) -> str:
    """The statement that inserts this many rows, all or none of them."""
    return f"insert into events({COLUMNS}) values " + ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"] * rows)


class Head(NamedTuple):
    """The last event of a stream, as far as the next one needs to know it."""

    version: int
    hash: str


START = Head(0, GENESIS)
"""The head of a stream that has no event."""


def to_row(event: Event) -> Row:
    """The row that keeps an event which has its place."""
    return (
        event.seq,
        event.stream,
        event.version,
        event.at,
        event.tick,
        event.actor,
        _causes_text(event.causes),
        event.kind,
        event.body,
        event.hash,
    )


def placed(event: Event, seq: int) -> Event:
    """The event with its place in the workspace."""
    return Event(*event[:-1], seq)


def to_event(row: Row) -> Event:
    """The event a row keeps.

    Raises:
        ValueError: the causes are not a JSON list of texts.
    """
    seq, stream, version, at, tick, actor, causes, kind, body, digest = row
    return Event(stream, version, at, tick, actor, _causes(causes), kind, body, digest, seq)


def _causes_text(causes: tuple[str, ...]) -> str:
    """The causes as canonical JSON."""
    if not causes:
        return "[]"
    # Nearly all are plain references; going round the encoder saves a tenth of the cost of an event.
    text = '","'.join(causes)
    plain = (
        text.isascii() and text.isprintable() and "\\" not in text and text.count('"') == 2 * len(causes) - 2
    )
    return f'["{text}"]' if plain else canonical(causes)


def _causes(text: str) -> tuple[str, ...]:
    if text == "[]":
        return ()
    causes = json.loads(text)
    if not isinstance(causes, list) or not all(isinstance(cause, str) for cause in causes):
        raise ValueError("causes are not a list of texts")
    return tuple(causes)


def parse_ref(ref: str) -> tuple[str, int] | None:
    """Stream and version that a reference `stream:version` names, or None when it is none."""
    stream, colon, version = ref.rpartition(":")
    if not colon or not stream or not version.isascii() or not version.isdecimal() or len(version) > 18:
        return None
    return stream, int(version)
