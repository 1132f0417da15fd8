"""What happened since the operator last looked, in words: for the cockpit and for `do recap`."""

from __future__ import annotations

from app.commands.command import Answer, CommandHost, Values
from engine.api.workspace_engine import WorkspaceEngine
from engine.core.agents import CommandReceived
from engine.core.goals import GoalStatus, ending_of
from engine.core.journal import Event, of_agent
from engine.core.state import AgentState
from engine.core.text import clean_line
from engine.inquiry.recap import KINDS, LISTED, Recap, recap
from engine.value import asdict

LOOKED_BACK = 500
"""Commands among which the operator's last one is looked for."""


async def last_command(engine: WorkspaceEngine, operator: str) -> int:
    """The place of the last command of this operator; 0 when there is none among the newest."""
    events = await engine.store.last(LOOKED_BACK, kind=CommandReceived.kind)
    return next((event.seq for event in reversed(events) if event.actor == f"operator:{operator}"), 0)


async def recap_of(engine: WorkspaceEngine, since: int) -> Recap:
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


async def recap_answer(host: CommandHost, values: Values) -> Answer:
    """`recap [SEQ]`: since that place, else since the operator's last command."""
    since = int(values["event"] or await last_command(host.engine, host.operator))
    past = await recap_of(host.engine, since)
    return 0, asdict(past), "\n".join(f"{label:<14} {text}" for label, text in recap_facts(past))


def recap_line(message: Recap) -> str:
    """What happened, in a line; empty where nothing did that one would want to be told."""
    if message.quiet:
        return ""
    marks = [ending_of(goal.status, goal.reason)[0] for goal in message.goals]
    achieved, partly = marks.count("achieved"), marks.count("partly")
    others = len(marks) - achieved - partly
    parts = [
        f"{achieved} goal{'s' * (achieved != 1)} achieved" if achieved else "",
        f"{partly} partly" if partly else "",
        f"{others} ended otherwise" if others else "",
        f"{message.failures} failure{'s' * (message.failures != 1)}" if message.failures else "",
        f"{', '.join(agent for agent, _ in message.waiting)} needs you" if message.waiting else "",
        f"{len(message.stuck)} × stuck" if message.stuck else "",
        _cost(message) if message.calls else "",
        f"{len(message.files)} file{'s' * (len(message.files) != 1)} written" if message.files else "",
    ]
    return " · ".join(part for part in parts if part)


def recap_facts(message: Recap) -> list[tuple[str, str]]:
    """What happened, one fact a row, with labels; cleaned."""
    rows = [("events", f"{message.events:,} (behind {message.since}, up to {message.until})")]
    for goal in message.goals:
        why = f": {goal.reason}" if goal.reason and goal.status is not GoalStatus.ACHIEVED else ""
        _, ended = ending_of(goal.status, goal.reason)
        rows.append((f"goal {ended}", f"{goal.agent} {goal.goal} {goal.text}{why} ({goal.event})"))
    rows += [("needs you", f"{agent}: {why}") for agent, why in message.waiting]
    rows += [("stuck", f"{each.agent} {each.message} ({each.event})") for each in message.stuck]
    rows.append(("actions", f"{message.actions}, {message.failed_actions} failed"))
    if message.failures:
        rows.append(("failures", f"{message.failures}; {message.recovered} recoveries worked"))
        rows += [
            ("failure", f"{trouble.agent} {trouble.message} ({trouble.event})")
            for trouble in message.troubles
        ]
    if message.calls:
        rows.append(("models", f"{message.calls} calls, {message.tokens:,} tokens, {_cost(message)}"))
    rows += [("file", f"{path} by {agent}") for agent, path in message.files[:LISTED]]
    if len(message.files) > LISTED:
        rows.append(("files", f"and {len(message.files) - LISTED} more"))
    return [(label, clean_line(text)) for label, text in rows]


def _cost(message: Recap) -> str:
    return f"${message.cost_usd:.4f}" + (
        f" and {message.unpriced} calls of unknown price" * bool(message.unpriced)
    )
