"""What an agent and a handoff are in the words of other protocols (ontology spec §1.9): A2A and ACP."""

from __future__ import annotations

from typing import Any

from engine.agents.kinds import ErrorCode, HandoffState, OutputFormat, RequestKind
from engine.agents.result import HandoffResult
from engine.agents.spec import AgentSpec

_STATES = {
    HandoffState.QUEUED: "submitted",
    HandoffState.RUNNING: "working",
    HandoffState.WAITING_HUMAN: "input-required",
    HandoffState.PAUSED: "working",
    HandoffState.COMPLETED: "completed",
    HandoffState.FAILED: "failed",
    HandoffState.TIMED_OUT: "failed",
    HandoffState.CANCELLED: "canceled",
    HandoffState.REJECTED: "rejected",
}


def task_state(state: HandoffState, asks: RequestKind | None = None) -> str:
    """The state of an A2A task.

    Args:
        state: where the handoff stands.
        asks: what it asks of the operator, where it waits.
    """
    if state is HandoffState.WAITING_HUMAN and asks is RequestKind.PERMISSION:
        return "auth-required"
    return _STATES[state]


def stop_reason(result: HandoffResult) -> str:
    """Why a turn ended, in ACP's words."""
    if result.state is HandoffState.COMPLETED:
        return "end_turn"
    if result.state is HandoffState.CANCELLED:
        return "cancelled"
    return "max_turn_requests" if result.error_code is ErrorCode.BUDGET else "refusal"


def agent_card(spec: AgentSpec) -> dict[str, Any]:
    """An A2A-shaped card: name, description, version, skills, and the forms of input and output."""
    words = spec.triggers.keywords
    kinds = tuple(one.type for one in spec.triggers.problem_types)
    plain = spec.handoff.returns.output_format is OutputFormat.MARKDOWN
    return {
        "name": spec.name,
        "description": spec.description,
        "version": spec.version,
        "capabilities": {"streaming": False, "pushNotifications": False},
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/markdown"] if plain else ["application/json"],
        "skills": [
            {
                "id": spec.id,
                "name": spec.name,
                "description": spec.description,
                "tags": list(dict.fromkeys((*spec.tags, *kinds, spec.type.value))),
                "examples": list(words),
            }
        ],
    }
