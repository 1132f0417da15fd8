"""Bringing memories together: the most important episodic ones that never were, ten at most, into one.

Without a model the text is made of what the memories say and how they are alike, and says that it is. Source:
spec master-loop-and-memory §1.8, §3.4, §3.16 W14.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from engine.domain.memory import MemoryItem
from engine.domain.text import clean_line
from engine.memory import Memory
from engine.memory.upkeep import ConsolidateMemories, ConsolidationCandidates
from engine.metacognition.asking import Asking
from engine.metacognition.result import Result
from engine.metacognition.work import Inputs
from engine.models import fence

ALIKE = 0.5
"""Part of the words that two memories must share to stand in one group."""
SHOWN = 300
"""Characters of each memory that go into the text (§1.8)."""
_WORD = re.compile(r"\w+")


class WrittenConsolidation(BaseModel):
    """What several memories come to when they are brought together."""

    model_config = ConfigDict(extra="forbid")
    content: Annotated[str, Field(min_length=1, max_length=20_000)]
    """One text that stands for all of them."""


async def consolidate(inputs: Inputs, memory: Memory, workflow: str) -> Result:
    """Bring memories of a workflow together; nothing happens where there are fewer than two.

    Raises:
        MemoryFault, JournalError: memory refused.
        AskingError: the model could not be asked.
    """
    asking = inputs.asking
    sources = await memory.do(ConsolidationCandidates(workflow_id=workflow, limit=inputs.sources))
    if len(sources) < 2:
        return Result("there are no two episodic memories left to bring together")
    content = grouped(sources) if asking is None else await _written(sources, asking)
    request = ConsolidateMemories(
        workflow_id=workflow,
        source_ids=tuple(one.id for one in sources),
        content=content,
        computed=asking is None,
    )
    made = await memory.do(request, **inputs.how)
    head = content.splitlines()[0]
    return Result(
        f"{len(sources)} memories into {made.id}: {head}",
        feedback=clean_line(content, limit=600),
        computed=asking is None,
        made=made.id,
        sources=made.context["sources"],
    )


async def _written(sources: Sequence[MemoryItem], asking: Asking) -> str:
    material = "\n".join(f"{one.id} ({one.type}): {told(one)}" for one in sources)
    wanted = "Bring these memories together into one text: what holds in general, and what was special."
    said = await asking("consolidation", wanted, fence("memories", material), WrittenConsolidation)
    assert isinstance(said, WrittenConsolidation)
    return said.content


def told(memory: MemoryItem) -> str:
    """What a memory says, in a line."""
    text = f"{memory.description}: {memory.content}" if memory.description else memory.content
    return clean_line(text, limit=SHOWN)


def grouped(sources: Sequence[MemoryItem]) -> str:
    """The memories as text, those with like words together; the first line counts them."""
    groups: list[list[MemoryItem]] = []
    for one in sources:
        home = next((group for group in groups if likeness(one, group[0]) >= ALIKE), None)
        if home is None:
            groups.append([one])
        else:
            home.append(one)
    groups.sort(key=len, reverse=True)
    kinds = Counter(one.type.value for one in sources)
    types = ", ".join(f"{kind} ×{n}" for kind, n in kinds.most_common())
    lines = [f"{len(sources)} memories ({types}) in {len(groups)} groups of like words, counted."]
    for group in groups:
        ids = ", ".join(one.id for one in group)
        much = f"{len(group)} alike, such as" if len(group) > 1 else "1:"
        lines.append(f"{much} {told(group[0])} [{ids}]")
    return "\n".join(lines)


def likeness(one: MemoryItem, other: MemoryItem) -> float:
    """Part of all words of two memories that both have, 0 to 1."""
    first, second = _words(one), _words(other)
    every = first | second
    return len(first & second) / len(every) if every else 1.0


def _words(memory: MemoryItem) -> set[str]:
    text = f"{memory.description} {memory.content[:SHOWN]}".casefold()
    return set(_WORD.findall(text))
