"""Makes the contexts of handoffs: the operator's, those that follow from others, those of a retry.

With a task the operator can give data that is checked and counted (`metadata.given`, any JSON) and texts that
can be quoted (`metadata.sources`, by the names that evidence cites them by).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from engine.core.agents import RECORDING, TURNS
from engine.core.crew_commands import Bringing
from engine.core.text import clean_line
from engine.crew.ontology.context import (
    USER,
    ConversationSummary,
    HandoffContext,
    ProblemClarity,
    clarity_from,
    new_handoff_id,
)
from engine.crew.ontology.kinds import (
    ErrorCode,
    HandoffMode,
    HandoffState,
    HandoffType,
    InvalidError,
    ReturnBehavior,
)
from engine.crew.ontology.results import HandoffResult, failure_of
from engine.crew.ontology.spec import AgentSpec
from engine.crew.ports import HandoffError, HandoffRequest
from engine.crew.state import CrewState, Handoff, clarity_of
from engine.crew.thinker.run_plan import GIVEN, SOURCES, quotable
from engine.sandbox.files import SandboxFiles
from engine.sandbox.paths import PathError
from engine.value import dataclass

OUTPUT = 200_000
"""Characters of an output that are kept."""
TRANSFER_S = 86_400
"""How long a holder of the floor may work; waiting for the operator does not count."""


@dataclass(frozen=True, slots=True)
class HandoffDraft:
    """A handoff that is to be made."""

    context: HandoffContext
    spec: AgentSpec | None = None
    """The spec of a sub-agent that is registered nowhere."""
    caller: str = ""
    """The run that hands over; empty for the operator."""
    group: str = ""
    actor: str = "system"
    origin: str = ""
    """The engine that hands it over, where another one does."""


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What all contexts of a session have in common."""

    session: str
    now: Callable[[], datetime]


def _conversation(setting: SessionContext, parent: Handoff) -> ConversationSummary:
    """The conversation: what the parent received, with the turns since."""
    given, turns = parent.context.conversation, parent.progress.get(TURNS) or ()
    if not turns:
        return given
    messages = [{**turn, "at": setting.now()} for turn in turns]
    kept = {
        "recent_messages": [*given.recent_messages, *messages],
        "turn_count": given.turn_count + len(turns),
    }
    return ConversationSummary.read({**given.model_dump(), **kept}, "conversation")


def operator_context(
    state: CrewState,
    setting: SessionContext,
    ask: HandoffRequest,
    *,
    clarity: Mapping[str, Any] | None = None,
    kind: HandoffType = HandoffType.DELEGATE,
    mode: HandoffMode = HandoffMode.SEQUENTIAL,
    returns: ReturnBehavior = ReturnBehavior.PASSTHROUGH,
) -> HandoffContext:
    """What the operator hands over.

    What is known of the problem is what is given, else what the conversation's role noted last; where
    nothing is known, the task itself is what it is about.

    Raises:
        HandoffError: something given does not fit; every field is named.
    """
    try:
        known = clarity_from(clarity if clarity is not None else state.clarity or {"what": ask.task[:8_000]})
        given: dict[str, Any] = {
            **_asked(ask),
            **_stamp(state, setting),
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


def child_context(
    state: CrewState,
    setting: SessionContext,
    parent: Handoff,
    ask: HandoffRequest,
    *,
    kind: HandoffType = HandoffType.DELEGATE,
) -> HandoffContext:
    """What a run hands over: its own context carried on, with a task of its own.

    Raises:
        HandoffError: something given does not fit; every field is named.
    """
    above = parent.context
    changes: dict[str, Any] = {
        **_stamp(state, setting),
        "timeout_seconds": 300,
        **_asked(ask),
        "priority": max(ask.priority, parent.priority),
        "from_agent": above.to_agent,
        "return_to": above.to_agent,
        "return_behavior": ReturnBehavior.SYNTHESIZE,
        "handoff_type": kind,
        "handoff_mode": HandoffMode.SEQUENTIAL,
        "lineage": (*above.lineage, above.to_agent),
        "attempt": 1,
        "retry_of": None,
        "in_reply_to": None,
    }
    if kind is HandoffType.TRANSFER:
        # The floor goes on from one to the next; nobody is left waiting above.
        changes |= {"return_to": "", "timeout_seconds": TRANSFER_S, "lineage": ()}
    if RECORDING in above.metadata:
        changes["metadata"] = {**ask.metadata, RECORDING: above.metadata[RECORDING]}
    try:
        if (known := clarity_of(parent.progress)) is not None:
            changes["problem_clarity"] = ProblemClarity.read(known)
        changes["conversation"] = _conversation(setting, parent)
        context = above.derive(**changes)
        if kind is HandoffType.TRANSFER:
            context = context.model_copy(update={"parent_id": "", "root_id": ""})
    except InvalidError as error:
        raise HandoffError(ErrorCode.BAD_CONTEXT, str(error)) from error
    return context


def retry_context(
    state: CrewState, setting: SessionContext, handoff: Handoff, *, actor: str, caller: str | None = None
) -> HandoffDraft:
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
            **_stamp(state, setting),
            "retry_of": handoff.id,
            "attempt": handoff.context.attempt + 1,
            "priority": handoff.priority,
            "problem_clarity": known,
        }
    )
    spec = None if state.registered(handoff) else handoff.spec
    return HandoffDraft(context, spec, handoff.caller if caller is None else caller, handoff.group, actor)


def failed_result(
    handoff: Handoff,
    code: ErrorCode,
    message: str,
    target: HandoffState,
    *,
    output: str = "",
    duration_s: float = 0.0,
) -> HandoffResult:
    """The result of a handoff that came to nothing, with what there is of an output."""
    return failure_of(
        handoff.context,
        code,
        message,
        target,
        output=output[:OUTPUT],
        partial=bool(output.strip()),
        duration_seconds=duration_s,
    )


def _asked(ask: HandoffRequest) -> dict[str, Any]:
    limit = {"timeout_seconds": ask.timeout_s} if ask.timeout_s is not None else {}
    return {
        "to_agent": ask.to,
        "task_description": ask.task,
        "expected_output": ask.expected,
        "focus_areas": ask.focus,
        "ignore_areas": ask.ignore,
        "priority": ask.priority,
        "metadata": ask.metadata,
        **limit,
    }


def _stamp(state: CrewState, setting: SessionContext) -> dict[str, Any]:
    """What each new handoff has of its own."""
    while (made := new_handoff_id()) in state.handoffs:
        pass
    return {"handoff_id": made, "timestamp": setting.now(), "session_id": setting.session}


HANDOFF = "h-"
"""How the names of handoffs begin; every other source is a file of the sandbox."""
BYTES = 48_000
"""Of all sources of a handoff together: its metadata holds 64 KiB, and turns of a debate say more in it."""
C = TypeVar("C", bound=Bringing)


async def with_sources(command: C, state: CrewState, root: Path) -> C:
    """The command with what it brings read and put into its metadata.

    Raises:
        HandoffError: a source cannot be read, or they are too long.
    """
    metadata = dict(command.metadata)
    if command.given is not None:
        metadata[GIVEN] = command.given
    if command.sources:
        metadata[SOURCES] = quotable(metadata) | await read_sources(command.sources, state, root)
    return command.model_copy(update={"metadata": metadata, "given": None, "sources": ()})


async def read_sources(names: Sequence[str], state: CrewState, root: Path) -> dict[str, str]:
    """The texts of sources, by name: what handoffs returned, and files beneath the sandbox root.

    Raises:
        HandoffError: one cannot be read, or they are too long; the message names it.
    """
    texts: dict[str, str] = {}
    for name in dict.fromkeys(names):
        returned = name.startswith(HANDOFF)
        texts[name] = _returned(name, state) if returned else await asyncio.to_thread(_file, name, root)
    size = sum(len(text.encode("utf-8", "replace")) for text in texts.values())
    if size > BYTES:
        raise _refusal(f"the sources have {size:,} bytes together; {BYTES:,} are taken: give parts of them")
    return texts


def _returned(name: str, state: CrewState) -> str:
    matches = [handoff for handoff in state.handoffs.values() if handoff.id.startswith(name)]
    if len(matches) != 1:
        raise _refusal(f"source {clean_line(name, limit=80)}: {len(matches)} handoffs are meant by it")
    output = matches[0].result.output if matches[0].result is not None else ""
    if not output.strip():
        raise _refusal(f"source {matches[0].id}: it has returned nothing that could be quoted")
    return output


def _file(name: str, root: Path) -> str:
    try:
        with closing(SandboxFiles(root)) as files:
            text = files.read(files.relative(name))
    except PathError as error:
        raise _refusal(f"source {clean_line(name, limit=200)}: {error.message}") from error
    if not text.strip():
        raise _refusal(f"source {clean_line(name, limit=200)}: it is empty")
    return text


def _refusal(message: str) -> HandoffError:
    return HandoffError(ErrorCode.BAD_CONTEXT, message)
