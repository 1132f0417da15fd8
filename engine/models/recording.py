"""A call of a model for the journal: what was sent and what came back, as JSON without any key."""

from __future__ import annotations

from typing import Any

from engine.journal import events as ev
from engine.models.answer import ModelAnswer
from engine.models.blocks import block_body
from engine.models.capabilities import Capabilities
from engine.models.cost import cost_of
from engine.models.errors import ModelError
from engine.models.request import ModelRequest


def called(
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
