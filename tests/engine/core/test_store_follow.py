"""Following the journal: history, then what happens, with no gap and nothing twice."""

from __future__ import annotations

import asyncio

import pytest

from engine.core.journal import JournalClosed
from engine.core.ports import SystemClock
from engine.core.store import sqlite as store_module
from engine.core.store.stored import TAIL, Tail

LIMIT_S = 120


async def take(events, count: int) -> list[int]:
    """Places of the next events; fails rather than wait for ever."""
    async with asyncio.timeout(LIMIT_S):
        return [(await anext(events)).seq for _ in range(count)]


async def test_a_follower_gets_history_and_then_what_happens(store, new_chain):
    chain = new_chain()
    await store.commit(chain.take(10))
    following = store.events(4, follow=True)

    assert await take(following, 6) == [5, 6, 7, 8, 9, 10]
    await store.commit(chain.take(2))
    assert await take(following, 2) == [11, 12]


async def test_a_follower_wakes_when_something_happens(store, new_chain):
    following = store.events(follow=True)
    waiting = asyncio.create_task(take(following, 2))
    await asyncio.sleep(0)

    await store.commit(new_chain().take(2))

    assert await waiting == [1, 2]


async def test_followers_that_start_at_any_time_miss_nothing_and_get_nothing_twice(store, new_chain):
    total = 3_000
    chains = [new_chain(f"s{n}") for n in range(4)]

    async def agent(chain) -> None:
        for _ in range(total // 4 // 10):
            await store.commit(chain.take(10))

    async def follower() -> list[int]:
        return await take(store.events(follow=True), total)

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        followers = []
        for chain in chains:
            followers.append(group.create_task(follower()))
            await group.create_task(agent(chain)) if chain is chains[0] else group.create_task(agent(chain))
            followers.append(group.create_task(follower()))

    assert all(task.result() == list(range(1, total + 1)) for task in followers)


async def test_a_slow_follower_reads_from_disk_what_memory_no_longer_holds(store, new_chain):
    chain = new_chain()
    await store.commit(chain.take(1))
    following = store.events(follow=True)
    assert await take(following, 1) == [1]

    for _ in range(4):
        await store.commit(chain.take(TAIL))

    assert store._tail.after(1, 1) is None
    assert await take(following, 4 * TAIL) == list(range(2, 4 * TAIL + 2))


async def test_a_follower_of_one_stream_sees_only_that(store, new_chain):
    a, b = new_chain("a"), new_chain("b")
    await store.commit([*a.take(2), *b.take(2)])
    following = store.events(stream="b", follow=True)
    assert await take(following, 2) == [3, 4]

    await store.commit(a.take(600))
    await store.commit(b.take(1))

    assert await take(following, 1) == [605]


async def test_a_follower_that_stops_early_leaves_nothing_behind(store, new_chain):
    await store.commit(new_chain().take(5))
    following = store.events(follow=True)
    await take(following, 1)

    await following.aclose()

    with pytest.raises(StopAsyncIteration):
        await anext(following)


async def test_closing_ends_a_follower_after_all_it_was_owed(tmp_path, new_chain, open_store):
    store = await open_store(tmp_path)

    async def follow() -> list[int]:
        return [event.seq async for event in store.events(follow=True)]

    following = asyncio.create_task(follow())
    await asyncio.sleep(0)
    commit = asyncio.create_task(store.commit(new_chain().take(50)))
    await asyncio.sleep(0)
    await store.close()

    async with asyncio.timeout(LIMIT_S):
        assert await following == [event.seq for event in await commit] == list(range(1, 51))


async def test_closing_tells_a_follower_that_it_did_not_get_everything(tmp_path, new_chain, open_store):
    store = await open_store(tmp_path)
    chain = new_chain()
    await store.commit(chain.take(3))
    following = store.events(follow=True)
    await take(following, 3)
    await store.commit(chain.take(2 * TAIL))

    await store.close()

    with pytest.raises(JournalClosed):
        await take(following, 2 * TAIL)


async def test_history_without_following_ends_at_what_was_there(store, new_chain):
    chain = new_chain()
    await store.commit(chain.take(300))
    places = []

    async for event in store.events():
        places.append(event.seq)
        if event.seq % 100 == 1:
            await store.commit(chain.take(100))

    assert places == list(range(1, 301))


async def test_a_read_only_store_follows_what_another_store_writes(tmp_path, store, new_chain, open_store):
    assert store_module.POLL_S < 1
    chain = new_chain()
    await store.commit(chain.take(2))
    reader = await open_store(tmp_path, read_only=True)
    following = reader.events(follow=True)
    assert await take(following, 2) == [1, 2]

    await store.commit(chain.take(3))

    assert await take(following, 3) == [3, 4, 5]


async def test_reading_while_another_store_writes_misses_nothing_and_gets_nothing_twice(
    tmp_path, store, new_chain, open_store
):
    class Hasty(SystemClock):
        async def sleep(self, seconds: float) -> None:
            await asyncio.sleep(0)

    chain = new_chain()
    reader = await open_store(tmp_path, read_only=True, clock=Hasty())

    async def write() -> None:
        while True:
            await store.commit(chain.take(1))

    writing = asyncio.create_task(write())
    places = await take(reader.events(follow=True), 300)
    writing.cancel()

    assert places == list(range(1, 301))
    await reader.close()


def test_the_tail_holds_the_newest_and_says_when_something_is_only_on_disk(new_chain):
    from engine.core.store.schema import placed

    tail = Tail(10, 3)
    assert tail.after(10, 5) == []
    assert tail.after(9, 5) is None

    tail.extend(placed(event, seq) for seq, event in enumerate(new_chain().take(5), 11))

    assert [event.seq for event in tail.after(12, 5)] == [13, 14, 15]
    assert [event.seq for event in tail.after(13, 1)] == [14]
    assert tail.after(15, 5) == []
    assert tail.after(11, 5) is None
