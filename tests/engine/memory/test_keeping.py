"""How memories change, settle and go."""

from __future__ import annotations

import asyncio

import pytest

from engine.memory.errors import MemoryInputError, MemoryNotFound, MemoryRefused
from tests.engine.memory.memory_desk import DAY, MINUTE, MemoryDesk


async def test_type_and_level_become_tags(desk: MemoryDesk) -> None:
    memory = await desk.store_memory("dust", tags=["Moon ", "moon", "Sample"], memory_level="semantic")
    assert memory.tags == ("moon", "sample", "fact", "semantic")
    hits = await desk.ask("query_memories", tags=["sample", "fact"], sort_by="created_at")
    assert [one.memory.id for one in hits] == [memory.id]


async def test_an_episode_used_five_times_settles_with_a_fresh_month(desk: MemoryDesk) -> None:
    """Semantic with a fresh 30-day ttl; n 4 or C 0.79, not."""
    memory = await desk.store_memory("the pump needs priming", confidence=0.8)
    unsure = await desk.store_memory("perhaps the valve", confidence=0.79)
    await desk.use(memory.id, 4)
    await desk.use(unsure.id, 5)
    assert await desk.ask("promote_memory_level", memory_id=memory.id) is None
    assert await desk.ask("promote_memory_level", memory_id=unsure.id) is None
    await desk.use(memory.id, 1)
    desk.clock.seconds += 6 * DAY
    settled = await desk.ask("promote_memory_level", memory_id=memory.id)
    assert settled.level == "semantic"
    assert settled.expires_at == pytest.approx(desk.clock.seconds + 30 * DAY)
    assert settled.tags == ("fact", "semantic")
    desk.clock.seconds += 20 * DAY
    assert (await desk.recall(memory.id)).id == memory.id


async def test_a_procedure_settles_further_and_a_fact_never(desk: MemoryDesk) -> None:
    """Semantic procedure n 10, C 0.9 becomes procedural; semantic fact never."""
    known = {"memory_level": "semantic", "confidence": 0.9}
    procedure = await desk.store_memory("prime, open, wait", memory_type="procedure", **known)
    fact = await desk.store_memory("pumps need priming", **known)
    for one in (procedure, fact):
        await desk.use(one.id, 10)
    settled = await desk.ask("promote_memory_level", memory_id=procedure.id)
    assert settled.level == "procedural"
    assert await desk.ask("promote_memory_level", memory_id=fact.id) is None


async def test_being_found_and_shown_is_no_use(desk: MemoryDesk) -> None:
    """Fetched ten times by context gathering alone, a memory is not promoted."""
    memory = await desk.store_memory("the pump needs priming")
    await desk.ask("focus_memory", memory_id=memory.id, context_id=desk.workflow)
    for _ in range(10):
        assert memory.id in await desk.found("pump", workflow_id=desk.workflow)
        await desk.ask("query_memories", workflow_id=desk.workflow)
        await desk.ask("get_working_memory", context_id=desk.workflow)
        await desk.recall(memory.id)
    assert await desk.ask("promotion_candidates", workflow_id=desk.workflow) == ()
    assert await desk.ask("promote_memory_level", memory_id=memory.id) is None
    await desk.use(memory.id, 5)
    (earned,) = await desk.ask("promotion_candidates", workflow_id=desk.workflow)
    assert (earned.id, earned.access_count) == (memory.id, 5)


@pytest.mark.parametrize(
    ("level", "kept_s"),
    [("working", 30 * MINUTE), ("episodic", 7 * DAY), ("semantic", 30 * DAY), ("procedural", 90 * DAY)],
)
async def test_each_level_has_its_time(desk: MemoryDesk, level: str, kept_s: float) -> None:
    """Gone from search and swept one second after its time; ttl 0 never."""
    memory = await desk.store_memory("a short-lived matter", memory_level=level, memory_type="action_log")
    forever = await desk.store_memory("a matter for ever", memory_level=level, ttl=0)
    desk.clock.seconds += kept_s - 1
    assert set(await desk.found("matter")) == {memory.id, forever.id}
    assert await desk.ask("delete_expired_memories") == 0
    desk.clock.seconds += 2
    assert await desk.found("matter") == [forever.id]
    with pytest.raises(MemoryNotFound, match="its time is over"):
        await desk.recall(memory.id)
    assert await desk.ask("delete_expired_memories") == 1
    assert await desk.ask("delete_expired_memories") == 0
    desk.clock.seconds += 400 * DAY
    assert await desk.found("matter") == [forever.id]


async def test_what_was_learnt_stays_longer_and_then_as_long_as_it_is_used(desk: MemoryDesk) -> None:
    fact = await desk.store_memory("the gate matters")
    short = await desk.store_memory("the fence matters", ttl=60)
    weighty = await desk.store_memory("the wall matters", importance=7.0)
    for level in ("episodic", "semantic"):
        desk.clock.seconds += 29.5 * DAY
        assert fact.id in await desk.found("matters")
        assert (await desk.recall(fact.id)).level == level
        await desk.use(fact.id, 1)
        await desk.ask("delete_expired_memories")
    assert short.id not in await desk.found("matters")
    desk.clock.seconds += 31 * DAY
    assert await desk.ask("delete_expired_memories") == 1
    assert await desk.found("matters") == [weighty.id]


async def test_a_record_that_was_used_stays(desk: MemoryDesk) -> None:
    used, other = [await desk.store_memory(f"{n} was tried", memory_type="action_log") for n in range(2)]
    await desk.use(used.id, 1)
    desk.clock.seconds += 6.5 * DAY
    await desk.ask("delete_expired_memories")
    desk.clock.seconds += DAY
    assert await desk.ask("delete_expired_memories") == 1
    assert await desk.found("tried") == [used.id] != [other.id]


async def test_the_sweep_goes_in_steps_of_500(desk: MemoryDesk) -> None:
    storing = (desk.store_memory(f"note {n}", memory_level="working") for n in range(501))
    await asyncio.gather(*storing)
    desk.clock.seconds += 31 * MINUTE
    assert [await desk.ask("delete_expired_memories") for _ in range(3)] == [500, 1, 0]


async def test_a_changed_memory_keeps_what_was_not_named(desk: MemoryDesk) -> None:
    memory = await desk.store_memory("dust", tags=["moon"], importance=7.0, reasoning="seen")
    changed = await desk.ask("update_memory", memory_id=memory.id, memory_type="insight", ttl=60)
    assert (changed.content, changed.importance, changed.reasoning) == ("dust", 7.0, "seen")
    assert changed.tags == ("moon", "episodic", "insight")
    assert changed.expires_at == desk.clock.seconds + 60
    with pytest.raises(MemoryInputError, match="nothing to change"):
        await desk.ask("update_memory", memory_id=memory.id)


async def test_links_are_directed_and_go_with_their_memories(desk: MemoryDesk) -> None:
    cause, effect = [await desk.store_memory(text) for text in ("leak", "flood")]
    args = {"source_memory_id": cause.id, "target_memory_id": effect.id, "link_type": "causal"}
    await desk.ask("create_memory_link", **args, strength=0.5)
    await desk.ask("create_memory_link", **args, strength=0.75)
    (linked,) = await desk.ask("get_linked_memories", memory_id=cause.id, direction="outgoing")
    assert (linked.memory.id, linked.link.strength) == (effect.id, 0.75)
    assert await desk.ask("get_linked_memories", memory_id=cause.id, direction="incoming") == ()
    with pytest.raises(MemoryInputError, match="no link to itself"):
        await desk.ask("create_memory_link", source_memory_id=cause.id, target_memory_id=cause.id)
    await desk.ask("forget_memories", memory_ids=[effect.id])
    assert await desk.ask("get_linked_memories", memory_id=cause.id) == ()


async def test_old_links_lose_strength_round_by_round(desk: MemoryDesk) -> None:
    one, other = [await desk.store_memory(text, ttl=0) for text in ("leak", "flood")]
    await desk.ask("create_memory_link", source_memory_id=one.id, target_memory_id=other.id, strength=0.106)
    assert await desk.ask("decay_link_strengths", workflow_id=desk.workflow) == 0
    desk.clock.seconds += 15 * DAY
    assert await desk.ask("decay_link_strengths", workflow_id=desk.workflow) == 1
    (linked,) = await desk.ask("get_linked_memories", memory_id=one.id)
    assert linked.link.strength == pytest.approx(0.1007)
    await desk.ask("decay_link_strengths", workflow_id=desk.workflow)
    assert await desk.ask("get_linked_memories", memory_id=one.id) == ()


async def test_consolidation_derives_its_numbers(desk: MemoryDesk) -> None:
    """Importance 10, confidence 0.738, ten `generalizes` links."""
    sources = [
        (await desk.store_memory(f"reading {n}", importance=9.8 if n == 3 else 5.0, confidence=0.9)).id
        for n in range(10)
    ]
    merged = await desk.ask(
        "consolidate_memories", workflow_id=desk.workflow, source_ids=sources, content="readings hold"
    )
    assert (merged.importance, round(merged.confidence, 6)) == (10.0, 0.738)
    assert (merged.level, merged.type) == ("semantic", "summary")
    links = await desk.ask("get_linked_memories", memory_id=merged.id, direction="outgoing")
    assert sorted(one.memory.id for one in links) == sorted(sources)
    assert {one.link.type for one in links} == {"generalizes"}


async def test_what_was_consolidated_is_no_source_again(desk: MemoryDesk) -> None:
    """Neither offered nor taken; records go after a day, and what was learnt keeps its time."""
    types = ("action_log", "action_log", "fact", "fact")
    sources = [(await desk.store_memory(f"reading {n}", memory_type=kind)).id for n, kind in enumerate(types)]
    args = {"workflow_id": desk.workflow, "content": "readings hold"}
    offered = await desk.ask("consolidation_candidates", workflow_id=desk.workflow)
    assert {one.id for one in offered} == set(sources)
    await desk.ask("consolidate_memories", **args, source_ids=sources[:3])
    offered = await desk.ask("consolidation_candidates", workflow_id=desk.workflow)
    assert [one.id for one in offered] == sources[3:]
    with pytest.raises(MemoryRefused, match=f"{sources[0]} went into m"):
        await desk.ask("consolidate_memories", **args, source_ids=[sources[0], sources[3]])
    desk.clock.seconds += DAY + 1
    assert await desk.ask("delete_expired_memories") == 2
    assert {sources[2], sources[3]} <= set(await desk.found("reading"))


async def test_a_reflection_can_be_found(desk: MemoryDesk) -> None:
    await desk.ask(
        "record_reflection",
        workflow_id=desk.workflow,
        reflection_type="gaps",
        content="Nobody looked at the seismometer.\nIt may be broken.",
    )
    (found,) = await desk.ask("hybrid_search_memories", query="seismometer")
    assert (found.memory.type, found.memory.level) == ("reflection", "semantic")


async def test_similar_memories_suggest_links_and_none_is_made(desk: MemoryDesk) -> None:
    first = await desk.store_memory("pump three leaks at the lower seal")
    second = await desk.store_memory("pump three leaks at the upper seal")
    await desk.store_memory("sunrise over the crater")
    (told,) = await desk.ask("suggest_links", memory_id=second.id)
    assert (told.target.id, told.type) == (first.id, "sequential")
    assert await desk.ask("get_linked_memories", memory_id=second.id) == ()
    await desk.ask("create_memory_link", source_memory_id=second.id, target_memory_id=first.id)
    assert await desk.ask("suggest_links", memory_id=second.id) == ()


async def test_statistics_count_what_is_alive(desk: MemoryDesk) -> None:
    await desk.store_memory("one", importance=4.0, tags=["moon"])
    await desk.store_memory("two", importance=6.0, memory_level="semantic")
    await desk.store_memory("three", memory_level="working")
    desk.clock.seconds += 31 * MINUTE
    told = await desk.ask("compute_memory_statistics", workflow_id=desk.workflow)
    assert (told.total, told.unconsolidated_episodic, told.mean_importance) == (2, 1, 5.0)
    assert told.by_level == (("episodic", 1), ("semantic", 1))
    assert told.top_tags == (("fact", 2), ("episodic", 1), ("moon", 1), ("semantic", 1))
