"""`pilothouse sessions report`: a session or an agent as a document in Markdown."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

from app.cli.options import Answer
from app.commands.review import recap_facts
from app.projection.event_lines import line_of
from engine.core import events as ev
from engine.core.command import NOT_TOLD
from engine.core.fold import apply, copy_state
from engine.core.journal import Event, of_agent
from engine.core.plan import StepStatus
from engine.core.state import AgentState
from engine.core.store.stored import StoredJournal
from engine.core.text import clean, clean_line
from engine.inquiry.recap import KINDS, recap
from engine.value import asdict

_SIGNS = re.compile(r"([!-/:-@\[-`{-~])")
TEXT_LIMIT = 2_000
"""Characters of one cell."""
Rows = list[tuple[str, ...]]
GOALS = ("goal", "agent", "text", "outcome", "why", "steps that are done")
HAPPENED = ("at", "agent", "event", "what", "by")


async def write_report(
    store: StoredJournal, title: str, first: int, last: int, stream: str | None, target: Path
) -> Answer:
    """Write what is between two places of the journal, or an agent's part of it, to a new file."""
    if target.suffix != ".md":
        return 2, {}, f"{target.name}: a report is written to a file that ends in .md"
    states: dict[str, AgentState] = {}
    before: dict[str, AgentState] = {}
    inside: list[Event] = []
    happened: Rows = []
    async for event in store.events(0, stream=stream):
        if event.seq > last:
            break
        state = states.setdefault(event.stream, AgentState()) if of_agent(event.stream) else None
        if event.seq >= first:
            if state is not None and event.stream not in before:
                before[event.stream] = copy_state(state)
            inside.append(event if event.kind in KINDS else event._replace(body=""))
            if words := _words(event):
                by = event.actor.removeprefix("operator:")
                happened.append((event.at[:19].replace("T", " "), event.stream, event.ref, words, by))
        if state is not None:
            apply(state, event)
    now = {agent: states[agent] for agent in before}
    summary = recap(inside, now, before, since=first - 1)
    facts = [("agents", ", ".join(sorted(before))), *recap_facts(summary)]
    tables = {"Goals": (GOALS, _goals(before, now)), "What happened": (HAPPENED, happened)}
    try:
        size = await asyncio.to_thread(_write, target, as_markdown(title, facts, tables))
    except FileExistsError:
        return 2, {}, f"{target} exists already: choose another name"
    except OSError as error:
        return 2, {}, f"{target} cannot be written: {error.strerror}"
    rows = {name: len(table[1]) for name, table in tables.items()}
    answer = {"ok": True, "file": str(target), "bytes": size, "facts": asdict(summary), "rows": rows}
    return 0, answer, f"{target}: {size} bytes"


def _words(event: Event) -> str:
    """What an event says; commands as they were given, and nothing of what is too small to tell."""
    payload = ev.payload_of(event)
    if isinstance(payload, ev.CommandReceived):
        fields = {name: value for name, value in payload.command.items() if name not in NOT_TOLD}
        words = json.dumps(fields, ensure_ascii=False, sort_keys=True) if fields else ""
        return f"{payload.command.get('do', '')} {words}"
    line = line_of(event, payload)
    return f"{line.glyph} {line.text}" if line is not None else ""


def _goals(before: dict[str, AgentState], now: dict[str, AgentState]) -> Rows:
    """The goals that were pursued, with what is shown of each."""
    rows: Rows = []
    for agent, state in now.items():
        for goal in state.goals.values():
            known = before[agent].goals.get(goal.id)
            if known is None or not known.status.terminal:
                plan = state.plans.get(goal.id)
                done = [step for step in plan.steps if step.status is StepStatus.COMPLETED] if plan else []
                text, shown = (
                    "\n|| ".join((goal.text, *goal.criteria)),
                    [f"{s.id} {s.description}: {s.summary}" for s in done],
                )
                rows.append((goal.id, agent, text, goal.status.value, str(goal.reason), "\n".join(shown)))
    return rows


def _write(target: Path, text: str) -> int:
    with target.open("x", encoding="utf-8") as file:
        file.write(text)
    return target.stat().st_size


def as_markdown(
    title: str, facts: list[tuple[str, str]], tables: dict[str, tuple[tuple[str, ...], Rows]]
) -> str:
    """A report as GitHub's Markdown; recorded text is plain text in it, whatever it holds."""
    parts = [f"# {_inert(title)}", "", *(f"- {label}: {_inert(value)}" for label, value in facts)]
    for name, (columns, rows) in tables.items():
        head = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
        body = ["| " + " | ".join(map(_inert, row)) + " |" for row in rows]
        parts += ["", f"## {name}", "", *([*head, *body] if rows else ["Nothing."])]
    return "\n".join(parts) + "\n"


def _inert(text: str) -> str:
    """The text on one line with every sign escaped that Markdown or HTML could take for its own."""
    text = clean(text[:TEXT_LIMIT], limit=TEXT_LIMIT + 1)
    joined = " · ".join(filter(None, (clean_line(line, limit=TEXT_LIMIT + 1) for line in text.split("\n"))))
    return _SIGNS.sub(r"\\\1", joined).replace("\\&", "&amp;").replace("\\<", "&lt;").replace("\\>", "&gt;")
