"""A memory's versions, and a memory with all that surrounds it."""

from __future__ import annotations

import pytest

from engine.memory.errors import MemoryNotFound
from tests.engine.memory.memory_desk import MINUTE, MemoryDesk


async def test_each_version_says_when_by_whom_and_what_the_memory_was_then(desk: MemoryDesk) -> None:
    first = await desk.store_memory("the index is slow", importance=5.0)
    desk.clock.seconds += MINUTE
    await desk.ask("update_memory", memory_id=first.id, importance=7.0)
    versions = (await desk.ask("show_memory", memory_id=first.id)).versions
    assert [one.memory.importance for one in versions] == [7.0, 5.0]
    assert versions[0].at - versions[1].at >= MINUTE
    assert [one.kind for one in versions] == ["memory.changed", "memory.stored"]
    assert {one.actor for one in versions} == {"agent"}


async def test_a_forgotten_memory_is_shown_as_of_before_and_not_now(desk: MemoryDesk) -> None:
    first = await desk.store_memory("the index is slow")
    before = await desk.store.head_seq()
    await desk.ask("forget_memories", memory_ids=[first.id])
    assert len((await desk.ask("show_memory", memory_id=first.id, as_of=before)).versions) == 1
    with pytest.raises(MemoryNotFound):
        await desk.ask("show_memory", memory_id=first.id)


async def test_a_card_shows_links_work_and_mind_and_looking_is_no_use(desk: MemoryDesk) -> None:
    """Looking at a memory as a person does not count as access."""
    first = await desk.store_memory("the index is slow")
    other = await desk.store_memory("is there a proxy?")
    await desk.ask("create_memory_link", source_memory_id=other.id, target_memory_id=first.id)
    await desk.ask("focus_memory", memory_id=first.id, context_id=desk.workflow)
    card = await desk.ask("show_memory", memory_id=first.id)
    assert [(one.link.source, one.memory.id) for one in card.links] == [(other.id, other.id)]
    assert (card.workflow.id, card.working.state.focal) == (desk.workflow, first.id)
    assert len(card.versions) == 1
    again = await desk.ask("show_memory", memory_id=first.id)
    assert again.memory.access_count == 0
