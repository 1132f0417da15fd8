"""The index of the journal: searching and asking why give with it what they give without it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from engine.core.journal import Event
from engine.core.ports import SystemClock
from engine.core.store.sqlite import SqliteJournal
from engine.inquiry.event_search import EventSearch
from engine.inquiry.index_writer import AHEAD, LEAST, JournalIndex
from engine.inquiry.indexed_record import GROUP, INDEX, IndexedRecord, open_index, record_of
from engine.inquiry.record import Record
from engine.inquiry.search import Batch, Hit, Source, parse_query, run_search
from engine.inquiry.why import backward, cascade, forward
from tests.benchmarks.long_session import AGENT, make, named

COUNT = 2_500


@pytest.fixture(scope="module")
def flown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace = tmp_path_factory.mktemp("flown")
    make(workspace, COUNT)
    return workspace


@pytest.fixture
async def store(flown: Path):
    opened = await SqliteJournal.open(flown, clock=SystemClock(), read_only=True)
    yield opened
    await opened.close()


async def indexed(workspace: Path, seq: int) -> None:
    index = JournalIndex(workspace)
    await index.update(seq)
    await index.close()


async def hits_of(workspace: Path, text: str, **more: object) -> list[Hit]:
    batches: list[Batch] = []
    await run_search(parse_query(text, **more), [(Source.EVENT, EventSearch(workspace))], batches.append)  # type: ignore[arg-type]
    assert batches[-1].done
    assert not batches[-1].problem
    return [hit for batch in batches for hit in batch.hits]


def without(workspace: Path) -> None:
    for path in (workspace / ".pilothouse").glob(f"{INDEX}*"):
        path.unlink()


SEARCHES = [
    (named(0), {}),
    (f"{named(3)} WROTE", {}),
    ('"due east"', {}),
    ("a1", {"limit": 10_000}),
    ("Größe", {}),
    ('say "\\ {', {}),
    ("nowhere at all", {}),
    ("zq", {}),
    ("s9 x", {"limit": 10_000}),
    ("navigation", {"kind": "goal", "limit": 10_000}),
    ("navigation", {"agent": "nobody"}),
]


async def test_with_an_index_a_search_finds_what_it_finds_without(flown: Path, store: SqliteJournal) -> None:
    without(flown)
    plain = [await hits_of(flown, text, **more) for text, more in SEARCHES]
    # Not all of it is indexed, so that the newest events are still looked through one by one.
    await indexed(flown, COUNT - 300)
    found = open_index(flown)
    assert found is not None
    found[0].close()
    assert COUNT - 300 - AHEAD - GROUP <= found[1] <= COUNT - 300 - AHEAD
    assert [await hits_of(flown, text, **more) for text, more in SEARCHES] == plain
    assert plain[0]


async def test_with_an_index_why_answers_what_it_answers_without(flown: Path, store: SqliteJournal) -> None:
    events = [event async for event in store.events(0, follow=False)]
    plain = Record.of(events)
    without(flown)
    await indexed(flown, COUNT - 300)
    kept = await record_of(flown, store)
    assert isinstance(kept, IndexedRecord)
    for what in ("a1", "a641", "s2", "g3", "p2", "error", "belief run.last.return_code", events[-1].ref):
        found = [_subject(one, what) for one in (plain, kept)]
        assert found[0] == found[1], what
    for event in (*events[::37], events[-1]):
        assert backward(kept, event.ref) == backward(plain, event.ref)
        assert forward(kept, [event.ref]) == forward(plain, [event.ref])
        mine, theirs = cascade(kept, [event.ref]), cascade(plain, [event.ref])
        assert mine.chain == theirs.chain
        assert {*mine.standing} == {*theirs.standing}
    assert kept.newest("action.requested", AGENT) == plain.newest("action.requested", AGENT)
    assert kept.newest("no.such.kind") is None


def _subject(record: Record, what: str) -> object:
    try:
        return record.subject(what, AGENT)
    except LookupError as error:
        return str(error)
    except Exception as error:
        return type(error)


async def test_an_index_goes_on_where_it_was_and_small_news_wait(flown: Path) -> None:
    without(flown)
    await indexed(flown, LEAST - 1)
    assert open_index(flown) is None
    for seq in (LEAST, 2 * LEAST):
        await indexed(flown, seq)
        found = open_index(flown)
        assert found is not None
        assert found[1] == (seq + 1 - AHEAD) // GROUP * GROUP
        found[0].close()


@pytest.mark.parametrize("damage", ["of another journal", "another format", "no database", "half a page"])
async def test_an_index_that_does_not_fit_is_thrown_away_and_built_again(flown: Path, damage: str) -> None:
    without(flown)
    await indexed(flown, COUNT)
    path = flown / ".pilothouse" / INDEX
    with closing(sqlite3.connect(path)) as database:
        if damage == "of another journal":
            database.execute("update about set value = 'f' where key = 'hash'")
        elif damage == "another format":
            database.execute("update about set value = '0' where key = 'format'")
        database.commit()
    if damage == "no database":
        path.write_bytes(b"not a database, but long enough to be taken for one" * 100)
    elif damage == "half a page":
        path.write_bytes(path.read_bytes()[:2_000])
    assert await hits_of(flown, named(0))
    await indexed(flown, COUNT)
    found = open_index(flown)
    assert found is not None
    found[0].close()


async def test_the_record_of_a_journal_without_an_index_is_read_from_it(
    flown: Path, store: SqliteJournal
) -> None:
    without(flown)
    record = await record_of(flown, store)
    assert not isinstance(record, IndexedRecord)
    event: Event | None = record.newest("", AGENT)
    assert event is not None
