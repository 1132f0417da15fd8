"""What a line of the command bar would do, said before it is done.

A command may declare a preview; of all others the fields are shown of what they send to the engine, and how
that is taken back. Of a command to Mastermind it is said what it means, costs and asks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from app.commands.command import CommandHost, Request
from app.projection.improve_text import Choice, Preview
from engine.agent.steering.undo import CANNOT, COMPENSATIONS
from engine.core.campaigns import CancelJob, ForMastermind, SettleItem, StartJob
from engine.core.command import Command as EngineCommand
from engine.core.text import clean_line

VALUE_LIMIT = 400
PATHS_SHOWN = 8
_FACTS = {
    "target": "component",
    "read as": "rule",
    "measured by": "measure",
    "budget": "cost",
    "forecast": "forecast",
    "workspace": "left",
}
"""Labels of what a preview says of a campaign, by the names that Mastermind says it under."""
START_EFFECTS: Mapping[str, tuple[str, str, str]] = {
    "coord_analyze": (
        "looks at everything that can be improved and puts what is found into the backlog",
        "",
        "items of the backlog are rejected one by one",
    ),
    "deploy": (
        "reads the directive as steps and shows them",
        "to approve the steps before any is done",
        "agents that it creates can be deleted; their actions are held by the gate as all are",
    ),
    "agent_build": (
        "builds an agent of a skill in seven phases and registers it",
        "its type where the text does not tell, and about folders that agents can write to",
        "agent_remove takes it out",
    ),
    "campaign_resume": (
        "resumes a campaign; what was judged is not judged again",
        "to look at what is found better",
        "nothing is applied without you",
    ),
}
"""Of verbs that begin a job: what they do, what they will ask, what takes it back."""


async def default_preview(_host: CommandHost, request: Request) -> Preview:
    """The fields of the engine's command and how it is taken back, or that nothing changes."""
    if request.sends is not None:
        facts = fields_of(request.sends, request.context.agent)
        return Preview(request.line, request.command.help, (*facts, ("undo", undo_text(request.sends))))
    given = " ".join(_value_text(value) for value in request.values.values() if value not in (None, "", ()))
    on = (("on", clean_line(given, limit=VALUE_LIMIT)),) if given else ()
    undo = (("undo", "it changes nothing"),) if not request.changes else ()
    return Preview(request.line, request.command.help, (*on, *undo))


def refused_preview(line: str, wrong: str) -> Preview:
    """A preview of what would be refused."""
    return Preview(line, "nothing", wrong=clean_line(wrong, limit=1_000))


def undo_text(command: EngineCommand) -> str:
    """How a command of the engine is taken back."""
    if type(command) in COMPENSATIONS:
        return "yes: undo"
    if why := CANNOT.get(command.do):
        return f"no: {why.format(at='EVENT')}"
    return "not by undo; rewind takes the agent back"


def fields_of(command: EngineCommand, agent: str) -> list[tuple[str, str]]:
    """What a command holds besides what it is, as far as it was given."""
    given = command.model_dump(exclude_defaults=True, exclude={"do"})
    given.setdefault("agent", agent)
    return [
        (name.replace("_", " "), clean_line(_value_text(value), limit=VALUE_LIMIT))
        for name, value in given.items()
        if value not in ("", None, ())
    ]


def _value_text(value: Any) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


async def preview_server(host: CommandHost, request: Request) -> Preview:
    """What leave for a server would do; the server's entry is shown whole."""
    preview = await default_preview(host, request)
    facts = request.context.servers.get(request.values["server"])
    return preview if facts is None else preview.with_facts((*facts.facts, preview.facts[-1]))


# ------------------------------------------------------------------ commands to Mastermind


async def preview_improve(host: CommandHost, request: Request) -> Preview:
    """What a command to Mastermind would do, from what it says itself."""
    command, help_text = request.sends, request.command.help
    if not isinstance(command, ForMastermind):
        return await default_preview(host, request)
    facts = await (await host.engine.mastermind()).preview(command)
    refusal = clean_line(str(facts.get("wrong", "")), limit=VALUE_LIMIT)
    effects = START_EFFECTS.get(command.verb) if isinstance(command, StartJob) else None
    does, asks, undo = effects or (str(facts.get("does") or help_text), "", "")
    if effects is None and facts.get("asks"):
        asks = "before anything is applied, or where it is not certain what is meant"
    rows = _fact_rows(facts)
    if isinstance(command, StartJob):
        rows.append(("model", host.engine.model_name or "none is set; nothing that needs one is done"))
        rows.append(("runs as", "a background job; job_cancel ends it"))
    rows += [("asks", asks or "nothing"), ("undo", undo or _improve_undo(command, facts))]
    choices = tuple(
        Choice(clean_line(str(each.get("component", ""))), clean_line(str(each.get("rule", "")), limit=200))
        for each in facts.get("choices", ())
    )
    return Preview(request.line, clean_line(does, limit=VALUE_LIMIT), tuple(rows), choices, refusal)


def _fact_rows(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What Mastermind says of a command, with labels."""
    rows = [
        (label, clean_line(str(facts[name]), limit=VALUE_LIMIT))
        for label, name in _FACTS.items()
        if facts.get(name)
    ]
    for split, what in dict(facts.get("sets", {})).items():
        rows.append((clean_line(str(split)), clean_line(str(what), limit=VALUE_LIMIT)))
    paths = [clean_line(str(path), limit=120) for path in facts.get("paths", ())]
    if paths:
        more = f" and {len(paths) - PATHS_SHOWN} more" if len(paths) > PATHS_SHOWN else ""
        rows.append(("files", ", ".join(paths[:PATHS_SHOWN]) + more))
    return rows


def _improve_undo(command: ForMastermind, facts: Mapping[str, Any]) -> str:
    if isinstance(command, CancelJob):
        return "no: it has to be begun anew"
    if isinstance(command, SettleItem):
        return "no: an item is settled once"
    if command.do == "mastermind_apply":
        return "yes: coord_rollback brings the files back"
    reversible = facts.get("reversible")
    if reversible is None:
        return "it changes no files"
    return "yes: nothing is applied without you, and coord_rollback undoes it" if reversible else "no"
