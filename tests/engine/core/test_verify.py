"""Verification finds every change to what was written."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from engine.core.journal import JournalUnsound
from engine.core.ports import SystemClock
from engine.core.store.port import Head
from engine.core.store.schema import COLUMNS
from engine.core.store.sqlite import SqliteJournal
from engine.core.store.verify import Verification, verify, workspace_head

COUNT = 600


@pytest.fixture
async def workspace(tmp_path: Path, new_chain) -> Path:
    """Two agents side by side, each event of b caused by the last one of a."""
    store = await SqliteJournal.open(tmp_path, clock=SystemClock())
    a, b = new_chain("a"), new_chain("b")
    events = []
    for _ in range(COUNT // 2):
        first = a.next(causes=(f"a:{a.version}",) if a.version else ())
        events += [first, b.next(causes=(first.ref,))]
    await store.commit(events)
    await store.close()
    return tmp_path


def tamper(workspace: Path, *statements: str) -> None:
    with closing(sqlite3.connect(workspace / ".pilothouse" / "journal.db")) as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount != 0, "nothing was tampered with"
        connection.commit()


async def verdict(workspace: Path, *, read_only: bool = True) -> Verification:
    store = await SqliteJournal.open(workspace, clock=SystemClock(), read_only=read_only)
    try:
        return await verify(store)
    finally:
        await store.close()


async def test_a_journal_as_it_was_written_is_sound(workspace):
    reading, writing = await verdict(workspace), await verdict(workspace, read_only=False)

    assert reading == writing
    assert (reading.ok, reading.events, reading.first_bad, reading.reason) == (True, COUNT, None, "")
    assert len(reading.head) == 64


async def test_an_empty_journal_is_sound(store):
    assert await verify(store) == Verification(True, 0, workspace_head({}))


async def test_the_head_says_what_the_streams_hold_and_not_how_they_ran_side_by_side(
    tmp_path, new_chain, open_store
):
    heads = []
    for name, order in (("one", "aabb"), ("two", "baba"), ("three", "aab")):
        chains = {stream: new_chain(stream) for stream in "ab"}
        store = await open_store(tmp_path / name)
        for stream in order:
            await store.commit(chains[stream].take(1))
        heads.append((await verify(store)).head)
        await store.close()

    assert heads[0] == heads[1] != heads[2]


def test_the_head_does_not_depend_on_the_order_of_its_streams():
    a, b = ("a", Head(1, "x")), ("b", Head(2, "y"))

    assert workspace_head(dict([a, b])) == workspace_head(dict([b, a])) != workspace_head(dict([a]))


CHANGES = {
    "seq": "seq = 100000",
    "stream": "stream = 'c'",
    "version": "version = 100000",
    "at": "at = '2026-01-01T00:00:00.000001Z'",
    "tick": "tick = tick + 1",
    "actor": "actor = 'operator:mallory'",
    "causes": "causes = '[]'",
    "kind": "kind = 'approval.answered'",
    "body": "body = body || ' '",
    "hash": "hash = 'f' || substr(hash, 2, 62) || 'f'",
}


def test_every_column_is_tampered_with():
    assert ", ".join(CHANGES) == COLUMNS


@pytest.mark.parametrize("column", CHANGES)
@pytest.mark.parametrize("seq", [2, 301, COUNT])
async def test_a_change_to_any_column_of_any_row_is_found(workspace, column, seq):
    tamper(workspace, f"update events set {CHANGES[column]} where seq = {seq}")

    found = await verdict(workspace)

    assert not found.ok
    assert found.events == seq - 1
    assert found.head == ""
    assert found.first_bad
    assert found.reason


async def test_the_first_bad_event_is_named(workspace):
    tamper(workspace, "update events set body = '{}' where stream = 'b' and version >= 150")

    found = await verdict(workspace)

    assert found.first_bad == "b:150"
    assert "hash" in found.reason


@pytest.mark.parametrize(
    "causes", ["not json", '{"a":1}', "[1]", '"a:1"', "[ ]", '["a:1" ]', '["nobody:1"]', '["b:151"]', '["a"]']
)
async def test_causes_that_are_not_what_was_written_are_found(workspace, causes):
    tamper(workspace, f"update events set causes = '{causes}' where stream = 'b' and version = 150")

    assert (await verdict(workspace)).first_bad == "b:150"


async def test_text_that_is_not_unicode_is_found_where_it_is(workspace):
    tamper(workspace, "update events set body = cast(x'ff22' as text) where seq = 300")

    found = await verdict(workspace)

    assert (found.ok, found.events, found.first_bad) == (False, 299, "seq 300")


@pytest.mark.parametrize(("first", "last"), [(1, 1), (300, 300), (301, 500), (COUNT, COUNT), (1, COUNT)])
async def test_rows_that_were_deleted_anywhere_are_found(workspace, first, last):
    tamper(workspace, f"delete from events where seq between {first} and {last}")

    found = await verdict(workspace)

    assert (found.ok, found.events) == (False, first - 1)
    with pytest.raises(JournalUnsound, match="repair --restore") as unsound:
        await verdict(workspace, read_only=False)
    assert unsound.value.sound == first - 1


async def test_rows_deleted_and_closed_up_are_found(workspace):
    tamper(
        workspace,
        "delete from events where seq in (300, 301)",
        "update events set seq = seq - 2 where seq > 301",
        f"update sqlite_sequence set seq = {COUNT - 2}",
    )

    assert not (await verdict(workspace)).ok


@pytest.mark.parametrize(("one", "other"), [(299, 301), (299, 300), (1, COUNT)])
async def test_two_rows_that_changed_places_are_found(workspace, one, other):
    tamper(
        workspace,
        f"update events set seq = -1 where seq = {one}",
        f"update events set seq = {one} where seq = {other}",
        f"update events set seq = {other} where seq = -1",
    )

    found = await verdict(workspace)

    assert (found.ok, found.events) == (False, one - 1)


async def test_two_events_of_a_stream_that_changed_contents_are_found(workspace):
    tamper(
        workspace,
        "update events set version = -1 where stream = 'a' and version = 7",
        "update events set version = 7 where stream = 'a' and version = 8",
        "update events set version = 8 where stream = 'a' and version = -1",
    )

    assert not (await verdict(workspace)).ok


async def test_an_event_that_names_a_cause_which_never_happened_is_found(store, new_chain):
    chain = new_chain()
    await store.commit([chain.next(), chain.next(causes=("a:1", "b:1"))])

    found = await verify(store)

    assert found.first_bad == "a:2"
    assert "b:1" in found.reason


async def test_an_event_that_does_not_continue_its_chain_is_found(store, new_chain):
    chain = new_chain()
    first = chain.take(2)
    chain.hash = "0" * 64
    await store.commit([*first, chain.next()])

    assert (await verify(store)).first_bad == "a:3"


@pytest.mark.only_in_a_file
async def test_a_row_changed_while_the_journal_is_open_is_found(workspace, open_store):
    store = await open_store(workspace)
    tamper(workspace, "update events set actor = 'system' where seq = 10")

    assert (await verify(store)).events == 9
    await store.close()
