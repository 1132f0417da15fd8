"""The context meter's view model: what the thinker was told last, and what it took."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from engine.domain.state import AgentState
from engine.journal.model_events import ModelCalled
from widgets.dialogs.context_meter import CallLine, ContextBlock, ContextModel, GoalSpending
from widgets.line_pane import Notice
from widgets.status_bar import count_text

_OF_THE_PROMPT = ("system", "messages", "tools")


def context(state: AgentState, call: ModelCalled | None = None, at: str = "") -> ContextModel:
    """What the model of an agent was told last.

    Args:
        state: the agent.
        call: its newest call of a model; None where that is not known, or there was none.
        at: when that ended, as the journal has it.
    """
    shares = call.shares if call is not None else state.context
    texts = list(_texts(call.request)) if call is not None else []
    # Names belong to blocks by their place; a prompt of another making keeps its names without words.
    texts = texts if len(texts) == len(shares) else [""] * len(shares)
    return ContextModel(
        agent=state.agent_id,
        model=call.model if call is not None else state.model,
        window=call.window if call is not None else state.context_window,
        blocks=tuple(
            ContextBlock(name, tokens, text) for (name, tokens), text in zip(shares, texts, strict=True)
        ),
        call=_call(call, at) if call is not None else None,
        goals=tuple(_spending(state)),
        total=_total(state),
        settings=_settings(call.request) if call is not None else "",
        answer=_answer(call.answer) if call is not None and call.answer else "",
        notice=None if shares else Notice(_nobody_asked(state)),
    )


def _nobody_asked(state: AgentState) -> str:
    if not state.reasons and state.config.thinker == "procedural":
        return (
            "No model thinks for this agent: it plans by the plan library, so there is no prompt. "
            "? says how to give new agents a model."
        )
    return "No model was asked yet. The prompt will appear here once one is: give a goal, and press space."


def _texts(request: dict[str, Any]) -> Iterator[str]:
    """The words of each block in the order in which its share was taken."""
    if tools := request.get("tools"):
        yield json.dumps(tools, ensure_ascii=False, indent=2)
    for block in request.get("system", []):
        yield _words(block)
    for message in request.get("messages", []):
        for block in message.get("content", []):
            yield _words(block)


def _words(block: dict[str, Any]) -> str:
    """What a content block says: its text as it is, anything else as JSON."""
    text = block.get("text") if block.get("type") == "text" else None
    return text if isinstance(text, str) else json.dumps(block, ensure_ascii=False, indent=2)


def _settings(request: dict[str, Any]) -> str:
    given = {name: value for name, value in request.items() if name not in _OF_THE_PROMPT}
    return json.dumps(given, ensure_ascii=False, indent=2)


def _answer(answer: dict[str, Any]) -> str:
    blocks: Iterable[dict[str, Any]] = answer.get("content", [])
    said = [block.get("thinking") if block.get("type") == "thinking" else _words(block) for block in blocks]
    return "\n\n".join(text for text in said if text)


def _call(call: ModelCalled, at: str) -> CallLine:
    usage = call.answer.get("usage", {}) if call.answer else {}
    counts = (
        ("in", usage.get("input_tokens", 0)),
        ("from the cache", usage.get("cache_read_input_tokens", 0)),
        ("into the cache", usage.get("cache_creation_input_tokens", 0)),
        ("out", usage.get("output_tokens", 0)),
    )
    tokens = " · ".join(f"{count:,} {name}" for name, count in counts if count)
    cost = "price unknown" if call.cost_usd is None else f"${call.cost_usd:.4f}"
    retried = f"{call.retries} retries" if call.retries else ""
    took = (tokens and f"tokens {tokens}", cost, f"{call.duration_ms / 1000:.1f} s", retried)
    partial = "cut off: only part of the answer came" if call.partial and not call.error else call.error
    what = (call.purpose, call.goal and f"for {call.goal}", at[11:19])
    return CallLine(" · ".join(filter(None, what)), " · ".join(filter(None, took)), partial)


def _spending(state: AgentState) -> Iterator[GoalSpending]:
    for goal, spent in state.spent.items():
        known = state.goals.get(goal)
        name = f"{goal} {known.text}" if known is not None else goal
        yield GoalSpending(name, spent.calls, spent.tokens, spent.usd)


def _total(state: AgentState) -> str:
    if not state.model_calls:
        return ""
    unknown = f" and {state.unpriced_calls} calls without a known price" if state.unpriced_calls else ""
    return (
        f"in all {state.model_calls} calls, {count_text(state.tokens)} tokens, ${state.cost_usd:.3f}{unknown}"
    )
