"""A shard's files in PostgreSQL, so that an agent that moves to another machine finds them there.

The sandbox lies on the disk of the shard's machine. A snapshot of it, of this module's own beside those that
the engine takes, is kept in the shard's schema whenever something has changed, a few seconds later at most;
a shard that is drained keeps its last one behind its last action. What a machine that died had written since
the last one is on its disk alone.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from engine.api.workspace_engine import SANDBOX_DIRECTORY
from engine.core.store.leases import Lease, require
from engine.sandbox.files import make_root
from engine.sandbox.policy import SandboxPolicy
from engine.sandbox.snapshots.entry import SnapshotInfo
from engine.sandbox.snapshots.store import SnapshotStore
from engine.sandbox.snapshots.walk import SnapshotPolicy
from engine.sandbox.snapshots.workspace import Snapshots
from engine.value import replace

TABLE = "create table if not exists files(digest text primary key, content bytea not null)"
DIRECTORY = "shared-files"
"""Where the snapshot is made, below the workspace."""
NEWEST = "fleet.files"
"""In the shard's `meta`: id of the newest snapshot, and the digest of its times."""


class SharedFiles:
    """The files of one shard.

    Args:
        workspace: its directory on this machine.
    """

    def __init__(self, workspace: Path) -> None:
        self._root = workspace / SANDBOX_DIRECTORY
        self._store = SnapshotStore(workspace / DIRECTORY)
        policy = replace(SnapshotPolicy.for_sandbox(SandboxPolicy()), snapshots=1)
        self._snapshots = Snapshots(self._root, workspace / DIRECTORY, policy)
        self._token = workspace / DIRECTORY / "token"
        self._saved = ""
        self._known: set[str] = set()
        """Digests of objects that are in the database."""

    async def bring(self, connection: Any, lease: Lease) -> bool:
        """Have the files as they were kept last, unless this machine had the shard last; whether they came.

        Raises:
            SnapshotError: they cannot be written.
        """
        await asyncio.to_thread(make_root, self._root)
        newest = await connection.fetchval("select value from meta where key = $1", NEWEST)
        here = await asyncio.to_thread(self._last_token)
        if newest and here != lease.token - 1:
            snapshot, times = newest.split()
            rows = await connection.fetch("select content from files")
            await asyncio.to_thread(self._take_in, [bytes(content) for (content,) in rows], snapshot, times)
            await self._snapshots.restore(snapshot)
        self._token.parent.mkdir(exist_ok=True)
        self._token.write_text(str(lease.token))
        return bool(newest) and here != lease.token - 1

    def _last_token(self) -> int:
        return int(self._token.read_text()) if self._token.exists() else -1

    def _take_in(self, contents: list[bytes], snapshot: str, times: str) -> None:
        with self._store.writing():
            for content in contents:
                self._store.objects.put(content)
            self._store.objects.commit()
            self._store.keep(SnapshotInfo(snapshot, "of the fleet", 0, 0, 0, 0, 0), times)

    async def save(self, connection: Any, lease: Lease) -> None:
        """Keep the files as they are now, where they have changed.

        Raises:
            LeaseLost: another machine has the shard.
            SnapshotError: they cannot be read.
        """
        info = await self._snapshots.take(label="of the fleet")
        if info.id == self._saved:
            return
        await self._snapshots.collect()
        times, digests = await asyncio.to_thread(self._held, info.id)
        async with connection.transaction():
            await require(connection, lease)
            new = ((digest, self._store.objects.read(digest)) for digest in digests - self._known)
            sql = "insert into files values($1, $2) on conflict do nothing"
            await connection.executemany(sql, new)
            await connection.execute("delete from files where digest <> all($1::text[])", list(digests))
            await connection.execute(
                "insert into meta values($1, $2) on conflict(key) do update set value = $2",
                NEWEST,
                f"{info.id} {times}",
            )
        self._saved, self._known = info.id, digests

    def _held(self, snapshot: str) -> tuple[str, set[str]]:
        digests = {digest for digest, _ in self._store.objects.all()}
        return self._store.record(snapshot).times, digests
