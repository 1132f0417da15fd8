"""How fast a journal in PostgreSQL takes events, beside plain asyncpg batches of the same rows.

Ours is the whole way of an event: building it, its hash, a task that waits for it to be durable, and the
event handed back with its place. The baseline gets finished rows and only inserts them with `executemany`,
one transaction for each batch, into the same tables of the same server, which is started for it with the
settings it comes with. Run it with `python -m tests.benchmarks.postgres`; `make test-extras` does.
"""

from __future__ import annotations

import asyncio
import json
import platform
import statistics
import time
from itertools import count
from pathlib import Path
from typing import Any

from engine.core.ports import SystemClock
from engine.core.store.port import Row
from engine.core.store.postgres import open_postgres
from engine.core.store.postgres_schema import Address, connect, read_address
from engine.core.store.schema import COLUMNS
from tests.benchmarks.journal import Chain, _transactions
from tests.postgres_server import PostgresServer

ROUNDS = 5
_INSERT = f"insert into events({COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"


async def _ours(address: Address, appenders: int, batch: int, commits: int) -> float:
    store = await open_postgres(address, SystemClock())

    async def appender(chain: Chain) -> None:
        for _ in range(commits):
            await store.commit([chain.next() for _ in range(batch)])

    try:
        begin = time.perf_counter()
        await asyncio.gather(*(appender(Chain(f"agent-{n}")) for n in range(appenders)))
        return appenders * batch * commits / (time.perf_counter() - begin)
    finally:
        await store.close()


async def _plain(address: Address, transactions: list[list[Row]]) -> float:
    await (await open_postgres(address, SystemClock())).close()  # makes the tables
    connection = await connect(address)
    try:
        begin = time.perf_counter()
        for rows in transactions:
            await connection.executemany(_INSERT, rows)
        return sum(map(len, transactions)) / (time.perf_counter() - begin)
    finally:
        await connection.close()


def _row(server: PostgresServer, name: str, appenders: int, batch: int, commits: int) -> dict[str, Any]:
    transactions = _transactions(appenders, batch, commits)
    schemas = count()

    def fresh() -> Address:
        return read_address(f"{server.url}&schema=bench_{appenders}_{batch}_{next(schemas)}", Path.cwd())

    ours, plain = [], []
    for _ in range(ROUNDS):
        ours.append(asyncio.run(_ours(fresh(), appenders, batch, commits)))
        plain.append(asyncio.run(_plain(fresh(), transactions)))
    our, base = statistics.median(ours), statistics.median(plain)
    return {
        "name": name,
        "ours": round(our),
        "baseline": round(base),
        "ratio": round(our / base, 3),
        "unit": "events/s",
        "n": appenders * batch * commits,
        "machine": f"{platform.system()} {platform.machine()}, {server.sql('show server_version')}",
    }


def rows() -> list[dict[str, Any]]:
    """Both ways of appending; a ratio of 1 means as fast as plain asyncpg, and 0.5 half as fast."""
    server = PostgresServer()
    try:
        server.start()
        return [
            _row(server, "PostgreSQL, batches of 100", 1, 100, 100),
            _row(server, "PostgreSQL, 16 appenders, one event each", 16, 1, 300),
        ]
    finally:
        server.remove()


if __name__ == "__main__":
    for found in rows():
        print(json.dumps(found))
