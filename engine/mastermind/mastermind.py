"""Mastermind: the one that carries out what an operator asks of the system itself.

`Engine` opens it when it is first needed. Commands come in by `carry_out`, everything that happens is an
event of the stream `workspace@mastermind`, and `state` is the fold of it. Source: mindX spec §5, §6.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Self

from engine.domain.budgets import BudgetKind, amount_text
from engine.domain.commands import Receipt
from engine.domain.improvement import CampaignStatus, Component, ItemStatus
from engine.domain.mastermind import Campaign, JobRecord, MastermindState
from engine.domain.mastermind_commands import (
    AddItem,
    ApplyCandidate,
    CancelJob,
    DeclineCampaign,
    ForMastermind,
    RollBack,
    SettleItem,
    StartJob,
)
from engine.domain.text import clean_line
from engine.journal import mastermind_events as me
from engine.journal.errors import JournalError
from engine.mastermind.applying import Applier
from engine.mastermind.asking import asking_of
from engine.mastermind.backlog import Backlog, Entered
from engine.mastermind.campaign import Parts
from engine.mastermind.coordinator import Coordinator
from engine.mastermind.files import Places
from engine.mastermind.improving import Improver
from engine.mastermind.jobs import Jobs
from engine.mastermind.parts import (
    Asked,
    Auditor,
    Comparer,
    House,
    JobRefused,
    Proposer,
    SuiteMaker,
    Worker,
)
from engine.mastermind.previewing import preview
from engine.mastermind.state import Spine
from engine.mastermind.telling import status, told
from engine.mastermind.watching import Watch

MODELS = (BudgetKind.USD, BudgetKind.TOKENS, BudgetKind.CALLS)
"""What of a budget calls of models take."""
SCRATCH = "campaigns"
"""Where candidates are trees while they are judged, in the data directory."""
ROOMS = ("judge", "code", "search")
"""Parts that are plugged in where they are there: `engine.mastermind.ROOM.wiring.register(mastermind)`."""


class Mastermind:
    """Open it with `open`, and always `close` it."""

    def __init__(self, house: House, spine: Spine) -> None:
        self.house = house
        self.spine = spine
        data = house.workspace / ".pilothouse"
        settings = house.mastermind_settings
        self._scratch = data / SCRATCH
        self.parts = Parts([], [], [], None)
        self.places = Places(house.workspace, house.root)
        self.jobs = Jobs(spine, data)
        self.backlog = Backlog(spine, settings, house.clock.now)
        self.applier = Applier(spine, self.places, house.blobs, house.files_changed)
        self._watch = Watch(spine, house.store, settings)
        self._watching: dict[str, asyncio.Task[None]] = {}
        self.improver = Improver(
            spine,
            self.parts,
            self.backlog,
            self.applier,
            self._watch,
            self.places,
            house.blobs,
            settings,
            self._scratch,
            house.draw_seed,
            self._begin_watch,
        )
        ask = asking_of(house.model, house.model_name) if house.model is not None else None
        self.coordinator = Coordinator(
            spine, self.parts, self.backlog, self.improver, self.places, house.clock, settings, ask
        )
        self._workers: dict[str, tuple[Worker, bool]] = {}
        self.register("evolve", self.improver.evolve, heavy=True)
        self.register("coord_improve", self.improver.improve, heavy=True)
        self.register("campaign_resume", self.improver.resume, heavy=True)
        self.register("coord_shadow", self.improver.shadow, heavy=True)
        self.register("coord_apply", self.improver.apply)
        self.register("coord_analyze", self.coordinator.analyze, heavy=True)
        self.register("coord_process_backlog", self.coordinator.process, heavy=True)
        self.register("coord_query", self.coordinator.query)

    @classmethod
    async def open(cls, house: House) -> Self:
        """Read what there is; jobs found running are interrupted, changes half written undone.

        Raises:
            JournalError: the stream cannot be read or written.
        """
        mastermind = cls(house, await Spine.open(house.store, house.clock))
        for room in ROOMS:
            if find_spec(f"engine.mastermind.{room}") and find_spec(f"engine.mastermind.{room}.wiring"):
                wiring = await asyncio.to_thread(import_module, f"engine.mastermind.{room}.wiring")
                wiring.register(mastermind)
        await mastermind._settle()
        return mastermind

    async def _settle(self) -> None:
        """Bring what the last session left under way to where it can go on."""
        await self.applier.recover()
        await self.jobs.interrupt_old()
        for campaign in list(self.state.campaigns.values()):
            if not campaign.status.over and campaign.status is not CampaignStatus.NEEDS_OPERATOR:
                said = f"the session ended in it; campaign_resume {campaign.id} goes on"
                stage = me.CampaignStaged(campaign=campaign.id, status=CampaignStatus.INTERRUPTED, text=said)
                self.spine.append(stage)
        for item in list(self.state.items.values()):
            of = self.state.campaigns.get(item.campaign)
            waits = of is not None and of.status is CampaignStatus.NEEDS_OPERATOR
            if item.status is ItemStatus.IN_PROGRESS and not waits:
                self.backlog.move(item.id, ItemStatus.PENDING, "its campaign was cut off")
        await self.spine.commit()
        await asyncio.to_thread(shutil.rmtree, self._scratch, ignore_errors=True)
        for campaign in self._watch.watched(self.house.clock.now()):
            event = await self.house.store.get(campaign.stages[-1].event)
            self._begin_watch(campaign.id, event.seq if event is not None else 0)

    async def close(self) -> None:
        """End every job and what it started."""
        await self.jobs.close()
        for task in self._watching.values():
            task.cancel()
        await asyncio.gather(*self._watching.values(), return_exceptions=True)
        await self.spine.close()

    # -------------------------------------------------------------- what there is

    @property
    def state(self) -> MastermindState:
        """Everything that it knows; `copy` it where it is to stay as it is."""
        return self.spine.state

    @property
    def verbs(self) -> Sequence[str]:
        """The verbs that `StartJob` takes."""
        return tuple(sorted(self._workers))

    def register(self, verb: str, worker: Worker, *, heavy: bool = False) -> None:
        """Let a verb be done by a part: as a job, which is heavy when it takes much of the machine."""
        self._workers[verb] = (worker, heavy)

    def plug(
        self,
        *,
        auditor: Auditor | None = None,
        proposer: Proposer | None = None,
        suite: SuiteMaker | None = None,
        comparer: Comparer | None = None,
    ) -> None:
        """Take a part in; a comparer takes the place of the one before."""
        self.parts.auditors = [*self.parts.auditors, *filter(None, [auditor])]
        self.parts.proposers = [*self.parts.proposers, *filter(None, [proposer])]
        self.parts.suites = [*self.parts.suites, *filter(None, [suite])]
        self.parts.comparer = comparer or self.parts.comparer

    async def components(self) -> tuple[Component, ...]:
        """Everything that can be improved, by id."""
        return tuple((await self.improver.components()).values())

    async def wait(self, job: str) -> JobRecord:
        """Wait until a job is over.

        Raises:
            KeyError: there is no such job.
        """
        return await self.jobs.wait(job)

    async def diff(self, candidate: str) -> str:
        """The difference of a candidate to the workspace as it was, as text that is not cleaned.

        Raises:
            KeyError: there is no such candidate.
            BlobError: its text is gone.
        """
        campaign = self.state.campaigns[candidate.partition(".")[0]]
        found = campaign.candidate(candidate)
        if found is None:
            raise KeyError(candidate)
        return (await self.house.blobs.get(found.diff)).decode("utf-8", "replace") if found.diff else ""

    def status(self) -> dict[str, Any]:
        """What it did and why, as JSON (`mastermind_status`)."""
        return status(self.state, self.backlog.listed)

    def told(self) -> str:
        """What it did and why, for a person."""
        return told(self.state)

    async def preview(self, command: ForMastermind) -> Mapping[str, Any]:
        """What a command would do, as JSON; nothing is changed.

        Keys: `does` (a sentence), and where they apply `wrong` (why it would be refused), `component`,
        `rule`, `paths`, `sets` (words by split), `choices` (ids where several are meant), `cost`,
        `forecast`, `left` (of the workspace's budget), `asks`, `reversible`.
        """
        said = await preview(command, self.improver, self.backlog, self.applier, self.state, self.verbs)
        if said.get("cost") and (left := self._left()):
            said["left"] = left
        return said

    def _left(self) -> str:
        """What is left of the workspace's budget for models, in words; empty where it has none."""
        standing = self.house.budgets("")[-1]
        said = [
            f"{amount_text(line.kind, round(line.left, 6))} of {amount_text(line.kind, line.limit)}"
            for line in standing.lines
            if line.limit is not None and line.left is not None and line.kind in MODELS
        ]
        return f"{', '.join(said)} left; a call that could break that is not made" if said else ""

    # -------------------------------------------------------------- commands

    async def carry_out(self, command: ForMastermind, actor: str) -> Receipt:
        """Carry out a command; what the receipt says is durable.

        For what goes on as a job the receipt comes at once, with the job's id in `data["job"]`.

        Raises:
            JournalError: the journal refused.
        """
        try:
            receipt = await self._carried_out(command, actor)
        except JobRefused as error:
            return Receipt(ok=False, message=clean_line(str(error)))
        await self.spine.commit()
        return receipt

    async def _carried_out(self, command: ForMastermind, actor: str) -> Receipt:
        match command:
            case StartJob():
                return await self._start(command, actor)
            case CancelJob():
                return await self._cancel(command, actor)
            case AddItem():
                return self._add(command, actor)
            case SettleItem():
                item = self.backlog.settle(
                    command.item, approve=command.approve, reason=command.reason, actor=actor
                )
                how = "approved" if command.approve else "rejected"
                return Receipt(ok=True, message=f"{item.id} is {how}", data={"item": item.id})
            case ApplyCandidate():
                campaign = self.improver.campaign(command.campaign)
                self.improver.waiting(campaign, command.diff)
                asked = StartJob(
                    verb="coord_apply", argument=command.campaign, options={"diff": command.diff}
                )
                return await self._start(asked, actor)
            case DeclineCampaign():
                return self._decline(command, actor)
            case RollBack():
                rolled, said = await self.applier.roll_back(command.campaign, actor=actor)
                data = {"campaign": rolled.id, "status": str(rolled.status)}
                return Receipt(ok=True, message=f"{rolled.id}: {said}", data=data)
        return Receipt(ok=False, message=f"{command.do} is not known here")

    async def _start(self, command: StartJob, actor: str) -> Receipt:
        if command.verb not in self._workers:
            known = ", ".join(self.verbs)
            raise JobRefused(f"there is no job {command.verb}; jobs: {known}")
        worker, heavy = self._workers[command.verb]
        said = command.model_dump(exclude={"do", "agent", "verb", "argument", "options"})
        asked = Asked("", command.argument, {**command.options, **said}, actor)
        job = await self.jobs.start(command.verb, asked, worker, heavy=heavy)
        waits = ", when there is room for it" if heavy and self.jobs.crowded(job.id) else ""
        message = f"{job.id} begins{waits}: {command.verb} {clean_line(command.argument, limit=80)}".rstrip()
        return Receipt(ok=True, message=message, event=job.event, data={"job": job.id})

    async def _cancel(self, command: CancelJob, actor: str) -> Receipt:
        if not self.jobs.cancel(command.job, by=actor):
            job = self.state.jobs.get(command.job)
            if job is not None:
                raise JobRefused(f"{job.id} is over already: {job.status}")
            running = ", ".join(one.id for one in self.state.jobs.values() if not one.status.over) or "none"
            raise JobRefused(f"there is no job {clean_line(command.job, limit=40)!r}; under way: {running}")
        job = await self.jobs.wait(command.job)
        return Receipt(ok=True, message=f"{job.id} is {job.status}", data={"job": job.id})

    def _add(self, command: AddItem, actor: str) -> Receipt:
        entered: Entered = self.backlog.add(
            command.target,
            command.suggestion,
            priority=command.priority,
            concern=command.concern,
            source=actor,
            critical=command.critical or self.backlog.critical(command.target),
            evidence=command.evidence,
            actor=actor,
        )
        item = entered.item
        words = {
            "added": f"{item.id} is in the backlog, {item.status}",
            "merged": f"{item.id} says the same and stays, with priority {item.priority}",
            "known": f"{item.id} said the same a short while ago and is {item.status}; nothing was added",
        }
        data = {"item": item.id, "how": entered.how}
        return Receipt(ok=entered.how != "known", message=words[entered.how], data=data)

    def _decline(self, command: DeclineCampaign, actor: str) -> Receipt:
        campaign = self.improver.campaign(command.campaign)
        candidate = self.improver.waiting(campaign)
        why = clean_line(command.reason) or "the operator said no"
        stage = me.CampaignStaged(campaign=campaign.id, status=CampaignStatus.DECLINED, text=why)
        self.spine.append(stage, actor=actor)
        if campaign.item:
            self.spine.append(
                me.ItemMoved(item=campaign.item, status=ItemStatus.REJECTED, message=why, decided=True),
                actor=actor,
            )
        return Receipt(ok=True, message=f"{candidate} is declined", data={"campaign": campaign.id})

    # -------------------------------------------------------------- watching

    def _begin_watch(self, campaign: str, since: int) -> None:
        task = asyncio.create_task(self._watched(campaign, since), name=f"watch {campaign}")
        self._watching[campaign] = task
        task.add_done_callback(lambda _done: self._watching.pop(campaign, None))

    async def _watched(self, campaign: str, since: int) -> None:
        with suppress(JournalError):
            await self._watch.follow(campaign, since)

    @property
    def needs(self) -> tuple[Campaign, ...]:
        """The campaigns that need the operator: a candidate waits, or what was applied does worse."""
        return tuple(
            one
            for one in self.state.campaigns.values()
            if one.status is CampaignStatus.NEEDS_OPERATOR
            or (one.status is CampaignStatus.APPLIED and one.told)
        )
