"""The kinds of events that write to memory: each says what became of one thing.

They stand in a stream of their own, so that what several agents remember has one order, and an agent's own
stream replays without it. `engine.memory.fold` turns them into the rows of `memory.db`.
Source: spec master-loop-and-memory §1.2.
"""

from __future__ import annotations

from typing import Any, ClassVar

from engine.domain.memory import (
    ActionStatus,
    Artifact,
    CognitiveState,
    Content,
    Dependency,
    MemoryItem,
    MemoryLevel,
    MemoryLink,
    RecordedAction,
    Reflection,
    Thought,
    ThoughtChain,
    Workflow,
    WorkflowStatus,
)
from engine.journal.payload import Payload


class WorkflowCreated(Payload):
    """A piece of work begins."""

    kind: ClassVar[str] = "memory.workflow_created"
    workflow: Workflow
    key: str = ""
    """Idempotency key; empty when there is none, here and below."""


class WorkflowChanged(Payload):
    """A workflow stands elsewhere, or has more tags."""

    kind: ClassVar[str] = "memory.workflow_changed"
    workflow: str
    status: WorkflowStatus
    message: str = ""
    tags: tuple[str, ...] = ()
    """All of its tags now."""
    key: str = ""


class ActionRecorded(Payload):
    """An action begins."""

    kind: ClassVar[str] = "memory.action_recorded"
    action: RecordedAction
    key: str = ""


class ActionEnded(Payload):
    """A recorded action is over."""

    kind: ClassVar[str] = "memory.action_ended"
    workflow: str
    action: str
    status: ActionStatus
    result: Content | None = None
    summary: str = ""
    key: str = ""


class DependencyAdded(Payload):
    """An action needs another one."""

    kind: ClassVar[str] = "memory.dependency_added"
    workflow: str
    dependency: Dependency


class ArtifactRecorded(Payload):
    """The work brought something forth."""

    kind: ClassVar[str] = "memory.artifact_recorded"
    artifact: Artifact
    key: str = ""


class ThoughtChainCreated(Payload):
    """A line of thought begins."""

    kind: ClassVar[str] = "memory.chain_created"
    chain: ThoughtChain


class ThoughtAdded(Payload):
    """A chain has one more thought."""

    kind: ClassVar[str] = "memory.thought_added"
    workflow: str
    thought: Thought
    key: str = ""


class MemoryStored(Payload):
    """Something is remembered."""

    kind: ClassVar[str] = "memory.stored"
    memory: MemoryItem
    key: str = ""


class MemoryChanged(Payload):
    """A memory says something else, or counts for more or less."""

    kind: ClassVar[str] = "memory.changed"
    workflow: str
    memory: str
    changes: dict[str, Any]
    """Fields of the memory and their new values."""


class MemoryPromoted(Payload):
    """A memory has settled further, and lives on from now."""

    kind: ClassVar[str] = "memory.promoted"
    workflow: str
    memory: str
    level: MemoryLevel
    ttl: int
    tags: tuple[str, ...]


class MemoriesUsed(Payload):
    """An agent used memories; finding them is no use of them."""

    kind: ClassVar[str] = "memory.used"
    workflow: str
    memories: tuple[str, ...]


class MemoriesForgotten(Payload):
    """Memories are gone, with their links and from what is in mind."""

    kind: ClassVar[str] = "memory.forgotten"
    workflow: str
    memories: tuple[str, ...]
    expired: bool = False
    """True when their time was over, False when somebody said so."""


class MemoriesLinked(Payload):
    """A memory bears on another one; a link of the same type that was there is replaced."""

    kind: ClassVar[str] = "memory.linked"
    workflow: str
    link: MemoryLink


class LinksWeakened(Payload):
    """Old links lost strength."""

    kind: ClassVar[str] = "memory.links_weakened"
    workflow: str
    links: tuple[MemoryLink, ...]
    """With their new strength; those with 0 are gone."""


class MemoriesConsolidated(Payload):
    """Several memories went into one."""

    kind: ClassVar[str] = "memory.consolidated"
    workflow: str
    memory: str
    sources: tuple[str, ...]
    ttl: int
    """Seconds for which the sources stay at most."""


class MindSet(Payload):
    """What a workflow has in mind is this now."""

    kind: ClassVar[str] = "memory.mind_set"
    state: CognitiveState
    reason: str = ""
    """`new`, `focus`, `evict`, `optimize`, `pin`, `save`, …"""


class ReflectionRecorded(Payload):
    """Somebody looked back on a workflow."""

    kind: ClassVar[str] = "memory.reflected"
    reflection: Reflection
