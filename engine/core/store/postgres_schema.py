"""Where a journal in PostgreSQL is, its tables, and what goes wrong there in sentences."""

from __future__ import annotations

import hashlib
import re
import socket
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from engine.core.journal import JournalError, JournalMissing, JournalTooNew
from engine.core.store import leases
from engine.core.store.leases import Lease

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_SECRET = ("password", "passfile", "sslpassword", "sslkey")

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "create table meta(key text primary key, value text not null)",
        # One row: the place of the last event. Who writes holds it until the commit, so places have no gap
        # and are seen in their order.
        "create table journal(last_seq bigint not null)",
        "insert into journal values(0)",
        """create table events(
            seq bigint primary key,
            stream text collate "C" not null,
            version bigint not null,
            at text not null,
            tick bigint not null,
            actor text not null,
            causes text not null,
            kind text collate "C" not null,
            body text not null,
            hash text not null,
            unique(stream, version)
        )""",
        "create index events_by_kind on events(kind, seq)",
        """create table snapshots(
            stream text collate "C" not null,
            version bigint not null,
            format bigint not null,
            state text not null,
            primary key(stream, version)
        )""",
    ),
    ("create table blobs(digest text primary key, content bytea not null)",),
    (leases.TABLE,),
)
"""Statements that lead from each version of the tables to the next; the first makes them."""


class Address(NamedTuple):
    """A PostgreSQL database, and the schema in it that has one journal."""

    dsn: str
    """What is connected to; it may hold a password, so it is never shown."""
    schema: str
    place: str
    """The same to be shown, without secrets."""
    lease: Lease | None = None
    """Under which alone the journal is written; None where whoever holds the lock may."""

    @property
    def lock(self) -> int:
        """The number of the advisory lock of who writes."""
        return int.from_bytes(hashlib.sha256(f"pilothouse {self.schema}".encode()).digest()[:8], signed=True)


def own_schema(workspace: Path) -> str:
    """The schema of a workspace that was given none: named after its directory, with a hash of its path."""
    name = re.sub(r"[^a-z0-9]+", "_", workspace.resolve().name.lower())[:40].strip("_")
    return f"pilothouse_{name}_{hashlib.sha256(str(workspace.resolve()).encode()).hexdigest()[:8]}"


def read_address(url: str, workspace: Path | None) -> Address:
    """Read `postgresql://USER@HOST/DATABASE?schema=NAME`; `&lease=NAME:TOKEN` binds writing to a lease.

    Raises:
        JournalError: it is no such URL; the message does not repeat it, as it may hold a password.
    """
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError as error:
        raise JournalError(f"The journal's URL cannot be read ({error}). {_SHAPE}") from error
    if parts.scheme not in ("postgresql", "postgres") or not parts.path.strip("/"):
        raise JournalError(f"The journal's URL names no database of PostgreSQL. {_SHAPE}")
    query = dict(parse_qsl(parts.query))
    lease, _, token = query.pop("lease", "").rpartition(":")
    schema = query.pop("schema", "") or (own_schema(workspace) if workspace is not None else "")
    if not _NAME.fullmatch(schema):
        raise JournalError(
            f"'{schema}' is no name of a schema for the journal: end its URL with ?schema=NAME, of small "
            "letters, digits and '_'."
        )
    user = f"{quote(parts.username)}@" if parts.username else ""
    shown = {**{key: value for key, value in query.items() if key not in _SECRET}, "schema": schema}
    place = f"postgresql://{user}{parts.hostname or ''}{port}{parts.path}?{urlencode(shown, safe='/')}"
    held = Lease(lease, "this engine", int(token)) if lease and token.isdecimal() else None
    return Address(urlunsplit(parts._replace(query=urlencode(query))), schema, place, held)


_SHAPE = "Write it as postgresql://USER@HOST/DATABASE; a password belongs into PGPASSWORD or ~/.pgpass."


async def connect(address: Address) -> Any:
    """A connection that finds the journal's tables.

    Raises:
        JournalError: the server or the database cannot be reached; the message says what to do.
    """
    try:
        import asyncpg
    except ModuleNotFoundError as error:
        raise JournalError(
            "A journal in PostgreSQL needs asyncpg, which is not installed: "
            "pip install 'pilothouse[postgres]'"
        ) from error
    settings = {"search_path": address.schema, "application_name": "pilothouse"}
    try:
        return await asyncpg.connect(address.dsn, server_settings=settings, timeout=10)
    except asyncpg_errors(OSError, TimeoutError, ValueError) as error:
        raise JournalError(sentence(error, address)) from error


def asyncpg_errors(*others: type[Exception]) -> tuple[type[Exception], ...]:
    """What asyncpg raises, and others."""
    import asyncpg

    # The last is what it raises where the server ended a connection at rest.
    return (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, *others)


def lost(error: Exception) -> bool:
    """Whether an error says that the connection is gone, and not that a statement is wrong."""
    import asyncpg

    code = str(getattr(error, "sqlstate", None) or "")
    refused = isinstance(error, asyncpg.PostgresError) and not code.startswith(("08", "57P"))
    return not refused and not isinstance(error, ValueError)


_ADVICE = {
    "53100": "the disk of the database is full: make room there, then try again",
    "53300": "the server takes no more connections: raise max_connections there, or end some",
    "42501": "this user has no right to do that there: the owner of the database grants it with GRANT CREATE "
    "ON DATABASE, or GRANT USAGE ON SCHEMA and GRANT ALL ON ALL TABLES IN SCHEMA",
    "3D000": "there is no such database: make it with createdb",
    "25006": "that server only reads, as a standby does: name the one that writes",
    "28": "the server does not let this user in: check the name in the URL, and PGPASSWORD or ~/.pgpass",
}


def sentence(error: Exception, address: Address) -> str:
    """What went wrong, where, and what to do."""
    code = str(getattr(error, "sqlstate", None) or "")
    advice = _ADVICE.get(code) or _ADVICE.get(code[:2])
    if advice is None and lost(error):
        advice = "no PostgreSQL answers there: check the host, the port, and that it runs"
    text = " ".join(str(error).split()) or type(error).__name__
    return f"{address.place}: {advice} ({text})." if advice else f"{address.place}: {text}."


async def version_of(connection: Any) -> int:
    """The version of the tables; 0 where there are none."""
    if await connection.fetchval("select to_regclass('meta')") is None:
        return 0
    return int(await connection.fetchval("select value from meta where key = 'schema_version'") or 0)


async def check_version(connection: Any, address: Address) -> int:
    """Refuse tables that this code does not know; their version.

    Raises:
        JournalTooNew: a newer Pilothouse made them.
    """
    version = await version_of(connection)
    if version > len(MIGRATIONS):
        raise JournalTooNew(address.place, version, len(MIGRATIONS))
    return version


async def prepare(connection: Any, address: Address, now: str, *, create: bool) -> None:
    """Bring the tables to this version in one transaction, or make them.

    Raises:
        JournalMissing: there are none, and none were to be made.
        JournalTooNew: a newer Pilothouse made them.
    """
    version = await check_version(connection, address)
    if version == len(MIGRATIONS):
        return
    if not version and not create:
        raise missing(address)
    if (encoding := await connection.fetchval("show server_encoding")) != "UTF8":
        raise JournalError(f"{address.place}: the database keeps texts as {encoding}; make one with UTF8.")
    async with connection.transaction():
        await connection.execute("select pg_advisory_xact_lock($1)", address.lock - 1)
        version = await check_version(connection, address)  # another may have been quicker
        if await connection.fetchval("select to_regnamespace($1)", address.schema) is None:
            await connection.execute(f"create schema {address.schema}")
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                await connection.execute(statement)
        if not version:
            await connection.execute("insert into meta values('created', $1)", now)
        await connection.execute(
            "insert into meta values('schema_version', $1) on conflict(key) do update set value = $1",
            str(len(MIGRATIONS)),
        )


def missing(address: Address) -> JournalMissing:
    """There is no journal."""
    return JournalMissing(f"There is no journal at {address.place}: start an agent with it first.")


def writer_name(pid: int, now: str) -> str:
    """Who writes, as others read it."""
    return f"{pid} {socket.gethostname()} {now}"
