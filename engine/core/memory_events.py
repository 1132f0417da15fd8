"""The kinds of events that write to memory: each says the result of one thing.

They stand in a stream of their own, so that what several agents remember has one order, and an agent's own
stream replays without it. `engine.memory.fold` turns them into the rows of `memory.db`.
"""

from __future__ import annotations

from typing import Any

from engine.core import memory as mem
from engine.core.journal import Payload
from engine.core.reasons import NONE, Reason


class WorkflowCreated(Payload, kind="memory.workflow_created"):
    """A piece of work begins."""

    workflow: mem.Workflow
    key: str = ""
    """Idempotency key; empty when there is none, here and below."""


class WorkflowChanged(Payload, kind="memory.workflow_changed"):
    """A workflow stands elsewhere, or has more tags."""

    workflow: str
    status: mem.WorkflowStatus
    message: str = ""
    tags: tuple[str, ...] = ()
    """All of its tags now."""
    key: str = ""


class ActionRecorded(Payload, kind="memory.action_recorded"):
    """An action begins."""

    action: mem.RecordedAction
    key: str = ""


class ActionEnded(Payload, kind="memory.action_ended"):
    """A recorded action is over."""

    workflow: str
    action: str
    status: mem.ActionStatus
    result: mem.Content | None = None
    summary: str = ""
    key: str = ""


class DependencyAdded(Payload, kind="memory.dependency_added"):
    """An action needs another one."""

    workflow: str
    dependency: mem.Dependency


class ArtifactRecorded(Payload, kind="memory.artifact_recorded"):
    """The work brought something forth."""

    artifact: mem.Artifact
    key: str = ""


class ThoughtChainCreated(Payload, kind="memory.chain_created"):
    """A line of thought begins."""

    chain: mem.ThoughtChain


class ThoughtAdded(Payload, kind="memory.thought_added"):
    """A chain has one more thought."""

    workflow: str
    thought: mem.Thought
    key: str = ""


class MemoryStored(Payload, kind="memory.stored"):
    """Something is remembered."""

    memory: mem.MemoryItem
    key: str = ""


class MemoryChanged(Payload, kind="memory.changed"):
    """A memory says something else, or counts for more or less."""

    workflow: str
    memory: str
    changes: dict[str, Any]
    """Fields of the memory and their new values."""


class MemoryPromoted(Payload, kind="memory.promoted"):
    """A memory has settled further, and lives on from now."""

    workflow: str
    memory: str
    level: mem.MemoryLevel
    ttl: int
    tags: tuple[str, ...]


class MemoriesUsed(Payload, kind="memory.used"):
    """An agent used memories; finding them is no use of them."""

    workflow: str
    memories: tuple[str, ...]


class MemoriesForgotten(Payload, kind="memory.forgotten"):
    """Memories are gone, with their links and from what is in mind."""

    workflow: str
    memories: tuple[str, ...]
    expired: bool = False
    """True when their time was over, False when they were dropped."""


class MemoriesLinked(Payload, kind="memory.linked"):
    """A memory relates to another one; a link of the same type that was there is replaced."""

    workflow: str
    link: mem.MemoryLink


class MemoryJudged(Payload, kind="memory.judged"):
    """The operator says whether a memory answers a query."""

    workflow: str
    """The memory's."""
    judgement: mem.Judgement


class LinksWeakened(Payload, kind="memory.links_weakened"):
    """Old links lost strength."""

    workflow: str
    links: tuple[mem.MemoryLink, ...]
    """With their new strength; those with 0 are gone."""


class MemoriesConsolidated(Payload, kind="memory.consolidated"):
    """Several memories went into one."""

    workflow: str
    memory: str
    sources: tuple[str, ...]
    ttl: int
    """Seconds for which the sources stay at most."""


class MindSet(Payload, kind="memory.mind_set"):
    """What a workflow has in mind is this now."""

    state: mem.CognitiveState
    reason: Reason = NONE
    """`new`, `focus`, `evict`, `optimize`, `pin`, `save`, …"""


class ReflectionRecorded(Payload, kind="memory.reflected"):
    """An agent or the operator looked back on a workflow."""

    reflection: mem.Reflection
