"""What is asked of a model, as a value that can be sent, recorded and compared."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import field, replace
from typing import Any

from engine.core.journal import canonical
from engine.models.messages import Message, Text, ToolResult, block_body, cache_mark
from engine.value import dataclass

CACHE_MARKS = 4
"""Places in a prompt up to which the Messages API caches."""
LEAST_THINKING = 1_024
"""Smallest budget of thinking that the Messages API takes, in tokens."""
EFFORTS = ("low", "medium", "high")
"""How much a model may be told to work: the levels that all take that take any."""
ANY_TOOL = "*"
"""Stands for whichever tool the model chooses; it must call one, and only one."""
CHARACTERS_PER_TOKEN = 4
"""The rule of thumb where it is not counted (seed AML, token estimation)."""

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool that the model may call."""

    name: str
    description: str
    input_schema: dict[str, Any] = field(default_factory=lambda: {"type": "object"})
    """JSON Schema of an object."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to a model; holds no key, so that it can be recorded as it is.

    Raises:
        ValueError: a value is outside its range; the message says which and what is allowed.
    """

    model: str
    messages: tuple[Message, ...]
    system: tuple[Text, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = ""
    """Name of the tool that must be called, or `ANY_TOOL`; empty leaves it to the model."""
    max_tokens: int = 4_096
    """Longest answer, thinking included, in tokens."""
    temperature: float | None = None
    """From 0 to 1; None leaves it to the model."""
    thinking_budget: int | None = None
    """Tokens for thinking, at least 1,024 and fewer than `max_tokens`; None leaves it to the model."""
    thinking_adaptive: bool = False
    """Set by `Capabilities.fit` where the model takes no budget and decides itself how much it thinks."""
    effort: str = ""
    """One of `EFFORTS`; empty leaves it to the model."""
    json_schema: dict[str, Any] | None = None
    """The answer is one JSON object of this schema, and ends where that is whole. The server is told where
    it can hold an answer to one; None where the answer is free, or a call of a tool."""
    cache_tools: bool = False
    """Whether the tools are stable, so that the endpoint may cache them."""

    def __post_init__(self) -> None:
        for wrong in self._faults():
            raise ValueError(f"the request to a model: {wrong}")

    def _faults(self) -> Iterator[str]:
        if not self.model or not self.model.isprintable():
            yield "the model's name is empty or not printable"
        if not self.messages or self.messages[0].role != "user":
            yield "the first message must be the user's"
        if self.max_tokens < 1:
            yield f"max_tokens is {self.max_tokens} and must be at least 1"
        if self.temperature is not None and not 0 <= self.temperature <= 1:
            yield f"temperature is {self.temperature} and must be from 0 to 1"
        if self.thinking_budget is not None and not LEAST_THINKING <= self.thinking_budget < self.max_tokens:
            yield f"thinking_budget must be from {LEAST_THINKING} to below max_tokens ({self.max_tokens})"
        if self.effort and self.effort not in EFFORTS:
            yield f"effort is {self.effort!r} and must be one of {', '.join(EFFORTS)}"
        yield from self._tool_faults()
        if self._cache_marks() > CACHE_MARKS:
            yield f"more than {CACHE_MARKS} places are marked for caching"

    def _tool_faults(self) -> Iterator[str]:
        names = [tool.name for tool in self.tools]
        if len(set(names)) < len(names) or not all(_TOOL_NAME.fullmatch(name) for name in names):
            yield "tools need different names of up to 64 letters, digits, _ and -"
        if self.tool_choice and self.tool_choice not in (*names, *([ANY_TOOL] if names else [])):
            yield f"tool_choice is {self.tool_choice!r}, which is none of the tools"

    def _cache_marks(self) -> int:
        blocks = [*self.system, *(block for message in self.messages for block in message.content)]
        marked = sum(isinstance(block, Text) and block.cache for block in blocks)
        return marked + (self.cache_tools and bool(self.tools))

    def body(self) -> dict[str, Any]:
        """The request as the Messages API takes it, without `stream`.

        Lone surrogates, which no text on the wire can hold, become `?`.
        """
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": self.max_tokens,
            "messages": [
                {"role": message.role, "content": [block_body(block) for block in message.content]}
                for message in self.messages
            ],
        }
        if self.system:
            body["system"] = [block_body(block) for block in self.system]
        body |= self._tools_body()
        if self.thinking_adaptive:
            # Without `display` the newer models send empty thinking, and the operator would see none.
            body["thinking"] = {"type": "adaptive", "display": "summarized"}
        elif self.thinking_budget is not None:
            body["thinking"] = {"type": "enabled", "budget_tokens": self.thinking_budget}
        if self.effort:
            body["output_config"] = {"effort": self.effort}
        if self.json_schema is not None:
            form = {"format": {"type": "json_schema", "schema": self.json_schema}}
            body["output_config"] = body.get("output_config", {}) | form
        if self.temperature is not None:
            body["temperature"] = self.temperature
        text = json.dumps(body, ensure_ascii=False, allow_nan=False)
        plain: dict[str, Any] = json.loads(text.encode("utf-8", "replace"))
        return plain

    def _tools_body(self) -> dict[str, Any]:
        if not self.tools:
            return {}
        tools = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
            for tool in self.tools
        ]
        tools[-1] |= cache_mark(self.cache_tools)
        if not self.tool_choice:
            return {"tools": tools}
        which = (
            {"type": "any"} if self.tool_choice == ANY_TOOL else {"type": "tool", "name": self.tool_choice}
        )
        return {"tools": tools, "tool_choice": {**which, "disable_parallel_tool_use": True}}

    @property
    def digest(self) -> str:
        """SHA-256 of the body as canonical JSON; equal requests have equal digests."""
        return hashlib.sha256(canonical(self.body()).encode()).hexdigest()

    def followed_by(self, *messages: Message) -> ModelRequest:
        """The same request with the exchange gone on by some turns."""
        return replace(self, messages=(*self.messages, *messages))

    def shares(self) -> tuple[tuple[str, int], ...]:
        """Each block of the prompt by name with its estimated tokens, in the order sent."""
        tools = canonical(self._tools_body().get("tools", []))
        shares = [("tools", estimate_tokens(tools))] if self.tools else []
        shares += [(block.name or "system", estimate_tokens(block.text)) for block in self.system]
        for message in self.messages:
            for block in message.content:
                name = block.name if isinstance(block, Text) else ""
                name = name or ("tool results" if isinstance(block, ToolResult) else "exchange")
                shares.append((name, estimate_tokens(canonical(block_body(block)))))
        return tuple(shares)


def estimate_tokens(text: str) -> int:
    """Tokens of a text by the seed's rule, four characters a token, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)
