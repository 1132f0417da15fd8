"""What came of a call of an MCP server's tool, and how much of it is kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock

RESULT_LIMIT = 25_000
"""Characters of a result that are kept, the mark included (ontology spec §1.14)."""


class Outcome(StrEnum):
    """How a call ended; each is told apart from all others (ontology spec §6, line 44)."""

    OK = "ok"
    TOOL_FAILURE = "tool_failure"
    """The tool answered that it failed (`isError`)."""
    SERVER_ERROR = "server_error"
    """The server answered with a JSON-RPC error."""
    UNKNOWN_TOOL = "unknown_tool"
    """The server lists no such tool; it was not asked."""
    CRASHED = "crashed"
    """The connection ended during the call: whether the tool did anything is not known."""
    TIMEOUT = "timeout"
    SLOW_START = "slow_start"
    """The server did not get through its handshake in time."""
    DOWN = "MCP_DOWN"
    """The server is down, and so nothing was asked of it."""
    NO_LEAVE = "no_leave"
    """The operator has not let the server start."""


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """What a server answered."""

    outcome: Outcome
    text: str = ""
    """The result, or what went wrong; at most 25,000 characters."""
    structured: Any = None
    """The structured result where there is one and it is not longer than what is kept of a text."""

    @property
    def ok(self) -> bool:
        """Whether the tool did what was asked."""
        return self.outcome is Outcome.OK


def cut(text: str, limit: int = RESULT_LIMIT) -> str:
    """The text with everything behind the limit replaced by a mark."""
    if len(text) <= limit:
        return text
    kept = limit - len(f"\n… cut: {len(text):,} more characters …")
    return f"{text[:kept]}\n… cut: {len(text) - kept:,} more characters …"


def answer_of(result: CallToolResult) -> CallAnswer:
    """A server's result as a value."""
    structured = result.structured_content
    written = "" if structured is None else json.dumps(structured, ensure_ascii=False)
    text = _text_of(result.content) or written
    if result.is_error:
        return CallAnswer(Outcome.TOOL_FAILURE, cut(text or "the tool failed and said nothing"))
    return CallAnswer(Outcome.OK, cut(text), structured if len(written) <= RESULT_LIMIT else None)


def _text_of(blocks: Sequence[ContentBlock]) -> str:
    return "\n".join(said for block in blocks if (said := _block(block)))


def _block(block: ContentBlock) -> str:
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            return f"[{block.type} {block.mime_type}, {len(block.data) * 3 // 4:,} bytes]"
        case "resource_link":
            return f"[resource {block.uri}]"
        case _:
            text = getattr(block.resource, "text", None)
            return text if isinstance(text, str) else f"[resource {block.resource.uri}]"
