"""What the shards of a fleet share: a schema in PostgreSQL that says where each is, and what may be spent."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from engine.core.journal import JournalError
from engine.core.store.leases import Lease
from engine.core.store.postgres_schema import Address, asyncpg_errors, connect, read_address, sentence

SCHEME, SCHEMA = "fleet", "fleet"
"""The scheme of a fleet's address, and the schema of one that its address does not name."""
ENGINE = "engine"
"""The name of the lease under which alone a shard's journal is written; it is in the shard's own schema."""
KINDS = ("usd", "tokens", "calls", "actions")
"""What a budget over all shards counts."""
_TABLES = (
    "create table if not exists shards(number int primary key, node text not null default '', "
    "workspace text not null default '', pid int not null default 0, token bigint not null default 0, "
    "state text not null default 'starting', since timestamptz not null default clock_timestamp())",
    "create table if not exists budgets(kind text primary key, amount double precision not null)",
    "create table if not exists grants(kind text not null, shard int not null, "
    "amount double precision not null, starves boolean not null, primary key(kind, shard))",
)


class ShardRow(NamedTuple):
    """Where a shard is, as it said last."""

    number: int
    node: str
    """The name of the machine."""
    workspace: str
    """Its directory there."""
    pid: int
    """Of its engine; 0 while there is none."""
    token: int
    """Of its lease; each engine of the shard has a larger one than those before it."""
    state: str
    """`starting`, `up`, `draining` or `down`."""
    since: str

    @property
    def name(self) -> str:
        """As it is shown."""
        return f"shard-{self.number}"


def shard_of(agent: str, shards: int) -> int:
    """The number of the shard on which an agent lives, by rendezvous hashing: that with the highest hash.

    Any program finds it without asking, and with one shard more only the agents move that go to this one.
    """

    def weight(number: int) -> bytes:
        return hashlib.sha256(f"{number} {agent}".encode()).digest()

    return max(range(1, shards + 1), key=weight)


def journal_url(url: str) -> str:
    """A fleet's address as the URL of its database."""
    parts = urlsplit(url)
    if parts.scheme == SCHEME:
        url = "postgresql" + url[len(SCHEME) :]
    query = dict(parse_qsl(parts.query))
    query.setdefault("schema", SCHEMA)
    return urlunsplit(urlsplit(url)._replace(query=urlencode(query, safe="/")))


def fleet_address(url: str) -> str:
    """How `attach` names the fleet: without any password."""
    return SCHEME + read_address(journal_url(url), None).place.removeprefix("postgresql")


def shard_url(url: str, number: int, lease: Lease | None = None) -> str:
    """The URL of a shard's journal, which has a schema of its own."""
    parts = urlsplit(journal_url(url))
    query = dict(parse_qsl(parts.query))
    query["schema"] = f"{query['schema']}_{number}"
    if lease is not None:
        query["lease"] = f"{lease.name}:{lease.token}"
    return urlunsplit(parts._replace(query=urlencode(query, safe="/:")))


@asynccontextmanager
async def fleet_database(url: str, *, create: bool = False) -> AsyncIterator[Any]:
    """A connection to a fleet's schema.

    Args:
        url: its address.
        create: make the tables where they are missing.

    Raises:
        JournalError: it cannot be reached, or there is no fleet; the message says what to do.
    """
    address = read_address(journal_url(url), None)
    connection = await connect(address)
    try:
        if create:
            await connection.execute(f"create schema if not exists {address.schema}")
            for statement in _TABLES:
                await connection.execute(statement)
        elif await connection.fetchval("select to_regclass('shards')") is None:
            raise JournalError(f"There is no fleet at {address.place}: pilothouse fleet up makes one.")
        yield connection
    except asyncpg_errors(OSError, TimeoutError) as error:
        raise JournalError(sentence(error, address)) from error
    finally:
        connection.terminate()


async def shard_rows(connection: Any) -> list[ShardRow]:
    """All shards, by number."""
    sql = "select number, node, workspace, pid, token, state, since::text from shards order by number"
    return [ShardRow(*row) for row in await connection.fetch(sql)]


async def plan_shards(connection: Any, wanted: int | None) -> int:
    """Note how many shards a new fleet has; the number that holds.

    Raises:
        JournalError: the fleet has another number already.
    """
    count = int(await connection.fetchval("select count(*) from shards"))
    if count and wanted not in (None, count):
        raise JournalError(
            f"This fleet has {count} shards, and each agent lives where this number puts it: say --shards "
            f"{count}, or begin another fleet with &schema=NAME in the URL."
        )
    for number in range(1, (count or wanted or 1) + 1):
        await connection.execute("insert into shards(number) values($1) on conflict do nothing", number)
    return count or wanted or 1


async def note_shard(connection: Any, schema: str, row: ShardRow) -> None:
    """Say where a shard is; one whose lease is newer has said it already, and stays."""
    await connection.execute(
        f"update {schema}.shards set node = $2, workspace = $3, pid = $4, token = $5, state = $6, "
        "since = clock_timestamp() where number = $1 and token <= $5",
        *row[:6],
    )


# ------------------------------------------------------------------ budgets


async def set_budget(connection: Any, kind: str, amount: float) -> None:
    """Say what all shards together may take.

    Raises:
        JournalError: more is granted already.
    """
    async with connection.transaction():
        await connection.execute(
            "insert into budgets values($1, 0) on conflict(kind) do update set kind = excluded.kind", kind
        )
        if (granted := await _granted(connection, "grants", kind)) > amount:
            raise JournalError(
                f"Shards hold {granted:g} {kind} already: a budget of {amount:g} is too small."
            )
        await connection.execute("update budgets set amount = $2 where kind = $1", kind, amount)


async def _granted(connection: Any, table: str, kind: str) -> float:
    sql = f"select coalesce(sum(amount), 0) from {table} where kind = $1"
    return float(await connection.fetchval(sql, kind))


class Grant(NamedTuple):
    """What a shard may take of a budget, and what else there is."""

    own: float
    free: float
    starving: bool
    """Whether another shard waits for some, and nothing is free."""


async def change_grant(
    connection: Any, schema: str, kind: str, shard: int, more: float, *, starves: bool = False
) -> Grant:
    """Grant a shard more of a budget, as far as it is there, or take some back.

    Who changes a grant holds the budget's row, so all grants together are never more than the budget.
    """
    async with connection.transaction():
        sql = f"select amount from {schema}.budgets where kind = $1 for update"
        amount = float(await connection.fetchval(sql, kind))
        free = max(amount - await _granted(connection, f"{schema}.grants", kind), 0.0)
        more = min(more, free)
        sql = (
            f"insert into {schema}.grants as held values($1, $2, $3, $4) on conflict(kind, shard) "
            "do update set amount = held.amount + $3, starves = $4 returning amount"
        )
        own = float(await connection.fetchval(sql, kind, shard, more, starves and free == more))
        sql = f"select exists(select from {schema}.grants where kind = $1 and shard <> $2 and starves)"
        return Grant(own, free - more, bool(await connection.fetchval(sql, kind, shard)))


async def budgets(connection: Any, schema: str) -> dict[str, float]:
    """What all shards together may take, by kind."""
    return {
        str(kind): float(amount) for kind, amount in await connection.fetch(f"select * from {schema}.budgets")
    }


def schema_of(url: str) -> str:
    """The schema that all shards of a fleet share."""
    return read_address(journal_url(url), None).schema


def address_of(url: str, number: int) -> Address:
    """The database of a shard's journal."""
    return read_address(shard_url(url, number), None)
