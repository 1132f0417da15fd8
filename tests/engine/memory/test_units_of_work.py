"""All or nothing: what a unit of work writes, and what becomes of it when something goes wrong."""

from __future__ import annotations

import asyncio
import random
import sqlite3

import pytest

from engine.core.journal import JournalClosed, JournalWriteError
from engine.core.memory import MemoryItem
from engine.core.store.opening import open_journal
from engine.core.store.verify import verify
from engine.memory.errors import MemoryInputError, MemoryRefused, MemoryUnavailable
from engine.memory.memories import CreateMemoryLink, StoreMemory
from engine.memory.memory import Memory
from engine.memory.tables import TABLES, Reading
from engine.memory.writer import Unit
from tests.engine.memory.memory_desk import MemoryDesk
from tests.patience import PATIENCE_S


def storing(desk: MemoryDesk, content: str) -> StoreMemory:
    return StoreMemory(workflow_id=desk.workflow, content=content, memory_type="fact")


async def count(desk: MemoryDesk) -> int:
    return (await desk.ask("compute_memory_statistics")).total


async def fill(desk: MemoryDesk) -> None:
    """Store until there is no room, at the latest after a megabyte."""
    for n in range(100):
        await desk.store_memory(f"{n}" + "x" * 10_000)


async def test_a_unit_that_fails_writes_nothing(desk: MemoryDesk) -> None:
    """An exception after the first of two writes, and neither is stored."""
    head = await desk.store.head_seq()

    def work(unit: Unit) -> None:
        request = storing(desk, "half a thing")
        memory = request.write(unit)
        # The second write sees the first one, and is refused.
        link = CreateMemoryLink(source_memory_id=memory.id, target_memory_id="m999")
        link.write(unit)

    with pytest.raises(MemoryInputError, match="no memory 'm999'"):
        await desk.inside.writer.write(work)
    assert await desk.store.head_seq() == head
    assert await count(desk) == 0
    assert (await desk.store_memory("whole")).content == "whole"


async def test_services_within_a_unit_share_it(desk: MemoryDesk) -> None:
    """Nested services, and no deadlock; consolidation stores and links in one unit."""
    sources = [(await desk.store_memory(f"reading {n}")).id for n in range(3)]
    before = await desk.store.head_seq()
    async with asyncio.timeout(PATIENCE_S):
        merged = await desk.ask(
            "consolidate_memories", workflow_id=desk.workflow, source_ids=sources, content="all well"
        )
    kinds = [one.kind async for one in desk.store.events(before, stream="workspace@memory")]
    assert kinds == ["memory.stored", *["memory.linked"] * 3, "memory.consolidated"]
    assert merged.context == {"sources": sources}


async def test_one_refusal_does_not_touch_its_neighbours(desk: MemoryDesk) -> None:
    asked = [desk.store_memory(f"note {n}") if n % 3 else desk.recall("m999") for n in range(30)]
    asked += [desk.ask("use_memories", memory_ids=["m998"]) for _ in range(5)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    stored = [one for one in answers if isinstance(one, MemoryItem)]
    assert len({one.id for one in stored}) == 20
    assert await count(desk) == 20
    assert all(isinstance(one, (MemoryItem, MemoryInputError)) for one in answers)


async def test_a_cancelled_write_is_whole_and_leaves_nothing_open(desk: MemoryDesk) -> None:
    dice = random.Random(6)
    for n in range(60):
        task = asyncio.create_task(desk.store_memory(f"note {n}"))
        for _ in range(dice.randrange(6)):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    last = await desk.store_memory("the last one")
    assert (await desk.recall(last.id)).content == "the last one"
    events = await desk.store.read("workspace@memory")
    assert await count(desk) == sum(one.kind == "memory.stored" for one in events)
    assert (await verify(desk.store)).ok


async def test_forty_writers_and_readers_at_once(desk: MemoryDesk) -> None:
    async def writer(number: int) -> None:
        memory = await desk.store_memory(f"writer {number}")
        for turn in range(5):
            await desk.ask("update_memory", memory_id=memory.id, content=f"writer {number} turn {turn}")

    async def reader() -> None:
        for _ in range(10):
            for hit in await desk.ask("hybrid_search_memories", query="writer turn", limit=50):
                assert hit.memory.content.startswith("writer")

    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(writer(number))
            group.create_task(reader())
    hits = await desk.ask("hybrid_search_memories", query="turn", limit=50, semantic_weight=0.0)
    assert sorted(one.memory.content for one in hits) == sorted(f"writer {n} turn 4" for n in range(20))
    assert (await verify(desk.store)).ok


@pytest.mark.only_in_a_file
async def test_a_full_disk_of_the_journal_writes_nothing_anywhere(desk: MemoryDesk) -> None:
    connection = desk.store._writer.ledger.connection
    ((pages,),) = await connection.execute_fetchall("pragma page_count")
    await connection.execute_fetchall(f"pragma max_page_count = {pages}")
    with pytest.raises(JournalWriteError):
        await fill(desk)
    kept = await count(desk)
    await connection.execute_fetchall("pragma max_page_count = 1073741823")
    events = await desk.store.read("workspace@memory")
    assert kept == sum(one.kind == "memory.stored" for one in events)
    await desk.store_memory("room again")
    assert await count(desk) == kept + 1
    assert (await verify(desk.store)).ok


@pytest.mark.only_in_a_file
async def test_a_full_disk_of_the_tables_loses_nothing(desk: MemoryDesk) -> None:
    connection = desk.inside._projection.connection.inner
    pages = connection.execute("pragma page_count").fetchone()[0]
    connection.execute(f"pragma max_page_count = {pages}")
    with pytest.raises(MemoryUnavailable, match="cannot be written just now"):
        await fill(desk)
    connection.execute("pragma max_page_count = 1073741823")
    await desk.store_memory("room again")
    events = await desk.store.read("workspace@memory")
    assert await count(desk) == sum(one.kind == "memory.stored" for one in events)


@pytest.mark.only_in_a_file
async def test_tables_that_could_not_be_shown_are_brought_forward(desk: MemoryDesk) -> None:
    """The journal took the events and the tables' commit failed: the write was done, and shows later."""
    connection = desk.inside._projection.connection.inner

    def refuse(action: int, *_: object) -> int:
        # `update` comes only after the journal has committed, when each event is told its place.
        return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_UPDATE and _[0] == "operations" else 0

    connection.set_authorizer(refuse)
    memory = await desk.store_memory("durable and not shown")
    connection.set_authorizer(None)
    assert await desk.found("durable") == []
    await desk.store_memory("the next one")
    assert await desk.found("durable") == [memory.id]


async def test_what_the_writer_knows_is_what_the_tables_hold(desk: MemoryDesk) -> None:
    below = await desk.ask("create_workflow", title="Crater", parent_workflow_id=desk.workflow)
    action = await desk.ask(
        "record_action_start", workflow_id=below.id, action_type="tool_use", tool_name="dig"
    )
    await desk.ask("record_action_completion", action_id=action.id, tool_result="dust")
    await desk.ask("create_thought_chain", workflow_id=below.id, title="another", initial_thought="deeper")
    memories = [await desk.store_memory(f"fact {number}", tags=["moon"]) for number in range(3)]
    await desk.ask("update_memory", memory_id=memories[0].id, content="other", tags=["sun", "moon"])
    await desk.use(memories[1].id, 2)
    await desk.ask("forget_memories", memory_ids=[memories[2].id])
    await desk.ask("update_workflow_status", workflow_id=below.id, status="completed")

    connection = desk.inside._projection.connection
    tables = {table.name: table for table in TABLES}
    asked = Reading(connection, desk.clock.seconds)
    seen = set()
    for place, value in list(connection.known.items()):
        match place:
            case ("last", table, owner):
                there: object = asked.last_in(tables[table], owner)
            case ("below", workflow):
                there = asked.below(workflow)
            case ("first chain", workflow):
                there = asked.first_chain(workflow)
            case ("made", kind, key):
                there = asked.made(kind, key)
            case ("memories", ident):
                there = asked.find_memory(ident, expired=True)
            case ("last row", _):
                there = asked.last_memory()
            case (table, *key):
                there = asked.find(tables[table], *key)
        assert value == there, place
        seen.add(place[0])
    assert seen >= {"last", "below", "first chain", "memories", "last row", "workflows", "actions", "chains"}


async def test_causes_must_be_in_the_journal(desk: MemoryDesk) -> None:
    request = storing(desk, "because")
    for cause in ("workspace@memory:99", "nobody:1", "nonsense"):
        with pytest.raises(MemoryInputError, match="no event"):
            await desk.memory.do(request, causes=(cause,))
    await desk.memory.do(request, causes=("workspace@memory:1",), actor="operator:ada")
    (event,) = await desk.store.last(1, "workspace@memory")
    assert (event.causes, event.actor) == (("workspace@memory:1",), "operator:ada")
    assert (await verify(desk.store)).ok


async def test_the_past_is_not_written(desk: MemoryDesk) -> None:
    with pytest.raises(MemoryInputError, match="read and not written"):
        await desk.memory.do(storing(desk, "too late"), as_of=1)


async def test_a_closed_memory_says_so(desk: MemoryDesk) -> None:
    writing = asyncio.create_task(desk.store_memory("in the last moment"))
    await asyncio.sleep(0)
    await desk.close()
    assert (await writing).content == "in the last moment"
    for asking in (desk.store_memory("too late"), desk.found("too late")):
        with pytest.raises(MemoryUnavailable, match="closed"):
            await asking
    await desk.memory.close()
    await desk.open()
    assert len(await desk.found("moment")) == 1


async def test_a_journal_that_is_closed_first_is_named(desk: MemoryDesk) -> None:
    await desk.store.close()
    with pytest.raises(JournalClosed):
        await desk.store_memory("nowhere to go")
    with pytest.raises(MemoryUnavailable, match="open for writing"):
        await open_reading(desk)


async def open_reading(desk: MemoryDesk) -> None:
    store = await open_journal(desk.directory, clock=desk.clock, read_only=True)
    try:
        await Memory(desk.directory, store, clock=desk.clock).ready()
    finally:
        await store.close()


async def test_a_refused_status_change_leaves_no_trace(desk: MemoryDesk) -> None:
    await desk.ask("update_workflow_status", workflow_id=desk.workflow, status="failed")
    head = await desk.store.head_seq()
    with pytest.raises(MemoryRefused):
        await desk.ask("update_workflow_status", workflow_id=desk.workflow, status="active")
    assert await desk.store.head_seq() == head
