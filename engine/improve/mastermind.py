"""Mastermind: carries out what an operator asks of the system itself.

`Engine` opens it when it is first needed. Commands come in by `carry_out`, everything that happens is an
event of the stream `workspace@mastermind`, and `state` is the fold of it. `preview_command` says what a
command would do and changes nothing.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Self

from engine.agent.settings import CONFIGURABLE
from engine.core import campaigns as me
from engine.core.agents import ConfigureAgent
from engine.core.budgets import BudgetKind, amount_text
from engine.core.campaigns import (
    AddItem,
    ApplyCandidate,
    CancelJob,
    DeclineCampaign,
    ForMastermind,
    RollBack,
    SettleItem,
    StartJob,
)
from engine.core.command import NOT_TOLD, Receipt
from engine.core.improvement import (
    CampaignStatus,
    Component,
    ComponentKind,
    ItemStatus,
    JobRecord,
    MastermindState,
)
from engine.core.reasons import Reason
from engine.core.store.port import DATA_DIRECTORY
from engine.core.text import clean_line
from engine.improve.agent_building import build_agent
from engine.improve.agent_creation import AgentService
from engine.improve.backlog import Backlog, BacklogEntry, find_item
from engine.improve.campaigns.applier import Applier
from engine.improve.campaigns.files import WorkspacePaths
from engine.improve.campaigns.parts import CampaignParts
from engine.improve.campaigns.report import estimate_campaign
from engine.improve.campaigns.runner import CampaignRunner
from engine.improve.code.plugin import PythonProjects
from engine.improve.coordinator import Coordinator
from engine.improve.deployment import DeployJob
from engine.improve.jobs import Jobs
from engine.improve.judge.judge import Judge
from engine.improve.ports import JobRefused, JobRequest, MastermindHost, Worker
from engine.improve.search.model_proposals import ModelProposer
from engine.improve.search.settings import AGENT_PREFIX, read_config
from engine.improve.search.suites import SearchedComponents
from engine.improve.search.trial_suite import tried_for
from engine.improve.state import EventStream
from engine.models.choice import NO_MODEL
from engine.sandbox.policy import SandboxPolicy

MODELS = (BudgetKind.USD, BudgetKind.TOKENS, BudgetKind.CALLS)
"""What of a budget calls of models take."""
SCRATCH = "campaigns"
"""Where candidates are trees while they are judged, in the data directory."""
HELD_OUT = "held_out"
"""Tests that no candidate sees, by project, in the data directory."""
CAMPAIGNS = ("evolve", "coord_improve")


class Mastermind:
    """Open it with `open`, and always `close` it."""

    def __init__(self, host: MastermindHost, stream: EventStream) -> None:
        self.host = host
        self.stream = stream
        settings = host.mastermind_settings
        self.parts = parts = self._made_parts()
        self.jobs = Jobs(stream, host.workspace / DATA_DIRECTORY)
        self.backlog = Backlog(stream, settings, host.clock.now)
        self.applier = Applier(
            stream, self.backlog, parts.places, host.blobs, host.files_changed, self._taken_up, host.trust
        )
        self.service = AgentService(host, stream)
        self.improver = CampaignRunner(parts, self.backlog, self.applier, settings, host.draw_seed)
        coordinator = Coordinator(parts, self.backlog, self.improver, host.clock, settings)
        heavy: dict[str, Worker] = {
            "evolve": self.improver.evolve,
            "coord_improve": self.improver.improve,
            "campaign_resume": self.improver.resume,
            "coord_shadow": self.improver.shadow,
            "coord_analyze": coordinator.analyze,
            "coord_process_backlog": coordinator.process,
        }
        light: dict[str, Worker] = {
            "coord_apply": self.improver.apply,
            "agent_build": partial(build_agent, host),
            "deploy": DeployJob(host, self.service).deploy,
        }
        self._workers = {verb: (worker, True) for verb, worker in heavy.items()}
        self._workers |= {verb: (worker, False) for verb, worker in light.items()}

    def _made_parts(self) -> CampaignParts:
        host, data = self.host, self.host.workspace / DATA_DIRECTORY

        def policy() -> SandboxPolicy:
            return host.sandbox().policy

        both = (PythonProjects(host.workspace, policy, data / HELD_OUT), SearchedComponents(host))
        model = [ModelProposer(host.model, host.model_name)] if host.model is not None else []
        judge, places = Judge(data / "judge", policy), WorkspacePaths(host.workspace, host.root)
        return CampaignParts(
            both, (*both, *model), both, judge, self.stream, places, host.blobs, data / SCRATCH
        )

    async def _taken_up(self, component: Component) -> None:
        """Let a living agent have what its specification says now; it counts from its next decision on."""
        agent = component.id.removeprefix(AGENT_PREFIX)
        if component.kind is not ComponentKind.AGENT or agent not in self.host.agents:
            return
        (first,) = await self.host.store.read(agent, 1, 1)
        event = json.loads(first.body)
        created = {"type": event["agent_type"], "meta": event["config"]["meta"]}
        with suppress(OSError, ValueError):
            text = await asyncio.to_thread(tried_for(component, created).text, self.host.workspace, "")
            config = read_config(text, agent, created)
            settings = {name: dict(config.get(name, {})) for name in CONFIGURABLE}
            await self.host.submit(ConfigureAgent(agent=agent, settings=settings))

    @classmethod
    async def open(cls, host: MastermindHost) -> Self:
        """Read the stream; jobs that were running are interrupted, changes half written undone.

        Raises:
            JournalError: the stream cannot be read or written.
        """
        mastermind = cls(host, await EventStream.open(host.store, host.clock))
        await mastermind._settle()
        return mastermind

    async def _settle(self) -> None:
        """Bring what the last session left under way to where it can continue."""
        await self.applier.recover()
        await self.jobs.interrupt_old()
        for campaign in list(self.state.campaigns.values()):
            if not campaign.status.over and campaign.status is not CampaignStatus.NEEDS_OPERATOR:
                text = f"the session ended in it; campaign_resume {campaign.id} resumes it"
                status = CampaignStatus.INTERRUPTED
                self.stream.append(me.CampaignStaged(campaign=campaign.id, status=status, text=text))
        for item in list(self.state.items.values()):
            of = self.state.campaigns.get(item.campaign)
            waits = of is not None and of.status is CampaignStatus.NEEDS_OPERATOR
            if item.status is ItemStatus.IN_PROGRESS and not waits:
                self.backlog.move(item.id, ItemStatus.PENDING, Reason("item.cut-off"))
        await self.stream.commit()
        await asyncio.to_thread(shutil.rmtree, self.parts.scratch, ignore_errors=True)

    async def close(self) -> None:
        """End every job and what it started."""
        await self.jobs.close()
        await self.stream.close()

    @property
    def state(self) -> MastermindState:
        """Everything that it knows; `copy` it where it is to stay as it is."""
        return self.stream.state

    @property
    def verbs(self) -> Sequence[str]:
        """The verbs that `StartJob` takes."""
        return tuple(sorted(self._workers))

    def register(self, verb: str, worker: Worker, *, heavy: bool = False) -> None:
        """Let a verb be done by a part: as a job, which is heavy when it takes much of the machine."""
        self._workers[verb] = (worker, heavy)

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
        match = campaign.candidate(candidate)
        if match is None:
            raise KeyError(candidate)
        return (await self.host.blobs.get(match.diff)).decode("utf-8", "replace") if match.diff else ""

    async def preview(self, command: ForMastermind) -> Mapping[str, Any]:
        """What a command would do, as JSON; nothing is changed.

        Keys: `does` (a sentence), and where they apply `wrong` (why it would be refused), `component`,
        `rule`, `paths`, `sets` (words by split), `choices` (ids where several are meant), `cost`,
        `forecast`, `left` (of the workspace's budget), `asks`, `reversible`.
        """
        preview = await self._preview(command)
        if preview.get("cost") and (left := self._left()):
            preview["left"] = left
        return preview

    async def _preview(self, command: ForMastermind) -> dict[str, Any]:
        try:
            match command:
                case StartJob(verb=verb) if verb in CAMPAIGNS:
                    return await self._preview_campaign(command)
                case StartJob(verb="coord_shadow", argument=name):
                    waits = self.improver.waiting(self.improver.campaign(name))
                    does = f"runs {waits} beside what is there, on sealed tasks drawn for this"
                    return {"does": does, "reversible": None}
                case StartJob(verb="coord_process_backlog"):
                    item = self.backlog.next()
                    what = f"works on {item.id}: {item.suggestion}" if item else "has nothing to work on"
                    return {"does": what, "asks": item is not None, "reversible": True}
                case StartJob(verb=verb) if verb not in self._workers:
                    return {"does": "nothing", "wrong": f"there is no job {verb}"}
                case ApplyCandidate(campaign=name, diff=diff):
                    campaign = self.improver.campaign(name)
                    candidate = campaign.candidate(self.improver.waiting(campaign, diff))
                    assert candidate is not None
                    does = f"writes {candidate.id}: +{candidate.added} -{candidate.removed} lines"
                    return {"does": does, "paths": sorted(candidate.files), "reversible": True}
                case DeclineCampaign(campaign=name):
                    waits = self.improver.waiting(self.improver.campaign(name))
                    return {"does": f"declines {waits}", "reversible": False}
                case RollBack(campaign=name):
                    campaign = self.applier.newest(name)
                    paths = sorted(campaign.application.before) if campaign.application is not None else []
                    does = f"brings back what {campaign.id} changed"
                    return {"does": does, "paths": paths, "reversible": False}
                case SettleItem(item=name, approve=approve):
                    item = find_item(self.state, name)
                    return {"does": f"{'approves' if approve else 'rejects'} {item.id}: {item.suggestion}"}
        except JobRefused as error:
            return {"does": "nothing", "wrong": str(error)}
        return {"does": f"begins {command.verb}" if isinstance(command, StartJob) else command.do}

    async def _preview_campaign(self, command: StartJob) -> dict[str, Any]:
        alone = command.verb == "evolve"
        directive = command.argument if alone else await self.improver.named_component(command.argument)
        matches = await self.improver.matching_components(directive, command.component, alone=alone)
        if len(matches) > 1:
            return {
                "does": "asks which component is meant",
                "choices": [{"component": match.component.id, "rule": match.rule} for match in matches],
                "asks": True,
            }
        (reading,) = matches
        component = reading.component
        self.improver.check_proposers(component)
        budget = self.improver.budget(JobRequest("", "", command.model_dump(), ""))
        usd, tokens = (budget.usd, budget.tokens) if self.host.model is not None else (0.0, 0)
        models = [f"${usd:.2f} for models"] * bool(usd) + [f"{tokens:,} tokens of models"] * bool(tokens)
        cost = [f"at most {budget.candidates} candidates", f"{budget.seconds:.0f} s of processor"]
        return {
            "does": f"looks for something better in {component.title}; nothing is applied without you",
            "component": component.id,
            "rule": reading.rule,
            "measure": component.measure,
            "paths": list(component.paths),
            "sets": await self.improver.sets(component),
            "forecast": estimate_campaign(self.state, component, budget),
            "cost": ", ".join([*cost, *(models or ["no model"])]),
            "asks": True,
            "reversible": True,
        }

    def _left(self) -> str:
        """What is left of the workspace's budget for models, in words; empty where it has none."""
        standing = self.host.budgets("")[-1]
        lines = [
            f"{amount_text(line.kind, round(line.left, 6))} of {amount_text(line.kind, line.limit)}"
            for line in standing.lines
            if line.limit is not None and line.left is not None and line.kind in MODELS
        ]
        return f"{', '.join(lines)} left; a call that could break that is not made" if lines else ""

    # -------------------------------------------------------------- commands

    async def carry_out(self, command: ForMastermind, actor: str) -> Receipt:
        """Carry out a command; what the receipt says is durable.

        For what continues as a job the receipt comes at once, with the job's id in `data["job"]`.

        Raises:
            JournalError: the journal refused.
        """
        try:
            receipt = await self._carried_out(command, actor)
        except JobRefused as error:
            return Receipt(ok=False, message=clean_line(str(error)))
        await self.stream.commit()
        return receipt

    async def _carried_out(self, command: ForMastermind, actor: str) -> Receipt:
        match command:
            case StartJob():
                return await self._start(command, actor)
            case CancelJob():
                return await self._cancel(command, actor)
            case AddItem():
                return self._add(command, actor)
            case SettleItem(item=name, approve=approve, reason=reason):
                item = self.backlog.settle(name, approve=approve, reason=reason, actor=actor)
                how = "approved" if command.approve else "rejected"
                return Receipt(ok=True, message=f"{item.id} is {how}", data={"item": item.id})
            case ApplyCandidate():
                campaign = self.improver.campaign(command.campaign)
                self.improver.waiting(campaign, command.diff)
                diff = {"diff": command.diff}
                asked = StartJob(verb="coord_apply", argument=command.campaign, options=diff)
                return await self._start(asked, actor)
            case DeclineCampaign():
                return self._decline(command, actor)
            case RollBack():
                rolled, message = await self.applier.roll_back(command.campaign, actor=actor)
                data = {"campaign": rolled.id, "status": str(rolled.status)}
                return Receipt(ok=True, message=f"{rolled.id}: {message}", data=data)
        return Receipt(ok=False, message=f"{command.do} is not known here")

    async def _start(self, command: StartJob, actor: str) -> Receipt:
        if command.verb not in self._workers:
            known = ", ".join(self.verbs)
            raise JobRefused(f"there is no job {command.verb}; jobs: {known}")
        if self.host.model is None and (command.usd or command.tokens):
            raise JobRefused(f"nothing can be spent on models: {NO_MODEL}")
        worker, heavy = self._workers[command.verb]
        options = command.model_dump(exclude={*NOT_TOLD, "verb", "argument", "options"})
        asked = JobRequest("", command.argument, {**command.options, **options}, actor)
        job = await self.jobs.start(command.verb, asked, worker, heavy=heavy)
        waits = ", when there is room for it" if heavy and self.jobs.must_wait(job.id) else ""
        message = f"{job.id} begins{waits}: {command.verb} {clean_line(command.argument, limit=80)}".rstrip()
        return Receipt(ok=True, message=message, event=job.event, data={"job": job.id})

    async def _cancel(self, command: CancelJob, actor: str) -> Receipt:
        if not self.jobs.cancel(command.job, by=actor):
            job = self.state.jobs.get(command.job)
            if job is not None:
                raise JobRefused(f"{job.id} is over already: {job.status}")
            running = ", ".join(job.id for job in self.state.jobs.values() if not job.status.over) or "none"
            raise JobRefused(f"there is no job {clean_line(command.job, limit=40)!r}; under way: {running}")
        job = await self.jobs.wait(command.job)
        return Receipt(ok=True, message=f"{job.id} is {job.status}", data={"job": job.id})

    def _add(self, command: AddItem, actor: str) -> Receipt:
        entered: BacklogEntry = self.backlog.add(
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
        self.stream.append(stage, actor=actor)
        if campaign.item:
            self.backlog.move(campaign.item, ItemStatus.REJECTED, why, actor=actor, decided=True)
        return Receipt(ok=True, message=f"{candidate} is declined", data={"campaign": campaign.id})
