"""MCP servers and the results of calling their tools, as values that a pane or a line can show."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.core.text import clean_line
from engine.value import asdict, dataclass

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock


RESULT_LIMIT = 25_000
"""Characters of a result that are kept, the mark included."""


class CallStatus(StrEnum):
    """How a call ended; each is distinct from all others."""

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
    NO_PERMISSION = "no_leave"
    """The operator has not let the server start."""


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """What a server answered."""

    outcome: CallStatus
    text: str = ""
    """The result, or what went wrong; at most 25,000 characters."""

    @property
    def ok(self) -> bool:
        """Whether the tool did what was asked."""
        return self.outcome is CallStatus.OK


def truncate_result(text: str, limit: int = RESULT_LIMIT) -> str:
    """The text with everything behind the limit replaced by a mark."""
    if len(text) <= limit:
        return text
    kept = limit - len(f"\n… cut: {len(text):,} more characters …")
    return f"{text[:kept]}\n… cut: {len(text) - kept:,} more characters …"


def answer_of(result: CallToolResult) -> CallAnswer:
    """A server's result as a value."""
    structured = result.structured_content
    written = "" if structured is None else json.dumps(structured, ensure_ascii=False)
    text = "\n".join(text for block in result.content if (text := _block(block))) or written
    if result.is_error:
        return CallAnswer(
            CallStatus.TOOL_FAILURE, truncate_result(text or "the tool failed and said nothing")
        )
    return CallAnswer(CallStatus.OK, truncate_result(text))


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


class ServerState(StrEnum):
    """The state of a server."""

    STARTING = "starting"
    OK = "ok"
    DOWN = "down"
    STOPPED = "stopped"
    WAITING = "waits for your leave"
    """The workspace's settings name it and the operator has not let it start: nothing of it runs."""


@dataclass(frozen=True, slots=True)
class ServerView:
    """One server as it is now; every text is clean."""

    name: str
    state: ServerState
    transport: str = "stdio"
    tools: tuple[str, ...] = ()
    since: str = ""
    """Since when it is in this state, ISO 8601 in UTC."""
    error: str = ""
    """What went wrong last; empty where nothing has since it started."""
    server: str = ""
    """What it calls itself, with its version."""
    restarts: int = 0
    log: tuple[str, ...] = ()
    """The last lines of its standard error."""
    held: str = ""
    """For a program: which tier holds it; empty over HTTP."""
    left_out: int = 0
    """Tools that it lists and that cannot be used: their name is none, doubled, or they are too many."""

    @property
    def line(self) -> str:
        """All of it in a line, the log apart."""
        parts = [f"{self.name}: {self.state}", f"{len(self.tools)} tools", f"since {self.since}"]
        if self.left_out:
            parts.append(f"{self.left_out} tools left out for their names or number")
        if self.restarts:
            parts.append(f"started again {self.restarts} times")
        if self.error:
            parts.append(self.error)
        return " · ".join(parts)

    def as_json(self) -> dict[str, object]:
        """For `--json`, and for the event `mcp.state`."""
        facts = {name: value for name, value in asdict(self).items() if name != "log"}
        return {**facts, "state": self.state.value, "tools": list(self.tools)}


def health_line(text: object, limit: int = 300) -> str:
    """What a server or its error said, on one clean line."""
    return clean_line(str(text), limit=limit)
