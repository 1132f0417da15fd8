"""What a thinker is told from memory: parts read at once, each stamped, one failing alone."""

from __future__ import annotations

from typing import Any

import pytest

from engine.core.goals import Goal
from engine.core.plan import Plan, PlanStep
from engine.core.state import AgentState
from engine.memory.context import FETCH, ContextQuestion, Part, Parts, gather
from tests.engine.memory.memory_desk import MemoryDesk


def question(desk: MemoryDesk, goal: str = "find water on the moon", **more: Any) -> ContextQuestion:
    return ContextQuestion(desk.workflow, goal, **more)


async def packed_up(desk: MemoryDesk, asked: ContextQuestion) -> Parts:
    return await gather(desk.memory, asked)


def ids(package: Parts, part: Part) -> list[str]:
    return [str(item["id"]) for item in package.get(part, ())]


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


async def test_every_part_is_shown_with_content(desk: MemoryDesk) -> None:
    known = await furnished(desk)
    found = await packed_up(desk, question(desk))
    assert list(found) == list(Part)
    assert found[Part.WORKING][0]["content"] == "the south pole of the moon has water ice"
    assert found[Part.WORKING][0]["focal"] is True
    assert found[Part.CORE][0]["title"] == "Survey the moon"
    assert found[Part.THOUGHTS][0]["content"] == "drill first"
    assert found[Part.LINKS][0]["link"] == {
        "type": "related",
        "from": "this",
        "to": known["fact"],
        "strength": 1.0,
    }
    assert known["fact"] in ids(found, Part.PROACTIVE)
    assert ids(found, Part.PROCEDURES) == [known["recipe"]]


async def test_parts_that_cannot_be_read_leave_the_others_intact(desk: MemoryDesk) -> None:
    await furnished(desk)
    package = await packed_up(desk, ContextQuestion("w404", "find water on the moon"))
    assert list(package) == [Part.PROACTIVE, Part.PROCEDURES]


async def test_closed_memory_gives_nothing(desk: MemoryDesk) -> None:
    await desk.memory.close()
    assert await gather(desk.memory, question(desk)) == {}


async def test_links_are_followed_from_the_focus_then_the_first_in_mind_then_the_most_important(
    desk: MemoryDesk,
) -> None:
    """Three steps of where links begin, in both directions."""
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
    items = (await packed_up(desk, question(desk)))[Part.THOUGHTS]
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
    """What context gathers ten times is not accessed."""
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
    assert Part.WORKING in await packed_up(desk, question(desk, goal))


async def test_what_was_learned_for_an_earlier_goal_comes_up(desk: MemoryDesk) -> None:
    fact = await desk.store_memory("the spare key lies under the third crater")
    before = desk.workflow
    desk.workflow = (await desk.ask("create_workflow", title="Next", goal="where is the spare key")).id
    asked = question(desk, "where is the spare key")
    package = await packed_up(desk, asked)
    assert ids(package, Part.PROACTIVE)[0] == fact.id
    assert package[Part.PROACTIVE][0]["workflow"] == before


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


def test_the_next_step_of_a_plan_is_what_a_situation_says_is_next() -> None:
    state = AgentState(goals={"g1": Goal("g1", "root"), "g2": Goal("g2", "leaf", parent="g1")})
    state.current_goal = "g2"
    state.plans["g2"] = Plan("p1", "g2", steps=(PlanStep("s1", "dig a hole"),))
    assert ContextQuestion.of("w1", state) == ContextQuestion("w1", "leaf", "dig a hole")
    assert ContextQuestion.of("w1", AgentState()) == ContextQuestion("w1")
