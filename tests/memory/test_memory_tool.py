"""Memory as a tool in the real registry."""

from __future__ import annotations

from typing import Any

from engine.domain.action import ErrorCode, ResultStatus, SandboxSession, ToolResult
from engine.domain.ports import CallContext
from engine.memory.tool import NAMES, MemoryTool
from engine.tools.registry import ToolRegistry
from tests.memory.memory_desk import MemoryDesk

CONTEXT = CallContext(SandboxSession(), actor="agent")


async def call(desk: MemoryDesk, command: str, **args: Any) -> ToolResult:
    """As the pipeline calls: checked by the registry, then with defaults filled in."""
    tool = MemoryTool(desk.memory)
    registry = ToolRegistry([tool])
    checked = registry.check("memory", command, args)
    assert not checked.problems, checked.message
    return await tool.call(command, checked.args, CONTEXT)


async def test_every_command_answers_to_both_names(desk: MemoryDesk) -> None:
    tool = MemoryTool(desk.memory)
    assert len(tool.commands) == 21
    for ours, seeds in NAMES.items():
        assert tool.commands[ours] is tool.commands[seeds]
    offered = [one["command"] for one in ToolRegistry([tool]).schemas()]
    assert offered == list(NAMES)


async def test_a_day_of_an_agent_by_the_seeds_names(desk: MemoryDesk) -> None:
    workflow = (await call(desk, "create_workflow", title="Drill", goal="reach the ice")).data["id"]
    stored = await call(
        desk,
        "store_memory",
        workflow_id=workflow,
        content="the ice is three metres down",
        memory_type="fact",
        importance=8,
    )
    memory = stored.data["id"]
    await call(desk, "record_thought", workflow_id=workflow, content="drill at noon", thought_type="decision")
    await desk.memory.embedded()
    found = await call(desk, "hybrid_search_memories", query="metres down", workflow_id=workflow)
    assert found.data["items"][0]["memory"]["id"] == memory
    await call(desk, "focus_memory", memory_id=memory, context_id=workflow)
    held = await call(desk, "get_working_memory", context_id=workflow)
    assert [one["memory"]["id"] for one in held.data["items"]] == [memory]
    done = await call(desk, "update_workflow_status", workflow_id=workflow, status="completed")
    assert (done.status, done.data["status"]) == (ResultStatus.SUCCESS, "completed")


async def test_looking_at_a_memory_uses_it_and_finding_it_does_not(desk: MemoryDesk) -> None:
    memory = await desk.store_memory("the pump needs priming")
    await call(desk, "search", query="pump")
    await call(desk, "query", workflow_id=desk.workflow)
    assert (await desk.recall(memory.id)).access_count == 0
    await call(desk, "get", memory_id=memory.id)
    assert (await desk.recall(memory.id)).access_count == 1


async def test_refusals_have_codes_and_words(desk: MemoryDesk) -> None:
    missing = await call(desk, "get", memory_id="m99")
    assert (missing.status, missing.code) == (ResultStatus.ERROR, ErrorCode.NOT_FOUND)
    wrong = await call(desk, "store", workflow_id=desk.workflow, content="x", memory_type="rumour")
    assert (wrong.status, wrong.code) == (ResultStatus.ERROR, ErrorCode.BAD_ARGUMENTS)
    assert "memory_type" in wrong.message
    await call(desk, "set_workflow", workflow_id=desk.workflow, status="failed")
    late = await call(desk, "set_workflow", workflow_id=desk.workflow, status="active")
    assert (late.status, late.code) == (ResultStatus.FAILURE, ErrorCode.NOT_ALLOWED)
    await desk.memory.close()
    closed = await call(desk, "search", query="pump")
    assert (closed.status, closed.code) == (ResultStatus.FAILURE, ErrorCode.INTERNAL)
