"""Memory as a tool: what an agent may ask of it, under short names and the seed's.

Reflection, consolidation, promotion and upkeep are the engine's; goals and the plan are the loop's own.
Source: spec master-loop-and-memory §2, the tools that a model needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from functools import cached_property
from typing import Any

from engine.domain.action import ErrorCode, ResultStatus, ToolResult
from engine.domain.ports import CallContext, CommandSpec, Parameter
from engine.journal.errors import JournalError
from engine.memory.errors import MemoryFault, MemoryInputError, MemoryNotFound, MemoryRefused
from engine.memory.memories import UseMemories
from engine.memory.memory import Memory
from engine.memory.requests import Request, every_request

NAMES = {
    "begin_workflow": "create_workflow",
    "set_workflow": "update_workflow_status",
    "action": "get_action_details",
    "actions": "get_recent_actions",
    "need": "add_action_dependency",
    "keep": "record_artifact",
    "artifacts": "get_artifacts",
    "artifact": "get_artifact_by_id",
    "think": "record_thought",
    "begin_chain": "create_thought_chain",
    "chain": "get_thought_chain",
    "store": "store_memory",
    "update": "update_memory",
    "link": "create_memory_link",
    "search": "hybrid_search_memories",
    "like": "search_semantic_memories",
    "query": "query_memories",
    "get": "get_memory_by_id",
    "linked": "get_linked_memories",
    "working": "get_working_memory",
    "focus": "focus_memory",
}
"""Our names of the requests that agents may make, and the seed's."""


class Commands(Mapping[str, CommandSpec]):
    """Commands by our names; the seed's names are understood and not offered."""

    def __init__(self) -> None:
        kinds = every_request()
        self._specs = {name: _spec(name, kinds[verb]) for name, verb in NAMES.items()}
        self._ours = {verb: name for name, verb in NAMES.items()}

    def __getitem__(self, name: str) -> CommandSpec:
        return self._specs[self._ours.get(name, name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)


class MemoryTool:
    """Memory for the registry of tools."""

    id = "memory"
    description = "what was done, thought and learned, over time"

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @cached_property
    def commands(self) -> Mapping[str, CommandSpec]:
        """Its commands by name."""
        return Commands()

    async def call(self, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Answer a request; looking at a memory by id counts as using it, finding it does not."""
        verb = NAMES.get(command, command)
        given = {name: value for name, value in args.items() if value is not None}
        try:
            answer = await self._memory.call(verb, given, actor=context.actor)
            if verb == "get_memory_by_id":
                used = UseMemories(memory_ids=(answer.memory.id,))
                await self._memory.do(used, actor=context.actor)
        except MemoryNotFound as error:
            return _refusal(ResultStatus.ERROR, error, ErrorCode.NOT_FOUND)
        except MemoryInputError as error:
            return _refusal(ResultStatus.ERROR, error, ErrorCode.BAD_ARGUMENTS)
        except MemoryRefused as error:
            return _refusal(ResultStatus.FAILURE, error, ErrorCode.NOT_ALLOWED)
        except (MemoryFault, JournalError) as error:
            return _refusal(ResultStatus.FAILURE, error, ErrorCode.INTERNAL)
        return ToolResult(ResultStatus.SUCCESS, _data(answer))


def _refusal(status: ResultStatus, error: Exception, code: ErrorCode) -> ToolResult:
    return ToolResult(status, {"message": str(error)}, code)


def _data(answer: Any) -> dict[str, Any]:
    """An answer as JSON: a value's fields, or a list of them."""
    if isinstance(answer, tuple):
        return {"items": [_data(one) for one in answer]}
    if is_dataclass(answer) and not isinstance(answer, type):
        return asdict(answer)
    return {"answer": answer}


def _spec(name: str, kind: type[Request[Any]]) -> CommandSpec:
    schema = kind.model_json_schema()
    required = set(schema.get("required", ()))
    parameters = [
        _parameter(field, told, schema.get("$defs", {}), required)
        for field, told in schema["properties"].items()
    ]
    return CommandSpec(name, kind.purpose, tuple(parameters), writes=kind.writes)


def _parameter(name: str, told: dict[str, Any], shared: Mapping[str, Any], required: set[str]) -> Parameter:
    choices = [one for one in told.get("anyOf", [told]) if one.get("type") != "null"]
    (only,) = choices
    meant = shared[only["$ref"].rpartition("/")[2]] if "$ref" in only else only
    words = name.replace("_", " ")
    if "enum" in meant:
        words = f"{words}: one of {', '.join(meant['enum'])}"
    return Parameter(
        name,
        words,
        meant.get("type", "any"),
        name in required,
        None if name in required else told.get("default"),
    )
