"""What is particular to a journal in PostgreSQL: other writers, lost servers, refusals, copies."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

import pytest

from engine.api.journal_copy import copy_to_file, copy_to_postgres
from engine.core.journal import (
    BlobMissing,
    JournalConflict,
    JournalError,
    JournalLocked,
    JournalMissing,
    JournalTooNew,
    JournalWriteError,
)
from engine.core.ports import SystemClock
from engine.core.store import JOURNAL
from engine.core.store.blobs import BlobStore
from engine.core.store.opening import blobs_of, journal_file, open_journal
from engine.core.store.port import DATA_DIRECTORY
from engine.core.store.postgres_schema import MIGRATIONS, Address, read_address
from engine.core.store.verify import verify, workspace_head
from tests.postgres_server import PostgresServer

pytestmark = pytest.mark.only_in_a_file  # each has its own journals there
CLOCK = SystemClock()
LIMIT_S = 60


@pytest.fixture
def address(postgres, tmp_path) -> Address:
    return read_address(postgres.url, tmp_path)


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """One that a test may kill."""
    server = PostgresServer()
    try:
        yield server.start()
    finally:
        server.remove()


@pytest.fixture
async def opened(address):
    """Opens the journal, and closes it however the test ends."""
    from engine.core.store.postgres import open_postgres

    stores = []

    async def open_(place: Address = address, **how: bool):
        stores.append(await open_postgres(place, CLOCK, **how))
        return stores[-1]

    yield open_
    for store in stores:
        await store.close()


# ------------------------------------------------------------------ without a server


def test_nothing_of_postgresql_is_imported_with_a_journal_in_a_file() -> None:
    program = (
        "import sys, app.cli.main, app.cli.serve, app.cli.do, engine.api.engine, engine.core.store.opening\n"
        "names = ('asyncpg', 'engine.core.store.postgres', 'engine.core.store.postgres_schema')\n"
        "assert not [name for name in names if name in sys.modules]"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://pilot:tiger@db/fleet", "names no database of PostgreSQL"),
        ("postgresql://pilot:tiger@db", "names no database"),
        ("postgresql://pilot:tiger@db:port/fleet", "cannot be read"),
        ("postgresql://pilot:tiger@db/fleet?schema=No-Name", "no name of a schema"),
    ],
)
def test_a_wrong_url_is_refused_without_its_password(url, says, tmp_path) -> None:
    with pytest.raises(JournalError, match=says) as raised:
        read_address(url, tmp_path)

    assert "tiger" not in str(raised.value)


def test_a_place_is_shown_without_secrets(tmp_path) -> None:
    url = "postgresql://pilot:tiger@db:5433/fleet?password=tiger&sslmode=require&schema=crew"

    assert read_address(url, tmp_path).place == (
        "postgresql://pilot@db:5433/fleet?sslmode=require&schema=crew"
    )


def test_each_workspace_has_a_schema_of_its_own(tmp_path) -> None:
    first, second = (read_address("postgresql://db/fleet", tmp_path / name) for name in ("a", "B c"))

    assert first.schema != second.schema
    assert second.schema.startswith("pilothouse_b_c_")


# ------------------------------------------------------------------ several writers


@pytest.mark.postgres
async def test_one_engine_writes_and_another_hears_who_it_is(opened) -> None:
    await opened()

    with pytest.raises(JournalLocked, match=r"Process \d+ has had this workspace open since 2"):
        await opened()


@pytest.mark.postgres
async def test_writers_that_share_a_journal_give_places_without_gaps(opened, new_chain) -> None:
    stores = [await opened(shared=True) for _ in range(3)]
    chains = [new_chain(f"agent-{number}") for number in range(3)]

    async def write(store, chain) -> list[int]:
        return [event.seq for _ in range(20) for event in await store.commit(chain.take(3))]

    async with asyncio.timeout(LIMIT_S):
        places = await asyncio.gather(*map(write, stores, chains))

    assert sorted(chain.from_iterable(places)) == list(range(1, 181))
    assert (await verify(stores[0])).events == 180


@pytest.mark.postgres
async def test_a_writer_follows_what_another_one_writes(opened, new_chain) -> None:
    mine, other = await opened(shared=True), await opened(shared=True)
    kept = await other.commit(new_chain().take(2))

    async with asyncio.timeout(LIMIT_S):
        heard = [event async for event in _first(mine.events(follow=True), 2)]

    assert heard == kept
    assert await mine.head("a") == await other.head("a")


async def _first(events, count):
    for _ in range(count):
        yield await anext(events)


@pytest.mark.postgres
async def test_two_writers_of_one_stream_conflict(opened, new_chain) -> None:
    mine, other = await opened(shared=True), await opened(shared=True)
    await other.commit(new_chain().take(1))

    with pytest.raises(JournalConflict, match="at version 1"):
        await mine.commit([new_chain().next(body='"mine"')])


@pytest.mark.postgres
async def test_the_same_events_again_are_kept_once(opened, new_chain) -> None:
    store, events = await opened(), new_chain().take(3)
    kept = await store.commit(events)

    assert await store.commit(events) == kept
    assert await store.count() == 3


# ------------------------------------------------------------------ lost servers


@pytest.mark.postgres
@pytest.mark.slow
async def test_no_acknowledged_event_is_lost_when_the_server_is_killed(
    own_server, tmp_path, new_chain
) -> None:
    from engine.core.store.postgres import open_postgres

    store = await open_postgres(read_address(own_server.url, tmp_path), CLOCK)
    acknowledged, over = {}, False

    async def append(chain) -> None:
        while not over:
            for event in await store.commit(chain.take(4)):
                acknowledged[event.seq] = event

    try:
        async with asyncio.timeout(2 * LIMIT_S), asyncio.TaskGroup() as group:
            for number in range(4):
                group.create_task(append(new_chain(f"agent-{number}")))
            for _ in range(3):
                enough = len(acknowledged) + 200
                while len(acknowledged) < enough:
                    await asyncio.sleep(0.01)
                await asyncio.to_thread(own_server.kill)
                await asyncio.to_thread(own_server.start)
            enough = len(acknowledged) + 200
            while len(acknowledged) < enough:
                await asyncio.sleep(0.01)
            over = True
        kept = {event.seq: event async for event in store.events()}

        assert acknowledged == kept
        assert (await verify(store)).ok
    finally:
        await store.close()


@pytest.mark.postgres
async def test_a_connection_that_is_cut_is_made_again(opened, new_chain, postgres, address) -> None:
    store, chain = await opened(), new_chain()
    reader = await opened(read_only=True)
    following = reader.events(follow=True)
    await store.commit(chain.take(1))
    heard = [await anext(following)]

    postgres.sql(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'pilothouse'"
    )
    async with asyncio.timeout(LIMIT_S):
        await store.commit(chain.take(1))
        heard.append(await anext(following))

    assert [event.seq for event in heard] == [1, 2]
    assert await store.count() == 2


@pytest.mark.postgres
async def test_a_cut_connection_that_the_server_still_holds_gives_way(opened, new_chain) -> None:
    store, chain_ = await opened(), new_chain()
    await store.commit(chain_.take(1))
    link = store._writer.ledger._link
    link._connection, cut = None, link._connection  # the server has not noticed

    async with asyncio.timeout(LIMIT_S):
        await store.commit(chain_.take(1))

    assert await store.count() == 2
    cut.terminate()


@pytest.mark.postgres
async def test_a_server_that_stays_away_is_said_and_the_same_events_can_be_tried_again(
    own_server, tmp_path, new_chain, monkeypatch
) -> None:
    from engine.core.store import postgres as module

    monkeypatch.setattr(module, "RECONNECT_TRIES", 2)
    store = await module.open_postgres(read_address(own_server.url, tmp_path), CLOCK)
    try:
        events = new_chain().take(2)
        own_server.stop()
        with pytest.raises(JournalWriteError, match="no PostgreSQL answers there"):
            await store.commit(events)
        own_server.start()

        assert [event.seq for event in await store.commit(events)] == [1, 2]
    finally:
        await store.close()


# ------------------------------------------------------------------ refusals


@pytest.mark.postgres
async def test_a_newer_schema_is_refused_and_an_older_one_brought_forward(
    opened, postgres, address, new_chain
) -> None:
    await (store := await opened()).commit(new_chain().take(1))
    await store.close()
    table = f"{address.schema}.meta"
    postgres.sql(
        f"drop table {address.schema}.blobs", f"update {table} set value='1' where key='schema_version'"
    )

    store = await opened()
    assert await store.count() == 1
    await store.close()

    assert postgres.sql(f"select count(*) from {address.schema}.blobs") == "0"
    postgres.sql(f"update {table} set value = '{len(MIGRATIONS) + 1}' where key = 'schema_version'")
    for how in ({}, {"read_only": True}):
        with pytest.raises(JournalTooNew, match="open it with a newer Pilothouse"):
            await opened(**how)


@pytest.mark.postgres
async def test_what_is_not_there_is_said(opened, postgres, tmp_path) -> None:
    with pytest.raises(JournalMissing, match="There is no journal at postgresql://"):
        await opened(read_only=True)
    with pytest.raises(JournalError, match="make it with createdb"):
        await opened(read_address(postgres.url.replace("/postgres?", "/nothing?"), tmp_path))
    with pytest.raises(JournalError, match="no PostgreSQL answers there"):
        await opened(read_address("postgresql://pilot:tiger@127.0.0.1:1/postgres", tmp_path))


@pytest.mark.postgres
async def test_who_has_no_rights_is_told_how_to_get_them(opened, postgres, tmp_path) -> None:
    postgres.sql("drop role if exists guest", "create role guest login")

    with pytest.raises(JournalError, match="GRANT CREATE ON DATABASE"):
        await opened(read_address(postgres.url.replace("pilot@", "guest@"), tmp_path))


@pytest.mark.postgres
async def test_a_full_disk_of_the_server_is_said_and_the_same_events_can_be_tried_again(
    opened, postgres, tmp_path, new_chain
) -> None:
    disk = postgres.room / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"THIS MACHINE CANNOT MOUNT A SMALL DISK: {mounted.stderr.decode().strip()}")
    try:
        shutil.chown(disk, "nobody")
        postgres.sql(f"create tablespace small location '{disk}'")
        url = f"{postgres.url}&default_tablespace=small&schema=on_a_small_disk"
        store, chain_ = await opened(read_address(url, tmp_path)), new_chain()
        before = await store.commit(chain_.take(2))
        ballast = disk / "ballast"
        with ballast.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))
        events = [chain_.next(body=f'"{os.urandom(5_000).hex()}"') for _ in range(50)]

        with pytest.raises(JournalWriteError, match=r"nothing of this batch.*disk of the database is full"):
            await store.commit(events)
        assert [event async for event in store.events()] == before
        ballast.unlink()

        assert [event.seq for event in await store.commit(events)] == list(range(3, 53))
        await store.close()
        postgres.sql("drop schema on_a_small_disk cascade", "drop tablespace small")
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


@pytest.mark.postgres
async def test_a_workspace_knows_where_its_journal_is(tmp_path, postgres, monkeypatch) -> None:
    monkeypatch.setenv(JOURNAL, f"{postgres.url}&password=tiger")
    await (await open_journal(tmp_path, clock=CLOCK)).close()
    monkeypatch.delenv(JOURNAL)

    with pytest.raises(JournalError, match=r"is in PostgreSQL \(postgresql://pilot@.*--journal") as raised:
        await open_journal(tmp_path, clock=CLOCK)

    assert "tiger" not in str(raised.value)
    assert "tiger" not in (tmp_path / DATA_DIRECTORY / "journal.url").read_text()


# ------------------------------------------------------------------ copies and blobs


@pytest.mark.postgres
async def test_a_journal_is_copied_there_and_back_with_the_same_heads(
    tmp_path, open_store, postgres, new_chain
) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    home.mkdir()
    other.mkdir()
    url = f"{postgres.url}&schema=copied"
    store = await open_store(home)
    await store.commit([event for name in ("a", "b") for event in new_chain(name).take(700)])
    digest = await BlobStore(home / DATA_DIRECTORY / "blobs").put(b"large")
    head = workspace_head(await store.streams())
    await store.close()

    there = await copy_to_postgres(home, url, CLOCK)
    again = await copy_to_postgres(home, url, CLOCK)
    back = await copy_to_file(url, other, CLOCK)

    assert there.head == again.head == back.head == head
    assert (there.added, again.added, back.added) == (1400, 0, 1400)
    assert await BlobStore(other / DATA_DIRECTORY / "blobs").get(digest) == b"large"


@pytest.mark.postgres
async def test_another_journal_is_not_copied_over(tmp_path, open_store, postgres, new_chain) -> None:
    url = f"{postgres.url}&schema=taken"
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        store = await open_store(tmp_path / name)
        await store.commit(new_chain(name).take(2))
        await store.close()
    await copy_to_postgres(tmp_path / "a", url, CLOCK)

    with pytest.raises(JournalError, match="has another journal, with 2 events; nothing was changed"):
        await copy_to_postgres(tmp_path / "b", url, CLOCK)


@pytest.mark.postgres
async def test_another_machine_has_the_blobs(tmp_path, postgres, monkeypatch) -> None:
    monkeypatch.setenv(JOURNAL, f"{postgres.url}&schema=shared_blobs")
    here, there = tmp_path / "here", tmp_path / "there"
    await (await open_journal(here, clock=CLOCK)).close()
    digest = await blobs_of(here, CLOCK).put(b"an answer")

    assert await blobs_of(there, CLOCK).get(digest) == b"an answer"
    assert Path(there / DATA_DIRECTORY / "blobs" / ".pilothouse" / "blobs" / digest[:2] / digest).is_file()
    with pytest.raises(BlobMissing):
        await blobs_of(there, CLOCK).get("0" * 64)


@pytest.mark.postgres
async def test_what_works_on_a_file_says_where_the_journal_is_and_how_to_have_it_in_one(
    opened, tmp_path, postgres, monkeypatch
) -> None:
    store = await opened()
    with pytest.raises(JournalError, match="pilothouse journal copy URL"):
        store.path  # noqa: B018 - archives ask for it
    await store.close()
    monkeypatch.setenv(JOURNAL, postgres.url)
    await (await open_journal(tmp_path, clock=CLOCK)).close()

    for url in (postgres.url, ""):
        monkeypatch.setenv(JOURNAL, url)
        with pytest.raises(JournalError, match=rf"is at postgresql://pilot@.* copy URL {tmp_path}"):
            journal_file(tmp_path)
