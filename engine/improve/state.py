"""Mastermind's stream while it is open, and its fold, which alone changes a `MastermindState`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.core import campaigns as me
from engine.core.improvement import (
    BacklogItem,
    Campaign,
    CampaignStatus,
    ItemStatus,
    JobRecord,
    JobStatus,
    LogLine,
    MastermindState,
    Stage,
)
from engine.core.journal import MASTERMIND, Event, Payload
from engine.core.reasons import TEMPLATE, read_words
from engine.core.streams import StateStream

LOG_LIMIT = 500
"""Lines of the log that a state keeps; the journal has all."""


def apply_event(state: MastermindState, event: Event, payload: Payload) -> None:
    """Bring a state forward by one event; what names nothing that is there changes nothing."""
    state.version, state.hash = event.version, event.hash
    _jobs(state, event, payload)
    _items(state, event, payload)
    _campaigns(state, event, payload)
    _identities(state, event, payload)
    sets = check_counts_text(payload.sets) if isinstance(payload, me.CampaignSplit) else ""
    if text := TEMPLATE.format(_LINES.get(payload.kind, ""), p=payload, sets=sets).strip():
        topic = payload.kind.partition(".")[2]
        state.log.append(LogLine(event.at, topic, text, event.ref, event.actor))
        del state.log[:-LOG_LIMIT]


def _jobs(state: MastermindState, event: Event, payload: Payload) -> None:
    match payload:
        case me.JobAsked(job=name):
            job = JobRecord(name, payload.verb, payload.argument, event.actor, payload.heavy)
            state.jobs[name] = replace(job, asked=event.at, event=event.ref)
        case me.JobBegun():
            _change(state.jobs, payload.job, status=JobStatus.RUNNING, begun=event.at)
        case me.JobProgressed():
            _change(state.jobs, payload.job, done=payload.done, of=payload.of, text=payload.text)
        case me.JobEnded():
            ended = {name: getattr(payload, name) for name in ("status", "message", "answer", "error")}
            _change(state.jobs, payload.job, **ended, ended=event.at)
            state.autonomous = "" if state.autonomous == payload.job else state.autonomous
        case me.AutonomyChanged():
            state.autonomous = payload.job


def _items(state: MastermindState, event: Event, payload: Payload) -> None:
    if isinstance(payload, me.ItemAdded):
        state.items[payload.item.id] = replace(payload.item, added=event.at, changed=event.at)
    elif isinstance(payload, me.ItemMerged | me.ItemMoved) and payload.item in state.items:
        item = replace(state.items[payload.item], changed=event.at)
        if isinstance(payload, me.ItemMerged):
            priority = max(item.priority, payload.priority)
            item = replace(item, priority=priority, evidence=payload.evidence, merged=item.merged + 1)
        else:
            item = _moved_item(item, event, payload)
        state.items[payload.item] = item


def _moved_item(item: BacklogItem, event: Event, moved: me.ItemMoved) -> BacklogItem:
    begins = moved.status is ItemStatus.IN_PROGRESS and item.status is not ItemStatus.IN_PROGRESS
    return replace(
        item,
        status=moved.status,
        message=moved.message,
        campaign=moved.campaign or item.campaign,
        decided_by=event.actor if moved.decided else item.decided_by,
        attempts=item.attempts + begins,
        tried=event.at if begins else item.tried,
    )


def _campaigns(state: MastermindState, event: Event, payload: Payload) -> None:
    name = getattr(payload, "campaign", "")
    campaign = state.campaigns.get(name)
    if isinstance(payload, me.CampaignBegun):
        same = {key: getattr(payload, key) for key in ("rule", "seed", "budget", "job", "item")}
        stages = (Stage(event.at, CampaignStatus.AUDITING, payload.rule, event.ref),)
        campaign = Campaign(name, payload.directive, payload.component, **same, stages=stages)
        state.campaigns[name] = replace(campaign, begun=event.at, actor=event.actor)
    elif campaign is not None:
        state.campaigns[name] = replace(campaign, **_campaign_changes(campaign, event, payload))
        if isinstance(payload, me.CandidateJudged) and not payload.again:
            judged = campaign.candidate(payload.candidate)
            if judged is not None and judged.key:
                state.verdicts[judged.key] = (judged.id, payload.verdict)


def _campaign_changes(campaign: Campaign, event: Event, payload: Payload) -> dict[str, Any]:
    """What an event changes of its campaign, by field."""
    match payload:
        case me.CampaignStaged(status=status, text=text, usd=usd):
            return {
                **_staged(campaign, event, status, text),
                "chosen": payload.chosen or campaign.chosen,
                "job": payload.job or campaign.job,
                "tokens": campaign.tokens + payload.tokens,
                **(_charged(campaign, usd) if payload.proposing else {"usd": campaign.usd + usd}),
            }
        case me.CampaignFound():
            return {"findings": payload.findings}
        case me.CandidateMade(candidate=made):
            return {"candidates": (*campaign.candidates, made), **_charged(campaign, made.cost_usd)}
        case me.CampaignSplit():
            return {"sets": payload.sets, "suite": payload.suite}
        case me.ProposalsKept(usd=usd):
            kept = {**campaign.kept, payload.key: payload.blob}
            tokens = campaign.tokens + payload.tokens
            spent = {"usd": campaign.usd + usd, "prepaid": campaign.prepaid + usd, "tokens": tokens}
            return {"kept": kept, **spent}
        case me.ShadowRun(shadow=shadow):
            shadows = (*campaign.shadows, replace(shadow, at=event.at))
            seconds = campaign.seconds + shadow.verdict.seconds
            return {"shadows": shadows, "seconds": seconds, "usd": campaign.usd + shadow.usd}
        case me.CandidateJudged() if campaign.candidate(payload.candidate) is not None:
            candidates = tuple(
                replace(candidate, verdict=payload.verdict, again=payload.again)
                if candidate.id == payload.candidate
                else candidate
                for candidate in campaign.candidates
            )
            seconds = 0.0 if payload.again else payload.verdict.seconds
            return {"candidates": candidates, "seconds": campaign.seconds + seconds}
        case me.WatchTold():
            return {"told": payload.text}
    return _application_changes(campaign, event, payload)


def _application_changes(campaign: Campaign, event: Event, payload: Payload) -> dict[str, Any]:
    """What an event changes of its campaign's application, and by that of the campaign."""
    application = campaign.application
    if isinstance(payload, me.ApplyBegun):
        begun = replace(payload.application, begun=event.at, ended="", undoing=False)
        return {"application": begun, "chosen": begun.candidate}
    if application is None:
        return {}
    match payload:
        case me.ApplyEnded():
            status, text = CampaignStatus.APPLIED, f"{application.candidate} is applied"
            application = replace(application, ended=event.at, tree_after=payload.tree)
        case me.RollbackBegun():
            return {"application": replace(application, undoing=True)}
        case me.RolledBack():
            status, text = payload.status, payload.reason
            application = replace(application, undoing=False, ended=event.at)
        case _:
            return {}
    return {"application": application, **_staged(campaign, event, status, text)}


def _staged(campaign: Campaign, event: Event, status: CampaignStatus, text: str) -> dict[str, Any]:
    stages = (*campaign.stages, Stage(event.at, status, text, event.ref))
    return {"status": status, "message": text, "stages": stages, "ended": event.at if status.over else ""}


def _charged(campaign: Campaign, usd: float) -> dict[str, float]:
    """What a cost changes: what was paid for a kept answer is not counted again."""
    paid = min(usd, campaign.prepaid)
    return {"usd": campaign.usd + usd - paid, "prepaid": campaign.prepaid - paid}


def _identities(state: MastermindState, event: Event, payload: Payload) -> None:
    match payload:
        case me.IdentityCreated():
            state.identities[payload.identity.address] = replace(payload.identity, created=event.at)
        case me.IdentityDeprecated():
            _change(state.identities, payload.address, deprecated=event.at, reason=payload.reason)


def check_counts_text(sets: Mapping[str, int]) -> str:
    """How many checks a suite has, in words: `40 work, 160 choose, 400 sealed`."""
    order = ("work", "choose", "sealed")
    return ", ".join(f"{sets[split]} {split}" for split in order if split in sets)


def _change(table: dict[str, Any], key: str, **changes: Any) -> None:
    if key in table:
        table[key] = replace(table[key], **changes)


_LINES = read_words(Path(__file__).with_name("log_lines.txt"))
"""What the log says of an event, by its kind; nothing of others."""


class EventStream(StateStream[MastermindState]):
    """Mastermind's stream; what is appended is pending until `commit`."""

    name = MASTERMIND
    empty = MastermindState
    apply = staticmethod(apply_event)

    async def write(self, payload: Payload, *, actor: str = "system", causes: tuple[str, ...] = ()) -> Event:
        """Add an event and make it durable.

        Raises:
            JournalError: the journal refused; the event stays pending.
        """
        event = self.append(payload, actor=actor, causes=causes)
        await self.log.commit()
        return event

    def tell(
        self, topic: str, text: str, data: dict[str, Any] | None = None, *, actor: str = "system"
    ) -> Event:
        """A line of the log that no other event says."""
        return self.append(me.Noted(topic=topic, text=text, data=data or {}), actor=actor)
