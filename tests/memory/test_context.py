"""What a thinker is told from memory: parts read at once, each stamped, one failing alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import pytest

from engine.domain.goal import Goal
from engine.domain.plan import Plan, PlanStep
from engine.domain.state import AgentState
from engine.memory import EmbedderUnavailable, HashEmbedder
from engine.memory.context import MAX_AGE_S, gather
from engine.memory.embedding import Vector
from engine.memory.package import FETCH, ContextPackage, ContextQuestion, Part, Situation
from tests.memory.memory_desk import MemoryDesk

READ = (
    Part.WORKING,
    Part.CORE,
    Part.ACTIONS,
    Part.IMPORTANT,
    Part.THOUGHTS,
    Part.LINKS,
    Part.PROACTIVE,
    Part.PROCEDURES,
)


class QueriesStuck(HashEmbedder):
    """Embeds passages; a query never comes back while `stuck`."""

    stuck = True

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> list[Vector]:
        if self.stuck and kind == "query":
            await asyncio.Event().wait()
        return await super().embed(texts, kind=kind)


class QueriesRefused(HashEmbedder):
    """Embeds passages and no queries."""

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> list[Vector]:
        if kind == "query":
            raise EmbedderUnavailable("the model is loading")
        return await super().embed(texts, kind=kind)


def question(desk: MemoryDesk, goal: str = "find water on the moon", **more: Any) -> ContextQuestion:
    return ContextQuestion(desk.workflow, Situation(goal, **more))


async def packed_up(desk: MemoryDesk, asked: ContextQuestion, **how: Any) -> ContextPackage:
    await desk.memory.embedded()
    return await gather(desk.memory, asked, desk.clock, **how)


def ids(package: ContextPackage, part: Part) -> list[str]:
    section = package.section(part)
    assert section is not None
    return [str(item["id"]) for item in section.items]


async def done(desk: MemoryDesk, result: str, status: str = "completed", **more: Any) -> str:
    started = await desk.ask(
        "record_action_start",
        workflow_id=desk.workflow,
        action_type="tool_use",
        **{"tool_name": "simple_coder", "title": "run", **more},
    )
    await desk.ask("record_action_completion", action_id=started.id, status=status, tool_result=result)
    return str(started.id)


async def furnished(desk: MemoryDesk) -> dict[str, str]:
    """A memory with something for every part."""
    fact = await desk.store_memory("the south pole of the moon has water ice", importance=8.0)
    other = await desk.store_memory("craters there lie in the dark", importance=6.0)
    recipe = await desk.store_memory(
        "to find water: drill, heat, weigh", memory_level="procedural", memory_type="procedure"
    )
    await desk.ask("create_memory_link", source_memory_id=other.id, target_memory_id=fact.id)
    await desk.ask("focus_memory", memory_id=fact.id, context_id=desk.workflow)
    await desk.ask(
        "record_thought", workflow_id=desk.workflow, content="drill first", thought_type="decision"
    )
    await done(desk, "drilled 2 m")
    return {"fact": fact.id, "other": other.id, "recipe": recipe.id}


async def test_every_part_is_stamped_and_told_with_content(desk: MemoryDesk) -> None:
    """Checklist 38: each part has retrieved_at; memories come with content, actions with results."""
    known = await furnished(desk)
    above = (Goal("g0", "survey the moon"),)
    package = await packed_up(desk, question(desk, above=above))
    assert package.ready
    assert [one.part for one in package.sections] == list(Part)
    assert {one.retrieved_at for one in package.sections} == {desk.clock.now()}
    found = {one.part: one.items for one in package.sections}
    assert found[Part.GOALS][0]["goal"] == "survey the moon"
    assert found[Part.WORKING][0]["content"] == "the south pole of the moon has water ice"
    assert found[Part.WORKING][0]["focal"] is True
    assert found[Part.CORE][0]["title"] == "Survey the moon"
    assert found[Part.ACTIONS][0]["result"] == "drilled 2 m"
    assert found[Part.THOUGHTS][0]["content"] == "drill first"
    assert found[Part.LINKS][0]["link"] == {
        "type": "related",
        "from": "this",
        "to": known["fact"],
        "strength": 1.0,
    }
    assert known["fact"] in ids(package, Part.PROACTIVE)
    assert ids(package, Part.PROCEDURES) == [known["recipe"]]


async def test_a_part_that_never_comes_is_one_error_and_the_others_are_there(
    open_desk: Callable[..., Awaitable[MemoryDesk]],
) -> None:
    """Checklist 38: a failing part yields one error entry and leaves the others intact."""
    desk = await open_desk(embedder=QueriesStuck())
    await furnished(desk)
    package = await packed_up(desk, question(desk), timeout_s=2.0)
    assert not package.ready
    assert [one.part for one in package.errors] == [Part.PROACTIVE, Part.PROCEDURES]
    assert all("2 s" in one.error for one in package.errors)
    assert [one.part for one in package.sections] == [
        part for part in Part if part not in (Part.PROACTIVE, Part.PROCEDURES)
    ]
    assert package.section(Part.WORKING).items


async def test_without_vectors_memories_come_up_by_their_words(
    open_desk: Callable[..., Awaitable[MemoryDesk]],
) -> None:
    desk = await open_desk(embedder=QueriesRefused())
    known = await furnished(desk)
    package = await packed_up(desk, question(desk))
    assert package.ready
    assert known["fact"] in ids(package, Part.PROACTIVE)


async def test_a_workflow_that_is_not_there_is_an_error_of_each_part_that_needs_it(desk: MemoryDesk) -> None:
    package = await packed_up(desk, ContextQuestion("w404", Situation("go")))
    assert {one.part for one in package.errors} == set(READ) - {Part.PROACTIVE, Part.PROCEDURES}
    assert all("w404" in one.error for one in package.errors)


async def test_closed_memory_gives_a_package_of_what_the_caller_knows(desk: MemoryDesk) -> None:
    await desk.memory.close()
    package = await gather(desk.memory, question(desk), desk.clock)
    assert [one.part for one in package.errors] == list(READ)
    assert [one.part for one in package.sections] == [Part.SITUATION, Part.GOALS]


async def test_links_are_followed_from_the_focus_then_the_first_in_mind_then_the_most_important(
    desk: MemoryDesk,
) -> None:
    """Checklist 37: three steps of where links begin, in both directions."""
    focus = await desk.store_memory("focus", importance=1.0)
    first = await desk.store_memory("first", importance=1.0)
    top = await desk.store_memory("top", importance=9.0)
    ends = {}
    for one in (focus, first, top):
        out = await desk.store_memory(f"out of {one.content}", importance=0.0)
        into = await desk.store_memory(f"into {one.content}", importance=0.0)
        await desk.ask("create_memory_link", source_memory_id=one.id, target_memory_id=out.id)
        await desk.ask("create_memory_link", source_memory_id=into.id, target_memory_id=one.id)
        ends[one.id] = {out.id, into.id}
    await desk.ask("change_working_memory", context_id=desk.workflow, add=[first.id, focus.id])
    await desk.ask("focus_memory", memory_id=focus.id, context_id=desk.workflow)

    assert set(ids(await packed_up(desk, question(desk)), Part.LINKS)) == ends[focus.id]
    await desk.ask("change_working_memory", context_id=desk.workflow, evict=[focus.id])
    assert set(ids(await packed_up(desk, question(desk)), Part.LINKS)) == ends[first.id]
    await desk.ask("change_working_memory", context_id=desk.workflow, evict=[first.id])
    assert set(ids(await packed_up(desk, question(desk)), Part.LINKS)) == ends[top.id]


async def test_the_last_tools_two_kilobytes_are_there_and_older_answers_by_their_ends(
    desk: MemoryDesk,
) -> None:
    """Checklist 41: the last output is present; long ones by beginning and end."""
    await done(desk, "old " + "x" * 5_000 + " end")
    two_kilobytes = "".join(f"line {number}\n" for number in range(220))
    await done(desk, two_kilobytes)
    newest, older = (await packed_up(desk, question(desk))).section(Part.ACTIONS).items
    assert newest["result"] == two_kilobytes
    assert older["result"].startswith("old xx")
    assert older["result"].endswith("xx end")
    assert "characters left out" in older["result"]


async def test_the_end_of_an_answer_that_became_a_blob_is_there(desk: MemoryDesk) -> None:
    await done(desk, "x" * 200_000 + "Error: the drill broke", status="failed")
    (only,) = (await packed_up(desk, question(desk))).section(Part.ACTIONS).items
    assert only["result"].endswith("Error: the drill broke")
    assert len(only["result"]) < 4_200


async def test_thoughts_of_all_chains_are_told_and_guidance_among_them(desk: MemoryDesk) -> None:
    chain = await desk.ask("create_thought_chain", workflow_id=desk.workflow, title="second line")
    for content, kind, where in (
        ("look south", "user_guidance", ""),
        ("maybe", "inference", ""),
        ("drill", "decision", chain.id),
    ):
        await desk.ask(
            "record_thought",
            workflow_id=desk.workflow,
            content=content,
            thought_type=kind,
            thought_chain_id=where,
        )
    items = (await packed_up(desk, question(desk))).section(Part.THOUGHTS).items
    assert [one["content"] for one in items] == ["drill", "look south"]


async def test_no_more_is_read_of_each_part_than_is_said(desk: MemoryDesk) -> None:
    for number in range(15):
        await desk.store_memory(f"water {number}", memory_level="procedural" if number % 2 else "semantic")
        await done(desk, f"water {number}")
        await desk.ask(
            "record_thought", workflow_id=desk.workflow, content=f"water {number}", thought_type="goal"
        )
    package = await packed_up(desk, question(desk, "water"))
    counts = {part: len(ids(package, part)) for part in FETCH if part is not Part.LINKS}
    assert counts == {part: limit for part, limit in FETCH.items() if part is not Part.LINKS}


async def test_being_told_is_no_use_of_a_memory(desk: MemoryDesk) -> None:
    """Checklist 51: what context gathers ten times is not accessed."""
    known = await furnished(desk)
    for _ in range(10):
        await packed_up(desk, question(desk))
    found = await desk.ask("query_memories", workflow_id=desk.workflow, limit=50)
    assert {one.memory.access_count for one in found} == {0}
    assert await desk.ask("promote_memory_level", memory_id=known["fact"]) is None


async def test_the_search_is_for_the_next_step_and_only_then_for_the_goal(desk: MemoryDesk) -> None:
    drill = await desk.store_memory("the drill needs oil")
    orbit = await desk.store_memory("the orbit is polar")
    asked = question(desk, "map the orbit", next_step="oil the drill")
    assert asked.query == "oil the drill"
    assert ids(await packed_up(desk, asked), Part.PROACTIVE)[0] == drill.id
    assert ids(await packed_up(desk, question(desk, "map the orbit")), Part.PROACTIVE)[0] == orbit.id


@pytest.mark.parametrize("goal", ["", "   ", "!?", 'he said "x AND (', "\ud800 half", "w" * 5_000])
async def test_any_goal_at_all_can_be_asked_for(desk: MemoryDesk, goal: str) -> None:
    await furnished(desk)
    assert (await packed_up(desk, question(desk, goal))).ready


async def test_what_was_learned_for_an_earlier_goal_comes_up_unless_unwanted(desk: MemoryDesk) -> None:
    fact = await desk.store_memory("the spare key lies under the third crater")
    before = desk.workflow
    desk.workflow = (await desk.ask("create_workflow", title="Next", goal="where is the spare key")).id
    asked = question(desk, "where is the spare key")
    package = await packed_up(desk, asked)
    assert ids(package, Part.PROACTIVE)[0] == fact.id
    assert package.section(Part.PROACTIVE).items[0]["workflow"] == before
    assert fact.id not in ids(await packed_up(desk, replace(asked, everywhere=False)), Part.PROACTIVE)


async def test_a_fact_stored_two_hundred_memories_ago_is_told_when_the_goal_asks_for_it(
    desk: MemoryDesk,
) -> None:
    fact = await desk.store_memory("The valve of tank B opens at 47 bar, not at 50.", importance=4.0)
    for number in range(200):
        desk.clock.seconds += 600
        await desk.store_memory(
            f"Reading {number}: tank A stands at {number} bar, all is well.", importance=5.0 + number % 4
        )
    package = await packed_up(desk, question(desk, "At which pressure does the valve of tank B open?"))
    assert ids(package, Part.PROACTIVE)[0] == fact.id


async def test_parts_that_nothing_touched_are_kept_until_they_are_old(desk: MemoryDesk) -> None:
    await furnished(desk)
    first = await packed_up(desk, question(desk))
    desk.clock.seconds += 10
    kept = await packed_up(desk, question(desk), previous=first)
    assert [kept.section(part) for part in READ] == [first.section(part) for part in READ]
    assert kept.gathered_at != first.gathered_at

    desk.clock.seconds += MAX_AGE_S[Part.ACTIONS]
    later = await packed_up(desk, question(desk), previous=kept)
    again = {part for part in READ if later.section(part) != first.section(part)}
    assert again == set(READ) - {Part.CORE, Part.PROCEDURES}

    await done(desk, "drilled on")
    fresh = await packed_up(desk, question(desk), previous=later)
    assert {fresh.section(part).retrieved_at for part in READ} == {desk.clock.now()}
    assert len(ids(fresh, Part.ACTIONS)) == 2


async def test_another_next_step_is_searched_for_and_the_rest_is_kept(desk: MemoryDesk) -> None:
    await furnished(desk)
    first = await packed_up(desk, question(desk))
    desk.clock.seconds += 1
    moved = await packed_up(desk, question(desk, next_step="drill"), previous=first)
    changed = {part for part in READ if moved.section(part) != first.section(part)}
    assert changed == {Part.PROACTIVE, Part.PROCEDURES}


async def test_a_part_that_cannot_be_read_again_is_kept_and_marked_stale(
    open_desk: Callable[..., Awaitable[MemoryDesk]],
) -> None:
    embedder = QueriesStuck()
    embedder.stuck = False
    desk = await open_desk(embedder=embedder)
    await furnished(desk)
    first = await packed_up(desk, question(desk))
    embedder.stuck = True
    await done(desk, "something new")
    second = await packed_up(desk, question(desk), previous=first, timeout_s=2.0)
    proactive = second.section(Part.PROACTIVE)
    assert proactive is not None
    assert proactive.stale
    assert proactive.items == first.section(Part.PROACTIVE).items
    assert [one.part for one in second.errors] == [Part.PROACTIVE, Part.PROCEDURES]
    assert not second.section(Part.ACTIONS).stale


async def test_what_was_known_at_an_event_can_be_told(desk: MemoryDesk) -> None:
    before = await desk.store_memory("water ice at the pole")
    then = await desk.store.head_seq()
    await desk.store_memory("no water after all")
    package = await packed_up(desk, question(desk, "water"), as_of=then)
    assert ids(package, Part.PROACTIVE) == [before.id]


async def test_gathering_can_be_cancelled(open_desk: Callable[..., Awaitable[MemoryDesk]]) -> None:
    desk = await open_desk(embedder=QueriesStuck())
    task = asyncio.create_task(packed_up(desk, question(desk)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not [one for one in asyncio.all_tasks() if one.get_name().startswith("context ")]


def test_the_next_step_of_a_plan_is_what_a_situation_says_is_next() -> None:
    state = AgentState(goals={"g1": Goal("g1", "root"), "g2": Goal("g2", "leaf", parent="g1")})
    state.current_goal = "g2"
    state.plans["g2"] = Plan("p1", "g2", steps=(PlanStep("s1", "dig a hole"),))
    told = Situation.of(state)
    assert (told.goal, told.next_step, [one.id for one in told.above]) == ("leaf", "dig a hole", ["g1"])
    assert Situation.of(AgentState()) == Situation("")
