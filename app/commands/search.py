"""Searching everything, from the command line and for the cockpit; and a hit shown whole."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from app.commands.command import Answer, CommandHost, Values
from app.commands.settings import Settings
from engine.api.workspace_engine import WorkspaceEngine
from engine.core.journal import Event
from engine.core.ports import Ports
from engine.core.store.opening import open_journal
from engine.core.text import clean_line
from engine.inquiry.event_search import EventSearch
from engine.inquiry.search import (
    Ask,
    Batch,
    Hit,
    MemorySearch,
    Search,
    SearchError,
    SearchQuery,
    Source,
    Tell,
    newest_first,
    parse_query,
    run_search,
)
from engine.memory.errors import MemoryFault, MemoryUnavailable
from engine.memory.open_memory import MemoryReader

FIELD_LIMIT = 400_000
"""Characters of one field of an event that are shown."""


async def search_workspace(
    workspace: Path, text: str, *, agent: str = "", kind: str = "", limit: int = 100
) -> Answer:
    """Search a workspace from its files, also while an engine runs.

    Raises:
        JournalError: there is no journal, or it cannot be read.
    """
    try:
        what = parse_query(text, agent=agent, kind=kind, limit=limit)
    except SearchError as error:
        return 2, {}, str(error)
    clock = Ports().clock
    store = await open_journal(workspace, clock=clock, read_only=True)
    memory: MemoryReader | None = None
    try:
        if Source.MEMORY in what.sources:
            try:
                embedder = (await asyncio.to_thread(Settings.load, workspace)).embedder
                memory = await MemoryReader.look(workspace, store, clock=clock, embedder=embedder)
            except MemoryUnavailable as error:
                return 2, {}, str(error)
        ask: Ask = memory.ask_by_name if memory is not None else _no_memory
        return await _answered(what, _sources(workspace, ask))
    finally:
        if memory is not None:
            await memory.close()
        await store.close()


async def _no_memory(verb: str, arguments: Mapping[str, Any]) -> Any:
    raise MemoryUnavailable("Memory is not looked into.")


async def search_open(host: CommandHost, values: Values) -> Answer:
    """Search the workspace of a live engine once, all of it."""
    try:
        what = parse_query(values["words"])
    except SearchError as error:
        return 2, {}, str(error)
    return await _answered(what, sources_of(host.engine))


async def stream_search(engine: WorkspaceEngine, what: SearchQuery, tell: Tell) -> None:
    """Search the workspace of a live engine, with each find as it comes; cancel it to end it."""
    await run_search(what, sources_of(engine), tell)


def sources_of(engine: WorkspaceEngine) -> list[tuple[Source, Search]]:
    """Where a live engine's workspace is searched."""
    return _sources(engine.workspace, engine.recall)


def _sources(workspace: Path, ask: Ask) -> list[tuple[Source, Search]]:
    return [(Source.EVENT, EventSearch(workspace)), (Source.MEMORY, MemorySearch(ask))]


async def _answered(what: SearchQuery, sources: Sequence[tuple[Source, Search]]) -> Answer:
    batches: list[Batch] = []
    await run_search(what, sources, batches.append)
    hits = newest_first([hit for batch in batches for hit in batch.hits])
    over = {batch.source: batch for batch in batches if batch.done}
    looked = {source.value: batch.looked_at for source, batch in over.items()}
    problems = {source.value: batch.problem for source, batch in over.items() if batch.problem}
    more = [source.value for source, batch in over.items() if batch.more]
    answer = {"results": [asdict(hit) for hit in hits], "looked_at": looked, "more": more}
    lines = [line_of_hit(hit) for hit in hits] or ["nothing was found"]
    lines += [f"({note})" for note in search_notes(list(over.values()))]
    return (1 if problems else 0), {**answer, "problems": problems}, "\n".join(lines)


def search_notes(batches: Sequence[Batch]) -> list[str]:
    """What is to be said of a search beside its hits, in a sentence each."""
    more = [
        f"there are more {batch.source.several} than shown: use more words" for batch in batches if batch.more
    ]
    return more + [f"{batch.source.several}: {batch.problem}" for batch in batches if batch.problem]


def line_of_hit(hit: Hit) -> str:
    """A hit in a line, cleaned."""
    who = clean_line(hit.agent, limit=40) or hit.source.value
    ref, kind = clean_line(hit.ref, limit=120), clean_line(hit.kind, limit=40)
    return f"{hit.at[:19]}  {who:<12} {kind:<20} {ref:<18} {clean_line(hit.text)}"


# ------------------------------------------------------------------ one hit, whole


async def full_hit(engine: WorkspaceEngine, source: Source, ref: str) -> list[tuple[str, str]]:
    """A hit in full: titles and texts, as they were recorded; a title alone where it cannot be had."""
    match source:
        case Source.EVENT:
            event = await engine.store.get(ref)
            return event_parts(event) if event is not None else [(f"there is no event {ref}", "")]
        case Source.MEMORY:
            return await _memory_parts(engine, ref)


def event_parts(event: Event) -> list[tuple[str, str]]:
    """An event field by field."""
    causes = f" · because of {', '.join(event.causes)}" if event.causes else ""
    head = f"{event.ref} · {event.kind} · {event.at[:23]} · tick {event.tick} · by {event.actor}{causes}"
    parts = [(head, "")]
    for name, value in json.loads(event.body).items():
        if value not in (None, "", [], {}):
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
            cut = f"\n… {len(text) - FIELD_LIMIT} characters more" if len(text) > FIELD_LIMIT else ""
            parts.append((name.replace("_", " "), text[:FIELD_LIMIT] + cut))
    return parts


async def _memory_parts(engine: WorkspaceEngine, ident: str) -> list[tuple[str, str]]:
    try:
        card = await engine.recall("get_memory_by_id", {"memory_id": ident})
    except MemoryFault as error:
        return [(str(error), "")]
    memory = card.memory
    head = f"{memory.id} · {memory.level} {memory.type} · {memory.workflow} · from {memory.source or '?'}"
    parts = [(head, memory.content), ("description", memory.description), ("reasoning", memory.reasoning)]
    return [parts[0], *(part for part in parts[1:] if part[1])]
