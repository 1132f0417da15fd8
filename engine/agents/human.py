"""What is asked of the operator: HumanRequest (ontology spec §1.7)."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from engine.agents.context import Moment
from engine.agents.kinds import Effect, Priority, RequestKind, RequestState
from engine.agents.values import AgentId, Value, Words

PERMISSIONS = ("allow_once", "allow_always", "reject_once", "reject_always")
"""The options of a permission, exactly."""


class Option(Value):
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


class Answer(Value):
    """What the operator, or a rule of theirs, said."""

    option_id: str | None = None
    text: Words = ""
    by: str
    at: Moment


class HumanRequest(Value):
    """A question that waits for the operator.

    It never approves by itself: with no default, expiry leaves it open.
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
    default_option: str | None = None
    allow_free_text: bool = True
    severity: Priority = Priority.NORMAL
    blocking: bool = True
    created_at: Moment
    expires_at: Moment | None = None
    state: RequestState = RequestState.OPEN
    answer: Answer | None = None
    times: int = Field(default=1, ge=1)
    """How often the same was asked while it was open."""

    @model_validator(mode="after")
    def _can_be_answered(self) -> Self:
        ids = [option.id for option in self.options]
        if len(set(ids)) < len(ids):
            raise ValueError("options: their ids must differ")
        if self.default_option is not None and self.default_option not in ids:
            raise ValueError(f"default_option: {self.default_option!r} is none of the options")
        if not ids and not self.allow_free_text:
            raise ValueError("options: without any, free text must be allowed")
        if self.kind is RequestKind.PERMISSION and tuple(ids) != PERMISSIONS:
            raise ValueError(f"options: a permission has exactly {', '.join(PERMISSIONS)}")
        if (self.state is RequestState.ANSWERED) != (self.answer is not None):
            raise ValueError("answer: given exactly when the request is answered")
        return self

    @property
    def same(self) -> tuple[str | None, str, str]:
        """What makes two open requests one."""
        return (self.handoff_id, self.reason_code, self.question)
