"""What happened since the operator last looked, in words: for the cockpit and for `do recap`.

A recorded shell as it was seen, in the format of asciinema (asciicast v2): it plays back in any player.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from app.commands.command import Answer, CommandHost, Values
from engine.api.workspace_engine import WorkspaceEngine
from engine.core import events as ev
from engine.core.agents import CommandReceived
from engine.core.goals import GoalStatus, ending_of
from engine.core.journal import Event, of_agent
from engine.core.state import AgentState
from engine.core.text import clean_line
from engine.inquiry.recap import KINDS, LISTED, Recap, recap
from engine.value import asdict, dataclass

COLUMNS, ROWS = 80, 24
"""The size of a terminal before its first one is on record."""


class NoRecordingError(Exception):
    """There is no such recording; the message says what there is."""


@dataclass(frozen=True, slots=True)
class ShellRecording:
    """What a terminal showed, and when."""

    columns: int
    rows: int
    at: float
    """When it began, in seconds since 1970."""
    pieces: tuple[tuple[float, str, str], ...]
    """Seconds since then, `o` for output or `r` for a new size (`80x24`), and the text."""

    @property
    def text(self) -> str:
        """The lines of the file."""
        head = {"version": 2, "width": self.columns, "height": self.rows, "timestamp": int(self.at)}
        return "\n".join(json.dumps(line) for line in [head, *map(list, self.pieces)]) + "\n"


def shell_recording(events: Iterable[Event], action: str = "") -> ShellRecording:
    """The recording of a shell; what was typed unseen is in none.

    Args:
        events: the agent's events in their order.
        action: the shell's action; the newest one where it is empty.

    Raises:
        NoRecordingError: there is no such shell.
    """
    shells: dict[str, list[tuple[float, str, str]]] = {}
    for event in events:
        if event.kind not in (ev.ActionOutput.kind, ev.ShellResized.kind):
            continue
        at = datetime.fromisoformat(event.at).timestamp()
        match ev.payload_of(event):
            case ev.ActionOutput(stream="terminal", action=name, text=text):
                shells.setdefault(name, []).append((at, "o", text))
            case ev.ShellResized(action=name, columns=columns, rows=rows):
                shells.setdefault(name, []).append((at, "r", f"{columns}x{rows}"))
    if not shells:
        raise NoRecordingError("no shell of the operator's is on record: take one with t")
    named = action or next(reversed(shells))
    if named not in shells:
        raise NoRecordingError(f"'{named[:40]}' is no shell; recorded: {', '.join(shells)}")
    pieces = shells[named]
    began = pieces[0][0]
    size = next((data for _, kind, data in pieces if kind == "r"), f"{COLUMNS}x{ROWS}")
    width, _, height = size.partition("x")
    timed = tuple((round(max(0.0, at - began), 3), kind, data) for at, kind, data in pieces)
    return ShellRecording(int(width), int(height), began, timed)


async def play_answer(host: CommandHost, values: Values) -> Answer:
    """`play [ACTION]`: the recording as text, one JSON value a line."""
    try:
        cast = shell_recording(await host.engine.store.read(host.context.agent), values["action"])
    except NoRecordingError as error:
        return 2, {}, str(error)
    return 0, {"columns": cast.columns, "rows": cast.rows, "pieces": len(cast.pieces)}, cast.text.rstrip()


async def write_recording(engine: WorkspaceEngine, agent: str, action: str) -> Path:
    """Write the recording beside the journal's directory; the new file.

    Raises:
        NoRecordingError: there is no such shell, or the file cannot be written or is there already.
    """
    cast = shell_recording(await engine.store.read(agent), action)
    target = engine.workspace / f"{agent}-{action or 'shell'}.cast"
    try:
        with target.open("x", encoding="utf-8", errors="surrogateescape") as file:
            file.write(cast.text)
    except OSError as error:
        raise NoRecordingError(f"{target}: {error.strerror}") from error
    return target


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
