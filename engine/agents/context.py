"""What an agent receives: HandoffContext and what it carries (ontology spec §1.3, §1.4)."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from engine.agents.clarity import ProblemClarity
from engine.agents.kinds import HandoffMode, HandoffType, Priority, ReturnBehavior, Word
from engine.agents.values import RESERVED, AgentId, Lines, Share, Value, Words

METADATA_BYTES = 64 * 1024
RECENT_MESSAGES = 10
USER, ORCHESTRATOR = RESERVED


def new_handoff_id() -> str:
    """`h-` and twelve hexadecimal digits."""
    return f"h-{secrets.token_hex(6)}"


def utc_now() -> datetime:
    """The time, aware, in UTC; what runs in the engine is given its clock's instead."""
    return datetime.now(UTC)


def _utc(given: datetime) -> datetime:
    return given.replace(tzinfo=UTC) if given.tzinfo is None else given.astimezone(UTC)


Moment = Annotated[datetime, AfterValidator(_utc)]
"""A time, aware, in UTC; naive ones are read as UTC."""


class Speaker(Word):
    """Who said something in a conversation."""

    USER = "user"
    ASSISTANT = "assistant"
    OPERATOR = "operator"
    SYSTEM = "system"


class Message(Value):
    """One thing that was said."""

    role: Speaker
    text: Words
    at: Moment


class ConversationSummary(Value):
    """What was talked about so far."""

    key_points: Lines = ()
    user_goals: Lines = ()
    constraints: Lines = ()
    preferences: Lines = ()
    turn_count: int = Field(default=0, ge=0)
    recent_messages: tuple[Message, ...] = ()
    """The last ten."""

    @field_validator("recent_messages")
    @classmethod
    def _last_ones(cls, given: tuple[Message, ...]) -> tuple[Message, ...]:
        return given[-RECENT_MESSAGES:]


class PreviousAnalysis(Value):
    """What an agent found before; made of successful results only (`HandoffResult.to_analysis`)."""

    framework_id: str = Field(min_length=1, max_length=200)
    framework_name: str = ""
    output: Words = ""
    key_findings: tuple[str, ...] = ()
    recommendations: tuple[str, ...] = ()
    confidence: Share = 0.0
    timestamp: Moment | None = None
    handoff_id: str = ""
    partial: bool = False


class HandoffContext(Value):
    """Everything that an agent is given with its task. Frozen: `derive` makes another one."""

    handoff_id: str = Field(default_factory=new_handoff_id, pattern=r"^h-[0-9a-z-]{4,64}$")
    timestamp: Moment = Field(default_factory=utc_now)
    problem_clarity: ProblemClarity = ProblemClarity()
    conversation: ConversationSummary = ConversationSummary()
    session_id: str | None = None
    previous_analyses: tuple[PreviousAnalysis, ...] = ()
    task_description: Words = ""
    expected_output: Words = ""
    focus_areas: Lines = ()
    ignore_areas: Lines = ()
    from_agent: AgentId
    to_agent: AgentId
    return_to: str = ""
    return_behavior: ReturnBehavior = ReturnBehavior.SYNTHESIZE
    handoff_type: HandoffType = HandoffType.DELEGATE
    handoff_mode: HandoffMode = HandoffMode.SEQUENTIAL
    priority: Priority = Priority.NORMAL
    timeout_seconds: int = Field(default=300, ge=1, le=86_400)
    metadata: dict[str, Any] = Field(default_factory=dict)
    root_id: str = ""
    parent_id: str = ""
    lineage: tuple[AgentId, ...] = ()
    """Ids of agents from the root to the caller."""
    attempt: int = Field(default=1, ge=1)
    retry_of: str | None = None
    in_reply_to: str | None = None

    @field_validator("previous_analyses")
    @classmethod
    def _each_once(cls, given: tuple[PreviousAnalysis, ...]) -> tuple[PreviousAnalysis, ...]:
        return tuple({(one.framework_id, one.handoff_id): one for one in given}.values())

    @field_validator("metadata")
    @classmethod
    def _is_json(cls, given: dict[str, Any]) -> dict[str, Any]:
        try:
            size = len(json.dumps(given, allow_nan=False).encode())
        except (TypeError, ValueError) as error:
            raise ValueError(f"is no JSON: {error}") from error
        if size > METADATA_BYTES:
            raise ValueError(f"is {size:,} bytes of JSON; {METADATA_BYTES:,} are allowed")
        return given

    @model_validator(mode="before")
    @classmethod
    def _returns_to_the_caller(cls, given: Any) -> Any:
        if isinstance(given, dict) and "return_to" not in given:
            kind = given.get("handoff_type", HandoffType.DELEGATE)
            if str(kind).strip().lower() == HandoffType.DELEGATE:
                return {**given, "return_to": given.get("from_agent", "")}
        return given

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.from_agent == self.to_agent:
            raise ValueError(f"to_agent: {self.to_agent} cannot hand to itself")
        both = [area for area in self.focus_areas if area in self.ignore_areas]
        if both:
            raise ValueError(f"focus_areas and ignore_areas both have {both[0]!r}")
        if self.handoff_type is HandoffType.ESCALATE and self.to_agent != USER:
            raise ValueError("to_agent: an escalation goes to 'user'")
        if self.handoff_type is HandoffType.TRANSFER and self.return_to:
            raise ValueError("return_to: a transfer does not return; leave it empty")
        if self.handoff_type is HandoffType.RETURN and not self.in_reply_to:
            raise ValueError("in_reply_to: a return names the handoff that it answers")
        if self.handoff_type is HandoffType.DELEGATE and not self.task_description.strip():
            raise ValueError("task_description: a delegation needs a task")
        return self

    def derive(self, *, new_id: Callable[[], str] = new_handoff_id, **changes: Any) -> HandoffContext:
        """A handoff that follows from this one, with an id of its own and this one as its parent."""
        given = self.model_dump()
        given |= {
            "handoff_id": new_id(),
            "parent_id": self.handoff_id,
            "root_id": self.root_id or self.handoff_id,
        }
        return HandoffContext.read(given | changes, "handoff")
