"""Content blocks: what the messages to and from a model are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, assert_never


@dataclass(frozen=True, slots=True)
class Text:
    """Words, as sent or as said."""

    text: str
    name: str = ""
    """What the block is (`role`, `goal`, …), for the context meter; never sent."""
    cache: bool = False
    """Whether the prompt is stable up to the end of this block, so that the endpoint may cache it."""
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class Thinking:
    """What a model thought before it answered; goes back unchanged when the exchange goes on."""

    text: str
    signature: str = ""
    """By it the endpoint knows its own thinking again; opaque."""
    type: Literal["thinking"] = "thinking"


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A model's call of a tool; nothing has run."""

    id: str
    name: str
    input: dict[str, Any] = field(default_factory=dict)
    fault: str = ""
    """Why the input is not usable, in a sentence; empty when it is. `raw` then holds what was said."""
    raw: str = ""
    """The input's text where it is not usable."""
    type: Literal["tool_use"] = "tool_use"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of a tool call."""

    tool_use_id: str
    text: str
    is_error: bool = False
    type: Literal["tool_result"] = "tool_result"


@dataclass(frozen=True, slots=True)
class Opaque:
    """A block of a kind that only the endpoint understands, kept so that it can go back unchanged."""

    data: dict[str, Any]
    type: Literal["opaque"] = "opaque"


Block: TypeAlias = Text | Thinking | ToolUse | ToolResult | Opaque


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of an exchange."""

    role: Literal["user", "assistant"]
    content: tuple[Block, ...]


def said(text: str, *, name: str = "", cache: bool = False) -> Message:
    """A turn of the user with one text."""
    return Message("user", (Text(text, name, cache),))


def block_body(block: Block) -> dict[str, Any]:
    """A block as the Messages API takes it."""
    match block:
        case Text():
            return {"type": "text", "text": block.text, **cache_mark(block.cache)}
        case Thinking():
            return {"type": "thinking", "thinking": block.text, "signature": block.signature}
        case ToolUse():
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
        case ToolResult():
            return {
                "type": "tool_result",
                "tool_use_id": block.tool_use_id,
                "content": block.text,
                "is_error": block.is_error,
            }
        case Opaque():
            return block.data
    assert_never(block)


def cache_mark(marked: bool) -> Mapping[str, Any]:
    """The entry that asks the endpoint to cache the prompt up to here, for five minutes."""
    return {"cache_control": {"type": "ephemeral"}} if marked else {}
