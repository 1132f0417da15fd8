"""Events are the same wherever the network cuts their bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.models.endpoint import Endpoint
from engine.models.errors import ModelError, ModelErrorKind
from engine.models.http import EVENT_LIMIT, server_events

STREAM = (
    ": a comment\r\nevent: first\r\ndata: ü1\r\ndata: 2\r\n\r\n"
    "id: 7\nretry: 3\ndata:x\n\n"
    "event: last\rdata: y\r\r\n"
).encode()
EVENTS = [("first", "ü1\n2"), ("message", "x"), ("last", "y")]


def read(pieces: Iterable[bytes]) -> list[tuple[str, str]]:
    async def body() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async def all_of_it() -> list[tuple[str, str]]:
        events = server_events(body(), Endpoint("http://127.0.0.1:1"))
        return [(event.event, event.data) async for event in events]

    return asyncio.run(all_of_it())


@given(st.lists(st.integers(0, len(STREAM))))
def test_events_do_not_depend_on_where_bytes_are_cut(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    assert read(STREAM[start:end] for start, end in pairwise(edges)) == EVENTS


def test_an_event_that_never_ends_is_given_up() -> None:
    with pytest.raises(ModelError, match=f"{EVENT_LIMIT} byte limit") as fault:
        read([b"data: ", *[b"x" * 65_536] * 130])
    assert fault.value.kind is ModelErrorKind.UNREADABLE
