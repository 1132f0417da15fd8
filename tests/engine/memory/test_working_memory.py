"""What a workflow has in mind."""

from __future__ import annotations

import asyncio

import pytest

from engine.memory.errors import MemoryNotFound, MemoryRefused
from tests.engine.memory.memory_desk import HOUR, MemoryDesk


async def test_the_first_focus_on_a_fresh_workflow_succeeds(desk: MemoryDesk) -> None:
    """On a fresh context the first focus succeeds."""
    memory = await desk.store_memory("the rover stands at the rim")
    now = await desk.ask("focus_memory", memory_id=memory.id, context_id=desk.workflow)
    assert now.state.focal == memory.id
    assert [one.memory.id for one in now.items if one.focal] == [memory.id]


async def test_the_least_relevant_leaves_when_mind_is_full(desk: MemoryDesk) -> None:
    """Of 20, the least relevant that is neither pinned nor focal leaves."""
    items = [await desk.store_memory(f"sample {n}", importance=9.0 - n / 10) for n in range(20)]
    ids = [one.id for one in items]
    await desk.ask("change_working_memory", context_id=desk.workflow, add=ids[:18], pin=ids[18:19])
    await desk.ask("focus_memory", memory_id=ids[19], context_id=desk.workflow)
    # The two least relevant are pinned and focal, so the third last one has to go.
    newcomer = await desk.store_memory("sample 20", importance=1.0)
    await desk.ask("change_working_memory", context_id=desk.workflow, add=[newcomer.id])
    assert await desk.mind() == [*ids[:17], *ids[18:], newcomer.id]


async def test_nothing_leaves_where_all_is_pinned(desk: MemoryDesk) -> None:
    ids = [(await desk.store_memory(f"sample {n}")).id for n in range(21)]
    await desk.ask("change_working_memory", context_id=desk.workflow, pin=ids[:20])
    with pytest.raises(MemoryRefused, match="pinned: unpin one first"):
        await desk.ask("focus_memory", memory_id=ids[20], context_id=desk.workflow)
    assert await desk.mind() == ids[:20]


async def test_mind_is_cut_down_with_focal_and_pinned_kept(desk: MemoryDesk) -> None:
    """Focal retained."""
    ids = [(await desk.store_memory(f"sample {n}", importance=9.0 - n / 10)).id for n in range(20)]
    await desk.ask("change_working_memory", context_id=desk.workflow, add=ids)
    await desk.ask("focus_memory", memory_id=ids[19], context_id=desk.workflow)
    cut = await desk.ask("optimize_working_memory", context_id=desk.workflow, target_size=5)
    assert [one.memory.id for one in cut.items] == [*ids[:4], ids[19]]


async def test_memories_added_at_the_same_time_are_all_there(desk: MemoryDesk) -> None:
    ids = [(await desk.store_memory(f"sample {n}")).id for n in range(15)]
    adding = (desk.ask("change_working_memory", context_id=desk.workflow, add=[one]) for one in ids)
    cutting = desk.ask("optimize_working_memory", context_id=desk.workflow)
    await asyncio.gather(*adding, cutting)
    assert sorted(await desk.mind()) == sorted(ids)


async def test_focus_follows_the_recent_actions(desk: MemoryDesk) -> None:
    action = await desk.ask("record_action_start", workflow_id=desk.workflow, action_type="analysis")
    plain = await desk.store_memory("a plain matter", importance=8.0)
    recent = await desk.store_memory("what the action found", importance=5.0, action_id=action.id)
    await desk.ask("change_working_memory", context_id=desk.workflow, add=[plain.id, recent.id])
    now = await desk.ask("auto_update_focus", context_id=desk.workflow)
    assert now.state.focal == recent.id


async def test_what_is_forgotten_or_over_leaves_mind(desk: MemoryDesk) -> None:
    short = await desk.store_memory("for now", memory_level="working")
    gone = await desk.store_memory("to be forgotten")
    stays = await desk.store_memory("to stay")
    ids = [short.id, gone.id, stays.id]
    await desk.ask("change_working_memory", context_id=desk.workflow, add=ids)
    await desk.ask("forget_memories", memory_ids=[gone.id])
    desk.clock.seconds += HOUR
    assert await desk.mind() == [stays.id]
    state = (await desk.ask("get_working_memory", context_id=desk.workflow)).state
    assert state.working == (short.id, stays.id)
    await desk.ask("delete_expired_memories")
    state = (await desk.ask("get_working_memory", context_id=desk.workflow)).state
    assert state.working == (stays.id,)
    assert state.focal == ""


async def test_memories_of_another_workflow_do_not_come_to_mind(desk: MemoryDesk) -> None:
    other = (await desk.ask("create_workflow", title="Another")).id
    memory = await desk.store_memory("mine")
    with pytest.raises(MemoryNotFound, match=f"belongs to workflow {desk.workflow}, not to {other}"):
        await desk.ask("focus_memory", memory_id=memory.id, context_id=other)
