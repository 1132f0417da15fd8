"""The commands of memory as a tool, described without loading memory, as replays and prompts need them.

They are the requests that agents may make, under short names; the original names are understood as well. A
workflow that is not named is that of the current goal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from engine.core.memory import (
    ActionStatus,
    ActionType,
    ArtifactType,
    LinkType,
    MemoryLevel,
    MemoryType,
    ThoughtType,
    WorkflowStatus,
)
from engine.core.ports import CommandSpec, Parameter

OWNER_PREFIX = "agent:"
"""With this a workflow's tags begin that say whose it is."""
RECORDED_PREFIX = "@"
"""With this the idempotency keys begin of what is written from the journal, and no others."""


def owner_tag(agent: str) -> str:
    """The tag of a workflow that is an agent's; one with tags of several is theirs together."""
    return f"{OWNER_PREFIX}{agent}"


def _one_of(kind: Iterable[str]) -> str:
    return f"one of {', '.join(kind)}"


_SORTS = (
    "relevance",
    "importance",
    "created_at",
    "updated_at",
    "confidence",
    "last_accessed",
    "access_count",
)
_FILTERS = (
    "workflow_id memory_level:string memory_type:string tags=[] min_importance=0.0 max_importance=10.0 "
    "min_confidence=0.0 created_after:number created_before:number"
)
_TABLE = Path(__file__).with_suffix(".txt").read_text("utf-8")
"""Each command with the request that it makes, what it is for and its parameters; `*` for those that
write.

A parameter is `name` (a text, empty unless given), `name!` (required), `name=JSON` (with this default) or
`name:type` (without a default).
"""
_COMMAND = re.compile(r"^(\*?)(\w+) = (\w+)\n  (.+)\n((?:    .+\n)+)", re.MULTILINE)

_LEVELS, _TYPES = _one_of(MemoryLevel), "a memory type, as store has them"
_MEANINGS = {
    "workflow_id": "the goal's own if left out",
    "context_id": "the goal's own workflow if left out",
    "update_tags": "added to those it has",
    "limit": "1 to 500",
    "memory_level": _LEVELS,
    "memory_type": _TYPES,
    "created_after": "seconds since 1970",
    "created_before": "seconds since 1970",
    "query": (
        'words, "phrases", -word, level:, type:, agent:, since:2w or since:2026-11-01; yesterday, last week'
    ),
    "like.query": "a text",
    "nearest": "true to see the nearest where none fits",
    "sort_by": _one_of(_SORTS),
    "sort_order": "asc or desc",
    "direction": "outgoing, incoming or both",
    "action_type": _one_of(ActionType),
    "thought_type": _one_of(ThoughtType),
    "initial_thought_type": "as think has them",
    "ttl": "seconds to keep it, 0 for ever",
    **dict.fromkeys(("importance", "min_importance", "max_importance"), "0 to 10"),
    **dict.fromkeys(("confidence", "min_confidence", "strength", "threshold"), "0 to 1"),
    **dict.fromkeys(("semantic_weight", "keyword_weight"), "0 to 1"),
    **{f"{command}.workflow_id": "all if left out" for command in ("search", "like", "query")},
    **{f"{command}.tags": "all of them" for command in ("search", "like", "query", "update")},
    "set_workflow.status": _one_of(WorkflowStatus),
    "actions.status": _one_of(ActionStatus),
    "keep.artifact_type": _one_of(ArtifactType),
    "artifacts.artifact_type": "as keep has them",
    "think.thought_chain_id": "the main one if left out",
    "store.memory_type": _one_of(MemoryType),
    "store.ttl": "seconds to keep it, 0 for ever; what is usual for its level and type if left out",
    "link.link_type": _one_of(LinkType),
    "linked.link_type": "as link has them",
}
"""What a parameter stands for, by its name or by command and name; otherwise its name says it."""
_JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array"}
_PARAMETER = re.compile(r"(?P<name>\w+)(?P<needed>!)?(?::(?P<type>\w+))?(?:=(?P<default>\S+))?")


def _parameter(command: str, match: re.Match[str]) -> Parameter:
    name, needed, kind, default = match["name"], match["needed"], match["type"], match["default"]
    meaning = _MEANINGS.get(f"{command}.{name}") or _MEANINGS.get(name) or name.replace("_", " ")
    value = None if needed or kind else json.loads(default or '""')
    type_name = kind or ("string" if needed else _JSON_TYPES[type(value)])
    return Parameter(name, meaning, type_name, required=bool(needed), default=value)


NAMES = {name: verb for _, name, verb, _, _ in _COMMAND.findall(_TABLE)}
"""Our names of the requests that agents may make, and the seed's."""


class Commands(Mapping[str, CommandSpec]):
    """Commands by our names; the seed's names are understood and not offered."""

    def __init__(self) -> None:
        self._specs = {
            name: CommandSpec(
                name,
                description,
                tuple(
                    _parameter(name, match)
                    for match in _PARAMETER.finditer(parameters.replace("{filters}", _FILTERS))
                ),
                writes=bool(writes),
            )
            for writes, name, _, description, parameters in _COMMAND.findall(_TABLE)
        }
        self._ours = {verb: name for name, verb in NAMES.items()}

    def __getitem__(self, name: str) -> CommandSpec:
        return self._specs[self._ours.get(name, name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)


COMMANDS: Mapping[str, CommandSpec] = Commands()
"""Commands by name, in the order in which they are offered."""
