"""Searching memories by their words, through whatever of memory is open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from engine.inquiry.finding import Batch, Hit, Source, Tell, Wanted, around
from engine.journal.errors import JournalError
from engine.memory.errors import MemoryFault
from engine.memory.finding import Found
from engine.memory.names import owner_tag

Ask = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""Answers a request to memory by its name and arguments."""
MOST = 100
"""Memories that are asked for; memory itself ranks them."""


class MemorySearch:
    """Looks through the memories of a workspace; those that are only alike do not count."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def __call__(self, what: Wanted, tell: Tell) -> None:
        """Tell what is found, newest first."""
        try:
            asked = {"query": " ".join(what.words), "limit": min(what.limit, MOST)}
            found: list[Found] = list(await self._ask("hybrid_search_memories", asked))
            worded = [one for one in found if one.keyword > 0]
            if what.agent:
                works = {one.memory.workflow for one in worded}
                own = {work for work in works if await self._belongs(work, what.agent)}
                worded = [one for one in worded if one.memory.workflow in own]
        except (MemoryFault, JournalError) as error:
            tell(Batch(Source.MEMORY, done=True, problem=str(error)))
            return
        worded.sort(key=lambda one: one.memory.created_at, reverse=True)
        hits = tuple(_hit(one, what) for one in worded)
        tell(Batch(Source.MEMORY, hits, len(found), done=True, more=len(found) == asked["limit"]))

    async def _belongs(self, work: str, agent: str) -> bool:
        details = await self._ask("get_workflow_details", {"workflow_id": work})
        return owner_tag(agent) in details.tags


def _hit(one: Found, what: Wanted) -> Hit:
    memory = one.memory
    at = datetime.fromtimestamp(memory.created_at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return Hit(Source.MEMORY, memory.id, at, "", str(memory.type), around(memory.content, what.words))
