"""Committing events to the journal, and reading them back."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.journal import (
    Event,
    JournalClosed,
    JournalConflict,
    JournalError,
    JournalRefused,
    JournalWriteError,
    canonical,
)
from engine.core.store.port import START, Head, parse_ref
from engine.core.store.schema import placed, prepare, to_event, to_row
from engine.core.store.sqlite import SqliteJournal
from engine.core.store.stored import KEEP_SNAPSHOTS, SNAPSHOT_DISTANCE
from engine.core.store.verify import verify


async def everything(store: SqliteJournal, since: int = 0, stream: str | None = None) -> list[Event]:
    return [event async for event in store.events(since, stream=stream)]


async def test_commit_answers_the_events_with_their_place(store, new_chain):
    events = new_chain().take(3)

    kept = await store.commit(events)

    assert kept == [placed(event, seq) for seq, event in enumerate(events, 1)]
    assert await everything(store) == kept
    assert await store.head_seq() == await store.count() == 3


async def test_committing_nothing_writes_nothing(store):
    assert await store.commit([]) == []
    assert await store.count() == 0


async def test_events_are_there_after_closing_and_opening_again(tmp_path, new_chain, open_store):
    chain = new_chain()
    first = await open_store(tmp_path)
    kept = await first.commit(chain.take(2))
    await first.close()

    second = await open_store(tmp_path, create=False)
    try:
        more = await second.commit(chain.take(1))
        assert more[0].seq == 3
        assert await everything(second) == kept + more
        assert await second.head("a") == Head(3, chain.hash)
    finally:
        await second.close()


@pytest.mark.parametrize("count", [255, 256, 257, 1000])
async def test_a_batch_of_any_size_is_kept_whole(store, new_chain, count):
    kept = await store.commit(new_chain().take(count))

    assert [event.seq for event in kept] == list(range(1, count + 1))
    assert await everything(store) == kept


async def test_commits_made_at_the_same_time_are_all_kept_in_order_of_arrival(store, new_chain):
    chains = [new_chain(f"s{n}") for n in range(16)]

    async def agent(chain) -> list[Event]:
        return [event for _ in range(20) for event in await store.commit(chain.take(2))]

    kept = [event for events in await asyncio.gather(*map(agent, chains)) for event in events]

    assert sorted(event.seq for event in kept) == list(range(1, 641))
    assert await everything(store) == sorted(kept, key=lambda event: event.seq)
    assert (await verify(store)).ok


@pytest.mark.parametrize("skip", [0, 2])
async def test_a_version_that_does_not_follow_the_head_is_a_conflict(store, new_chain, skip):
    chain = new_chain()
    await store.commit(chain.take(3))
    chain.version = chain.version - 1 if skip == 0 else chain.version + 1

    with pytest.raises(JournalConflict, match=r"at version 3.*must be version 4 and not") as raised:
        await store.commit([new_chain("b").next(), chain.next()])

    assert isinstance(raised.value, JournalError)
    assert await store.count() == 3
    assert await store.head("b") == START


async def test_a_conflict_does_not_touch_the_others_of_its_group(store, new_chain):
    good, bad, after = new_chain("good"), new_chain("bad"), new_chain("after")
    bad.version = 7

    answers = await asyncio.gather(
        *(store.commit(chain.take(2)) for chain in (good, bad, after)), return_exceptions=True
    )

    assert isinstance(answers[1], JournalConflict)
    assert [event.ref for event in await everything(store)] == ["good:1", "good:2", "after:1", "after:2"]


async def test_an_event_that_cannot_be_stored_does_not_touch_the_others_of_its_group(store, new_chain):
    good, bad, after = new_chain("good"), new_chain("bad"), new_chain("after")
    spoiled = bad.next()._replace(actor="operator:\ud800")

    answers = await asyncio.gather(
        store.commit(good.take(1)),
        store.commit([spoiled]),
        store.commit(after.take(1)),
        return_exceptions=True,
    )

    assert isinstance(answers[1], JournalRefused)
    assert [(event.ref, event.seq) for event in await everything(store)] == [("good:1", 1), ("after:1", 2)]


@pytest.mark.parametrize("before", [0, 100, 400])
async def test_a_value_of_the_wrong_type_is_refused_and_the_stream_goes_on(store, new_chain, before):
    chain = new_chain()
    events = chain.take(before + 1)
    wrong = events[-1]._replace(tick="first")

    with pytest.raises(JournalRefused, match="cannot be stored"):
        await store.commit([*events[:-1], wrong])
    assert await everything(store) == []

    assert (await store.commit(events))[-1].seq == before + 1


async def test_a_cancelled_caller_loses_nothing_and_leaves_nothing_open(store, new_chain):
    chain = new_chain()
    caller = asyncio.create_task(store.commit(chain.take(500)))
    await asyncio.sleep(0)  # the batch is handed over now

    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    kept = await store.commit(chain.take(1))

    assert kept[0].seq == 501
    assert await store.count() == 501


async def test_a_writer_that_is_cancelled_leaves_nothing_half_written(tmp_path, new_chain, open_store):
    store = await open_store(tmp_path)
    chain = new_chain()
    await store.commit(chain.take(1))
    callers = [asyncio.create_task(store.commit(chain.take(2_000))) for _ in range(2)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    store._writer._task.cancel()
    answers = await asyncio.gather(*callers, return_exceptions=True)
    with pytest.raises(JournalClosed):
        await store.commit(chain.take(1))
    await store.close()

    assert all(isinstance(answer, JournalClosed) for answer in answers)
    again = await open_store(tmp_path)
    assert await again.count() in (1, 2_001)
    assert (await verify(again)).ok
    await again.close()


@pytest.mark.only_in_a_file
async def test_what_a_killed_creation_left_is_in_nobodys_way(open_store, tmp_path):
    data = tmp_path / ".pilothouse"
    data.mkdir()
    for name in ("journal.db.new", "journal.db.new-journal", "journal.db.new-wal", "journal.db.new-shm"):
        (data / name).write_bytes(b"half of it")

    store = await open_store(tmp_path)
    await store.close()

    assert [path.name for path in data.iterdir() if ".new" in path.name] == []


def test_a_journal_appears_with_its_write_ahead_log_so_that_no_reader_must_roll_it_back(tmp_path):
    prepare(tmp_path / "journal.db", "2026-01-01T00:00:00Z")

    # The versions of the format for writing and reading: 1 is a rollback journal, 2 a write-ahead log.
    assert (tmp_path / "journal.db").read_bytes()[18:20] == b"\x02\x02"
    assert [path.name for path in tmp_path.iterdir()] == ["journal.db"]


@pytest.mark.only_in_a_file
@pytest.mark.parametrize("size", [1, 200, 400])
async def test_a_full_disk_writes_nothing_and_the_same_events_can_be_tried_again(
    store, new_chain, full_disk, size
):
    chain = new_chain()
    before = await store.commit(chain.take(5))
    events = chain.take(size, body='"' + "x" * 20_000 + '"')

    async with full_disk(store):
        with pytest.raises(JournalWriteError, match=r"database or disk is full.*try again"):
            await store.commit(events)
    assert await everything(store) == before
    kept = await store.commit(events)

    assert [event.seq for event in kept] == list(range(6, 6 + size))
    assert (await verify(store)).ok


@pytest.mark.only_in_a_file
async def test_on_a_disk_that_is_really_full_the_same_events_can_be_tried_again(
    tmp_path, new_chain, open_store
):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"THIS MACHINE CANNOT MOUNT A SMALL DISK: {mounted.stderr.decode().strip()}")
    try:
        store = await open_store(disk)
        chain = new_chain()
        before = await store.commit(chain.take(2))
        ballast = disk / "ballast"
        fill(ballast)
        events = chain.take(50, body='"' + "x" * 2_000 + '"')

        with pytest.raises(JournalWriteError, match="nothing of this batch was written"):
            await store.commit(events)
        assert await everything(store) == before
        ballast.unlink()
        kept = await store.commit(events)

        assert await everything(store) == before + kept
        assert (await verify(store)).ok
        await store.close()
    finally:
        subprocess.run(["umount", disk], check=True)


def fill(ballast: Path) -> None:
    """Write until the disk takes no more."""
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)), ballast.open("ab", buffering=0) as file:
        file.write(bytes(4096))


# ---------------------------------------------------------------- reading


async def test_one_stream_is_read_between_two_versions(store, new_chain):
    a, b = new_chain("a"), new_chain("b")
    for _ in range(5):
        await store.commit([a.next(), b.next()])

    assert [event.version for event in await store.read("b", 2, 4)] == [2, 3, 4]
    assert [event.version for event in await store.read("b", 4)] == [4, 5]
    assert await store.read("nobody") == []


@pytest.mark.parametrize("since", [0, 1, 299, 300, 700, 1199, 1200, 5000])
async def test_events_of_one_stream_since_a_place_skip_the_others(
    tmp_path, store, new_chain, since, open_store
):
    a, b = new_chain("a"), new_chain("b")
    for _ in range(30):
        await store.commit([*a.take(10), *b.take(30)])
    reader = await open_store(tmp_path, read_only=True)

    expected = [event for event in await everything(store) if event.stream == "b" and event.seq > since]

    assert await everything(store, since, "b") == expected
    assert await everything(reader, since, "b") == expected
    assert (await everything(store, since))[:1] == (await everything(reader, since))[:1]
    await reader.close()


async def test_an_event_is_found_by_reference_and_by_place(store, new_chain):
    kept = await store.commit([*new_chain("a@try:2").take(2), *new_chain("b").take(1)])

    assert await store.get("a@try:2:2") == await store.get(2) == kept[1]
    assert [await store.get(ref) for ref in ("b:2", "b", ":1", "b:x", "b:-1", "", 0, -1, 4, 2**70)] == [
        None
    ] * 10


async def test_the_last_events_come_oldest_first(store, new_chain):
    a, b = new_chain("a"), new_chain("b")
    await store.commit([*a.take(3), *b.take(2, kind="asked"), *a.take(1, kind="asked")])

    assert [event.ref for event in await store.last(2)] == ["b:2", "a:4"]
    assert [event.ref for event in await store.last(2, "a")] == ["a:3", "a:4"]
    assert [event.ref for event in await store.last(9, kind="asked")] == ["b:1", "b:2", "a:4"]
    assert [event.ref for event in await store.last(9, "a", kind="asked")] == ["a:4"]
    asked = await store.of_kinds(("asked",), 0, 9)
    assert [event.ref for event in asked] == ["b:1", "b:2", "a:4"]
    assert await store.of_kinds(("asked", "never"), asked[0].seq, 1) == asked[1:2]
    assert await store.last(0) == []


async def test_heads_are_the_same_in_memory_and_on_disk(tmp_path, store, new_chain, open_store):
    chains = [new_chain(name) for name in ("b", "a", "a@x", "é", "")]
    for turn in range(1, 4):
        for chain in chains:
            await store.commit(chain.take(turn))
    reader = await open_store(tmp_path, read_only=True)

    expected = {chain.stream: Head(6, chain.hash) for chain in chains}

    assert list((await store.streams()).items()) == list((await reader.streams()).items())
    assert await store.streams() == expected
    assert await store.head("é") == await reader.head("é") == expected["é"]
    assert await store.head("nobody") == await reader.head("nobody") == START
    assert await reader.head_seq() == 30
    await reader.close()


texts = st.text(st.characters(exclude_categories=["Cs"]))


@settings(max_examples=60, deadline=None)
@given(texts, texts, st.lists(texts), texts, st.integers(0, 2**63 - 1))
def test_a_row_gives_back_the_event_it_was_made_from(stream, actor, causes, body, number):
    event = Event(stream, number, "t", number, actor, tuple(causes), "kind", body, "hash", number)

    assert to_event(to_row(event)) == event


@given(st.lists(st.text(st.sampled_from('a:1"\\,[é\n\x7f\ud800'))))
def test_causes_are_kept_as_canonical_json(causes):
    event = Event("a", 1, "t", 0, "agent", tuple(causes), "kind", "{}", "hash")

    assert to_row(event)[6] == canonical(causes)


@given(texts.filter(bool), st.integers(0, 10**18 - 1))
def test_a_reference_names_its_stream_and_version(stream, version):
    assert parse_ref(f"{stream}:{version}") == (stream, version)


# ---------------------------------------------------------------- snapshots


async def test_the_newest_snapshot_up_to_a_version_is_loaded(store, new_chain):
    await store.commit(new_chain().take(30))
    for version in (10, 30):
        await store.save_snapshot("a", version, 1, f"state {version}")

    assert await store.load_snapshot("a", None, 1) == (30, "state 30")
    assert await store.load_snapshot("a", 29, 1) == (10, "state 10")
    assert await store.load_snapshot("a", 9, 1) is None
    assert await store.load_snapshot("a", None, 2) is None
    assert await store.load_snapshot("b", None, 1) is None


async def test_a_snapshot_from_beyond_the_head_is_not_loaded(store, new_chain):
    await store.commit(new_chain().take(3))
    await store.save_snapshot("a", 2, 1, "real")
    await store.save_snapshot("a", 9, 1, "of events that are not here")

    assert await store.load_snapshot("a", None, 1) == (2, "real")


async def test_only_the_newest_snapshots_of_a_stream_are_kept(store, new_chain):
    newest = SNAPSHOT_DISTANCE * (KEEP_SNAPSHOTS + 2)
    await store.commit([*new_chain("a").take(newest), *new_chain("b").take(1)])
    await store.save_snapshot("b", 1, 1, "b")
    for version in range(SNAPSHOT_DISTANCE, newest + 1, SNAPSHOT_DISTANCE):
        await store.save_snapshot("a", version, 1, "a")

    oldest = newest - SNAPSHOT_DISTANCE * (KEEP_SNAPSHOTS - 1)
    assert await store.load_snapshot("a", oldest - 1, 1) is None
    assert await store.load_snapshot("a", oldest, 1) == (oldest, "a")
    assert await store.load_snapshot("b", None, 1) == (1, "b")


async def test_many_short_sessions_leave_a_snapshot_from_before_them(store, new_chain):
    await store.commit(new_chain().take(60))
    await store.save_snapshot("a", 20, 1, "before")
    for version in range(30, 60):
        await store.save_snapshot("a", version, 1, "a")

    assert await store.load_snapshot("a", None, 1) == (59, "a")
    assert await store.load_snapshot("a", 58, 1) == (20, "before")


@pytest.mark.only_in_a_file
async def test_a_snapshot_that_cannot_be_saved_says_so_and_events_go_on(store, new_chain, full_disk):
    chain = new_chain()
    await store.commit(chain.take(1))

    async with full_disk(store):
        with pytest.raises(JournalWriteError):
            await store.save_snapshot("a", 1, 1, "x" * 500_000)

    assert (await store.commit(chain.take(1)))[0].seq == 2


@pytest.mark.only_in_a_file
async def test_a_workspace_with_unusual_characters_in_its_name_works(tmp_path: Path, new_chain, open_store):
    directory = tmp_path / "my work? #1 %41 ünï"
    store = await open_store(directory)
    kept = await store.commit(new_chain().take(1))

    assert await everything(store) == kept
    assert (directory / ".pilothouse" / "journal.db").is_file()
    await store.close()
