"""Contexts of handoffs: the operator's, those that follow from others, those of a second try."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engine.agents.clarity import ProblemClarity, clarity_from
from engine.agents.context import USER, ConversationSummary, HandoffContext, new_handoff_id
from engine.agents.kinds import ErrorCode, HandoffMode, HandoffState, HandoffType, ReturnBehavior
from engine.agents.result import HandoffResult, Usage
from engine.agents.spec import AgentSpec
from engine.agents.values import InvalidError
from engine.crew.parts import Ask, HandoffError
from engine.crew.state import CrewState, Handoff
from engine.domain.running import PROOF

NewId = Callable[[], str]
ROLE, TURNS = "crew.role", "crew.turns"
"""Where a role's progress has what it knows of the problem, and what was said."""
OUTPUT = 200_000
"""Characters of an output that are kept."""
TRANSFER_S = 86_400
"""How long a holder of the floor may work; waiting for the operator does not count."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A handoff that is to be made."""

    context: HandoffContext
    spec: AgentSpec | None = None
    """The spec of a sub-agent that is registered nowhere."""
    caller: str = ""
    """The run that hands over; empty for the operator."""
    group: str = ""
    actor: str = "system"


@dataclass(frozen=True, slots=True)
class Setting:
    """What all contexts of a session have in common."""

    session: str
    now: Callable[[], datetime]
    new_id: NewId = new_handoff_id


def clarity_of(progress: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a role knows of the problem, by its progress; None where it tells nothing."""
    for part in (progress.get(ROLE), progress):
        if isinstance(part, Mapping) and isinstance(known := part.get("clarity"), dict):
            return known
    return None


def _conversation(setting: Setting, parent: Handoff) -> ConversationSummary:
    """What was talked about: what the parent was told, with what was said since."""
    given = parent.context.conversation
    said = parent.progress.get(TURNS)
    turns = [one for one in said if isinstance(one, Mapping)] if isinstance(said, list | tuple) else []
    at = setting.now()
    messages = [{"role": one.get("role"), "text": one.get("text"), "at": at} for one in turns]
    if not messages:
        return given
    kept = {
        "recent_messages": [*given.recent_messages, *messages],
        "turn_count": given.turn_count + len(turns),
    }
    return ConversationSummary.read({**given.model_dump(), **kept}, "conversation")


def from_user(
    state: CrewState,
    setting: Setting,
    ask: Ask,
    *,
    clarity: Mapping[str, Any] | None = None,
    kind: HandoffType = HandoffType.DELEGATE,
    mode: HandoffMode = HandoffMode.SEQUENTIAL,
    returns: ReturnBehavior = ReturnBehavior.PASSTHROUGH,
) -> HandoffContext:
    """What the operator hands over.

    What is known of the problem is what is given, else what the conversation's role told last; where
    nothing is known, the task itself is what it is about.

    Raises:
        HandoffError: something given does not fit; every field is named.
    """
    try:
        known = clarity_from(clarity if clarity is not None else state.clarity or {"what": ask.task[:8_000]})
        given: dict[str, Any] = {
            **_asked(ask),
            "handoff_id": _fresh(state, setting),
            "timestamp": setting.now(),
            "session_id": setting.session,
            "problem_clarity": known,
            "from_agent": USER,
            "handoff_type": kind,
            "handoff_mode": mode,
            "return_behavior": returns,
        }
        if kind is HandoffType.TRANSFER:
            given |= {"return_to": "", "timeout_seconds": ask.timeout_s or TRANSFER_S}
        return HandoffContext.read(given, "handoff")
    except InvalidError as error:
        raise HandoffError(ErrorCode.BAD_CONTEXT, str(error)) from error


def below(
    state: CrewState,
    setting: Setting,
    parent: Handoff,
    ask: Ask,
    *,
    mode: HandoffMode = HandoffMode.SEQUENTIAL,
    kind: HandoffType = HandoffType.DELEGATE,
) -> HandoffContext:
    """What a run hands over: its own context carried on, with a task of its own.

    Raises:
        HandoffError: something given does not fit; every field is named.
    """
    above = parent.context
    changes: dict[str, Any] = {
        "timeout_seconds": 300,
        **_asked(ask),
        "priority": max(ask.priority, parent.priority),
        "timestamp": setting.now(),
        "session_id": setting.session,
        "from_agent": above.to_agent,
        "return_to": above.to_agent,
        "return_behavior": ReturnBehavior.SYNTHESIZE,
        "handoff_type": kind,
        "handoff_mode": mode,
        "lineage": (*above.lineage, above.to_agent),
        "attempt": 1,
        "retry_of": None,
        "in_reply_to": None,
    }
    if parent.proof:
        changes["metadata"] = {**ask.metadata, PROOF: True}
    if kind is HandoffType.TRANSFER:
        # The floor goes on from one to the next; nobody is left waiting above.
        changes |= {"return_to": "", "timeout_seconds": TRANSFER_S, "lineage": ()}
    try:
        if (known := clarity_of(parent.progress)) is not None:
            changes["problem_clarity"] = ProblemClarity.read(known)
        changes["conversation"] = _conversation(setting, parent)
        context = above.derive(new_id=lambda: _fresh(state, setting), **changes)
        if kind is HandoffType.TRANSFER:
            context = context.model_copy(update={"parent_id": "", "root_id": ""})
    except InvalidError as error:
        raise HandoffError(ErrorCode.BAD_CONTEXT, str(error)) from error
    return context


def again(
    state: CrewState, setting: Setting, handoff: Handoff, *, actor: str, caller: str | None = None
) -> Wanted:
    """The same handed over once more: a new handoff that names the one before.

    Args:
        state: the crew.
        setting: the session.
        handoff: one that has ended.
        actor: who wants it.
        caller: the run that waits for it; None is the one of before.
    """
    known = handoff.context.problem_clarity
    if state.clarity and actor.startswith("operator") and not handoff.context.parent_id:
        known = ProblemClarity.read(state.clarity)
    context = handoff.context.model_copy(
        update={
            "handoff_id": _fresh(state, setting),
            "timestamp": setting.now(),
            "session_id": setting.session,
            "retry_of": handoff.id,
            "attempt": handoff.context.attempt + 1,
            "priority": handoff.priority,
            "problem_clarity": known,
        }
    )
    spec = None if state.registered(handoff) else handoff.spec
    return Wanted(context, spec, handoff.caller if caller is None else caller, handoff.group, actor)


def not_made(to: str, who: str, error: HandoffError, *, handoff: str) -> HandoffResult:
    """The result of a handoff that could not even be written down."""
    return HandoffResult(
        handoff_id=handoff,
        from_agent=to,
        to_agent=who,
        success=False,
        error=error.message,
        error_code=error.code,
        state=HandoffState.REJECTED,
    )


def failure(
    handoff: Handoff,
    code: ErrorCode,
    message: str,
    target: HandoffState,
    *,
    output: str = "",
    usage: Usage | None = None,
    duration_s: float = 0.0,
) -> HandoffResult:
    """The result of a handoff that came to nothing, with what there is of an output."""
    return HandoffResult(
        handoff_id=handoff.id,
        from_agent=handoff.agent,
        to_agent=handoff.context.return_to,
        success=False,
        output=output[:OUTPUT],
        error=message or str(code),
        error_code=code,
        state=target,
        partial=bool(output.strip()),
        usage=usage or Usage(),
        duration_seconds=duration_s,
        attempt=handoff.context.attempt,
    )


def _asked(ask: Ask) -> dict[str, Any]:
    given: dict[str, Any] = {
        "to_agent": ask.to,
        "task_description": ask.task,
        "expected_output": ask.expected,
        "focus_areas": ask.focus,
        "ignore_areas": ask.ignore,
        "priority": ask.priority,
        "metadata": ask.metadata,
    }
    return given | ({"timeout_seconds": ask.timeout_s} if ask.timeout_s is not None else {})


def _fresh(state: CrewState, setting: Setting) -> str:
    while (made := setting.new_id()) in state.handoffs:
        pass
    return made
