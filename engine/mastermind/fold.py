"""The fold of Mastermind's stream: the only place that changes a `MastermindState`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from engine.domain.improvement import CampaignStatus, ItemStatus
from engine.domain.mastermind import (
    LOG_LIMIT,
    Campaign,
    JobRecord,
    JobStatus,
    LogLine,
    MastermindState,
    Stage,
)
from engine.journal import mastermind_events as me
from engine.journal.event import Event
from engine.journal.events import payload_of
from engine.journal.payload import Payload


def fold(events: Iterable[Event], state: MastermindState | None = None) -> MastermindState:
    """The state after some events of the stream, from one before them.

    Raises:
        JournalError: an event is of no known kind or does not fit it.
    """
    state = state if state is not None else MastermindState()
    for event in events:
        apply(state, event, payload_of(event))
    return state


def apply(state: MastermindState, event: Event, said: Payload) -> None:
    """Bring a state forward by one event; what names nothing that is there changes nothing."""
    state.version, state.hash = event.version, event.hash
    _jobs(state, event, said)
    _items(state, event, said)
    _campaigns(state, event, said)
    _applications(state, event, said)
    _identities(state, event, said)
    if topic_text := _line(state, said):
        state.log.append(LogLine(event.at, said.kind.partition(".")[2], topic_text, event.ref, event.actor))
        del state.log[:-LOG_LIMIT]


def _jobs(state: MastermindState, event: Event, said: Payload) -> None:
    match said:
        case me.JobAsked():
            state.jobs[said.job] = JobRecord(
                said.job,
                said.verb,
                said.argument,
                event.actor,
                said.heavy,
                asked=event.at,
                event=event.ref,
            )
        case me.JobBegun():
            _change(state.jobs, said.job, status=JobStatus.RUNNING, begun=event.at)
        case me.JobProgressed():
            _change(state.jobs, said.job, done=said.done, of=said.of, text=said.text)
        case me.JobEnded():
            _change(
                state.jobs,
                said.job,
                status=said.status,
                message=said.message,
                answer=said.answer,
                error=said.error,
                ended=event.at,
            )
            if state.autonomous == said.job:
                state.autonomous = ""
        case me.AutonomyChanged():
            state.autonomous = said.job


def _items(state: MastermindState, event: Event, said: Payload) -> None:
    match said:
        case me.ItemAdded():
            state.items[said.item.id] = replace(said.item, added=event.at, changed=event.at)
        case me.ItemMerged():
            if (item := state.items.get(said.item)) is not None:
                _change(
                    state.items,
                    said.item,
                    priority=max(item.priority, said.priority),
                    evidence=said.evidence,
                    merged=item.merged + 1,
                    changed=event.at,
                )
        case me.ItemMoved():
            if (item := state.items.get(said.item)) is not None:
                begins = said.status is ItemStatus.IN_PROGRESS and item.status is not ItemStatus.IN_PROGRESS
                _change(
                    state.items,
                    said.item,
                    status=said.status,
                    message=said.message,
                    campaign=said.campaign or item.campaign,
                    decided_by=event.actor if said.decided else item.decided_by,
                    attempts=item.attempts + begins,
                    tried=event.at if begins else item.tried,
                    changed=event.at,
                )


def _campaigns(state: MastermindState, event: Event, said: Payload) -> None:
    match said:
        case me.CampaignBegun():
            state.campaigns[said.campaign] = Campaign(
                said.campaign,
                said.directive,
                said.component,
                said.rule,
                seed=said.seed,
                budget=said.budget,
                job=said.job,
                item=said.item,
                begun=event.at,
                actor=event.actor,
                stages=(Stage(event.at, CampaignStatus.AUDITING, said.rule, event.ref),),
            )
        case me.CampaignStaged():
            if (campaign := state.campaigns.get(said.campaign)) is not None:
                stage = Stage(event.at, said.status, said.text, event.ref)
                _change(
                    state.campaigns,
                    said.campaign,
                    status=said.status,
                    message=said.text,
                    chosen=said.chosen or campaign.chosen,
                    job=said.job or campaign.job,
                    **(_charged(campaign, said.usd) if said.proposing else {"usd": campaign.usd + said.usd}),
                    stages=(*campaign.stages, stage),
                    ended=event.at if said.status.over else "",
                )
        case me.CampaignFound():
            _change(state.campaigns, said.campaign, findings=said.findings)
        case me.CandidateMade():
            if (campaign := state.campaigns.get(said.campaign)) is not None:
                _change(
                    state.campaigns,
                    said.campaign,
                    candidates=(*campaign.candidates, said.candidate),
                    **_charged(campaign, said.candidate.cost_usd),
                )
        case me.CampaignSplit():
            _change(state.campaigns, said.campaign, sets=said.sets, suite=said.suite)
        case me.ProposalsKept():
            if (campaign := state.campaigns.get(said.campaign)) is not None:
                _change(
                    state.campaigns,
                    said.campaign,
                    kept={**campaign.kept, said.key: said.blob},
                    usd=campaign.usd + said.usd,
                    prepaid=campaign.prepaid + said.usd,
                )
        case me.ShadowRun():
            if (campaign := state.campaigns.get(said.campaign)) is not None:
                ran = replace(said.shadow, at=event.at)
                seconds = campaign.seconds + ran.verdict.seconds
                _change(
                    state.campaigns,
                    said.campaign,
                    shadows=(*campaign.shadows, ran),
                    seconds=seconds,
                    usd=campaign.usd + ran.usd,
                )
        case me.CandidateJudged():
            _judged(state, said)


def _charged(campaign: Campaign, usd: float) -> dict[str, float]:
    """What a cost changes: what was paid before anything came of it is not counted again."""
    paid = min(usd, campaign.prepaid)
    return {"usd": campaign.usd + usd - paid, "prepaid": campaign.prepaid - paid}


def _judged(state: MastermindState, said: me.CandidateJudged) -> None:
    campaign = state.campaigns.get(said.campaign)
    judged = campaign.candidate(said.candidate) if campaign is not None else None
    if campaign is None or judged is None:
        return
    now = replace(judged, verdict=said.verdict, again=said.again)
    _change(
        state.campaigns,
        said.campaign,
        candidates=tuple(now if one.id == now.id else one for one in campaign.candidates),
        seconds=campaign.seconds + (0.0 if said.again else said.verdict.seconds),
    )
    if judged.key and not said.again:
        state.verdicts[judged.key] = (judged.id, said.verdict)


def _applications(state: MastermindState, event: Event, said: Payload) -> None:
    match said:
        case me.ApplyBegun():
            begun = replace(said.application, begun=event.at, ended="", undoing=False)
            _change(state.campaigns, said.campaign, application=begun, chosen=begun.candidate)
        case me.ApplyEnded():
            _moved(
                state,
                event,
                said.campaign,
                CampaignStatus.APPLIED,
                "applied",
                ended=event.at,
                tree_after=said.tree,
            )
        case me.RollbackBegun():
            campaign = state.campaigns.get(said.campaign)
            if campaign is not None and campaign.application is not None:
                undoing = replace(campaign.application, undoing=True)
                _change(state.campaigns, said.campaign, application=undoing)
        case me.RolledBack():
            _moved(state, event, said.campaign, said.status, said.reason, undoing=False, ended=event.at)
        case me.WatchTold():
            _change(state.campaigns, said.campaign, told=said.text)


def _moved(
    state: MastermindState, event: Event, campaign: str, status: CampaignStatus, text: str, **changes: Any
) -> None:
    """A campaign whose application changed stands elsewhere."""
    found = state.campaigns.get(campaign)
    if found is None or found.application is None:
        return
    _change(
        state.campaigns,
        campaign,
        status=status,
        message=text,
        application=replace(found.application, **changes),
        stages=(*found.stages, Stage(event.at, status, text, event.ref)),
        ended=event.at if status.over else "",
    )


def _identities(state: MastermindState, event: Event, said: Payload) -> None:
    match said:
        case me.IdentityCreated():
            state.identities[said.identity.address] = replace(said.identity, created=event.at)
        case me.IdentityDeprecated():
            _change(state.identities, said.address, deprecated=event.at, reason=said.reason)


def sets_text(sets: Mapping[str, int]) -> str:
    """How many checks a suite has, in words: `40 work, 160 choose, 400 sealed`."""
    order = ("work", "choose", "sealed")
    return ", ".join(f"{sets[split]} {split}" for split in order if split in sets)


def _change(table: dict[str, Any], key: str, **changes: Any) -> None:
    if key in table:
        table[key] = replace(table[key], **changes)


def _line(state: MastermindState, said: Payload) -> str:
    """What the log says of an event; empty where it says nothing."""
    match said:
        case me.JobAsked():
            return f"{said.job}: {said.verb} {said.argument}".rstrip()
        case me.JobEnded():
            return f"{said.job} {said.status}: {said.message}"
        case me.ItemAdded():
            return f"{said.item.id} ({said.item.target}, {said.item.priority}): {said.item.suggestion}"
        case me.ItemMerged():
            return f"{said.item} was found again"
        case me.ItemMoved():
            return f"{said.item} {said.status}: {said.message}".removesuffix(": ")
        case me.CampaignBegun():
            return f"{said.campaign} on {said.component.id}: {said.directive}"
        case me.CampaignStaged():
            return f"{said.campaign} {said.status}: {said.text}".removesuffix(": ")
        case me.CampaignFound():
            return f"{said.campaign}: {len(said.findings)} findings"
        case me.CampaignSplit():
            return f"{said.campaign} is judged by {sets_text(said.sets)}"
        case me.ProposalsKept():
            return f"{said.campaign} paid ${said.usd:.4f} for an answer, which is kept"
        case me.ModelCharged():
            failed = f": {said.trouble}" if said.trouble else ""
            return f"{said.model} was asked, {said.tokens:,} tokens, ${said.usd:.4f}{failed}"
        case me.ShadowRun():
            return f"{said.shadow.candidate} ran as a shadow: {said.shadow.verdict.ruling}"
        case me.CandidateMade():
            return f"{said.candidate.id} by {said.candidate.origin}: {said.candidate.title}"
        case me.CandidateJudged():
            why = "; ".join(said.verdict.reasons)
            return f"{said.candidate} {said.verdict.ruling}: {why}".removesuffix(": ")
        case me.ApplyBegun():
            return f"{said.application.candidate} is being applied"
        case me.ApplyEnded():
            return f"{said.campaign} is applied"
        case me.RollbackBegun():
            return f"{said.campaign} is being rolled back: {said.reason}".removesuffix(": ")
        case me.RolledBack():
            return f"{said.campaign} is rolled back: {said.reason}".removesuffix(": ")
        case me.WatchTold():
            return said.text
        case me.Noted():
            return said.text
        case me.IdentityCreated():
            return f"{said.identity.entity} can sign as {said.identity.address}"
        case me.IdentityDeprecated():
            return f"{said.address} is given up: {said.reason}".removesuffix(": ")
        case me.AutonomyChanged():
            return f"the backlog is worked off by itself by {said.job}" if said.job else said.reason
    return ""
