"""Writing a candidate to the workspace, all of it or nothing, and going back.

What each touched file held is a blob before the first of them is written. `ApplyBegun` is durable before
that, `ApplyEnded` once the files were written and passed their validation. What a kill leaves in between is
undone on reopening; a file that is neither as before nor as after was changed by somebody else, and is left.
Source: mindX spec §6.4 and behaviours 67 to 69.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace

from engine.domain.improvement import CampaignStatus, Component, ItemStatus
from engine.domain.mastermind import Application, Campaign, Candidate, Touched
from engine.domain.text import clean_line
from engine.journal import mastermind_events as me
from engine.journal.blobs import BlobStore
from engine.journal.errors import BlobError
from engine.mastermind.files import MODE, FileState, Places, declared, tree_hash
from engine.mastermind.parts import JobRefused
from engine.mastermind.state import Spine

Validate = Callable[[Campaign], Awaitable[tuple[str, ...]]]
"""What does not hold in the workspace with the candidate in it; empty when all does."""
Rates = Callable[[Component], Awaitable[tuple[int, int]]]
"""Failures and actions of a component among the newest ones."""


class MovedError(JobRefused):
    """A file is not as it was when the difference was shown; the operator has to look again."""


class Applier:
    """Changes the workspace's files, for the operator's own commands only; one change at a time."""

    def __init__(self, spine: Spine, places: Places, blobs: BlobStore, changed: Callable[[], None]) -> None:
        self._spine = spine
        self._places = places
        self._blobs = blobs
        self._changed = changed
        self._lock = asyncio.Lock()

    # -------------------------------------------------------------- applying

    async def apply(
        self, campaign: Campaign, candidate: Candidate, *, actor: str, validate: Validate, rates: Rates
    ) -> str:
        """Write a candidate's files; what failed its validation is taken back at once.

        Returns:
            What came of it, in a sentence; the campaign's state says whether it is applied.

        Raises:
            JobRefused: a file is not as it was when the difference was made, or may not be changed; nothing
                was written.
            JournalError: the journal refused; what was written is settled on reopening.
        """
        async with self._lock:
            application = await self._prepared(campaign, candidate)
            failures, actions = await rates(_component(campaign))
            application = replace(application, failures_before=failures, actions_before=actions)
            begun = me.ApplyBegun(campaign=campaign.id, application=application)
            await self._spine.write(begun, actor=actor)
            try:
                await asyncio.to_thread(self._put_all, campaign.id, application, application.after)
                wrong = await self._unlike(application.after)
            except (JobRefused, BlobError, OSError) as error:
                wrong = (str(error),)
            if wrong:
                return await self._taken_back(campaign.id, f"it could not be written: {'; '.join(wrong)}")
            self._changed()
            try:
                wrong = await validate(self._spine.state.campaigns[campaign.id])
            except BaseException:
                why = "its validation did not come to an end"
                await asyncio.shield(self._taken_back(campaign.id, why, CampaignStatus.NEEDS_OPERATOR))
                raise
            if wrong:
                return await self._taken_back(campaign.id, f"its validation failed: {'; '.join(wrong)}")
            tree = await self.tree(_component(campaign))
            self._spine.append(me.ApplyEnded(campaign=campaign.id, tree=tree), actor=actor)
            if campaign.item:
                done = f"{candidate.id} is applied"
                self._spine.append(
                    me.ItemMoved(item=campaign.item, status=ItemStatus.COMPLETED, message=done), actor=actor
                )
            await self._spine.commit()
        count = len(application.after)
        return f"{candidate.id} is applied: {count} files; coord_rollback {campaign.id} undoes it"

    async def _taken_back(self, name: str, why: str, status: CampaignStatus = CampaignStatus.FAILED) -> str:
        campaign = self._spine.state.campaigns[name]
        assert campaign.application is not None
        self._spine.append(me.RollbackBegun(campaign=name, reason=clean_line(why)))
        await self._spine.commit()
        foreign = await self._restore(campaign)
        tree = await self.tree(_component(campaign))
        said = f"{why}; {_restored(campaign, tree, foreign)}"
        self._spine.append(me.RolledBack(campaign=name, tree=tree, reason=clean_line(said), status=status))
        await self._spine.commit()
        return said

    async def _prepared(self, campaign: Campaign, candidate: Candidate) -> Application:
        """What is written, what is there now as blobs; checks that nothing moved since the difference."""
        component = _component(campaign)
        before: dict[str, Touched] = {}
        after: dict[str, Touched] = {}
        moved, made = [], dict[str, None]()
        for path, blob in sorted(candidate.files.items()):
            if not declared(path, component.paths):
                raise JobRefused(f"{candidate.id} touches {path}, which {component.id} does not declare")
            there = await asyncio.to_thread(self._places.read, path)
            if there.digest != candidate.before.get(path):
                moved.append(path)
                continue
            if there.content is not None:
                await self._blobs.put(there.content)
            before[path] = Touched(there.digest, there.mode)
            after[path] = Touched(blob, (there.mode or MODE) if blob is not None else 0)
            if blob is not None:
                await self._blobs.get(blob)
                made |= dict.fromkeys(self._places.missing_directories(path))
        if moved:
            raise MovedError(
                f"{', '.join(moved)} changed since the difference was made; it has to be made and looked at "
                f"again: campaign_resume {campaign.id}"
            )
        if not after:
            raise JobRefused(f"{candidate.id} changes nothing")
        tree = await self.tree(component)
        return Application(candidate.id, before, after, tuple(made), tree_before=tree)

    # -------------------------------------------------------------- going back

    def newest(self, wanted: str) -> Campaign:
        """The campaign that is to be rolled back: by id, or `last` for the newest applied one.

        Raises:
            JobRefused: there is none, or it is not applied.
        """
        campaigns = self._spine.state.campaigns
        applied = [one for one in campaigns.values() if one.status is CampaignStatus.APPLIED]
        if wanted in ("", "last"):
            if not applied:
                raise JobRefused("no campaign is applied, so there is nothing to roll back")
            return max(applied, key=lambda one: one.application.ended if one.application else "")
        campaign = campaigns.get(wanted)
        if campaign is None:
            known = ", ".join(one.id for one in applied) or "none"
            raise JobRefused(f"there is no campaign {clean_line(wanted, limit=40)!r}; applied: {known}")
        if campaign.status is not CampaignStatus.APPLIED:
            raise JobRefused(f"{campaign.id} is {campaign.status}; only an applied campaign is rolled back")
        return campaign

    async def roll_back(self, wanted: str, *, actor: str, reason: str = "") -> tuple[Campaign, str]:
        """Bring the files back that a campaign changed.

        Raises:
            JobRefused: files moved on since; the message names them and by what. Nothing was changed.
            JournalError: the journal refused; what was begun is settled on reopening.
        """
        async with self._lock:
            campaign = self.newest(wanted)
            assert campaign.application is not None
            if wrong := await self._unlike(campaign.application.after):
                raise JobRefused(f"{campaign.id} cannot be rolled back: {self._why_moved(campaign, wrong)}")
            said = clean_line(reason) or "the operator rolled it back"
            self._spine.append(me.RollbackBegun(campaign=campaign.id, reason=said), actor=actor)
            await self._spine.commit()
            foreign = await self._restore(campaign)
            tree = await self.tree(_component(campaign))
            told = f"{said}; {_restored(campaign, tree, foreign)}"
            self._spine.append(me.RolledBack(campaign=campaign.id, tree=tree, reason=told), actor=actor)
            for item in list(self._spine.state.items.values()):
                if item.campaign == campaign.id and item.status is ItemStatus.COMPLETED:
                    moved = me.ItemMoved(item=item.id, status=ItemStatus.ROLLED_BACK, message=said)
                    self._spine.append(moved, actor=actor)
            await self._spine.commit()
            return self._spine.state.campaigns[campaign.id], told

    def _why_moved(self, campaign: Campaign, wrong: Iterable[str]) -> str:
        said = []
        for path in wrong:
            later = [
                one.id
                for one in self._spine.state.campaigns.values()
                if one.status is CampaignStatus.APPLIED
                and one.application is not None
                and path in one.application.after
                and campaign.application is not None
                and one.application.begun > campaign.application.begun
            ]
            by = (
                f"by {', '.join(later)}, which is to be rolled back first"
                if later
                else "by hand or by an agent"
            )
            said.append(f"{path} was changed since, {by}")
        return "; ".join(said)

    # -------------------------------------------------------------- after a kill

    async def recover(self) -> None:
        """Undo what the last session left half done.

        Raises:
            JournalError: the journal refused.
        """
        for campaign in list(self._spine.state.campaigns.values()):
            application = campaign.application
            if application is None or (application.ended and not application.undoing):
                continue
            foreign = await self._restore(campaign)
            tree = await self.tree(_component(campaign))
            why = f"the session ended while its files were written; {_restored(campaign, tree, foreign)}"
            # What the operator asked to be rolled back is; anything else waits for them as it did.
            wanted = CampaignStatus.ROLLED_BACK if application.ended else CampaignStatus.NEEDS_OPERATOR
            said = me.RolledBack(campaign=campaign.id, tree=tree, reason=why, status=wanted)
            self._spine.append(said)
            await self._spine.commit()

    # -------------------------------------------------------------- files

    async def tree(self, component: Component) -> str:
        """The hash over a component's files as they are in the workspace."""
        return await asyncio.to_thread(self._tree, component)

    def _tree(self, component: Component) -> str:
        states: dict[str, FileState] = {}
        for path in component.paths:
            if self._places.at(path).is_dir():
                states |= {inside: self._places.read(inside) for inside in self._places.below(path)}
            else:
                states[path] = self._places.read(path)
        return tree_hash(states)

    def _put_all(self, campaign: str, application: Application, files: Mapping[str, Touched]) -> None:
        """Write all files, those that are removed last."""
        for path in sorted(files, key=lambda one: (files[one].blob is None, one)):
            self._places.put(path, self._state(files[path]), campaign)

    def _state(self, touched: Touched) -> FileState:
        content = self._blobs.read(touched.blob) if touched.blob is not None else None
        return FileState(content, touched.mode)

    async def _unlike(self, files: Mapping[str, Touched]) -> tuple[str, ...]:
        """The paths that are not as said."""
        return await asyncio.to_thread(
            lambda: tuple(path for path, touched in sorted(files.items()) if not self._is(path, touched))
        )

    def _is(self, path: str, touched: Touched) -> bool:
        try:
            there = self._places.read(path)
        except JobRefused:
            return False
        return there.digest == touched.blob and (touched.blob is None or there.mode == touched.mode)

    async def _restore(self, campaign: Campaign) -> tuple[str, ...]:
        """Bring every file back that is as the candidate has it; gives those that are somebody else's."""
        foreign = await asyncio.to_thread(self._restore_now, campaign)
        self._changed()
        return foreign

    def _restore_now(self, campaign: Campaign) -> tuple[str, ...]:
        application = campaign.application
        assert application is not None
        foreign = []
        for path in sorted(application.before, key=lambda one: (application.before[one].blob is None, one)):
            self._places.clear(path, campaign.id)
            if self._is(path, application.before[path]):
                continue
            if not self._is(path, application.after[path]):
                foreign.append(path)
                continue
            self._places.put(path, self._state(application.before[path]), campaign.id)
        for directory in reversed(application.made):
            self._places.remove_directory(directory)
        return tuple(foreign)


def _component(campaign: Campaign) -> Component:
    assert campaign.component is not None
    return campaign.component


def _restored(campaign: Campaign, tree: str, foreign: tuple[str, ...]) -> str:
    """How the files stand after going back, in words."""
    assert campaign.application is not None
    if foreign:
        return f"{', '.join(foreign)} had been changed by somebody else and was left as it is"
    if tree == campaign.application.tree_before:
        return f"the files are as before (tree {tree[:12]})"
    return "every file that it touched is as before; others of the component have changed since"
