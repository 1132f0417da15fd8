"""Blobs in PostgreSQL, beside the journal that names them, so that each machine that reads it has them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from engine.core.journal import BlobWriteError, JournalError
from engine.core.ports import Clock
from engine.core.store.postgres import BlockingLink
from engine.core.store.postgres_schema import Address, asyncpg_errors, check_version, missing, sentence

T = TypeVar("T")


class PostgresBlobs:
    """Keeps and fetches blobs, for threads that may wait."""

    def __init__(self, address: Address, clock: Clock) -> None:
        self._address = address
        self._link = BlockingLink(address, clock, self._begin)

    def keep(self, digest: str, content: bytes) -> None:
        """Keep a blob durably.

        Raises:
            BlobWriteError: the server refused or cannot be reached.
        """
        sql = "insert into blobs values($1, $2) on conflict do nothing"
        try:
            self._run(lambda connection: connection.execute(sql, digest, content))
        except JournalError as error:
            raise BlobWriteError(f"A blob of {len(content)} bytes could not be written. {error}") from error

    def fetch(self, digest: str) -> bytes | None:
        """A blob; None where there is none.

        Raises:
            JournalError: the server cannot be reached.
        """
        sql = "select content from blobs where digest = $1"
        content: bytes | None = self._run(lambda connection: connection.fetchval(sql, digest))
        return content

    def digests(self) -> list[str]:
        """The name of each blob there is.

        Raises:
            JournalError: the server cannot be reached.
        """
        rows = self._run(lambda connection: connection.fetch("select digest from blobs order by digest"))
        return [str(digest) for (digest,) in rows]

    def _run(self, work: Callable[[Any], Awaitable[T]]) -> T:
        try:
            return self._link.use(work)
        except asyncpg_errors() as error:
            raise JournalError(sentence(error, self._address)) from error

    async def _begin(self, connection: Any) -> None:
        if not await check_version(connection, self._address):
            raise missing(self._address)
