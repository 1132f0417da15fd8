"""What happened since the operator last looked, in words: for the cockpit and for `do recap`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from engine.domain.goal import GoalStatus
from engine.domain.state import AgentState
from engine.domain.text import clean_line
from engine.engine import Engine
from engine.inquiry.recap import KINDS, LISTED, Recap, recap
from engine.journal.event import Event, of_agent
from engine.journal.events import CommandReceived

Answer = tuple[int, dict[str, Any], str]
LOOKED_BACK = 500
"""Commands among which the operator's last one is looked for."""


async def last_command(engine: Engine, operator: str) -> int:
    """The place of the last command of this operator; 0 when there is none among the newest."""
    found = await engine.store.last(LOOKED_BACK, kind=CommandReceived.kind)
    return next((event.seq for event in reversed(found) if event.actor == f"operator:{operator}"), 0)


async def recap_of(engine: Engine, since: int) -> Recap:
    """What happened behind a place of the journal.

    Raises:
        JournalError: the journal cannot be read.
    """
    # Outputs and the like are only counted; their bodies are not kept.
    events: list[Event] = [
        event if event.kind in KINDS else event._replace(body="")
        async for event in engine.events(since, follow=False)
    ]
    now = {agent: await engine.view(agent) for agent in engine.agents}
    before: dict[str, AgentState] = {}
    for event in events:
        # The first event of each stream says which state was before it.
        if of_agent(event.stream) and event.stream not in before:
            first = event.version == 1
            before[event.stream] = (
                AgentState() if first else await engine.view(event.stream, event.version - 1)
            )
    return recap(events, now, before, since=since)


async def tell_recap(engine: Engine, argument: str, operator: str) -> Answer:
    """`recap [SEQ]`: since that place, else since the operator's last command."""
    if argument and not (argument.isascii() and argument.isdecimal() and len(argument) < 19):
        return 2, {}, f"'{argument[:40]}' is no place of the journal; recap takes the number of an event"
    since = int(argument) if argument else await last_command(engine, operator)
    told = await recap_of(engine, since)
    return 0, asdict(told), "\n".join(f"{label:<14} {text}" for label, text in recap_facts(told))


def recap_line(told: Recap) -> str:
    """What happened, in a line; empty where nothing did that one would want to be told."""
    if told.quiet:
        return ""
    achieved = sum(goal.status is GoalStatus.ACHIEVED for goal in told.goals)
    others = len(told.goals) - achieved
    parts = [
        f"{achieved} goal{'s' * (achieved != 1)} achieved" if achieved else "",
        f"{others} ended otherwise" if others else "",
        f"{told.failures} failure{'s' * (told.failures != 1)}" if told.failures else "",
        f"{', '.join(agent for agent, _ in told.waiting)} needs you" if told.waiting else "",
        f"{len(told.stuck)} × stuck" if told.stuck else "",
        _cost(told) if told.calls else "",
        f"{len(told.files)} file{'s' * (len(told.files) != 1)} written" if told.files else "",
    ]
    return " · ".join(part for part in parts if part)


def recap_facts(told: Recap) -> list[tuple[str, str]]:
    """What happened, one fact a row, with labels; cleaned."""
    rows = [("events", f"{told.events:,} (behind {told.since}, up to {told.until})")]
    for goal in told.goals:
        why = f": {goal.reason}" if goal.reason and goal.status is not GoalStatus.ACHIEVED else ""
        rows.append((f"goal {goal.status}", f"{goal.agent} {goal.goal} {goal.text}{why} ({goal.event})"))
    rows += [("needs you", f"{agent}: {why}") for agent, why in told.waiting]
    rows += [("stuck", f"{one.agent} {one.message} ({one.event})") for one in told.stuck]
    rows.append(("actions", f"{told.actions}, {told.failed_actions} failed"))
    if told.failures:
        rows.append(("failures", f"{told.failures}; {told.recovered} recoveries worked"))
        rows += [("failure", f"{one.agent} {one.message} ({one.event})") for one in told.troubles]
    if told.calls:
        rows.append(("models", f"{told.calls} calls, {told.tokens:,} tokens, {_cost(told)}"))
    rows += [("file", f"{path} by {agent}") for agent, path in told.files[:LISTED]]
    if len(told.files) > LISTED:
        rows.append(("files", f"and {len(told.files) - LISTED} more"))
    return [(label, clean_line(text)) for label, text in rows]


def _cost(told: Recap) -> str:
    return f"${told.cost_usd:.4f}" + (f" and {told.unpriced} calls of unknown price" * bool(told.unpriced))
