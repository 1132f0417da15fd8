"""The commands of memory as a tool, described without memory itself, so that a replay and a prompt need none.

They are the requests that agents may make, with less to say: a workflow that is not named is that of the goal
at hand, and keys against doing a thing twice are the engine's.
Source: spec master-loop-and-memory §2, the tools that a model needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from engine.domain.memory import (
    ActionStatus,
    ActionType,
    ArtifactType,
    LinkType,
    MemoryLevel,
    MemoryType,
    ThoughtType,
    WorkflowStatus,
)
from engine.domain.ports import CommandSpec, Parameter
from engine.memory.names import NAMES


def _one_of(kind: type[StrEnum] | Iterable[str]) -> str:
    return f"one of {', '.join(kind)}"


def _need(name: str, words: str = "", kind: str = "string") -> Parameter:
    return Parameter(name, words or name.replace("_", " "), kind)


def _may(name: str, words: str = "", kind: str = "string", default: Any = "") -> Parameter:
    return Parameter(name, words or name.replace("_", " "), kind, required=False, default=default)


_TEXTS = ("description", "reasoning", "source")
_TAGS = _may("tags", kind="array", default=[])
_WORKFLOW = _may("workflow_id", "the goal's own if left out")
_MIND = _may("context_id", "the goal's own workflow if left out")
_TYPES = "a memory type, as store has them"
_MEMORY = _need("memory_id")
_FILTERS = (
    _may("workflow_id", "all if left out"),
    _may("memory_level", _one_of(MemoryLevel), default=None),
    _may("memory_type", _TYPES, default=None),
    _may("tags", "all of them", "array", []),
    _may("min_importance", "0 to 10", "number", 0.0),
    _may("max_importance", "0 to 10", "number", 10.0),
    _may("min_confidence", "0 to 1", "number", 0.0),
    _may("created_after", "seconds since 1970", "number", None),
    _may("created_before", "seconds since 1970", "number", None),
)
_SORTS = (
    "relevance",
    "importance",
    "created_at",
    "updated_at",
    "confidence",
    "last_accessed",
    "access_count",
)


def _limit(count: int) -> Parameter:
    return _may("limit", "1 to 500", "integer", count)


_OFFSET = _may("offset", kind="integer", default=0)

_SPECS = (
    CommandSpec(
        "begin_workflow",
        "begin a piece of work that actions, thoughts and memories belong to; each goal has one already",
        (
            _need("title"),
            _may("description"),
            _may("goal"),
            _TAGS,
            _may("metadata", kind="object", default=None),
            _may("parent_workflow_id"),
        ),
    ),
    CommandSpec(
        "set_workflow",
        "pause, resume or end a workflow, with a closing thought",
        (
            _WORKFLOW,
            _need("status", _one_of(WorkflowStatus)),
            _may("completion_message"),
            _may("update_tags", "added to those it has", "array", []),
        ),
    ),
    CommandSpec(
        "action",
        "look at actions by id, with what they depend on",
        (
            _may("action_id"),
            _may("action_ids", kind="array", default=[]),
            _may("include_dependencies", kind="boolean", default=False),
        ),
    ),
    CommandSpec(
        "actions",
        "look at a workflow's newest actions and what came of them",
        (
            _WORKFLOW,
            _limit(5),
            _may("action_type", _one_of(ActionType), default=None),
            _may("status", _one_of(ActionStatus), default=None),
        ),
    ),
    CommandSpec(
        "need",
        "say that an action needs another one first",
        (
            _need("source_action_id"),
            _need("target_action_id"),
            _may("dependency_type", default="requires"),
        ),
    ),
    CommandSpec(
        "keep",
        "keep something that the work has brought forth",
        (
            _WORKFLOW,
            _need("name"),
            _need("artifact_type", _one_of(ArtifactType)),
            _may("action_id"),
            _may("description"),
            _may("path"),
            _may("content"),
            _may("metadata", kind="object", default=None),
            _may("is_output", kind="boolean", default=False),
            _TAGS,
        ),
    ),
    CommandSpec(
        "artifacts",
        "list what a workflow has brought forth, newest first",
        (
            _WORKFLOW,
            _may("artifact_type", "as keep has them", default=None),
            _may("tag"),
            _may("is_output", kind="boolean", default=None),
            _limit(10),
        ),
    ),
    CommandSpec("artifact", "look at one artifact", (_need("artifact_id"),)),
    CommandSpec(
        "think",
        "write a thought down in a line of thought",
        (
            _WORKFLOW,
            _need("content"),
            _may("thought_type", _one_of(ThoughtType), default="inference"),
            _may("thought_chain_id", "the main one if left out"),
            _may("parent_thought_id"),
            _may("relevant_action_id"),
            _may("relevant_artifact_id"),
            _may("relevant_memory_id"),
        ),
    ),
    CommandSpec(
        "begin_chain",
        "begin another line of thought",
        (
            _WORKFLOW,
            _need("title"),
            _may("initial_thought"),
            _may("initial_thought_type", "as think has them", default="goal"),
        ),
    ),
    CommandSpec(
        "chain",
        "read a line of thought",
        (_need("thought_chain_id"), _may("include_thoughts", kind="boolean", default=True)),
    ),
    CommandSpec(
        "store",
        "remember something",
        (
            _WORKFLOW,
            _need("content"),
            _need("memory_type", _one_of(MemoryType)),
            _may("memory_level", _one_of(MemoryLevel), default="episodic"),
            _may("importance", "0 to 10", "number", 5.0),
            _may("confidence", "0 to 1", "number", 1.0),
            *map(_may, _TEXTS),
            _TAGS,
            _may("ttl", "seconds to keep it, 0 for ever; its level's if left out", "integer", None),
            _may("context_data", kind="object", default=None),
            _may("action_id"),
            _may("thought_id"),
            _may("artifact_id"),
        ),
    ),
    CommandSpec(
        "update",
        "correct a memory, or say how much it matters",
        (
            _MEMORY,
            _may("content", default=None),
            _may("memory_type", _TYPES, default=None),
            _may("importance", "0 to 10", "number", None),
            _may("confidence", "0 to 1", "number", None),
            *(_may(name, default=None) for name in _TEXTS),
            _may("tags", "all of them", "array", None),
            _may("ttl", "seconds to keep it, 0 for ever", "integer", None),
            _may("context_data", kind="object", default=None),
        ),
    ),
    CommandSpec(
        "link",
        "say how one memory bears on another",
        (
            _need("source_memory_id"),
            _need("target_memory_id"),
            _may("link_type", _one_of(LinkType), default="related"),
            _may("strength", "0 to 1", "number", 1.0),
            _may("description"),
        ),
    ),
    CommandSpec(
        "search",
        "find memories by words and likeness",
        (
            *_FILTERS,
            _need("query"),
            _limit(10),
            _OFFSET,
            _may("semantic_weight", "0 to 1", "number", 0.6),
            _may("keyword_weight", "0 to 1", "number", 0.4),
        ),
    ),
    CommandSpec(
        "like",
        "find memories that are like a text",
        (*_FILTERS, _need("query"), _limit(5), _may("threshold", "0 to 1", "number", 0.75)),
    ),
    CommandSpec(
        "query",
        "list memories by level, type, tags, importance, time",
        (
            *_FILTERS,
            _may("search_text"),
            _may("sort_by", _one_of(_SORTS), default="relevance"),
            _may("sort_order", "asc or desc", default="desc"),
            _limit(10),
            _OFFSET,
        ),
    ),
    CommandSpec(
        "get",
        "look at one memory; this counts as using it",
        (
            _MEMORY,
            _may("include_links", kind="boolean", default=True),
            _may("include_context", kind="boolean", default=False),
            _may("context_limit", kind="integer", default=5),
        ),
    ),
    CommandSpec(
        "linked",
        "follow the links of a memory",
        (
            _MEMORY,
            _may("direction", "outgoing, incoming or both", default="both"),
            _may("link_type", "as link has them", default=None),
            _limit(10),
        ),
    ),
    CommandSpec("working", "see what is in mind, and what is in focus", (_MIND,)),
    CommandSpec(
        "focus",
        "bring a memory into focus",
        (_MEMORY, _MIND, _may("add_to_working", kind="boolean", default=True)),
    ),
)


class Commands(Mapping[str, CommandSpec]):
    """Commands by our names; the seed's names are understood and not offered."""

    def __init__(self) -> None:
        self._specs = {spec.name: spec for spec in _SPECS}
        self._ours = {verb: name for name, verb in NAMES.items()}

    def __getitem__(self, name: str) -> CommandSpec:
        return self._specs[self._ours.get(name, name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)


COMMANDS: Mapping[str, CommandSpec] = Commands()
"""Commands by name, in the order in which they are offered."""
