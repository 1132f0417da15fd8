"""Leases with fencing tokens, by the database's clock."""

from __future__ import annotations

import asyncio

import pytest

from engine.core.store.leases import TABLE, LeaseLost, acquire, release, renew, require

pytestmark = [pytest.mark.only_in_a_file, pytest.mark.postgres]
LONG, OVER = 600, 0


@pytest.fixture
async def connect(postgres):
    """Connections to one database with an empty table of leases."""
    import asyncpg

    opened = []

    async def connect_():
        opened.append(await asyncpg.connect(postgres.url))
        return opened[-1]

    await (await connect_()).execute(f"drop table if exists leases; {TABLE}")
    yield connect_
    for connection in opened:
        await connection.close()


@pytest.fixture
async def connection(connect):
    return await connect()


async def test_a_name_is_held_by_one(connection) -> None:
    lease = await acquire(connection, "pilot-1", "shard-1", LONG)

    assert await acquire(connection, "pilot-1", "shard-2", LONG) is None
    await require(connection, lease)


async def test_of_many_that_want_a_name_at_once_one_gets_it(connect) -> None:
    connections = [await connect() for _ in range(8)]

    wanted = [acquire(each, "pilot-1", f"shard-{number}", LONG) for number, each in enumerate(connections)]
    leases = await asyncio.gather(*wanted)

    assert len([lease for lease in leases if lease is not None]) == 1


async def test_a_lease_that_ran_out_goes_to_another_with_a_larger_token(connection) -> None:
    old = await acquire(connection, "pilot-1", "shard-1", OVER)
    new = await acquire(connection, "pilot-1", "shard-2", LONG)

    assert new.token > old.token
    assert not await renew(connection, old, LONG)
    assert await renew(connection, new, LONG)
    with pytest.raises(LeaseLost, match="shard-1 does not hold pilot-1 any more"):
        await require(connection, old)


async def test_ones_own_lease_is_renewed_with_the_same_token(connection) -> None:
    lease = await acquire(connection, "pilot-1", "shard-1", LONG)

    assert await acquire(connection, "pilot-1", "shard-1", LONG) == lease
    assert await renew(connection, lease, LONG)


async def test_who_comes_back_to_its_own_lease_that_ran_out_has_a_new_token(connection) -> None:
    old = await acquire(connection, "pilot-1", "shard-1", OVER)

    assert (await acquire(connection, "pilot-1", "shard-1", LONG)).token == old.token + 1


async def test_a_released_name_is_free_and_a_lost_one_cannot_be_released(connection) -> None:
    old = await acquire(connection, "pilot-1", "shard-1", LONG)
    await release(connection, old)
    new = await acquire(connection, "pilot-1", "shard-2", LONG)
    await release(connection, old)

    await require(connection, new)


async def test_nobody_takes_a_name_while_its_holder_is_in_a_transaction_under_it(connect) -> None:
    mine, other = await connect(), await connect()
    lease = await acquire(mine, "pilot-1", "shard-1", LONG)
    async with mine.transaction():
        await require(mine, lease)
        await other.execute("set lock_timeout = '50ms'")
        with pytest.raises(Exception, match="lock timeout"):
            await other.execute("update leases set until = clock_timestamp(), token = token + 1")
    await require(mine, lease)
