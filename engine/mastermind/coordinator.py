"""The coordinator: what each verb of Mastermind's own does as a job.

Source: mindX spec §1.2, §5.1, §5.2, §6.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from engine.domain.improvement import CampaignStatus, Component, Finding, ItemStatus
from engine.domain.mastermind import (
    BacklogItem,
    CampaignBudget,
    JobStatus,
    MastermindSettings,
    MastermindState,
)
from engine.domain.ports import Clock
from engine.domain.text import clean
from engine.journal import mastermind_events as me
from engine.mastermind.backlog import Backlog
from engine.mastermind.campaign import Parts
from engine.mastermind.files import Places
from engine.mastermind.improving import Improver
from engine.mastermind.parts import Asked, AuditUnavailable, JobRefused, Outcome, Progress
from engine.mastermind.processor import busy_percent
from engine.mastermind.resolving import Reading
from engine.mastermind.state import Spine
from engine.mastermind.telling import CHOICES, status, told

ALL = 100.0
"""A processor that may be as busy as it likes: nothing is put off."""
BUSY_REST_S = 5.0
"""How long is waited, at least, before a busy processor is looked at again."""
AskModel = Callable[[str, str], Awaitable[str]]
"""Asks a model: the question, the material; gives its answer."""


class Coordinator:
    """Does `coord_analyze`, `coord_process_backlog` and `coord_query`.

    Args:
        spine: where events go.
        parts: who audits.
        backlog: what could be better.
        improver: runs campaigns.
        places: the workspace's files.
        clock: to rest between two items.
        settings: for how long.
        ask: asks the model; None where there is none.
    """

    def __init__(
        self,
        spine: Spine,
        parts: Parts,
        backlog: Backlog,
        improver: Improver,
        places: Places,
        clock: Clock,
        settings: MastermindSettings,
        ask: AskModel | None,
    ) -> None:
        self._spine = spine
        self._parts = parts
        self._backlog = backlog
        self._improver = improver
        self._places = places
        self._clock = clock
        self._settings = settings
        self._ask = ask

    @property
    def _state(self) -> MastermindState:
        return self._spine.state

    # -------------------------------------------------------------- coord_analyze

    async def analyze(self, asked: Asked, progress: Progress) -> Outcome:
        """`coord_analyze [context]`: look at every component, and put what is found into the backlog."""
        there = await self._improver.components()
        if not there:
            return Outcome(JobStatus.DONE, "nothing was audited: there is no component here", {"findings": 0})
        chosen = str(asked.options.get("component") or "")
        wanted = [there[chosen]] if chosen in there else _whole(there.values())
        found: list[tuple[Finding, Component]] = []
        silent: list[str] = []
        looked = 0
        for number, component in enumerate(wanted):
            progress.tell(number, len(wanted), component.id)
            for finding in await self._looked_at(component, asked, progress, silent):
                found.append((finding, component))
            looked += 1
        if silent and not found:
            raise JobRefused(f"nothing was added: {'; '.join(silent)}")
        entered = [self._backlog.add_finding(one, source="audit", component=of) for one, of in found]
        await self._spine.commit()
        counts = {how: sum(one.how == how for one in entered) for how in ("added", "merged", "known")}
        said = f"{looked} components were audited, "
        said += f"{len(found)} findings: " if found else "nothing was found"
        said += ", ".join(f"{count} {how}" for how, count in counts.items() if count)
        if silent:
            said += f"; not looked at: {'; '.join(silent)}"
        answer = {"components": looked, "findings": len(found), "silent": silent, **counts}
        return Outcome(JobStatus.DONE, said, answer)

    async def _looked_at(
        self, component: Component, asked: Asked, progress: Progress, silent: list[str]
    ) -> Sequence[Finding]:
        """What the auditors find in a component as it is; who could not look is noted."""
        found: list[Finding] = []
        for auditor in self._parts.auditors:
            if not auditor.fits(component):
                continue
            try:
                found += await auditor.audit(component, self._places.workspace, asked.argument, progress)
            except AuditUnavailable as error:
                silent.append(f"{auditor.name}: {error}")
        return found

    # -------------------------------------------------------------- coord_process_backlog

    async def process(self, asked: Asked, progress: Progress) -> Outcome:
        """`coord_process_backlog [N|auto]`: take the next items and run their campaigns."""
        auto, count = bool(asked.options.get("auto")), int(asked.options.get("count") or 1)
        if auto and self._state.autonomous:
            raise JobRefused(f"the backlog is worked off already, by {self._state.autonomous}")
        if auto:
            await self._spine.write(me.AutonomyChanged(job=asked.job), actor=asked.actor)
        done: list[dict[str, Any]] = []
        needs = False
        spent = CampaignBudget(0, 0.0, 0.0)
        limit = self._improver.budget(asked)
        while auto or len(done) < count:
            item = self._backlog.next()
            if item is None or (auto and self._used_up(spent, limit)):
                break
            if auto:
                await self._until_idle(asked, progress, len(done))
            progress.tell(len(done), 0 if auto else count, f"{item.id}: {item.suggestion}")
            outcome = await self._one(item, asked, progress, spent, limit)
            needs = needs or outcome.status is JobStatus.NEEDS_OPERATOR
            done.append({"item": item.id, "message": outcome.message, **outcome.answer})
            campaign = self._state.campaigns.get(str(outcome.answer.get("campaign", "")))
            if campaign is not None:
                spent = CampaignBudget(
                    spent.candidates + len(campaign.candidates),
                    spent.seconds + campaign.seconds,
                    spent.usd + campaign.usd,
                )
            if auto and self._backlog.next() is not None:
                progress.tell(len(done), 0, f"rests for {self._settings.interval_s:.0f} s")
                await self._clock.sleep(self._settings.interval_s)
        said = "; ".join(f"{one['item']}: {one['message']}" for one in done) or self._idle()
        if auto and self._used_up(spent, limit):
            said += "; the budget is used up"
        ending = JobStatus.NEEDS_OPERATOR if needs else JobStatus.DONE
        return Outcome(ending, said, {"items": done})

    async def _until_idle(self, asked: Asked, progress: Progress, done: int) -> None:
        """Wait while the processor is busier than autonomous work may find it; the log says so once."""
        limit, told = self._settings.busy_percent, False
        while limit < ALL and (busy := await busy_percent(self._clock)) >= limit:
            if not told:
                told = True
                why = f"{asked.job} waits: the processor is {busy:.0f} % busy, and {limit:.0f} % is the most"
                self._spine.tell("autonomy.deferred", why, {"busy": round(busy, 1), "limit": limit})
                await self._spine.commit()
            progress.tell(done, 0, f"waits for the processor, which is {busy:.0f} % busy")
            await self._clock.sleep(max(self._settings.interval_s, BUSY_REST_S))

    @staticmethod
    def _used_up(spent: CampaignBudget, limit: CampaignBudget) -> bool:
        return (
            spent.candidates >= limit.candidates
            or spent.seconds >= limit.seconds
            or (limit.usd > 0 and spent.usd >= limit.usd)
        )

    async def _one(
        self,
        item: BacklogItem,
        asked: Asked,
        progress: Progress,
        spent: CampaignBudget,
        limit: CampaignBudget,
    ) -> Outcome:
        """Run the campaign of an item, within what is left of the budget."""
        component = (await self._improver.components()).get(item.target)
        if component is None:
            why = f"there is no component {item.target} any more"
            self._backlog.move(item.id, ItemStatus.FAILED, why)
            await self._spine.commit()
            return Outcome(JobStatus.DONE, why)
        left = {
            "candidates": max(1, limit.candidates - spent.candidates),
            "seconds": max(1.0, limit.seconds - spent.seconds),
            "usd": max(0.0, limit.usd - spent.usd),
        }
        within = replace(asked, options={**asked.options, **left})
        reading = Reading(component, f"{item.id} is on it", 0.0)
        campaign = self._improver.begin(within, reading, item.suggestion, item.id)
        self._backlog.move(item.id, ItemStatus.IN_PROGRESS, "", campaign.id)
        try:
            outcome = await self._improver.fly(campaign, within, progress, item.suggestion)
        except JobRefused as error:
            outcome = Outcome(JobStatus.DONE, str(error), {"campaign": campaign.id})
        except asyncio.CancelledError:
            self._backlog.move(item.id, ItemStatus.PENDING, "its campaign was cut off")
            raise
        except Exception as error:
            self._backlog.move(item.id, ItemStatus.FAILED, f"{type(error).__name__}: {error}")
            raise
        ended = self._state.campaigns[campaign.id].status
        if ended not in (CampaignStatus.NEEDS_OPERATOR, CampaignStatus.APPLIED):
            self._backlog.move(item.id, ItemStatus.FAILED, outcome.message)
        await self._spine.commit()
        return outcome

    def _idle(self) -> str:
        """Why there is nothing to work on."""
        items = list(self._state.items.values())
        waits = [one.id for one in items if one.status is ItemStatus.PENDING_APPROVAL]
        cools = [one for one in items if self._backlog.cools_for(one) > 0]
        said = "the backlog has nothing to work on"
        if waits:
            said += f"; {', '.join(waits[:CHOICES])} wait for your approval"
        if cools:
            soonest = min(self._backlog.cools_for(one) for one in cools)
            said += f"; {len(cools)} that failed rest, the first for {soonest / 60:.0f} more minutes"
        return said

    # -------------------------------------------------------------- coord_query

    async def query(self, asked: Asked, progress: Progress) -> Outcome:
        """`coord_query QUESTION`: what the journal says; with a model, its answer from that."""
        if not asked.argument.strip():
            raise JobRefused("coord_query needs a question, such as: coord_query what was applied today?")
        material = status(self._state, self._backlog.listed)
        if self._ask is None:
            said = "no model answers here; this is what the journal says\n" + told(self._state)
            return Outcome(JobStatus.DONE, said, material | {"model": False})
        progress.tell(0, 1, "the model is asked")
        answer = await self._ask(asked.argument, json.dumps(material, ensure_ascii=False, indent=1))
        return Outcome(JobStatus.DONE, clean(answer, limit=8_000), {"model": True, "answer": answer})


def _whole(components: Any) -> list[Component]:
    """The components that are no part of another one: a project stands for its modules."""
    there = list(components)
    return [
        one
        for one in there
        if not any(other is not one and set(one.paths) < set(other.paths) for other in there)
    ]
