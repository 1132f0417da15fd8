"""Memory as a tool in the real registry."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from engine.core.actions import ErrorCode, ResultStatus, SandboxSession, ToolResult
from engine.core.ports import CallContext
from engine.memory.commands import COMMANDS, NAMES
from engine.memory.errors import MemoryInputError
from engine.memory.requests import every_request
from engine.memory.tool import MemoryTool
from engine.memory.tool_calls import WORKFLOW_ARGUMENTS
from engine.tools.registry import ToolRegistry
from tests.engine.memory.memory_desk import MemoryDesk

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


def _as_described(name: str) -> dict[str, tuple[str, bool, Any]]:
    return {one.name: (one.type, one.required, one.default) for one in COMMANDS[name].parameters}


def _as_asked(name: str) -> dict[str, tuple[str, bool, Any]]:
    """What a command's request takes, but for what the engine fills in."""
    schema = every_request()[NAMES[name]].model_json_schema()
    found = {}
    for field, told in schema["properties"].items():
        (only,) = [one for one in told.get("anyOf", [told]) if one.get("type") != "null"]
        meant = schema["$defs"][only["$ref"].rpartition("/")[2]] if "$ref" in only else only
        needed = field in schema.get("required", ())
        kind = meant.get("type", "any")
        if needed and field in WORKFLOW_ARGUMENTS:
            found[field] = (kind, False, "")
        elif field not in ("idempotency_key", "rewrite"):
            found[field] = (kind, needed, None if needed else told.get("default"))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_commands_are_described_as_the_requests_are(name: str) -> None:
    assert _as_described(name) == _as_asked(name)
    assert (COMMANDS[name].mutates, COMMANDS[name].writes) == (False, every_request()[NAMES[name]].writes)


def test_a_replay_describes_memory_without_importing_it() -> None:
    code = "import sys, engine.api; print('engine.memory.requests' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert out.strip() == "False"


async def test_keys_of_the_engine_are_its_own(desk: MemoryDesk) -> None:
    with pytest.raises(MemoryInputError, match="cannot begin with '@'"):
        await desk.ask("create_workflow", title="x", idempotency_key="@pilot/g1")


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
