"""What a model answered, as a value that can be shown, recorded and replayed."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from engine.models.blocks import Block, Text, Thinking, ToolUse


class StopReason(StrEnum):
    """Why a model stopped, in the words of the Messages API."""

    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    STOP_SEQUENCE = "stop_sequence"
    TOOL_USE = "tool_use"
    PAUSE_TURN = "pause_turn"
    """The endpoint paused a long turn; sending the answer back lets the model go on."""
    REFUSAL = "refusal"
    CONTEXT_WINDOW = "model_context_window_exceeded"
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
    """True when the operator or an error cut the stream off."""
    notes: tuple[str, ...] = ()
    """What was changed in the request because the model does not take it."""

    @property
    def text(self) -> str:
        """All text blocks in one."""
        return "".join(block.text for block in self.content if isinstance(block, Text))

    @property
    def thinking(self) -> str:
        """All thinking in one."""
        return "".join(block.text for block in self.content if isinstance(block, Thinking))

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """The calls of tools, in order."""
        return tuple(block for block in self.content if isinstance(block, ToolUse))


@dataclass(frozen=True, slots=True)
class TokenCount:
    """How many tokens a prompt has."""

    tokens: int
    estimated: bool = False
    """True when nobody counted and it is four characters a token."""
    why: str = ""
    """Why it is estimated, in a sentence."""
