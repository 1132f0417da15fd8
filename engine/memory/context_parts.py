"""The parts of a context package, each read from memory and put into plain entries.

Reading is never access: only what an agent says it used counts (spec master-loop-and-memory §1.9 U11).
Memories come with their content and actions with what their tools answered (§3.16 W19).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

from engine.domain.memory import MemoryItem, MemoryLevel, MemoryLink, MemoryType, RecordedAction, Thought
from engine.journal.errors import BlobError
from engine.memory.actions import GetRecentActions
from engine.memory.finding import Found
from engine.memory.memories import GetLinkedMemories
from engine.memory.memory import Memory
from engine.memory.mind import GetWorkingMemory
from engine.memory.package import FETCH, ContextQuestion, Item, Part
from engine.memory.searching import HybridSearch, QueryMemories
from engine.memory.workflows import GetKeyThoughts, GetWorkflow

MEMORY_HEAD = 800
"""Characters of a memory's content that are told; of the one in focus and of procedures more."""
FOCUS_HEAD = 2_400
RESULT_HEAD = 600
"""Characters of what a tool answered that are told."""
LAST_RESULT_HEAD = 4_000
"""The same of the newest action that has an answer."""
WHOLE_RESULT_BYTES = 1_000_000
"""Up to this size the whole of the newest answer is fetched, as its end may matter most."""
LINE = 400
"""Characters of titles, summaries and arguments."""
QUERY = 2_000
"""Characters of a query."""
POOL = 60
"""Memories among which the important ones and those that come up by themselves are looked for: what other
parts tell of anyway is passed over."""

PROACTIVE_WEIGHTS = (0.7, 0.3)
"""Weights of likeness and words in a search for what may help (§1.7)."""
PROCEDURE_WEIGHTS = (0.6, 0.4)

_LOGS = frozenset({MemoryType.ACTION_LOG})
_TOLD_ELSEWHERE = frozenset({MemoryType.ACTION_LOG, MemoryType.REASONING_STEP})
"""Types of memories that only repeat the actions and thoughts of their workflow."""


def head(text: str, limit: int) -> str:
    """The beginning of a text; a cut one says how much is left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… [{len(text) - limit} more characters]"


def ends(text: str, limit: int) -> str:
    """Beginning and end of a text, as what went wrong stands at either; a cut one says so."""
    if len(text) <= limit:
        return text
    last = limit // 3
    first = limit - last
    return f"{text[:first]}\n… [{len(text) - limit} characters left out] …\n{text[-last:]}"


async def working(memory: Memory, question: ContextQuestion, as_of: int | None) -> tuple[Item, ...]:
    """What is in mind: the focus, what is pinned, then the most relevant first."""
    mind = await memory.do(GetWorkingMemory(context_id=question.workflow), as_of=as_of)
    ranked = sorted(mind.items, key=lambda one: (one.focal, one.pinned, one.relevance), reverse=True)
    found = []
    for one in ranked:
        marks = {name: True for name in ("focal", "pinned") if getattr(one, name)}
        limit = FOCUS_HEAD if one.focal else MEMORY_HEAD
        found.append({**_memory(one.memory, question, limit), **marks})
    return tuple(found)


async def core(memory: Memory, question: ContextQuestion, as_of: int | None) -> tuple[Item, ...]:
    """The workflow itself."""
    workflow = await memory.do(GetWorkflow(workflow_id=question.workflow), as_of=as_of)
    told = {
        "id": workflow.id,
        "title": head(workflow.title, LINE),
        "description": head(workflow.description, MEMORY_HEAD),
        "goal": head(workflow.goal, FOCUS_HEAD),
        "status": str(workflow.status),
        "tags": list(workflow.tags),
    }
    return (_without_empty(told),)


async def actions(memory: Memory, question: ContextQuestion, as_of: int | None) -> tuple[Item, ...]:
    """The newest actions with what came of them, newest first."""
    asked = GetRecentActions(workflow_id=question.workflow, limit=FETCH[Part.ACTIONS])
    recent = await memory.do(asked, as_of=as_of)
    newest = next((one.id for one in recent if one.result is not None), "")
    return tuple([await _action(memory, one, last=one.id == newest) for one in recent])


async def _action(memory: Memory, action: RecordedAction, *, last: bool) -> Item:
    return _without_empty(
        {
            "id": action.id,
            "did": head(action.title, LINE),
            "tool": action.tool,
            "args": _short(action.args),
            "why": head(action.reasoning, LINE),
            "status": str(action.status),
            "summary": head(action.summary, LINE),
            "result": await _result(memory, action, last=last),
        }
    )


async def _result(memory: Memory, action: RecordedAction, *, last: bool) -> str:
    content = action.result
    if content is None:
        return ""
    limit = LAST_RESULT_HEAD if last else RESULT_HEAD
    if not content.blob:
        return ends(content.text, limit)
    if last and content.size <= WHOLE_RESULT_BYTES:
        try:
            return ends(await memory.whole(content), limit)
        except BlobError as error:
            return f"{content.text[:limit]}… [the rest cannot be read: {error}]"
    return f"{content.text[:limit]}… [{content.size} bytes in all]"


async def important(memory: Memory, question: ContextQuestion, as_of: int | None) -> tuple[Item, ...]:
    """The workflow's most important memories that no other part tells of."""
    asked = QueryMemories(workflow_id=question.workflow, sort_by="importance", limit=POOL)
    found = await memory.do(asked, as_of=as_of)
    # What went into another memory is told by that one.
    mine = [
        one.memory for one in found if one.memory.type not in _TOLD_ELSEWHERE and not one.memory.consolidated
    ]
    return tuple(_memory(one, question, MEMORY_HEAD) for one in mine[: FETCH[Part.IMPORTANT]])


async def thoughts(memory: Memory, question: ContextQuestion, as_of: int | None) -> tuple[Item, ...]:
    """Key thoughts of all lines of thought, newest first."""
    asked = GetKeyThoughts(workflow_id=question.workflow, limit=FETCH[Part.THOUGHTS])
    return tuple(_thought(one) for one in await memory.do(asked, as_of=as_of))


def _thought(thought: Thought) -> Item:
    return {"id": thought.id, "type": str(thought.type), "content": head(thought.content, MEMORY_HEAD)}


async def proactive(memory: Memory, question: ContextQuestion, as_of: int | None) -> tuple[Item, ...]:
    """Memories that may help with the next step or the goal, best first."""
    if not question.query:
        return ()
    semantic, keyword = PROACTIVE_WEIGHTS
    asked = HybridSearch(
        query=_searchable(question),
        workflow_id="" if question.everywhere else question.workflow,
        limit=POOL,
        semantic_weight=semantic,
        keyword_weight=keyword,
    )
    found = await memory.do(asked, as_of=as_of)
    news = [one for one in found if not _is_no_news(one.memory, question)]
    return tuple(_found(one, question, MEMORY_HEAD) for one in news[: FETCH[Part.PROACTIVE]])


def _is_no_news(memory: MemoryItem, question: ContextQuestion) -> bool:
    """Whether a memory repeats the question, or what other parts tell."""
    if memory.type in _LOGS:
        return memory.workflow == question.workflow
    return memory.content.strip() in (question.query, question.situation.goal.strip())


async def procedures(memory: Memory, question: ContextQuestion, as_of: int | None) -> tuple[Item, ...]:
    """Settled ways of doing such things, best first."""
    if not question.query:
        return ()
    semantic, keyword = PROCEDURE_WEIGHTS
    asked = HybridSearch(
        query=_searchable(question),
        workflow_id="" if question.everywhere else question.workflow,
        memory_level=MemoryLevel.PROCEDURAL,
        limit=FETCH[Part.PROCEDURES],
        semantic_weight=semantic,
        keyword_weight=keyword,
    )
    found = await memory.do(asked, as_of=as_of)
    return tuple(_found(one, question, FOCUS_HEAD) for one in found)


async def links(memory: Memory, question: ContextQuestion, as_of: int | None) -> tuple[Item, ...]:
    """What bears on the memory in focus; without one on the first in mind, else on the most important."""
    start = await _start_of_links(memory, question, as_of)
    if not start:
        return ()
    asked = GetLinkedMemories(memory_id=start, direction="both", limit=FETCH[Part.LINKS])
    found = await memory.do(asked, as_of=as_of)
    return tuple(
        {**_memory(one.memory, question, MEMORY_HEAD), "link": _link(one.link, start)} for one in found
    )


async def _start_of_links(memory: Memory, question: ContextQuestion, as_of: int | None) -> str:
    mind = await memory.do(GetWorkingMemory(context_id=question.workflow), as_of=as_of)
    focal = next((one.memory.id for one in mind.items if one.focal), "")
    if focal or mind.items:
        return focal or mind.items[0].memory.id
    first = await important(memory, question, as_of)
    return str(first[0]["id"]) if first else ""


def _link(link: MemoryLink, start: str) -> Item:
    outgoing = link.source == start
    told = {
        "type": str(link.type),
        "from": "this" if not outgoing else start,
        "to": start if not outgoing else "this",
        "strength": round(link.strength, 3),
        "description": head(link.description, LINE),
    }
    return _without_empty(told)


PartReader = Callable[[Memory, ContextQuestion, "int | None"], Awaitable[tuple[Item, ...]]]

READERS: Mapping[Part, PartReader] = MappingProxyType(
    {
        Part.WORKING: working,
        Part.CORE: core,
        Part.ACTIONS: actions,
        Part.IMPORTANT: important,
        Part.THOUGHTS: thoughts,
        Part.LINKS: links,
        Part.PROACTIVE: proactive,
        Part.PROCEDURES: procedures,
    }
)
"""Who reads each part that memory knows."""


def _searchable(question: ContextQuestion) -> str:
    return question.query[:QUERY].encode("utf-8", "replace").decode()


def _memory(memory: MemoryItem, question: ContextQuestion, limit: int) -> dict[str, Any]:
    told: dict[str, Any] = {
        "id": memory.id,
        "type": str(memory.type),
        "level": str(memory.level),
        "importance": round(memory.importance, 2),
        "content": head(memory.content, limit),
    }
    if memory.description and memory.description not in memory.content:
        told["description"] = head(memory.description, LINE)
    if memory.confidence < 1:
        told["confidence"] = round(memory.confidence, 2)
    if memory.workflow != question.workflow:
        told["workflow"] = memory.workflow
    return told


def _found(found: Found, question: ContextQuestion, limit: int) -> Item:
    return {**_memory(found.memory, question, limit), "score": round(found.score, 3)}


def _short(value: Any) -> Any:
    """Arguments with long texts cut."""
    if isinstance(value, str):
        return head(value, LINE)
    if isinstance(value, Mapping):
        return {str(key): _short(inner) for key, inner in list(value.items())[:20]}
    if isinstance(value, (list, tuple)):
        kept = [_short(inner) for inner in value[:20]]
        return kept if len(value) <= 20 else [*kept, f"… [{len(value) - 20} more]"]
    return value


def _without_empty(told: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if value not in ("", [], {}, None)}
