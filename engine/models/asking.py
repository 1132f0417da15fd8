"""Asking for an answer that can be used: each reason to stop is settled here."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from engine.domain.text import clean_line
from engine.models.answer import ModelAnswer, StopReason
from engine.models.blocks import Message, Text, said
from engine.models.errors import ModelError, ModelErrorKind
from engine.models.port import ModelClient, PieceSink, Recorder, unrecorded, unwatched
from engine.models.request import ModelRequest

PAUSES = 3
"""Times that a paused turn is taken up again."""


async def complete(
    client: ModelClient,
    request: ModelRequest,
    *,
    sink: PieceSink = unwatched,
    record: Recorder = unrecorded,
    cut: asyncio.Event | None = None,
) -> ModelAnswer:
    """The answer to a request, a paused turn taken up again; partial only when it was cut off.

    Raises:
        ModelError: the call failed; TRUNCATED where the answer reached its limit, REFUSED where the model
            declined, UNREADABLE where it is empty.
    """
    answer = await client.send(request, sink=sink, record=record, cut=cut)
    for _ in range(PAUSES):
        if answer.stop_reason is not StopReason.PAUSE_TURN:
            break
        request = request.followed_by(answer_turn(answer))
        answer = _joined(answer, await client.send(request, sink=sink, record=record, cut=cut))
    return answer if answer.partial else _usable(answer, request)


def answer_turn(answer: ModelAnswer) -> Message:
    """What a model said as a turn of the exchange; the API takes no blank texts."""
    kept = tuple(b for b in answer.content if not (isinstance(b, Text) and not b.text.strip()))
    return Message("assistant", kept or (Text("(no answer)"),))


def _joined(first: ModelAnswer, then: ModelAnswer) -> ModelAnswer:
    return replace(
        then,
        content=(*first.content, *then.content),
        usage=first.usage + then.usage,
        latency_ms=first.latency_ms + then.latency_ms,
        first_piece_ms=first.first_piece_ms,
        retries=first.retries + then.retries,
    )


def _usable(answer: ModelAnswer, request: ModelRequest) -> ModelAnswer:
    match answer.stop_reason:
        case StopReason.END_TURN | StopReason.STOP_SEQUENCE | StopReason.TOOL_USE:
            return answer
        case StopReason.MAX_TOKENS:
            raise _unusable(
                ModelErrorKind.TRUNCATED,
                f"the answer reached its limit of {request.max_tokens:,} tokens before it was whole: "
                "raise max_tokens or ask for less at once",
                answer,
            )
        case StopReason.CONTEXT_WINDOW:
            raise _unusable(
                ModelErrorKind.TRUNCATED,
                "prompt and answer do not fit into the model's context: shorten the goal or the context",
                answer,
            )
        case StopReason.PAUSE_TURN:
            raise _unusable(
                ModelErrorKind.TRUNCATED,
                f"the endpoint paused the turn more than {PAUSES} times: ask for less at once",
                answer,
            )
        case StopReason.REFUSAL:
            raise _unusable(
                ModelErrorKind.REFUSED,
                f"the model declined to answer ({clean_line(answer.stop_said, limit=300)}): "
                "put the goal in other words, or use another model",
                answer,
            )
        case StopReason.UNKNOWN | None:
            # A reason that is not known yet ends a turn as any other, as long as something was said.
            if answer.content:
                return answer
            raise _unusable(
                ModelErrorKind.UNREADABLE,
                f"the model said nothing and stopped for {clean_line(answer.stop_said, limit=100)!r}: "
                "try again",
                answer,
            )


def _unusable(kind: ModelErrorKind, message: str, answer: ModelAnswer) -> ModelError:
    return ModelError(kind, message, request_id=answer.request_id, retries=answer.retries, answer=answer)


async def ask(
    client: ModelClient,
    model: str,
    system: str,
    user: str,
    *,
    max_tokens: int = 4_096,
    temperature: float | None = None,
    sink: PieceSink = unwatched,
    record: Recorder = unrecorded,
    cut: asyncio.Event | None = None,
) -> ModelAnswer:
    """A model's answer in words to a system prompt and a question; the system prompt may be cached.

    Raises:
        ModelError: see `complete`.
    """
    request = ModelRequest(
        model,
        (said(user, name="question"),),
        (Text(system, "system", cache=True),) if system else (),
        max_tokens=max_tokens,
        temperature=temperature,
    )
    return await complete(client, request, sink=sink, record=record, cut=cut)
