"""What memory has for a prompt: parts read at once, each failing alone, packed into a budget of tokens.

Reading does not count as using a memory, and memories come with their content. A packed part is always valid
JSON. Where all is too long, lists are cut first, then long texts to their beginnings and ends, and then whole
parts are left out, the last of `Part` first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Any

from engine.core.journal import JournalError, canonical
from engine.core.memory import MemoryItem, MemoryLevel, MemoryLink, MemoryType
from engine.core.state import AgentState
from engine.memory.errors import MemoryFault
from engine.memory.memories import GetLinkedMemories, HybridSearch, QueryMemories
from engine.memory.memory import Memory
from engine.memory.workflows import GetKeyThoughts, GetWorkflow
from engine.memory.working_memory import GetWorkingMemory
from engine.models.request import estimate_tokens
from engine.value import dataclass

MEMORY_HEAD = 800
"""Characters of a memory's content that are shown; of the one in focus and of procedures more."""
FOCUS_HEAD = 2_400
LINE = 400
"""Characters of titles and descriptions."""
QUERY = 2_000
"""Characters of a query."""
POOL = 60
"""Memories among which the important ones and those that come up by themselves are looked for: what other
parts show anyway is passed over."""
PART_TIMEOUT_S = 5.0
"""Seconds that one part may take."""

_SHOWN_ELSEWHERE = frozenset({MemoryType.ACTION_LOG, MemoryType.REASONING_STEP})
"""Types of memories that only repeat the actions and thoughts of their workflow."""

Item = Mapping[str, Any]
"""One entry of a part, as JSON."""


class Part(StrEnum):
    """The parts in the order in which a prompt shows them; the last is left out first."""

    WORKING = "working"
    CORE = "core"
    IMPORTANT = "important"
    THOUGHTS = "thoughts"
    LINKS = "links"
    PROACTIVE = "proactive"
    PROCEDURES = "procedures"


Parts = Mapping[Part, Sequence[Item]]
"""What was read, in the order of the parts."""
FETCH = {Part.IMPORTANT: 7, Part.THOUGHTS: 7, Part.PROACTIVE: 5, Part.PROCEDURES: 3, Part.LINKS: 5}
"""Entries that are read of each part."""
SHOW = {
    Part.WORKING: 10,
    Part.IMPORTANT: 5,
    Part.THOUGHTS: 5,
    Part.LINKS: 3,
    Part.PROACTIVE: 3,
    Part.PROCEDURES: 2,
}
"""Entries that stay of each part where the budget is short."""


@dataclass(frozen=True, slots=True)
class ContextQuestion:
    """What a prompt is about."""

    workflow: str
    goal: str = ""
    """The current goal's text."""
    next_step: str = ""
    """What the step to run next is to do; empty where there is none."""

    @classmethod
    def of(cls, workflow: str, state: AgentState) -> ContextQuestion:
        """The question for an agent as it is now."""
        goal, step = state.goal, state.step
        words = (step.description or f"{step.tool} {step.command}") if step is not None else ""
        return cls(workflow, goal.text if goal is not None else "", words.strip())

    @property
    def query(self) -> str:
        """What memory is searched for: the next step, else the goal, and no words around them."""
        return self.next_step.strip() or self.goal.strip()


# ------------------------------------------------------------------ reading


async def gather(memory: Memory, question: ContextQuestion) -> Parts:
    """What memory has for a question; parts that cannot be read, or are empty, are left out."""
    async with asyncio.TaskGroup() as group:
        tasks = {
            part: group.create_task(_read(memory, question, part), name=f"context {part}")
            for part in _READERS
        }
    return {part: items for part, task in tasks.items() if (items := task.result())}


async def _read(memory: Memory, question: ContextQuestion, part: Part) -> Sequence[Item]:
    try:
        async with asyncio.timeout(PART_TIMEOUT_S):
            return await _READERS[part](memory, question)
    except (MemoryFault, JournalError, TimeoutError):
        return ()


async def _working(memory: Memory, question: ContextQuestion) -> Sequence[Item]:
    """Working memory: the focus, what is pinned, then the most relevant first."""
    mind = await memory.do(GetWorkingMemory(context_id=question.workflow))
    ranked = sorted(mind.items, key=lambda item: (item.focal, item.pinned, item.relevance), reverse=True)
    return [
        {
            **_memory(item.memory, question, FOCUS_HEAD if item.focal else MEMORY_HEAD),
            **{name: True for name in ("focal", "pinned") if getattr(item, name)},
        }
        for item in ranked
    ]


async def _core(memory: Memory, question: ContextQuestion) -> Sequence[Item]:
    """The workflow itself."""
    workflow = await memory.do(GetWorkflow(workflow_id=question.workflow))
    fields = {
        "id": workflow.id,
        "title": head(workflow.title, LINE),
        "description": head(workflow.description, MEMORY_HEAD),
        "goal": head(workflow.goal, FOCUS_HEAD),
        "status": str(workflow.status),
        "tags": list(workflow.tags),
    }
    return [{name: value for name, value in fields.items() if value}]


async def _important(memory: Memory, question: ContextQuestion) -> Sequence[Item]:
    """The workflow's most important memories that no other part shows."""
    asked = QueryMemories(workflow_id=question.workflow, sort_by="importance", limit=POOL)
    memories = [match.memory for match in await memory.do(asked)]
    # A consolidated memory is shown by its consolidation.
    mine = [item for item in memories if item.type not in _SHOWN_ELSEWHERE and not item.consolidated]
    return [_memory(item, question, MEMORY_HEAD) for item in mine[: FETCH[Part.IMPORTANT]]]


async def _thoughts(memory: Memory, question: ContextQuestion) -> Sequence[Item]:
    """Key thoughts of all lines of thought, newest first."""
    asked = GetKeyThoughts(workflow_id=question.workflow, limit=FETCH[Part.THOUGHTS])
    return [
        {"id": thought.id, "type": str(thought.type), "content": head(thought.content, MEMORY_HEAD)}
        for thought in await memory.do(asked)
    ]


async def _links(memory: Memory, question: ContextQuestion) -> Sequence[Item]:
    """What relates to the memory in focus; without one on the first in mind, else on the most important."""
    mind = await memory.do(GetWorkingMemory(context_id=question.workflow))
    starts = [item.memory.id for item in sorted(mind.items, key=lambda item: not item.focal)]
    starts = starts or [str(item["id"]) for item in await _important(memory, question)]
    if not starts:
        return ()
    asked = GetLinkedMemories(memory_id=starts[0], direction="both", limit=FETCH[Part.LINKS])
    return [
        {**_memory(other.memory, question, MEMORY_HEAD), "link": _link(other.link, starts[0])}
        for other in await memory.do(asked)
    ]


def _link(link: MemoryLink, start: str) -> Item:
    outgoing = link.source == start
    fields = {
        "type": str(link.type),
        "from": "this" if not outgoing else start,
        "to": start if not outgoing else "this",
        "strength": round(link.strength, 3),
        "description": head(link.description, LINE),
    }
    return {name: value for name, value in fields.items() if value != ""}


async def _proactive(memory: Memory, question: ContextQuestion) -> Sequence[Item]:
    """Memories of all workflows that may help with the next step or the goal, best first."""
    items = await _search(memory, question, MEMORY_HEAD, limit=POOL)
    return items[: FETCH[Part.PROACTIVE]]


async def _procedures(memory: Memory, question: ContextQuestion) -> Sequence[Item]:
    """Settled ways of doing such things, best first."""
    level, limit = MemoryLevel.PROCEDURAL, FETCH[Part.PROCEDURES]
    return await _search(memory, question, FOCUS_HEAD, memory_level=level, limit=limit)


async def _search(memory: Memory, question: ContextQuestion, text: int, **how: Any) -> Sequence[Item]:
    if not question.query:
        return ()
    query = question.query[:QUERY].encode("utf-8", "replace").decode()
    return [
        {**_memory(match.memory, question, text), "score": round(match.score, 3)}
        for match in await memory.do(HybridSearch(query=query, nearest=True, **how))
        if not _is_no_news(match.memory, question)
    ]


def _is_no_news(memory: MemoryItem, question: ContextQuestion) -> bool:
    """Whether a memory repeats the question, or the actions that a prompt shows anyway."""
    if memory.type is MemoryType.ACTION_LOG:
        return memory.workflow == question.workflow
    return memory.content.strip() in (question.query, question.goal.strip())


_READERS: Mapping[Part, Callable[[Memory, ContextQuestion], Awaitable[Sequence[Item]]]] = {
    Part.WORKING: _working,
    Part.CORE: _core,
    Part.IMPORTANT: _important,
    Part.THOUGHTS: _thoughts,
    Part.LINKS: _links,
    Part.PROACTIVE: _proactive,
    Part.PROCEDURES: _procedures,
}


def _memory(memory: MemoryItem, question: ContextQuestion, limit: int) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": memory.id,
        "type": str(memory.type),
        "level": str(memory.level),
        "importance": round(memory.importance, 2),
        "content": head(memory.content, limit),
    }
    if memory.description and memory.description not in memory.content:
        fields["description"] = head(memory.description, LINE)
    if memory.confidence < 1:
        fields["confidence"] = round(memory.confidence, 2)
    if memory.workflow != question.workflow:
        fields["workflow"] = memory.workflow
    return fields


# ------------------------------------------------------------------ packing

Estimate = Callable[[str], int]
"""Tokens that a block's text will take in the prompt."""
TEXTS = (2_000, 1_000, 500)
"""Characters that stay of each text of an entry, before whole parts go."""
_UNCUT = 1_000_000_000


@dataclass(frozen=True, slots=True)
class PackedBlock:
    """One part as it stands in a prompt."""

    part: Part
    text: str
    """JSON."""
    tokens: int


@dataclass(frozen=True, slots=True)
class _Cut:
    """How much is shown."""

    parts: Sequence[Part]
    shrunk: frozenset[Part] = frozenset()
    """Lists that are cut to what is to be shown of them."""
    texts: int = _UNCUT
    """Characters of each text of an entry."""


def pack(parts: Parts, budget_tokens: int, estimate: Estimate = estimate_tokens) -> tuple[PackedBlock, ...]:
    """The parts as blocks of JSON whose tokens are within a budget.

    Args:
        parts: what was gathered.
        budget_tokens: tokens that all blocks together may take.
        estimate: tokens of a block's text, with whatever stands around it in the prompt.
    """
    # Most parts stay as they are from one cut to the next.
    estimated = cache(estimate)
    for cut in _cuts(list(parts)):
        blocks = _rendered(parts, cut, estimated)
        if sum(block.tokens for block in blocks) <= budget_tokens:
            return blocks
    return ()


def _cuts(parts: list[Part]) -> Iterator[_Cut]:
    """Ways of showing the parts, each smaller than the one before."""
    yield _Cut(parts)
    shrinkable = [part for part in reversed(parts) if part in SHOW]
    for count in range(1, len(shrinkable) + 1):
        yield _Cut(parts, frozenset(shrinkable[:count]))
    shrunk = frozenset(shrinkable)
    for texts in TEXTS:
        yield _Cut(parts, shrunk, texts)
    for left in reversed(range(len(parts))):
        yield _Cut(parts[:left], shrunk, TEXTS[-1])


def _rendered(parts: Parts, cut: _Cut, estimate: Estimate) -> tuple[PackedBlock, ...]:
    blocks = []
    seen: dict[str, Part] = {}
    for part in cut.parts:
        items = parts[part]
        shown = items[: SHOW[part]] if part in cut.shrunk else items
        value: dict[str, Any] = {"items": [_shortened(_once(item, part, seen), cut.texts) for item in shown]}
        if len(shown) < len(items):
            value["omitted"] = len(items) - len(shown)
        text = canonical(value)
        blocks.append(PackedBlock(part, text, estimate(text)))
    return tuple(blocks)


def _once(item: Item, part: Part, seen: dict[str, Part]) -> Item:
    """An entry; of a memory that an earlier part shows, only where it stands."""
    if part in (Part.CORE, Part.THOUGHTS):
        return item
    ident = str(item.get("id", ""))
    before = seen.setdefault(ident, part)
    if before is part:
        return item
    return {"id": ident, "see": str(before), **({"link": item["link"]} if "link" in item else {})}


def _shortened(value: Any, limit: int) -> Any:
    """An entry whose texts are cut to their beginnings and ends."""
    if isinstance(value, str):
        return head_and_tail(value, limit)
    if isinstance(value, Mapping):
        return {name: _shortened(inner, limit) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_shortened(inner, limit) for inner in value]
    return value


def head(text: str, limit: int) -> str:
    """The beginning of a text; a cut one says how much is left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… [{len(text) - limit} more characters]"


def head_and_tail(text: str, limit: int) -> str:
    """Beginning and end of a text; a cut one says how much is left out."""
    if len(text) <= limit:
        return text
    last = limit // 3
    first = limit - last
    return f"{text[:first]}\n… [{len(text) - limit} characters left out] …\n{text[-last:]}"
