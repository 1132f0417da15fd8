"""How MCP servers are, as values that a pane or a line can show."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from engine.domain.text import clean_line


class ServerState(StrEnum):
    """Where a server stands (ontology spec §1.14)."""

    STARTING = "starting"
    OK = "ok"
    DEGRADED = "degraded"
    """The connection stands, and the server did not answer when it was looked after, or answered wrongly."""
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
    """When it came into this state, ISO 8601 in UTC."""
    error: str = ""
    """What went wrong last; empty where nothing has since it came up."""
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
        return {
            "name": self.name,
            "state": self.state.value,
            "transport": self.transport,
            "tools": list(self.tools),
            "since": self.since,
            "error": self.error,
            "server": self.server,
            "restarts": self.restarts,
            "held": self.held,
            "left_out": self.left_out,
        }


def shown(text: object, limit: int = 300) -> str:
    """What a server or its error said, on one clean line."""
    return clean_line(str(text), limit=limit)
