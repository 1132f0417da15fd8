"""What the Unified Memory System remembers, as plain values.

Times are seconds since 1970 (UTC). Ids are a letter and the number of the event that made the thing in the
memory's stream, so that they are unique, short enough to type and the same on every rebuild.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Any

from pydantic import Field

from engine.core.command import Command
from engine.value import dataclass


class WorkflowStatus(StrEnum):
    """Where a workflow stands; the last three are terminal."""

    ACTIVE = "active"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    ABANDONED = "abandoned"

    @property
    def terminal(self) -> bool:
        """True when the workflow is over."""
        return self not in (WorkflowStatus.ACTIVE, WorkflowStatus.PAUSED)


class ActionStatus(StrEnum):
    """Where a recorded action stands; the last three are terminal."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"

    @property
    def terminal(self) -> bool:
        """True when the action is over."""
        return self is not ActionStatus.IN_PROGRESS


ActionType = StrEnum(
    "ActionType",
    "TOOL_USE REASONING PLANNING RESEARCH ANALYSIS DECISION OBSERVATION REFLECTION SUMMARY "
    "CONSOLIDATION MEMORY_OPERATION PARALLEL_TOOLS",
)
"""What sort of action was recorded."""
ArtifactType = StrEnum("ArtifactType", "FILE TEXT IMAGE TABLE CHART CODE DATA JSON URL")
"""What an artifact holds."""
ThoughtType = StrEnum(
    "ThoughtType",
    "GOAL QUESTION HYPOTHESIS INFERENCE EVIDENCE CONSTRAINT PLAN DECISION REFLECTION CRITIQUE SUMMARY "
    "USER_GUIDANCE INSIGHT REASONING ANALYSIS",
)
"""What part a thought plays in its chain."""


class MemoryLevel(StrEnum):
    """How far a memory has settled; the order counts, the letters do not."""

    WORKING = "working"
    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"

    @property
    def rank(self) -> int:
        """0 for working to 3 for procedural."""
        return list(MemoryLevel).index(self)


MemoryType = StrEnum(
    "MemoryType",
    "OBSERVATION ACTION_LOG TOOL_OUTPUT ARTIFACT_CREATION REASONING_STEP FACT INSIGHT PLAN QUESTION "
    "SUMMARY REFLECTION SKILL PROCEDURE PATTERN CODE JSON URL TEXT USER_INPUT WARNING CORRECTION "
    "CONTRADICTION_ANALYSIS TOOL_EFFECTIVENESS CHECKPOINT",
)
"""What a memory is about."""
LinkType = StrEnum(
    "LinkType",
    "RELATED CAUSAL SEQUENTIAL HIERARCHICAL CONTRADICTS SUPPORTS GENERALIZES SPECIALIZES FOLLOWS "
    "PRECEDES TASK REFERENCES ELABORATES QUESTION_OF CONSEQUENCE_OF",
)
"""How one memory relates to another; links are directed."""


class ReflectionKind(StrEnum):
    """What a reflection asks; the loop takes them in this order, over and over."""

    SUMMARY = "summary"
    PROGRESS = "progress"
    GAPS = "gaps"
    STRENGTHS = "strengths"
    PLAN = "plan"

    @classmethod
    def nth(cls, index: int) -> ReflectionKind:
        """The kind of the reflection with this index, from 0."""
        return tuple(cls)[index % len(cls)]


class ConsolidationKind(StrEnum):
    """What several memories are brought together to."""

    SUMMARY = "summary"
    INSIGHT = "insight"
    PROCEDURAL = "procedural"
    QUESTION = "question"

    @property
    def memory_type(self) -> MemoryType:
        """The type of the resulting memory."""
        return MemoryType.PROCEDURE if self is ConsolidationKind.PROCEDURAL else MemoryType(self.value)


@dataclass(frozen=True, slots=True)
class Content:
    """Text of any size; what is too long for an event is a blob, whole, and its beginning stands here."""

    text: str = ""
    """The whole text, or its beginning when `blob` names the rest."""
    blob: str = ""
    """SHA-256 of the UTF-8 text among the workspace's blobs; empty when `text` is all of it."""
    size: int = 0
    """Bytes of the whole in UTF-8."""


@dataclass(frozen=True, slots=True)
class Workflow:
    """A piece of work that memories, actions and thoughts belong to."""

    id: str
    title: str
    description: str = ""
    goal: str = ""
    status: WorkflowStatus = WorkflowStatus.ACTIVE
    parent: str = ""
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    created_at: float = 0.0
    updated_at: float = 0.0
    completed_at: float | None = None


@dataclass(frozen=True, slots=True)
class RecordedAction:
    """What an agent did, with its result."""

    id: str
    workflow: str
    type: ActionType
    title: str = ""
    reasoning: str = ""
    tool: str = ""
    args: dict[str, Any] = field(default_factory=dict)
    result: Content | None = None
    """What the tool answered, byte for byte; None before the end."""
    summary: str = ""
    status: ActionStatus = ActionStatus.IN_PROGRESS
    parent: str = ""
    memory: str = ""
    """The episodic memory that tells of it."""
    tags: tuple[str, ...] = ()
    sequence: int = 0
    """Its place among the workflow's actions, from 1."""
    started_at: float = 0.0
    completed_at: float | None = None


@dataclass(frozen=True, slots=True)
class Dependency:
    """An action needs another one."""

    source: str
    """The one that needs."""
    target: str
    """The one that is needed."""
    type: str = "requires"
    created_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Artifact:
    """Something that the work has brought forth."""

    id: str
    workflow: str
    name: str
    type: ArtifactType
    action: str = ""
    description: str = ""
    path: str = ""
    content: Content | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    is_output: bool = False
    tags: tuple[str, ...] = ()
    memory: str = ""
    created_at: float = 0.0


@dataclass(frozen=True, slots=True)
class ThoughtChain:
    """A line of thought; the first of a workflow is the one used where none is named."""

    id: str
    workflow: str
    title: str
    action: str = ""
    created_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Thought:
    """One thought of a chain, word for word."""

    id: str
    chain: str
    type: ThoughtType
    content: str
    sequence: int = 0
    """Its place in the chain, from 1."""
    parent: str = ""
    action: str = ""
    artifact: str = ""
    memory: str = ""
    created_at: float = 0.0


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """One memory."""

    id: str
    workflow: str
    content: str
    level: MemoryLevel = MemoryLevel.EPISODIC
    type: MemoryType = MemoryType.OBSERVATION
    importance: float = 5.0
    """0 to 10."""
    confidence: float = 1.0
    """0 to 1."""
    description: str = ""
    reasoning: str = ""
    source: str = ""
    context: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    ttl: int = 0
    """Seconds it is kept from when it got its level; 0 for ever."""
    expires_at: float | None = None
    action: str = ""
    thought: str = ""
    artifact: str = ""
    consolidated: str = ""
    """The memory that this one went into; one that has is no source again."""
    digest: str = ""
    """Names its text among the vectors."""
    created_at: float = 0.0
    updated_at: float = 0.0
    access_count: int = field(default=0, metadata={"joined": True})
    """How often an agent used it; being found or shown does not count."""
    accessed_at: float | None = field(default=None, metadata={"joined": True})


@dataclass(frozen=True, slots=True)
class Usage:
    """How often and when a memory was last used."""

    memory: str
    count: int
    at: float


@dataclass(frozen=True, slots=True)
class MemoryLink:
    """A memory relates to another one."""

    source: str
    target: str
    type: LinkType
    strength: float = 1.0
    """0 to 1."""
    description: str = ""
    created_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the operator says of a memory as an answer to a query; the newest counts."""

    query: str
    memory: str
    workflow: str
    """Where was looked; empty for everywhere."""
    right: bool
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class CognitiveState:
    """What a workflow has in mind; its id is the workflow's."""

    workflow: str
    working: tuple[str, ...] = ()
    """Memories, in the order in which they came."""
    focal: str = ""
    pinned: tuple[str, ...] = ()
    """Those that are never evicted."""
    title: str = ""
    focus_areas: tuple[str, ...] = ()
    updated_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Reflection:
    """The result of looking back."""

    id: str
    workflow: str
    kind: ReflectionKind
    title: str
    content: str
    computed: bool = False
    """True where it was counted from the record and no model wrote it."""
    memories: tuple[str, ...] = ()
    created_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Tagging:
    """A tag on a workflow, an action, an artifact or a memory."""

    owner: str
    tag: str


class Remember(Command, do="remember"):
    """Write to memory as the operator; an agent's current workflow stands for one that is not named."""

    verb: str = Field(min_length=1, max_length=100)
    """Name of the request, ours or the seed's."""
    arguments: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MemoryStatus:
    """How memory is doing."""

    embedder: str = ""
    """Whose vectors are compared; empty for none."""
    vectors: int = 0
    """Texts that have one."""
    waiting: int = 0
    """About how many texts wait to be embedded."""
    note: str = ""
    """Why likeness says less than it could; empty when all is well."""
    open: bool = True
    """False while memory is being opened, and where it could not be."""
    trouble: str = ""
    """Why it could not be opened."""
    fault: str = ""
    """Why texts could not be embedded the last time, so that words alone count."""

    @property
    def degraded(self) -> bool:
        """True when a search goes by words alone."""
        return bool(self.note)
