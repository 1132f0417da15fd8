"""The values that go with a handoff: its context, how clear the problem is, and requests to the operator.

`overall_clarity` and `is_ready_for_analysis` are the seed's, literally. Whether an agent admits a problem is
asked of what that agent requires (`engine.crew.ontology.spec.Receives.refusal`), because the mean hides a
missing part.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from engine.crew.ontology.kinds import (
    RESERVED,
    AgentId,
    Effect,
    HandoffMode,
    HandoffType,
    Lines,
    OntologyValue,
    OntologyWord,
    Priority,
    RequestKind,
    RequestState,
    ReturnBehavior,
    Share,
    Words,
)

Slot = Literal["what", "who", "success"]
SLOTS: tuple[Slot, ...] = ("what", "who", "success")
READY = 0.6
"""Overall clarity from which the seed calls a problem ready."""
PROPOSED = 0.8
"""The score of a text that comes without one, before it is capped."""
SLOT_LEAST = 0.3
"""Clarity that a required slot has at least."""

_Text = Annotated[str, Field(max_length=8_000)] | None


class ProblemClarity(OntologyValue):
    """What the problem is, who has it, what success looks like, and how clear each of these is."""

    what: _Text = None
    who: _Text = None
    success: _Text = None
    what_clarity: Share = 0.0
    who_clarity: Share = 0.0
    success_clarity: Share = 0.0
    assumptions: Lines = ()
    open_questions: Lines = ()
    confirmed: frozenset[Slot] = frozenset()
    """Slots to which the operator said yes."""
    evidence: dict[Slot, tuple[str, ...]] = Field(default_factory=dict)
    """Ids of messages that say so, by slot."""

    @model_validator(mode="after")
    def _blank_is_unclear(self) -> Self:
        for slot in SLOTS:
            if not (self.text(slot) or "").strip() and self.score(slot):
                # The model is frozen for everybody else.
                object.__setattr__(self, f"{slot}_clarity", 0.0)
        return self

    @property
    def overall_clarity(self) -> float:
        """The mean of the three."""
        return (self.what_clarity + self.who_clarity + self.success_clarity) / 3

    @property
    def is_ready_for_analysis(self) -> bool:
        """The seed's readiness: a mean of at least 0.6."""
        # The mean of 1.0, 0.8 and 0.0 is 0.6 and not a rounding error below it.
        return round(self.overall_clarity, 9) >= READY

    def text(self, slot: Slot) -> str | None:
        """The words of a slot."""
        return {"what": self.what, "who": self.who, "success": self.success}[slot]

    def score(self, slot: Slot) -> float:
        """The clarity of a slot."""
        return {"what": self.what_clarity, "who": self.who_clarity, "success": self.success_clarity}[slot]

    def updated(self, slot: Slot, text: str, score: float, confirmed: bool = False) -> ProblemClarity:
        """With other words in a slot; the score is capped by what the words support."""
        confirmed_slots = self.confirmed | {slot} if confirmed else self.confirmed - {slot}
        clarity = capped(slot, text, score, confirmed)
        changed = {slot: text, f"{slot}_clarity": clarity, "confirmed": confirmed_slots}
        return ProblemClarity.read({**self.model_dump(), **changed})

    def to_dict(self) -> dict[str, Any]:
        """Its JSON."""
        return self.model_dump(mode="json")


def clarity_from(given: Mapping[str, Any] | ProblemClarity | None) -> ProblemClarity:
    """The clarity of a given text; words without a score get a proposed one, capped.

    Raises:
        InvalidError: it is none.
    """
    if isinstance(given, ProblemClarity):
        return given
    fields = dict(given or {})
    for slot in SLOTS:
        text = fields.get(slot)
        if isinstance(text, str) and text.strip() and f"{slot}_clarity" not in fields:
            fields[f"{slot}_clarity"] = capped(slot, text, PROPOSED, slot in (fields.get("confirmed") or ()))
    return ProblemClarity.read(fields, "problem clarity")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_STOP_WORDS = _set(
    """a an the it its is are was be been to of for and or in on at by with from as that this these
    those we our
    us i my me you your they their them he she make makes making get gets getting do does want wants
    need needs have has should would could can will so some any very really just"""
)
_GENERIC: dict[Slot, frozenset[str]] = {
    "what": _set(
        """better improve improves improved improvement improvements optimise optimize issue issues problem
        problems thing things"""
    ),
    "who": _set("everyone everybody user users people customer customers all anyone"),
    "success": _set("better faster more good happy success successful"),
}
_MEASURABLE = re.compile(
    r"\d|%|\b(zero|no longer|at least|at most|under|within|pass(es)?)\b|"
    r"\bby (the )?(end|next|tomorrow|tonight|noon|january|february|march|april|may|june|july|august|"
    r"september|october|november|december|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*", re.UNICODE)


def cap(slot: Slot, text: str, confirmed: bool) -> float:
    """The highest clarity that these words support: the least of all caps that apply."""
    words = [word.casefold() for word in _WORD.findall(text)]
    if not text.strip():
        return 0.0
    caps = [1.0 if confirmed else 0.85]
    telling = [word for word in words if word not in _STOP_WORDS]
    if all(word in _GENERIC[slot] for word in telling):
        caps.append(0.4)
    if slot == "success" and not _MEASURABLE.search(text):
        caps.append(0.5)
    if len(words) < 3:
        caps.append(0.6)
    return min(caps)


def capped(slot: Slot, text: str, proposed: float, confirmed: bool = False) -> float:
    """The clarity of a slot: what was proposed, and no more than its words support."""
    return min(proposed, cap(slot, text, confirmed))


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


class Speaker(OntologyWord):
    """Who said something in a conversation."""

    USER = "user"
    ASSISTANT = "assistant"
    OPERATOR = "operator"
    SYSTEM = "system"


class Message(OntologyValue):
    """One thing that was said."""

    role: Speaker
    text: Words
    at: Moment


class ConversationSummary(OntologyValue):
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


class PreviousAnalysis(OntologyValue):
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


class HandoffContext(OntologyValue):
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
        return tuple({(agent.framework_id, agent.handoff_id): agent for agent in given}.values())

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

    def derive(self, **changes: Any) -> HandoffContext:
        """A handoff that follows from this one, with an id of its own and this one as its parent."""
        above = {"parent_id": self.handoff_id, "root_id": self.root_id or self.handoff_id}
        given = {**self.model_dump(), "handoff_id": new_handoff_id(), **above, **changes}
        return HandoffContext.read(given, "handoff")


PERMISSIONS = ("allow_once", "allow_always", "reject_once", "reject_always")
"""The options of a permission, exactly."""


class Option(OntologyValue):
    """One answer that can be chosen."""

    id: str = Field(min_length=1, max_length=64)
    label: str = Field(min_length=1, max_length=200)
    effect: Effect
    args: dict[str, Any] = Field(default_factory=dict)
    words: Literal["", "may", "must"] = ""
    """Whether words go with it: why a step is skipped, what a result written by hand says."""

    @property
    def needs_words(self) -> bool:
        """Whether it means nothing without them."""
        return self.words == "must" or self.effect is Effect.TAKEOVER


def options_of(*rows: tuple[str, str, Effect] | tuple[str, str, Effect, str]) -> tuple[Option, ...]:
    """Options by id, label, effect and, where words go with one, whether they `may` or `must`."""
    names = ("id", "label", "effect", "words")
    return tuple(Option(**dict(zip(names, row, strict=False))) for row in rows)


class Answer(OntologyValue):
    """What the operator, or a rule of theirs, said."""

    option_id: str | None = None
    text: Words = ""
    by: str
    at: Moment


class HumanRequest(OntologyValue):
    """A question that waits for the operator.

    It never answers itself: it stays open until the operator answers or dismisses it, or its handoff ends.
    """

    id: str = Field(pattern=r"^hr-[0-9a-z-]{1,64}$")
    session_id: str = ""
    handoff_id: str | None = None
    agent_id: AgentId
    kind: RequestKind
    reason_code: str = Field(min_length=1, max_length=64)
    title: str = Field(min_length=1, max_length=80)
    question: Words
    context: Words = ""
    """What was tried."""
    options: tuple[Option, ...] = ()
    severity: Priority = Priority.NORMAL
    blocking: bool = True
    created_at: Moment
    state: RequestState = RequestState.OPEN
    answer: Answer | None = None
    times: int = Field(default=1, ge=1)
    """How often the same was asked while it was open."""

    @model_validator(mode="after")
    def _can_be_answered(self) -> Self:
        ids = [option.id for option in self.options]
        if len(set(ids)) < len(ids):
            raise ValueError("options: their ids must differ")
        if self.kind is RequestKind.PERMISSION and tuple(ids) != PERMISSIONS:
            raise ValueError(f"options: a permission has exactly {', '.join(PERMISSIONS)}")
        if (self.state is RequestState.ANSWERED) != (self.answer is not None):
            raise ValueError("answer: given exactly when the request is answered")
        return self

    @property
    def same(self) -> tuple[str | None, str, str]:
        """What makes two open requests one."""
        return (self.handoff_id, self.reason_code, self.question)
