"""Writes a candidate to the workspace, all of it or nothing, and goes back.

What each touched file held is a blob before the first of them is written. `ApplyBegun` is durable before
that, `ApplyEnded` once the files were written and passed their validation. What a kill leaves in between is
undone on reopening; a file that is neither as before nor as after was changed by somebody else, and is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from engine.core import campaigns as me
from engine.core.improvement import (
    Application,
    Campaign,
    CampaignStatus,
    Candidate,
    Component,
    FileVersion,
    ItemStatus,
)
from engine.core.journal import BlobError
from engine.core.reasons import Reason
from engine.core.store.blobs import BlobStore
from engine.core.text import clean_line
from engine.core.trust import FolderTrust
from engine.improve.backlog import Backlog
from engine.improve.campaigns.files import MODE, FileState, WorkspacePaths, is_declared, tree_hash
from engine.improve.ports import JobRefused
from engine.improve.state import EventStream

Validate = Callable[[Campaign], Awaitable[tuple[str, ...]]]
"""What does not hold in the workspace with the candidate in it; empty when all does."""


class FileMovedError(JobRefused):
    """A file is not as it was when the difference was shown; the operator has to look again."""


@dataclass(slots=True)
class Applier:
    """Changes the workspace's files, for the operator's own commands only; one change at a time."""

    _stream: EventStream
    _backlog: Backlog
    _places: WorkspacePaths
    _blobs: BlobStore
    _changed: Callable[[], None]
    _taken_up: Callable[[Component], Awaitable[None]]
    """Told which component has other files now."""
    _trust: FolderTrust | None = None
    """Told what was written for the operator, so that it is trusted as they had it."""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    # -------------------------------------------------------------- applying

    async def apply(self, campaign: Campaign, candidate: Candidate, *, actor: str, validate: Validate) -> str:
        """Write a candidate's files; what failed its validation is taken back at once.

        Returns:
            The result in a sentence; the campaign's state says whether it is applied.

        Raises:
            JobRefused: a file is not as it was when the difference was made, or may not be changed; nothing
                was written.
            JournalError: the journal refused; what was written is settled on reopening.
        """
        async with self._lock:
            application = await self._prepared(campaign, candidate)
            begun = me.ApplyBegun(campaign=campaign.id, application=application)
            await self._stream.write(begun, actor=actor)
            try:
                await asyncio.to_thread(self._put_all, campaign.id, application.after)
                wrong = await self._unlike(application.after)
            except (JobRefused, BlobError, OSError) as error:
                wrong = (str(error),)
            if wrong:
                why = Reason("campaign.unwritten", problems=tuple(wrong))
                return await self._taken_back(campaign.id, why)
            self._changed()
            try:
                wrong = await validate(self._stream.state.campaigns[campaign.id])
            except BaseException:
                why = Reason("campaign.unvalidated")
                await asyncio.shield(self._taken_back(campaign.id, why, CampaignStatus.NEEDS_OPERATOR))
                raise
            if wrong:
                return await self._taken_back(campaign.id, Reason("campaign.invalid", problems=tuple(wrong)))
            tree = await self.tree(campaign.component)
            self._stream.append(me.ApplyEnded(campaign=campaign.id, tree=tree), actor=actor)
            if campaign.item:
                done = Reason("item.applied", candidate=candidate.id)
                self._backlog.move(campaign.item, ItemStatus.COMPLETED, done, actor=actor)
            await self._stream.commit()
            await self._note_written(campaign.component, application.after)
        count = len(application.after)
        return f"{candidate.id} is applied: {count} files; coord_rollback {campaign.id} undoes it"

    async def _taken_back(
        self, name: str, why: Reason, status: CampaignStatus = CampaignStatus.FAILED
    ) -> str:
        await self._stream.write(me.RollbackBegun(campaign=name, reason=why))
        message, _ = await self._brought_back(self._stream.state.campaigns[name], why, status)
        await self._stream.commit()
        return message

    async def _brought_back(
        self, campaign: Campaign, why: Reason, status: CampaignStatus, actor: str = "system"
    ) -> tuple[Reason, tuple[str, ...]]:
        """Restore the files and record it; gives what was recorded, and the files that stay."""
        assert campaign.application is not None
        foreign = await asyncio.to_thread(self._restore, campaign.id, campaign.application)
        self._changed()
        tree = await self.tree(campaign.component)
        restored = Reason("campaign.changed-since")
        if foreign:
            restored = Reason("campaign.left", paths=foreign)
        elif tree == campaign.application.tree_before:
            restored = Reason("campaign.as-before", tree=tree[:12])
        message = Reason("campaign.back", why=why, restored=restored)
        event = me.RolledBack(campaign=campaign.id, tree=tree, reason=message, status=status)
        self._stream.append(event, actor=actor)
        return message, foreign

    async def _prepared(self, campaign: Campaign, candidate: Candidate) -> Application:
        """What is written, what is there now as blobs; checks that nothing moved since the difference."""
        component = campaign.component
        before: dict[str, FileVersion] = {}
        after: dict[str, FileVersion] = {}
        moved, made = [], dict[str, None]()
        for path, blob in sorted(candidate.files.items()):
            if not is_declared(path, component.paths):
                raise JobRefused(f"{candidate.id} touches {path}, which {component.id} does not declare")
            there = await asyncio.to_thread(self._places.read, path)
            if there.digest != candidate.before.get(path):
                moved.append(path)
                continue
            if there.content is not None:
                await self._blobs.put(there.content)
            before[path] = FileVersion(there.digest, there.mode)
            after[path] = FileVersion(blob, (there.mode or MODE) if blob is not None else 0)
            if blob is not None:
                await self._blobs.get(blob)
                made |= dict.fromkeys(self._places.missing_directories(path))
        if moved:
            raise FileMovedError(
                f"{', '.join(moved)} changed since the difference was made; it has to be made and looked at "
                f"again: campaign_resume {campaign.id}"
            )
        if not after:
            raise JobRefused(f"{candidate.id} changes nothing")
        tree = await self.tree(component)
        return Application(candidate.id, before, after, tuple(made), tree_before=tree)

    # -------------------------------------------------------------- going back

    def newest(self, name: str) -> Campaign:
        """The campaign that is to be rolled back: by id, or `last` for the newest applied one.

        Raises:
            JobRefused: there is none, or it is not applied.
        """
        campaigns = self._stream.state.campaigns
        applied = [campaign for campaign in campaigns.values() if campaign.status is CampaignStatus.APPLIED]
        if name in ("", "last"):
            if not applied:
                raise JobRefused("no campaign is applied, so there is nothing to roll back")
            return max(
                applied, key=lambda campaign: campaign.application.ended if campaign.application else ""
            )
        campaign = campaigns.get(name)
        if campaign is None:
            known = ", ".join(campaign.id for campaign in applied) or "none"
            raise JobRefused(f"there is no campaign {clean_line(name, limit=40)!r}; applied: {known}")
        if campaign.status is not CampaignStatus.APPLIED:
            raise JobRefused(f"{campaign.id} is {campaign.status}; only an applied campaign is rolled back")
        return campaign

    async def roll_back(self, name: str, *, actor: str) -> tuple[Campaign, str]:
        """Bring the files back that a campaign changed.

        Raises:
            JobRefused: files moved on since; the message names them and by what. Nothing was changed.
            JournalError: the journal refused; what was begun is settled on reopening.
        """
        async with self._lock:
            campaign = self.newest(name)
            assert campaign.application is not None
            if wrong := await self._unlike(campaign.application.after):
                raise JobRefused(f"{campaign.id} cannot be rolled back: {self._why_moved(campaign, wrong)}")
            why = Reason("campaign.rolled-back")
            await self._stream.write(me.RollbackBegun(campaign=campaign.id, reason=why), actor=actor)
            message, foreign = await self._brought_back(campaign, why, CampaignStatus.ROLLED_BACK, actor)
            for item in list(self._stream.state.items.values()):
                if item.campaign == campaign.id and item.status is ItemStatus.COMPLETED:
                    self._backlog.move(item.id, ItemStatus.ROLLED_BACK, why, actor=actor)
            await self._stream.commit()
            before = campaign.application.before.items()
            back = {path: file for path, file in before if path not in foreign}
            await self._note_written(campaign.component, back)
            return self._stream.state.campaigns[campaign.id], message

    def _why_moved(self, campaign: Campaign, wrong: Iterable[str]) -> str:
        assert campaign.application is not None
        campaigns, reasons = self._stream.state.campaigns.values(), []
        later = [
            (other.id, other.application) for other in campaigns if other.status is CampaignStatus.APPLIED
        ]
        for path in wrong:
            names = ", ".join(
                name
                for name, application in later
                if application
                and path in application.after
                and application.begun > campaign.application.begun
            )
            by = f"by {names}, which is to be rolled back first" if names else "by hand or by an agent"
            reasons.append(f"{path} was changed since, {by}")
        return "; ".join(reasons)

    # -------------------------------------------------------------- after a kill

    async def recover(self) -> None:
        """Undo what the last session left half done.

        Raises:
            JournalError: the journal refused.
        """
        for campaign in list(self._stream.state.campaigns.values()):
            application = campaign.application
            if application is None or (application.ended and not application.undoing):
                continue
            # What the operator asked to be rolled back is; anything else waits for them as it did.
            target = CampaignStatus.ROLLED_BACK if application.ended else CampaignStatus.NEEDS_OPERATOR
            await self._brought_back(campaign, Reason("campaign.session-ended"), target)
            await self._stream.commit()

    # -------------------------------------------------------------- files

    async def _note_written(self, component: Component, files: Mapping[str, FileVersion]) -> None:
        """Have the files trusted as the operator had them written, and taken up."""
        if self._trust is not None:
            contents = {path: self._state(written).content for path, written in files.items()}
            await asyncio.to_thread(self._trust.wrote, contents)
        await self._taken_up(component)

    async def tree(self, component: Component) -> str:
        """The hash over a component's files as they are in the workspace."""

        def hashed() -> str:
            paths = [inside for path in component.paths for inside in self._places.below(path)]
            return tree_hash({path: self._places.read(path) for path in paths})

        return await asyncio.to_thread(hashed)

    def _put_all(self, campaign: str, files: Mapping[str, FileVersion]) -> None:
        for path in _removed_last(files):
            self._places.put(path, self._state(files[path]), campaign)

    def _state(self, touched: FileVersion) -> FileState:
        content = self._blobs.read(touched.blob) if touched.blob is not None else None
        return FileState(content, touched.mode)

    async def _unlike(self, files: Mapping[str, FileVersion]) -> tuple[str, ...]:
        """The paths that are not as said."""
        return await asyncio.to_thread(
            lambda: tuple(path for path, touched in sorted(files.items()) if not self._is(path, touched))
        )

    def _is(self, path: str, touched: FileVersion) -> bool:
        try:
            there = self._places.read(path)
        except JobRefused:
            return False
        return there.digest == touched.blob and (touched.blob is None or there.mode == touched.mode)

    def _restore(self, campaign: str, application: Application) -> tuple[str, ...]:
        """Bring every file back that is as the candidate has it; gives those that are somebody else's."""
        foreign = []
        for path in _removed_last(application.before):
            self._places.clear(path, campaign)
            if self._is(path, application.after[path]):
                self._places.put(path, self._state(application.before[path]), campaign)
            elif not self._is(path, application.before[path]):
                foreign.append(path)
        for directory in reversed(application.made):
            self._places.remove_directory(directory)
        return tuple(foreign)


def _removed_last(files: Mapping[str, FileVersion]) -> list[str]:
    return sorted(files, key=lambda path: (files[path].blob is None, path))
