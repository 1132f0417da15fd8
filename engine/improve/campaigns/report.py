"""What a campaign will probably cost, what its verdict says, and what Mastermind did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import isnan
from typing import Any

from engine.core.improvement import (
    Campaign,
    CampaignBudget,
    Candidate,
    Component,
    Concern,
    MastermindState,
    Proposal,
    Ruling,
    Verdict,
)
from engine.core.text import clean, clean_line
from engine.improve.ports import Split, Suite


def count_checks(suite: Suite) -> dict[str, int]:
    """How many checks a suite has, by split."""
    return {split.value: len(suite.checks(split)) for split in Split}


def estimate_campaign(state: MastermindState, component: Component, budget: CampaignBudget) -> str:
    """What a campaign on a component is likely to take, by those before it.

    Args:
        state: what Mastermind knows.
        component: what is to be better.
        budget: what it may take at most.

    Returns:
        Processor time in seconds and USD, the least to the most, and what that rests on.
    """
    judged = [
        campaign
        for campaign in state.campaigns.values()
        if campaign.status.over and campaign.seconds > 0 and campaign.component is not None
    ]
    same = [run for run in judged if run.component is not None and run.component.id == component.id]
    like = [run for run in judged if run.component is not None and run.component.kind is component.kind]
    alike, whose = (same, "on it") if same else (like, "on such components")
    if not alike:
        return "none: no campaign on anything like it was judged here yet; the budget is the most it takes"
    seconds = _range([min(campaign.seconds, budget.seconds) for campaign in alike])
    text = f"{seconds} s of processor for judging"
    if budget.usd:
        text += f", ${_range([min(campaign.usd, budget.usd) for campaign in alike], 2)} for models"
    better = sum(bool(campaign.chosen) for campaign in alike)
    campaigns = "1 earlier campaign" if len(alike) == 1 else f"{len(alike)} earlier campaigns"
    return f"{text}; rests on {campaigns} {whose}, {better} of them with something better in the end"


def _range(values: Iterable[float], digits: int = 1) -> str:
    low, high = min(values := list(values)), max(values)
    return f"{low:.{digits}f}" if low == high else f"{low:.{digits}f} to {high:.{digits}f}"


def shadow_text(campaign: Campaign) -> str:
    """The newest shadow run of the candidate that waits, in a line; empty where there was none."""
    ran = next((shadow for shadow in reversed(campaign.shadows) if shadow.candidate == campaign.chosen), None)
    if ran is None:
        return ""
    drawn = "fresh sealed tasks" if ran.fresh else "the same sealed tasks, as none can be drawn anew"
    count = f"{ran.sealed} " if ran.sealed else ""
    return (
        f"shadow of {ran.candidate}: {ran.verdict.ruling} on {count}{drawn}: {verdict_figures(ran.verdict)}"
    )


def judged_better(candidate: Candidate) -> bool:
    """Whether the judge found a candidate better."""
    return candidate.verdict is not None and candidate.verdict.ruling is Ruling.BETTER


RIGHT = (Concern.TEST, Concern.ROBUSTNESS)
"""What is mended without anything becoming cheaper."""


def is_promising(seen: Verdict, proposal: Proposal) -> bool:
    """Whether what may be seen speaks for a candidate enough to decide by what is sealed.

    What is seen decides nothing: it has few pairs, and a check that is missing may fail no test there is. So
    only what is ruled out is left out: what broke or cheated, and what gains nothing and mends nothing.
    """
    if seen.ruling is not Ruling.NO_BETTER:
        return seen.ruling is Ruling.BETTER
    mends = any(answer.concern in RIGHT for answer in proposal.answers)
    return mends or seen.gain is None or seen.gain.high > 0


def verdict_figures(verdict: Verdict | None) -> str:
    """The figures of a verdict in a line."""
    if verdict is None:
        return "not judged"
    parts = []
    if (gain := verdict.gain) is not None:
        parts.append(f"{gain.words} [{gain.low:.3g}, {gain.high:.3g}] in {gain.pairs} pairs")
    if verdict.mended:
        parts.append(f"mends {', '.join(verdict.mended[:5])}")
    return "; ".join(parts) or "; ".join(verdict.reasons) or str(verdict.ruling)


def cleaned_verdict(verdict: Verdict) -> Verdict:
    """A verdict as the journal takes it: no figure that is no number, every text cleaned."""
    gain = verdict.gain
    if gain is not None:
        figures: dict[str, Any] = {
            name: _number(getattr(gain, name)) for name in ("mean", "low", "high", "before", "after")
        }
        gain = replace(gain, **figures)
    return replace(
        verdict,
        gain=gain,
        reasons=tuple(clean(reason, limit=2_000) for reason in verdict.reasons),
        mended=tuple(clean_line(check) for check in verdict.mended),
        broken=tuple(clean_line(check) for check in verdict.broken),
        seconds=_number(verdict.seconds),
    )


def _number(value: float) -> float:
    """A number that JSON has; endless ones are the largest."""
    if isnan(value):
        return 0.0
    return max(-1e308, min(1e308, value))


CHOICES = 8
"""Components, items and campaigns that are listed in one line."""


def report(campaign: Campaign) -> dict[str, Any]:
    """A campaign as JSON, without the texts of its candidates."""
    judged = [
        {
            "id": candidate.id,
            "title": candidate.title,
            "origin": candidate.origin,
            "ruling": str(candidate.verdict.ruling) if candidate.verdict is not None else "not judged",
            "figures": verdict_figures(candidate.verdict),
            "reasons": list(candidate.verdict.reasons) if candidate.verdict is not None else [],
        }
        for candidate in campaign.candidates
    ]
    return {
        "campaign": campaign.id,
        "component": campaign.component.id if campaign.component is not None else "",
        "rule": campaign.rule,
        "status": str(campaign.status),
        "seed": campaign.seed,
        "findings": [finding.text for finding in campaign.findings],
        "candidates": judged,
        "chosen": campaign.chosen,
        "seconds": round(campaign.seconds, 3),
        "usd": campaign.usd,
    }


def components_text(there: Mapping[str, Component]) -> str:
    """The components that there are, in words."""
    some = ", ".join(list(there)[:CHOICES])
    more = f" and {len(there) - CHOICES} more" if len(there) > CHOICES else ""
    return f"components: {some}{more}" if some else "there is no component here yet"
