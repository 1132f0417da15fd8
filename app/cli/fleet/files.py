"""A shard's files in PostgreSQL, so that an agent that moves to another machine finds them there.

The sandbox, and what forks have of their own, lie on the disk of the shard's machine. A snapshot of each, of
this module's own beside those that the engine takes, is kept in the shard's schema whenever something has
changed, a few seconds later at most; a shard that is drained keeps its last ones behind its last action. What
a machine that died had written since is on its disk alone.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from engine.core.store.leases import Lease, require
from engine.sandbox.files import FORKS_DIRECTORY, SANDBOX_DIRECTORY, make_root
from engine.sandbox.policy import SandboxPolicy
from engine.sandbox.snapshots.entry import SnapshotInfo
from engine.sandbox.snapshots.store import SnapshotStore
from engine.sandbox.snapshots.walk import SnapshotPolicy
from engine.sandbox.snapshots.workspace import Snapshots
from engine.value import replace

TABLE = "create table if not exists files(digest text primary key, content bytea not null)"
DIRECTORY = "shared-files"
"""Where the snapshots are made, below the workspace."""
NEWEST = "fleet.files"
"""In the shard's `meta`, of a fork with `/` and its name: id of the newest snapshot, digest of its times."""


class SharedFiles:
    """The files of one shard.

    Args:
        workspace: its directory on this machine.
    """

    def __init__(self, workspace: Path) -> None:
        self._root, self._forks = workspace / SANDBOX_DIRECTORY, workspace / FORKS_DIRECTORY
        self._store = SnapshotStore(workspace / DIRECTORY)
        policy = replace(SnapshotPolicy.for_sandbox(SandboxPolicy()), snapshots=1)
        self._trees = {NEWEST: Snapshots(self._root, workspace / DIRECTORY, policy)}
        """The snapshots of each tree of files, by their place in `meta`."""
        self._token = workspace / DIRECTORY / "token"
        self._saved: dict[str, str] = {}
        self._known: set[str] = set()
        """Digests of objects that are in the database."""

    async def bring(self, connection: Any, lease: Lease) -> bool:
        """Have the files as they were kept last, unless this machine had the shard last; whether they came.

        Raises:
            SnapshotError: they cannot be written.
        """
        await asyncio.to_thread(make_root, self._root)
        newest = await connection.fetch("select key, value from meta where starts_with(key, $1)", NEWEST)
        comes = bool(newest) and await asyncio.to_thread(self._last_token) != lease.token - 1
        if comes:
            rows = await connection.fetch("select content from files")
            kept = {key: value.split() for key, value in newest}
            await asyncio.to_thread(self._take_in, [bytes(content) for (content,) in rows], kept)
            for key, (snapshot, _) in kept.items():
                await self._tree(key).restore(snapshot)
        self._token.parent.mkdir(exist_ok=True)
        self._token.write_text(str(lease.token))
        return comes

    def _tree(self, key: str) -> Snapshots:
        """The snapshots of a tree of files, which has a place on this machine."""
        if key not in self._trees:
            name = key.rpartition("/")[2]
            make_root(self._forks / name)
            self._trees[key] = self._trees[NEWEST].beside(self._forks / name, name)
        return self._trees[key]

    def _keys(self) -> list[str]:
        forks = [place.name for place in self._forks.glob("*/") if not place.is_symlink()]
        return [NEWEST, *(f"{NEWEST}/{name}" for name in forks)]

    def _last_token(self) -> int:
        return int(self._token.read_text()) if self._token.exists() else -1

    def _take_in(self, contents: list[bytes], kept: dict[str, list[str]]) -> None:
        with self._store.writing():
            for content in contents:
                self._store.objects.put(content)
            self._store.objects.commit()
            for snapshot, times in kept.values():
                self._store.keep(SnapshotInfo(snapshot, "of the fleet", 0, 0, 0, 0, 0), times)

    async def save(self, connection: Any, lease: Lease) -> None:
        """Keep the files as they are now, where they have changed.

        Raises:
            LeaseLost: another machine has the shard.
            SnapshotError: they cannot be read.
        """
        keys = await asyncio.to_thread(self._keys)
        newest = {key: (await self._tree(key).take(label="of the fleet")).id for key in keys}
        if newest == self._saved:
            return
        await self._trees[NEWEST].collect(keep=newest.values())
        digests = {digest for digest, _ in await asyncio.to_thread(self._store.objects.all)}
        async with connection.transaction():
            await require(connection, lease)
            new = ((digest, self._store.objects.read(digest)) for digest in digests - self._known)
            sql = "insert into files values($1, $2) on conflict do nothing"
            await connection.executemany(sql, new)
            await connection.execute("delete from files where digest <> all($1::text[])", list(digests))
            sql = "insert into meta values($1, $2) on conflict(key) do update set value = $2"
            kept = [
                (key, f"{snapshot} {self._store.record(snapshot).times}") for key, snapshot in newest.items()
            ]
            await connection.executemany(sql, kept)
        self._saved, self._known = newest, digests
