"""Opening and closing: locks, versions, damaged files, and processes that end."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest

from engine import __version__
from engine.core.journal import (
    JournalClosed,
    JournalCorrupt,
    JournalError,
    JournalLocked,
    JournalMissing,
    JournalTooNew,
    JournalUnsound,
)
from engine.core.ports import SystemClock
from engine.core.store.schema import SCHEMA_VERSION, to_row
from engine.core.store.sqlite import SqliteJournal
from engine.core.store.verify import verify
from tests.patience import PATIENCE_S

CLOCK = SystemClock()


async def write(directory: Path, events) -> None:
    store = await SqliteJournal.open(directory, clock=CLOCK)
    await store.commit(events)
    await store.close()


def database(directory: Path) -> Path:
    return directory / ".pilothouse" / "journal.db"


def files(directory: Path) -> dict[str, str]:
    """What is in the data directory, the lock aside."""
    found = (
        path for path in (directory / ".pilothouse").rglob("*") if path.is_file() and path.name != "lock"
    )
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


async def refused(directory: Path, error: type[JournalError], match: str, **how: bool) -> str:
    with pytest.raises(error, match=match) as raised:
        await SqliteJournal.open(directory, clock=CLOCK, **how)
    message = str(raised.value)
    assert "\n" not in message
    return message


# ---------------------------------------------------------------- making


async def test_a_new_journal_is_private_to_its_owner(tmp_path, new_chain):
    await write(tmp_path / "new" / "workspace", new_chain().take(1))

    assert (tmp_path / "new" / "workspace" / ".pilothouse").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("how", [{"create": False}, {"read_only": True}])
async def test_nothing_is_made_unless_asked_for(tmp_path, how):
    await refused(tmp_path / "workspace", JournalMissing, "There is no journal in", **how)

    assert not (tmp_path / "workspace").exists()


async def test_a_workspace_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("text")

    await refused(tmp_path / "file", JournalError, "choose a workspace directory")


@pytest.mark.only_in_a_file
async def test_the_database_is_set_up_to_lose_nothing(store):
    async def pragma(connection, name):
        return (await connection.execute_fetchall(f"pragma {name}"))[0][0]

    writer, reader = store._writer.ledger.connection, store._database.connection

    assert await pragma(writer, "journal_mode") == "wal"
    assert await pragma(writer, "synchronous") == 2
    assert await pragma(writer, "foreign_keys") == 1
    assert await pragma(writer, "busy_timeout") == 5000
    assert await pragma(reader, "query_only") == 1
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        await reader.execute("delete from events")


async def test_normal_synchronous_is_a_setting(tmp_path, open_store):
    store = await open_store(tmp_path, synchronous="NORMAL")
    try:
        ((level,),) = await store._writer.ledger.connection.execute_fetchall("pragma synchronous")
        assert level == 1
    finally:
        await store.close()


# ---------------------------------------------------------------- one writer


async def test_a_second_writer_is_told_who_has_it_open_and_since_when(tmp_path, store, open_store):
    with pytest.raises(JournalLocked, match=f"Process {os.getpid()} has had .* open since 20") as raised:
        await open_store(tmp_path)

    assert raised.value.pid == str(os.getpid())
    assert raised.value.since.endswith("Z")


async def test_closing_lets_the_next_writer_in(tmp_path, new_chain):
    chain = new_chain()
    for _ in range(3):
        await write(tmp_path, chain.take(1))


async def test_reading_goes_on_beside_a_writer_and_sees_each_commit(tmp_path, store, new_chain, open_store):
    chain = new_chain()
    reader = await open_store(tmp_path, read_only=True)
    for count in range(1, 4):
        await store.commit(chain.take(1))
        assert await reader.count() == await reader.head_seq() == count
    with pytest.raises(JournalClosed, match="reading only"):
        await reader.commit(chain.take(1))
    await reader.close()
    assert reader.read_only
    assert not store.read_only


@pytest.mark.only_in_a_file
async def test_opening_for_reading_changes_no_file(tmp_path, new_chain, open_store):
    await write(tmp_path, new_chain().take(20))
    before = files(tmp_path)

    reader = await open_store(tmp_path, read_only=True)
    assert await reader.count() == 20
    await reader.close()

    assert files(tmp_path)["journal.db"] == before["journal.db"]


HOLDER = """
import asyncio, sys
from pathlib import Path
from engine.core.ports import SystemClock
from engine.core.store.sqlite import SqliteJournal

async def main():
    store = await SqliteJournal.open(Path(sys.argv[1]), clock=SystemClock())
    print("open", flush=True)
    await asyncio.sleep(3600)

asyncio.run(main())
"""


@pytest.mark.only_in_a_file
async def test_the_lock_ends_with_a_process_that_is_killed(tmp_path, open_store):
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, tmp_path, stdout=asyncio.subprocess.PIPE
    )
    assert await holder.stdout.readline() == b"open\n"
    await refused(tmp_path, JournalLocked, f"Process {holder.pid} has had this workspace open since")

    holder.send_signal(signal.SIGKILL)
    await holder.wait()

    store = await open_store(tmp_path)
    await store.close()


# ---------------------------------------------------------------- closing


async def test_closing_twice_and_at_the_same_time_is_harmless(tmp_path, open_store):
    store = await open_store(tmp_path)
    await asyncio.gather(store.close(), store.close())
    await store.close()


async def test_closing_writes_what_waits_and_refuses_what_comes_later(tmp_path, new_chain, open_store):
    store = await open_store(tmp_path)
    chain = new_chain()
    waiting = [asyncio.create_task(store.commit(chain.take(10))) for _ in range(5)]
    await asyncio.sleep(0)

    await store.close()

    assert [(await task)[-1].seq for task in waiting] == [10, 20, 30, 40, 50]
    for late in (store.commit(chain.take(1)), store.count(), store.read("a")):
        with pytest.raises(JournalClosed):
            await late


async def test_closing_finishes_when_its_caller_is_cancelled(tmp_path, new_chain, open_store):
    store = await open_store(tmp_path)
    await store.commit(new_chain().take(1))
    closing_task = asyncio.create_task(store.close())
    await asyncio.sleep(0)

    closing_task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing_task

    await (await open_store(tmp_path)).close()


async def test_opening_that_is_cancelled_leaves_no_lock_and_no_thread(tmp_path, open_store):
    for turns in range(12):
        opening = asyncio.create_task(open_store(tmp_path))
        for _ in range(turns):
            await asyncio.sleep(0)
        opening.cancel()
        with suppress(asyncio.CancelledError):
            await (await opening).close()

    await (await open_store(tmp_path)).close()


ENDS = """
import asyncio, sys
from pathlib import Path
from engine.core.ports import SystemClock
from engine.core.store.sqlite import SqliteJournal

async def main():
    store = await SqliteJournal.open(Path(sys.argv[1]), clock=SystemClock())
    try:
        if sys.argv[2] == "fails":
            raise SystemExit(7)
        if sys.argv[2] == "interrupted":
            print("ready", flush=True)
            await asyncio.sleep(3600)
    finally:
        await store.close()

asyncio.run(main())
"""


@pytest.mark.parametrize(("how", "code"), [("well", 0), ("fails", 7), ("interrupted", 1)])
def test_a_process_ends_once_its_store_is_closed(tmp_path, how, code):
    process = subprocess.Popen(
        [sys.executable, "-c", ENDS, tmp_path, how], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        if how == "interrupted":
            assert process.stdout.readline() == b"ready\n"
            process.send_signal(signal.SIGINT)
            code = -signal.SIGINT
        assert process.wait(timeout=PATIENCE_S) == code
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_process_ends_when_opening_is_refused(tmp_path):
    (tmp_path / ".pilothouse").mkdir()
    database(tmp_path).write_bytes(b"not a database" * 100)

    done = subprocess.run(
        [sys.executable, "-c", ENDS, tmp_path, "well"], capture_output=True, timeout=PATIENCE_S
    )

    assert b"JournalCorrupt" in done.stderr


# ---------------------------------------------------------------- versions


def older_journal(directory: Path, events) -> None:
    """A journal made by hand, without snapshots and version numbers."""
    (directory / ".pilothouse").mkdir()
    with closing(sqlite3.connect(database(directory))) as connection:
        connection.execute("create table meta(key text primary key, value text not null) strict")
        connection.execute(
            "create table events(seq integer primary key, stream text not null, version integer not null, "
            "at text not null, tick integer not null, actor text not null, causes text not null, "
            "kind text not null, body text not null, hash text not null, unique(stream, version)) strict"
        )
        marks = ", ".join("?" * 10)
        for seq, event in enumerate(events, 1):
            connection.execute(f"insert into events values({marks})", (seq, *to_row(event)[1:]))
        connection.commit()


@pytest.mark.only_in_a_file
async def test_a_journal_that_lacks_a_table_is_built_again_and_kept_aside(tmp_path, new_chain, open_store):
    chain = new_chain()
    older_journal(tmp_path, chain.take(5))
    await refused(tmp_path, JournalCorrupt, "no such table: snapshots", read_only=True)

    store = await open_store(tmp_path)
    await store.commit(chain.take(1))
    await store.save_snapshot("a", 6, 1, "state")

    assert (await verify(store)).ok
    assert await store.count() == 6
    assert "all 5 are in a new file" in store.notes[0]
    await store.close()
    (aside,) = (tmp_path / ".pilothouse").glob("journal.db.aside-*")
    with closing(sqlite3.connect(aside)) as copy:
        assert copy.execute("select count(*) from events").fetchone() == (5,)


@pytest.mark.only_in_a_file
async def test_a_current_journal_is_left_as_it_is(tmp_path, new_chain, open_store):
    await write(tmp_path, new_chain().take(1))
    before = files(tmp_path)

    store = await open_store(tmp_path)
    await store.close()

    assert set(files(tmp_path)) == set(before)


@pytest.mark.parametrize(
    "where", ["pragma user_version = 9", "update meta set value = '9' where key like 'schema%'"]
)
@pytest.mark.parametrize("read_only", [False, True])
async def test_a_newer_journal_is_refused_and_left_alone(tmp_path, new_chain, where, read_only):
    await write(tmp_path, new_chain().take(1))
    with closing(sqlite3.connect(database(tmp_path))) as connection:
        connection.execute(where)
        connection.commit()
    before = files(tmp_path)

    message = await refused(tmp_path, JournalTooNew, "schema version 9", read_only=read_only)

    assert f"up to {SCHEMA_VERSION}" in message
    assert "newer Pilothouse" in message
    assert files(tmp_path)["journal.db"] == before["journal.db"]


# ---------------------------------------------------------------- damage


@pytest.mark.parametrize(
    "content", [b"hello", b"not a database " * 1000, b"SQLite format 3\x00" + b"\xff" * 5000]
)
@pytest.mark.parametrize("read_only", [False, True])
async def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path, content, read_only):
    (tmp_path / ".pilothouse").mkdir()
    database(tmp_path).write_bytes(content)

    message = await refused(tmp_path, JournalCorrupt, "nothing was changed", read_only=read_only)

    assert str(database(tmp_path)) in message
    assert "sessions repair" in message
    assert database(tmp_path).read_bytes() == content


async def test_a_damaged_page_is_refused_and_left_alone(tmp_path, new_chain):
    await write(tmp_path, new_chain().take(500))
    content = bytearray(database(tmp_path).read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 4096] = os.urandom(4096)
    database(tmp_path).write_bytes(content)

    await refused(tmp_path, JournalCorrupt, "nothing was changed")

    assert database(tmp_path).read_bytes() == content


async def test_a_file_that_was_cut_short_is_refused_and_left_alone(tmp_path, new_chain):
    await write(tmp_path, new_chain().take(500))
    content = database(tmp_path).read_bytes()
    content = content[: len(content) // 2]
    database(tmp_path).write_bytes(content)

    await refused(tmp_path, JournalCorrupt, "nothing was changed")

    assert database(tmp_path).read_bytes() == content


async def test_the_database_of_another_program_is_refused_and_left_alone(tmp_path):
    (tmp_path / ".pilothouse").mkdir()
    with closing(sqlite3.connect(database(tmp_path))) as connection:
        connection.execute("create table songs(name)")
    before = files(tmp_path)

    await refused(tmp_path, JournalCorrupt, "some other program")

    assert files(tmp_path) == before


async def test_a_journal_that_lacks_its_kept_states_is_written_anew_with_all_events(tmp_path, new_chain):
    await write(tmp_path, new_chain().take(3))
    with closing(sqlite3.connect(database(tmp_path))) as connection:
        connection.execute("drop table snapshots")
        connection.commit()

    store = await SqliteJournal.open(tmp_path, clock=CLOCK)

    assert (await verify(store)).events == 3
    (note,) = store.notes
    assert "all 3 are in a new file, and the old one is journal.db.aside-" in note
    await store.close()


async def test_a_journal_that_lacks_its_events_is_refused(tmp_path, new_chain):
    await write(tmp_path, new_chain().take(1))
    with closing(sqlite3.connect(database(tmp_path))) as connection:
        connection.execute("drop table events")
        connection.commit()

    await refused(tmp_path, JournalUnsound, "database of some other program")


async def test_an_empty_file_becomes_a_journal(tmp_path, new_chain):
    (tmp_path / ".pilothouse").mkdir()
    database(tmp_path).touch()

    await write(tmp_path, new_chain().take(1))

    assert set(files(tmp_path)) == {"journal.db", "journal.db.noted"}


# ---------------------------------------------------------------- who wrote it


async def test_a_journal_says_which_versions_wrote_it(tmp_path, new_chain, monkeypatch):
    chain = new_chain()
    await write(tmp_path, chain.take(1))
    monkeypatch.setattr("engine.core.store.stored.__version__", "9.1")
    await write(tmp_path, chain.take(1))

    store = await SqliteJournal.open(tmp_path, clock=CLOCK, read_only=True)
    assert store.writers == (__version__, "9.1")
    await store.close()


async def test_a_journal_that_does_not_say_so_was_written_by_0_1(tmp_path, new_chain):
    await write(tmp_path, new_chain().take(1))
    with closing(sqlite3.connect(database(tmp_path))) as connection, connection:
        connection.execute("delete from meta where key = 'written_by'")

    store = await SqliteJournal.open(tmp_path, clock=CLOCK, read_only=True)
    assert store.writers == ("0.1",)
    await store.close()
