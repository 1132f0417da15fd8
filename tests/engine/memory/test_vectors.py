"""Vectors of memories: made in the background, never of two models at once, and a cache that can be lost."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from engine.core.ports import SystemClock
from engine.core.store.opening import open_journal
from engine.memory import embedding_endpoint, open_memory, vector_upkeep
from engine.memory.embedding import unit
from engine.memory.open_memory import MemoryReader, database_of
from engine.memory.requests import named
from engine.memory.sqlite import VECTORS, FileMemory
from tests.engine.memory.embedding_server import EmbeddingServer, embedding, vector_of
from tests.engine.memory.memory_desk import MemoryDesk
from tests.patience import PATIENCE_S


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingServer]:
    async with embedding() as opened:
        yield opened


@pytest.fixture(autouse=True)
def _try_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_upkeep, "RETRY_S", 0.01)
    monkeypatch.setattr(open_memory, "QUERY_AGAIN_S", 0.0)


async def filled(desk: MemoryDesk) -> list[str]:
    texts = ("the car is in the garage", "the database needs a restart", "bananas are yellow")
    return [(await desk.store_memory(text)).id for text in texts]


async def embedded(desk: MemoryDesk) -> None:
    assert await desk.memory.embedded(PATIENCE_S)
    assert desk.memory.status.note == ""


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not true():
            await asyncio.sleep(0.01)


async def test_a_memory_is_found_by_another_word_that_means_the_same(
    desk: MemoryDesk, server: EmbeddingServer
) -> None:
    car, database, _ = await filled(desk)
    assert await desk.found("automobile") == []
    await desk.memory.use_embedder(server.choice())
    await embedded(desk)
    assert (await desk.found("automobile"))[0] == car
    assert (await desk.found("reboot postgres"))[0] == database
    late = await desk.store_memory("an automobile was sold")
    await embedded(desk)
    assert late.id in (await desk.found("car"))[:2]
    status = desk.memory.status
    assert (status.vectors, status.waiting, status.embedder) == (4, 0, f"words@127.0.0.1:{server.port}")


async def test_no_event_and_no_row_of_memory_is_made_for_a_vector(
    desk: MemoryDesk, server: EmbeddingServer
) -> None:
    await filled(desk)
    head = await desk.store.head_seq()
    await desk.memory.use_embedder(server.choice())
    await embedded(desk)
    assert await desk.store.head_seq() == head
    assert len(await desk.ask("query_memories", workflow_id=desk.workflow)) == 3


async def test_search_as_of_an_earlier_event_goes_by_likeness_too(
    desk: MemoryDesk, server: EmbeddingServer
) -> None:
    car, _, _ = await filled(desk)
    before = await desk.store.head_seq()
    await desk.memory.use_embedder(server.choice())
    await desk.ask("update_memory", memory_id=car, content="a bicycle stands here")
    await desk.store_memory("the automobile is new")
    await embedded(desk)
    past = [*await desk.ask("hybrid_search_memories", query="automobile", nearest=True, as_of=before)]
    assert (past[0].memory.id, past[0].memory.content) == (car, "the car is in the garage")
    assert car not in await desk.found("automobile", limit=1)


async def test_vectors_outlast_the_tables_and_texts_are_not_embedded_twice(
    desk: MemoryDesk, server: EmbeddingServer
) -> None:
    car, _, _ = await filled(desk)
    await desk.store_memory("bananas are yellow")
    await desk.memory.use_embedder(server.choice())
    await embedded(desk)
    asked = sum(len(request["input"]) for request in server.requests)
    await desk.close()
    desk.lose()
    await desk.open()
    await desk.memory.use_embedder(server.choice())
    await embedded(desk)
    assert sum(len(request["input"]) for request in server.requests) == asked == 3
    assert (await desk.found("automobile"))[0] == car


@pytest.mark.only_in_a_file
@pytest.mark.parametrize("how", ["missing", "damaged", "link", "foreign", "format"])
async def test_a_database_of_vectors_that_cannot_be_used_is_made_again(
    desk: MemoryDesk, server: EmbeddingServer, how: str, tmp_path: Path
) -> None:
    car, _, _ = await filled(desk)
    await desk.memory.use_embedder(server.choice())
    await embedded(desk)
    await desk.close()
    path = desk.database.with_name(VECTORS)
    match how:
        case "missing":
            path.unlink()
        case "damaged":
            path.write_bytes(path.read_bytes()[:3_000] + b"x" * 5_000)
        case "link":
            path.rename(tmp_path / "other.db")
            path.symlink_to(tmp_path / "other.db")
        case "foreign":
            path.with_name(f"{VECTORS}.noted").write_text("[1, 2, 3, 4]")
        case "format":
            with sqlite3.connect(path) as connection:
                connection.execute("pragma user_version = 99")
            path.with_name(f"{VECTORS}.noted").unlink()
    await desk.open()
    await desk.memory.use_embedder(server.choice())
    await embedded(desk)
    assert (await desk.found("automobile"))[0] == car
    assert not path.is_symlink()


async def test_vectors_of_two_models_are_never_compared(desk: MemoryDesk, server: EmbeddingServer) -> None:
    car, _, _ = await filled(desk)
    await desk.memory.use_embedder(server.choice("first"))
    await embedded(desk)
    server.mode = "down"
    await desk.memory.use_embedder(server.choice("second"))
    await until(lambda: "answered 503" in desk.memory.status.note)
    assert await desk.found("automobile") == []
    assert (await desk.found("garage"))[0] == car
    server.mode = "good"
    await until(lambda: desk.memory.status.vectors == 3)
    assert (await desk.found("automobile"))[0] == car
    connection, _ = desk.inside._likeness._source.opened()
    rows = connection.rows("select e.id, (select count(*) from signs) from embedders e")
    assert [tuple(row) for row in rows] == [(f"second@127.0.0.1:{server.port}", 3)]


@pytest.mark.parametrize("mode", ["html", "nan", "few", "ragged", "words", "down", "hang", "model"])
async def test_an_embedder_that_fails_leaves_words_alone_and_a_note_and_nothing_is_lost(
    desk: MemoryDesk, server: EmbeddingServer, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        embedding_endpoint, "ANSWER_S", {"query": 0.2, "passage": 0.2 if mode == "hang" else 60}
    )
    car, _, _ = await filled(desk)
    server.mode = mode
    await desk.memory.use_embedder(server.choice())
    await until(lambda: desk.memory.status.note.endswith("; words alone count"))
    assert await desk.found("garage") == [car]
    assert f"127.0.0.1:{server.port}" in desk.memory.status.note
    server.mode = "good"
    await until(lambda: desk.memory.status.vectors == 3)
    assert (await desk.found("automobile"))[0] == car
    assert desk.memory.status.note == ""


async def test_vectors_of_another_size_than_before_are_not_kept(
    desk: MemoryDesk, server: EmbeddingServer
) -> None:
    car, _, _ = await filled(desk)
    await desk.memory.use_embedder(server.choice())
    await embedded(desk)
    server.mode = "small"
    await desk.memory.use_embedder(server.choice())
    await desk.store_memory("a truck passes")
    await until(lambda: "of another size than before" in desk.memory.status.note)
    assert await desk.found("garage") == [car]
    assert await desk.found("truck") != []


async def test_a_text_that_a_model_refuses_does_not_hold_up_the_others(
    desk: MemoryDesk, server: EmbeddingServer
) -> None:
    server.mode = "poison"
    poison = (await desk.store_memory("POISON in the well")).id
    car, _, _ = await filled(desk)
    await desk.memory.use_embedder(server.choice())
    await until(lambda: desk.memory.status.vectors == 3)
    assert (await desk.found("automobile"))[0] == car
    assert (await desk.found("well"))[0] == poison
    await embedded(desk)


async def test_a_reader_beside_the_engine_sees_new_vectors(desk: MemoryDesk, server: EmbeddingServer) -> None:
    car, _, _ = await filled(desk)
    store = await open_journal(desk.directory, clock=desk.clock, read_only=True)
    reader = await MemoryReader.look(desk.directory, store, clock=desk.clock, embedder=server.choice())
    try:

        async def found() -> list[Any]:
            return [
                *await reader.ask(named("hybrid_search_memories", {"query": "automobile", "nearest": True}))
            ]

        assert not await found()
        await desk.memory.use_embedder(server.choice())
        await embedded(desk)
        assert (await found())[0].memory.id == car
        assert reader.status.vectors == 3
    finally:
        await reader.close()
        await store.close()


async def test_memories_like_one_are_those_of_like_vectors(desk: MemoryDesk, server: EmbeddingServer) -> None:
    car, _, _ = await filled(desk)
    other = (await desk.store_memory("the automobile is in the garage")).id
    await desk.memory.use_embedder(server.choice())
    await embedded(desk)
    details = await desk.ask("get_memory_by_id", memory_id=car, include_context=True)
    assert [match.memory.id for match in details.context] == [other]


async def test_closing_does_not_wait_for_an_endpoint_that_hangs(
    open_desk: Callable[..., Awaitable[MemoryDesk]], server: EmbeddingServer
) -> None:
    desk = await open_desk()
    await filled(desk)
    server.mode = "hang"
    await desk.memory.use_embedder(server.choice())
    await server.asked.wait()
    async with asyncio.timeout(30):  # that of an answer is twice as long
        await desk.close()


def test_the_nearest_of_many_are_those_that_comparing_all_brings_up(tmp_path: Path) -> None:
    dice = random.Random(5)
    database = database_of(tmp_path, SystemClock())
    (tmp_path / ".pilothouse").mkdir()
    database.open(lambda _: "").close()
    writer = database.vectors("m")
    words = [f"w{n}" for n in range(400)]
    texts = {f"{n:032x}": " ".join(dice.choices(words, k=8)) for n in range(3_000)}
    vectors = {digest: unit(vector_of(text)) for digest, text in texts.items()}
    writer.keep(96, vectors)
    liked = database.likeness("m")
    hits = wanted = 0
    for digest in dice.sample(list(texts), 20):
        query = unit(vector_of(" ".join(texts[digest].split()[:5])))
        assert query is not None
        exact = {each: sum(map(float.__mul__, query, vector or [])) for each, vector in vectors.items()}
        best = sorted(exact, key=lambda each: -exact[each])[:10]
        near = liked.nearest(query, 10)
        hits, wanted = hits + len({each for each, _ in near} & set(best)), wanted + 10
        assert near == sorted(near, key=lambda each: -each[1])
        assert all(abs(cosine - exact[each]) < 0.002 for each, cosine in near)
        few = liked.nearest(query, 5, among=[*best[3:5], "f" * 32])
        assert [each for each, _ in few] == best[3:5]
        assert liked.cosines(query, [best[0], "f" * 32]).keys() == {best[0]}
    assert hits / wanted > 0.95
    assert liked.nearest(array("f", [1.0]), 5) == []
    writer.close()
    liked.close()


@pytest.mark.only_in_a_file
def test_vectors_are_kept_while_memories_are_being_written(tmp_path: Path) -> None:
    (tmp_path / ".pilothouse").mkdir()
    database = FileMemory(tmp_path)
    memories = sqlite3.connect(database.path, isolation_level=None)
    memories.execute("pragma journal_mode = wal")
    memories.execute("create table memories(row integer primary key, digest, description, content)")
    memories.execute("insert into memories values(1, 'd1', '', 'hello')")
    database.vectors("m@1").close()  # makes the database
    writer = database.vectors("m@1")
    assert writer.lacking() == {"d1": "hello"}
    memories.execute("begin immediate")
    memories.execute("insert into memories values(2, 'd2', '', 'more')")
    writer.keep(2, {"d1": unit([1.0, 0.0])})
    memories.execute("commit")
    assert writer.lacking() == {"d2": "more"}
    writer.close()
    memories.close()
