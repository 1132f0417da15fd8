"""`pilothouse memory`: what agents remember, from the command line.

Looking goes on beside an engine that has the workspace open; adding is a command to an engine of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from app.headless import opened
from app.settings import Settings
from engine.domain import commands as cmd
from engine.domain.ports import Ports
from engine.domain.text import clean_line
from engine.journal.store import JournalStore
from engine.memory.errors import MemoryFault
from engine.memory.finding import Found
from engine.memory.fold import seconds
from engine.memory.looking import ReadMemory
from engine.memory.upkeep import MemoryStatistics

Answer = tuple[int, dict[str, Any], str]
"""Exit code, JSON answer, text."""
NOTES = {"title": "Operator's notes", "idempotency_key": "operator's notes"}
"""The workflow of what is added to none."""
TEXT_LIMIT = 200
"""Characters of a memory that a line shows."""


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """What was asked on the command line; empty and None for what was not said."""

    text: str = ""
    workflow: str = ""
    agent: str = ""
    level: str | None = None
    type: str | None = None
    importance: float | None = None
    tags: tuple[str, ...] = ()
    limit: int = 10
    as_of: int | None = None


async def look(workspace: Path, what: str, options: MemoryOptions) -> Answer:
    """Answer `search` or `stats`; reading only, also while an engine runs.

    Raises:
        JournalError: there is no journal, or it cannot be read.
    """
    clock = Ports().clock
    store = await JournalStore.open(workspace, clock=clock, read_only=True)
    try:
        memory = await ReadMemory.look(workspace, store, clock=clock)
        try:
            tell = _search if what == "search" else _stats
            return await tell(memory, options, seconds(clock.now()))
        finally:
            await memory.close()
    except MemoryFault as error:
        return 2, {}, str(error)
    finally:
        await store.close()


async def _search(memory: ReadMemory, options: MemoryOptions, now: float) -> Answer:
    asked = {
        "query": options.text,
        "workflow_id": options.workflow,
        "memory_level": options.level,
        "memory_type": options.type,
        "tags": options.tags,
        "limit": options.limit,
    }
    found: Sequence[Found] = await memory.ask_by_name("search", asked, as_of=options.as_of)
    rows = [_as_row(one, now) for one in found]
    lines = [
        f"{row['score']:.2f}  {row['level']:<10} {row['type']:<18} {_age(row['age_s']):>6}  {row['id']:<7} "
        f"{clean_line(row['content'], limit=TEXT_LIMIT)}"
        for row in rows
    ]
    lines = lines or ["nothing was found"]
    return 0, {"results": rows, "note": memory.note}, "\n".join([*lines, *_note(memory)])


def _as_row(one: Found, now: float) -> dict[str, Any]:
    memory = one.memory
    return {
        "score": round(one.score, 4),
        "semantic": round(one.semantic, 4),
        "keyword": round(one.keyword, 4),
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


async def _stats(memory: ReadMemory, options: MemoryOptions, now: float) -> Answer:
    asked = {"workflow_id": options.workflow}
    found: MemoryStatistics = await memory.ask_by_name(
        "compute_memory_statistics", asked, as_of=options.as_of
    )
    vectors = memory.status.vectors
    answer = {**asdict(found), "vectors": vectors, "embedder": memory.status.embedder, "note": memory.note}
    lines = [
        f"{found.total} memories, {found.links} links, {vectors} vectors ({memory.status.embedder})",
        *_counts("level", found.by_level),
        *_counts("type", found.by_type),
        *_counts("workflow", found.by_workflow),
        *_counts("tag", found.top_tags),
    ]
    if found.total:
        lines.append(
            f"mean importance {found.mean_importance:.1f}, mean confidence {found.mean_confidence:.2f}; "
            f"{found.unconsolidated_episodic} episodic wait to be brought together"
        )
    lines += [f"goes in {_age(round(at - now))}: {ident}" for ident, at in found.expiring]
    return 0, answer, "\n".join([*lines, *_note(memory)])


def _counts(name: str, counted: Sequence[tuple[str, int]]) -> list[str]:
    words = ", ".join(f"{clean_line(word, limit=64)} {count}" for word, count in counted)
    return [f"by {name}: {words}"] if words else []


def _note(memory: ReadMemory) -> list[str]:
    return [f"({memory.note})"] if memory.note else []


def _age(seconds_: float) -> str:
    """A length of time in its largest unit."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds_ >= size:
            return f"{seconds_ / size:.0f} {unit}"
    return f"{max(0, seconds_):.0f} s"


async def add(workspace: Path, options: MemoryOptions) -> Answer:
    """Remember something as the operator; exit code 1 when it was refused.

    Raises:
        JournalError: the workspace cannot be opened; where another process holds it, the message says which.
    """
    told: dict[str, Any] = {
        "content": options.text,
        "memory_type": options.type or "user_input",
        "tags": list(options.tags),
        "workflow_id": options.workflow or None,
        "memory_level": options.level,
        "importance": options.importance,
        "source": "operator",
    }
    told = {name: value for name, value in told.items() if value is not None}
    config = Settings.load(workspace).engine_config()
    async with opened(workspace, config) as engine:
        if not (options.workflow or options.agent):
            notes = await engine.submit(cmd.Remember(verb="begin_workflow", arguments=NOTES))
            if not notes.ok:
                return 1, {"ok": False, "message": notes.message}, notes.message
            told["workflow_id"] = notes.data["id"]
        receipt = await engine.submit(cmd.Remember(agent=options.agent, verb="store", arguments=told))
    if not receipt.ok:
        return 1, {"ok": False, "message": receipt.message}, receipt.message
    memory = receipt.data
    answer = {"ok": True, "memory": memory, "event": receipt.event}
    return 0, answer, f"{memory['id']} remembered in {memory['workflow']}"
