"""What is particular to memory in PostgreSQL: the same order as in a file, pgvector, lost servers, rights."""

from __future__ import annotations

import asyncio
import random
from array import array
from collections.abc import Sequence
from itertools import islice, product
from pathlib import Path

import pytest

from engine.core.journal import Event
from engine.core.ports import SystemClock
from engine.core.store import JOURNAL
from engine.core.store.verify import verify, workspace_head
from engine.memory.errors import MemoryInputError, MemoryUnavailable
from engine.memory.open_memory import database_of
from tests.engine.memory.memory_desk import MemoryDesk
from tests.postgres_server import PostgresServer

pytestmark = [pytest.mark.only_in_a_file, pytest.mark.postgres]  # each has its own journals there

WORDS = [
    "pump",
    "seal",
    "leak",
    "valve",
    "moon",
    "crater",
    "survey",
    "pumps",
    "leaking",
    "sealed",
    "orbit",
    "rover",
    "battery",
    "dust",
    "night",
]
CUT = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'pilothouse'"
OTHERS = [*WORDS, *(f"word{number}" for number in range(150))]
QUERIES = (
    *("pump", "pumps leak", "the seal of a pump that is leaking", '"pump seal"', "moon -dust", "batery"),
    *("orbit orbit rover", "night level:semantic", "crater survey moon orbit rover battery dust night"),
)


async def filled(directory: Path) -> MemoryDesk:
    desk, dice = await MemoryDesk(directory).open(), random.Random(7)
    for number in range(120):
        texts = [" ".join(dice.choices(OTHERS, k=dice.randint(3, 40))) for _ in range(2)]
        level = ("episodic", "semantic")[number % 2]
        await desk.store_memory(texts[0], description=texts[1], memory_level=level, tags=[WORDS[number % 9]])
    return desk


async def test_searches_bring_up_the_same_in_the_same_order_and_heads_are_equal(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, heads = [], []
    for name, url in (("file", ""), ("server", f"{postgres.url}&schema=same_order")):
        monkeypatch.setenv(JOURNAL, url)
        (tmp_path / name).mkdir()
        desk = await filled(tmp_path / name)
        matches = [[*await desk.ask("hybrid_search_memories", query=query, limit=60)] for query in QUERIES]
        answers.append([[(match.memory.id, match.words) for match in each] for each in matches])
        heads.append(workspace_head(await desk.store.streams()))
        await desk.close()

    assert sum(map(bool, answers[0])) > 6
    assert answers[0] == answers[1]
    assert heads[0] == heads[1]


async def test_pgvector_brings_up_the_nearest(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    if postgres.sql("select 1 from pg_available_extensions where name = 'vector'") != "1":
        pytest.skip("THIS MACHINE HAS NO PGVECTOR: its index is left out")
    postgres.sql("drop database if exists likeness", "create database likeness")
    postgres.sql("create extension vector", database="likeness")
    monkeypatch.setenv(JOURNAL, postgres.url.replace("/postgres?", "/likeness?"))
    database, dice = database_of(tmp_path, SystemClock()), random.Random(3)
    database.open(lambda _: "").close()
    writer = database.vectors("m")
    vectors = {f"{number:032x}": unit([dice.gauss(0, 1) for _ in range(96)]) for number in range(900)}
    writer.keep(96, {**vectors, "f" * 32: None})
    writer.close()
    liked = database.likeness("m")

    near = [liked.nearest(vector, 1)[0][0] for vector in vectors.values()][:50]

    assert near == list(vectors)[:50]
    assert "hnsw" in postgres.sql(
        "select indexdef from pg_indexes where indexdef like '%hnsw%'", database="likeness"
    )
    liked.close()


def unit(numbers: list[float]) -> array[float]:
    length = sum(number * number for number in numbers) ** 0.5
    return array("f", [number / length for number in numbers])


async def test_a_text_that_the_server_refuses_takes_nothing_else_with_it(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(JOURNAL, f"{postgres.url}&schema=refused")
    desk = await MemoryDesk(tmp_path).open()
    letters = [chr(0x10400 + number) for number in range(40)]  # of four bytes each
    words = ("".join(word) for word in product(letters, repeat=4))
    long, longer = (" ".join(islice(words, count)) for count in (12_000, 50_000))
    texts = [("the first", ""), (longer, long), ("the third", ""), ("the fourth", "")]
    try:
        asked = [desk.store_memory(content, description=about) for content, about in texts]
        stored = await asyncio.gather(*asked, return_exceptions=True)
        assert [isinstance(each, MemoryInputError) for each in stored] == [False, True, False, False]
        assert "too long for tsvector" in str(stored[1])
        kept = [each.id for each in stored if not isinstance(each, BaseException)]
        assert sorted(await desk.found("first OR third OR fourth")) == sorted(kept)
        verdict = await verify(desk.store)
        assert verdict.ok, verdict.reason
    finally:
        await desk.close()


async def test_a_connection_that_is_cut_is_made_again(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(JOURNAL, postgres.url)
    desk = await MemoryDesk(tmp_path).open()
    first = await desk.store_memory("a giraffe")

    postgres.sql(CUT)
    async with asyncio.timeout(60):
        second = await desk.store_memory("another giraffe")

        assert set(await desk.found("giraffe")) == {first.id, second.id}
        await desk.close()


async def test_what_a_lost_transaction_wrote_does_not_count_twice(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(JOURNAL, postgres.url)
    desk = await MemoryDesk(tmp_path).open()
    memory = await desk.store_memory("a giraffe")
    commit = desk.store.commit

    async def cut_behind(events: Sequence[Event]) -> list[Event]:
        """The journal has it, and the tables do not."""
        placed = await commit(events)
        postgres.sql(CUT)
        return placed

    with monkeypatch.context() as once:
        once.setattr(desk.store, "commit", cut_behind)
        await desk.use(memory.id, 1)
    async with asyncio.timeout(60):
        await desk.use(memory.id, 1)
        assert (await desk.recall(memory.id)).access_count == 2
        await desk.close()


async def test_who_has_no_rights_is_told_how_to_get_them(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.sql("drop role if exists reader", "create role reader login")
    monkeypatch.setenv(JOURNAL, postgres.url.replace("pilot@", "reader@"))

    with pytest.raises(MemoryUnavailable, match="GRANT CREATE ON DATABASE"):
        database_of(tmp_path, SystemClock()).open(lambda _: "")


async def test_memory_of_another_journal_is_built_again(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(JOURNAL, postgres.url)
    desk = await MemoryDesk(tmp_path).open()
    memory = await desk.store_memory("a giraffe")
    await desk.close()
    desk.poke("update meta set value = '3 feedbeef' where key = 'head'")
    await desk.open()

    assert "built again from the journal" in desk.memory.rebuilt
    assert await desk.found("giraffe") == [memory.id]
    await desk.close()
