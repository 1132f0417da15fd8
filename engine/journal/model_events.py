"""The kinds of events by which models are asked: what they say as it comes, and each call whole."""

from __future__ import annotations

from typing import Any, ClassVar

from engine.domain.failure import FailureKind
from engine.domain.thinking import Decision
from engine.journal.payload import Payload


class ModelSaid(Payload):
    """A piece of a model's answer, as it came."""

    kind: ClassVar[str] = "model.said"
    external: ClassVar[bool] = True
    stream: str
    """`text`, `thinking` or `tool input`."""
    text: str
    skipped: int = 0
    """Characters before this piece that were not kept."""


class ModelCalled(Payload):
    """A call of a model is over: what was sent, and what came of it; no key is in either."""

    kind: ClassVar[str] = "model.called"
    external: ClassVar[bool] = True
    goal: str = ""
    purpose: str = ""
    """`plan`, `plans for GOAL`, …"""
    model: str
    request: dict[str, Any]
    """As the Messages API takes it."""
    answer: dict[str, Any] | None = None
    error: str = ""
    """Why there is no answer; the answer then holds what had come of it, when something had."""
    error_kind: str = ""
    partial: bool = False
    tokens: int = 0
    cost_usd: float | None = None
    """None where nobody knows the price."""
    shares: tuple[tuple[str, int], ...] = ()
    """Estimated tokens of each named block of the prompt, in the order sent."""
    window: int = 0
    """Tokens that the model holds at a time."""
    duration_ms: int = 0
    retries: int = 0


class ThinkingFailed(Payload):
    """A thinker gave no plan, or no decision."""

    kind: ClassVar[str] = "plan.thinking_failed"
    goal: str
    step: str = ""
    """The step about which it was to decide; empty where a plan was asked for."""
    failure: FailureKind
    message: str
    retry_after_s: float = 0.0


class DecisionAsked(Payload):
    """A thinker is asked what to do next; its answer comes later."""

    kind: ClassVar[str] = "decision.asked"
    goal: str
    step: str
    thinker: str


class DecisionMade(Payload):
    """A thinker decided what to do next."""

    kind: ClassVar[str] = "decision.made"
    goal: str
    step: str
    thinker: str
    decision: Decision
