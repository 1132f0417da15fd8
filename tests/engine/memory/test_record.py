"""Workflows, actions, artifacts and thoughts."""

from __future__ import annotations

import pytest

from engine.memory.errors import MemoryInputError, MemoryNotFound, MemoryRefused
from tests.engine.memory.memory_desk import MemoryDesk


async def test_a_workflow_begins_with_a_chain_a_goal_and_an_empty_mind(desk: MemoryDesk) -> None:
    workflow = await desk.ask("create_workflow", title="Drill", goal="reach the ice", tags=["Ice"])
    thought = await desk.ask("record_thought", workflow_id=workflow.id, content="start shallow")
    chain = await desk.ask("get_thought_chain", thought_chain_id=thought.chain)
    assert chain.chain.title == "main reasoning"
    assert [(one.type, one.content, one.sequence) for one in chain.thoughts] == [
        ("goal", "reach the ice", 1),
        ("inference", "start shallow", 2),
    ]
    state = (await desk.ask("get_working_memory", context_id=workflow.id)).state
    assert (state.workflow, state.working) == (workflow.id, ())
    assert workflow.tags == ("ice",)


async def test_what_is_over_stays_over(desk: MemoryDesk) -> None:
    part = await desk.ask("create_workflow", title="Part", parent_workflow_id=desk.workflow)
    done = {"status": "completed", "completion_message": "all samples taken", "update_tags": ["done"]}
    with pytest.raises(MemoryRefused, match=f"open sub-workflows \\({part.id}\\)"):
        await desk.ask("update_workflow_status", workflow_id=desk.workflow, **done)
    await desk.ask("update_workflow_status", workflow_id=part.id, status="failed")
    ended = await desk.ask("update_workflow_status", workflow_id=desk.workflow, **done)
    assert (ended.status, ended.completed_at, ended.tags) == ("completed", desk.clock.seconds, ("done",))
    with pytest.raises(MemoryRefused, match="is completed and stays so"):
        await desk.ask("update_workflow_status", workflow_id=desk.workflow, status="active")
    with pytest.raises(MemoryRefused, match="no action can begin in it"):
        await desk.ask("record_action_start", workflow_id=desk.workflow, action_type="analysis")
    assert await desk.found("samples", workflow_id=desk.workflow)


async def test_an_action_is_remembered_with_its_outcome(desk: MemoryDesk) -> None:
    action = await desk.ask(
        "record_action_start",
        workflow_id=desk.workflow,
        action_type="tool_use",
        tool_name="drill",
        reasoning="the ice is below",
        tool_args={"depth": 2},
    )
    memory = await desk.recall(action.memory)
    assert (memory.level, memory.type, memory.importance) == ("episodic", "action_log", 5.0)
    assert memory.action == action.id
    ended = await desk.ask(
        "record_action_completion",
        action_id=action.id,
        status="failed",
        tool_result="the bit broke",
        summary="no ice",
        conclusion_thought="a harder bit is needed",
        conclusion_thought_type="decision",
    )
    assert (ended.status, ended.result.text, ended.completed_at) == ("failed", "the bit broke", 1_800_000_000)
    memory = await desk.recall(action.memory)
    assert memory.importance == 6.0
    assert memory.content == "Action drill: the ice is below\nfailed\nno ice\nthe bit broke"
    with pytest.raises(MemoryRefused, match="is failed already: it ends only once"):
        await desk.ask("record_action_completion", action_id=action.id)
    (recent,) = await desk.ask("get_recent_actions", workflow_id=desk.workflow)
    assert (recent.id, recent.result.text, recent.args) == (action.id, "the bit broke", {"depth": 2})
    (found,) = await desk.ask("hybrid_search_memories", query="harder bit", memory_level="semantic")
    assert (found.memory.type, found.memory.importance) == ("reasoning_step", 7.5)


async def test_a_large_result_is_kept_byte_for_byte(desk: MemoryDesk) -> None:
    """200 kB of tool output."""
    output = "Zeile ü\x00\r\n\x1b[31m\t" * 15_000
    assert len(output.encode()) > 200_000
    action = await desk.ask("record_action_start", workflow_id=desk.workflow, action_type="observation")
    await desk.ask("record_action_completion", action_id=action.id, tool_result=output)
    args = {"workflow_id": desk.workflow, "name": "log", "artifact_type": "text"}
    artifact = await desk.ask("record_artifact", **args, content=output)
    await desk.reopen()
    (kept,) = await desk.ask("get_action_details", action_id=action.id)
    content = kept.action.result
    assert (content.size, content.text) == (len(output.encode()), output[:2_000])
    assert (await desk.inside._blobs.get(content.blob)).decode() == output
    kept = await desk.ask("get_artifact_by_id", artifact_id=artifact.id)
    assert kept.content.blob == content.blob
    body = (await desk.store.last(1, "workspace@memory", kind="memory.artifact_recorded"))[0].body
    assert len(body) < 16_384


async def test_thoughts_are_kept_word_for_word(desk: MemoryDesk) -> None:
    text = '{"a": {{{{{{}}}}}}' + "x" * 3_000
    thought = await desk.ask("record_thought", workflow_id=desk.workflow, content=text)
    chain = await desk.ask("get_thought_chain", thought_chain_id=thought.chain)
    assert chain.thoughts[-1].content == text


async def test_thoughts_of_another_workflow_are_no_parents(desk: MemoryDesk) -> None:
    other = (await desk.ask("create_workflow", title="Another")).id
    parent = await desk.ask("record_thought", workflow_id=other, content="elsewhere")
    with pytest.raises(MemoryNotFound, match=f"belongs to workflow {other}"):
        await desk.ask(
            "record_thought", workflow_id=desk.workflow, content="here", parent_thought_id=parent.id
        )
    chain = await desk.ask("create_thought_chain", workflow_id=desk.workflow, title="Risks")
    here = await desk.ask(
        "record_thought", workflow_id=desk.workflow, content="here", thought_chain_id=chain.id
    )
    child = await desk.ask(
        "record_thought", workflow_id=desk.workflow, content="more", parent_thought_id=here.id
    )
    assert child.parent == here.id


async def test_dependencies_are_said_once_and_never_in_a_circle(desk: MemoryDesk) -> None:
    first, second, third = [
        (await desk.ask("record_action_start", workflow_id=desk.workflow, action_type="research")).id
        for _ in range(3)
    ]
    for _ in range(2):
        await desk.ask("add_action_dependency", source_action_id=second, target_action_id=first)
    await desk.ask("add_action_dependency", source_action_id=third, target_action_id=second)
    with pytest.raises(MemoryRefused, match="cannot wait for one another"):
        await desk.ask("add_action_dependency", source_action_id=first, target_action_id=third)
    with pytest.raises(MemoryRefused):
        await desk.ask("add_action_dependency", source_action_id=first, target_action_id=first)
    (told,) = await desk.ask("get_action_details", action_id=second, include_dependencies=True)
    assert [one.target for one in told.needs] == [first]
    assert [one.source for one in told.needed_by] == [third]


async def test_a_key_makes_a_request_safe_to_repeat(desk: MemoryDesk) -> None:
    for verb, arguments in {
        "create_workflow": {"title": "Drill"},
        "record_action_start": {"workflow_id": desk.workflow, "action_type": "analysis"},
        "record_artifact": {"workflow_id": desk.workflow, "name": "map", "artifact_type": "image"},
        "record_thought": {"workflow_id": desk.workflow, "content": "so be it"},
        "store_memory": {"workflow_id": desk.workflow, "content": "dust", "memory_type": "fact"},
    }.items():
        first = await desk.ask(verb, **arguments, idempotency_key="once")
        head = await desk.store.head_seq()
        again = await desk.ask(verb, **arguments, idempotency_key="once")
        assert (again.id, await desk.store.head_seq()) == (first.id, head)
        assert (await desk.ask(verb, **arguments, idempotency_key="twice")).id != first.id


@pytest.mark.parametrize(
    ("verb", "arguments", "message"),
    [
        ("store_memory", {"content": "x", "memory_type": "rumour"}, "memory_type: .*'observation'"),
        ("store_memory", {"content": "x" * 10_000_000, "memory_type": "fact"}, "at most 256000 characters"),
        ("store_memory", {"content": "\ud800", "memory_type": "fact"}, "half a surrogate pair"),
        ("store_memory", {"content": "x", "memory_type": "fact", "importance": 11}, "importance"),
        ("store_memory", {"content": "x", "memory_type": "fact", "importance": "5"}, "importance"),
        ("store_memory", {"content": "x", "memory_type": "fact", "ttl": -1}, "ttl"),
        ("store_memory", {"content": "x", "memory_type": "fact", "colour": "red"}, "no argument 'colour'"),
        ("store_memory", {"content": "x", "memory_type": "fact", "thought_id": "t99"}, "no thought 't99'"),
        ("store_memory", {"memory_type": "fact"}, "content is missing"),
        ("record_action_start", {"action_type": "tool_use"}, "must name its tool"),
        ("record_action_start", {"action_type": "analysis", "tool_args": {"a": {1, 2}}}, "is no JSON"),
        ("record_artifact", {"name": "m", "artifact_type": "map"}, "artifact_type"),
        ("record_artifact", {"name": "m", "artifact_type": "data", "metadata": {"a": "x" * 70_000}}, "64000"),
        ("consolidate_memories", {"source_ids": ["m1"], "content": "x"}, "at least 2 items"),
        ("consolidate_memories", {"source_ids": ["m1", "m1"], "content": "x"}, "two different"),
    ],
)
async def test_what_does_not_fit_is_named_and_nothing_is_written(
    desk: MemoryDesk, verb: str, arguments: dict[str, object], message: str
) -> None:
    head = await desk.store.head_seq()
    with pytest.raises(MemoryInputError, match=message) as caught:
        await desk.ask(verb, workflow_id=desk.workflow, **arguments)
    assert len(str(caught.value)) < 1_000
    assert await desk.store.head_seq() == head


async def test_ids_that_do_not_exist_are_named(desk: MemoryDesk) -> None:
    for verb, arguments, message in [
        ("get_memory_by_id", {"memory_id": "m99"}, "no memory 'm99'"),
        ("create_memory_link", {"source_memory_id": "m1", "target_memory_id": "m2"}, "no memory 'm1'"),
        ("store_memory", {"workflow_id": "w9", "content": "x", "memory_type": "fact"}, "no workflow 'w9'"),
        ("get_thought_chain", {"thought_chain_id": "c9"}, "no thought chain 'c9'"),
        ("record_action_completion", {"action_id": "'; drop table memories"}, "no action"),
    ]:
        with pytest.raises(MemoryNotFound, match=message):
            await desk.ask(verb, **arguments)
    with pytest.raises(MemoryInputError, match=r"no request 'levitate': it has .*store_memory"):
        await desk.ask("levitate")
