"""Saving the workspace before an action that may change it, so that the action can be undone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol

from engine.core import events as ev
from engine.core.journal import JournalError
from engine.core.recovery import ActiveAction
from engine.core.sandbox import ReturnedShell
from engine.sandbox.snapshots.entry import Changes, SnapshotError, SnapshotInfo
from engine.sandbox.snapshots.workspace import Snapshots

TIDY_TAKES = 256
"""Snapshots after which old ones are cleared away, over all sessions."""
TIDY_NEW = 4
"""Of so many that stayed the last time there is one new one by then, as each of them is looked at."""
TIDY_SHARE = 16
"""Part of the store's budget after whose growth they are as well."""
KEPT_ACTIONS = (200, 20)
"""Newest actions of each agent whose snapshots stay even over the budget; fewer where that is too much."""

PATHS = 100
"""Files of one action that are told at most."""
NOT_SAVED = "the workspace was not saved before"

Recent = Callable[[int], Awaitable[Collection[str]]]
"""Gives the snapshots of that many newest actions of each agent."""


class SnapshotRule(StrEnum):
    """Whether the workspace is saved before each action that may change it."""

    REQUIRED = "required"
    """An action of a plan does not run where it cannot be saved, unless the operator says so."""
    OFF = "off"


class NothingSaved:
    """Nothing was saved, and nothing was to be."""


Saved = ev.SnapshotTaken | ev.SnapshotFailed | NothingSaved
"""The result of saving the workspace."""


class Saver(Protocol):
    """Who saves the workspace."""

    async def save(self, agent: str, action: ActiveAction) -> Saved:
        """Save it before an action; ends soon when cancelled, and then nothing of it counts."""

    async def changes(self, agent: str, shell: ReturnedShell) -> Changes | str:
        """What happened to files since the operator took the shell, or why that is not known."""


class NoSaver:
    """Takes no snapshots."""

    async def save(self, agent: str, action: ActiveAction) -> Saved:
        """Nothing."""
        return NothingSaved()

    async def changes(self, agent: str, shell: ReturnedShell) -> Changes | str:
        """Not known."""
        return NOT_SAVED


@dataclass(eq=False, slots=True)
class _Shared:
    """A snapshot that all have who asked before it was begun."""

    label: str
    actions: list[str] = field(default_factory=list)
    """Before which it is taken: `pilot:a3`."""
    waiting: int = 0
    taking: asyncio.Task[tuple[SnapshotInfo, str, Changes | None]] | None = None


class WorkspaceSaver:
    """Takes snapshots, and clears old ones away in the background.

    One is taken at a time. Those who ask while one is under way share the next, so that many agents at work
    on one root cost no more walks over it than a few.

    Args:
        snapshots: of the sandbox root; shared by all agents.
        recent: see `Recent`; these snapshots are cleared away last.
    """

    def __init__(self, snapshots: Snapshots, recent: Recent) -> None:
        self.snapshots, self._recent = snapshots, recent
        self._tidying: asyncio.Task[None] | None = None
        self._added = self._taken = self._kept = 0
        """Bytes and snapshots since old ones were cleared away, and how many stayed then."""
        self._last = ("", "")
        """The snapshot taken last, and the action before which that was; empty where that were several."""
        self._next: _Shared | None = None
        """The snapshot that has not been begun."""
        self._one = asyncio.Lock()
        self._rests_until = 0.0
        """Where many share, half of the time is left to the loop, and more come together for the next."""
        self._begun: set[asyncio.Task[Any]] = set()
        self.trouble = ""
        """Why old snapshots could not be cleared away the last time."""

    async def save(self, agent: str, action: ActiveAction) -> Saved:
        """Have a snapshot taken; a workspace that has not changed gives the same one again."""
        name = f"{agent}:{action.id}"
        shared = self._joined(name, f"{agent} {action.id} {action.command}")
        assert shared.taking is not None
        try:
            info, since, changes = await asyncio.shield(shared.taking)
        except SnapshotError as error:
            return ev.SnapshotFailed(action=action.id, reason=str(error))
        finally:
            self._leave(shared)
        first = shared.actions[0] == name
        return ev.SnapshotTaken(
            action=action.id,
            snapshot=info.id,
            files=info.files,
            bytes=info.bytes,
            new_bytes=info.new_bytes if first else 0,
            skipped=len(info.skipped) + info.skipped_more,
            duration_ms=round(info.duration_ms),
            since=since if first else "",
            written=tuple(sorted({*changes.added, *changes.changed})[:PATHS]) if first and changes else (),
            removed=changes.removed[:PATHS] if first and changes else (),
        )

    def _joined(self, action: str, label: str) -> _Shared:
        """The next snapshot, which is to be taken before this action as well."""
        shared = self._next
        if shared is None:
            shared = self._next = _Shared(label)
            shared.taking = asyncio.create_task(self._take(shared), name="saving the workspace")
            self._begun.add(shared.taking)
            shared.taking.add_done_callback(self._begun.discard)
        shared.actions.append(action)
        shared.waiting += 1
        return shared

    def _leave(self, shared: _Shared) -> None:
        """One waits no longer; a snapshot that nobody waits for is cut off."""
        shared.waiting -= 1
        if shared.waiting or shared.taking is None or shared.taking.done():
            return
        shared.taking.cancel()
        if self._next is shared:
            self._next = None

    async def _take(self, shared: _Shared) -> tuple[SnapshotInfo, str, Changes | None]:
        async with self._one:
            loop = asyncio.get_running_loop()
            await asyncio.sleep(max(0.0, self._rests_until - loop.time()))
            self._next = None
            more = len(shared.actions) - 1
            info = await self.snapshots.take(
                label=f"{shared.label} and {more} more" if more else shared.label
            )
            if more:
                self._rests_until = loop.time() + info.duration_ms / 1000
            self._count(info)
            since, changes = await self._since(info.id)
            self._last = (info.id, "" if more else shared.actions[0])
        return info, since, changes

    async def _since(self, snapshot: str) -> tuple[str, Changes | None]:
        """The action that changed files since the snapshot before this one, and how."""
        before, since = self._last
        if not since or before == snapshot:
            return "", None
        try:
            return since, self._foreign(await self.snapshots.diff(before, snapshot))
        except SnapshotError:  # the one before was cleared away: what changed is not known
            return "", None

    def _foreign(self, changes: Changes) -> Changes:
        """Without what was made for programs when the first one ran."""
        own = self.snapshots.policy.cache_paths
        return replace(changes, added=tuple(path for path in changes.added if path not in own))

    async def changes(self, agent: str, shell: ReturnedShell) -> Changes | str:
        """The difference to the snapshot before the shell, by another one."""
        if not shell.snapshot:
            return NOT_SAVED
        try:
            now = await self.snapshots.take(label=f"{agent} after {shell.action}")
            self._count(now)
            changes = await self.snapshots.diff(shell.snapshot, now.id)
        except SnapshotError as error:
            return str(error)
        return self._foreign(changes)

    def note_other_changes(self) -> None:
        """Files were changed by what is no action: it is not told as that of the last one."""
        self._last = ("", "")

    def _count(self, info: SnapshotInfo) -> None:
        self._added += info.new_bytes
        self._taken += 1
        many = info.number % TIDY_TAKES == 0 and self._taken * TIDY_NEW >= self._kept
        if many or self._added > self.snapshots.policy.store_bytes // TIDY_SHARE:
            self.tidy()

    def tidy(self) -> None:
        """Begin to clear old snapshots away, unless that is under way."""
        if self._tidying is None or self._tidying.done():
            self._added = self._taken = 0
            self._tidying = asyncio.create_task(self._tidy(), name="clearing old snapshots away")

    async def _tidy(self) -> None:
        try:
            for actions in KEPT_ACTIONS:
                cleared = await self.snapshots.collect(keep=await self._recent(actions))
                self._kept = cleared.kept
                if cleared.kept_bytes <= self.snapshots.policy.store_bytes:
                    break
            self.trouble = ""
        except (SnapshotError, JournalError) as error:
            self.trouble = f"old snapshots were not cleared away: {error}"

    async def close(self) -> None:
        """End what runs in the background; the store is whole whenever that happens."""
        going_on = {*self._begun, *([self._tidying] if self._tidying is not None else [])}
        for task in going_on:
            task.cancel()
        await asyncio.gather(*going_on, return_exceptions=True)
