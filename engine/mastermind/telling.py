"""What Mastermind did and why, as JSON and in words. Source: mindX spec §1.2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from engine.domain.improvement import Component, ItemStatus
from engine.domain.mastermind import BacklogItem, Campaign, JobStatus, MastermindState
from engine.domain.text import clean_line
from engine.mastermind.verdicts import figures

CHOICES = 8
"""Components, items and campaigns that are listed in one line."""


def report(campaign: Campaign) -> dict[str, Any]:
    """A campaign as JSON, without the texts of its candidates."""
    judged = [
        {
            "id": one.id,
            "title": one.title,
            "origin": one.origin,
            "ruling": str(one.verdict.ruling) if one.verdict is not None else "not judged",
            "figures": figures(one.verdict),
            "reasons": list(one.verdict.reasons) if one.verdict is not None else [],
        }
        for one in campaign.candidates
    ]
    return {
        "campaign": campaign.id,
        "component": campaign.component.id if campaign.component is not None else "",
        "rule": campaign.rule,
        "status": str(campaign.status),
        "seed": campaign.seed,
        "findings": [one.text for one in campaign.findings],
        "candidates": judged,
        "chosen": campaign.chosen,
        "seconds": round(campaign.seconds, 3),
        "usd": campaign.usd,
    }


def status(state: MastermindState, listed: Sequence[BacklogItem]) -> dict[str, Any]:
    """What Mastermind did and why, as JSON."""
    items = [
        {
            "id": one.id,
            "target": one.target,
            "suggestion": one.suggestion,
            "priority": one.priority,
            "status": str(one.status),
            "attempts": one.attempts,
            "evidence": list(one.evidence[:5]),
        }
        for one in listed[:50]
    ]
    return {
        "jobs": {str(one): sum(job.status is one for job in state.jobs.values()) for one in JobStatus},
        "running": [asdict(job) for job in state.jobs.values() if not job.status.over],
        "backlog": items,
        "campaigns": [report(one) for one in list(state.campaigns.values())[-10:]],
        "autonomous": state.autonomous,
        "log": [asdict(line) for line in state.log[-50:]],
    }


def told(state: MastermindState) -> str:
    """What Mastermind did and why, for a person."""
    running = [
        f"{one.id} {one.verb} {one.argument}".rstrip() for one in state.jobs.values() if not one.status.over
    ]
    items = list(state.items.values())
    opened = sum(one.status in (ItemStatus.PENDING, ItemStatus.PENDING_APPROVAL) for one in items)
    lines = [
        f"jobs under way: {', '.join(running) or 'none'}",
        f"backlog: {opened} open of {len(items)}",
        *(
            f"{one.id} on {one.component.id if one.component else '?'}: {one.status}, {one.message}"
            for one in list(state.campaigns.values())[-10:]
        ),
        *(f"{line.at[:19]} {line.topic}: {line.text}" for line in state.log[-20:]),
    ]
    return "\n".join(clean_line(line, limit=400) for line in lines)


def listed(there: Mapping[str, Component]) -> str:
    """The components that there are, in words."""
    some = ", ".join(list(there)[:CHOICES])
    more = f" and {len(there) - CHOICES} more" if len(there) > CHOICES else ""
    return f"components: {some}{more}" if some else "there is no component here yet"
