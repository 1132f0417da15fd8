"""The tables follow from the journal: built again they are the same, and every past event can be read."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.recovery import ThoughtRecorded
from engine.core.streams import StreamLog
from engine.memory.connection import Connection
from engine.memory.database import Projection
from engine.memory.errors import MemoryFault
from engine.memory.sqlite import temporary_tables
from engine.memory.tables import TABLES, Reading
from tests.engine.memory.memory_desk import DAY, MINUTE, MemoryDesk

Rows = dict[str, list[tuple[Any, ...]]]

OPERATIONS = "select number, seq, at, actor, kind, workflow, subject, key from operations order by number"


def every_row(connection: Connection) -> Rows:
    """All tables whole, dead rows and row numbers included."""
    names = [table.name for table in TABLES]
    found = {name: connection.rows(f"select * from {name} order by row") for name in names}
    found["operations"] = connection.rows(OPERATIONS)
    found["vocabulary"] = connection.rows("select term, doc from vocabulary order by term")
    return {name: [tuple(row) for row in rows] for name, rows in found.items()}


def rows_at(connection: Connection, version: int | None) -> Rows:
    """What was true at an event, without births, deaths and row numbers."""
    live = Reading(connection, 0.0, version).live("t")
    found = {}
    for table in TABLES:
        columns = ", ".join(f"t.{name}" for name in table.columns)
        rows = connection.rows(f"select {columns} from {table.name} t where {live}")
        found[table.name] = sorted(repr(tuple(row)) for row in rows)
    return found  # type: ignore[return-value]


def folded(events: list[Any]) -> Projection:
    """The tables of these events alone, in memory."""
    tables = temporary_tables()
    tables.apply(events)
    return tables


places = st.integers(0, 5)
texts = st.sampled_from(["giraffe", "zebra", "квантовая связь", 'C++ "x', "snake_case", "a\x00b"])
moves = st.one_of(
    st.tuples(st.just("store"), texts, st.sampled_from(["working", "episodic", "semantic"])),
    st.tuples(st.just("update"), places, texts),
    st.tuples(st.just("retag"), places, st.lists(st.sampled_from(["a", "b", "c"]), max_size=3)),
    st.tuples(st.just("use"), places, st.integers(1, 6)),
    st.tuples(st.just("promote"), places, st.none()),
    st.tuples(st.just("link"), places, places),
    st.tuples(st.just("focus"), places, st.none()),
    st.tuples(st.just("merge"), places, places),
    st.tuples(st.just("forget"), places, st.none()),
    st.tuples(st.just("act"), texts, st.sampled_from(["completed", "failed", "skipped"])),
    st.tuples(st.just("think"), texts, st.sampled_from(["goal", "inference"])),
    st.tuples(st.just("wait"), st.sampled_from([MINUTE, DAY, 16 * DAY]), st.none()),
    st.tuples(st.just("tidy"), st.none(), st.none()),
)


async def make(desk: MemoryDesk, ids: list[str], move: tuple[str, Any, Any]) -> None:
    """Do one move; what does not fit as things stand is refused, and that is part of the play."""
    name, one, other = move

    def ident(place: int) -> str:
        return ids[place % len(ids)] if ids else "m0"

    where = {"workflow_id": desk.workflow}
    match name:
        case "store":
            ids.append((await desk.store_memory(one, memory_level=other)).id)
        case "update":
            await desk.ask("update_memory", memory_id=ident(one), content=other)
        case "retag":
            await desk.ask("update_memory", memory_id=ident(one), tags=other)
        case "use":
            await desk.use(ident(one), other)
        case "promote":
            await desk.ask("promote_memory_level", memory_id=ident(one))
        case "link":
            await desk.ask("create_memory_link", source_memory_id=ident(one), target_memory_id=ident(other))
        case "focus":
            await desk.ask("focus_memory", memory_id=ident(one), context_id=desk.workflow)
        case "merge":
            sources = [ident(one), ident(other)]
            ids.append((await desk.ask("consolidate_memories", **where, source_ids=sources, content="so")).id)
        case "forget":
            await desk.ask("forget_memories", memory_ids=[ident(one)])
        case "act":
            action = await desk.ask("record_action_start", **where, action_type="analysis", title=one)
            await desk.ask("record_action_completion", action_id=action.id, status=other, tool_result=one)
        case "think":
            await desk.ask("record_thought", **where, content=one, thought_type=other)
        case "wait":
            desk.clock.seconds += one
        case "tidy":
            await desk.ask("delete_expired_memories")
            await desk.ask("decay_link_strengths", **where)


async def play(directory: Path, script: list[tuple[str, Any, Any]]) -> None:
    desk = await MemoryDesk(directory).open()
    ids: list[str] = []
    try:
        for move in script:
            try:
                await make(desk, ids, move)
            except MemoryFault:
                continue
        written = desk.read(every_row)
        events = await desk.store.read("workspace@memory")

        # Built again from the journal, the tables are the same to the last row number.
        await desk.memory.close()
        await desk.store.close()
        desk.lose()
        await desk.open()
        assert desk.read(every_row) == written

        # Read as of any event, they are what the events up to it come to.
        for version in {1, len(events) // 3, len(events) // 2, len(events) - 1, len(events)}:
            with closing(folded(events[:version])) as prefix:
                assert desk.read(rows_at, version) == rows_at(prefix.connection, None), version
    finally:
        await desk.close()


@settings(max_examples=15, deadline=None)
@given(st.lists(moves, min_size=1, max_size=25))
def test_built_again_the_tables_are_the_same_and_the_past_is_a_fold_of_its_prefix(
    script: list[tuple[str, Any, Any]],
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(play(Path(directory), script))


@pytest.mark.only_in_a_file
async def test_what_is_missing_is_folded_on_opening(desk: MemoryDesk) -> None:
    first = await desk.store_memory("a giraffe")
    await desk.close()
    kept = desk.database.read_bytes()
    await desk.open()
    second = await desk.store_memory("a zebra")
    await desk.close()
    for ending in ("-wal", "-shm"):
        desk.database.with_name(f"memory.db{ending}").unlink(missing_ok=True)
    desk.database.write_bytes(kept)
    await desk.open()
    assert set(await desk.found("giraffe zebra")) == {first.id, second.id}
    third = await desk.store_memory("a lion")
    assert int(third.id[1:]) == int(second.id[1:]) + 1


def overwrite(desk: MemoryDesk, content: bytes) -> None:
    desk.database.write_bytes(content)


def poke(sql: str) -> Any:
    def change(desk: MemoryDesk) -> None:
        with closing(sqlite3.connect(desk.database)) as connection:
            connection.execute(sql)
            connection.commit()

    return change


def tear(desk: MemoryDesk) -> None:
    content = bytearray(desk.database.read_bytes())
    content[4_096:12_288] = b"\xa5" * 8_192
    desk.database.write_bytes(bytes(content))


DAMAGE = {
    "missing": lambda desk: desk.database.unlink(),
    "empty": lambda desk: overwrite(desk, b""),
    "no database": lambda desk: overwrite(desk, b"a poem about the moon" * 500),
    "cut off": lambda desk: overwrite(desk, desk.database.read_bytes()[:5_000]),
    "torn pages": tear,
    "an older format": poke("update meta set value = '0' where key = 'format'"),
    "without a format": poke("delete from meta"),
    "another journal's": poke("update meta set value = '3 feedbeef' where key = 'head'"),
    "ahead of the journal": poke("update meta set value = '999 feedbeef' where key = 'head'"),
}


@pytest.mark.only_in_a_file
@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_database_that_cannot_be_used_is_built_again(desk: MemoryDesk, damage: str) -> None:
    memory = await desk.store_memory("a giraffe on the moon", tags=["tall"])
    before = desk.read(every_row)
    await desk.close()
    DAMAGE[damage](desk)
    await desk.open()
    assert desk.read(every_row) == before
    assert await desk.found("giraffe") == [memory.id]
    left = {path.name for path in desk.database.parent.iterdir() if path.name.startswith("memory")}
    assert left <= {"memory.db", "memory.db-wal", "memory.db-shm"}


async def test_events_of_others_do_not_count(desk: MemoryDesk) -> None:
    """Places in the journal are of all streams, and reading as of one of another stream's is right."""
    log = StreamLog("pilot", 0, "", desk.clock, desk.store.commit)
    memory = await desk.store_memory("a giraffe")
    for n in range(3):
        log.append(ThoughtRecorded(text=f"{n}"), actor="agent", causes=(), tick=1)
    await log.commit()
    between = await desk.store.head_seq()
    await desk.ask("update_memory", memory_id=memory.id, content="a zebra")
    then = await desk.ask("get_memory_by_id", memory_id=memory.id, as_of=between)
    assert then.memory.content == "a giraffe"
