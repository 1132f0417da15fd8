"""What a model answered, as a value that can be shown, recorded and replayed.

Content blocks: what the messages to and from a model are made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, Literal, TypeAlias, assert_never

from engine.value import dataclass

PieceKind = Literal["text", "thinking", "tool", "tool_input", "again", "wait"]


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
    """What a model thought before it answered; goes back unchanged when the exchange continues."""

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
    """The result of a tool call."""

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


def user_message(text: str, *, name: str = "", cache: bool = False) -> Message:
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


class StopReason(StrEnum):
    """Why a model stopped, in the words of the Messages API."""

    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    STOP_SEQUENCE = "stop_sequence"
    TOOL_USE = "tool_use"
    PAUSE_TURN = "pause_turn"
    """The endpoint paused a long turn; sending the answer back lets the model continue."""
    REFUSAL = "refusal"
    CONTEXT_WINDOW = "model_context_window_exceeded"
    REPETITION = "repetition"
    """It said the same again and again, and was cut; no endpoint says so."""
    UNKNOWN = "unknown"
    """A reason that this table does not have; `ModelAnswer.stop_said` holds it."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call, as the endpoint bills them."""

    input_tokens: int = 0
    """Without those that the cache gave or took."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    """Written to the cache for five minutes."""
    cache_write_1h_tokens: int = 0
    estimated: bool = False
    """True when the endpoint did not say how much it was; then it is four characters a token."""

    @property
    def prompt_tokens(self) -> int:
        """The whole prompt, from the cache or not."""
        return (
            self.input_tokens + self.cache_read_tokens + self.cache_write_tokens + self.cache_write_1h_tokens
        )

    @property
    def total_tokens(self) -> int:
        """Prompt and answer."""
        return self.prompt_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.cache_write_1h_tokens + other.cache_write_1h_tokens,
            self.estimated or other.estimated,
        )


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """One answer, whole or cut off."""

    content: tuple[Block, ...] = ()
    stop_reason: StopReason | None = None
    """None while the answer is partial."""
    stop_said: str = ""
    """The reason in the endpoint's own word, and its explanation where it gave one."""
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    """The model that answered, in the endpoint's words."""
    request_id: str = ""
    latency_ms: int = 0
    """From the last attempt's start to the end."""
    first_piece_ms: int | None = None
    """From the last attempt's start to the first piece; None when nothing came."""
    retries: int = 0
    partial: bool = False
    """True when a stop or an error cut the stream off."""
    notes: tuple[str, ...] = ()
    """What was changed in the request because the model does not take it."""

    @property
    def text(self) -> str:
        """All text blocks in one."""
        return "".join(block.text for block in self.content if isinstance(block, Text))

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """The calls of tools, in order."""
        return tuple(block for block in self.content if isinstance(block, ToolUse))


@dataclass(frozen=True, slots=True)
class Piece:
    """What is new in an answer, for those who watch it come."""

    kind: PieceKind
    """`tool` begins a tool call and `text` is its name; `again` takes back all that came before; `wait` says
    why the call is made once more, and after how many seconds."""
    text: str = ""
    block: int = 0
    """Number of the block it belongs to, from 0."""
