"""Events are the same wherever the network cuts their bytes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.models.stream import EVENT_LIMIT, EventReader, EventTooLongError, ServerEvent

STREAM = (
    ": a comment\r\nevent: first\r\ndata: ü1\r\ndata: 2\r\n\r\n"
    "id: 7\nretry: 3\ndata:x\n\n"
    "event: last\rdata: y\r\r"
)
EVENTS = [ServerEvent("first", "ü1\n2"), ServerEvent("", "x"), ServerEvent("last", "y")]


@given(st.lists(st.integers(0, len(STREAM.encode()))))
def test_events_do_not_depend_on_where_bytes_are_cut(cuts: list[int]) -> None:
    data, reader, found = STREAM.encode(), EventReader(), []
    edges = [0, *sorted(cuts), len(data)]
    for start, end in pairwise(edges):
        found += reader.feed(data[start:end])
    # A carriage return at the very end may still be half of a line end.
    assert found + reader.feed(b"\n") == EVENTS


def test_an_event_that_never_ends_is_given_up() -> None:
    reader = EventReader()
    assert reader.feed(b"data: " + b"x" * (EVENT_LIMIT - 6)) == []
    with pytest.raises(EventTooLongError, match="8 MiB"):
        reader.feed(b"x")


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(UnicodeDecodeError):
        EventReader().feed(b"data: \xff\n\n")
