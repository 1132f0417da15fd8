"""Leases in PostgreSQL: who may act for a name, until when, with a number that grows with each new holder.

A holder that was cut off does not know that its lease ran out. So whatever it changes is given its *fencing
token*, and is refused where a newer one was seen. All times are the database's: clocks of machines differ.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from engine.core.journal import JournalError

TABLE = """
create table if not exists leases(
    name text collate "C" primary key,
    holder text not null,
    token bigint not null,
    until timestamptz not null
)
"""
_TAKE = """
insert into leases as held values($1, $2, 1, clock_timestamp() + $3 * interval '1 second')
on conflict(name) do update set
    token = held.token + case when held.holder = $2 and held.until > clock_timestamp() then 0 else 1 end,
    holder = $2, until = excluded.until
where held.until <= clock_timestamp() or held.holder = $2
returning token
"""
_RENEW = (
    "update leases set until = clock_timestamp() + $3 * interval '1 second' "
    "where name = $1 and token = $2 and until > clock_timestamp() returning 1"
)
_RELEASE = (
    "update leases set until = clock_timestamp() where name = $1 and token = $2 and until > clock_timestamp()"
)
_CHECK = "select 1 from leases where name = $1 and token = $2 and until > clock_timestamp() for share"


class LeaseLost(JournalError):  # noqa: N818 - as `JournalLocked` is named
    """The lease ran out or another has it: nothing may be done under it any more."""


class Lease(NamedTuple):
    """The right to act for a name."""

    name: str
    holder: str
    token: int
    """Larger than that of whoever had it before."""


async def acquire(connection: Any, name: str, holder: str, seconds: float) -> Lease | None:
    """Take a lease, or renew one's own; None where another holds it.

    Args:
        connection: to a database that has `TABLE`.
        name: of what, such as an agent.
        holder: who; two that have the same name count as the same one.
        seconds: for how long, by the database's clock.
    """
    if (token := await connection.fetchval(_TAKE, name, holder, float(seconds))) is None:
        return None
    return Lease(name, holder, int(token))


async def renew(connection: Any, lease: Lease, seconds: float) -> bool:
    """Hold a lease for so many seconds from now on; whether it was still held."""
    return bool(await connection.fetchval(_RENEW, lease.name, lease.token, float(seconds)))


async def release(connection: Any, lease: Lease) -> None:
    """Let another take it at once; one that is lost already stays as it is."""
    await connection.execute(_RELEASE, lease.name, lease.token)


async def require(connection: Any, lease: Lease) -> None:
    """Go on only while a lease is held; within a transaction nobody can take it before that ends.

    Raises:
        LeaseLost: it is not held any more.
    """
    if await connection.fetchval(_CHECK, lease.name, lease.token) is None:
        raise LeaseLost(
            f"{lease.holder} does not hold {lease.name} any more (token {lease.token}): it ran out or "
            "another has it. Nothing was done; take it anew."
        )
