"""What the jobs do to a real memory, and that they keep to the workflow for which they were begun."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.memory import MemoryLevel, ReflectionKind
from engine.core.metacognition import BackgroundJob, JobOutcome, MetaSettings, MetaTask
from engine.memory.memory import Memory
from engine.memory.metacognition.job import BackgroundJobResult, JobInputs, NoWorkflowError
from engine.memory.metacognition.jobs import run_job
from engine.memory.metacognition.retrospect import computed, repeated, review_record, slow
from engine.memory.metacognition.runner import BackgroundRunner
from tests.engine.memory.memory_desk import DAY, MINUTE, MemoryDesk
from tests.engine.memory.metacognition.meta_desk import MetaDesk


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[MemoryDesk]:
    desk = await MemoryDesk(tmp_path).open()
    yield desk
    await desk.close()


async def done(room: MemoryDesk, task: MetaTask, **job: Any) -> BackgroundJobResult:
    """A job's result, for the workflow of goal g1."""

    async def workflow_of(memory: Memory, agent: str, goal: str) -> str:
        return room.workflow if (agent, goal) == ("pilot", "g1") else ""

    made = BackgroundJob("bg1", task, "because", 1, **{"goal": "g1", **job})
    desk = MetaDesk().open()
    return await run_job(JobInputs(made, "pilot", review_record(desk.state), 10, room.memory, workflow_of))


async def fill(room: MemoryDesk, count: int, text: str = "reading {n} of the gauge") -> list[str]:
    return [(await room.store_memory(text.format(n=n))).id for n in range(count)]


async def test_ten_sources_go_into_one_memory_and_none_is_a_source_again(room: MemoryDesk) -> None:
    """One summary over at most ten episodic sources; the next one takes others."""
    stored = await fill(room, 12)
    first = await done(room, MetaTask.CONSOLIDATE)
    second = await done(room, MetaTask.CONSOLIDATE)
    third = await done(room, MetaTask.CONSOLIDATE)
    assert (len(first.sources), len(second.sources)) == (10, 2)
    assert sorted((*first.sources, *second.sources)) == sorted(stored)
    assert (third.sources, third.made) == ((), "")
    made = await room.recall(first.made)
    assert (made.type, made.level, made.source) == ("summary", MemoryLevel.SEMANTIC, "computed")
    assert made.content.startswith("10 memories (fact ×10) in 1 groups of like words, counted.")


async def test_what_is_not_alike_stands_apart_in_a_computed_consolidation(room: MemoryDesk) -> None:
    await fill(room, 3)
    await room.store_memory("the key lies under the mat")
    text = (await room.recall((await done(room, MetaTask.CONSOLIDATE)).made)).content
    assert "3 alike, such as" in text
    assert "1: the key lies under the mat" in text


async def test_a_mind_that_is_all_but_empty_takes_in_what_matters_and_has_a_focus(room: MemoryDesk) -> None:
    await fill(room, 3)
    chosen = [(await room.store_memory(f"insight {n}", importance=6.0 + n)).id for n in range(4)]
    first = await done(room, MetaTask.OPTIMISE)
    mind = await room.ask("get_working_memory", context_id=room.workflow)
    inside = {item.memory.id for item in mind.items}
    assert set(chosen) <= inside
    assert (len(inside) <= 5, first.counts["working"] == len(inside)) == (True, True)
    assert mind.state.focal in inside
    again = await done(room, MetaTask.OPTIMISE)
    assert again.counts == first.counts


async def test_a_job_keeps_to_the_workflow_for_which_it_was_begun(room: MemoryDesk) -> None:
    """Begun for W1, it writes to W1 though the agent has turned to W2 meanwhile."""
    other = (await room.ask("create_workflow", title="Another survey")).id
    await fill(room, 3)
    for n in range(3):
        await room.store_memory(f"second {n}", workflow_id=other)
    turned, asked = asyncio.Event(), []

    async def workflow_of(memory: Memory, agent: str, goal: str) -> str:
        await turned.wait()
        asked.append((agent, goal))
        return {"g1": room.workflow, "g2": other}[goal]

    runner = BackgroundRunner()
    desk = MetaDesk(
        runner=runner, memory=room.memory, workflow_of=workflow_of, commit=room.store.commit
    ).open()
    desk.goal("g1")
    desk.do(cmd.ForceMeta, task="consolidate")
    assert desk.boundary() == [MetaTask.CONSOLIDATE]
    desk.goal("g2")
    assert desk.state.current_goal == "g2"
    turned.set()
    await desk.until(lambda s: s.meta.ended)
    assert asked == [("pilot", "g1")]
    (over,) = desk.state.meta.ended
    assert over.outcome is JobOutcome.DONE
    assert (await room.ask("compute_memory_statistics", workflow_id=room.workflow)).total == 4
    assert (await room.ask("compute_memory_statistics", workflow_id=other)).total == 3
    await runner.close()


async def test_a_goal_without_a_workflow_has_nothing_written_for_it(room: MemoryDesk) -> None:
    """Or quits."""
    head = await room.store.head_seq()
    with pytest.raises(NoWorkflowError, match="goal g7 has no workflow"):
        await done(room, MetaTask.OPTIMISE, goal="g7")
    looked = await done(room, MetaTask.REFLECT, goal="g7", kind="summary")
    assert (looked.made, looked.computed) == ("", True)
    assert await room.store.head_seq() == head


async def test_a_reflection_is_found_again_and_says_that_it_was_computed(room: MemoryDesk) -> None:
    looked = await done(room, MetaTask.REFLECT, kind="gaps")
    assert looked.made
    (kept,) = await room.ask("query_memories", memory_type="reflection")
    assert kept.memory.source == "computed"
    assert kept.memory.content.startswith("0 failures are not settled")


async def test_memories_that_have_earned_it_settle(room: MemoryDesk) -> None:
    first, second = await fill(room, 2)
    await room.use(first, 5)
    await room.use(second, 4)
    risen = await done(room, MetaTask.PROMOTE)
    assert risen.sources == (first,)
    assert (await room.recall(first)).level is MemoryLevel.SEMANTIC


async def test_what_has_expired_goes_and_old_links_weaken(room: MemoryDesk) -> None:
    kept, linked = await fill(room, 2)
    await room.ask("create_memory_link", source_memory_id=kept, target_memory_id=linked)
    for ident in (kept, linked):
        await room.ask("update_memory", memory_id=ident, ttl=0)
    await room.store_memory("gone soon", memory_level="working")
    room.clock.seconds += 31 * MINUTE
    assert (await done(room, MetaTask.MAINTAIN)).counts == {"expired": 1, "weakened": 0}
    room.clock.seconds += 20 * DAY
    assert (await done(room, MetaTask.MAINTAIN)).counts == {"expired": 0, "weakened": 1}


async def test_working_memory_is_cut_down_and_focused(room: MemoryDesk) -> None:
    stored = await fill(room, 3)
    await room.ask("change_working_memory", context_id=room.workflow, add=stored)
    said = await done(room, MetaTask.OPTIMISE)
    assert said.counts == {"working": 3}
    assert (await room.ask("get_working_memory", context_id=room.workflow)).state.focal in stored


async def test_like_memories_are_linked_three_at_most_and_only_once(room: MemoryDesk) -> None:
    stored = await fill(room, 8, "the gauge of pump number seven shows high pressure today")
    await room.store_memory("cucumbers grow in the garden")
    made = await done(room, MetaTask.LINK)
    assert made.counts["links"] > 0
    for ident in stored:
        out = await room.ask("get_linked_memories", memory_id=ident, direction="outgoing", limit=50)
        assert len(out) <= 3
        assert all(0.7 <= one.link.strength <= 1 for one in out)
    first = made.counts["links"]
    for _ in range(3):
        await done(room, MetaTask.LINK)
    out = await room.ask("get_linked_memories", memory_id=stored[-1], direction="outgoing", limit=50)
    assert len(out) == 3
    assert first <= 4 * 3


async def test_counts_are_those_of_the_workflow(room: MemoryDesk) -> None:
    await fill(room, 4)
    await room.store_memory("settled", memory_level="semantic")
    other = (await room.ask("create_workflow", title="Another")).id
    await room.store_memory("elsewhere", workflow_id=other)
    assert (await done(room, MetaTask.ADAPT)).counts == {"episodic": 4, "total": 5, "unconsolidated": 4}


async def test_a_memory_that_cannot_be_written_fails_the_job_in_words_and_nothing_else(
    tmp_path: Path,
) -> None:
    room = await MemoryDesk(tmp_path).open()

    async def workflow_of(memory: Memory, agent: str, goal: str) -> str:
        return room.workflow

    runner = BackgroundRunner()
    desk = MetaDesk(runner=runner, memory=room.memory, workflow_of=workflow_of).open(MetaSettings())
    desk.goal()
    await room.close()
    desk.do(cmd.ForceMeta, task="maintain")
    desk.boundary()
    await desk.until(lambda s: s.meta.ended)
    over = desk.state.meta.ended[-1]
    assert (over.outcome, "Memory is closed" in over.message) == (JobOutcome.FAILED, True)
    assert (desk.state.failures, desk.state.consecutive_errors) == ([], 0)
    await runner.close()


# ------------------------------------------------------------------ computed from the record


@pytest.fixture
async def worked() -> MetaDesk:
    desk = MetaDesk().open()
    desk.goal()
    for path in ("a", "a", "a", "b"):
        desk.act(path=path)
    desk.act(ok=False, path="missing", command="read")
    desk.act(path="big", ms=9_000)
    return desk


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        ("summary", ["1 of the last 6 actions failed.",
                     "Done: simple_coder.write ×5, simple_coder.read ×1."]),
        ("progress", ["0 steps are through, 0 still to come; 1 goals are open."]),
        ("gaps", ["0 failures are not settled; 1 of the last 6 actions failed.",
                  "Done over and over: write a ×3"]),
        ("strengths", ["1 command never failed; 1 of the last 6 actions failed.",
                       "simple_coder.write: 5 times, 1804 ms each"]),
        ("plan", ["Still to come: 0 steps, first nothing is planned.", "Slow: write big, 9.0 s"]),
    ],
)  # fmt: skip
async def test_without_a_model_a_reflection_counts_and_invents_nothing(
    worked: MetaDesk, kind: str, lines: list[str]
) -> None:
    text = computed(review_record(worked.state), ReflectionKind(kind))
    assert text.splitlines()[0] == lines[0]
    assert set(lines) <= set(text.splitlines())


async def test_a_reflection_on_nothing_says_so() -> None:
    desk = MetaDesk().open()
    assert "no action has ended yet" in computed(review_record(desk.state), ReflectionKind.SUMMARY).lower()


async def test_what_repeats_and_what_is_slow(worked: MetaDesk) -> None:
    window = worked.state.meta.window
    assert repeated(window) == [("write a", 3)]
    assert slow(window) == [("write big", 9_000)]


async def test_hostile_text_of_the_record_is_cleaned(worked: MetaDesk) -> None:
    worked.say(ev.GoalAdopted(goal="g9", text="look \x1b[31mhere\x07"), "operator:test")
    text = computed(review_record(worked.state), ReflectionKind.PLAN)
    assert "\x1b" not in text
    assert "\x07" not in text
