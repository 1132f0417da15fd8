"""What an agent returns: HandoffResult (ontology spec §1.5)."""

from __future__ import annotations

import json
from typing import Any, Self

from pydantic import Field, model_validator

from engine.agents.context import Moment, PreviousAnalysis
from engine.agents.kinds import Check, ConfidenceSource, ErrorCode, HandoffState, OutputFormat
from engine.agents.values import AgentId, Share, Value, Words


class GateOutcome(Value):
    """What a criterion says of an output."""

    check: Check
    passed: bool | None
    """None where nothing could be said: a rubric without a model."""
    hard: bool = True
    wanted: str = ""
    measured: str = ""
    """What was found, as `17 < 20`."""
    message: str = ""


class Usage(Value):
    """What a handoff took of models."""

    calls: int = Field(default=0, ge=0)
    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    usd: float = Field(default=0.0, ge=0.0)

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            usd=self.usd + other.usd,
        )


class HandoffResult(Value):
    """What came of a handoff. Nothing in it is invented: no confidence was told is 0.0 with source none."""

    handoff_id: str
    from_agent: AgentId
    """Who answers."""
    to_agent: str
    """Whom the answer is for."""
    success: bool
    output: Words = ""
    output_format: OutputFormat = OutputFormat.MARKDOWN
    key_findings: tuple[str, ...] = ()
    recommendations: tuple[str, ...] = ()
    confidence: Share = 0.0
    scores: dict[str, float] = Field(default_factory=dict)
    suggested_next_agents: tuple[str, ...] = ()
    open_questions: tuple[str, ...] = ()
    needs_human_input: bool = False
    human_input_reason: str = ""
    duration_seconds: float = Field(default=0.0, ge=0.0)
    error: str | None = None
    error_code: ErrorCode | None = None
    state: HandoffState = HandoffState.COMPLETED
    partial: bool = False
    confidence_source: ConfidenceSource = ConfidenceSource.NONE
    quality: tuple[GateOutcome, ...] = ()
    missing: tuple[str, ...] = ()
    """Sub-agents that gave nothing."""
    usage: Usage = Usage()
    attempt: int = Field(default=1, ge=1)
    warnings: tuple[str, ...] = ()
    data: dict[str, Any] = Field(default_factory=dict)
    """Structured answers by field."""
    metadata: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.success != (self.error is None):
            raise ValueError("success: a result is a success exactly when it has no error")
        if self.success and not (self.output.strip() or self.data or self.scores or self.key_findings):
            raise ValueError("output: a success has an output, findings, scores or data")
        if self.needs_human_input != bool(self.human_input_reason.strip()):
            raise ValueError("human_input_reason: given exactly when needs_human_input is true")
        if not self.state.terminal:
            raise ValueError(f"state: {self.state} is no end of a handoff")
        if self.success != (self.state is HandoffState.COMPLETED):
            raise ValueError(f"state: {self.state} does not go with success={self.success}")
        if self.output_format is OutputFormat.JSON and self.success:
            try:
                json.loads(self.output)
            except ValueError as error:
                raise ValueError(f"output: is to be JSON and is not: {error}") from error
        if self.from_agent in self.suggested_next_agents:
            raise ValueError("suggested_next_agents: an agent does not suggest itself")
        return self

    def to_analysis(self, name: str = "", at: Moment | None = None) -> PreviousAnalysis:
        """What later agents are told of it.

        Raises:
            ValueError: it failed; failures are no analyses.
        """
        if not self.success:
            raise ValueError(f"{self.handoff_id} failed: {self.error}; it is no analysis")
        return PreviousAnalysis(
            framework_id=self.from_agent,
            framework_name=name or self.from_agent,
            output=self.output,
            key_findings=self.key_findings,
            recommendations=self.recommendations,
            confidence=self.confidence,
            timestamp=at,
            handoff_id=self.handoff_id,
            partial=self.partial,
        )
