"""Gathering what a thinker is to know: all parts at once, each stamped, and one that fails alone.

What was read lately and cannot have changed is kept from the package before; what should have been read
again and could not be is kept as well, and marked as stale.
Source: spec master-loop-and-memory §1.8, §3.7, §5 items 37, 38 and 51.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from engine.domain.goal import Goal
from engine.domain.ports import Clock
from engine.journal.errors import JournalError
from engine.memory.context_parts import LINE, MEMORY_HEAD, READERS, head
from engine.memory.errors import MemoryFault
from engine.memory.fold import seconds
from engine.memory.memory import Memory
from engine.memory.package import ContextPackage, ContextQuestion, Item, Part, PartError, Section
from engine.memory.upkeep import RecentOperations

PART_TIMEOUT_S = 5.0
"""Seconds that one part may take."""

_DEFAULT_AGE_S = 60.0
MAX_AGE_S: Mapping[Part, float] = MappingProxyType(
    {**dict.fromkeys(READERS, _DEFAULT_AGE_S), Part.CORE: 600.0, Part.PROCEDURES: 600.0}
)
"""Seconds for which a part that no write has touched is as good as new; relevance fades with time."""

_SEARCHED = frozenset({Part.PROACTIVE, Part.PROCEDURES})
"""Parts that depend on what is searched for, and on other workflows where these are searched too."""


@dataclass(frozen=True, slots=True)
class _Look:
    """What all parts of one gathering have in common."""

    memory: Memory
    question: ContextQuestion
    now: str
    clock: Clock
    as_of: int | None
    timeout_s: float
    previous: Mapping[Part, Section]


async def gather(
    memory: Memory,
    question: ContextQuestion,
    clock: Clock,
    *,
    previous: ContextPackage | None = None,
    as_of: int | None = None,
    timeout_s: float = PART_TIMEOUT_S,
) -> ContextPackage:
    """What a thinker is to know for a question; nothing counts as used by it.

    Args:
        memory: where it is read.
        question: for whom.
        clock: says when each part was read.
        previous: the package before this one, whose parts are kept where they are as good as new.
        as_of: the place in the journal (`seq`) of the last event that counts; None for all. With it
            nothing is kept.
        timeout_s: seconds that one part may take.

    Never raises for what memory cannot answer: such a part is one entry of `errors`.
    """
    now = clock.now()
    kept = previous if previous is not None and as_of is None and _alike(previous, question) else None
    sections = {one.part: one for one in kept.sections} if kept is not None else {}
    look = _Look(memory, question, now, clock, as_of, timeout_s, MappingProxyType(sections))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_read(look, part), name=f"context {part}") for part in READERS]
    answers = [task.result() for task in tasks]
    told = (Section(Part.SITUATION, (), now), Section(Part.GOALS, _goals(question), now))
    found = {one.part: one for one in (*told, *(section for section, _ in answers if section is not None))}
    return ContextPackage(
        question,
        now,
        tuple(found[part] for part in Part if part in found),
        tuple(error for _, error in answers if error is not None),
    )


def _alike(previous: ContextPackage, question: ContextQuestion) -> bool:
    """Whether parts of an earlier package may be kept at all."""
    before = previous.question
    return (before.workflow, before.everywhere) == (question.workflow, question.everywhere)


async def _read(look: _Look, part: Part) -> tuple[Section | None, PartError | None]:
    """A part, or the one before it marked as stale, or none; and what went wrong."""
    before = look.previous.get(part)
    query = look.question.query if part in _SEARCHED else ""
    if before is not None and before.query != query:
        before = None
    try:
        async with asyncio.timeout(look.timeout_s):
            # Read first: what is written meanwhile makes the part old and never too new.
            version = await _version(look, part)
            if before is not None and _is_fresh(before, version, look):
                return replace(before, digest=None), None
            items = await READERS[part](look.memory, look.question, look.as_of)
    except (MemoryFault, JournalError, TimeoutError) as error:
        why = str(error) or f"no answer within {look.timeout_s:g} s"
        stale = replace(before, stale=True, digest=None) if before is not None else None
        return stale, PartError(part, why, look.clock.now())
    return Section(part, items, look.clock.now(), version, query), None


async def _version(look: _Look, part: Part) -> int:
    """The number of the newest write that may have touched a part."""
    workflow = "" if part in _SEARCHED and look.question.everywhere else look.question.workflow
    newest = await look.memory.do(RecentOperations(workflow_id=workflow, limit=1), as_of=look.as_of)
    return newest[0].number if newest else 0


def _is_fresh(section: Section, version: int, look: _Look) -> bool:
    if section.stale or section.version != version:
        return False
    return seconds(look.now) - seconds(section.retrieved_at) < MAX_AGE_S[section.part]


def _goals(question: ContextQuestion) -> tuple[Item, ...]:
    """The goals above the current one, nearest first."""
    return tuple(_goal(goal) for goal in question.situation.above)


def _goal(goal: Goal) -> Item:
    told = {"id": goal.id, "goal": head(goal.text, MEMORY_HEAD), "status": str(goal.status)}
    return {**told, "reason": head(goal.reason, LINE)} if goal.reason else told
