"""The port to a model, asking for an answer that can be used, and the journal's event of a call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import field, replace
from typing import Any, Protocol, TypeAlias

from engine.core import events as ev
from engine.core.text import clean_line
from engine.models.cost import cost_of
from engine.models.errors import ModelError, ModelErrorKind
from engine.models.messages import Message, ModelAnswer, Piece, StopReason, Text, block_body, user_message
from engine.models.model_table import Capabilities
from engine.models.request import ModelRequest
from engine.value import dataclass

PieceSink: TypeAlias = Callable[[Piece], None]
"""Takes each piece of an answer as it comes; must return at once."""

Recorder: TypeAlias = Callable[[ModelRequest, ModelAnswer | ModelError], None]
"""Takes once for every call what was sent, and the answer (perhaps partial) or the error."""


def ignore_piece(_piece: Piece) -> None:
    """Watches no piece."""


def ignore_call(_request: ModelRequest, _outcome: ModelAnswer | ModelError) -> None:
    """Records nothing."""


class ModelClient(Protocol):
    """Who carries requests to a model and answers back: over the network, or from a record."""

    def capabilities(self, model: str) -> Capabilities:
        """What is known of a model."""

    async def send(
        self, request: ModelRequest, *, sink: PieceSink = ignore_piece, record: Recorder = ignore_call
    ) -> ModelAnswer:
        """Ask, and return the whole answer.

        Args:
            request: what is asked; parameters that the model refuses are left out and noted in the answer.
            sink: gets the pieces as they come.
            record: gets the result, also when the calling task is cancelled.

        Raises:
            ModelError: no answer came, and retries would not or did not help.
        """


@dataclass(frozen=True, slots=True)
class RetryWait:
    """A call waits before it is tried again."""

    why: str
    """Kind of the error that it got."""
    seconds: float
    at: str
    """Since when, ISO 8601 UTC."""
    over: asyncio.Event = field(default_factory=asyncio.Event, compare=False)
    """Ends the wait when it is set."""


class ModelProvider(ModelClient, Protocol):
    """A client that holds connections, of which it says what it waits for."""

    rests: list[RetryWait]
    """Calls that wait now before they are tried again, of all agents."""

    async def learn(self, model: str) -> None:
        """Ask the endpoint what no table says of a model; once a session, and in little time."""

    async def close(self) -> None:
        """Close all connections; whoever asks has ended their calls before."""


PAUSES = 3
"""Times that a paused turn is resumed."""


async def complete(
    client: ModelClient,
    request: ModelRequest,
    *,
    sink: PieceSink = ignore_piece,
    record: Recorder = ignore_call,
) -> ModelAnswer:
    """The whole answer to a request, a paused turn resumed.

    Raises:
        ModelError: the call failed; TRUNCATED where the answer reached its limit, REFUSED where the model
            declined, UNREADABLE where it is empty.
    """
    answer = await client.send(request, sink=sink, record=record)
    for _ in range(PAUSES):
        if answer.stop_reason is not StopReason.PAUSE_TURN:
            break
        request = request.followed_by(answer_turn(answer))
        answer = _joined(answer, await client.send(request, sink=sink, record=record))
    return _usable(answer, request)


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
            kind = ModelErrorKind.TRUNCATED
            why = f"the answer reached its limit of {request.max_tokens:,} tokens before it was whole: "
            why += "raise max_tokens or ask for less at once"
        case StopReason.CONTEXT_WINDOW:
            kind = ModelErrorKind.TRUNCATED
            why = "prompt and answer do not fit into the model's context: shorten the goal or the context"
        case StopReason.REPETITION:
            kind = ModelErrorKind.TRUNCATED
            why = "the answer repeated itself and was cut: ask for less at once, or use another model"
        case StopReason.PAUSE_TURN:
            kind = ModelErrorKind.TRUNCATED
            why = f"the endpoint paused the turn more than {PAUSES} times: ask for less at once"
        case StopReason.REFUSAL:
            kind = ModelErrorKind.REFUSED
            why = f"the model declined to answer ({clean_line(answer.stop_said, limit=300)}): "
            why += "put the goal in other words, or use another model"
        case _:
            # A reason that is not known yet ends a turn as any other, as long as something was said.
            if answer.content:
                return answer
            kind = ModelErrorKind.UNREADABLE
            stopped = clean_line(answer.stop_said, limit=100)
            why = f"the model said nothing and stopped for {stopped!r}: try again"
    raise ModelError(kind, why, request_id=answer.request_id, retries=answer.retries, answer=answer)


async def ask(
    client: ModelClient,
    model: str,
    system: str,
    user: str,
    *,
    max_tokens: int = 4_096,
    temperature: float | None = None,
    sink: PieceSink = ignore_piece,
    record: Recorder = ignore_call,
) -> ModelAnswer:
    """A model's answer in words to a system prompt and a question; the system prompt may be cached.

    Raises:
        ModelError: see `complete`.
    """
    request = ModelRequest(
        model,
        (user_message(user, name="question"),),
        (Text(system, "system", cache=True),) if system else (),
        max_tokens=max_tokens,
        temperature=temperature,
    )
    return await complete(client, request, sink=sink, record=record)


def call_event(
    request: ModelRequest, outcome: ModelAnswer | ModelError, known: Capabilities, *, goal: str, purpose: str
) -> ev.ModelCalled:
    """The event of a call.

    Args:
        request: what was sent.
        outcome: the answer, perhaps partial, or the error.
        known: what the table of models says of the model that was asked.
        goal: id of the goal that it was for.
        purpose: what it was for, in a word or two.
    """
    failed = outcome if isinstance(outcome, ModelError) else None
    answer = outcome.answer if isinstance(outcome, ModelError) else outcome
    cost = cost_of(answer.usage, known) if answer is not None else None
    return ev.ModelCalled(
        goal=goal,
        purpose=purpose,
        model=request.model,
        request=request.body(),
        answer=_answer(answer) if answer is not None else None,
        error=failed.message if failed is not None else "",
        error_kind=failed.kind.value if failed is not None else "",
        partial=answer is not None and answer.partial,
        tokens=cost.tokens if cost is not None else 0,
        cost_usd=float(cost.usd) if cost is not None and not cost.unpriced else None,
        shares=request.shares(),
        window=known.context_window,
        duration_ms=answer.latency_ms if answer is not None else 0,
        retries=outcome.retries,
    )


def _answer(answer: ModelAnswer) -> dict[str, Any]:
    usage = answer.usage
    return {
        "content": [block_body(block) for block in answer.content],
        "stop_reason": answer.stop_said or (answer.stop_reason.value if answer.stop_reason else None),
        "model": answer.model,
        "request_id": answer.request_id,
        "usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_read_input_tokens": usage.cache_read_tokens,
            "cache_creation_input_tokens": usage.cache_write_tokens + usage.cache_write_1h_tokens,
            "estimated": usage.estimated,
        },
        "first_piece_ms": answer.first_piece_ms,
        "notes": list(answer.notes),
    }
