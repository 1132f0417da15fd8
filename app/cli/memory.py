"""`pilothouse memory`: what agents remember, from the command line.

Looking continues beside an engine that has the workspace open; adding is done by it, or by an engine of this
program's own.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from app.cli.beside import answer_in_engine
from app.cli.options import Answer, filled, flag, print_error, run_answer, workspace_of
from app.commands.embedder import describe, keep_alone
from app.commands.headless import open_engine
from app.commands.settings import Settings
from app.gateways.engine_client import EngineClient
from app.gateways.socket_server import served
from engine.api.closed_workspace import recorded
from engine.core import commands as cmd
from engine.core.memory import Judgement
from engine.core.ports import Ports
from engine.core.store.port import DATA_DIRECTORY, DATABASE
from engine.core.text import clean_line, short_duration
from engine.memory.errors import MemoryFault
from engine.memory.fold import seconds
from engine.memory.judgements import FIRST, measured
from engine.memory.memories import Found
from engine.memory.open_memory import MemoryReader
from engine.memory.search import SearchMatch
from engine.memory.upkeep import MemoryStatistics
from engine.value import asdict, dataclass

NOTES = {"title": "Operator's notes", "idempotency_key": "operator's notes"}
"""The workflow of what is added to none."""
PROGRESS_S, EMBEDDED_S = 1.0, 5.0
"""Seconds between two reports of progress, and the longest wait for one text to be embedded."""
served_as_do = partial(served, kind="do")
TEXT_LIMIT = 200
"""Characters of a memory that a line shows."""


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """What was asked on the command line; empty and None for what was not said."""

    text: str = ""
    workflow: str = ""
    agent: str = ""
    level: str = ""
    type: str = ""
    importance: float | None = None
    tags: Sequence[str] = ()
    limit: int = 10
    as_of: int | None = None


async def query_memory(workspace: Path, what: str, options: MemoryOptions) -> Answer:
    """Answer `search`, `stats` or `judge`; reading only, also while an engine runs.

    Raises:
        JournalError: there is no journal, or it cannot be read.
    """
    clock = Ports().clock
    tell = {"search": _search, "stats": _stats, "judge": _judge}[what]
    async with recorded(workspace, clock) as store:
        embedder = (await asyncio.to_thread(Settings.load, workspace)).embedder
        try:
            memory = await MemoryReader.look(workspace, store, clock=clock, embedder=embedder)
            try:
                return await tell(memory, options, seconds(clock.now()))
            finally:
                await memory.close()
        except MemoryFault as error:
            return 2, {}, str(error)


async def _search(memory: MemoryReader, options: MemoryOptions, now: float) -> Answer:
    asked: dict[str, Any] = {
        "query": options.text,
        "workflow_id": options.workflow,
        "memory_level": options.level or None,
    }
    asked |= {"memory_type": options.type or None, "tags": tuple(options.tags), "limit": options.limit}
    found: Found = await memory.ask_by_name("search", {**asked, "nearest": True}, as_of=options.as_of)
    rows = [_as_row(match, now) for match in found]
    lines = [
        f"{row['score']:.2f}  {row['level']:<10} {row['type']:<18} {short_duration(row['age_s']):>6}  "
        f"{row['id']:<7} {clean_line(row['content'], limit=TEXT_LIMIT)}"
        f"{_found_by(row)}"
        for row in rows
    ]
    if rows and not found.relevant:
        lines.insert(0, "nothing fits; the nearest:")
    note = _note(memory)
    answer = {"results": rows, "relevant": bool(rows) and found.relevant, "note": note}
    return 0, answer, _noted(lines or ["nothing was found"], note)


def _found_by(row: dict[str, Any]) -> str:
    """What is to be said of how a memory was found, beside its words."""
    linked = f"  ({row['link']})" if row["link"] else ""
    return f"{linked}  (superseded by {row['superseded']})" if row["superseded"] else linked


def _as_row(match: SearchMatch, now: float) -> dict[str, Any]:
    memory = match.memory
    return {
        "score": round(match.score, 4),
        "semantic": round(match.semantic, 4),
        "keyword": round(match.keyword, 4),
        "words": list(match.words),
        "link": str(match.link.type) if match.link else "",
        "superseded": match.superseded,
        "id": memory.id,
        "workflow": memory.workflow,
        "level": str(memory.level),
        "type": str(memory.type),
        "importance": memory.importance,
        "confidence": memory.confidence,
        "tags": list(memory.tags),
        "age_s": max(0, round(now - memory.created_at)),
        "content": memory.content,
    }


async def _stats(memory: MemoryReader, options: MemoryOptions, now: float) -> Answer:
    counts: MemoryStatistics = await memory.ask_by_name(
        "compute_memory_statistics", {"workflow_id": options.workflow}, as_of=options.as_of
    )
    vectors, embedder, note = memory.status.vectors, memory.status.embedder, _note(memory)
    answer = {**asdict(counts), "vectors": vectors, "embedder": embedder, "note": note}
    lines = [
        f"{counts.total} memories, {counts.links} links, {vectors} vectors ({embedder or 'no embedder'})",
        *_counts("level", counts.by_level),
        *_counts("type", counts.by_type),
        *_counts("workflow", counts.by_workflow),
        *_counts("tag", counts.top_tags),
    ]
    if counts.total:
        lines.append(
            f"mean importance {counts.mean_importance:.1f}, mean confidence {counts.mean_confidence:.2f}; "
            f"{counts.unconsolidated_episodic} episodic wait to be brought together"
        )
    lines += [f"goes in {short_duration(max(0, round(at - now)))}: {ident}" for ident, at in counts.expiring]
    return 0, answer, _noted(lines, note)


async def _judge(memory: MemoryReader, options: MemoryOptions, now: float) -> Answer:
    """What was judged, and how well today's search does on it."""
    judged: Sequence[Judgement] = await memory.ask_by_name("list_judgements", {}, as_of=options.as_of)
    found = {}
    for query, workflow in dict.fromkeys((one.query, one.workflow) for one in judged):
        asked = {"query": query, "workflow_id": workflow, "limit": options.limit, "nearest": True}
        matches: Found = await memory.ask_by_name("search", asked, as_of=options.as_of)
        found[query, workflow] = [match.memory.id for match in matches]
    figures = measured(judged, found)
    rows = [{**asdict(one), "place": _place(one.memory, found[one.query, one.workflow])} for one in judged]
    lines = [
        f"{'right' if row['right'] else 'wrong'}  {row['memory']:<7} {row['place'] or '-':>3}  "
        f"{clean_line(row['query'], limit=TEXT_LIMIT)}"
        for row in rows
    ]
    if not judged:
        lines.append("nothing was judged yet: press + or - on a memory that was found in the memory browser")
    elif figures.queries:
        lines.append(
            f"recall@{FIRST} {figures.recall:.2f}, MRR {figures.mrr:.2f}; queries with a right answer: "
            f"{figures.queries}"
        )
    if figures.wrong:
        lines.append(f"judged wrong: {figures.wrong}; still among the first {FIRST}: {figures.wrong_first}")
    note = _note(memory)
    answer = {"judgements": rows, "figures": asdict(figures), "note": note}
    return 0, answer, _noted(lines, note)


def _place(memory: str, found: Sequence[str]) -> int:
    """Where a memory stands among what was found, from 1; 0 where it does not."""
    return found.index(memory) + 1 if memory in found else 0


def _counts(name: str, counted: Sequence[tuple[str, int]]) -> list[str]:
    words = ", ".join(f"{clean_line(word, limit=64)} {count}" for word, count in counted)
    return [f"by {name}: {words}"] if words else []


def _noted(lines: Sequence[str], note: str) -> str:
    """Lines, and the note in brackets behind them where there is one."""
    return "\n".join([*lines, *([f"({note})"] if note else [])])


def _note(memory: MemoryReader) -> str:
    return "; ".join(filter(None, (memory.note, clean_line(memory.status.note))))


async def remember(submit: Callable[[cmd.Command], Awaitable[cmd.Receipt]], options: MemoryOptions) -> Answer:
    """Remember something as the operator; exit code 1 when it was refused."""
    memory: dict[str, Any] = {
        "content": options.text,
        "memory_type": options.type or "user_input",
        "tags": list(options.tags),
        "workflow_id": options.workflow or None,
        "memory_level": options.level or None,
        "importance": options.importance,
        "source": "operator",
    }
    memory = {name: value for name, value in memory.items() if value is not None}
    receipt = await _remember(submit, memory, options)
    if not receipt.ok:
        return 1, {"ok": False, "message": receipt.message}, receipt.message
    stored = receipt.data
    answer = {"ok": True, "memory": stored, "event": receipt.event}
    return 0, answer, f"{stored['id']} remembered in {stored['workflow']}"


async def _remember(
    submit: Callable[[cmd.Command], Awaitable[cmd.Receipt]], memory: dict[str, Any], options: MemoryOptions
) -> cmd.Receipt:
    if not (options.workflow or options.agent):
        notes = await submit(cmd.Remember(verb="begin_workflow", arguments=NOTES))
        if not notes.ok:
            return notes
        memory["workflow_id"] = notes.data["id"]
    return await submit(cmd.Remember(agent=options.agent, verb="store", arguments=memory))


async def _add_beside(options: MemoryOptions, client: EngineClient) -> Answer:
    return await remember(client.submit, options)


async def _embedder_beside(words: tuple[str, str], client: EngineClient) -> Answer:
    line = " ".join(("embedder", *filter(None, words)))
    given = await client.ask_once("line", line=line, agent="", dry=False, cwd=str(Path.cwd()))
    return given["code"], given["answer"], given["text"]


async def _embedder_alone(workspace: Path, words: tuple[str, str], tell: Callable[[str], object]) -> Answer:
    """The same without one; then all that is not embedded is."""
    try:
        choice = await keep_alone(*words)
    except MemoryFault as error:
        return 1, {"ok": False, "message": str(error)}, str(error)
    if choice is None or not (workspace / DATA_DIRECTORY / DATABASE).exists():
        return describe(choice, None)
    async with open_engine(workspace, Settings.load(workspace).engine_config(), served_as_do) as engine:
        assert engine.memory is not None
        while not await engine.memory.embedded(PROGRESS_S):
            tell(describe(choice, engine.memory.status)[2])
        return describe(choice, engine.memory.status)


async def add_memory(workspace: Path, options: MemoryOptions) -> Answer:
    """Remember something by an engine of this program's own; see `remember`.

    Raises:
        JournalError: the workspace cannot be opened; where another process holds it, the message says which.
    """
    config = Settings.load(workspace).engine_config()
    async with open_engine(workspace, config, served_as_do) as engine:
        answer = await remember(engine.submit, options)
        if engine.memory is not None and not answer[0]:
            await engine.memory.embedded(EMBEDDED_S)
        return answer


# ------------------------------------------------------------------ the subcommand


def run(options: argparse.Namespace) -> int:
    """Ask or add to the memory of agents."""
    workspace, asked = workspace_of(options), filled(MemoryOptions, options)
    if options.what == "embedder":
        words = (options.text, options.model)
        tell = print_error if not flag(options, "quiet") else len
        beside, alone = partial(_embedder_beside, words), partial(_embedder_alone, workspace, words, tell)
        return run_answer(options, answer_in_engine(workspace, beside, alone))
    if options.what == "add":
        beside, alone = partial(_add_beside, asked), partial(add_memory, workspace, asked)
        return run_answer(options, answer_in_engine(workspace, beside, alone))
    return run_answer(options, query_memory(workspace, options.what, asked))
