"""A state from its newest snapshot that can be used, and what happened since.

A snapshot is a cache: one that is damaged, was changed or does not fit the journal is passed over, for an
older one or for the whole stream, and that is said.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from engine.domain.state import AgentState
from engine.journal.event import Event
from engine.journal.fold import SNAPSHOT_FORMAT, apply, fold, load_state
from engine.journal.reader import Kept
from engine.journal.store import JournalStore

AT_ONCE = 16
"""Streams that are read and folded together."""


async def restore(store: JournalStore, stream: str, at: int | None = None) -> tuple[AgentState, str]:
    """The state of a stream at a version, and why a snapshot could not be used; empty when all is well.

    Args:
        store: the journal.
        stream: the stream; its state is empty when there is none.
        at: the last event that counts; None for all.

    Raises:
        JournalError: the events cannot be read.
    """
    state, why = await nearest(store, stream, at)
    return fold(await store.read(stream, state.version + 1, at), state), why


async def restore_all(
    store: JournalStore, streams: Sequence[str]
) -> AsyncIterator[tuple[str, AgentState, str]]:
    """`restore` of many streams, read and folded several at a time: each stream, its state and why.

    Raises:
        JournalError: the events cannot be read.
    """
    for first in range(0, len(streams), AT_ONCE):
        some = streams[first : first + AT_ONCE]
        kept = await store.load_snapshots(some, SNAPSHOT_FORMAT)
        versions = {one.stream: one.version for one in kept}
        events = await store.since({name: versions.get(name, 0) for name in some})
        states = await asyncio.to_thread(_folded, some, kept, events)
        for name in some:
            if (state := states.get(name)) is not None:
                yield name, state, ""
            else:
                yield name, *await restore(store, name)


def _folded(streams: Sequence[str], kept: Sequence[Kept], events: Sequence[Event]) -> dict[str, AgentState]:
    """The states of streams; those whose snapshot cannot be used are left out."""
    states = {name: AgentState() for name in streams}
    for one in kept:
        try:
            states[one.stream] = _usable(one.state, one.version, one.hash)
        except ValueError:
            del states[one.stream]
    for event in events:
        if event.stream in states:
            apply(states[event.stream], event)
    return states


async def nearest(store: JournalStore, stream: str, at: int | None = None) -> tuple[AgentState, str]:
    """The newest kept state up to a version, else that before all events, and what could not be used.

    Raises:
        JournalError: the journal cannot be read.
    """
    passed_over: list[str] = []
    before = at
    while (found := await store.load_snapshot(stream, before, SNAPSHOT_FORMAT)) is not None:
        version, text = found
        # Its own event says whether the state is one of this journal.
        events = await store.read(stream, version, version)
        try:
            state = await asyncio.to_thread(_usable, text, version, events[0].hash)
        except ValueError as error:
            passed_over.append(f"{version} ({str(error).splitlines()[0]})")
            before = version - 1
        else:
            return state, _why(stream, passed_over)
    return AgentState(), _why(stream, passed_over)


def _usable(text: str, version: int, digest: str) -> AgentState:
    """The state from a snapshot, if it is that after the event with this version and hash."""
    state = load_state(text)
    if (state.version, state.hash) != (version, digest):
        raise ValueError("it is not a state of this journal")
    return state


def _why(stream: str, passed_over: list[str]) -> str:
    if not passed_over:
        return ""
    which = ", ".join(passed_over)
    return f"{stream}: the state kept at event {which} could not be used; it was built again from the events"
