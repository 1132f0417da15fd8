"""Does the verbs of the coordinator as jobs: audits, and the backlog.

Autonomous work is put off while the machine's processors are busy.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, replace
from typing import Any

from engine.core import campaigns as me
from engine.core.improvement import (
    BacklogItem,
    Campaign,
    CampaignBudget,
    CampaignStatus,
    Component,
    Finding,
    ItemStatus,
    JobStatus,
    MastermindSettings,
    MastermindState,
)
from engine.core.ports import Clock
from engine.core.reasons import Reason
from engine.improve.backlog import Backlog, ComponentMatch
from engine.improve.campaigns.parts import CampaignParts
from engine.improve.campaigns.report import CHOICES
from engine.improve.campaigns.runner import CampaignRunner
from engine.improve.ports import AuditUnavailable, JobRefused, JobRequest, JobResult, Progress
from engine.improve.state import EventStream


def busy_percent() -> float:
    """The load of the last minute, in percent of all processors."""
    return min(100.0, 100.0 * os.getloadavg()[0] / (os.cpu_count() or 1))


ALL = 100.0
"""A processor that may be as busy as it likes: nothing is put off."""
BUSY_REST_S = 5.0
"""How long is waited, at least, before a busy processor is looked at again."""


@dataclass(slots=True)
class Coordinator:
    """Does `coord_analyze` and `coord_process_backlog`.

    Args:
        parts: who audits.
        backlog: what could be better.
        improver: runs campaigns.
        clock: to rest between two items.
        settings: for how long.
    """

    _parts: CampaignParts
    _backlog: Backlog
    _improver: CampaignRunner
    _clock: Clock
    _settings: MastermindSettings

    @property
    def _stream(self) -> EventStream:
        return self._parts.stream

    @property
    def _state(self) -> MastermindState:
        return self._parts.stream.state

    # -------------------------------------------------------------- coord_analyze

    async def analyze(self, asked: JobRequest, progress: Progress) -> JobResult:
        """`coord_analyze`: look at every component, and put what is found into the backlog."""
        there = (await self._improver.components()).values()
        # A project stands for its modules.
        components = [one for one in there if not any({*one.paths} < {*other.paths} for other in there)]
        if not components:
            return JobResult(
                JobStatus.DONE, "nothing was audited: there is no component here", {"findings": 0}
            )
        findings: list[tuple[Finding, Component]] = []
        silent: list[str] = []
        for number, component in enumerate(components):
            progress.tell(number, len(components), component.id)
            try:
                entries, missing = await self._parts.audit(component, self._parts.places.workspace, progress)
            except AuditUnavailable as error:
                entries, missing = [], [str(error)]
            findings += [(entry, component) for entry in entries]
            silent += missing
        if silent and not findings:
            raise JobRefused(f"nothing was added: {'; '.join(silent)}")
        entered = [self._backlog.add_finding(entry, of) for entry, of in findings]
        await self._stream.commit()
        counts = {how: sum(entry.how == how for entry in entered) for how in ("added", "merged", "known")}
        message = f"{len(components)} components were audited, "
        message += f"{len(findings)} findings: " if findings else "nothing was found"
        message += ", ".join(f"{count} {how}" for how, count in counts.items() if count)
        if silent:
            message += f"; not looked at: {'; '.join(silent)}"
        answer = {"components": len(components), "findings": len(findings), "silent": silent, **counts}
        return JobResult(JobStatus.DONE, message, answer)

    # -------------------------------------------------------------- coord_process_backlog

    async def process(self, asked: JobRequest, progress: Progress) -> JobResult:
        """`coord_process_backlog [N|auto]`: take the next items and run their campaigns."""
        auto, count = bool(asked.options.get("auto")), int(asked.options.get("count") or 1)
        if auto and self._state.autonomous:
            raise JobRefused(f"the backlog is worked off already, by {self._state.autonomous}")
        if auto:
            await self._stream.write(me.AutonomyChanged(job=asked.job), actor=asked.actor)
        done: list[dict[str, Any]] = []
        needs = False
        limit = left = self._improver.budget(asked)
        while auto or len(done) < count:
            item = self._backlog.next()
            if item is None or (auto and _used_up(left, limit)):
                break
            if auto:
                await self._until_idle(asked, progress, len(done))
            progress.tell(len(done), 0 if auto else count, f"{item.id}: {item.suggestion}")
            result = await self._one(item, asked, progress, left)
            needs = needs or result.status is JobStatus.NEEDS_OPERATOR
            done.append({"item": item.id, "message": result.message, **result.answer})
            left = _left(left, self._state.campaigns.get(str(result.answer.get("campaign", ""))))
            if auto and self._backlog.next() is not None:
                progress.tell(len(done), 0, f"rests for {self._settings.interval_s:.0f} s")
                await self._clock.sleep(self._settings.interval_s)
        message = "; ".join(f"{entry['item']}: {entry['message']}" for entry in done) or self._idle()
        if auto and _used_up(left, limit):
            message += "; the budget is used up"
        ending = JobStatus.NEEDS_OPERATOR if needs else JobStatus.DONE
        return JobResult(ending, message, {"items": done})

    async def _until_idle(self, asked: JobRequest, progress: Progress, done: int) -> None:
        """Wait while the processor is busier than autonomous work may find it; the log says so once."""
        limit, reported = self._settings.busy_percent, False
        while limit < ALL and (busy := busy_percent()) >= limit:
            if not reported:
                reported = True
                why = f"{asked.job} waits: the processor is {busy:.0f} % busy, and {limit:.0f} % is the most"
                self._stream.tell("autonomy.deferred", why, {"busy": round(busy, 1), "limit": limit})
                await self._stream.commit()
            progress.tell(done, 0, f"waits for the processor, which is {busy:.0f} % busy")
            await self._clock.sleep(max(self._settings.interval_s, BUSY_REST_S))

    async def _one(
        self, item: BacklogItem, asked: JobRequest, progress: Progress, left: CampaignBudget
    ) -> JobResult:
        """Run the campaign of an item, within what is left of the budget."""
        component = (await self._improver.components()).get(item.target)
        if component is None:
            why = f"there is no component {item.target} any more"
            self._backlog.move(item.id, ItemStatus.FAILED, why)
            await self._stream.commit()
            return JobResult(JobStatus.DONE, why)
        room = {
            "candidates": max(1, left.candidates),
            "seconds": max(1.0, left.seconds),
            "usd": max(0.0, left.usd),
            "tokens": max(0, left.tokens),
        }
        within = replace(asked, options={**asked.options, **room})
        reading = ComponentMatch(component, f"{item.id} is on it", 0.0)
        campaign = self._improver.begin(within, reading, item.suggestion, item.id)
        self._backlog.move(item.id, ItemStatus.IN_PROGRESS, "", campaign.id)
        try:
            result = await self._improver.run_campaign(campaign, within, progress)
        except JobRefused as error:
            result = JobResult(JobStatus.DONE, str(error), {"campaign": campaign.id})
        except asyncio.CancelledError:
            self._backlog.move(item.id, ItemStatus.PENDING, Reason("item.cut-off"))
            raise
        except Exception as error:
            why = Reason("item.error", error=type(error).__name__, message=str(error))
            self._backlog.move(item.id, ItemStatus.FAILED, why)
            raise
        ended = self._state.campaigns[campaign.id].status
        if ended not in (CampaignStatus.NEEDS_OPERATOR, CampaignStatus.APPLIED):
            self._backlog.move(item.id, ItemStatus.FAILED, result.message)
        await self._stream.commit()
        return result

    def _idle(self) -> str:
        """Why there is nothing to work on."""
        items = list(self._state.items.values())
        waits = [item.id for item in items if item.status is ItemStatus.PENDING_APPROVAL]
        cools = [item for item in items if self._backlog.cooldown_left_s(item) > 0]
        message = "the backlog has nothing to work on"
        if waits:
            message += f"; {', '.join(waits[:CHOICES])} wait for your approval"
        if cools:
            soonest = min(self._backlog.cooldown_left_s(item) for item in cools)
            message += f"; {len(cools)} that failed rest, the first for {soonest / 60:.0f} more minutes"
        return message


def _left(budget: CampaignBudget, campaign: Campaign | None) -> CampaignBudget:
    """What a campaign leaves of a budget."""
    if campaign is None:
        return budget
    return replace(
        budget,
        candidates=budget.candidates - len(campaign.candidates),
        seconds=budget.seconds - campaign.seconds,
        usd=budget.usd - campaign.usd,
        tokens=budget.tokens - campaign.tokens,
    )


def _used_up(left: CampaignBudget, limit: CampaignBudget) -> bool:
    models = (limit.usd > 0 and left.usd <= 0) or (limit.tokens > 0 and left.tokens <= 0)
    return left.candidates <= 0 or left.seconds <= 0 or models
