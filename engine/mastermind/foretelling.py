"""What is known of a campaign before it begins: how it will be judged, and what it is likely to take.

Source: steering spec §5, story S5: the split of the task set, the budget and the forecast, before the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from engine.domain.improvement import Component
from engine.domain.mastermind import Campaign, CampaignBudget, MastermindState
from engine.mastermind.judge.suite import Split
from engine.mastermind.parts import Suite, SuiteMaker


@runtime_checkable
class Foretelling(Protocol):
    """A maker of suites that knows, without running anything, what a suite will ask."""

    async def sets(self, component: Component, workspace: Path) -> Mapping[str, str]:
        """What may be worked with, what chooses and what is sealed, in words by split."""


async def sets_of(maker: SuiteMaker, component: Component, workspace: Path) -> dict[str, str]:
    """What a component will be judged by, in words by split; empty where its maker does not say."""
    return dict(await maker.sets(component, workspace)) if isinstance(maker, Foretelling) else {}


def counts_of(suite: Suite) -> dict[str, int]:
    """How many checks a suite has, by split; empty where it does not say."""
    checks: Any = getattr(suite, "checks", None)
    return {split.value: len(checks(split)) for split in Split} if checks is not None else {}


def forecast(state: MastermindState, component: Component, budget: CampaignBudget) -> str:
    """What a campaign on a component is likely to take, by those before it.

    Args:
        state: what Mastermind knows.
        component: what is to be better.
        budget: what it may take at most.

    Returns:
        Processor time in seconds and USD, the least to the most, and what that rests on.
    """
    flown = [one for one in state.campaigns.values() if one.status.over and one.seconds > 0]
    same = [one for one in flown if one.component is not None and one.component.id == component.id]
    like = [one for one in flown if one.component is not None and one.component.kind is component.kind]
    found, whose = (same, "on it") if same else (like, "on such components")
    if not found:
        return "none: no campaign on anything like it was judged here yet; the budget is the most it takes"
    seconds = _range([min(one.seconds, budget.seconds) for one in found])
    said = f"{seconds} s of processor for judging"
    if budget.usd:
        said += f", ${_range([min(one.usd, budget.usd) for one in found], 2)} for models"
    better = sum(bool(one.chosen) for one in found)
    campaigns = "1 earlier campaign" if len(found) == 1 else f"{len(found)} earlier campaigns"
    return f"{said}; rests on {campaigns} {whose}, {better} of them with something better in the end"


def _range(values: Iterable[float], digits: int = 1) -> str:
    low, high = min(values := list(values)), max(values)
    return f"{low:.{digits}f}" if low == high else f"{low:.{digits}f} to {high:.{digits}f}"


def shadow_text(campaign: Campaign) -> str:
    """The newest shadow run of the candidate that waits, in a line; empty where there was none."""
    from engine.mastermind.verdicts import figures

    ran = next((one for one in reversed(campaign.shadows) if one.candidate == campaign.chosen), None)
    if ran is None:
        return ""
    drawn = "fresh sealed tasks" if ran.fresh else "the same sealed tasks, as none can be drawn anew"
    count = f"{ran.sealed} " if ran.sealed else ""
    return f"shadow of {ran.candidate}: {ran.verdict.ruling} on {count}{drawn}: {figures(ran.verdict)}"
