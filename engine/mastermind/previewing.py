"""What a command to Mastermind would do; nothing is changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.domain.mastermind import MastermindState
from engine.domain.mastermind_commands import (
    ApplyCandidate,
    DeclineCampaign,
    ForMastermind,
    RollBack,
    SettleItem,
    StartJob,
)
from engine.mastermind.applying import Applier
from engine.mastermind.backlog import Backlog, find
from engine.mastermind.foretelling import forecast
from engine.mastermind.improving import Improver
from engine.mastermind.parts import Asked, JobRefused

CAMPAIGNS = ("evolve", "coord_improve")


async def preview(
    command: ForMastermind,
    improver: Improver,
    backlog: Backlog,
    applier: Applier,
    state: MastermindState,
    verbs: Sequence[str],
) -> dict[str, Any]:
    """See `engine.mastermind.mastermind.Mastermind.preview`."""
    try:
        match command:
            case StartJob(verb=verb) if verb in CAMPAIGNS:
                return await _campaign(command, improver, state)
            case StartJob(verb="coord_shadow", argument=name):
                waits = improver.waiting(improver.campaign(name))
                does = f"runs {waits} beside what is there, on sealed tasks drawn for this"
                return {"does": does, "reversible": None}
            case StartJob(verb="coord_process_backlog"):
                item = backlog.next()
                what = (
                    f"works on {item.id}: {item.suggestion}" if item is not None else "has nothing to work on"
                )
                return {"does": what, "asks": item is not None, "reversible": True}
            case StartJob(verb=verb) if verb not in verbs:
                return {"does": "nothing", "wrong": f"there is no job {verb}"}
            case ApplyCandidate(campaign=name, diff=diff):
                campaign = improver.campaign(name)
                candidate = campaign.candidate(improver.waiting(campaign, diff))
                assert candidate is not None
                does = f"writes {candidate.id}: +{candidate.added} -{candidate.removed} lines"
                return {"does": does, "paths": sorted(candidate.files), "reversible": True}
            case DeclineCampaign(campaign=name):
                return {"does": f"declines {improver.waiting(improver.campaign(name))}", "reversible": False}
            case RollBack(campaign=name):
                campaign = applier.newest(name)
                paths = sorted(campaign.application.before) if campaign.application is not None else []
                return {
                    "does": f"brings back what {campaign.id} changed",
                    "paths": paths,
                    "reversible": False,
                }
            case SettleItem(item=name, approve=approve):
                item = find(state, name)
                return {"does": f"{'approves' if approve else 'rejects'} {item.id}: {item.suggestion}"}
    except JobRefused as error:
        return {"does": "nothing", "wrong": str(error)}
    return {"does": f"begins {command.verb}" if isinstance(command, StartJob) else command.do}


async def _campaign(command: StartJob, improver: Improver, state: MastermindState) -> dict[str, Any]:
    wanted = command.argument
    name = wanted.strip().partition(" ")[0]
    if command.verb == "coord_improve" and name in await improver.components():
        wanted = name
    found = await improver.meant(wanted, command.component, alone=command.verb == "evolve")
    if len(found) > 1:
        return {
            "does": "asks which component is meant",
            "choices": [{"component": one.component.id, "rule": one.rule} for one in found],
            "asks": True,
        }
    (reading,) = found
    budget = improver.budget(Asked("", "", command.model_dump(), ""))
    cost = f"at most {budget.candidates} candidates, {budget.seconds:.0f} s of processor"
    return {
        "does": f"looks for something better in {reading.component.title}; nothing is applied without you",
        "component": reading.component.id,
        "rule": reading.rule,
        "measure": reading.component.measure,
        "unsearched": reading.component.unsearched,
        "paths": list(reading.component.paths),
        "sets": await improver.sets(reading.component),
        "forecast": forecast(state, reading.component, budget),
        "cost": cost + (f", ${budget.usd:.2f} for models" if budget.usd else ", no model"),
        "asks": True,
        "reversible": True,
    }
